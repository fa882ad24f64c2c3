//! Each way of changing a file or a store passes the mode, the rules about tools and about paths, and the hooks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tiller_config::schema::{LearningsSetting, MemoryApproval, SkillApproval};
use tiller_engine::{EngineConfig, Open};
use tiller_memory::{Learnings, LearningsSlot};
use tiller_permit::{Effect, Rule, Source};
use tiller_protocol::ask::Decision;
use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::{AskEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::{
    AskBody, AskReply, CommandBody, EventBody, PermissionOutcome, Profile, SessionId, ToolOutcome,
};
use tiller_skills::change::{Editor, EditorSettings};
use tiller_skills::{Library, Skills, Sources};

use crate::files::checkpoints::keeps;
use crate::hooks::{audit, hook_for, hooks};
use crate::memory::{remembering, with};
use crate::rig::*;

/// The guard that stands in the way of the calls.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Guard {
    /// Nothing: they are made.
    None,
    Mode(Profile),
    /// A rule for each tool.
    Tools,
    /// A rule for each file.
    Paths,
    Hooks,
}

/// A call that changes something.
struct Change {
    name: &'static str,
    tool: &'static str,
    args: Value,
    /// The file that it changes; none where it changes no file that a rule may name.
    path: Option<PathBuf>,
}

fn change(name: &'static str, tool: &'static str, args: Value, path: Option<PathBuf>) -> Change {
    Change { name, tool, args, path }
}

const SKILL: &str = "---\nname: NAME\ndescription: A skill\n---\nBe kind.\n";

