//! One case: its file, its scratch project, its session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::Arc;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::event::{AskEvent, ToolEvent, TurnEvent};
use tiller_protocol::{AskReply, Decision, EventBody, Profile};
use tiller_skills::change::{Editor, EditorSettings};

use crate::rig::*;

/// The repository.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// A script that makes the project, in its folder.
    fixture: String,
    /// Words in capitals of the skill's commands, and what stands for them.
    #[serde(default)]
    vars: BTreeMap<String, String>,
    /// Files of the skill that the model saves: `SKILL` in a command is their folder.
    #[serde(default)]
    scripts: Vec<String>,
    /// The pack that has the skill.
    pub(super) pack: Option<String>,
    /// Programs without which the case is skipped.
    #[serde(default)]
    needs: Vec<String>,
    /// A folder of the fixture with programs of its own.
    path: Option<String>,
    pub(super) steps: Vec<CaseStep>,
}

/// One call of the model, and what must come of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CaseStep {
    /// A command of the skill.
    pub(super) run: Option<String>,
    /// The program that the command is given to: `sqlite3 x.db '{}'`.
    r#as: Option<String>,
    /// A part of the command that another version of the program wants differently, and the other form.
    replace: Option<[String; 2]>,
    /// What is added to the command.
    append: String,
    /// A command that is not the skill's.
    own: Option<String>,
    /// A file to write, with `text`.
    write: Option<String>,
    text: String,
    /// Another tool, with `args` in JSON.
    pub(super) tool: Option<String>,
    args: String,
    /// What the skill says and this step does, for one that is no command.
    pub(super) says: Option<String>,
    exit: i32,
    r#match: Option<String>,
    absent: Option<String>,
}

impl Case {
    pub(super) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The folder of the skill.
    pub(super) fn skill(&self, name: &str) -> PathBuf {
        match &self.pack {
            None => root().join("skills").join(name),
            Some(pack) => root().join("skills/packs").join(pack).join("skills").join(name),
        }
    }

