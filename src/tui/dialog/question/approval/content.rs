//! The text of the approval dialog about a call, as lines. Everything in it is foreign: each character is
//! shown or spelled out, none is left away.

use tiller_protocol::ToolVerb;
use tiller_protocol::ask::{AskReason, AskedCall, PermissionAsk, Risk};

use crate::text::clean::{self, Mode, Piece};
use crate::text::diff::{Hunk, Patch};
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::sheet::Highlight;
use crate::theme::Role;
use crate::widget::diff::{self, DiffLayout, DiffText};

/// Blanks in a row from which on they are pointed out.
const BLANKS: usize = 16;

/// The lines of a question. All of them must have been on the screen before a yes counts: those before the difference
/// one after the other, of the difference the end, and those after it.
pub(crate) struct Content {
    pub(crate) text: DiffText,
    /// Lines before the difference.
    pub(crate) head: usize,
    /// Number of the first line after it.
    pub(crate) tail: usize,
}

/// The parts that stand elsewhere in the dialog, and so not in its text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Elsewhere<'a> {
    /// The target stands in the title.
    pub(crate) target: bool,
    /// The pattern that "session" and "always" would allow, when it does not stand on a button.
    pub(crate) rule: Option<&'a str>,
    /// Other agents that the answer is for.
    pub(crate) also: &'a [&'a str],
    pub(crate) ascii: bool,
}

/// Makes them.
pub(crate) fn content(p: &PermissionAsk, e: Elsewhere<'_>, colours: &mut impl Highlight) -> Content {
    let mut text = DiffText::default();
    if !e.target {
        foreign(&p.shown, Role::Strong).into_iter().for_each(|l| text.push(l));
        for w in warnings(&p.shown) {
            text.push(Line::strict(&w, Look::of(Role::Hostile), Wrap::Word));
        }
    }
    let head = text.lines.len();
    if let Some(diff) = &p.diff {
        let target = target(p).map_or_else(|| p.shown.clone(), |target| target.name);
        text.append(difference(diff, &target, e.ascii, colours));
    }
    let tail = text.lines.len();
    text.push(reasons(p));
    if let Some(source) = &p.source {
        text.push(labelled("From: ", &source.to_string(), Role::Strong));
    }
    if !p.why.is_empty() {
        text.push(labelled("The agent's reason: ", &p.why, Role::Text));
    }
    if !e.also.is_empty() {
        text.push(labelled("Also for: ", &e.also.join(", "), Role::Strong));
    }
    if let Some(rule) = e.rule {
        text.push(labelled("Always allows: ", &rule_words(p, rule), Role::Text));
    }
    Content { text, head, tail }
}

/// One of the calls that the answer is for: its difference, or its exact text with what an eye would miss in it.
pub(super) fn asked_call(call: &AskedCall, ascii: bool, colours: &mut impl Highlight) -> DiffText {
    if call.diff {
        return difference(&call.detail, &call.title, ascii, colours);
    }
    let mut text = DiffText::default();
    foreign(&call.detail, Role::Text).into_iter().for_each(|l| text.push(l));
    for w in warnings(&call.detail) {
        text.push(Line::strict(&w, Look::of(Role::Hostile), Wrap::Word));
    }
    text
}

/// Foreign text line by line. Only `\n` ends a line: a `\r` is spelled out.
fn foreign(text: &str, role: Role) -> Vec<Line> {
    text.split('\n').map(|l| Line::strict(l, Look::of(role), Wrap::Hard)).collect()
}

/// The part of an effect that the verb, the target and the reason do not say already; empty: none.
fn beside_target<'e>(p: &PermissionAsk, effect: &'e str) -> &'e str {
    if matches!(p.verb, ToolVerb::Shell | ToolVerb::Script) {
        return effect;
    }
    let targets = || p.shown.split('\n');
    let done = effect.strip_prefix("writes ").or_else(|| effect.strip_prefix("changes ")).unwrap_or(effect);
    if effect == p.shown || targets().any(|target| target == done) {
        return "";
    }
    let why = targets().find_map(|target| done.strip_prefix(target)?.strip_prefix(": "));
    let what = targets().find_map(|target| effect.strip_suffix(target)?.strip_suffix(": "));
    match why.filter(|_| done != effect) {
        Some(why) if why == p.rule.text() => "",
        Some(why) => why,
        None => what.unwrap_or(effect),
    }
}

