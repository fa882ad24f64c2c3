//! The offer to save how a task was done as a skill.

use std::sync::Arc;

use serde_json::json;
use tiller_config::schema::{SkillApproval, SkillOffer};
use tiller_engine::{EngineConfig, Open};
use tiller_protocol::command::GoalCommand;
use tiller_protocol::event::{AskEvent, StateEvent, TurnStatus};
use tiller_protocol::skill::SkillCommand;
use tiller_protocol::{Ask, AskBody, AskReply, CommandBody, EventBody, Goal, GoalCheck, GoalState};
use tiller_skills::change::{Editor, EditorSettings};
use tiller_skills::{Library, Skills, Sources};

use crate::rig::*;

/// A place with the tools for skills of the folder `roles`.
fn place() -> (Place, Library) {
    let mut place = Place::new();
    let config = place.tmp.path().join("roles");
    let read = move || Skills::load(&Sources { config: Some(config.clone()), ..Sources::default() }).0;
    let library = Library::new(read());
    library.reload_with(Arc::new(read));
    let editor = Editor::new(EditorSettings {
        user: place.tmp.path().join("roles/skills"),
        project: None,
        versions: place.tmp.path().join("versions"),
        drafts: None,
        approve: SkillApproval::Always,
        screen: Arc::new(|_| None),
        clock: Arc::new(tiller_protocol::SystemClock::default()),
        step: None,
    });
    for tool in tiller_skills::tools(&library, &editor) {
        place.tools.push(tool);
    }
    place.file("a.txt", "one\n");
    (place, library)
}

/// A model that reads a file so many times, then ends; after the wish for a skill it writes one.
fn model(reads: usize) -> Arc<Fake> {
    let content = "---\nname: reading\ndescription: How files are read\n---\nRead them.\n";
    Fake::with(move |_, r| {
        let text = |at: usize| message_text(r, at);
        let last = text(r.messages.len() - 1);
        // Only what came after the last task counts.
        let task = |at: &usize| ["go", "again"].iter().any(|task| text(*at).starts_with(task));
        let since = (0..r.messages.len()).rev().find(task).unwrap_or(0);
        let has = |part: &str| (since..r.messages.len()).any(|at| text(at).contains(part));
        let (asked, wrote) = (has("with skill_manage"), has("the skill `reading` is created"));
        match (asked, wrote) {
            (true, false) => calls(&[(
                "m1",
                "skill_manage",
                json!({"action": "create", "name": "reading", "content": content}),
            )]),
            (true, true) => says("Saved."),
            _ if last.contains("one") => says("Read."),
            _ => {
                let all: Vec<(String, serde_json::Value)> =
                    (0..reads).map(|n| (format!("r{}-{n}", r.messages.len()), read_args("a.txt"))).collect();
                let all: Vec<_> =
                    all.iter().map(|(id, args)| (id.as_str(), "read_file", args.clone())).collect();
                calls(&all)
            }
        }
    })
}

fn roles(library: &Library) -> impl FnOnce(&mut EngineConfig) + use<> {
    let library = library.clone();
    move |parts| {
        parts.crew.roles = tiller_engine::Roles::with_skills(parts.crew.roles.now(), library);
        parts.config.profile = tiller_protocol::Profile::Full;
        parts.config.skills.offer = SkillOffer::Ask;
    }
}

fn choices(ask: &Ask) -> Vec<String> {
    match &ask.body {
        AskBody::Clarify { question, choices, .. } => {
            assert!(question.contains("as a skill"), "{question}");
            choices.clone()
        }
        other => panic!("{other:?}"),
    }
}

