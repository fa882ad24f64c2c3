//! Workflows from files: the person's `workflows/`, and the project's `.tiller/workflows/` when it is trusted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tiller_config::Problem;
use tiller_config::workflows::{LARGEST, WorkflowSource, WorkflowSourceStep, stem};
use tiller_engine::Workflows;
use tiller_external::Adapters;
use tiller_permit::trust::FolderConfig;
use tiller_protocol::{TrustKind, WorkflowFile};
use tiller_tool::crew::{NameCheck, StepPlace, Task, Workflow, WorkflowError};
use tiller_tool::shell::find_program;

/// The person's folder, in the configuration folder.
const FOLDER: &str = "workflows";
/// The project's folder, in the project.
const PROJECT: &str = ".tiller/workflows/";

/// A workflow from a file, with the line of each step.
#[derive(Debug)]
pub(crate) struct ParsedWorkflow {
    pub(crate) flow: Workflow,
    path: PathBuf,
}

impl ParsedWorkflow {
    /// Parses a workflow.
    ///
    /// # Errors
    /// All invalid steps.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, Vec<Problem>> {
        let (filed, wrong) = Self::read(path, bytes).map_err(|p| vec![p])?;
        if wrong.is_empty() { Ok(filed) } else { Err(wrong) }
    }

    /// As [`Self::parse`], with errors of invalid steps beside the valid steps.
    ///
    /// # Errors
    /// When the file has no list of steps.
    pub(crate) fn read(path: &Path, bytes: &[u8]) -> Result<(Self, Vec<Problem>), Problem> {
        let WorkflowSource { name, description, steps } = tiller_config::workflows::parse(path, bytes)?;
        let (mut tasks, mut wrong, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (at, step) in steps.into_iter().enumerate() {
            let WorkflowSourceStep { at: begins, value, keys } = step;
            let place = StepPlace { file: path.to_owned(), at: begins, keys };
            let called = value.get("id").and_then(|id| id.as_str());
            let called = called.map_or_else(|| (at + 1).to_string(), str::to_owned);
            let told =
                |key: &str, why| problem(path, Some(place.of(&[key])), format!("step {called}: {why}"));
            let faults = faults_of(&value, &place);
            if faults.len() > 1 {
                wrong.extend(faults.into_iter().map(|(key, why)| told(&key, why)));
                tasks.push(stand_in(&called, &value));
            } else {
                match serde_json::from_value::<Task>(value.clone()) {
                    Ok(mut task) => {
                        // Only the engine sets these.
                        (task.brief.step, task.brief.board) = (None, None);
                        tasks.push(task);
                    }
                    Err(e) => {
                        let key = faults.into_iter().next().map(|(key, _)| key).unwrap_or_default();
                        wrong.push(told(&key, e.to_string()));
                        tasks.push(stand_in(&called, &value));
                    }
                }
            }
            places.push(place);
        }
        let flow = Workflow { name, description, steps: tasks, places };
        Ok((Self { flow, path: path.to_owned() }, wrong))
    }

    /// Checks the steps as they are checked before a start.
    pub(crate) fn check(&self, known: &NameCheck<'_>) -> Vec<Problem> {
        let told = |w: WorkflowError| {
            let at = w.step.and_then(|s| self.flow.places.get(s)).map(|place| place.of(w.keys));
            problem(&self.path, at, w.message)
        };
        self.flow.check(known).err().unwrap_or_default().into_iter().map(told).collect()
    }
}

/// The fault of each key of a step by itself, with the key; that within its table where the fault names it.
fn faults_of(step: &serde_json::Value, place: &StepPlace) -> Vec<(String, String)> {
    let keys = step.as_object().into_iter().flatten();
    let fault = |(key, value): (&String, &serde_json::Value)| {
        let why = serde_json::from_value::<Task>(serde_json::json!({ key: value })).err()?.to_string();
        let mut within =
            place.keys.keys().filter_map(|known| Some((known, known.strip_prefix(key)?.strip_prefix('.')?)));
        let named =
            within.find(|(_, name)| why.contains(&format!("field `{name}`")) || is_fault(key, value, name));
        Some((named.map_or_else(|| key.clone(), |(known, _)| known.clone()), why))
    };
    keys.filter_map(fault).collect()
}

/// The key `name` within the table `key` is wrong by itself.
fn is_fault(key: &str, table: &serde_json::Value, name: &str) -> bool {
    let Some(mut rest) = table.as_object().cloned() else { return false };
    rest.remove(name);
    serde_json::from_value::<Task>(serde_json::json!({ key: rest })).is_ok()
}

