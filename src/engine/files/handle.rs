//! What the loop does with each report about the files.

use crate::core::Core;
use crate::files::msg::FilesMsg;
use crate::files::record;
use crate::files::restore;
use crate::files::restore::by_tool;
use crate::files::turn::ended;
use crate::undo::review;
use crate::undo::undoing;

pub(crate) fn handle(core: &mut Core, msg: FilesMsg) {
    match msg {
        FilesMsg::UndoFound(found) => undoing::undo_found(core, *found),
        FilesMsg::ReviewReport(reviewed) => review::reviewed(core, *reviewed),
        FilesMsg::NotKept(not_kept) => record::not_kept(core, &not_kept),
        FilesMsg::RestoreReport(restored) => restore::files_restored(core, *restored),
        FilesMsg::FilesRequest(asked) => by_tool::files_asked(core, asked),
        FilesMsg::Notices => record::files_words(core),
        FilesMsg::TurnChanged(report) => ended::turn_changed(core, *report),
        FilesMsg::Unkept(session, changes) => record::unkept(core, session, &changes),
        FilesMsg::Touched(files) => core.child_driver().files_found(files),
    }
}
