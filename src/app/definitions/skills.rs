//! Skills, own commands and output styles from all places.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tiller_config::agents::{Origin, ProjectFile};
use tiller_config::{Places, PluginPlace, Problem};
use tiller_permit::trust::{FolderConfig, FoundFile, Status, discover};
use tiller_protocol::{Notice, ToolCatalog, TrustKind};
use tiller_skills::{PackSource, Skills, Sources, Withheld, WithheldFiles};
use tiller_store::Store;

use crate::app::extensions::{packs, plugins};
use crate::app::setup::trust_status;
use crate::app::tools::memory::without_own;

/// Reads them: built in, of plugins and packs in use, the person's. Those of the folder only when it is trusted, in the form that
/// was shown; else they are listed as not used. `disabled`: names that the settings turn off. Blocks.
pub(crate) fn read(
    places: &Places,
    folder_config: &FolderConfig,
    trusted: bool,
    disabled: &[String],
) -> (Skills, Vec<Problem>) {
    ProjectFiles::of(folder_config, trusted).load(places, Vec::new(), disabled)
}

/// Whether it is a file of a skill, an own command or an output style.
fn is_ours(file: &FoundFile) -> bool {
    matches!(file.item.kind, TrustKind::Skill | TrustKind::Command | TrustKind::Style)
}

/// A plugin: its skills and commands are read only in the form that the user agreed to, now and later.
pub(crate) fn of_plugin(plugin: &PluginPlace) -> PackSource {
    PackSource { agreed: Some(Arc::clone(&plugin.hashes)), ..PackSource::unpinned(&plugin.folder) }
}

/// Files of the folder, by what may be done with them.
#[derive(Default)]
struct ProjectFiles<'a> {
    used: Vec<&'a FoundFile>,
    /// The user has not agreed to them.
    withheld: Vec<&'a FoundFile>,
    /// Paths of those in `used` whose present form the user has not agreed to, and of files beside them.
    changed: BTreeSet<String>,
}

/// The files as a loader takes them.
fn parts<'a>(files: &[&'a FoundFile]) -> Vec<ProjectFile<'a>> {
    files.iter().map(|f| ProjectFile { path: &f.item.path, bytes: f.bytes.as_deref() }).collect()
}

impl<'a> ProjectFiles<'a> {
    /// All or none of the files, as they are.
    fn of(folder_config: &'a FolderConfig, trusted: bool) -> Self {
        let all = folder_config.found.iter().filter(|f| is_ours(f)).collect();
        match trusted && !folder_config.too_much {
            true => Self { used: all, ..Self::default() },
            false => Self { withheld: all, ..Self::default() },
        }
    }

    /// Reads the skills. `plugins`: those that are not as the user agreed to them.
    fn load(
        &self,
        places: &Places,
        plugins: Vec<Withheld<'static>>,
        disabled: &[String],
    ) -> (Skills, Vec<Problem>) {
        let packs::StartPacks { used, withheld } = packs::of_start(places);
        let mut withheld: Vec<Withheld<'_>> = plugins.into_iter().chain(withheld).collect();
        let others = parts(&self.withheld);
        if !others.is_empty() {
            withheld.push(Withheld {
                pack: None,
                from: Origin::Project,
                files: WithheldFiles::Project(others),
                why: "you have not trusted this folder's files as they are now".into(),
                remedy: "`tiller trust` shows them and asks".into(),
            });
        }
        Skills::load(&Sources {
            built_in: true,
            packs: places.plugins.iter().map(of_plugin).chain(used).collect(),
            config: Some(places.config.clone()),
            project: parts(&self.used),
            changed: self.changed.clone(),
            withheld,
            disabled: disabled.iter().cloned().collect(),
        })
    }
}

