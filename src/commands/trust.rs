//! `tiller trust`: shows the files of a folder that need trust, and records the person's trust in exactly these.

use std::path::PathBuf;

use tiller_config::Flags;
use tiller_permit::trust::{
    Change, Choice, FolderConfig, Status, TrustDecision, discover, discover_for, programs_folder,
    programs_name, programs_never_name, status, undecided,
};
use tiller_protocol::{Notice, NoticeKind, ToolCatalog};
use tiller_store::{Store, TrustRow};

use crate::app::Setup;
use crate::app::definitions::programs;
use crate::app::tools::memory::without_own;
use crate::commands::args::Common;
use crate::commands::extensions::consent::agreed;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, say};

/// The state of a folder since it was trusted.
fn standing(row: &TrustRow, store: &Store, tools: &ToolCatalog) -> &'static str {
    if let Some(folder) = programs_folder(&row.folder) {
        let reads: Vec<String> = row.items.iter().map(|i| i.path.clone()).collect();
        return match undecided(&discover_for(&folder, &reads), Some(&programs::stored(row))) {
            _ if !folder.is_dir() => "gone   ",
            changed if changed.is_empty() => "trusted",
            _ => "changed",
        };
    }
    let folder = tiller_protocol::names::path(&row.folder);
    if !folder.is_dir() {
        return "gone   ";
    }
    let items = row.items.iter().map(|i| (i.path.clone(), i.hash.clone())).collect();
    let found = without_own(discover(&folder, tools), &folder, store);
    match status(&found, Some(&TrustDecision { choice: Choice::Trust, items })) {
        Status::Trusted => "trusted",
        Status::Nothing => "empty  ",
        // Nothing of it is loaded until the new contents are trusted.
        _ => "changed",
    }
}

/// The folder of a decision, as text.
fn folder_of(row: &TrustRow) -> String {
    match programs_folder(&row.folder) {
        Some(folder) => format!("{} (settings of external programs)", folder.display()),
        None => row.folder.clone(),
    }
}

/// The files here that configure external programs, and whether some of them are not trusted.
fn for_programs(setup: &Setup, store: &Store) -> Result<(FolderConfig, bool), Notice> {
    let adapters = programs::adapters(setup);
    let mut reads: Vec<String> = adapters.iter().flat_map(|a| a.program.reads().to_vec()).collect();
    reads.sort();
    reads.dedup();
    let mut folder_config = discover_for(&setup.project, &reads);
    let home = (setup.env)("HOME").map(PathBuf::from);
    folder_config.add(&programs::git_settings(&setup.project, home.as_deref(), &setup.children()));
    let row = store.trust().get(&programs_name(&setup.project)).map_err(|e| e.notice())?;
    let open = folder_config.too_much
        || !undecided(&folder_config, row.as_ref().map(programs::stored).as_ref()).is_empty();
    Ok((folder_config, open))
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
        let setup = at(None)?;
        let tools = setup.tools.catalog();
        let store = setup.open_store()?;
        let rows = store.trust().list().map_err(|e| e.notice())?;
        let text: String = rows
            .iter()
            .filter(|r| !tiller_plugins::is_decision(&r.folder))
            .map(|r| {
                let stands = if r.trusted { standing(r, &store, &tools) } else { "never  " };
                format!(
                    "{stands}  {}  {}\n",
                    &tiller_tui::zone::written(r.time)[..10],
                    one_line(&folder_of(r))
                )
            })
            .collect();
        return say(if text.is_empty() { "No trust decisions yet.\n" } else { &text });
    }
    if let Some(dir) = revoke {
        let setup = at(Some(dir))?;
        let store = setup.open_store()?;
        let mut gone = false;
        for name in [setup.project_name(), programs_name(&setup.project), programs_never_name(&setup.project)]
        {
            gone |= store.trust().revoke(&name).wait().map_err(|e| e.notice())?;
        }
        let what = if gone { "is no longer trusted" } else { "had no trust decision" };
        return say(&format!("{} {what}.\n", setup.project.display()));
    }
    let setup = at(dir)?;
    let store = setup.open_store()?;
    let (status, brought) = (setup.trust(&store), setup.folder_brings(&store));
    let (for_programs, open) = for_programs(&setup, &store)?;
    let mut text = format!("{}\n", setup.project.display());
    for item in brought.items().into_iter().chain(for_programs.items()) {
        text.push_str(&format!(
            "  {:12} {}\n               {}\n",
            item.title(),
            one_line(&item.path),
            one_line(&item.detail)
        ));
    }
    text.push_str(&match &status {
        Status::Nothing if for_programs.found.is_empty() => {
            "It contains nothing that could run programs, loosen rules or instruct agents.\n".to_owned()
        }
        Status::Nothing => String::new(),
        Status::Trusted => "Trusted, in exactly this form.\n".to_owned(),
        Status::Never => "Never trusted (your choice). None of it is loaded.\n".to_owned(),
        Status::New => "Not trusted yet: none of it is loaded.\n".to_owned(),
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
    if !for_programs.found.is_empty() {
        let never = !programs::refused(&store, &setup.project).is_empty();
        text.push_str(match open {
            true if never => {
                "Program settings never trusted (your choice): external agents that read them do not start here.\n"
            }
            true => "Program settings not trusted yet: external agents that read them do not start here.\n",
            false => "Program settings trusted, in exactly this form.\n",
        });
    }
    say(&text)?;
    if matches!(status, Status::Nothing | Status::Trusted) && !open {
        return Ok(Exit::Done);
    }
    let without = Notice::new(NoticeKind::Denied, "No terminal to ask on.").hint("Pass --yes.");
    if !agreed("Trust it?", yes, without)? {
        return say("Not trusted.\n");
    }
    if for_programs.too_much || for_programs.found.iter().any(|f| f.bytes.is_none()) {
        return Err(Notice::new(
            NoticeKind::User,
            "The program settings include a link, a file larger than 256 KiB or too many files; nothing was trusted.",
        )
        .hint("Replace them with regular files, then try again."));
    }
    if !matches!(status, Status::Nothing | Status::Trusted) {
        let items = brought.items();
        store.trust().set(&setup.project_name(), true, items).wait().map_err(|e| e.notice())?;
    }
    if open {
        let before = store.trust().get(&programs_name(&setup.project)).map_err(|e| e.notice())?;
        let before = before.filter(|r| r.trusted).map(|r| r.items).unwrap_or_default();
        programs::agree(&store, &setup.project, &before, &for_programs.items()).map_err(|e| e.notice())?;
    }
    say("Trusted now, in this form only: a change to any of these files asks again.\n")
}
