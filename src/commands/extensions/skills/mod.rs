//! `tiller skills`: lists, shows, makes and checks skills; installs, updates and removes packs of them. Nothing of a skill
//! is run here.
//!
//! | file | contents |
//! | --- | --- |
//! | `list` | what there is, and one skill |
//! | `install` | packs: the question, and what follows from the answer |
//! | `describe` | what a pack brings and what differs, for the question |
//! | `trial` | a skill on past prompts, with and without it |
//! | `fetch` | bringing the files of a source; the one place with a network |

mod describe;
mod fetch;
mod install;
mod list;
mod trial;

use std::path::{Path, PathBuf};

use serde_json::json;
use tiller_config::Problem;
use tiller_protocol::{Notice, NoticeKind};
use tiller_skills::Relations;
use tiller_skills::packs::{is_unfilled, new_skill};

use crate::app::Setup;
use crate::commands::args::{SkillsArgs, SkillsCommand};
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

/// Folders below one that is checked, at most.
const FOLDERS: usize = 1000;

pub(in crate::commands) fn run(setup: &Setup, args: &SkillsArgs) -> Result<Exit, Notice> {
    let json = args.json;
    match &args.what {
        SkillsCommand::List { registry: false } => list::list(setup, json),
        SkillsCommand::List { registry: true } => list::registry(setup, json),
        SkillsCommand::Show { name } => list::show(setup, name, json),
        SkillsCommand::New { name, project, at } => new(setup, name, *project, at.as_deref(), json),
        SkillsCommand::Validate { path } => validate(setup, path, json),
        SkillsCommand::Install { source, name, yes } => {
            install::install(setup, source, name.as_deref(), install::Consent { yes: *yes, json })
        }
        SkillsCommand::Try(trial) => trial::run(setup, trial, json),
        SkillsCommand::Trust { name, yes } => {
            install::trust(setup, name, install::Consent { yes: *yes, json })
        }
        SkillsCommand::Remove { name } => install::remove(setup, name, json),
        SkillsCommand::Restore { name, yes } => {
            install::restore(setup, name, install::Consent { yes: *yes, json })
        }
        SkillsCommand::Update { name, yes } => {
            install::update(setup, name.as_deref(), install::Consent { yes: *yes, json })
        }
    }
}

/// What the user can mend. A sentence that ends with a question gets no full stop behind it.
fn user(why: impl Into<String>) -> Notice {
    let mut why: String = why.into();
    if why.ends_with("?.") {
        why.pop();
    }
    Notice::new(NoticeKind::User, why)
}

/// Makes a skill from a template.
fn new(setup: &Setup, name: &str, project: bool, at: Option<&Path>, json: bool) -> Result<Exit, Notice> {
    let above = match (project, at) {
        (_, Some(at)) if at.starts_with(setup.places.pack_folder()) => {
            return Err(user("Packs stay as you agreed to them: a file in one turns it off.")
                .hint("Make the skill in another folder; without --at it is one of yours."));
        }
        (_, Some(at)) => at.to_owned(),
        (true, None) => setup.project.join(".tiller/skills"),
        (false, None) => setup.places.config.join("skills"),
    };
    let folder = above.join(name);
    new_skill(&folder, name).map_err(|why| user(format!("{why}.")))?;
    let file = folder.join("SKILL.md").display().to_string();
    if json {
        return say(&json_line(&json!({ "name": name, "file": file })));
    }
    let then = match (project, at) {
        (_, Some(_)) => "Put the folder into the skills of a project or a pack to use it".to_owned(),
        (true, None) => "It is used in this project once you trust it: `tiller trust`".to_owned(),
        (false, None) => {
            format!("Then `${name}` loads it at once, and agents are offered it from the next session on")
        }
    };
    let file = one_line(&file);
    say(&format!(
        "{file}\nFill it in, then check it: `tiller skills validate {}`. {then}.\n",
        one_line(&folder.display().to_string())
    ))
}

