//! Skills of agents: named by their task or their definition.

use serde_json::json;
use tiller_config::agents::{DefinitionContext, Definitions};
use tiller_config::schema::SkillApproval;
use tiller_protocol::event::{StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::skill::SkillCommand;
use tiller_protocol::{AgentCommand, AgentState, CommandBody, EventBody};
use tiller_skills::change::{Editor, EditorSettings};
use tiller_skills::{Library, Skills, Sources};

use crate::agents::delegation::{delegate, first, result, state};
use crate::agents::external::toy;
use crate::rig::*;

/// The skills `rust-style` and `notes`, and the definition `smith`, which names the first and a missing one.
fn taught(place: &Place) -> tiller_engine::Roles {
    let config = place.tmp.path().join("roles");
    for (name, body) in [("rust-style", "Prefer small modules."), ("notes", "Write everything down.")] {
        let folder = config.join("skills").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: About {name}\n---\n{body}\n");
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    std::fs::create_dir_all(config.join("agents")).unwrap();
    for (name, skills) in [("smith", "rust-style"), ("lost", "gone")] {
        // It sees none of the layers that the user has written.
        let text = format!("---\ndescription: x\nskills: [{skills}]\nmay: []\n---\nYou forge.\n");
        std::fs::write(config.join("agents").join(format!("{name}.md")), text).unwrap();
    }
    let known = DefinitionContext {
        tools: &tiller_tool::Registry::built_in().catalog(),
        clis: DefinitionContext::CLIS,
        rule: &|_| Ok(()),
    };
    let (all, wrong) = Definitions::load(&config, &[], &known);
    assert_eq!(wrong, []);
    let (skills, wrong) = Skills::load(&Sources { config: Some(config), ..Sources::default() });
    assert_eq!(wrong, []);
    tiller_engine::Roles::with_skills(all, Library::new(skills))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skill_is_in_the_prompt_of_who_was_given_it_and_of_nobody_else() {
    let place = Place::new();
    let program = toy(&place, "echo \"$1\"");
    let roles = taught(&place);
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([
            {"goal": "one", "skills": ["notes"]},
            {"goal": "two", "agent": "smith", "skills": ["notes", "rust-style"]},
            {"goal": "three"},
            {"goal": "four", "cli": "toy:headless", "skills": ["notes"]},
            {"goal": "five", "skills": ["note"]},
            {"goal": "six", "agent": "lost"},
        ])),
        "go" => says(&result(r).unwrap()),
        _ => says("done"),
    });
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.roles = roles;
        p.crew.programs = Some(program);
    };
    let mut rig = place.start_with(&fake, change).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);

    let requests = fake.requests.lock().unwrap().clone();
    let taught = |goal: &str| {
        let system = &requests.iter().find(|r| first(r) == goal).unwrap().system;
        let many = |what: &str| system.matches(what).count();
        (many("# Skill notes\nWrite everything down."), many("# Skill rust-style\nPrefer small modules."))
    };
    assert_eq!([taught("one"), taught("two"), taught("three")], [(1, 0), (1, 1), (0, 0)]);
    assert_eq!(taught("go"), (0, 0), "who starts them does not pay for it");
    assert!(
        text.contains("four\\n\\n# Skill notes\\nWrite everything down."),
        "a program is told it: {text}"
    );
    assert!(text.contains("there is no skill `note`; did you mean `notes`?"), "{text}");
    assert!(text.contains("the agent lost uses a skill that does not exist here"), "{text}");
    rig.quit().await;
}

