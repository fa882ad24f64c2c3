//! Packs: shows what one brings or what differs, asks, and installs, updates, removes or restores it.

use std::path::Path;

use serde_json::json;
use tiller_protocol::Notice;
use tiller_skills::packs::{Change, Contents, Origin, Pack, PackState, Packs, Source, changes};
use tiller_skills::{PackSource, Sources};

use super::describe::{
    LINES, body, changes_json, contents_json, describe, differences, differences_json, short,
};
use super::fetch::{self, Candidate, Interrupt, shown};
use super::user;
use crate::app::Setup;
use crate::app::extensions::packs;
use crate::commands::extensions::consent::agreed;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

/// How a decision is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Consent {
    /// Agreed on the command line.
    pub(super) yes: bool,
    /// What is shown is JSON.
    pub(super) json: bool,
}

/// Fetches a pack, shows it, asks, and installs it.
pub(super) fn install(
    setup: &Setup,
    source: &str,
    name: Option<&str>,
    consent: Consent,
) -> Result<Exit, Notice> {
    let stop = Interrupt::listen();
    let fetched = fetch::fetch(setup, (fetch::source(source)?, source), name, &stop);
    if stop.hit() {
        return Ok(Exit::Interrupted);
    }
    drop(stop);
    let fetched = fetched?;
    let home = packs::home(setup);
    let installed = home.list().map_err(|why| user(format!("{why}.")))?;
    if let Some(before) = installed.iter().find(|pack| pack.name == fetched.staged.name) {
        if before.origin.source != fetched.origin.source {
            let name = &fetched.staged.name;
            return Err(user(format!(
                "A pack {name} from {} is installed already.",
                shown(&before.origin.source)
            ))
            .hint(format!(
                "Remove it with `tiller skills remove {name}`, or choose another name with --name."
            )));
        }
        return renew(setup, before, &fetched, consent);
    }
    let contents = read(setup, &fetched.staged.name, &fetched.staged.folder)?;
    refuse(&contents, &fetched.staged.name)?;
    let head = describe(&fetched.staged.name, &fetched.origin, &contents);
    show(&fetched.staged.name, &fetched.origin, &contents, &head, consent)?;
    if !ask("Install exactly these files?", consent)? {
        return unchanged(&fetched.staged.name, "Nothing was installed.", consent);
    }
    put(setup, &fetched, "installed", consent)
}

/// Fetches installed packs again.
pub(super) fn update(setup: &Setup, name: Option<&str>, consent: Consent) -> Result<Exit, Notice> {
    let home = packs::home(setup);
    let all = home.list().map_err(|why| user(format!("{why}.")))?;
    let chosen: Vec<&Pack> = all.iter().filter(|pack| name.is_none_or(|name| pack.name == name)).collect();
    if chosen.is_empty() {
        return match name {
            Some(name) => Err(no_such(name, &all)),
            None => say("No packs are installed.\n"),
        };
    }
    let mut exit = Exit::Done;
    for pack in chosen {
        let stop = Interrupt::listen();
        let text = pack.origin.source.as_str();
        // A name of the registry stays one, whatever the working folder has by that name.
        let source = match pack.origin.registry {
            Some(_) => Ok(Source::Registry(text.to_owned())),
            None => fetch::source(text),
        };
        let fetched = source.and_then(|source| fetch::fetch(setup, (source, text), Some(&pack.name), &stop));
        if stop.hit() {
            return Ok(Exit::Interrupted);
        }
        drop(stop);
        match fetched.and_then(|fetched| renew(setup, pack, &fetched, consent)) {
            Ok(_) => {}
            // The others are looked at all the same.
            Err(notice) => exit = crate::commands::fail(&notice),
        }
    }
    Ok(exit)
}

/// Shows what differs from an installed pack, asks, and replaces it.
fn renew(setup: &Setup, before: &Pack, fetched: &Candidate, consent: Consent) -> Result<Exit, Notice> {
    let home = packs::home(setup);
    let name = &before.name;
    let state = home.state(before);
    let differ = compare(&home, before, &fetched.staged.folder)?;
    if differ.is_empty() && state == PackState::Used {
        if consent.json {
            return say(&json_line(&json!({ "name": name, "state": "up to date" })));
        }
        return say(&format!("{name} is up to date.\n"));
    }
    let contents = read(setup, name, &fetched.staged.folder)?;
    refuse(&contents, name)?;
    let mut head = describe(name, &fetched.origin, &contents);
    if let (Some(old), Some(new)) = (&before.origin.commit, &fetched.origin.commit) {
        head.push_str(&format!("From commit {} to {}\n", short(old), short(new)));
    }
    if let PackState::Changed(files) = &state {
        head.push_str(&format!("Changes of yours would be replaced: {}\n", one_line(&files.join(", "))));
    }
    if consent.json {
        say(&json_line(&changes_json(name, &fetched.origin, &contents, &differ)))?;
    } else {
        let command = format!("tiller skills update {name}");
        say(&format!("{head}{}What differs\n{}", body(&contents), differences(&differ, &command)))?;
    }
    if !ask("Use exactly the new files?", consent)? {
        return unchanged(name, &format!("{name} stays as it is."), consent);
    }
    put(setup, fetched, "updated", consent)
}

