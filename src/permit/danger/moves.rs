//! What takes a whole tree away without deleting it by name: by moving it, by making it like another, or by changing
//! each file of it.

use super::args::{Args, broad};
use super::location::Location;
use crate::targets::written;
use tiller_shell::{Part, Word};

/// Why a command that moves, mirrors or changes a tree is dangerous.
pub(super) fn moves(part: &Part, location: Location<'_>) -> Option<String> {
    let base = part.base();
    let a = Args { words: part.args() };
    // `.`, `*` and `..`: all that there is here.
    let all = |w: &Word| !w.dynamic && !w.tilde && !w.text.starts_with('/') && broad(w);
    let whole = |w: &Word| all(w) || location.foreign(w);
    let operands = || a.operands().collect::<Vec<&Word>>();
    match base.as_str() {
        "mv" | "gmv" => {
            let mut sources = operands();
            // With `-t` the folder that they are moved to is named first.
            if a.has('t', "target-directory") {
                return sources.iter().any(|w| whole(w)).then(|| "it moves a whole directory tree".into());
            }
            sources.pop();
            sources.iter().any(|w| whole(w)).then(|| "it moves a whole directory tree".into())
        }
        "rsync" => {
            let words = operands();
            let (to, from) = words.split_last()?;
            let deletes = a.any(|t| t.starts_with("--del"));
            let empties = a.any(|t| t.starts_with("--remove-s"));
            (deletes && whole(to) || empties && from.iter().any(|w| whole(w)))
                .then(|| "rsync deletes what it does not find elsewhere".into())
        }
        "find" | "gfind" => written(part)
            .iter()
            .any(|w| location.foreign(w))
            .then(|| "find changes everything that it finds outside the workspace".into()),
        _ => None,
    }
}
