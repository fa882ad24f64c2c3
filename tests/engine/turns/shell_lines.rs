//! Shell lines of the user's own.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::{ToolEvent, TurnStatus};
use tiller_protocol::{CommandBody, EventBody};

use crate::rig::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_persons_own_commands_are_shared_or_kept_private() {
    let place = Place::new();
    let fake = Fake::new([says("I saw it.")]);
    let mut rig = place.start(&fake).await;
    for (line, share) in [("echo shared-$((40+2))", true), ("echo private-$((40+2)); exit 3", false)] {
        rig.send(CommandBody::Turn(TurnCommand::Shell { line: line.into(), share }));
        let (output, shared) = rig
            .until("output", |e| match e {
                EventBody::Tool(ToolEvent::ShellLine { output, shared, .. }) => {
                    Some((output.clone(), *shared))
                }
                _ => None,
            })
            .await;
        assert!(output.contains("-42") && shared == share, "{output}");
    }
    assert_eq!(rig.turn("did you see?").await.0, TurnStatus::Done);
    let r = fake.request(0);
    let all: String = (0..r.messages.len()).map(|i| message_text(&r, i)).collect();
    assert!(all.contains("shared-42") && !all.contains("private-42"), "{all}");
    assert_valid(&r);
}
