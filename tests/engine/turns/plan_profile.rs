//! The plan profile, and leaving it.

use serde_json::json;
use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{AskBody, AskReply, CommandBody, EventBody, Profile};

use crate::rig::*;
use tiller_engine::{EngineConfig, Open};

fn edit_profile(p: &mut EngineConfig) {
    p.session.profile = Some(Profile::AutoEdit);
}

fn planning(rig: &mut Rig) {
    rig.send(CommandBody::Session(SessionCommand::SetProfile { profile: Profile::Plan }));
}

fn plan(id: &str) -> Vec<Step> {
    calls(&[(id, "write_plan", json!({"plan": "# Two files\n\n1. Write a\n2. Write b\n"}))])
}

fn write(id: &str, path: &str) -> Vec<Step> {
    calls(&[(id, "write_file", json!({"path": path, "content": "x\n"}))])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_before_the_yes_and_the_profile_from_before_comes_back_with_it() {
    let place = Place::new();
    let fake = Fake::new([write("c0", "early.txt"), plan("c1"), write("c2", "a.txt"), says("Done.")]);
    let mut rig = place.start_with(&fake, edit_profile).await;
    planning(&mut rig);
    rig.submit("write two files");
    let ask = rig.asked().await;
    let AskBody::Plan { file, plan } = &ask.body else { panic!("{ask:?}") };
    assert!(plan.contains("1. Write a"), "{plan}");
    assert!(!place.work.join("early.txt").exists());
    assert!(message_text(&fake.request(1), 2).contains("submit the plan with write_plan"));
    assert_eq!(rig.snapshot().await.profile, Profile::Plan);
    // The user edits the plan's file before approving it.
    std::fs::write(file, "- Only a\n").unwrap();
    rig.answer(&ask, AskReply::Yes { value: None });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(place.read("a.txt"), "x\n", "edits are free again");
    let snap = rig.snapshot().await;
    assert_eq!(snap.profile, Profile::AutoEdit);
    assert_eq!(snap.todo.iter().map(|t| t.content.as_str()).collect::<Vec<_>>(), ["Only a"]);
    let told = message_text(&fake.request(2), 4);
    assert!(told.contains("approved the plan") && told.contains("- Only a"), "{told}");
    assert!(told.contains("the permission mode is now auto-edit"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_keep_planning_and_dropping_ends_it() {
    let place = Place::new();
    let fake = Fake::new([plan("c1"), plan("c2"), says("Dropped.")]);
    let mut rig = place.start_with(&fake, edit_profile).await;
    planning(&mut rig);
    rig.submit("plan it");
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Choice { answers: vec!["only one file".into()] });
    let ask = rig.asked().await;
    assert!(message_text(&fake.request(1), 2).contains("only one file"));
    assert_eq!(rig.snapshot().await.profile, Profile::Plan);
    rig.answer(&ask, AskReply::Never);
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    let snap = rig.snapshot().await;
    assert_eq!((snap.profile, snap.todo.len()), (Profile::AutoEdit, 0));
    assert!(message_text(&fake.request(2), 4).contains("the user discarded the plan"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_waits_over_a_restart_with_what_was_changed_in_it() {
    let place = Place::new();
    let fake = Fake::new([plan("c1"), says("Working.")]);
    let mut rig = place.start_with(&fake, edit_profile).await;
    planning(&mut rig);
    rig.submit("plan it");
    let ask = rig.asked().await;
    let AskBody::Plan { file, .. } = &ask.body else { panic!("{ask:?}") };
    std::fs::write(file, "1. Mine\n").unwrap();
    rig.quit().await;
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.open = Open::Last;
            p.session.profile = None;
        })
        .await;
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::Plan { plan, .. } if plan.contains("Mine")), "{ask:?}");
    assert_eq!(rig.snapshot().await.profile, Profile::Plan);
    rig.answer(&ask, AskReply::Yes { value: None });
    let back = |e: &EventBody| match e {
        EventBody::State(StateEvent::ProfileChanged { profile }) => Some(*profile),
        _ => None,
    };
    assert_eq!(rig.until("the profile", back).await, Profile::AutoEdit);
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(rig.snapshot().await.todo[0].content, "Mine");
}