/// When what a pack brings is there.
const WHEN: &str = "Open sessions find its skills by $ and its commands by / at once; agents are offered its skills from the next session on.";

fn put(setup: &Setup, fetched: &Candidate, what: &str, consent: Consent) -> Result<Exit, Notice> {
    let pack = packs::home(setup)
        .install(&fetched.staged, fetched.origin.clone(), packs::now(setup))
        .map_err(|why| user(format!("It was not installed: {why}.")))?;
    done(&pack, what, &format!("{} is {what}. {WHEN}", pack.name), consent)
}

fn done(pack: &Pack, state: &str, words: &str, consent: Consent) -> Result<Exit, Notice> {
    match consent.json {
        true => say(&json_line(&json!({ "name": pack.name, "state": state, "commit": pack.origin.commit }))),
        false => say(&format!("{words}\n")),
    }
}

/// Says that the answer was no.
fn unchanged(name: &str, words: &str, consent: Consent) -> Result<Exit, Notice> {
    match consent.json {
        true => say(&json_line(&json!({ "name": name, "state": "unchanged" }))),
        false => say(&format!("{words}\n")),
    }
}

/// What differs from an installed pack. Beside one that cannot be read all files are new.
fn compare(home: &Packs, before: &Pack, after: &Path) -> Result<Vec<Change>, Notice> {
    let fail = |why: String| user(format!("{}: {why}.", before.name));
    if let PackState::Broken(_) = home.state(before) {
        let empty =
            tempfile::tempdir().map_err(|e| fail(format!("there is no room for temporary files: {e}")))?;
        return changes(empty.path(), after).map_err(fail);
    }
    changes(&home.folder(before), after).map_err(fail)
}

/// Shows files that changed since the user agreed, asks, and agrees to them.
pub(super) fn trust(setup: &Setup, name: &str, consent: Consent) -> Result<Exit, Notice> {
    let home = packs::home(setup);
    let all = home.list().map_err(|why| user(format!("{why}.")))?;
    let pack = all.iter().find(|pack| pack.name == name).ok_or_else(|| no_such(name, &all))?;
    let files = match home.state(pack) {
        PackState::Used => {
            return done(pack, "used", &format!("{name} is as you agreed to it, and is used."), consent);
        }
        PackState::Broken(why) => {
            return Err(user(format!("{name} cannot be used: {why}."))
                .hint(format!("`tiller skills update {name}` fetches it again.")));
        }
        PackState::Changed(files) => files,
    };
    let contents = read(setup, name, &home.folder(pack))?;
    refuse(&contents, name)?;
    let differ = home.changes_since_consent(pack).map_err(|why| user(format!("{name}: {why}.")))?;
    if consent.json {
        let mut shown = contents_json(name, &pack.origin, &contents);
        shown["changed"] = json!(files);
        shown["changes"] = differences_json(&differ);
        say(&json_line(&shown))?;
    } else {
        let list = files.iter().map(|file| format!("  {}\n", one_line(file))).take(LINES).collect::<String>();
        say(&format!(
            "Changed since you agreed to {name}:\n{list}{}",
            describe(name, &pack.origin, &contents)
        ))?;
        let command = format!("tiller skills trust {name}");
        say(&format!("{}What differs\n{}", body(&contents), differences(&differ, &command)))?;
    }
    if !ask("Use exactly these files?", consent)? {
        return unchanged(name, &format!("{name} is not used."), consent);
    }
    let pack = home.agree(name, &contents.pins, packs::now(setup)).map_err(|why| user(format!("{why}.")))?;
    done(&pack, "used", &format!("{name} is used. {WHEN}"), consent)
}

/// Removes a pack.
pub(super) fn remove(setup: &Setup, name: &str, json: bool) -> Result<Exit, Notice> {
    let home = packs::home(setup);
    let all = home.list().map_err(|why| user(format!("{why}.")))?;
    if all.iter().all(|pack| pack.name != name) {
        return Err(no_such(name, &all));
    }
    let pack = home.remove(name, packs::now(setup)).map_err(|why| user(format!("{why}.")))?;
    let words = format!("{name} is removed. It can be restored for 30 days: `tiller skills restore {name}`.");
    done(&pack, "removed", &words, Consent { yes: true, json })
}

