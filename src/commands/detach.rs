//! `tiller ps`, `attach`, `detach`, `stop`: commands about running workbenches.

use std::io::IsTerminal;
use std::path::Path;

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{Notice, NoticeKind};
use tiller_text::clean;

use crate::app::Setup;
use crate::commands::{Exit, json_line, say};
use crate::detach::connection::{self, AttachMode};
use crate::detach::{About, Folder};

/// The workbenches that a command applies to.
pub(super) struct Selection<'a> {
    /// Prefix of its session's id; `None`: those of this project.
    pub(super) session: Option<&'a str>,
    pub(super) all: bool,
}

fn folder(setup: &Setup) -> Result<Folder, Notice> {
    Folder::open(&setup.places.state)
}

/// `tiller ps`.
pub(super) fn list(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let found = connection::all(&folder(setup)?, None);
    if json {
        return say(&found.iter().map(|f| json_line(&f.about)).collect::<String>());
    }
    if found.is_empty() {
        return say("No workbench is running.\n");
    }
    let mut text = String::new();
    found.iter().for_each(|f| text.push_str(&row(&f.about)));
    say(&text)
}

/// A row for people.
fn row(a: &About) -> String {
    let screen = match (&a.screen, &a.left) {
        (Some(s), _) => format!("on {} since {}", clean::plain(&s.place), minute(&s.since)),
        (None, Some(left)) => format!("detached at {}", minute(left)),
        (None, None) => "left".into(),
    };
    let work = match (a.at_work(), a.screen.is_some()) {
        (true, _) => format!("running: {}", a.work),
        (false, true) => "nothing is running".into(),
        // It ends by itself shortly after its last turn.
        (false, false) => "its work is done and it is shutting down".into(),
    };
    let title = if a.title.is_empty() { "(no title yet)" } else { &a.title };
    format!(
        "{}  {}\n  {}\n  {work}; {screen}; process {} since {}\n",
        short(&a.session),
        clean::plain(title),
        clean::plain(&a.project),
        a.pid,
        minute(&a.since),
    )
}

/// The shortened id; a workbench that is starting has none yet.
fn short(id: &str) -> &str {
    if id.is_empty() { "(starting)" } else { id }
}

/// An RFC 3339 time as `2026-11-21 20:00`, in local time.
fn minute(time: &str) -> String {
    let local = time.parse::<jiff::Timestamp>().map(|t| t.to_zoned(jiff::tz::TimeZone::system()));
    local.map_or_else(|_| time.to_owned(), |t| t.strftime("%Y-%m-%d %H:%M").to_string())
}

/// The selected workbenches. Without a session: those of this project.
fn selected(
    setup: &Setup,
    folder: &Folder,
    selection: &Selection<'_>,
) -> Result<Vec<connection::RunningWorkbench>, Notice> {
    let here: Option<&Path> = (!selection.all && selection.session.is_none()).then_some(&setup.project);
    let mut found = connection::all(folder, here);
    if let Some(id) = selection.session {
        found.retain(|f| f.about.session.starts_with(id));
    }
    if found.is_empty() {
        let text = match selection.session {
            Some(id) => format!("No running workbench has a session that begins with '{id}'."),
            None if selection.all => "No workbench is running.".into(),
            None => "No workbench is running in this folder.".into(),
        };
        return Err(Notice::new(NoticeKind::User, text).hint("`tiller ps` lists all running workbenches."));
    }
    Ok(found)
}

/// The only one for which `fit` is true, or the only one; if there are several, the error names each.
fn only(
    mut found: Vec<connection::RunningWorkbench>,
    fit: impl Fn(&connection::RunningWorkbench) -> bool,
) -> Result<connection::RunningWorkbench, Notice> {
    if found.iter().any(&fit) {
        found.retain(fit);
    }
    if found.len() > 1 {
        let notice = Notice::new(NoticeKind::User, "Several workbenches are running here; name a session.");
        let row = |f: &connection::RunningWorkbench| format!("{}  {}", f.about.session, f.about.title);
        return Err(found.iter().map(row).fold(notice, Notice::hint));
    }
    found.pop().ok_or_else(|| Notice::new(NoticeKind::User, "No workbench is running."))
}

/// `tiller attach`.
pub(super) fn attach(setup: &Setup, session: Option<&str>, mode: AttachMode) -> Result<Exit, Notice> {
    let folder = folder(setup)?;
    let found = selected(setup, &folder, &Selection { session, all: false })?;
    let found = only(found, |f| f.about.screen.is_some() == (mode == AttachMode::Watch))?;
    join(setup, &folder, &found.name, mode)
}