/// In the place of a step that is not valid: its keys that are valid, so that they are checked too. Other steps may wait for
/// it, and it for others.
fn stand_in(name: &str, step: &serde_json::Value) -> Task {
    let keys = step.as_object().into_iter().flatten();
    let valid = |(key, value): &(&String, &serde_json::Value)| {
        serde_json::from_value::<Task>(serde_json::json!({ *key: value })).is_ok()
    };
    let valid: serde_json::Map<_, _> = keys.filter(valid).map(|(k, v)| (k.clone(), v.clone())).collect();
    let named = || Task { id: Some(name.to_owned()), ..Task::default() };
    let mut task: Task = serde_json::from_value(serde_json::Value::Object(valid)).unwrap_or_else(|_| named());
    (task.brief.step, task.brief.board) = (None, None);
    // Its fault is known.
    if step.get("goal").is_some() && task.brief.goal.is_empty() {
        name.clone_into(&mut task.brief.goal);
    }
    task
}

fn problem(path: &Path, at: Option<(usize, usize)>, message: String) -> Problem {
    Problem { source: path.to_owned(), at, key: String::new(), message, hint: None }
}

/// Requirements that the program of a step does not meet. Blocks.
pub(crate) fn cli(adapters: &Adapters, name: &str, env: &[(String, String)]) -> Option<String> {
    // `claude`, or with a transport: `claude:headless`.
    let (name, how) = name.split_once(':').map_or((name, None), |(name, how)| (name, Some(how)));
    let Some(adapter) = adapters.get(name) else {
        let names: Vec<&str> = adapters.iter().map(|a| a.name.as_str()).collect();
        return Some(format!("there is no program `{name}`; available: {}", names.join(", ")));
    };
    let offered = [
        ("acp", adapter.acp.is_some()),
        ("headless", adapter.headless.is_some()),
        ("pty", adapter.pty.is_some()),
    ];
    if let Some(how) = how.filter(|how| !offered.contains(&(*how, true))) {
        let ways: Vec<&str> = offered.iter().filter(|o| o.1).map(|o| o.0).collect();
        return Some(format!("{name} does not support `{how}`; it supports {}", ways.join(", ")));
    }
    let own = &adapter.program;
    let there = find_program(&own.command, env).is_some();
    (!there).then(|| format!("{name} is not installed: {}", own.install))
}

/// Workflow files, and whether the project's may be used.
struct Files {
    /// The project's, as they were when the folder was read; `None`: left out.
    project: BTreeMap<String, Option<Vec<u8>>>,
    /// The person may agree while the program runs.
    trusted: Arc<AtomicBool>,
    /// The person's folder.
    user: PathBuf,
    /// The project's.
    folder: PathBuf,
}

/// The workflows for the engine. The project's files are used as they were when the person trusted them.
pub(crate) fn source(
    config: &Path,
    folder: &Path,
    folder_config: &FolderConfig,
    trusted: Arc<AtomicBool>,
    env: Arc<Vec<(String, String)>>,
) -> Workflows {
    let project = of_project(folder_config)
        .map(|f| (f.item.path.clone(), f.bytes.clone().filter(|_| !folder_config.too_much)));
    let files = Arc::new(Files {
        project: project.collect(),
        trusted,
        user: config.join(FOLDER),
        folder: folder.into(),
    });
    let (all, adapters) = (Arc::clone(&files), config.join("adapters"));
    Workflows {
        list: Arc::new(move || all.list()),
        find: Arc::new(move |name| files.find(name)),
        unavailable: Arc::new(move |name| cli(&Adapters::new(std::slice::from_ref(&adapters)), name, &env)),
    }
}

/// The folder's files of workflows.
pub(crate) fn of_project(
    folder_config: &FolderConfig,
) -> impl Iterator<Item = &tiller_permit::trust::FoundFile> {
    folder_config.found.iter().filter(|f| f.item.kind == TrustKind::Workflow && stem(&f.item.path).is_some())
}

/// As `all`, with a workflow that the person named by its file, which takes precedence.
pub(crate) fn with(all: Workflows, own: Option<Workflow>) -> Workflows {
    let Some(own) = own else { return all };
    let find = Arc::clone(&all.find);
    Workflows {
        find: Arc::new(move |name| if name == own.name { Ok(own.clone()) } else { find(name) }),
        ..all
    }
}

