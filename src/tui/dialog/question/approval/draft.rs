//! A draft that the call would store: the user may edit it before the answer.

use std::any::Any;
use std::path::{Path, PathBuf};

use tiller_protocol::Decision;
use tiller_protocol::ask::PermissionAsk;

use super::Approval;
use crate::app::effect::{Effect, Job, Task, Token};
use crate::panel::Reply;

/// Names the job that reads the file.
const READ: Token = Token(2);
/// Bytes of a draft at most.
const MOST: u64 = 256 << 10;

/// Text of the file, or why it cannot be read.
type Read = Result<String, String>;

/// The draft's main file.
pub(super) fn file(p: &PermissionAsk) -> Option<PathBuf> {
    p.draft.as_ref().map(|folder| Path::new(folder).join("SKILL.md"))
}

/// Reads the draft; a part of one is no draft.
fn read(file: &Path) -> Read {
    use std::io::Read as _;
    let failed = |e: std::io::Error| format!("The draft cannot be read: {e}");
    let mut text = Vec::new();
    std::fs::File::open(file).map_err(failed)?.take(MOST + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > MOST {
        return Err(format!("The draft has more than {} KiB: shorten it", MOST >> 10));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

impl Approval {
    /// The editor, or a trial, has ended.
    pub(super) fn on_return(&mut self, result: Result<(), String>) -> Reply {
        // Keys that were meant for the program must not answer.
        self.answer_state.delay.restart();
        let edited = std::mem::take(&mut self.fields.in_editor) && result.is_ok();
        let Some(file) = file(&self.p).filter(|_| edited) else { return Reply::done() };
        let job: Job = Box::new(move || Box::new(read(&file)));
        Reply::with(Effect::Task(Task::Job(job, READ)))
    }

    /// Sends the text that the user wrote: it is checked and shown again.
    pub(super) fn on_draft(&mut self, result: Box<dyn Any + Send>) -> Reply {
        match result.downcast::<Read>().map(|read| *read) {
            Ok(Ok(text)) => self.answer(Decision::Edit { text }),
            Ok(Err(why)) => {
                self.answer_state.feedback = Some(why);
                Reply::done()
            }
            Err(_) => Reply::Ignored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_that_is_too_long_is_refused_and_not_cut() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("SKILL.md");
        std::fs::write(&file, "a".repeat(256 << 10)).unwrap();
        assert_eq!(read(&file).map(|text| text.len()), Ok(256 << 10));
        std::fs::write(&file, "a".repeat((256 << 10) + 1)).unwrap();
        assert!(read(&file).unwrap_err().contains("more than 256 KiB"));
    }
}
