//! Workflows from files: the person's `workflows/`, and the project's `.tiller/workflows/` when it is trusted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::Problem;
use tiller_config::workflows::{LARGEST, Sheet, sheet, stem};
use tiller_engine::Workflows;
use tiller_link::external::Adapters;
use tiller_permit::trust::Brings;
use tiller_tool::crew::workflow::{Known, Wrong};
use tiller_tool::crew::{Task, Workflow};
use tiller_tool::shell::find_program;

/// What the folder's files of workflows are called in [`Brings`].
const KIND: &str = "workflow";
/// The person's folder, in the configuration folder.
const FOLDER: &str = "workflows";

/// A workflow of a file, with the place of each step.
#[derive(Debug)]
pub(crate) struct Filed {
    pub(crate) flow: Workflow,
    path: PathBuf,
    lines: Vec<(usize, usize)>,
}

impl Filed {
    /// Reads one from bytes. Every step that cannot be read is told.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, Vec<Problem>> {
        let Sheet { name, description, steps } = sheet(path, bytes).map_err(|p| vec![p])?;
        let lines: Vec<(usize, usize)> = steps.iter().map(|s| s.at).collect();
        let (mut tasks, mut wrong) = (Vec::new(), Vec::new());
        for (at, step) in steps.into_iter().enumerate() {
            let name = step.value.get("id").and_then(|id| id.as_str()).map(str::to_owned);
            match serde_json::from_value::<Task>(step.value) {
                Ok(mut task) => {
                    // Only the engine says these.
                    (task.brief.step, task.brief.board) = (None, None);
                    tasks.push(task);
                }
                Err(e) => {
                    let name = name.unwrap_or_else(|| (at + 1).to_string());
                    wrong.push(problem(path, Some(step.at), format!("step {name}: {e}")));
                }
            }
        }
        let flow = Workflow { name, description, steps: tasks };
        if wrong.is_empty() { Ok(Self { flow, path: path.to_owned(), lines }) } else { Err(wrong) }
    }

    /// Looks at all of it, as it would be before it starts.
    pub(crate) fn check(&self, known: &Known<'_>) -> Vec<Problem> {
        let told = |w: Wrong| {
            let at = w.step.and_then(|s| self.lines.get(s)).copied();
            problem(&self.path, at, w.message)
        };
        self.flow.check(known).err().unwrap_or_default().into_iter().map(told).collect()
    }
}

fn problem(path: &Path, at: Option<(usize, usize)>, message: String) -> Problem {
    Problem { source: path.to_owned(), at, key: String::new(), message, hint: None }
}

/// What a program that a step names lacks. Blocks.
pub(crate) fn cli(adapters: &Adapters, name: &str, env: &[(String, String)]) -> Option<String> {
    let Some(adapter) = adapters.get(name) else {
        let names: Vec<&str> = adapters.iter().map(|a| a.name.as_str()).collect();
        return Some(format!("there is no program `{name}`; there are {}", names.join(", ")));
    };
    let own = &adapter.program;
    let there = find_program(&own.command, env).is_some();
    (!there).then(|| format!("{name} is not installed: {}", own.install))
}

/// For the engine. The project's files are those that were looked at when the person said yes.
pub(super) fn source(
    config: &Path,
    brings: &Brings,
    trusted: bool,
    env: Arc<Vec<(String, String)>>,
) -> Workflows {
    let of_project = |f: &&tiller_permit::trust::Found| f.item.kind == KIND && stem(&f.item.path).is_some();
    let project: BTreeMap<String, Option<Vec<u8>>> = brings
        .found
        .iter()
        .filter(of_project)
        .map(|f| (f.item.path.clone(), f.bytes.clone().filter(|_| trusted && !brings.too_much)))
        .collect();
    let (user, adapters) = (config.join(FOLDER), config.join("adapters"));
    Workflows {
        find: Arc::new(move |name| find(name, &project, trusted, &user)),
        cli: Arc::new(move |name| cli(&Adapters::load(std::slice::from_ref(&adapters)), name, &env)),
    }
}

/// The same, with one that the person named by its file, before all others.
pub(super) fn with(all: Workflows, own: Option<Workflow>) -> Workflows {
    let Some(own) = own else { return all };
    let find = Arc::clone(&all.find);
    Workflows {
        find: Arc::new(move |name| if name == own.name { Ok(own.clone()) } else { find(name) }),
        ..all
    }
}

/// One by its name: the project's before the person's.
fn find(
    name: &str,
    project: &BTreeMap<String, Option<Vec<u8>>>,
    trusted: bool,
    user: &Path,
) -> Result<Workflow, String> {
    let words = |wrong: Vec<Problem>| wrong.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ");
    let parse = |path: &Path, bytes: &[u8]| Filed::parse(path, bytes).map(|f| f.flow).map_err(words);
    let name = name.trim();
    match project.iter().find(|(path, _)| stem(path) == Some(name)) {
        Some((path, Some(bytes))) => return parse(Path::new(path), bytes),
        Some((path, None)) if trusted => {
            return Err(format!(
                "{path} is left out: it is a link, too large, or there is too much beside it"
            ));
        }
        Some((path, None)) => {
            return Err(format!("{path} is left out: this folder is not trusted (see `tiller trust`)"));
        }
        None => {}
    }
    let files: Vec<PathBuf> =
        std::fs::read_dir(user).into_iter().flatten().flatten().map(|e| e.path()).collect();
    let stem_of = |p: &PathBuf| p.file_name().and_then(|n| n.to_str()).and_then(stem).map(str::to_owned);
    if let Some(path) = files.iter().find(|p| stem_of(p).as_deref() == Some(name)) {
        return parse(path, &read(path)?);
    }
    let mut names: Vec<String> = project.keys().filter_map(|p| stem(p)).map(str::to_owned).collect();
    names.extend(files.iter().filter_map(stem_of));
    names.sort();
    names.dedup();
    Err(match names.is_empty() {
        true => format!(
            "there is no workflow `{name}`: put one into .tiller/workflows/{name}.toml or {}",
            user.display()
        ),
        false => format!("there is no workflow `{name}`; there are {}", names.join(", ")),
    })
}

/// A file's bytes. One that is too large comes with one byte too many, so that it is told as such.
///
/// # Errors
/// In words.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let wrong = |e: std::io::Error| format!("{} cannot be read: {e}", path.display());
    // Reading a pipe would wait for ever.
    if !std::fs::metadata(path).map_err(wrong)?.is_file() {
        return Err(format!("{} cannot be read: it is no file", path.display()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(wrong)?;
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(wrong)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "workflows_tests.rs"]
mod tests;
