//! The layers of skills: built in, those of plugins and packs, the user's, the project's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::Problem;
use tiller_config::agents::{Origin, ProjectFile};
use tiller_protocol::nearest::nearest;
use tiller_protocol::skill::find_command;

use crate::extras::{Extras, OwnCommand, Style};
use crate::files::{ReadFailure, SkillFiles, read_inside};
use crate::graph;
use crate::packs::is_template;
use crate::read;
use crate::skill::{FILE, Skill};
use crate::withheld::{Withheld, WithheldFiles, WithheldItem};

/// The folder of skills in a plugin, a pack, and the person's configuration folder.
const FOLDER: &str = "skills";
/// Those of the project; the last wins.
const PROJECT: [&str; 3] = [".claude/skills/", ".agents/skills/", ".tiller/skills/"];
/// Skills of one folder at most.
const MOST: usize = 500;

/// A file of a built-in skill: its path in the folder, and its bytes.
pub type BuiltInFile = (&'static str, &'static [u8]);
/// The folder of a built-in skill or pack: its name, and its files.
pub type BuiltInFolder = (&'static str, &'static [BuiltInFile]);
/// A file of a project: its path in its folder; `None` for one that is a link, or too large.
type ProjectPart<'a> = (&'a str, Option<&'a [u8]>);

/// The folders of the program's own skills, by name, with their files.
static BUILT_IN: &[BuiltInFolder] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The names of the built-in skills' folders, with their files.
pub fn built_in_folders() -> &'static [BuiltInFolder] {
    BUILT_IN
}

/// Where skills come from.
#[derive(Clone, Debug, Default)]
pub struct Sources<'a> {
    /// The program's own.
    pub built_in: bool,
    /// Plugins and packs in use. Of two skills with one name the later replaces the earlier.
    pub packs: Vec<PackSource>,
    /// The person's configuration folder.
    pub config: Option<PathBuf>,
    /// Files of the project, empty until it is trusted.
    pub project: Vec<ProjectFile<'a>>,
    /// Files of the project that are not as the user trusted them; those in `project` are.
    pub changed: BTreeSet<String>,
    /// Packs and files that are not used until the user agrees to them.
    pub withheld: Vec<Withheld<'a>>,
    /// Names that the settings turn off.
    pub disabled: BTreeSet<String>,
}

/// A plugin or a pack in use, with folders `skills`, `commands` and `styles`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackSource {
    pub folder: PathBuf,
    /// The name of the pack; `None`: it is a plugin.
    pub name: Option<String>,
    /// BLAKE3 of each file that the user agreed to, as hexadecimal digits, by the path below the folder: other files are not
    /// read, now or later. `None`: all files are read as they are.
    pub agreed: Option<Arc<BTreeMap<String, String>>>,
}

impl PackSource {
    /// All files of a folder, as they are.
    pub fn unpinned(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), name: None, agreed: None }
    }
}

/// Something that is wrong with a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The name of its folder.
    pub skill: String,
    pub problem: Problem,
    /// It is left out; otherwise it is a warning.
    pub skipped: bool,
}

/// Every skill, by name. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Skills(Arc<Loaded>);

#[derive(Debug, Default)]
struct Loaded {
    skills: BTreeMap<String, Arc<Skill>>,
    hidden: Vec<Arc<Skill>>,
    disabled: BTreeMap<String, Arc<Skill>>,
    flaws: Vec<Flaw>,
    /// Those whose requirements cannot be met.
    unmet: BTreeMap<String, Arc<Skill>>,
    withheld: Vec<WithheldItem>,
    extras: Extras,
}

/// A skill's file before it is read.
struct Candidate {
    from: Origin,
    path: PathBuf,
    content: Result<Vec<u8>, String>,
    files: SkillFiles,
}

impl Skills {
    /// Reads them. A skill that cannot be used is left out and reported, and nothing else is. Blocks; runs nothing.
    pub fn load(sources: &Sources<'_>) -> (Self, Vec<Problem>) {
        let mut loaded = Loaded::default();
        if sources.built_in {
            loaded.layer(BUILT_IN.iter().map(|(name, files)| built_in(name, files)).collect());
        }
        for pack in &sources.packs {
            let mut found = loaded.folder(&pack.folder.join(FOLDER), Origin::Plugin);
            if let Some(agreed) = &pack.agreed {
                found.iter_mut().for_each(|candidate| candidate.pin(agreed));
            }
            loaded.layer_of(found, pack.name.as_ref());
        }
        if let Some(config) = &sources.config {
            let found = loaded.folder(&config.join(FOLDER), Origin::User);
            loaded.layer(found);
        }
        for place in PROJECT {
            loaded.layer(project(place, &sources.project));
        }
        for name in &sources.disabled {
            if let Some(skill) = loaded.skills.remove(name) {
                loaded.disabled.insert(name.clone(), skill);
            }
        }
        loaded.extras(sources);
        loaded.check_requirements();
        loaded.withhold(sources);
        loaded.note_changes(&sources.changed);
        let problems = loaded.flaws.iter().filter(|f| f.skipped).map(|f| f.problem.clone()).collect();
        (Self(Arc::new(loaded)), problems)
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.0.skills.get(name)
    }