/// Reads the skills of a session again and again: those of the folder as the user trusts them at that time.
pub(crate) struct SessionSkills {
    pub(crate) places: Places,
    pub(crate) project: PathBuf,
    pub(crate) tools: ToolCatalog,
    pub(crate) store: Store,
    /// The folder's files at the start.
    pub(crate) start: FolderConfig,
    /// The user trusts those of the start.
    pub(crate) trusted: Arc<AtomicBool>,
    /// The folder's files as they were when they were last read and trusted, empty once the trust is revoked; `None`: there was
    /// no stored trust yet.
    pub(crate) agreed: Mutex<Option<FolderConfig>>,
    /// Names that the settings turn off.
    pub(crate) disabled: Vec<String>,
}

impl SessionSkills {
    /// Reads them as they are now. What was added or changed since the start is used once the user has trusted the folder as it
    /// is, with `tiller trust`; until then what was trusted stays in use as it was.
    pub(crate) fn again(&self) -> Skills {
        let now = discover(&self.project, &self.tools);
        let brings = without_own(now.clone(), &self.project, &self.store);
        let status = trust_status(&self.store, &self.project, &brings);
        let mut agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        // The trust was revoked, by this or another process: nothing is agreed to any more.
        if agreed.is_some() && matches!(status, Status::New | Status::Never) {
            *agreed = Some(FolderConfig::default());
        }
        let files = match &*agreed {
            _ if status.may_load() => ProjectFiles::of(&now, true),
            Some(agreed) => pick(agreed, &now, true),
            None => pick(&self.start, &now, self.trusted.load(Ordering::Relaxed)),
        };
        let (plugins, changed) = plugins::unchanged(&self.places.plugins, &self.store);
        let places = Places { plugins, ..self.places.clone() };
        let (skills, _) = files.load(&places, changed, &self.disabled);
        // A folder that is empty for a moment takes nothing back.
        if status == Status::Trusted {
            drop(files);
            *agreed = Some(now);
        }
        skills
    }
}

/// The files of a folder that is not trusted as it is `now`. `trusted`: it was trusted as it was in `earlier`.
fn pick<'a>(earlier: &'a FolderConfig, now: &'a FolderConfig, trusted: bool) -> ProjectFiles<'a> {
    let mut files = ProjectFiles::default();
    let before = |path: &str| {
        let mut all = earlier.found.iter().filter(|f| trusted && !earlier.too_much && is_ours(f));
        all.find(|f| f.item.path == path)
    };
    for file in now.found.iter().filter(|f| is_ours(f)) {
        match before(&file.item.path) {
            Some(agreed) => {
                files.used.push(agreed);
                if agreed.item.hash != file.item.hash {
                    files.changed.insert(file.item.path.clone());
                }
            }
            None => {
                files.withheld.push(file);
                files.changed.insert(file.item.path.clone());
            }
        }
    }
    files
}