/// Brings back what was removed or replaced.
pub(super) fn restore(setup: &Setup, name: &str, consent: Consent) -> Result<Exit, Notice> {
    let home = packs::home(setup);
    let kept = home.removed().map_err(|why| user(format!("{why}.")))?;
    let Some(earlier) = kept.iter().rev().find(|pack| pack.name == name) else {
        let mut names: Vec<&str> = kept.iter().map(|pack| pack.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let notice = user(format!("No earlier version of {} is kept.", shown(name)));
        return Err(match names.is_empty() {
            true => notice,
            false => notice.hint(format!("Kept are {}.", names.join(", "))),
        });
    };
    // What was edited since the user agreed to it comes back as it was: kept, and not used.
    let changed = match home.state(earlier) {
        PackState::Used => None,
        PackState::Changed(files) => Some(files),
        PackState::Broken(why) => {
            let hint = format!("`tiller skills install {}` fetches it again.", shown(&earlier.origin.source));
            return Err(user(format!("{name} cannot be restored: {}.", one_line(&why))).hint(hint));
        }
    };
    let all = home.list().map_err(|why| user(format!("{why}.")))?;
    // Where nothing is replaced, the files are those that were agreed to once.
    if let Some(now) = all.iter().find(|pack| pack.name == name) {
        let differ = compare(&home, now, &home.folder(earlier))?;
        let contents = read(setup, name, &home.folder(earlier))?;
        if consent.json {
            say(&json_line(&changes_json(name, &earlier.origin, &contents, &differ)))?;
        } else {
            let command = format!("tiller skills restore {name}");
            let head = describe(name, &earlier.origin, &contents);
            say(&format!("{head}{}What differs\n{}", body(&contents), differences(&differ, &command)))?;
        }
        if !ask("Use the earlier version?", consent)? {
            return unchanged(name, &format!("{name} stays as it is."), consent);
        }
    }
    let pack = home.restore(earlier, packs::now(setup)).map_err(|why| user(format!("{why}.")))?;
    let Some(files) = changed else {
        let words = format!("{name} is restored. {WHEN}");
        return done(&pack, "restored", &words, consent);
    };
    let words = format!(
        "{name} is restored. It is not used, since {} changed after you agreed to it: `tiller skills trust {name}` shows it.",
        one_line(&files.join(", "))
    );
    done(&pack, "changed", &words, consent)
}

pub(super) fn no_such(name: &str, all: &[Pack]) -> Notice {
    let notice = user(format!("No pack {} is installed.", shown(name)));
    let names: Vec<&str> = all.iter().map(|pack| pack.name.as_str()).collect();
    match names.is_empty() {
        true => notice,
        false => notice.hint(format!("Installed are {}.", names.join(", "))),
    }
}

/// Reads a pack by its name and folder, beside the skills of all other places. An installed pack of this name does not count: it
/// is the same, or is replaced.
pub(super) fn read(setup: &Setup, name: &str, folder: &Path) -> Result<Contents, Notice> {
    let (mut used, _) = packs::home(setup).verified().unwrap_or_default();
    used.retain(|other| other.name.as_deref() != Some(name));
    let others = Sources {
        built_in: true,
        packs: used,
        config: Some(setup.places.config.clone()),
        ..Sources::default()
    };
    let pack = PackSource { name: Some(name.to_owned()), ..PackSource::unpinned(folder) };
    Contents::read(&pack, &others).map_err(|why| user(format!("The pack {name} cannot be read: {why}.")))
}

fn refuse(contents: &Contents, name: &str) -> Result<(), Notice> {
    contents.refusal().map_or(Ok(()), |why| {
        Err(user(format!("{name} cannot be used: {}.", one_line(why.trim_end_matches('.')))))
    })
}

fn show(
    name: &str,
    origin: &Origin,
    contents: &Contents,
    head: &str,
    consent: Consent,
) -> Result<(), Notice> {
    if consent.json {
        say(&json_line(&contents_json(name, origin, contents)))?;
    } else {
        say(&format!("{head}{}", body(contents)))?;
    }
    Ok(())
}

/// Asks for a yes.
fn ask(question: &str, consent: Consent) -> Result<bool, Notice> {
    let without =
        user("Nothing was changed: there is no terminal to ask on.").hint("Pass --yes if you agree.");
    agreed(&format!("{question} Nothing of it is run now."), consent.yes, without)
}
