//! Restoring an earlier message, and the commands of the full screen that work without it.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::restore::{RestorePreview, RestoreWhat};
use tiller_protocol::{CommandBody, EntryId, Origin};

use super::Plain;
use crate::app::effect::{Effect, Request};
use crate::model::conversation::Body;
use crate::slash;

/// Shown in the list of commands.
pub(super) const HELP: &str =
    "messages to restore to; rewind NUMBER: preview; rewind NUMBER files, talk or both: restore";

/// Commands of the full screen that are worth naming here; the others work as well, if they can.
pub(super) const MORE: &[&str] = &["branch", "checkpoint", "goal", "plan", "redo", "spawn", "undo"];

/// `/rewind`.
pub(super) fn rewind(p: &mut Plain, text: &str) -> Result<(), String> {
    let all = messages(p);
    let (number, what) = text.split_once(' ').unwrap_or((text, ""));
    if number.is_empty() {
        let lines: Vec<String> =
            all.iter().enumerate().map(|(i, (_, t))| format!("{}: {t}", i + 1)).collect();
        p.say(&format!("Messages: {}\n{}", lines.len(), lines.join("\n")));
        return Ok(());
    }
    let entry = super::command::numbered(number, all.len()).map(|i| all[i].0)?;
    let what = match what.trim() {
        "" => {
            p.send(CommandBody::Query(Query::RestorePreview { entry }));
            return Ok(());
        }
        "files" => RestoreWhat::Files,
        "talk" => RestoreWhat::Talk,
        "both" => RestoreWhat::Both,
        _ => return Err("add files, talk or both after the number".into()),
    };
    let (keep, force, parts) = (Vec::new(), Vec::new(), Vec::new());
    p.send(CommandBody::Session(SessionCommand::Restore { entry, what, keep, force, parts }));
    Ok(())
}

/// The person's messages, oldest first, each in one line.
fn messages(p: &Plain) -> Vec<(EntryId, String)> {
    let line = |text: &str| text.lines().next().unwrap_or_default().chars().take(80).collect::<String>();
    let cells = p.model.agent.conversation.cells().iter();
    cells
        .filter_map(|c| match &c.body {
            Body::User { text, origin: Origin::Prompt | Origin::Task, .. } => Some((c.entry?, line(text))),
            _ => None,
        })
        .collect()
}

/// Returns what going back would do, read out.
pub(super) fn preview(v: &RestorePreview) -> String {
    let mut lines =
        vec![format!("Restoring to \"{}\" would change {} files.", v.title, v.files.len() + v.more)];
    for f in &v.files {
        let stays = f.conflict.as_ref().map_or_else(String::new, |why| format!(", but is kept: {why}"));
        lines.push(format!("{}: plus {} minus {}{stays}", f.path, f.added, f.removed));
    }
    lines.extend(v.left.iter().map(|l| format!("Always kept: {l}")));
    lines.extend(v.notes.iter().cloned());
    lines.push("To restore: /rewind NUMBER files, talk or both. To revert that: /undo.".into());
    lines.join("\n")
}

/// A command of the full screen, when all that it does can be done in lines.
pub(super) fn elsewhere(p: &mut Plain, name: &str, text: &str) -> Option<Result<(), String>> {
    let command = slash::COMMANDS.find(name)?;
    let effects = match command.run(text, &p.model) {
        Ok(effects) => effects,
        Err(why) => return Some(Err(why.trim_end_matches('.').to_owned())),
    };
    let fits = |e: &Effect| match e {
        Effect::Command(Request { to: None, token: None, .. }) | Effect::Toast(_) => true,
        Effect::Act(a) => a.0 == "global.quit",
        _ => false,
    };
    if effects.is_empty() || !effects.iter().all(fits) {
        return Some(Err(format!("/{} needs the full screen", command.name())));
    }
    for e in effects {
        match e {
            Effect::Command(request) => p.send(request.body),
            Effect::Toast(n) => p.notice(&n),
            _ => p.quit(),
        }
    }
    Some(Ok(()))
}
