//! Packs: shows what one brings or what differs, asks, and installs, updates, removes or restores it.

use std::path::Path;

use serde_json::{Value, json};
use tiller_protocol::Notice;
use tiller_skills::Sources;
use tiller_skills::packs::{Change, Contents, Origin, Pack, PackFile, PackState, Source, changes};

use super::fetch::{self, Fetched, Interrupt, shown};
use super::user;
use crate::app::Setup;
use crate::app::extensions::packs;
use crate::commands::extensions::consent;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

/// Lines of a list that are shown.
const LINES: usize = 40;

/// How a decision is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
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
    asking: Asking,
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
        return renew(setup, before, &fetched, asking);
    }
    let contents = read(setup, &fetched.staged.folder, None)?;
    refuse(&contents, &fetched.staged.name)?;
    let head = describe(&fetched.staged.name, &fetched.origin, &contents);
    show(&fetched.staged.name, &fetched.origin, &contents, &head, asking)?;
    if !agreed("Install exactly these files?", asking)? {
        return say("Nothing was installed.\n");
    }
    put(setup, &fetched, "installed", asking)
}

/// Fetches installed packs again.
pub(super) fn update(setup: &Setup, name: Option<&str>, asking: Asking) -> Result<Exit, Notice> {
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
        match fetched.and_then(|fetched| renew(setup, pack, &fetched, asking)) {
            Ok(_) => {}
            // The others are looked at all the same.
            Err(notice) => exit = crate::commands::fail(&notice),
        }
    }
    Ok(exit)
}

/// Shows what differs from an installed pack, asks, and replaces it.
fn renew(setup: &Setup, before: &Pack, fetched: &Fetched, asking: Asking) -> Result<Exit, Notice> {
    let home = packs::home(setup);
    let name = &before.name;
    let folder = home.folder(before);
    let state = home.state(before);
    let differ = match folder.is_dir() {
        true => changes(&folder, &fetched.staged.folder).map_err(|why| user(format!("{name}: {why}.")))?,
        false => Vec::new(),
    };
    if differ.is_empty() && state == PackState::Used {
        if asking.json {
            return say(&json_line(&json!({ "name": name, "state": "up to date" })));
        }
        return say(&format!("{name} is up to date.\n"));
    }
    let contents = read(setup, &fetched.staged.folder, Some(before))?;
    refuse(&contents, name)?;
    let mut head = describe(name, &fetched.origin, &contents);
    if let (Some(old), Some(new)) = (&before.origin.commit, &fetched.origin.commit) {
        head.push_str(&format!("From commit {} to {}\n", short(old), short(new)));
    }
    if let PackState::Changed(files) = &state {
        head.push_str(&format!("Changes of yours would be replaced: {}\n", one_line(&files.join(", "))));
    }
    if asking.json {
        say(&json_line(
            &json!({ "name": name, "changes": differ.iter().map(change_json).collect::<Vec<_>>() }),
        ))?;
    } else {
        say(&format!("{head}{}{}", differences(&differ), oddities(&contents)))?;
    }
    if !agreed("Use exactly the new files?", asking)? {
        return say(&format!("{name} stays as it is.\n"));
    }
    put(setup, fetched, "updated", asking)
}

fn put(setup: &Setup, fetched: &Fetched, what: &str, asking: Asking) -> Result<Exit, Notice> {
    let pack = packs::home(setup)
        .install(&fetched.staged, fetched.origin.clone(), packs::now(setup))
        .map_err(|why| user(format!("It was not installed: {why}.")))?;
    done(
        &pack,
        what,
        &format!("{} is {what}. Its skills are used from the next session on.", pack.name),
        asking,
    )
}

fn done(pack: &Pack, state: &str, words: &str, asking: Asking) -> Result<Exit, Notice> {
    match asking.json {
        true => say(&json_line(&json!({ "name": pack.name, "state": state, "commit": pack.origin.commit }))),
        false => say(&format!("{words}\n")),
    }
}