/// The folder of the user's or the project's skill of this name, unless it is a path to something.
fn named_skill(setup: &Setup, name: &Path) -> Option<PathBuf> {
    if name.exists() || name.components().count() != 1 {
        return None;
    }
    let places = [setup.places.config.join("skills"), setup.project.join(".tiller/skills")];
    places.into_iter().map(|place| place.join(name)).find(|folder| folder.join("SKILL.md").exists())
}

/// Prints what is wrong with a skill, or with all skills below a folder.
fn validate(setup: &Setup, path: &Path, json: bool) -> Result<Exit, Notice> {
    let named = named_skill(setup, path);
    let path = named.as_deref().unwrap_or(path);
    let path = if path.ends_with("SKILL.md") { path.parent().unwrap_or(path) } else { path };
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut folders = Vec::new();
    if path.join("SKILL.md").symlink_metadata().is_ok() {
        folders.push(path.to_owned());
    } else {
        below(path, 0, &mut folders);
        folders.sort();
    }
    if folders.is_empty() {
        return Err(user(format!("There is no SKILL.md in {}, nor in a folder below it.", path.display()))
            .hint("`tiller skills new NAME` makes a skill."));
    }
    // Without them the skills beside it are known, and those that are built in with the program.
    let known = list::skills(setup).unwrap_or_default();
    let mut related = tiller_skills::relations(&folders, &known).into_iter();
    let mut wrong = 0;
    let mut text = String::new();
    for folder in &folders {
        let mut problems = tiller_skills::validate(folder);
        let Relations { errors, warnings } = related.next().unwrap_or_default();
        problems.extend(errors);
        wrong += usize::from(!problems.is_empty());
        let shown = one_line(&folder.display().to_string());
        if json {
            let mut all: Vec<_> = problems.iter().map(problem_json).collect();
            all.extend(warnings.iter().map(|problem| {
                let mut json = problem_json(problem);
                json["warning"] = true.into();
                json
            }));
            text.push_str(&json_line(&json!({
                "folder": folder.display().to_string(), "valid": problems.is_empty(), "problems": all,
            })));
        } else if problems.is_empty() && is_unfilled(folder) {
            text.push_str(&format!(
                "{shown} is valid, but not filled in yet: agents are not offered it before its description is its own.\n"
            ));
        } else if problems.is_empty() {
            text.push_str(&format!("{shown} is valid.\n"));
        } else {
            problems.iter().for_each(|problem| text.push_str(&problem_text(&shown, "", problem)));
        }
        if !json {
            warnings.iter().for_each(|problem| text.push_str(&problem_text(&shown, "warning: ", problem)));
        }
    }
    if !json && folders.len() > 1 {
        text.push_str(&format!("{} skills, {wrong} with problems.\n", folders.len()));
    }
    say(&text)?;
    Ok(if wrong == 0 { Exit::Done } else { Exit::Usage })
}

/// A problem of the file in `folder`, with what to do in a line below.
fn problem_text(folder: &str, mark: &str, problem: &Problem) -> String {
    let (line, _) = problem.at.unwrap_or((1, 1));
    let hint = problem.hint.iter().map(|hint| format!("    {}\n", one_line(hint))).collect::<String>();
    format!("{folder}/SKILL.md:{line}: {mark}{}\n{hint}", one_line(&problem.message))
}

fn problem_json(problem: &Problem) -> serde_json::Value {
    json!({ "line": problem.at.map_or(1, |at| at.0), "message": problem.message, "hint": problem.hint })
}

/// Folders with a `SKILL.md`, links not followed.
fn below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if found.len() >= FOLDERS || depth > 4 || entry.file_name() == ".git" || entry.file_name() == "target"
        {
            continue;
        }
        let path = entry.path();
        if path.join("SKILL.md").symlink_metadata().is_ok() {
            found.push(path);
        } else {
            below(&path, depth + 1, found);
        }
    }
}