/// One paragraph: effects of the call besides those that its difference shows, why it is asked, and where it runs.
fn reasons(p: &PermissionAsk) -> Line {
    let mut effects: Vec<&str> = Vec::new();
    for effect in p.effects.iter().map(|effect| beside_target(p, effect)) {
        if !effect.is_empty() && !effects.contains(&effect) {
            effects.push(effect);
        }
    }
    let mut line = Line::new(Wrap::Word);
    if !effects.is_empty() {
        let role = if p.risk == Risk::High { Role::Error } else { Role::Text };
        line.push_strict(&sentence(&effects.join("; ")), Look::of(role));
        line.push(" ", Look::of(Role::Text));
    }
    let look = Look::of(Role::Dim);
    match p.rule {
        AskReason::NoRule => line.push(sentence(p.rule.text()).trim_end_matches('.'), look),
        _ => {
            line.push("Asked because: ", look);
            line.push_strict(p.rule.text(), look);
        }
    }
    let only_edits = p.calls.iter().all(|call| call.diff);
    if p.verb == ToolVerb::Memory {
        line.push(". /memory undoes it.", look);
    } else if p.diff.is_some() && p.risk == Risk::Low && only_edits {
        // An agent's own folder is not this one.
        let inside = if p.shown.starts_with('/') { "Can" } else { "Inside this folder; can" };
        line.push(&format!(". {inside} be undone."), look);
    } else if p.folder.is_empty() {
        line.push(".", look);
    } else {
        line.push(". Runs in ", look);
        line.push_strict(&p.folder, look);
        line.push(".", look);
    }
    line
}

/// The pattern of a rule in the words of the dialog: `edit src/**` for `edit_file(src/**)`, and the command alone for one of
/// the shell, in quotes. A pattern of another form, or of another tool than the call's, stays as it is.
pub(super) fn rule_words(p: &PermissionAsk, pattern: &str) -> String {
    let argument = |part: &str| -> Option<String> {
        let argument = part.strip_prefix(p.tool.as_str())?.strip_prefix('(')?.strip_suffix(')')?;
        if argument == "*" {
            return None;
        }
        Some(if p.verb == ToolVerb::Shell {
            argument.to_owned()
        } else {
            format!("{} {argument}", p.wants())
        })
    };
    let parts: Option<Vec<String>> = pattern.split(" && ").map(argument).collect();
    let words = parts.map_or_else(|| pattern.to_owned(), |parts| parts.join("\" and \""));
    format!("\"{}\"", clean::plain(&words))
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let dot = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{dot}", chars.as_str())
}

fn labelled(label: &str, text: &str, role: Role) -> Line {
    let mut line = Line::new(Wrap::Word);
    line.push(label, Look::of(Role::Dim));
    line.push_strict(text, Look::of(role));
    line
}

/// Nothing in it needs to be spelled out or pointed out, so it can stand in a title.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains('\n') && clean::plain(text) == text && warnings(text).is_empty()
}

/// Returns what an eye would miss.
fn warnings(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let marked = text.split('\n').any(|l| {
        let mut any = false;
        clean::pieces(l, Mode::Strict, |p| {
            any |= matches!(p, Piece::Mark(_));
        });
        any
    });
    if marked {
        out.push("! Contains invisible or misleading characters; they are spelled out above".to_owned());
    }
    let run = |l: &str| l.as_bytes().chunk_by(|a, b| a == b).any(|c| c[0] == b' ' && c.len() >= BLANKS);
    if text.split('\n').any(|l| run(l) || l.ends_with(' ')) {
        out.push("! Contains long or trailing blanks; read to the end".to_owned());
    }
    out
}