/// A task of the user's is handled like a model's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_with_a_skill_can_be_started_by_hand_and_models_see_what_there_is() {
    let place = Place::new();
    let roles = taught(&place);
    let fake = Fake::with(|_, r| match (first(r).as_str(), result(r)) {
        ("go", None) => calls(&[("l1", "list_agents", json!({}))]),
        ("go", Some(said)) => says(&said),
        _ => says("forged"),
    });
    let mut rig = place.start_with(&fake, |p| p.crew.roles = roles).await;
    let listed = rig.turn("go").await.1;
    assert!(listed.contains("Skills:\nnotes: About notes\nrust-style: About rust-style"), "{listed}");
    rig.send(CommandBody::Agent(AgentCommand::Spawn {
        goal: "a horseshoe".into(),
        role: Some("smith".into()),
        model: None,
        cli: None,
        isolated: false,
    }));
    state(&mut rig, "main/a1", AgentState::Done).await;
    let system = fake.requests.lock().unwrap().last().unwrap().system.clone();
    assert!(system.contains("# Skill rust-style\nPrefer small modules."), "{system}");
    rig.quit().await;
}

/// The names are in the prompt, which stays as it is when a skill changes; the text comes with the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_finds_a_skill_in_its_prompt_loads_it_and_writes_another() {
    let mut place = Place::new();
    let config = place.tmp.path().join("roles");
    let roles = taught(&place);
    let read = move || Skills::load(&Sources { config: Some(config.clone()), ..Sources::default() }).0;
    let library = Library::new(read());
    library.reload_with(std::sync::Arc::new(read));
    let editor = Editor::new(EditorSettings {
        user: place.tmp.path().join("roles/skills"),
        project: None,
        versions: place.tmp.path().join("versions"),
        drafts: None,
        approve: SkillApproval::Always,
        screen: std::sync::Arc::new(|_| None),
        clock: std::sync::Arc::new(tiller_protocol::SystemClock::default()),
        step: None,
    });
    for tool in tiller_skills::tools(&library, &editor) {
        place.tools.push(tool);
    }
    let roles = tiller_engine::Roles::with_skills(roles.now(), library.clone());
    let content = "---\nname: fresh\ndescription: Written in the session\n---\nBe fresh.\n";
    let fake = Fake::with(move |n, r| match n {
        0 => calls(&[("v1", "skill_view", json!({"name": "notes"}))]),
        1 => {
            calls(&[("m1", "skill_manage", json!({"action": "create", "name": "fresh", "content": content}))])
        }
        2 => calls(&[("v2", "skill_view", json!({"name": "fresh"}))]),
        3 => calls(&[("d1", "delegate_task", json!({"tasks": [{"goal": "one"}]}))]),
        _ if first(r) == "one" => says("did one"),
        _ => says("done"),
    });
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.roles = roles;
        p.config.profile = tiller_protocol::Profile::Full;
    };
    let mut rig = place.start_with(&fake, change).await;
    let (status, _) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    let requests = fake.requests.lock().unwrap().clone();
    let ours: Vec<_> = requests.iter().filter(|r| first(r) == "go").collect();
    let system = &ours[0].system;
    assert!(
        system.contains("# Skills\n")
            && system.contains("- notes: About notes\n- rust-style: About rust-style"),
        "{system}"
    );
    assert!(!system.contains("Write everything down."), "only names and descriptions");
    assert!(ours.iter().all(|r| r.system == *system && r.tools == ours[0].tools), "the prefix never changes");
    let told = format!("{:?}", ours.last().unwrap().messages);
    for part in ["Write everything down.", "the skill `fresh` is created", "Be fresh."] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let child = &requests.iter().find(|r| first(r) == "one").unwrap().system;
    assert!(child.contains("- fresh: Written in the session"), "who begins later sees it: {child}");
    rig.quit().await;
}

/// A name that is no skill's is sent as it is, and the user is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_told_that_a_name_at_the_beginning_is_no_skills() {
    let place = Place::new();
    let roles = taught(&place);
    let fake = Fake::with(|_, _| says("done"));
    let mut rig = place.start_with(&fake, |p| p.crew.roles = roles).await;
    let messages = [
        ("$nots about today", Some("nots")),
        ("$rust-styl", Some("rust-styl")),
        ("$notes about today", None),
        ("$PATH is long", None),
        ("$home_dir is long", None),
        ("$ls", None),
        ("see $nots", None),
    ];
    for (message, unknown) in messages {
        rig.submit(message);
        let said = rig.until("a hint or the end of the turn", |e| match e {
            EventBody::State(StateEvent::Notice { notice }) if notice.message.contains("no skill called") => {
                Some(Some(notice.message.clone()))
            }
            EventBody::Turn(TurnEvent::TurnFinished { .. }) => Some(None),
            _ => None,
        });
        let said = said.await;
        let hint = unknown.map(|name| format!("there is no skill called {name}; /skills lists them"));
        assert_eq!(said, hint, "{message}");
        if said.is_some() {
            rig.finished().await;
        }
        let sent = format!("{:?}", fake.requests.lock().unwrap().last().unwrap().messages);
        assert!(sent.contains(message), "{sent}");
    }
    rig.quit().await;
}

