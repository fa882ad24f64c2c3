//! The change that an event makes to a conversation, as far as the kind of the event tells.

use tiller_protocol::command::PathPlace;
use tiller_protocol::event::{ReplyEvent, StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::{Event, EventBody};

/// The change that an event makes to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Nothing,
    /// Words are added to a cell that is there already.
    Words,
    /// Cells come or go, or their state changes.
    Outline,
}

impl Change {
    /// Returns what this event may change at most, when it adds or removes no cell.
    pub fn of(event: &Event) -> Self {
        match &event.body {
            EventBody::Turn(
                TurnEvent::Usage { .. }
                | TurnEvent::Awaiting { .. }
                | TurnEvent::RetryEnded {}
                | TurnEvent::Compacted { .. }
                | TurnEvent::Retrying { discard: false, .. },
            ) => Self::Nothing,
            EventBody::Turn(TurnEvent::TextDelta { .. } | TurnEvent::ThinkingDelta { .. })
            | EventBody::Tool(ToolEvent::ToolProgress { .. }) => Self::Words,
            EventBody::Turn(_) | EventBody::Tool(_) | EventBody::Ask(_) => Self::Outline,
            EventBody::State(
                StateEvent::ModelChanged { .. } | StateEvent::Receipt { .. } | StateEvent::TurnChanged { .. },
            ) => Self::Outline,
            EventBody::State(_) => Self::Nothing,
            EventBody::Reply(reply) => match reply.as_ref() {
                ReplyEvent::PathPartReply { at: PathPlace::Search { .. }, .. } => Self::Nothing,
                ReplyEvent::SnapshotReply { .. }
                | ReplyEvent::PageReply { .. }
                | ReplyEvent::PathPartReply { .. } => Self::Outline,
                _ => Self::Nothing,
            },
        }
    }
}
