//! The next step of each kind of task. Pure: the same request gives the same step.

mod add;
mod change;
mod crew;
mod fix;
mod init;
mod issues;
mod look;
mod memory;
mod moment;
mod talk;

use super::Step;
use super::intent::{self, Intent};
use super::turn::Turn;
use crate::codec::request::Request;

/// Maximum number of calls in one turn: no task needs as many, so this only ends faulty runs.
const CALLS: usize = 40;

/// Decides the next step.
pub(crate) fn next(request: &Request) -> Step {
    if request.tools.is_empty() {
        return talk::without_tools(request);
    }
    let turn = Turn::read(request, |said| intent::read(said) != Intent::Unknown);
    let intent = match &turn.loaded {
        // The message is about the skill that came with it.
        Some((name, _)) => Intent::Skill(name.clone()),
        None => intent::read(&turn.task),
    };
    let newest = turn.done.last().map_or(0, |d| d.reply);
    if let Some(no) = turn.done.iter().filter(|d| d.reply == newest).find(|d| d.prevented())
        && !recovers(&intent, no.name)
    {
        return talk::prevented(no);
    }
    if turn.done.len() >= CALLS {
        return Step::say("This took too many steps. Stopping here.");
    }
    let mut step = match &intent {
        Intent::Fix => fix::next(&turn),
        Intent::Add(what) => add::next(&turn, what),
        Intent::Explain(file) => look::explain(&turn, file.as_deref()),
        Intent::Search(what) => look::search(&turn, what),
        Intent::Recall(what) => look::recall(&turn, what),
        Intent::Remember(text) => memory::remember(&turn, text),
        Intent::Remembered => memory::remembered(&turn),
        Intent::Mistake => memory::mistake(&turn),
        Intent::Skill(name) => memory::skill(&turn, name),
        Intent::Count => look::count(&turn),
        Intent::AddIssue(title) => issues::add(&turn, title),
        Intent::Issues => issues::list(&turn),
        Intent::Init => init::next(&turn),
        Intent::Checkpoint(name) => moment::named(&turn, "checkpoint", name),
        Intent::Restore(name) => moment::named(&turn, "restore", name),
        Intent::Run(command) => look::run(&turn, command),
        Intent::Start(command) => look::start(&turn, command),
        Intent::Fetch(url) => look::fetch(&turn, url),
        Intent::Plan(items) => talk::plan(&turn, items),
        Intent::Delegate(parts) => crew::delegate(&turn, parts, false),
        Intent::Workflow(parts) => crew::delegate(&turn, parts, true),
        Intent::Spawn(goal) => crew::spawn(&turn, goal),
        Intent::Ask => talk::ask(&turn),
        Intent::Replace { old, new, file } => change::replace(&turn, old, new, file.as_deref()),
        Intent::Edit(file) => change::edit(&turn, file),
        Intent::Stop => Step::say("Stopped."),
        Intent::Help => talk::help(),
        Intent::Unknown => talk::unknown(&turn.task),
    };
    if let Some(aside) = &turn.aside {
        let said = shorten(aside, 60);
        let note =
            format!("I saw your note (\"{said}\"), but the demo does not understand it. Continuing.\n\n");
        step.text.insert_str(0, &note);
    }
    if let Some((missing, _)) = step.calls.iter().find(|(tool, _)| !turn.has(tool)) {
        return Step::say(format!(
            "The next step needs the tool `{missing}`, which is not enabled in this session."
        ));
    }
    step
}

/// Tasks that continue after an error of this tool, since they look for errors.
fn recovers(intent: &Intent, tool: &str) -> bool {
    matches!(
        (intent, tool),
        (Intent::Fetch(_), "web_fetch")
            | (Intent::Delegate(_) | Intent::Workflow(_), "delegate_task")
            | (Intent::Ask | Intent::Edit(_) | Intent::Start(_), "clarify")
            | (Intent::Explain(_) | Intent::Edit(_) | Intent::Replace { .. }, "read_file")
            | (Intent::Add(_) | Intent::Fix, "read_file")
    )
}

/// The first `limit` characters of the first line.
fn shorten(text: &str, limit: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut out: String = line.chars().take(limit).collect();
    if out.len() < line.len() || text.lines().nth(1).is_some() {
        out.push('…');
    }
    out
}

/// A line of `read_file`'s page without its number.
fn unnumbered(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| {
        let (number, text) = line.split_once('\t')?;
        number.trim().parse::<u64>().is_ok().then_some(text)
    })
}

/// The names in a listing: each line's first word without marks.
fn names(listing: &str) -> Vec<&str> {
    listing
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| name.trim_end_matches(['*', '/', '@']))
        .filter(|name| !name.starts_with('['))
        .collect()
}