    /// A text of the skill with values for its words. A value is not read again.
    fn filled(&self, text: &str) -> String {
        let mut names: Vec<&str> = self.vars.keys().map(String::as_str).collect();
        names.sort_by_key(|n| std::cmp::Reverse(n.len()));
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let (mut out, mut rest) = (String::new(), text);
        while let Some(first) = rest.chars().next() {
            let begins = !text[..text.len() - rest.len()].ends_with(is_word);
            let whole = |name: &&&str| {
                let after = rest.strip_prefix(**name);
                after.is_some_and(|a| !name.ends_with(is_word) || !a.starts_with(is_word))
            };
            match names.iter().find(whole).filter(|_| begins) {
                Some(name) => {
                    out.push_str(&self.vars[*name]);
                    rest = &rest[name.len()..];
                }
                None => {
                    out.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        out
    }
}

/// A call, and how its result is judged.
struct Call {
    /// Where the file of the skill that it returns is saved.
    save: Option<PathBuf>,
    tool: String,
    args: Value,
    step: CaseStep,
}

/// Whether a program is on `PATH`.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Plays a case: the model reads the skill, makes each call, and each result is judged.
pub(super) async fn play(name: &str, file: &str) {
    let case = Case::read(&root().join("tests/engine/skills/cases").join(file));
    for program in case.needs.iter().map(String::as_str).chain(["git", "python3", "bash"]) {
        if !is_installed(program) {
            println!("skipped: {program} is not installed");
            return;
        }
    }
    let folder = case.skill(name);
    let skill = std::fs::read_to_string(folder.join("SKILL.md")).unwrap();
    // As it is shown where no value is given: the default of a parameter is its name in capitals.
    let parameter = Regex::new(r"\{\{([a-z]+)\}\}").unwrap();
    let skill = parameter.replace_all(&skill, |c: &regex::Captures<'_>| c[1].to_uppercase()).into_owned();
    let mut place = Place::new();
    make(&place, &case.fixture);
    offer(&mut place, &case);
    let saved = place.tmp.path().canonicalize().unwrap().join("saved");
    let mut calls = reading(name, &case, &skill, &saved);
    calls.extend(all_calls(name, &place, case, &skill, saved.to_str().unwrap()));
    let total = calls.len();
    let scripted: Vec<(String, Value)> = calls.iter().map(|c| (c.tool.clone(), c.args.clone())).collect();
    let fake = Fake::with(move |n, _| match scripted.get(n) {
        Some((tool, args)) => crate::rig::calls(&[(&format!("c{n}"), tool, args.clone())]),
        None => says("done"),
    });
    let mut rig = place.start_with(&fake, |p| p.session.profile = Some(Profile::Full)).await;
    rig.submit("Do what the skill says.");
    let mut judged = 0;
    loop {
        match next(&mut rig).await {
            Next::Asked(ask) => rig.answer(
                &ask,
                AskReply::Permission {
                    decision: Decision::Once,
                    hash: match &ask.body {
                        tiller_protocol::AskBody::Permission(request) => request.hash.clone(),
                        other => panic!("{name}: {other:?}"),
                    },
                },
            ),
            Next::Result(output) => {
                judge(name, &calls[judged], &output);
                if let Some(target) = &calls[judged].save {
                    // The first line says where it is from.
                    let (_, text) = output.split_once('\n').unwrap();
                    let original =
                        std::fs::read_to_string(folder.join(target.strip_prefix(&saved).unwrap())).unwrap();
                    assert_eq!(text.trim_end(), original.trim_end(), "{name}: the file as it ships");
                    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
                    std::fs::write(target, text).unwrap();
                }
                judged += 1;
            }
            Next::End => break,
        }
    }
    assert_eq!(judged, total, "{name}: every call has its result");
    rig.quit().await;
}

/// Gives the model the skills that come with the program, and those of the case's pack.
fn offer(place: &mut Place, case: &Case) {
    let pack = |name: &String| tiller_skills::PackSource::unpinned(&root().join("skills/packs").join(name));
    let packs = case.pack.iter().map(pack).collect();
    let sources = tiller_skills::Sources { built_in: true, packs, ..tiller_skills::Sources::default() };
    let (skills, wrong) = tiller_skills::Skills::load(&sources);
    assert_eq!(wrong, []);
    let editor = Editor::new(EditorSettings {
        user: place.home().join("config/skills"),
        project: None,
        versions: place.home().join("data/skill-versions"),
        drafts: None,
        approve: tiller_config::schema::SkillApproval::default(),
        screen: Arc::new(|_| None),
        clock: Arc::new(tiller_protocol::SystemClock::default()),
        step: None,
    });
    for tool in tiller_skills::tools(&tiller_skills::Library::new(skills), &editor) {
        place.tools.push(tool);
    }
}

/// The model loads the skill and the files that it needs.
fn reading(name: &str, case: &Case, skill: &str, saved: &Path) -> Vec<Call> {
    let (wanted, absent) = (Some("^## Done when".into()), Some(r"\{\{[a-z]+\}\}".into()));
    let step = CaseStep { r#match: wanted, absent, ..CaseStep::default() };
    let view = |args: Value, step, save| Call { save, tool: "skill_view".into(), args, step };
    let mut calls = vec![view(json!({"name": name}), step, None)];
    for file in &case.scripts {
        assert!(skill.contains(file.as_str()), "{name} does not name its file {file}");
        calls.push(view(json!({"name": name, "file": file}), CaseStep::default(), Some(saved.join(file))));
    }
    calls
}

/// Makes the project.
fn make(place: &Place, fixture: &str) {
    // What people set for all of their repositories must not matter here.
    let rest = "if [ -e .git ]; then git config user.name n; git config user.email n@x; git config commit.gpgsign false; fi";
    let mut bash = Program::new("bash");
    let done = tiller_testkit::plain_git(&mut bash)
        .args(["-e", "-c", &format!("{fixture}\n{rest}")])
        .current_dir(&place.work)
        .envs([("GIT_AUTHOR_NAME", "n"), ("GIT_AUTHOR_EMAIL", "n@x"), ("GIT_COMMITTER_NAME", "n")])
        .env("GIT_COMMITTER_EMAIL", "n@x")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn all_calls(name: &str, place: &Place, case: Case, skill: &str, saved: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut add = |tool: &str, args: Value, step: CaseStep| {
        calls.push(Call { save: None, tool: tool.to_owned(), args, step });
    };
    let word = if saved.contains(' ') { format!("'{saved}'") } else { saved.to_owned() };
    let terminal = |command: &str| json!({"command": command.replace("SKILL", &word), "timeout": 100});
    if let Some(folder) = &case.path {
        add("terminal", terminal(&format!("export PATH=\"$PWD/{folder}:$PATH\"")), CaseStep::default());
    }
    let filled: Vec<Option<String>> = case.steps.iter().map(|s| Some(case.filled(s.run.as_ref()?))).collect();
    let patterns: Vec<Option<String>> =
        case.steps.iter().map(|s| Some(case.filled(s.r#as.as_ref()?))).collect();
    let mut written: Vec<String> = Vec::new();
    for ((step, filled), pattern) in case.steps.into_iter().zip(filled).zip(patterns) {
        if let Some(says) = &step.says {
            assert!(skill.contains(says.as_str()), "{name} no longer says: {says}");
        }
        if let (Some(run), Some(mut command)) = (&step.run, filled) {
            assert!(skill.contains(run.as_str()), "{name} no longer says: {run}");
            if let Some([old, new]) = &step.replace {
                command = command.replace(old.as_str(), new);
            }
            let command = pattern.map_or(command.clone(), |p| p.replace("{}", &command)) + &step.append;
            add("terminal", terminal(&command), step);
        } else if let Some(own) = &step.own {
            // In a shell of its own, so that the folder of the next command stays.
            add("terminal", terminal(&format!("(\n{own}\n)")), step);
        } else if let Some(path) = &step.write {
            let path = path.clone();
            if place.work.join(&path).exists() || written.contains(&path) {
                add("read_file", json!({"path": path}), CaseStep::default());
            }
            let text = step.text.clone();
            add("write_file", json!({"path": path, "content": text}), CaseStep::default());
            written.push(path);
        } else if let Some(tool) = step.tool.clone() {
            let args = serde_json::from_str(&step.args).unwrap();
            add(&tool, args, step);
        } else {
            panic!("{name}: a step without a call");
        }
    }
    calls
}

enum Next {
    Asked(Box<tiller_protocol::Ask>),
    Result(String),
    End,
}

async fn next(rig: &mut Rig) -> Next {
    rig.until("the next result", |e| match e {
        EventBody::Ask(AskEvent::PermissionAsked { ask }) => Some(Next::Asked(Box::new(ask.clone()))),
        EventBody::Tool(ToolEvent::ToolFinished { output, .. }) => Some(Next::Result(output.clone())),
        EventBody::Turn(TurnEvent::TurnFinished { .. }) => Some(Next::End),
        _ => None,
    })
    .await
}

/// Compares the result of a call with what the case says.
fn judge(name: &str, call: &Call, output: &str) {
    let step = &call.step;
    let shown = || format!("{name}: {} {}\n{output}", call.tool, call.args);
    let exit = Regex::new(r"(?m)^\[exit (\d+)").unwrap();
    let code = exit.captures(output).map_or(0, |c| c[1].parse::<i32>().unwrap());
    if call.tool == "terminal" {
        assert_eq!(code, step.exit, "exit code of {}", shown());
    }
    if let Some(wanted) = &step.r#match {
        let wanted_none = wanted == "^$";
        let fits = match wanted_none {
            true => output.starts_with("(no output)"),
            false => Regex::new(&format!("(?m){wanted}")).unwrap().is_match(output),
        };
        assert!(fits, "no match of {wanted} in {}", shown());
    }
    if let Some(absent) = &step.absent {
        assert!(!Regex::new(absent).unwrap().is_match(output), "{absent} is in {}", shown());
    }
}

/// All case files, with the name of their skill and their path below `cases`.
pub(super) fn all() -> Vec<(String, String)> {
    let cases = root().join("tests/engine/skills/cases");
    let mut all = Vec::new();
    for below in ["", "packs"] {
        for entry in std::fs::read_dir(cases.join(below)).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            if let Some(name) = file.strip_suffix(".toml") {
                let path = if below.is_empty() { file.clone() } else { format!("{below}/{file}") };
                all.push((name.to_owned(), path));
            }
        }
    }
    all.sort();
    all
}
