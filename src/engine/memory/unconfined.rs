//! What is noted of memory files and of SOUL.md before a program runs that nothing confines, and compared afterwards.

use std::path::PathBuf;
use std::sync::Arc;

use tiller_config::soul::CharacterTexts;
use tiller_memory::Memory;
use tiller_memory::files::UnconfinedCall;
use tiller_protocol::{Notice, NoticeKind, Provenance, SessionId};

/// What brings removed entries back.
pub(super) const BRINGS_BACK: &str = "/memory lists what was removed or changed, and brings it back";

/// A program that nothing confines, before it starts.
pub(crate) struct UnconfinedStart {
    pub(crate) memory: Arc<Memory>,
    /// The user's settings folder.
    pub(crate) config: PathBuf,
    /// Names what it does in the session.
    pub(crate) call: String,
    pub(crate) from: Provenance,
}

impl UnconfinedStart {
    /// Takes note of what is in the files. The program starts after that.
    pub(crate) async fn noted(self) -> Option<UnconfinedProgram> {
        let Self { memory, config, call, from } = self;
        let noted = tokio::task::spawn_blocking(move || {
            memory.before_unconfined_program();
            let running = memory.call_began(&call, from);
            UnconfinedProgram { characters: CharacterTexts::read(&config), memory, running }
        });
        // A panic there leaves the entries without an origin, as those of an editor.
        noted.await.ok()
    }
}

/// A program at work that nothing confines.
pub(crate) struct UnconfinedProgram {
    memory: Arc<Memory>,
    running: Option<UnconfinedCall>,
    /// SOUL.md and the definitions of agents before it.
    characters: CharacterTexts,
}

impl UnconfinedProgram {
    /// What it may have written or removed, in notices for the user. It has ended.
    pub(crate) async fn changes(self, session: SessionId) -> Vec<Notice> {
        let found = tokio::task::spawn_blocking(move || {
            let found = (
                self.memory.unconfined_entries(session),
                self.memory.vanished(session),
                self.characters.changed(),
            );
            if let Some(running) = self.running {
                running.compared();
            }
            found
        });
        let (written, removed, changed) = found.await.unwrap_or_default();
        let notice = |said: String, hint: &str| {
            let said = format!("{said} while a program ran outside the sandbox");
            Notice::new(NoticeKind::User, said).hint(hint)
        };
        let mut notices = Vec::new();
        if written > 0 {
            let hint = "/memory accepts or removes it; until then it has no power as a rule";
            notices.push(notice(entries(written, "written"), hint));
        }
        if removed > 0 {
            notices.push(notice(entries(removed, "removed or changed"), BRINGS_BACK));
        }
        if let Some(first) = changed.first() {
            let name = first.file_name().unwrap_or_default().to_string_lossy();
            let more = match changed.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            let hint = "/personality has the earlier text and puts it back";
            notices.push(notice(format!("{name}{more} changed"), hint));
        }
        notices
    }
}

/// `2 entries of memory were removed`.
pub(super) fn entries(n: usize, done: &str) -> String {
    if n == 1 {
        format!("1 entry of memory was {done}")
    } else {
        format!("{n} entries of memory were {done}")
    }
}