/// Lines added and removed by a difference that can be drawn as one.
pub(crate) fn counts(diff: &str) -> Option<(u32, u32)> {
    let files = files(diff)?;
    let all = files.iter().flat_map(|(_, patch)| &patch.hunks).map(Hunk::count);
    let (added, removed) = all.fold((0, 0), |a, c| (a.0 + c.0, a.1 + c.1));
    Some((u32::try_from(added).unwrap_or(u32::MAX), u32::try_from(removed).unwrap_or(u32::MAX)))
}

/// `target` names the file, so that a header with its path would only repeat that.
fn is_named(target: &str, path: &str) -> bool {
    target.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with(['/', ' ']))
        && !target.contains('\n')
}

/// The difference as all diffs are drawn; without a header where `target` names the only file. A diff that is not
/// understood to its last line is shown as it stands, so that nothing can hide in it.
fn difference(diff: &str, target: &str, ascii: bool, colours: &mut impl Highlight) -> DiffText {
    let mut text = DiffText::default();
    let Some(files) = files(diff) else {
        as_it_stands(diff).into_iter().for_each(|l| text.push(l));
        return text;
    };
    let o = DiffLayout::new(0, ascii).unified();
    let one = files.len() == 1;
    for (path, patch) in &files {
        if !one || !is_named(target, path) {
            text.push(Line::strict(path, Look::of(Role::Strong), Wrap::Hard));
        }
        for (n, hunk) in patch.hunks.iter().enumerate() {
            if n > 0 {
                text.push(diff::between(hunk, ascii));
            }
            text.append(diff::hunk(hunk, path, o, colours));
        }
    }
    text
}

/// Path and hunks of each file. `None`: a line of the difference would not be shown.
fn files(diff: &str) -> Option<Vec<(String, Patch)>> {
    let mut files: Vec<(String, Patch)> = Vec::new();
    let lines: Vec<&str> = diff.strip_suffix('\n').unwrap_or(diff).split('\n').collect();
    let begins = |n: usize| {
        lines[n].starts_with("--- ")
            && lines.get(n + 1).is_some_and(|l| l.starts_with("+++ "))
            && lines.get(n + 2).is_some_and(|l| l.starts_with("@@ -"))
    };
    let mut n = 0;
    while n < lines.len() {
        if !begins(n) {
            return None;
        }
        let path = path(lines[n], lines[n + 1])?;
        // A line of a hunk can look like the beginning of a file: the counts of the hunks decide.
        let mut end = n + 2;
        let patch = loop {
            end = (end + 1..lines.len()).find(|m| begins(*m)).unwrap_or(lines.len());
            let patch = Patch::read(&lines[n..end].join("\n"));
            let shown: usize = patch.hunks.iter().map(|h| h.lines.len() + 1).sum();
            let whole = patch.hunks.iter().all(Hunk::is_whole);
            if whole && shown + patch.header.len() == end - n && patch.header.len() == 2 {
                break patch;
            }
            if end == lines.len() {
                return None;
            }
        };
        files.push((path, patch));
        n = end;
    }
    Some(files)
}

/// The path that a file has after the change, or had before it was deleted, or both; `None`: it does not say.
fn path(old: &str, new: &str) -> Option<String> {
    let part = |line: &str, sign: &str, prefix: &str| -> Option<String> {
        let path = line.strip_prefix(sign)?;
        (path != "/dev/null").then(|| path.strip_prefix(prefix).unwrap_or(path).to_owned())
    };
    let (old, new) = (part(old, "--- ", "a/"), part(new, "+++ ", "b/"));
    match (&old, &new) {
        (Some(a), Some(b)) if a != b => Some(moved(a, b)),
        _ => new.or(old),
    }
}

/// Both names of a file that moves.
fn moved(old: &str, new: &str) -> String {
    format!("{old} to {new}")
}

/// The thing that a call is done to, in one line.
pub(super) struct Target {
    pub(super) name: String,
    /// A file gets another name, and both stand in `name`.
    pub(super) moves: bool,
}

