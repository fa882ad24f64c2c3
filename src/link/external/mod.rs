//! Agent programs of other vendors, over three transports, told as one stream.
//!
//! [`start`] runs one program for one [`Job`] and gives a [`Control`] (what the person and the engine do to it)
//! and a receiver of [`Said`] (what it does). The last word is always one [`Said::Ended`].
//!
//! | file | its job |
//! | --- | --- |
//! | `job`, `said`, `control` | the seam: what is asked, what is told, what can be done meanwhile |

pub mod adapter;
mod control;
mod job;
mod said;

pub use adapter::Adapter;
pub use control::{Control, Receipt};
pub use job::{FileError, Files, Job, Limits, Lookup, StartError, Transport};
pub use said::{
    Answer, Ask, Choice, ChoiceKind, Doing, Ending, FileDiff, Guess, Question, Said, Source, Status, ToolUse,
};

#[cfg(any(test, feature = "testing"))]
pub mod testing;
