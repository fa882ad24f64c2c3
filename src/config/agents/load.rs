//! The layers of definitions: built in, the person's, the project's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::definition;
use super::form::{Definition, Origin};
use super::front::LARGEST;
use super::words::DefinitionContext;
use crate::places::PluginPlace;
use crate::problem::Problem;
use tiller_protocol::nearest::nearest;

/// The person's folder, in the configuration folder.
const FOLDER: &str = "agents";
/// The project's, in its folder.
const PROJECT: &str = ".tiller/agents/";
/// Files of one folder at most.
const MOST: usize = 500;

/// Built in, by name.
const BUILT_IN: &[(&str, &str)] = &[
    ("architect", include_str!("../../../assets/agents/architect.md")),
    ("assistant", include_str!("../../../assets/agents/assistant.md")),
    ("coder", include_str!("../../../assets/agents/coder.md")),
    ("explorer", include_str!("../../../assets/agents/explorer.md")),
    ("janitor", include_str!("../../../assets/agents/janitor.md")),
    ("orchestrator", include_str!("../../../assets/agents/orchestrator.md")),
    ("repo-monitor", include_str!("../../../assets/agents/repo-monitor.md")),
    ("reviewer", include_str!("../../../assets/agents/reviewer.md")),
    ("worker", include_str!("../../../assets/agents/worker.md")),
];

/// A file of the project that the person trusts.
#[derive(Clone, Copy, Debug)]
pub struct ProjectFile<'a> {
    /// Relative to the project's folder.
    pub path: &'a str,
    /// Exactly what was looked at when the person said yes; `None`: it was not (a link, or too large).
    pub bytes: Option<&'a [u8]>,
}

/// Every definition, by name. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    kinds: Arc<BTreeMap<String, Arc<Definition>>>,
}

impl Definitions {
    /// Reads all definitions. `config` is the person's configuration folder; `given`, of the project, is empty until the folder is
    /// trusted. Every mistake is reported; what has one is left out, and the
    /// definition that it replaces by the name of its file, which may do more. Blocks.
    pub fn load(
        config: &Path,
        given: &[ProjectFile<'_>],
        known: &DefinitionContext<'_>,
    ) -> (Self, Vec<Problem>) {
        Self::load_with(config, &[], given, known)
    }

    /// As [`Definitions::load`], with those of plugins, which are in these folders. The person's own replace them.
    pub fn load_with(
        config: &Path,
        plugins: &[PluginPlace],
        given: &[ProjectFile<'_>],
        known: &DefinitionContext<'_>,
    ) -> (Self, Vec<Problem>) {
        let mut all = BTreeMap::new();
        let mut problems = Vec::new();
        let built_in = BUILT_IN.iter().map(|(stem, text)| DefinitionFile {
            path: PathBuf::from(format!("{stem}.md")),
            content: Ok(text.as_bytes().to_vec()),
        });
        layer(Origin::BuiltIn, built_in.collect(), known, &mut all, &mut problems);
        for plugin in plugins {
            let (mut files, more) = folder(&plugin.folder.join(FOLDER));
            for file in &mut files {
                file.compare(plugin);
            }
            problems.extend(more);
            layer(Origin::Plugin, files, known, &mut all, &mut problems);
        }
        let (user, more) = folder(&config.join(FOLDER));
        problems.extend(more);
        layer(Origin::User, user, known, &mut all, &mut problems);
        let project = given.iter().filter(|f| is_definition(f.path)).map(|f| DefinitionFile {
            path: PathBuf::from(f.path),
            content: f.bytes.map(<[u8]>::to_vec).ok_or_else(|| "it is a link, or too large".to_owned()),
        });
        layer(Origin::Project, project.collect(), known, &mut all, &mut problems);
        (Self { kinds: Arc::new(all) }, problems)
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.kinds.get(name)
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.kinds.values()
    }

    /// The message for an unknown name: the nearest one, or all.
    pub fn no_such(&self, name: &str) -> String {
        let names = self.kinds.keys().map(String::as_str);
        match nearest(name, names.clone()) {
            Some(near) => format!("there is no agent `{name}`; did you mean `{near}`?"),
            None => {
                format!("there is no agent `{name}`; available: {}", names.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Whether the path is a Markdown file directly in the project's folder of agents.
fn is_definition(path: &str) -> bool {
    path.strip_prefix(PROJECT).is_some_and(|name| !name.contains('/') && name.ends_with(".md"))
}

struct DefinitionFile {
    path: PathBuf,
    /// The error is a part of a sentence.
    content: Result<Vec<u8>, String>,
}

impl DefinitionFile {
    /// Leaves out the content that is not as the user agreed to it.
    fn compare(&mut self, plugin: &PluginPlace) {
        if self.content.as_ref().is_ok_and(|bytes| !plugin.is_agreed(&self.path, bytes)) {
            self.content = Err("it changed since you agreed to it".to_owned());
        }
    }
}

/// The Markdown files of the person's folder, by name. No folder is no mistake.
fn folder(path: &Path) -> (Vec<DefinitionFile>, Vec<Problem>) {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !path.is_symlink() => {
            return (Vec::new(), Vec::new());
        }
        Err(e) => return (Vec::new(), vec![Problem::file(path, format!("the folder cannot be read: {e}"))]),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "md"));
    paths.sort();
    let mut problems = Vec::new();
    if paths.len() > MOST {
        problems.push(Problem::file(path, format!("more than {MOST} files; the rest is ignored")));
        paths.truncate(MOST);
    }
    let files = paths.into_iter().map(|path| DefinitionFile { content: read(&path), path }).collect();
    (files, problems)
}

/// A file's bytes. A file that is too large comes with one byte too many, so that it is reported as such.
///
/// # Errors
/// A part of a sentence, when it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let bytes =
        tiller_fs::restricting::read_start(path, LARGEST as u64 + 1).map_err(|why| format!("it {why}"))?;
    bytes.ok_or_else(|| "it was removed meanwhile".to_owned())
}

/// Puts the definitions of one layer over those of the layers below.
fn layer(
    from: Origin,
    files: Vec<DefinitionFile>,
    known: &DefinitionContext<'_>,
    all: &mut BTreeMap<String, Arc<Definition>>,
    problems: &mut Vec<Problem>,
) {
    let mut here: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut bad: Vec<String> = Vec::new();
    for DefinitionFile { path, content } in files {
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let bytes = match content {
            Ok(bytes) => bytes,
            Err(why) => {
                problems.push(Problem::file(&path, format!("the file cannot be read: {why}")));
                bad.extend(stem);
                continue;
            }
        };
        let stem = stem.unwrap_or_default();
        match definition(&path, &stem, from, &bytes, known) {
            Ok(it) => match here.get(&it.name) {
                Some(first) => {
                    let message = format!("`{}` is already defined in {}", it.name, first.display());
                    let hint = Some("give one of them another name".to_owned());
                    problems.push(Problem { at: Some((1, 1)), hint, ..Problem::file(&path, message) });
                }
                None => {
                    here.insert(it.name.clone(), path);
                    all.insert(it.name.clone(), Arc::new(it));
                }
            },
            Err(wrong) => {
                problems.extend(wrong);
                bad.push(stem);
            }
        }
    }
    // One of a layer below may do more than the one that cannot be used.
    for name in bad.into_iter().filter(|name| !here.contains_key(name)) {
        all.remove(&name);
    }
}