/// Of more skills than a message loads, a notice names those that are not loaded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_told_which_skills_of_a_message_are_too_many() {
    let place = Place::new();
    let roles = taught(&place);
    let (skills, _) = Skills::load(&Sources { built_in: true, ..Sources::default() });
    let roles = tiller_engine::Roles::with_skills(roles.now(), Library::new(skills));
    let fake = Fake::with(|_, _| says("done"));
    let mut rig = place.start_with(&fake, |p| p.crew.roles = roles).await;
    rig.submit(
        "$writing-tests $data-migration $compare-branches $dependency-upgrade $debug-by-bisection \
         $read-unknown-code $writing-tests and $git-history-surgery",
    );
    let said = rig
        .until("the hint", |e| match e {
            EventBody::State(StateEvent::Notice { notice }) if notice.message.contains("loads at most") => {
                Some(notice.message.clone())
            }
            _ => None,
        })
        .await;
    assert!(said.contains("at most 5 skills; not loaded: read-unknown-code, git-history-surgery;"), "{said}");
    rig.finished().await;
    let sent = format!("{:?}", fake.requests.lock().unwrap().last().unwrap().messages);
    assert_eq!(sent.matches("<skill name=").count(), 5);
    rig.quit().await;
}

/// `$name` loads a skill by hand, `/name` sends an own command, a style comes with the next message; no request changes what
/// was sent before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_loads_a_skill_calls_a_command_and_chooses_a_style_by_hand() {
    let place = Place::new();
    let config = place.tmp.path().join("roles");
    let roles = taught(&place);
    std::fs::create_dir_all(config.join("commands")).unwrap();
    std::fs::write(
        config.join("commands/standup.md"),
        "Say what $1 did.\n!git log --oneline\nSee @notes.txt",
    )
    .unwrap();
    place.file("notes.txt", "it rained");
    let (skills, _) = Skills::load(&Sources { built_in: true, config: Some(config), ..Sources::default() });
    let roles = tiller_engine::Roles::with_skills(roles.now(), Library::new(skills));
    let fake = Fake::with(|_, _| says("done"));
    let mut rig = place.start_with(&fake, |p| p.crew.roles = roles).await;
    rig.turn("$notes, please; $PATH and $nothing stay").await;
    rig.turn("/standup Ann").await;
    rig.send(CommandBody::Skill(SkillCommand::Style { name: Some("concise".into()) }));
    rig.turn("and now").await;
    let requests = fake.requests.lock().unwrap().clone();
    let last = |n: usize| format!("{:?}", requests[n].messages.last().unwrap());
    assert!(last(0).contains("$notes, please; $PATH and $nothing stay"), "{}", last(0));
    assert!(
        last(0).contains("<skill name=\\\"notes\\\"") && last(0).contains("Write everything down."),
        "{}",
        last(0)
    );
    assert_eq!(last(0).matches("<skill ").count(), 1);
    for part in ["Say what Ann did.", "Output of the command `git log --oneline`", "it rained"] {
        assert!(last(1).contains(part), "{part}: {}", last(1));
    }
    assert!(
        last(2).contains("output style concise") && last(2).contains("Write the shortest answer"),
        "{}",
        last(2)
    );
    for pair in requests.windows(2) {
        assert_eq!(pair[0].system, pair[1].system);
        assert_eq!(pair[0].messages[..], pair[1].messages[..pair[0].messages.len()], "only added to");
    }
    rig.quit().await;
}
