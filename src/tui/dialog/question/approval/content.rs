//! What the approval dialog says about a call, as lines. Everything in it is foreign: each character is
//! shown or spelled out, none is left away.

use tiller_protocol::ask::PermissionAsk;

use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::theme::Role;

/// Blanks in a row from which on they are pointed out.
const BLANKS: usize = 16;

/// The lines, and how many of them (from the first on) must have been on the screen one after the other
/// before a yes counts: the call itself and what is said about it. Of a difference the end is enough.
pub(crate) struct Content {
    pub(crate) lines: Vec<Line>,
    pub(crate) must: usize,
}

/// Makes them. `rule`: the pattern that "session" and "always" would allow, when it has no line of its
/// own below the buttons.
/// `also`: other agents that the answer is for.
pub(crate) fn content(p: &PermissionAsk, also: &[&str], rule: Option<&str>) -> Content {
    let mut lines: Vec<Line> = foreign(&p.shown, Role::Code);
    for w in warnings(&p.shown) {
        lines.push(Line::strict(&w, Look::of(Role::Hostile), Wrap::Word));
    }
    lines.push(about(p));
    if !p.effects.is_empty() {
        lines.push(labelled("effects: ", &p.effects.join("; "), Role::Text));
    }
    if !also.is_empty() {
        lines.push(labelled("also for: ", &also.join(", "), Role::Strong));
    }
    if let Some(rule) = rule {
        lines.push(labelled("always: ", &always(rule), Role::Text));
    }
    let must = lines.len();
    if let Some(diff) = &p.diff {
        lines.push(Line::new(Wrap::Word));
        lines.extend(difference(diff));
    }
    Content { lines, must }
}

/// What the rule means, in words.
pub(crate) fn always(rule: &str) -> String {
    format!("\"{rule}\"; anything else asks again")
}

/// Foreign text line by line. Only `\n` ends a line: a `\r` is spelled out.
fn foreign(text: &str, role: Role) -> Vec<Line> {
    text.split('\n').map(|l| Line::strict(l, Look::of(role), Wrap::Hard)).collect()
}

/// `in ~/api   why: ...   rule: ...`
fn about(p: &PermissionAsk) -> Line {
    let mut line = Line::new(Wrap::Word);
    let label = Look::of(Role::Dim);
    // That there is none needs no label.
    let rule = if p.has_rule() { "rule: " } else { "" };
    for (name, text) in [("in ", &p.folder), ("why: ", &p.why), (rule, &p.rule)] {
        if text.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push("   ", label);
        }
        line.push(name, label);
        line.push_strict(text, Look::of(Role::Text));
    }
    line
}

fn labelled(label: &str, text: &str, role: Role) -> Line {
    let mut line = Line::new(Wrap::Word);
    line.push(label, Look::of(Role::Dim));
    line.push_strict(text, Look::of(role));
    line
}

/// What an eye would miss.
fn warnings(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let marked = text.split('\n').any(|l| {
        let mut any = false;
        crate::text::clean::pieces(l, crate::text::clean::Mode::Strict, |p| {
            any |= matches!(p, crate::text::clean::Piece::Mark(_));
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

/// A unified difference, every line as it stands: nothing is interpreted, so nothing can hide.
fn difference(diff: &str) -> Vec<Line> {
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