/// Shows files that changed since the user agreed, asks, and agrees to them.
pub(super) fn trust(setup: &Setup, name: &str, asking: Asking) -> Result<Exit, Notice> {
    let home = packs::home(setup);
    let all = home.list().map_err(|why| user(format!("{why}.")))?;
    let pack = all.iter().find(|pack| pack.name == name).ok_or_else(|| no_such(name, &all))?;
    let files = match home.state(pack) {
        PackState::Used => {
            return done(pack, "used", &format!("{name} is as you agreed to it, and is used."), asking);
        }
        PackState::Broken(why) => {
            return Err(user(format!("{name} cannot be used: {why}."))
                .hint(format!("`tiller skills update {name}` fetches it again.")));
        }
        PackState::Changed(files) => files,
    };
    let contents = read(setup, &home.folder(pack), Some(pack))?;
    refuse(&contents, name)?;
    if !asking.json {
        let list = files.iter().map(|file| format!("  {}\n", one_line(file))).take(LINES).collect::<String>();
        say(&format!(
            "Changed since you agreed to {name}:\n{list}{}",
            describe(name, &pack.origin, &contents)
        ))?;
        say(&body(&contents))?;
    }
    if !agreed("Use exactly these files?", asking)? {
        return say(&format!("{name} is not used.\n"));
    }
    let pack = home.agree(name, packs::now(setup)).map_err(|why| user(format!("{why}.")))?;
    done(&pack, "used", &format!("{name} is used from the next session on."), asking)
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
    done(&pack, "removed", &words, Asking { yes: true, json })
}

/// Brings back what was removed or replaced.
pub(super) fn restore(setup: &Setup, name: &str, asking: Asking) -> Result<Exit, Notice> {
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
    if let PackState::Changed(files) = home.state(earlier) {
        return Err(user(format!(
            "{name} cannot be restored: {} changed since.",
            one_line(&files.join(", "))
        )));
    }
    let all = home.list().map_err(|why| user(format!("{why}.")))?;
    if let Some(now) = all.iter().find(|pack| pack.name == name)
        && !asking.json
    {
        let differ = changes(&home.folder(now), &home.folder(earlier));
        say(&differences(&differ.map_err(|why| user(format!("{name}: {why}.")))?))?;
        if !agreed("Use the earlier version?", asking)? {
            return say(&format!("{name} stays as it is.\n"));
        }
    }
    let pack = home.restore(name, packs::now(setup)).map_err(|why| user(format!("{why}.")))?;
    done(&pack, "restored", &format!("{name} is restored, and is used from the next session on."), asking)
}

pub(super) fn no_such(name: &str, all: &[Pack]) -> Notice {
    let notice = user(format!("No pack {} is installed.", shown(name)));
    let names: Vec<&str> = all.iter().map(|pack| pack.name.as_str()).collect();
    match names.is_empty() {
        true => notice,
        false => notice.hint(format!("Installed are {}.", names.join(", "))),
    }
}

/// Reads a pack, beside the skills of all other places.
fn read(setup: &Setup, folder: &Path, before: Option<&Pack>) -> Result<Contents, Notice> {
    let home = packs::home(setup);
    let (mut used, _) = home.verified().unwrap_or_default();
    if let Some(before) = before {
        used.retain(|folder| *folder != home.folder(before));
    }
    let others = Sources {
        built_in: true,
        packs: used,
        config: Some(setup.places.config.clone()),
        ..Sources::default()
    };
    Contents::read(folder, &others).map_err(|why| user(format!("The pack cannot be read: {why}.")))
}

fn refuse(contents: &Contents, name: &str) -> Result<(), Notice> {
    contents.refusal().map_or(Ok(()), |why| {
        Err(user(format!("{name} cannot be used: {}.", one_line(why.trim_end_matches('.')))))
    })
}

fn show(name: &str, origin: &Origin, contents: &Contents, head: &str, asking: Asking) -> Result<(), Notice> {
    if asking.json {
        say(&json_line(&contents_json(name, origin, contents)))?;
    } else {
        say(&format!("{head}{}", body(contents)))?;
    }
    Ok(())
}

/// Asks for a yes.
fn agreed(question: &str, asking: Asking) -> Result<bool, Notice> {
    let without =
        user("Nothing was changed: there is no terminal to ask on.").hint("Pass --yes if you agree.");
    consent::agreed(&format!("{question} Nothing of it is run now."), asking.yes, without)
}

/// The first lines: how much, and from where.
pub(super) fn describe(name: &str, origin: &Origin, contents: &Contents) -> String {
    let files = contents.scripts.len() + contents.others.len();
    let commit =
        origin.commit.as_deref().map(|commit| format!(" at commit {}", short(commit))).unwrap_or_default();
    format!(
        "{name}: {}, {}, {}\nFrom {}{commit}\n",
        count(contents.skills.len(), "skill"),
        count(files, "file"),
        size(contents.bytes),
        shown(&origin.source)
    )
}

