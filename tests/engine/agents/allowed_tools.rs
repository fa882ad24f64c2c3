//! What skills and own commands hold their turn to: the tools that they name, and the model of a command.

use serde_json::json;
use tiller_engine::EngineConfig;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{EventBody, Profile};
use tiller_skills::change::{Editor, EditorSettings};
use tiller_skills::{Library, Skills, Sources};

use crate::rig::*;

/// A place with the skill `careful`, which only reads, the skill `helper`, and the command `/look`.
fn place() -> (Place, Library) {
    let mut place = Place::new();
    let config = place.tmp.path().join("roles");
    let put = |path: &str, text: &str| {
        let path = config.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let skill =
        |name: &str, more: &str| format!("---\nname: {name}\ndescription: About {name}\n{more}---\nDo it.\n");
    put("skills/careful/SKILL.md", &skill("careful", "allowed-tools: Read delegate_task\n"));
    put("skills/helper/SKILL.md", &skill("helper", ""));
    put(
        "commands/look.md",
        "---\nallowed-tools: Bash(git log:*), Bash(echo one:*), Bash(touch:*)\nmodel: fast\n---\nLook at it.\n",
    );
    put("commands/ask.md", "---\nmodel: nobody/none\n---\nAsk it.\n");
    let library = Library::new(Skills::load(&Sources { config: Some(config), ..Sources::default() }).0);
    let editor = Editor::new(EditorSettings {
        user: place.tmp.path().join("roles/skills"),
        project: None,
        versions: place.tmp.path().join("versions"),
        drafts: None,
        approve: tiller_config::schema::SkillApproval::Never,
        screen: std::sync::Arc::new(|_| None),
        clock: std::sync::Arc::new(tiller_protocol::SystemClock::default()),
        step: None,
    });
    for tool in tiller_skills::tools(&library, &editor) {
        place.tools.push(tool);
    }
    place.file("a.txt", "alpha\n");
    (place, library)
}

fn with(library: &Library, profile: Profile) -> impl FnOnce(&mut EngineConfig) + use<> {
    let library = library.clone();
    move |parts| {
        parts.crew.roles = tiller_engine::Roles::with_skills(parts.crew.roles.now(), library);
        parts.session.profile = Some(profile);
        parts.config.tiers.fast = Some("fake/quick".into());
    }
}

fn write(id: &str, path: &str) -> (String, &'static str, serde_json::Value) {
    (id.into(), "write_file", json!({"path": path, "content": "x"}))
}

/// The text of the results after the last request's last reply.
fn results(fake: &Fake, request: usize) -> String {
    format!("{:?}", fake.request(request).messages)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_tools_of_a_loaded_skill_run_until_the_turn_ends() {
    let (place, library) = place();
    let one = |call: (String, &'static str, serde_json::Value)| calls(&[(&call.0, call.1, call.2)]);
    let fake = Fake::new([
        // Before the skill is loaded, and beside the call that loads it.
        one(write("w1", "b.txt")),
        calls(&[("v1", "skill_view", json!({"name": "careful"}))]),
        one(write("w2", "c.txt")),
        calls(&[("r1", "read_file", read_args("a.txt")), ("v2", "skill_view", json!({"name": "helper"}))]),
        calls(&[("d1", "delegate_task", json!({"tasks": [{"goal": "child"}]}))]),
        // The agent that it starts is held to the same.
        one(write("w3", "d.txt")),
        says("child done"),
        says("Done."),
        // The next turn is free.
        one(write("w4", "e.txt")),
        says("Done."),
        // By name, from its beginning; in a mode that only looks it grants nothing.
        one(write("w5", "f.txt")),
        says("Done."),
    ]);
    let mut rig = place.start_with(&fake, with(&library, Profile::Full)).await;
    rig.turn("go").await;
    rig.turn("again").await;
    rig.turn("$careful now").await;
    rig.quit().await;
    let there = |name: &str| place.work.join(name).exists();
    assert!(there("b.txt"), "what ran before it was loaded");
    assert!(!there("c.txt") && !there("d.txt") && !there("f.txt"));
    assert!(there("e.txt"), "it ends with its turn");
    let said = results(&fake, 7);
    let why = "while the task of the skill careful lasts, only these tools are used: Read, delegate_task";
    assert!(said.contains(why), "{said}");
    assert!(said.contains("alpha"), "what it names runs: {said}");
    assert!(said.contains("<skill name=\\\"helper\\\""), "another skill can be read: {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_skill_names_is_granted_by_it() {
    let (place, library) = place();
    let fake = Fake::new([
        calls(&[("t1", "terminal", json!({"command": "echo one"}))]),
        calls(&[("t2", "terminal", json!({"command": "echo one; echo two > x"}))]),
        says("Done."),
    ]);
    let mut rig = place.start_with(&fake, with(&library, Profile::ReadOnly)).await;
    rig.turn("/look").await;
    rig.quit().await;
    let said = results(&fake, 2);
    assert!(!place.work.join("x").exists() && said.contains("while the task of /look lasts"), "{said}");

    // What it names still asks.
    let fake = Fake::new([calls(&[("t1", "terminal", json!({"command": "touch y"}))]), says("Done.")]);
    let mut rig = place.start_with(&fake, with(&library, Profile::Ask)).await;
    rig.submit("/look");
    let ask = rig.asked().await;
    rig.answer(
        &ask,
        tiller_protocol::AskReply::Permission {
            decision: tiller_protocol::Decision::Deny { comment: None },
            hash: crate::turns::questions::permission(&ask).hash,
        },
    );
    rig.finished().await;
    rig.quit().await;
    assert!(!place.work.join("y").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_of_a_command_answers_for_its_turn() {
    let (place, library) = place();
    let fake = Fake::with(|_, _| says("done"));
    let mut rig = place.start_with(&fake, with(&library, Profile::Full)).await;
    rig.turn("one").await;
    rig.turn("/look").await;
    rig.turn("two").await;
    rig.submit("/ask");
    let notice = rig.notice("/ask asks for the model nobody/none, which is not used").await;
    assert!(notice.hints[0].contains("answers"), "{notice:?}");
    rig.finished().await;
    let models: Vec<String> = fake.requests.lock().unwrap().iter().map(|r| r.model.clone()).collect();
    assert_eq!(models[1], "quick");
    assert!(models[0] != "quick" && [&models[2], &models[3]].iter().all(|m| **m == models[0]), "{models:?}");
    let seen = rig.quit().await;
    let shown: Vec<String> = seen
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::State(StateEvent::ModelChanged { model, .. }) => Some(model.0.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(shown.first().map(String::as_str), Some("fake/quick"), "{shown:?}");
    assert_eq!(shown.len(), 2, "{shown:?}");
}