impl Files {
    /// A workflow by its name: the project's before the person's.
    fn find(&self, name: &str) -> Result<Workflow, String> {
        let name = name.trim();
        if let Some((path, bytes)) = self.project.iter().find(|(path, _)| stem(path) == Some(name)) {
            return self.of_project(path, bytes.as_deref());
        }
        let files = self.persons();
        if let Some((_, path)) = files.iter().find(|(stem, _)| stem == name) {
            return parse(path, &read(path)?);
        }
        if let Some(path) = self.new_file(name) {
            return Err(format!(
                "{path} was added after Tiller started here: restart Tiller to be asked whether you trust it"
            ));
        }
        let mut names: Vec<&str> = self.project.keys().filter_map(|p| stem(p)).collect();
        names.extend(files.iter().map(|(stem, _)| stem.as_str()));
        names.sort_unstable();
        names.dedup();
        Err(match names.is_empty() {
            true => format!(
                "there is no workflow `{name}`: add one as .tiller/workflows/{name}.toml or {}",
                self.user.display()
            ),
            false => format!("there is no workflow `{name}`; available: {}", names.join(", ")),
        })
    }

    /// A file of this name in the project that did not exist when the folder was read.
    fn new_file(&self, name: &str) -> Option<String> {
        let paths = ["toml", "yaml", "yml"].map(|end| format!("{PROJECT}{name}.{end}"));
        paths.into_iter().find(|p| stem(p) == Some(name) && self.folder.join(p).is_file())
    }

    fn of_project(&self, path: &str, bytes: Option<&[u8]>) -> Result<Workflow, String> {
        if !self.trusted.load(Ordering::Relaxed) {
            return Err(format!("{path} is ignored: this folder is not trusted (see `tiller trust`)"));
        }
        match bytes {
            Some(bytes) => parse(Path::new(path), bytes),
            None => {
                Err(format!("{path} is ignored: it is a link, too large, or its folder has too many files"))
            }
        }
    }

    /// The person's files, by their names.
    fn persons(&self) -> Vec<(String, PathBuf)> {
        let files = std::fs::read_dir(&self.user).into_iter().flatten().flatten().map(|e| e.path());
        let named = |path: PathBuf| {
            let stem = path.file_name().and_then(|n| n.to_str()).and_then(stem)?.to_owned();
            Some((stem, path))
        };
        let mut all: Vec<_> = files.filter_map(named).collect();
        all.sort();
        all
    }

    /// All of them by name. The project's hide the person's.
    fn list(&self) -> Vec<WorkflowFile> {
        let mut all: BTreeMap<String, WorkflowFile> = BTreeMap::new();
        for (stem, path) in self.persons() {
            let flow = read(&path).and_then(|bytes| parse(&path, &bytes));
            all.entry(stem.clone()).or_insert_with(|| row(stem, path.display().to_string(), flow));
        }
        let mut project: BTreeMap<String, WorkflowFile> = BTreeMap::new();
        for (path, bytes) in &self.project {
            if let Some(stem) = stem(path).map(str::to_owned) {
                let flow = self.of_project(path, bytes.as_deref());
                project.entry(stem.clone()).or_insert_with(|| row(stem, path.clone(), flow));
            }
        }
        all.append(&mut project);
        all.into_values().collect()
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Workflow, String> {
    let words = |wrong: Vec<Problem>| wrong.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ");
    ParsedWorkflow::parse(path, bytes).map(|f| f.flow).map_err(words)
}

fn row(name: String, path: String, flow: Result<Workflow, String>) -> WorkflowFile {
    match flow {
        Ok(flow) => {
            let steps = flow.steps.into_iter().filter_map(|s| s.id).collect();
            WorkflowFile { name, path, description: flow.description, steps, wrong: String::new() }
        }
        Err(wrong) => WorkflowFile { name, path, wrong, ..WorkflowFile::default() },
    }
}

/// A file's bytes. A file that is too large is returned with one byte over the limit, so that it is reported as such.
///
/// # Errors
/// As text.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let wrong = |e: std::io::Error| format!("{} cannot be read: {e}", path.display());
    // Reading a pipe would block for ever.
    if !std::fs::metadata(path).map_err(wrong)?.is_file() {
        return Err(format!("{} cannot be read: it is not a file", path.display()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(wrong)?;
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(wrong)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "workflows_tests.rs"]
mod tests;
