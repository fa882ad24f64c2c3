//! `tiller learnings`: what failed, and what worked instead.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::json;
use tiller_memory::learnings::lines;
use tiller_memory::rules::learning_fault;
use tiller_protocol::{Learning, LearningState, Notice, NoticeKind};
use tiller_store::Store;

use crate::app::Setup;
use crate::commands::args::{LearningStateArg, LearningsCommand};
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say, say_beside};

/// Most learnings of an export.
const ALL: u32 = 1_000_000;
/// `O_NONBLOCK`: opening a FIFO does not wait for its writer.
const NONBLOCK: i32 = 0o4000;

/// Runs one subcommand.
pub(in crate::commands) fn run(setup: &Setup, what: &LearningsCommand, json: bool) -> Result<Exit, Notice> {
    let store = crate::commands::opened(setup)?;
    match what {
        LearningsCommand::List { filter, state, limit } => {
            list(&store, filter.as_deref().unwrap_or_default(), *state, *limit, json)
        }
        LearningsCommand::Export { file } => export(&store, file.as_deref()),
        LearningsCommand::Import { file, mine } => import(setup, &store, file, *mine, json),
        LearningsCommand::Accept { id } => change(setup, &store, *id, Some(LearningState::Active), json),
        LearningsCommand::Retire { id } => change(setup, &store, *id, Some(LearningState::Retired), json),
        LearningsCommand::Undo { id } => change(setup, &store, *id, None, json),
    }
}

fn list(
    store: &Store,
    filter: &str,
    state: Option<LearningStateArg>,
    limit: u32,
    json: bool,
) -> Result<Exit, Notice> {
    let state = state.map(|state| match state {
        LearningStateArg::Proposed => LearningState::Proposed,
        LearningStateArg::Active => LearningState::Active,
        LearningStateArg::Retired => LearningState::Retired,
    });
    let limit = if limit == 0 { ALL } else { limit };
    let rows = store.learnings().list(filter, state.as_ref(), limit).map_err(|e| e.notice())?;
    if json {
        return say(&rows.iter().map(|l| lines::line(l) + "\n").collect::<String>());
    }
    if rows.is_empty() {
        return say("There are no learnings.\n");
    }
    say(&rows.iter().map(row).collect::<String>())
}

fn row(l: &Learning) -> String {
    format!(
        "{:>5}  {:8}  {:>4} uses  {}  ->  {}\n",
        l.id,
        one_line(l.state.word()),
        l.times_used,
        one_line(&l.pattern),
        one_line(&l.fix)
    )
}

fn export(store: &Store, file: Option<&Path>) -> Result<Exit, Notice> {
    let rows = store.learnings().list("", None, ALL).map_err(|e| e.notice())?;
    let text: String = rows.iter().map(|l| lines::line(l) + "\n").collect();
    let Some(file) = file else { return say(&text) };
    tiller_config::write_private(file, &text).map_err(|e| {
        Notice::new(NoticeKind::User, format!("{} could not be written: {e}", file.display()))
    })?;
    say(&format!("Wrote {} to {}.\n", counted(rows.len()), file.display()))
}

fn import(setup: &Setup, store: &Store, file: &Path, mine: bool, json: bool) -> Result<Exit, Notice> {
    let read = lines::read(&text_of(file)?, setup.clock.now(), mine);
    // Text of others may repeat a secret of this user.
    let mut learnings = read.learnings;
    for text in learnings.iter_mut().flat_map(Learning::texts_mut) {
        *text = setup.redactor.redact(text).into_owned();
    }
    let found = learnings.len();
    let proposed = learnings.iter().any(|l| l.state == LearningState::Proposed);
    let (new, taken) = match mine {
        true => store.learnings().add_own(learnings).wait().map_err(|e| e.notice())?,
        false => (store.learnings().add_all(learnings).wait().map_err(|e| e.notice())?, 0),
    };
    let known = found - new - taken;
    let exit = if read.left_out > 0 { Exit::Refused } else { Exit::Done };
    if json {
        let refused: Vec<_> =
            read.refused.iter().map(|(line, why)| json!({"line": line, "why": why})).collect();
        let row = json!({
            "new": new, "taken_over": taken, "known": known, "left_out": read.left_out, "refused": refused
        });
        say(&json_line(&row))?;
        return Ok(exit);
    }
    for (line, why) in &read.refused {
        say_beside(&format!("line {line}: {why}"));
    }
    let taken = if taken > 0 { format!("{taken} taken over as yours, ") } else { String::new() };
    let waits = match new > 0 && proposed {
        true if mine => " Those that are proposed wait for you in /learnings.",
        true => " They wait for you in /learnings.",
        false => "",
    };
    say(&format!("{new} new, {taken}{known} known, {} left out.{waits}\n", read.left_out))?;
    Ok(exit)
}

/// The text of a file or of standard input, of bounded size.
fn text_of(file: &Path) -> Result<String, Notice> {
    let wrong = |why: String| Notice::new(NoticeKind::User, format!("{} {why}", file.display()));
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(lines::FILE + 1).read_to_end(&mut bytes)
    } else {
        let open = File::options().read(true).custom_flags(NONBLOCK).open(file);
        let open = open.map_err(|e| wrong(format!("could not be opened: {e}")))?;
        if !open.metadata().is_ok_and(|m| m.is_file()) {
            return Err(wrong("is no plain file".into()));
        }
        open.take(lines::FILE + 1).read_to_end(&mut bytes)
    }
    .map_err(|e| wrong(format!("could not be read: {e}")))?;
    if bytes.len() as u64 > lines::FILE {
        return Err(wrong(format!("is larger than {} MiB", lines::FILE >> 20)));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Changes the state, or undoes the last change (`None`).
fn change(
    setup: &Setup,
    store: &Store,
    id: i64,
    state: Option<LearningState>,
    json: bool,
) -> Result<Exit, Notice> {
    let done = match state {
        Some(state) => store.learnings().change(id, Some(state), None).wait(),
        None => store.learnings().undo(id).wait(),
    };
    let learning = done.map_err(|e| e.notice())?;
    let in_use = learning.state == LearningState::Active;
    if let Some(why) = learning_fault(&learning, &setup.tools.catalog()).filter(|_| in_use) {
        say_beside(&format!("It is no rule: {why}."));
    }
    if json { say(&(lines::line(&learning) + "\n")) } else { say(&row(&learning)) }
}

fn counted(n: usize) -> String {
    if n == 1 { "1 learning".into() } else { format!("{n} learnings") }
}
