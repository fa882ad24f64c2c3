//! What a pack brings and what differs between two versions, for the question: as text, and as JSON.

use serde_json::{Value, json};
use tiller_skills::packs::{Change, ChangeKind, Contents, Origin, PackExtra, PackFile};

use super::fetch::shown;
use crate::commands::sessions::one_line;

/// Lines of a list that are shown. Scripts and odd lines are shown all.
pub(super) const LINES: usize = 40;
/// Lines of the difference of a file that are shown, unless it is a script.
const DIFFERENCE: usize = 200;

/// The first lines: how much, and from where.
pub(super) fn describe(name: &str, origin: &Origin, contents: &Contents) -> String {
    let files = contents.scripts.len() + contents.others.len() + contents.extras.len();
    let commit =
        origin.commit.as_deref().map(|commit| format!(" at commit {}", short(commit))).unwrap_or_default();
    let from = match origin.is_built_in() {
        true => "Built in".to_owned(),
        false => format!("From {}", shown(&origin.source)),
    };
    format!(
        "{name}: {}, {}, {}\n{from}{commit}\n",
        count(contents.skills.len(), "skill"),
        count(files, "file"),
        size(contents.bytes),
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
        list(&mut text, &contents.scripts, usize::MAX, script);
    }
    text.push_str("\nSkills\n");
    let wide = contents.skills.iter().map(|skill| skill.name.len()).max().unwrap_or_default();
    list(&mut text, &contents.skills, LINES, |skill| {
        let about: String = skill.description.chars().take(100).collect();
        let clash = skill.clash.as_deref().map(|clash| format!(" ({clash})")).unwrap_or_default();
        format!("{:wide$}  {}{clash}", skill.name, one_line(&about))
    });
    for (head, style) in [("Commands", false), ("Output styles", true)] {
        let these: Vec<&PackExtra> = contents.extras.iter().filter(|extra| extra.style == style).collect();
        if !these.is_empty() {
            text.push_str(&format!("\n{head}\n"));
            list(&mut text, &these, if style { LINES } else { usize::MAX }, |extra| extra_line(extra));
        }
    }
    if !contents.left_out.is_empty() {
        text.push_str("\nLeft out\n");
        list(&mut text, &contents.left_out, LINES, |(name, why)| {
            format!("{}: {}", one_line(name), one_line(why))
        });
    }
    text.push_str(&oddities(contents));
    if !contents.others.is_empty() {
        text.push_str("\nOther files\n");
        list(&mut text, &contents.others, LINES, |file| {
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
        list(&mut text, &contents.remarks, usize::MAX, |remark| {
            format!("{}:{}: {}", one_line(&remark.path), remark.line, one_line(&remark.text))
        });
    }
    text
}

/// A command with what it has run: the person agrees to it with the pack, and the call is judged when it is made.
fn extra_line(extra: &PackExtra) -> String {
    let about: String = extra.description.chars().take(100).collect();
    let name = if extra.style { extra.name.clone() } else { format!("/{}", extra.name) };
    let runs: Vec<String> = extra.runs.iter().map(|command| format!("`{}`", one_line(command))).collect();
    let runs = if runs.is_empty() { String::new() } else { format!("  (runs {})", runs.join(", ")) };
    format!("{name}  {}{runs}", one_line(&about)).trim_end().to_owned()
}

fn script(file: &PackFile) -> String {
    let run = if file.executable { "executable" } else { "" };
    format!("{:>9}  {:10}  {}  {}", size(file.bytes), run, one_line(&file.path), one_line(&file.first))
        .trim_end()
        .to_owned()
}

/// Adds the first items as lines, `most` of them.
fn list<T>(text: &mut String, items: &[T], most: usize, line: impl Fn(&T) -> String) {
    for item in items.iter().take(most) {
        text.push_str(&format!("  {}\n", line(item)));
    }
    if items.len() > most {
        text.push_str(&format!("  and {} more\n", items.len() - most));
    }
}

/// The files that differ: scripts first and whole, then the others with their first lines. `command`: the command that shows
/// the rest with `--json`.
pub(super) fn differences(all: &[Change], command: &str) -> String {
    let mut sorted: Vec<&Change> = all.iter().collect();
    sorted.sort_by_key(|change| !change.script);
    let mut text = String::from("\n");
    for change in &sorted {
        let mark = match (change.executable, change.script) {
            (true, _) => " (executable)",
            (false, true) => " (script)",
            (false, false) => "",
        };
        text.push_str(&format!("{} {}{mark}\n", change.kind.word(), one_line(&change.path)));
        if change.gone && change.kind == ChangeKind::Removed {
            text.push_str("  (its text was not kept)\n");
        } else if change.gone {
            text.push_str("  (its earlier text was not kept: read the file before you agree)\n");
        } else if change.unshown {
            text.push_str("  (not text, or too large: its lines are not shown)\n");
        }
        let most = if change.script { usize::MAX } else { DIFFERENCE };
        for line in change.diff.lines().take(most) {
            text.push_str(&format!("  {}\n", one_line(line)));
        }
        let hidden = change.diff.lines().count().saturating_sub(most);
        if hidden > 0 {
            text.push_str(&format!(
                "  ({} not shown here; `{command} --json` prints all)\n",
                count(hidden, "more line")
            ));
        }
    }
    text.push('\n');
    text
}

/// The differences for programs.
pub(super) fn differences_json(differ: &[Change]) -> Value {
    differ.iter().map(change_json).collect()
}

/// A new version of a pack for programs: what it brings, and what differs.
pub(super) fn changes_json(name: &str, origin: &Origin, contents: &Contents, differ: &[Change]) -> Value {
    let mut all = contents_json(name, origin, contents);
    all["changes"] = differences_json(differ);
    all
}

fn change_json(change: &Change) -> Value {
    json!({
        "path": change.path, "change": change.kind.word(), "executable": change.executable,
        "script": change.script, "diff": change.diff, "unshown": change.unshown,
    })
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
        "commands": contents.extras.iter().filter(|extra| !extra.style).map(|extra| json!({
            "name": extra.name, "description": extra.description, "runs": extra.runs,
        })).collect::<Vec<_>>(),
        "styles": contents.extras.iter().filter(|extra| extra.style).map(|extra| json!({
            "name": extra.name, "description": extra.description,
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
