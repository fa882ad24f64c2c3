//! Where results go: a file of the workspace, by the way of all changes, or one of the session's folder of full outputs.

use std::path::Path;

use tiller_protocol::tool::{Display, FileDiff};
use tiller_protocol::{Access, ChangeKind};

use crate::files::change::commit::Change;
use crate::files::change::{Edit, Who, apply, current, diff, ledger};
use crate::files::path::{Place, declare, to_write};
use crate::guard::blocking;
use crate::output::{Spill, human};
use crate::{ToolCx, ToolError, ToolOutput};

/// A result that was written.
pub(super) struct Saved {
    /// As the model and the person know it.
    pub name: String,
    files: Vec<FileDiff>,
}

impl Saved {
    /// The result of the call: `said` for the model. The screen shows the changed file, or `measure`.
    pub(super) fn report(self, said: impl Into<String>, measure: String) -> ToolOutput {
        let display = if self.files.is_empty() {
            Display::Measure { text: measure }
        } else {
            Display::Diff { files: self.files }
        };
        ToolOutput::text(said).show(display)
    }
}

/// The ending of a path, in small letters.
pub(super) fn ending(path: &str) -> String {
    Path::new(path).extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// Checks the path that a call writes, and declares it. `None`: it writes none.
pub(super) fn declared(
    path: Option<&str>,
    endings: &[&str],
    cx: &ToolCx,
) -> Result<Option<Access>, ToolError> {
    let Some(path) = path else { return Ok(None) };
    if !endings.contains(&ending(path).as_str()) {
        return Err(ToolError::Tell(format!("{path}: its name must end with .{}", endings.join(", ."))));
    }
    let place = to_write(path, cx)?;
    declare(cx, &[&place]);
    Ok(Some(place.writes()))
}

/// Whether the path could be written now: a file there must be known to the agent. Before anything is asked or paid.
pub(super) async fn ready(path: Option<String>, cx: &ToolCx, show: bool) -> Result<(), ToolError> {
    let Some(path) = path else { return Ok(()) };
    let cx = cx.clone();
    blocking("write", move || {
        let place = to_write(&path, &cx)?;
        ledger::known_first(&cx, std::slice::from_ref(&place), show)?;
        if show && place.exists {
            let there = current(&place, &cx)?;
            ledger::check(&cx, &place.path, &place.name, &there.bytes)?;
        }
        Ok(())
    })
    .await
}

/// Writes `bytes`: to `path`, or where the agent can read it and write nothing (`ending`: of its name).
pub(super) async fn save(
    path: Option<String>,
    ending: &'static str,
    bytes: Vec<u8>,
    cx: &ToolCx,
) -> Result<Saved, ToolError> {
    let cx = cx.clone();
    blocking("write", move || match path {
        Some(path) => change(to_write(&path, &cx)?, bytes, &cx),
        None => {
            let kept = Spill::named(&cx, ending).and_then(|mut spill| {
                spill.write(&bytes)?;
                Ok(spill)
            });
            let kept = kept.map_err(|e| ToolError::Tell(format!("the result could not be written: {e}")))?;
            if kept.dropped() > 0 {
                let size = human(bytes.len() as u64);
                return Err(ToolError::Tell(format!("the result is too large to be kept ({size})")));
            }
            Ok(Saved { name: kept.path().display().to_string(), files: Vec::new() })
        }
    })
    .await
}

fn change(place: Place, bytes: Vec<u8>, cx: &ToolCx) -> Result<Saved, ToolError> {
    let name = place.name.clone();
    // Only text has a difference to be shown.
    let text = |bytes: &[u8]| {
        let shown = matches!(ending(&name).as_str(), "txt" | "svg" | "html");
        std::str::from_utf8(bytes).ok().filter(|_| shown).unwrap_or_default().to_owned()
    };
    let after = text(&bytes);
    let edit = if place.exists {
        let there = current(&place, cx)?;
        ledger::check(cx, &place.path, &place.name, &there.bytes)?;
        if there.bytes == bytes {
            return Ok(Saved { name, files: Vec::new() });
        }
        let diff = Some(diff::file(&name, ChangeKind::Modified, &text(&there.bytes), &after));
        Edit { place, change: Change::Replace { old: there.old, bytes }, diff }
    } else {
        let diff = Some(diff::file(&name, ChangeKind::Added, "", &after));
        Edit { place, change: Change::Create { bytes, like: None }, diff }
    };
    let files = apply(vec![edit], cx, Who::Agent)?;
    Ok(Saved { name, files })
}