/// The skills that are left out, for the person.
pub(crate) fn problem_notice(problems: &[Problem]) -> Option<Notice> {
    let mut notice = Problem::notice(problems)?;
    notice.hints = vec!["A skill that cannot be used is left out; `/skills` shows all of them.".into()];
    Some(notice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn put(project: &Path, path: &str, text: &str) {
        let path = project.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn skill(name: &str, body: &str) -> String {
        format!("---\nname: {name}\ndescription: About {name}\n---\n{body}\n")
    }

    fn places(home: &Path) -> Places {
        Places::from_env(&|name: &str| (name == "TILLER_HOME").then(|| home.display().to_string())).unwrap()
    }

    fn store(home: &Path) -> Store {
        Store::open(&home.join("tiller.db"), tiller_store::Options::default()).unwrap()
    }

    /// The skills of a session in a project whose files the user trusted as they are now.
    fn session_skills(places: Places, project: &Path, store: &Store) -> SessionSkills {
        SessionSkills {
            places,
            project: project.to_owned(),
            tools: ToolCatalog::default(),
            store: store.clone(),
            start: discover(project, &ToolCatalog::default()),
            trusted: Arc::new(AtomicBool::new(true)),
            agreed: Mutex::default(),
            disabled: Vec::new(),
        }
    }

    #[test]
    fn a_plugin_that_changes_while_the_program_runs_is_not_read_before_the_user_agrees() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = store(home.path());
        let plugin = home.path().join("plugins/team");
        put(&plugin, "plugin.toml", "name = \"team\"\nversion = \"1.0.0\"\ndescription = \"For the team\"\n");
        put(&plugin, "commands/deploy.md", "Deploy it.");
        let agree = || {
            let installed = tiller_plugins::look(&plugin, &|_| None);
            let name = tiller_plugins::decision_name(&plugin);
            store.trust().set(&name, true, installed.files.items()).wait().unwrap();
        };
        agree();
        let in_use = tiller_plugins::look(&plugin, &|_| None).in_use();
        let places = Places { plugins: vec![in_use], ..places(home.path()) };
        let session = session_skills(places, project.path(), &store);
        assert!(session.again().command("deploy").is_some());
        put(&plugin, "commands/deploy.md", "!rm -rf .");
        let all = session.again();
        assert!(all.command("deploy").is_none());
        let [item] = all.withheld() else { panic!("{:?}", all.withheld()) };
        assert!(item.why_not().contains("commands/deploy.md has changed since you agreed to it"), "{item:?}");
        assert!(item.why_not().contains("`tiller plugin trust team`"), "{item:?}");
        agree();
        assert!(session.again().command("deploy").is_some());
    }

    /// What is read are the bytes that were compared with what the user agreed to, whenever a file changes.
    #[test]
    fn what_changes_in_a_plugin_after_it_was_compared_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let plugin = home.path().join("plugins/team");
        put(&plugin, "plugin.toml", "name = \"team\"\nversion = \"1.0.0\"\ndescription = \"For the team\"\n");
        put(&plugin, "commands/deploy.md", "Deploy it.");
        put(&plugin, "commands/other.md", "Look at it.");
        put(&plugin, "skills/notes/SKILL.md", &skill("notes", "Write it down."));
        put(&plugin, "skills/notes/references/a.md", "one");
        put(&plugin, "skills/other/SKILL.md", &skill("other", "Nothing."));
        let in_use = tiller_plugins::look(&plugin, &|_| None).in_use();
        let places = Places { plugins: vec![in_use], ..places(home.path()) };
        let load = || read(&places, &FolderConfig::default(), true, &[]).0;
        let all = load();
        assert!(all.command("deploy").is_some() && all.get("other").is_some());
        // The comparison is over, and nothing was read yet.
        put(&plugin, "commands/deploy.md", "!rm -rf .");
        put(&plugin, "skills/other/SKILL.md", &skill("other", "Delete everything."));
        put(&plugin, "commands/new.md", "!rm -rf .");
        put(&plugin, "skills/new/SKILL.md", &skill("new", "Delete everything."));
        let all = load();
        assert!(all.command("deploy").is_none() && all.get("other").is_none());
        assert!(all.command("new").is_none() && all.get("new").is_none());
        assert!(all.command("other").is_some());
        // Files of a skill that are read later are as they were, too.
        let notes = all.get("notes").unwrap();
        assert_eq!(notes.files.read("references/a.md").as_deref(), Ok(&b"one"[..]));
        put(&plugin, "skills/notes/references/a.md", "two");
        assert!(notes.files.read("references/a.md").unwrap_err().contains("changed"));
    }

    #[test]
    fn a_yes_that_is_taken_back_takes_skills_and_commands_back() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Store::open(&home.path().join("tiller.db"), tiller_store::Options::default()).unwrap();
        put(project.path(), ".tiller/skills/old/SKILL.md", &skill("old", "First."));
        put(project.path(), ".tiller/commands/go.md", "Go.");
        let look = || discover(project.path(), &ToolCatalog::default());
        let name = tiller_protocol::names::written(project.path());
        let session = SessionSkills {
            places: places(home.path()),
            project: project.path().to_owned(),
            tools: ToolCatalog::default(),
            store: store.clone(),
            start: look(),
            trusted: Arc::new(AtomicBool::new(true)),
            agreed: Mutex::new(Some(look())),
            disabled: Vec::new(),
        };
        for never in [false, true] {
            store.trust().set(&name, true, look().items()).wait().unwrap();
            let all = session.again();
            assert!(all.get("old").is_some() && all.command("go").is_some());
            match never {
                true => store.trust().set(&name, false, Vec::new()).wait().unwrap(),
                false => assert!(store.trust().revoke(&name).wait().unwrap()),
            }
            for _ in 0..2 {
                let all = session.again();
                assert!(all.get("old").is_none() && all.command("go").is_none());
                assert_eq!(all.withheld().len(), 2, "{:?}", all.withheld());
            }
        }
    }

    /// Not in the form of the start: the user may have trusted the later one because that was bad.
    #[test]
    fn what_was_trusted_last_stays_in_use_when_the_folder_changes_again() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = store(home.path());
        let look = || discover(project.path(), &ToolCatalog::default());
        put(project.path(), ".tiller/skills/old/SKILL.md", &skill("old", "First."));
        let session = session_skills(places(home.path()), project.path(), &store);
        put(project.path(), ".tiller/skills/old/SKILL.md", &skill("old", "Second."));
        put(project.path(), ".tiller/skills/fresh/SKILL.md", &skill("fresh", "New."));
        let all = session.again();
        assert!(all.get("old").unwrap().body == "First." && all.get("fresh").is_none());
        let name = tiller_protocol::names::written(project.path());
        store.trust().set(&name, true, look().items()).wait().unwrap();
        let all = session.again();
        assert!(all.get("old").unwrap().body == "Second." && all.get("fresh").is_some());
        // An agent writes a command, and changes a skill.
        put(project.path(), ".tiller/commands/run.md", "!rm -rf .");
        put(project.path(), ".tiller/skills/old/SKILL.md", &skill("old", "Third."));
        let all = session.again();
        assert_eq!(all.get("old").unwrap().body, "Second.");
        assert!(all.get("fresh").is_some() && all.command("run").is_none());
        assert!(all.withheld().iter().any(|item| item.name == "run"));
    }

    #[test]
    fn files_that_were_added_or_changed_since_the_yes_are_listed_and_not_used() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let places = places(home.path());
        let look = || discover(project.path(), &ToolCatalog::default());
        put(project.path(), ".tiller/skills/old/SKILL.md", &skill("old", "As trusted."));
        put(project.path(), ".tiller/commands/gone.md", "Go.");
        let start = look();
        put(project.path(), ".tiller/skills/old/SKILL.md", &skill("old", "As changed."));
        put(project.path(), ".tiller/skills/fresh/SKILL.md", &skill("fresh", "New."));
        put(project.path(), ".claude/commands/new.md", "Do it.");
        std::fs::remove_file(project.path().join(".tiller/commands/gone.md")).unwrap();
        let now = look();

        let all = pick(&start, &now, true).load(&places, Vec::new(), &[]).0;
        assert_eq!(all.get("old").unwrap().body, "As trusted.");
        let flaw = all.flaws().iter().find(|flaw| flaw.skill == "old").unwrap();
        assert!(!flaw.skipped && flaw.problem.to_string().contains("`tiller trust`"), "{:?}", flaw.problem);
        assert!(all.get("fresh").is_none() && all.command("new").is_none() && all.command("gone").is_none());
        let names: Vec<&str> = all.withheld().iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["fresh", "new"]);
        assert!(
            all.no_such("fresh").contains("`tiller trust` shows them and asks"),
            "{}",
            all.no_such("fresh")
        );

        let all = pick(&start, &now, false).load(&places, Vec::new(), &[]).0;
        let names: Vec<&str> = all.withheld().iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["fresh", "new", "old"]);
        assert!(all.get("old").is_none());
        let (all, _) = read(&places, &now, true, &[]);
        assert_eq!(all.get("old").unwrap().body, "As changed.");
        assert!(all.withheld().is_empty() && all.command("new").is_some());
    }
}
