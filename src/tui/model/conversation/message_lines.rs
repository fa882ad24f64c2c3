//! The commands of a message: their rows stand directly below it, and begin its turn. Their results come before it.

use tiller_protocol::{Entry, EntryBody, EntryId, Part, ToolCall};

use super::{Body, Cell};

/// Cells at the end that are looked through.
const NEAR: usize = 1024;
/// Bytes of a sent text that a cell keeps.
const SENT: usize = 32 << 10;

/// The message that the row of a call belongs to.
fn message_of(cell: &Cell) -> Option<EntryId> {
    match &cell.body {
        Body::Tool(tool) => ToolCall::message_of(&tool.call_id),
        _ => None,
    }
}

/// Where the first row of the commands of `message` stands.
fn first<'c>(
    cells: impl DoubleEndedIterator<Item = &'c Cell> + ExactSizeIterator,
    message: EntryId,
) -> Option<usize> {
    let near = cells.enumerate().rev().take(NEAR);
    near.filter(|(_, cell)| message_of(cell) == Some(message)).map(|(at, _)| at).min()
}

/// Where the first row of the commands of this entry stands, if it is a message with commands.
pub(super) fn first_of<'c>(
    cells: impl DoubleEndedIterator<Item = &'c Cell> + ExactSizeIterator,
    node: &Entry,
) -> Option<usize> {
    if matches!(node.body, EntryBody::User { .. }) { first(cells, node.id) } else { None }
}

/// True when a call is the first of its message.
pub(super) fn begins<'c>(
    cells: impl DoubleEndedIterator<Item = &'c Cell> + ExactSizeIterator,
    call_id: &str,
) -> bool {
    ToolCall::message_of(call_id).is_some_and(|message| first(cells, message).is_none())
}

/// Moves the last cell, which is a message, above the rows of its commands, of which the first is at `first`.
pub(super) fn put_above(cells: &mut [Cell], first: usize) {
    let Some(turn) = cells.get(first).map(|cell| cell.turn) else { return };
    if let Some(message) = cells.last_mut() {
        message.turn = turn;
    }
    cells[first..].rotate_right(1);
}

/// Returns what was sent in the place of the typed text: with the outputs of commands and pasted texts filled in. `None`: the text
/// was sent as it was typed.
pub(super) fn sent(body: &EntryBody) -> Option<String> {
    let EntryBody::User { message, content, .. } = body else { return None };
    let Some(Part::Text { text }) = content.first() else { return None };
    let typed = message.text.trim();
    if typed.is_empty() || text.trim() == typed {
        return None;
    }
    let mut sent = text.clone();
    super::cell::cut(&mut sent, SENT);
    Some(sent)
}