/// The path or URL of a call, or both paths of a file that moves; `None`: there are more, or something in it needs to be
/// spelled out.
pub(super) fn target(p: &PermissionAsk) -> Option<Target> {
    if is_plain(&p.shown) {
        return Some(Target { name: p.shown.clone(), moves: false });
    }
    let (old, new) = p.shown.split_once('\n').filter(|(old, new)| is_plain(old) && is_plain(new))?;
    let name = moved(old, new);
    let files = files(p.diff.as_deref()?)?;
    matches!(&files[..], [(path, _)] if *path == name).then_some(Target { name, moves: true })
}

/// Every line as it is in the text.
fn as_it_stands(diff: &str) -> Vec<Line> {
    let body: Vec<&str> = diff.strip_suffix('\n').unwrap_or(diff).split('\n').collect();
    // Files with \r\n would show a mark on every line.
    let content =
        |l: &&&str| l.starts_with(['+', '-', ' ']) && !l.starts_with("+++") && !l.starts_with("---");
    let crlf = body.iter().filter(content).all(|l| l.ends_with('\r'));
    body.iter()
        .map(|l| {
            let l = if crlf { l.strip_suffix('\r').unwrap_or(l) } else { l };
            let role = match l.as_bytes().first() {
                Some(b'@') => Role::Dim,
                _ if l.starts_with("+++ ") || l.starts_with("--- ") => Role::Strong,
                Some(b'+') => Role::Added,
                Some(b'-') => Role::Removed,
                _ => Role::Text,
            };
            // A row that goes on keeps its sign, so that it is never taken for context.
            match (role, l.get(1..)) {
                (Role::Added | Role::Removed, Some(rest)) => {
                    let sign = Gutter::new(&l[..1], role);
                    let mut line = Line::strict(rest, Look::of(role), Wrap::Hard);
                    line.first = sign.clone();
                    line.rest = sign;
                    line
                }
                _ => Line::strict(l, Look::of(role), Wrap::Hard),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::widget::diff::Uncoloured;

    const ONE: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";

    #[test]
    fn a_difference_is_split_by_files_and_one_that_is_not_understood_is_shown_as_it_stands() {
        assert_eq!(counts(ONE), Some((1, 1)));
        let two = format!("{ONE}--- /dev/null\n+++ b/new.rs\n@@ -0,0 +1 @@\n+--- a/fake\n");
        let files = files(&two).unwrap();
        assert_eq!(files.iter().map(|(p, _)| p.as_str()).collect::<Vec<_>>(), ["x.rs", "new.rs"]);
        assert_eq!(counts(&two), Some((2, 1)));
        let lines = difference("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "y", false, &mut Uncoloured).lines;
        assert_eq!(lines[0].text(), "x to y", "both names of a file that moves are seen");
        for odd in [
            "garbage",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+not counted\n",
            "index 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        ] {
            assert_eq!(counts(odd), None, "{odd}");
            let lines = difference(odd, "x", false, &mut Uncoloured).lines;
            assert_eq!(lines.len(), odd.trim_end().lines().count(), "every line of it: {odd}");
        }
    }

    /// A removed line that looks like the header of a file is a line.
    #[test]
    fn no_line_can_hide_as_a_header() {
        let sly = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n--- a/y\n+++ b/y\n@@ -1,0 +1,0 @@\n";
        let lines = difference(sly, "x", false, &mut Uncoloured).lines;
        let all: String = lines.iter().map(|l| format!("{}{}\n", l.first.text, l.text())).collect();
        assert_eq!(lines.len(), sly.lines().count(), "{all}");
        assert!(all.contains("--- a/y") && all.contains("+++ b/y"), "{all}");
        // As lines of a hunk whose counts include them, they are drawn with their signs.
        let fair = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n--- a/y\n+++ b/y\n";
        let lines = difference(fair, "x", false, &mut Uncoloured).lines;
        let all: String = lines.iter().map(|l| format!("{}{}\n", l.first.text, l.text())).collect();
        assert!(all.contains("−  -- a/y") && all.contains("+  ++ b/y"), "{all}");
    }
}