    /// By name, without those that are turned off.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.0.skills.values()
    }

    /// Those that the settings turn off, by name.
    pub fn disabled(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.0.disabled.values()
    }

    /// Those that a later place replaces by one of the same name.
    pub fn hidden(&self) -> &[Arc<Skill>] {
        &self.0.hidden
    }

    /// Skills, own commands and output styles that are not used until the user agrees to their files, by name.
    pub fn withheld(&self) -> &[WithheldItem] {
        &self.0.withheld
    }

    /// All skills by name, also those whose requirements cannot be met.
    pub(crate) fn with_unmet(&self) -> BTreeMap<String, Arc<Skill>> {
        let all = self.0.skills.iter().chain(&self.0.unmet);
        all.map(|(name, skill)| (name.clone(), Arc::clone(skill))).collect()
    }

    /// What is wrong with skills.
    pub fn flaws(&self) -> &[Flaw] {
        &self.0.flaws
    }

    /// Own commands, by name.
    pub fn commands(&self) -> impl Iterator<Item = &Arc<OwnCommand>> {
        self.0.extras.commands.values()
    }

    /// The own command of this name: the whole name, else its last part where one command alone has it.
    pub fn command(&self, name: &str) -> Option<&Arc<OwnCommand>> {
        find_command(self.0.extras.commands.values(), name, |command| command.name.as_str())
    }

    /// Output styles, by name.
    pub fn styles(&self) -> impl Iterator<Item = &Arc<Style>> {
        self.0.extras.styles.values()
    }

    /// The output style of this name.
    pub fn style(&self, name: &str) -> Option<&Arc<Style>> {
        self.0.extras.styles.get(name)
    }

    /// What to say of the name of a style that is none.
    pub fn no_such_style(&self, name: &str) -> String {
        let names: Vec<&str> = self.0.extras.styles.keys().map(String::as_str).collect();
        format!("there is no output style `{}`; available: {}", name.escape_default(), names.join(", "))
    }

    /// The same with some turned off, or on.
    pub(crate) fn switched(&self, switched: &BTreeMap<String, bool>) -> Self {
        let now = &*self.0;
        let (mut skills, mut disabled) = (now.skills.clone(), now.disabled.clone());
        for (name, on) in switched {
            let (from, to) = if *on { (&mut disabled, &mut skills) } else { (&mut skills, &mut disabled) };
            if let Some(skill) = from.remove(name) {
                to.insert(name.clone(), skill);
            }
        }
        let (hidden, flaws, extras) = (now.hidden.clone(), now.flaws.clone(), now.extras.clone());
        let (unmet, withheld) = (now.unmet.clone(), now.withheld.clone());
        Self(Arc::new(Loaded { skills, hidden, disabled, flaws, unmet, withheld, extras }))
    }

    /// The skill of this name after all that it requires, each once.
    ///
    /// # Errors
    /// A sentence: there is none, or its requirements cannot be met.
    pub fn with_required(&self, name: &str) -> Result<Vec<Arc<Skill>>, String> {
        if self.get(name).is_none() {
            return Err(self.no_such(name));
        }
        graph::closure(&self.0.skills, name).map_err(|unmet| unmet.why)
    }

    /// Whether the requirements of a skill could be met if it was added, or took the place of the one of its name.
    ///
    /// # Errors
    /// A sentence that names the path.
    pub(crate) fn check_with(&self, skill: Skill) -> Result<(), String> {
        let mut all = self.0.skills.clone();
        let name = skill.name.clone();
        all.insert(name.clone(), Arc::new(skill));
        graph::closure(&all, &name).map(drop).map_err(|unmet| unmet.why)
    }

    /// What to say of the first of these names that is none.
    pub fn wrong<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Option<String> {
        names.into_iter().find(|n| self.get(n.as_ref()).is_none()).map(|n| self.no_such(n.as_ref()))
    }

    /// What to say of a name that is none: the nearest, or all.
    pub fn no_such(&self, name: &str) -> String {
        if self.0.disabled.contains_key(name) {
            return format!("the skill `{name}` is turned off in the settings");
        }
        if let Some(item) = self.0.withheld.iter().find(|item| item.is_skill() && item.name == name) {
            return format!("the skill {}", item.why_not());
        }
        let shown = name.escape_default();
        let names = self.0.skills.keys().map(String::as_str);
        match nearest(name, names.clone()) {
            Some(near) => format!("there is no skill `{shown}`; did you mean `{near}`?"),
            None if self.0.skills.is_empty() => {
                format!(
                    "there is no skill `{shown}`, and there are no others: put the knowledge into context"
                )
            }
            None => {
                format!("there is no skill `{shown}`; available: {}", names.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl Loaded {
    /// Reads own commands and output styles.
    fn extras(&mut self, sources: &Sources<'_>) {
        if sources.built_in {
            self.extras.built_in();
        }
        for pack in &sources.packs {
            self.extras.folder(&pack.folder, Origin::Plugin, pack.agreed.as_deref());
        }
        if let Some(config) = &sources.config {
            self.extras.folder(config, Origin::User, None);
        }
        self.extras.project(&sources.project);
        let wrong = std::mem::take(&mut self.extras.problems).into_iter();
        self.flaws.extend(wrong.map(|(skill, problem)| Flaw { skill, problem, skipped: true }));
    }

    /// Puts the skills of one place over those of the places before.
    fn layer(&mut self, found: Vec<Candidate>) {
        self.layer_of(found, None);
    }

    /// As [`Self::layer`], for the skills of a pack.
    fn layer_of(&mut self, found: Vec<Candidate>, pack: Option<&String>) {
        let mut here: BTreeMap<String, PathBuf> = BTreeMap::new();
        for candidate in found {
            let path = candidate.path.clone();
            let folder =
                path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
            let (skill, warnings) = match candidate.read() {
                Ok((skill, warnings)) => (Skill { pack: pack.cloned(), ..skill }, warnings),
                Err(problem) => {
                    self.flaws.push(Flaw { skill: folder, problem, skipped: true });
                    continue;
                }
            };
            if is_template(&skill) {
                let problem = Problem {
                    hint: Some("say in its description what it does, and when to use it".to_owned()),
                    ..Problem::file(&path, "it is not filled in yet")
                };
                self.flaws.push(Flaw { skill: folder, problem, skipped: true });
                continue;
            }
            if let Some(first) = here.get(&skill.name) {
                let message = format!("`{}` is already the skill in {}", skill.name, first.display());
                let hint = Some("give one of them another name".to_owned());
                let problem = Problem { at: Some((1, 1)), hint, ..Problem::file(&path, message) };
                self.flaws.push(Flaw { skill: folder, problem, skipped: true });
                continue;
            }
            here.insert(skill.name.clone(), path);
            let flaw = |problem| Flaw { skill: skill.name.clone(), problem, skipped: false };
            self.flaws.extend(warnings.into_iter().map(flaw));
            if let Some(hidden) = self.skills.insert(skill.name.clone(), Arc::new(skill)) {
                self.hidden.push(hidden);
            }
        }
    }

    /// The skills of a folder, by name. No folder is no mistake, nor is a folder in it without the file.
    fn folder(&mut self, path: &Path, from: Origin) -> Vec<Candidate> {
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(e) => {
                let problem = Problem::file(path, format!("the folder cannot be read: {e}"));
                self.flaws.push(Flaw { skill: String::new(), problem, skipped: true });
                return Vec::new();
            }
        };
        let mut folders: Vec<PathBuf> = entries.take(4 * MOST).flatten().map(|e| e.path()).collect();
        // Folders whose names begin with a dot are changes that are under way, or were cut off.
        let plain = |p: &PathBuf| !p.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        folders.retain(|p| plain(p) && std::fs::symlink_metadata(p.join(FILE)).is_ok());
        folders.sort();
        if folders.len() > MOST {
            let problem = Problem::file(path, format!("more than {MOST} skills; the rest is ignored"));
            self.flaws.push(Flaw { skill: String::new(), problem, skipped: true });
            folders.truncate(MOST);
        }
        let candidate = |folder: PathBuf| {
            // A person's folder may be a link, to where they keep their files. Nothing below it may.
            let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            let content = match read_inside(&real, FILE) {
                Ok(bytes) => Ok(bytes),
                Err(ReadFailure::Missing) => Err("it is gone".to_owned()),
                Err(ReadFailure::Refused(why)) => Err(format!("it {why}")),
            };
            Candidate { from, path: folder.join(FILE), content, files: SkillFiles::Folder(real) }
        };
        folders.into_iter().map(candidate).collect()
    }

    /// Leaves out the skills whose requirements cannot be met. What all others require can be met then: it is a part of what was
    /// checked.
    fn check_requirements(&mut self) {
        let wrong = self.skills.iter().filter_map(|(name, skill)| {
            let graph::Unmet { why, remedy } = graph::closure(&self.skills, name).err()?;
            let hint = Some(remedy.to_owned());
            Some((name.clone(), Problem { hint, ..Problem::file(&skill.file, why) }))
        });
        for (name, problem) in wrong.collect::<Vec<_>>() {
            if let Some(skill) = self.skills.remove(&name) {
                self.unmet.insert(name.clone(), skill);
            }
            self.flaws.push(Flaw { skill: name, problem, skipped: true });
        }
    }

    /// Lists what is not used until the user agrees to it.
    fn withhold(&mut self, sources: &Sources<'_>) {
        for group in &sources.withheld {
            let found = match &group.files {
                WithheldFiles::Folder(folder) => self.folder(&folder.join(FOLDER), group.from),
                WithheldFiles::Project(files) => {
                    PROJECT.into_iter().flat_map(|place| project(place, files)).collect()
                }
            };
            let skills = found.into_iter().map(|candidate| {
                let path = candidate.path.clone();
                (path, candidate.read().map(|(skill, _)| skill).map_err(|problem| problem.message))
            });
            self.withheld.extend(group.items(skills.collect()));
        }
        self.withheld.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Says of skills of the project that their files are not as the user trusted them: they are used as they were.
    fn note_changes(&mut self, changed: &BTreeSet<String>) {
        for skill in self.skills.values().filter(|skill| skill.from == Origin::Project) {
            let folder = format!("{}/", skill.file.parent().unwrap_or(&skill.file).display());
            let Some(below) = changed.iter().find_map(|path| path.strip_prefix(&folder)) else { continue };
            let message = format!(
                "`{}` changed since you trusted this folder; the skill is used as you trusted it",
                below.escape_default()
            );
            let hint = Some("`tiller trust` shows the files and asks".to_owned());
            let problem = Problem { hint, ..Problem::file(&skill.file, message) };
            self.flaws.push(Flaw { skill: skill.name.clone(), problem, skipped: false });
        }
    }
}

impl Candidate {
    /// Binds the skill of a pack to the files of the pack that the user agreed to. `agreed`: as [`PackSource::agreed`].
    fn pin(&mut self, agreed: &BTreeMap<String, String>) {
        let SkillFiles::Folder(folder) = &self.files else { return };
        let name = self.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let below = format!("{FOLDER}/{name}/");
        let hash =
            |(path, hash): (&String, &String)| Some((path.strip_prefix(&below)?.to_owned(), hash.clone()));
        let hashes = Arc::new(agreed.iter().filter_map(hash).collect());
        self.files = SkillFiles::Pinned { folder: folder.clone(), hashes };
        if self.content.is_ok() {
            self.content = self.files.read(FILE);
        }
    }

    /// The skill of the file, and what is wrong with it nevertheless.
    fn read(self) -> Result<(Skill, Vec<Problem>), Problem> {
        let Self { from, path, content, files } = self;
        content
            .map_err(|why| Problem::file(&path, format!("the file cannot be read: {why}")))
            .and_then(|bytes| read::skill(&path, from, &bytes, files))
    }
}

fn built_in(name: &str, files: &'static [(&'static str, &'static [u8])]) -> Candidate {
    let content = files.iter().find(|(path, _)| *path == FILE).map(|(_, bytes)| bytes.to_vec());
    Candidate {
        from: Origin::BuiltIn,
        path: Path::new(name).join(FILE),
        content: content.ok_or_else(|| "it is gone".into()),
        files: SkillFiles::Embedded(files),
    }
}

/// The project's skills in one of its folders, made of the bytes that were trusted.
fn project(place: &str, files: &[ProjectFile<'_>]) -> Vec<Candidate> {
    let mut folders: BTreeMap<&str, Vec<ProjectPart<'_>>> = BTreeMap::new();
    for file in files {
        let inside = file.path.strip_prefix(place).and_then(|rest| rest.split_once('/'));
        if let Some((folder, below)) = inside {
            folders.entry(folder).or_default().push((below, file.bytes));
        }
    }
    let candidate = |(folder, files): (&str, Vec<ProjectPart<'_>>)| {
        let main = files.iter().find(|(below, _)| *below == FILE)?.1;
        let held = files.iter().filter_map(|(below, b)| Some(((*below).to_owned(), b.as_ref()?.to_vec())));
        Some(Candidate {
            from: Origin::Project,
            path: PathBuf::from(format!("{place}{folder}/{FILE}")),
            content: main.map(<[u8]>::to_vec).ok_or_else(|| "it is a link, or too large".to_owned()),
            files: SkillFiles::InMemory(Arc::new(held.collect())),
        })
    };
    folders.into_iter().take(MOST).filter_map(candidate).collect()
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
