//! Sessions in the trash.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, SessionId};

use crate::rig::{Fake, Place, Rig, says};

async fn listed(rig: &mut Rig, trashed: bool) -> Vec<SessionId> {
    let query = Query::Sessions { everywhere: false, filter: String::new(), archived: false, trashed };
    let ReplyEvent::SessionsReply { sessions } = rig.query(query).await else { panic!("no list") };
    sessions.iter().map(|s| s.id).collect()
}

/// The open session stays; another one goes into the trash and comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_into_the_trash_and_comes_back_but_never_the_open_one() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("ok"));
    let mut rig = place.start(&fake).await;
    rig.turn("one").await;
    let first = rig.session();
    let trash = |trashed| CommandBody::Session(SessionCommand::Trash { id: first, trashed });
    rig.send(trash(true));
    assert!(rig.refused().await.message.contains("open session"));
    assert_eq!(listed(&mut rig, false).await, [first]);
    rig.send(CommandBody::Session(SessionCommand::New));
    rig.until("another session", |e| {
        matches!(
            e,
            tiller_protocol::EventBody::Turn(tiller_protocol::event::TurnEvent::SessionStarted { .. })
        )
        .then_some(())
    })
    .await;
    for (there, want) in [(true, vec![first]), (false, vec![])] {
        rig.send(trash(there));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(90);
        // Saved by another thread: not at once.
        while listed(&mut rig, true).await != want {
            assert!(std::time::Instant::now() < end, "thrown away: {there}");
        }
    }
    assert!(listed(&mut rig, false).await.contains(&first));
}
