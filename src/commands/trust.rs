//! `tiller trust`: what a folder brings, and the person's yes to exactly that.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use tiller_config::Flags;
use tiller_permit::trust::{Change, Choice, Status, Stored, discover, status};
use tiller_protocol::{Notice, NoticeKind};
use tiller_store::TrustRow;

use crate::app::Setup;
use crate::commands::args::Common;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, say};

/// What has become of a folder since the yes to it.
fn standing(row: &TrustRow) -> &'static str {
    let folder = Path::new(&row.folder);
    if !folder.is_dir() {
        return "gone   ";
    }
    let items = row.items.iter().map(|i| (i.path.clone(), i.hash.clone())).collect();
    match status(&discover(folder), Some(&Stored { choice: Choice::Trust, items })) {
        Status::Trusted => "trusted",
        Status::Nothing => "empty  ",
        // Nothing of it is loaded until there is a yes to the new form.
        _ => "changed",
    }
}

/// Shows, lists, revokes, or asks.
pub(super) fn run(
    dir: Option<PathBuf>,
    list: bool,
    revoke: Option<PathBuf>,
    yes: bool,
) -> Result<Exit, Notice> {
    let at = |dir: Option<PathBuf>| Setup::read(&Common { dir, ..Common::default() }, Flags::default());
    if list {
        let rows = at(None)?.open_store()?.trusts().map_err(|e| e.notice())?;
        let text: String = rows
            .iter()
            .map(|r| {
                let stands = if r.trusted { standing(r) } else { "never  " };
                format!("{stands}  {}  {}\n", &tiller_tui::zone::written(r.time)[..10], one_line(&r.folder))
            })
            .collect();
        return say(if text.is_empty() { "No trust decisions yet.\n" } else { &text });
    }
    if let Some(dir) = revoke {
        let setup = at(Some(dir))?;
        let gone = setup.open_store()?.revoke_trust(&setup.project_name()).wait().map_err(|e| e.notice())?;
        let what = if gone { "is no longer trusted" } else { "had no trust decision" };
        return say(&format!("{} {what}.\n", setup.project.display()));
    }
    let setup = at(dir)?;
    let store = setup.open_store()?;
    let status = setup.trust(&store);
    let mut text = format!("{}\n", setup.project.display());
    for item in setup.brings.items() {
        text.push_str(&format!(
            "  {:12} {}\n               {}\n",
            item.kind,
            one_line(&item.path),
            one_line(&item.detail)
        ));
    }
    text.push_str(&match &status {
        Status::Nothing => "It contains nothing that could run programs or loosen rules.\n".to_owned(),
        Status::Trusted => "Trusted, in exactly this form.\n".to_owned(),
        Status::Never => "Never trusted (your choice). None of it is loaded.\n".to_owned(),
        Status::New => "Not trusted. None of it is loaded.\n".to_owned(),
        Status::Changed(changes) => {
            let mut t = "Changed since you trusted it. None of it is loaded.\n".to_owned();
            for c in changes {
                let (what, path) = match c {
                    Change::Added(p) => ("new", p),
                    Change::Changed(p) => ("changed", p),
                    Change::Removed(p) => ("gone", p),
                };
                t.push_str(&format!("  {what}: {}\n", one_line(path)));
            }
            t
        }
    });
    say(&text)?;
    if matches!(status, Status::Nothing | Status::Trusted) {
        return Ok(Exit::Done);
    }
    let agreed = yes || {
        if !std::io::stdin().is_terminal() {
            return Err(Notice::new(NoticeKind::Denied, "No terminal to ask on.").hint("Pass --yes."));
        }
        // A prompt that cannot be shown gets no yes.
        let _ = write!(std::io::stderr(), "Trust it? Type yes: ");
        let mut answer = String::new();
        // As above.
        let _ = std::io::stdin().read_line(&mut answer);
        answer.trim() == "yes"
    };
    if !agreed {
        return say("Not trusted.\n");
    }
    store.set_trust(&setup.project_name(), true, setup.brings.items()).wait().map_err(|e| e.notice())?;
    say("Trusted, in this form only: a change to any of these files asks again.\n")
}