/// Attaches this terminal until it is detached or the workbench ends.
fn join(setup: &Setup, folder: &Folder, name: &str, mode: AttachMode) -> Result<Exit, Notice> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Notice::new(NoticeKind::User, "Standard input and output must be a terminal."));
    }
    if let Some(why) = tiller_tui::app::ui::plain_because(false, &setup.config.config.ui, &*setup.env) {
        let text = format!("This terminal cannot show a full screen: {why}.");
        return Err(Notice::new(NoticeKind::User, text).hint("Attach from another terminal."));
    }
    connection::attach(folder, name, mode, &*setup.env).map(crate::commands::ended)
}

/// Before a new workbench is started: attaches to the one of this project that was detached last.
pub(super) fn reattach(setup: &Setup, open: &crate::commands::args::Open) -> Option<Result<Exit, Notice>> {
    let wants = open.prompt.is_none() && !open.new && !open.read_only;
    let plain = open.common.model.is_none() && open.common.profile.is_none();
    if !wants || !plain {
        return None;
    }
    // The workbench itself reports problems of the folder.
    let folder = folder(setup).ok()?;
    let mut found = connection::all(&folder, Some(&setup.project));
    found.retain(|f| f.about.screen.is_none() && !f.about.busy);
    if let Some(id) = &open.session {
        found.retain(|f| f.about.session.starts_with(id.as_str()));
    }
    // The workbench that was detached last; if that changes before the attempt, a new one is started.
    let last = found.into_iter().max_by(|a, b| a.about.left.cmp(&b.about.left))?;
    match join(setup, &folder, &last.name, AttachMode::Attach) {
        Err(_) => None,
        joined => Some(joined),
    }
}

/// Notices for a new screen: work that ended or still runs without a terminal.
pub(super) fn news(state: &Path, project: &Path) -> Vec<Notice> {
    let Ok(folder) = Folder::open(state) else { return Vec::new() };
    let mut all = Vec::new();
    for e in connection::ended(&folder, project) {
        let how = match e.status {
            Some(TurnStatus::Done) | None => "finished",
            Some(TurnStatus::Failed | TurnStatus::Store) => "failed",
            Some(TurnStatus::Interrupted) => "was interrupted",
            Some(TurnStatus::Refused) => "needed an answer",
            Some(TurnStatus::Limit) => "reached a budget or limit",
        };
        let title = if e.title.is_empty() { "A session" } else { &e.title };
        let text = format!("{} (detached) {how} at {}.", clean::plain(title), minute(&e.time));
        let hint = format!("`tiller --session {}` opens it, or use the session list.", e.session);
        all.push(Notice::new(NoticeKind::Info, text).hint(hint));
    }
    for f in connection::all(&folder, Some(project)) {
        if f.about.screen.is_none() && f.about.pid != std::process::id() {
            let text = format!("{} is still running here (detached).", clean::plain(&f.about.title));
            all.push(Notice::new(NoticeKind::Info, text).hint("`tiller attach` in a shell opens it."));
        }
    }
    all
}

/// `tiller detach`.
pub(super) fn detach(setup: &Setup, session: Option<&str>) -> Result<Exit, Notice> {
    let folder = folder(setup)?;
    let found = selected(setup, &folder, &Selection { session, all: false })?;
    let found = only(found, |f| f.about.screen.is_some())?;
    say(&format!("{}.\n", connection::detach(&folder, &found.name)?))
}

/// `tiller stop`.
pub(super) fn stop(setup: &Setup, selection: &Selection<'_>) -> Result<Exit, Notice> {
    let folder = folder(setup)?;
    let mut found = selected(setup, &folder, selection)?;
    if !selection.all {
        found = vec![only(found, |f| f.about.screen.is_none())?];
    }
    let mut text = String::new();
    for f in &found {
        let was = connection::stop(&folder, f)?;
        let title = if f.about.title.is_empty() { &f.about.project } else { &f.about.title };
        text.push_str(&format!(
            "Ended: {} (was running: {was}). `tiller -c` continues it.\n",
            clean::plain(title)
        ));
    }
    say(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whose_work_is_over_is_not_said_to_be_at_work() {
        let about = |work: &str, turn| About { work: work.into(), turn, ..About::default() };
        assert!(row(&about("a turn", true)).contains("  running: a turn; left; process"));
        let over = row(&about("nothing", false));
        assert!(
            over.contains("its work is done and it is shutting down; left") && !over.contains("running:")
        );
        let unknown = About { busy: true, ..about("unknown", false) };
        assert!(row(&unknown).contains("running: unknown"), "what does not answer may work");
    }
}
