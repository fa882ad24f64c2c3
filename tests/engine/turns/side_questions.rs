//! Side questions (`/btw`).

use tiller_protocol::CommandBody;
use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::{ReplyEvent, TurnStatus};

use crate::rig::{Fake, Place, message_text, says, shape};
use crate::scripted_model::Step;

fn aside(question: &str) -> CommandBody {
    CommandBody::Turn(TurnCommand::Aside { question: question.into() })
}

/// It is answered from the conversation without an entry: the next request is its predecessor plus new material, and
/// the cost is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_question_is_answered_and_leaves_no_trace() {
    let place = Place::new();
    let fake = Fake::with(|_, r| {
        if r.system.starts_with("A user works") { says("Because of the header.") } else { says("ok") }
    });
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.turn("make the retry logic honour the header").await.0, TurnStatus::Done);
    let before = rig.snapshot().await;
    rig.send(aside(" why that? "));
    let ReplyEvent::AsideReply { question, answer, .. } = rig.reply().await else { panic!("no answer") };
    assert_eq!((question.as_str(), answer.as_str()), ("why that?", "Because of the header."));
    let side = fake.request(1);
    let text = message_text(&side, 0);
    assert!(text.contains("honour the header") && text.ends_with("why that?"), "{text}");
    assert!(side.tools.is_empty());
    let after = rig.snapshot().await;
    assert_eq!(shape(&before.entries), shape(&after.entries));
    assert!(after.usage.output > before.usage.output, "it is counted");
    rig.turn("go on").await;
    let (first, next) = (fake.request(0), fake.request(2));
    assert_eq!(next.system, first.system);
    assert_eq!(next.messages[..first.messages.len()], first.messages[..]);
    let all: String = (0..next.messages.len()).map(|n| message_text(&next, n)).collect();
    assert!(!all.contains("why that?") && !all.contains("Because of"), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_question_without_words_is_refused() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("ok"));
    let mut rig = place.start(&fake).await;
    rig.send(aside("  "));
    assert!(rig.refused().await.message.contains("question is empty"));
    assert_eq!(fake.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_question_can_be_stopped() {
    let place = Place::new();
    let fake =
        Fake::with(|_, r| if r.system.starts_with("A user works") { vec![Step::Hang] } else { says("ok") });
    let mut rig = place.start(&fake).await;
    rig.send(aside("why?"));
    fake.requested(1).await;
    rig.send(CommandBody::Turn(TurnCommand::StopTool { id: "aside".into() }));
    assert!(rig.refused().await.message.contains("was stopped"));
    // The next turn is not affected.
    assert_eq!(rig.turn("go on").await.0, TurnStatus::Done);
}