/// In an order in which each finds what it needs.
fn changes(place: &Place) -> Vec<Change> {
    let work = |name: &str| Some(place.work.join(name));
    let data = |name: &str| Some(place.home().join("data").join(name));
    let skill = |name: &str| SKILL.replace("NAME", name);
    let user = |name: &str| Some(place.home().join("config/skills").join(name).join("SKILL.md"));
    let own = |name: &str| Some(place.work.join(".tiller/skills").join(name).join("SKILL.md"));
    let remember = |action: &str, more: Value| {
        let mut args = json!({"action": action});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    let patch = |text: &str| json!({"patch": format!("*** Begin Patch\n{text}*** End Patch")});
    vec![
        // First: it takes back what comes after the checkpoint.
        change("a checkpoint's files", "restore", json!({"name": "start"}), work("restored.txt")),
        change("memory", "memory", remember("append", json!({"text": "a"})), data("MEMORY.md")),
        change(
            "memory, replaced",
            "memory",
            remember("replace", json!({"old": "first", "text": "second"})),
            data("MEMORY.md"),
        ),
        change("memory, removed", "memory", remember("remove", json!({"old": "goes"})), data("MEMORY.md")),
        change(
            "memory of the user",
            "memory",
            remember("append", json!({"text": "u", "file": "user"})),
            data("USER.md"),
        ),
        change(
            "memory of the project",
            "memory",
            remember("append", json!({"text": "p", "scope": "project"})),
            work(".tiller/MEMORY.md"),
        ),
        change(
            "a learning",
            "save_learning",
            json!({"pattern": "npm run buld", "fix": "npm run build"}),
            None,
        ),
        change("a proposal", "propose_change", json!({"text": "Be brief.\n", "why": "it is long"}), None),
        change(
            "a skill",
            "skill_manage",
            json!({"action": "create", "name": "fresh", "content": skill("fresh")}),
            user("fresh"),
        ),
        change(
            "a skill, changed",
            "skill_manage",
            json!({"action": "patch", "name": "there", "old": "kind", "new": "stern"}),
            user("there"),
        ),
        change("a skill, deleted", "skill_manage", json!({"action": "delete", "name": "old"}), user("old")),
        change(
            "a skill of the project",
            "skill_manage",
            json!({"action": "create", "name": "ours", "scope": "project", "content": skill("ours")}),
            own("ours"),
        ),
        change("a new file", "write_file", json!({"path": "new.txt", "content": "x"}), work("new.txt")),
        change(
            "a file, whole",
            "write_file",
            json!({"path": "kept.txt", "content": "x\n"}),
            work("kept.txt"),
        ),
        change(
            "a part",
            "edit_file",
            json!({"path": "part.txt", "old": "one", "new": "two"}),
            work("part.txt"),
        ),
        change("a patch", "patch", patch("*** Update File: patched.txt\n-one\n+two\n"), work("patched.txt")),
        change("a patch that deletes", "patch", patch("*** Delete File: gone.txt\n"), work("gone.txt")),
        change("a command", "terminal", json!({"command": "touch by-command.txt"}), work("by-command.txt")),
        change("a redirection", "terminal", json!({"command": "echo x > by-echo.txt"}), work("by-echo.txt")),
        change(
            "a command in the background",
            "terminal",
            json!({"command": "touch behind.txt", "background": true}),
            work("behind.txt"),
        ),
    ]
}

/// The files of the user's, of the project and of Tiller's own that agents could change.
fn world(place: &Place) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !["snapshots", "state", "cache", "locks"].contains(&name.as_str()) {
                add(&path, all);
            } else if path.is_file() && !name.starts_with("tiller.db") {
                all.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    add(&place.work, &mut all);
    add(&place.home(), &mut all);
    all
}

/// A place with all tools that change something, and things to change.
struct Bench {
    place: Place,
    memory: Arc<tiller_memory::Memory>,
    learnings: LearningsSlot,
}

impl Bench {
    fn new() -> Self {
        let mut place = Place::new();
        for (name, text) in [
            ("kept.txt", "as it was\n"),
            ("part.txt", "one\n"),
            ("patched.txt", "one\n"),
            ("gone.txt", "here\n"),
            ("restored.txt", "at the start\n"),
        ] {
            place.file(name, text);
        }
        let (data, config) = (place.home().join("data"), place.home().join("config"));
        for folder in [&data, &config.join("skills/there"), &config.join("skills/old")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(data.join("MEMORY.md"), "- first\n- goes\n").unwrap();
        for name in ["there", "old"] {
            let text = SKILL.replace("NAME", name);
            std::fs::write(config.join("skills").join(name).join("SKILL.md"), text).unwrap();
        }
        let memory = remembering(&mut place, MemoryApproval::Always);
        let learnings = LearningsSlot::default();
        let sources = config.clone();
        let read = move || Skills::load(&Sources { config: Some(sources.clone()), ..Sources::default() }).0;
        let library = Library::new(read());
        library.reload_with(Arc::new(read));
        let editor = Editor::new(EditorSettings {
            user: config.join("skills"),
            project: Some(place.work.join(".tiller/skills")),
            versions: data.join("skill-versions"),
            drafts: None,
            approve: SkillApproval::Always,
            screen: Arc::new(|_| None),
            clock: Arc::new(tiller_protocol::SystemClock::default()),
            step: None,
        });
        let proposals = tiller_memory::ProposalSettings {
            config,
            project: place.work.clone(),
            screen: Arc::new(|_| None),
        };
        tiller_memory::learning_tools(&learnings).into_iter().for_each(|tool| place.tools.push(tool));
        tiller_skills::tools(&library, &editor).into_iter().for_each(|tool| place.tools.push(tool));
        place.tools.push(tiller_memory::proposal_tool(proposals));
        Self { place, memory, learnings }
    }

    /// A session with a checkpoint, after which the agent has changed a file.
    async fn checkpoint(&self) -> SessionId {
        let fake = Fake::with(|n, _| match n {
            0 => calls(&[("name", "checkpoint", json!({"name": "start"}))]),
            1 => calls(&[("w", "terminal", json!({"command": "echo changed since >restored.txt"}))]),
            _ => says("done"),
        });
        let full = |parts: &mut EngineConfig| {
            keeps(&self.place, parts);
            parts.config.profile = Profile::Full;
        };
        let mut rig = self.place.start_with(&fake, full).await;
        rig.turn("name it, then change it").await;
        assert_eq!(self.place.read("restored.txt"), "changed since\n");
        let session = rig.session();
        rig.quit().await;
        session
    }

    fn guard(&self, guard: Guard, changes: &[Change], parts: &mut EngineConfig) {
        keeps(&self.place, parts);
        let learnings =
            Learnings::new(parts.store.clone(), Arc::new(tiller_protocol::SystemClock::default()));
        learnings.set(LearningsSetting::Save, 1_000);
        assert!(self.learnings.set(Arc::new(learnings)));
        let patterns: Vec<String> = match guard {
            Guard::None | Guard::Mode(_) => Vec::new(),
            Guard::Tools => changes.iter().map(|c| c.tool.to_owned()).collect(),
            Guard::Paths => {
                let paths = changes.iter().filter_map(|c| c.path.as_ref());
                paths.map(|path| format!("write_file({})", path.display())).collect()
            }
            Guard::Hooks => {
                parts.hooks = hooks(&self.place, |h| {
                    h.before_tool_call.extend(changes.iter().map(|c| hook_for(c.tool, "exit 2")));
                });
                Vec::new()
            }
        };
        if patterns.is_empty() {
            return;
        }
        let catalog = self.place.tools.catalog();
        let rule = |text: &String| Rule::parse(Effect::Deny, Source::User, text, &catalog).unwrap();
        let rules: Vec<Rule> = patterns.iter().map(rule).collect();
        parts.permit = parts.permit.clone().live(Arc::new(move || Some((Some(rules.clone()), Vec::new()))));
        let _ = parts.permit.refresh();
    }
}

/// How each call ended, by its number.
fn outcomes(rig: &Rig) -> BTreeMap<usize, (ToolOutcome, String)> {
    let of = |e: &EventBody| match e {
        EventBody::Tool(ToolEvent::ToolFinished { call_id, outcome, output, .. }) => {
            Some((call_id.strip_prefix('c')?.parse().ok()?, (*outcome, output.clone())))
        }
        _ => None,
    };
    rig.seen.iter().filter_map(|e| of(&e.body)).collect()
}

async fn run(guard: Guard) {
    let bench = Bench::new();
    let all = changes(&bench.place);
    let steps: Vec<(String, &str, Value)> =
        all.iter().enumerate().map(|(n, c)| (format!("c{n}"), c.tool, c.args.clone())).collect();
    let session = bench.checkpoint().await;
    // Files are read before they are changed, and after memory is, which waits for the user once a turn has read something.
    let read = |name: &str| (format!("read {name}"), "read_file", json!({"path": name}));
    let reads = ["kept.txt", "part.txt", "patched.txt", "gone.txt"].map(read);
    let at = all.iter().position(|c| c.tool == "write_file").unwrap();
    let (first, last) = steps.split_at(at);
    let steps = [first, &reads, last].concat();
    let fake = Fake::with(move |n, _| match steps.get(n) {
        Some((id, tool, args)) => calls(&[(id, tool, args.clone())]),
        None => says("done"),
    });
    let (memory, changed) = (with(&bench.memory), changes(&bench.place));
    let change = |parts: &mut EngineConfig| {
        parts.session.open = Open::Session(session);
        memory(parts);
        bench.guard(guard, &changed, parts);
    };
    let mut rig = bench.place.start_with(&fake, change).await;
    if let Guard::Mode(profile) = guard {
        rig.send(CommandBody::Session(SessionCommand::SetProfile { profile }));
    }
    let before = world(&bench.place);
    rig.submit("change all");
    // The user says yes to each question.
    loop {
        let next = rig
            .until("a question or the end", |e| match e {
                EventBody::Ask(AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask }) => {
                    Some(Some(ask.clone()))
                }
                EventBody::Turn(TurnEvent::TurnFinished { status, .. }) => {
                    assert_eq!(*status, TurnStatus::Done);
                    Some(None)
                }
                _ => None,
            })
            .await;
        let Some(ask) = next else { break };
        let reply = match &ask.body {
            AskBody::Permission(p) => AskReply::Permission { decision: Decision::Once, hash: p.hash.clone() },
            AskBody::Clarify { choices, .. } => AskReply::Choice { answers: vec![choices[1].clone()] },
            other => panic!("{other:?}"),
        };
        rig.answer(&ask, reply);
    }
    let ended = outcomes(&rig);
    if guard == Guard::None {
        let behind = bench.place.work.join("behind.txt");
        let made = async {
            while !behind.exists() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let made = tokio::time::timeout(DEADLINE, made).await;
        assert!(made.is_ok(), "the command in the background: {ended:?}");
    }
    let after = world(&bench.place);
    rig.quit().await;
    let rows = audit(&bench.place);
    assert_eq!(ended.len(), all.len(), "{guard:?}");
    for (n, one) in all.iter().enumerate() {
        let (outcome, output) = &ended[&n];
        let name = one.name;
        if guard == Guard::None || guard == Guard::Paths && one.path.is_none() {
            assert_eq!(*outcome, ToolOutcome::Ok, "{guard:?}, {name}: {output}");
            continue;
        }
        // The files of a checkpoint are known when it is looked up.
        let looked_up = guard == Guard::Paths && one.tool == "restore";
        let wanted = if looked_up { ToolOutcome::Error } else { ToolOutcome::Denied };
        assert_eq!(*outcome, wanted, "{guard:?}, {name}: {output}");
        if let Some(path) = &one.path {
            assert_eq!(before.get(path), after.get(path), "{guard:?}, {name}");
        }
        let denied = |row: &&tiller_protocol::view::AuditRow| {
            row.tool == one.tool && row.decision == PermissionOutcome::Denied
        };
        assert!(looked_up || rows.iter().any(|row| denied(&row)), "{guard:?}, {name}: {rows:#?}");
    }
    match guard {
        Guard::None => {
            let same = all.iter().filter_map(|c| c.path.as_ref()).filter(|p| before.get(*p) == after.get(*p));
            assert_eq!(same.collect::<Vec<_>>(), Vec::<&PathBuf>::new(), "each call changes its file");
        }
        // Calls without a path are made.
        Guard::Paths => {}
        _ => {
            let changed = before.keys().chain(after.keys()).filter(|p| before.get(*p) != after.get(*p));
            assert_eq!(changed.collect::<Vec<_>>(), Vec::<&PathBuf>::new(), "{guard:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_of_change_is_made_where_nothing_stands_in_the_way() {
    run(Guard::None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_kind_of_change_is_made_in_a_mode_that_only_looks() {
    run(Guard::Mode(Profile::ReadOnly)).await;
    run(Guard::Mode(Profile::Plan)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_about_its_tool_or_its_file_stops_each_kind_of_change() {
    run(Guard::Tools).await;
    run(Guard::Paths).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_stops_each_kind_of_change() {
    run(Guard::Hooks).await;
}

/// A tool that is not judged as one that changes something is on this list, with the reason.
#[test]
fn each_tool_declares_what_it_changes() {
    let bench = Bench::new();
    let changed: Vec<&str> = changes(&bench.place).iter().map(|c| c.tool).collect();
    let others = [
        ("read_file list_dir search session_search web_search web_fetch web_extract", "reads"),
        ("skills_list skill_view search_learnings todo_read get_process_info", "reads"),
        ("todo_write clarify write_plan checkpoint", "part of the conversation"),
        (
            "spawn_agent list_agents send_to_agent wait_agents cancel_agent agent_result",
            "agents, judged themselves",
        ),
        ("delegate_task delegate_async orchestrate blackboard", "agents, judged themselves"),
        ("process execute_code", "commands and calls that are judged themselves"),
    ];
    let known = |name: &str| others.iter().any(|(names, _)| names.split(' ').any(|n| n == name));
    let unknown: Vec<&str> =
        bench.place.tools.iter().map(|t| t.name()).filter(|n| !changed.contains(n) && !known(n)).collect();
    assert_eq!(unknown, Vec::<&str>::new(), "try each with the guards above, or say why it changes nothing");
}