/// What a pack brings: scripts first.
pub(super) fn body(contents: &Contents) -> String {
    let mut text = String::new();
    if contents.scripts.is_empty() {
        text.push_str("\nNo scripts\n");
    } else {
        text.push_str(
            "\nScripts, none of which is run now; when an agent runs one, it is judged like any command\n",
        );
        list(&mut text, &contents.scripts, script);
    }
    text.push_str("\nSkills\n");
    let wide = contents.skills.iter().map(|skill| skill.name.len()).max().unwrap_or_default();
    list(&mut text, &contents.skills, |skill| {
        let about: String = skill.description.chars().take(100).collect();
        let clash = skill.clash.as_deref().map(|clash| format!(" ({clash})")).unwrap_or_default();
        format!("{:wide$}  {}{clash}", skill.name, one_line(&about))
    });
    if !contents.left_out.is_empty() {
        text.push_str("\nLeft out\n");
        list(&mut text, &contents.left_out, |(name, why)| format!("{}: {}", one_line(name), one_line(why)));
    }
    text.push_str(&oddities(contents));
    if !contents.others.is_empty() {
        text.push_str("\nOther files\n");
        list(&mut text, &contents.others, |file| {
            format!("{:>9}  {}", size(file.bytes), one_line(&file.path))
        });
    }
    text.push('\n');
    text
}

fn oddities(contents: &Contents) -> String {
    let mut text = String::new();
    if !contents.remarks.is_empty() {
        text.push_str("\nLook at these lines\n");
        list(&mut text, &contents.remarks, |remark| {
            format!("{}:{}: {}", one_line(&remark.path), remark.line, one_line(&remark.text))
        });
    }
    text
}

fn script(file: &PackFile) -> String {
    let run = if file.executable { "executable" } else { "" };
    format!("{:>9}  {:10}  {}  {}", size(file.bytes), run, one_line(&file.path), one_line(&file.first))
        .trim_end()
        .to_owned()
}

fn list<T>(text: &mut String, items: &[T], line: impl Fn(&T) -> String) {
    for item in items.iter().take(LINES) {
        text.push_str(&format!("  {}\n", line(item)));
    }
    if items.len() > LINES {
        text.push_str(&format!("  and {} more\n", items.len() - LINES));
    }
}

/// The files that differ: programs first, then the lines of each.
fn differences(all: &[Change]) -> String {
    let mut sorted: Vec<&Change> = all.iter().collect();
    sorted.sort_by_key(|change| !change.executable);
    let mut text = String::from("\n");
    for change in &sorted {
        let run = if change.executable { " (executable)" } else { "" };
        text.push_str(&format!("{} {}{run}\n", change.kind.word(), one_line(&change.path)));
        for line in change.diff.lines() {
            text.push_str(&format!("  {}\n", one_line(line)));
        }
    }
    text.push('\n');
    text
}

fn change_json(change: &Change) -> Value {
    json!({ "path": change.path, "change": change.kind.word(), "executable": change.executable, "diff": change.diff })
}

/// A pack for programs.
pub(super) fn contents_json(name: &str, origin: &Origin, contents: &Contents) -> Value {
    let file =
        |file: &PackFile| json!({ "path": file.path, "bytes": file.bytes, "executable": file.executable });
    json!({
        "name": name, "source": origin.source, "commit": origin.commit, "bytes": contents.bytes,
        "scripts": contents.scripts.iter().map(file).collect::<Vec<_>>(),
        "skills": contents.skills.iter().map(|skill| json!({
            "name": skill.name, "description": skill.description, "clash": skill.clash,
        })).collect::<Vec<_>>(),
        "left_out": contents.left_out.iter().map(|(name, why)| json!({ "name": name, "why": why })).collect::<Vec<_>>(),
        "remarks": contents.remarks.iter().map(|remark| json!({
            "path": remark.path, "line": remark.line, "text": remark.text,
        })).collect::<Vec<_>>(),
        "files": contents.others.iter().map(file).collect::<Vec<_>>(),
    })
}

pub(super) fn short(commit: &str) -> String {
    one_line(&commit.chars().take(12).collect::<String>())
}

pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}
