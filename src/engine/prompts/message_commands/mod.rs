//! The commands in the text of an own command: lines `!command`, and `` !`command` `` in a line.
//!
//! A message `/NAME words` with such commands begins its turn with them, before the first request. They are the first calls
//! of the turn, of the tool `terminal`: the turn's machine starts and stops them, and [`crate::tool_call`] judges, confines,
//! masks and records them, as it does with calls of the model. Their rows are on the screen, and their results are entries
//! before the message, which no model gets ([`tiller_protocol::ToolCall::is_of_message`]).
//!
//! | step | where |
//! | --- | --- |
//! | the arguments are filled in, quoted for the shell; a mark stands in the text for each command | [`held::marked`] |
//! | files, skills, hooks and learnings of the message are read, before there is any output | `compose` |
//! | the message waits in the queue, so an interrupt loses nothing; the turn begins with the commands | [`waiting::hold`] |
//! | the state of the files is kept under the id that the entry of the message will have, before the commands run | `compose` |
//! | the output of a command, or the reason why it did not run, is noted | [`held::HeldMessage::ended`] |
//! | the outputs take the places of the marks; the message leaves the queue and is stored | [`deliver::deliver`] |
//!
//! Output is text of others: nothing that it names is attached, and the message has its taint. A denial does not hold the
//! message back: the model reads it, as it reads that of a call of its own. Messages that wait run their commands when their
//! turn begins; one that was to join a turn waits for a turn of its own. A program of another vendor is asked to run them.

pub(crate) mod deliver;
pub(crate) mod go_on;
pub(crate) mod held;
pub(crate) mod stored;
mod text;
pub(crate) mod waiting;