fn asked(seen: &[Arc<tiller_protocol::Event>]) -> usize {
    seen.iter().filter(|e| matches!(&e.body, EventBody::Ask(AskEvent::QuestionAsked { .. }))).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_long_task_a_skill_is_offered_once_written_after_a_yes_and_never_after_a_refusal() {
    let (place, library) = place();
    // A yes: the agent writes the skill.
    let mut rig = place.start_with(&model(5), roles(&library)).await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    let ask = rig.asked().await;
    let save = choices(&ask)[0].clone();
    rig.answer(&ask, AskReply::Choice { answers: vec![save] });
    let (status, text, _) = rig.finished().await;
    assert_eq!((status, text.as_str()), (TurnStatus::Done, "Saved."));
    assert!(place.tmp.path().join("roles/skills/reading/SKILL.md").is_file());
    // Not a second time in this session, and not for the turn that wrote it.
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    assert_eq!(asked(&rig.quit().await), 1);

    // Few calls: no offer. No: nothing is stored.
    let mut rig = place.start_with(&model(4), roles(&library)).await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    assert_eq!(rig.turn("again").await.0, TurnStatus::Done);
    assert_eq!(asked(&rig.quit().await), 0);

    // Never again: also not in the next session.
    let mut rig = place.start_with(&model(5), roles(&library)).await;
    rig.turn("go").await;
    let ask = rig.asked().await;
    let never = choices(&ask)[2].clone();
    rig.answer(&ask, AskReply::Choice { answers: vec![never] });
    rig.notice("skills are not offered").await;
    rig.quit().await;
    let mut rig = place.start_with(&model(5), roles(&library)).await;
    rig.turn("go").await;
    rig.turn("again").await;
    assert_eq!(asked(&rig.quit().await), 0);
}

fn hinted(seen: &[Arc<tiller_protocol::Event>]) -> bool {
    seen.iter().any(|event| format!("{:?}", event.body).contains("can be saved as a skill"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_setting_makes_a_line_of_it_or_nothing() {
    let (place, library) = place();
    let with = |offer: SkillOffer| {
        let change = roles(&library);
        move |parts: &mut EngineConfig| {
            change(parts);
            parts.config.skills.offer = offer;
        }
    };
    let mut rig = place.start_with(&model(5), with(SkillOffer::Never)).await;
    rig.turn("go").await;
    rig.turn("again").await;
    let seen = rig.quit().await;
    assert!(asked(&seen) == 0 && !hinted(&seen));
    // A line by default: no question, no call of a model, once in a session.
    let fake = model(5);
    let mut rig = place.start_with(&fake, with(SkillOffer::default())).await;
    rig.turn("go").await;
    let notice = rig.notice("can be saved as a skill").await;
    assert!(notice.message.contains("`/save-skill`") && notice.message.contains("never"), "{notice:?}");
    assert_eq!(fake.requests.lock().unwrap().len(), 2);
    rig.turn("again").await;
    // Taken by a command: the agent writes the skill.
    rig.send(CommandBody::Skill(SkillCommand::Save));
    let (status, text, _) = rig.finished().await;
    assert_eq!((status, text.as_str()), (TurnStatus::Done, "Saved."));
    assert!(place.tmp.path().join("roles/skills/reading/SKILL.md").is_file());
    assert_eq!(asked(&rig.quit().await), 0);
    // Declined once, and never offered again: not in this session, and not in the next.
    let mut rig = place.start_with(&model(5), with(SkillOffer::default())).await;
    rig.send(CommandBody::Skill(SkillCommand::Offer { on: false }));
    rig.turn("go").await;
    assert!(!hinted(&rig.quit().await));
    let mut rig = place.start_with(&model(5), with(SkillOffer::default())).await;
    rig.turn("go").await;
    rig.turn("again").await;
    assert!(!hinted(&rig.quit().await));
    // Until the user switches it on again.
    let mut rig = place.start_with(&model(5), with(SkillOffer::default())).await;
    rig.send(CommandBody::Skill(SkillCommand::Offer { on: true }));
    rig.turn("go").await;
    rig.notice("can be saved as a skill").await;
    rig.quit().await;
}

/// What a command prints names no skill that the user asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_in_text_of_others_is_no_use_of_a_skill() {
    let (place, library) = place();
    let folder = place.tmp.path().join("roles/skills/reading");
    std::fs::create_dir_all(&folder).unwrap();
    let skill = "---\nname: reading\ndescription: How files are read\n---\nRead them.\n";
    std::fs::write(folder.join("SKILL.md"), skill).unwrap();
    library.reload();
    let fake = Fake::with(|_, _| says("I tried."));
    let change = roles(&library);
    let mut store = None;
    let mut rig = place
        .start_with(&fake, |parts| {
            change(parts);
            parts.session.profile = Some(tiller_protocol::Profile::Full);
            store = Some(parts.store.clone());
        })
        .await;
    rig.turn("$reading of the files").await;
    let check = GoalCheck::Command { line: "echo 'see $reading'; false".into() };
    let goal = Goal { text: "read them".into(), check, turns: 2, usd: None };
    rig.send(CommandBody::Goal(GoalCommand::Set { goal }));
    rig.until("the end of the goal", |e| match e {
        EventBody::State(StateEvent::GoalChanged { goal: Some(goal) }) => {
            (goal.state == GoalState::Stopped).then_some(())
        }
        _ => None,
    })
    .await;
    let last = fake.request(fake.count() - 1);
    let named = |at: usize| message_text(&last, at).contains("see $reading");
    assert!((0..last.messages.len()).any(named), "the output is in a prompt");
    let store = store.unwrap();
    // Behind the counts of both turns.
    store.set_meta("order", None).wait().unwrap();
    let records = store.skill_uses().records().unwrap();
    rig.quit().await;
    assert_eq!(records.get("reading").map(|record| record.uses), Some(1), "{records:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_only_read_saves_no_skill() {
    let (place, library) = place();
    let fake = model(1);
    let mut first = place.start_with(&fake, roles(&library)).await;
    let session = first.session();
    first.turn("go").await;
    first.quit().await;
    let before = fake.count();
    let change = roles(&library);
    let mut rig = place
        .start_with(&fake, |parts| {
            change(parts);
            parts.session.open = Open::Session(session);
            parts.session.read_only = true;
        })
        .await;
    rig.send(CommandBody::Skill(SkillCommand::Save));
    let refused = rig.refused().await;
    assert!(refused.message.contains("read-only"), "{refused:?}");
    assert!(refused.hints.iter().any(|hint| hint.contains("fork it")), "{refused:?}");
    rig.quit().await;
    assert_eq!(fake.count(), before, "nothing is sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_of_a_message_are_no_work_of_the_agent() {
    let (place, library) = place();
    let commands = place.tmp.path().join("roles/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("look.md"), "!true\n".repeat(8)).unwrap();
    library.reload();
    let fake = Fake::new([says("Seen."), says("Yes.")]);
    let mut rig = place.start_with(&fake, roles(&library)).await;
    rig.turn("/look").await;
    rig.turn("and now?").await;
    assert_eq!(rig.kinds().iter().filter(|kind| *kind == "tool_started").count(), 8);
    assert!(rig.snapshot().await.asks.is_empty(), "{:?}", rig.kinds());
    rig.quit().await;
}
