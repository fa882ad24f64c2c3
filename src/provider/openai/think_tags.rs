//! Separates thoughts that a chat server leaves in the text, between `<think>` and `</think>`.
//!
//! A tag counts where chat templates put it: before any text, or alone on its line outside of a code fence. Elsewhere
//! it is text about tags. A block that is never closed is a thought to the end.

/// Opening and closing forms.
const TAGS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
];

/// A piece of the stream after separation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Thought(String),
    /// All text so far was a thought: the template opened it in the prompt, so only the closing tag arrived.
    AllThought,
}

/// The separator's state between two pieces of one reply.
#[derive(Debug)]
pub(crate) struct ThinkTags {
    /// Text that may be the beginning of a tag.
    held: String,
    /// The expected closing tag, within a thought.
    inside: Option<&'static str>,
    /// Only blanks arrived so far, apart from thoughts.
    fresh: bool,
    /// Blanks since the beginning of the line; `None`: the line has other text.
    line: Option<String>,
    /// The text of the line while it can still become a fence.
    marks: String,
    fence: bool,
    /// Blank lines before the first word; dropped when a thought follows.
    lead: String,
    /// A thought was found: a closing tag alone has no meaning any more.
    thought: bool,
    /// The open thought contains a word.
    begun: bool,
}

impl Default for ThinkTags {
    fn default() -> Self {
        Self {
            held: String::new(),
            inside: None,
            fresh: true,
            line: Some(String::new()),
            marks: String::new(),
            fence: false,
            lead: String::new(),
            thought: false,
            begun: false,
        }
    }
}

impl ThinkTags {
    /// Processes the next piece of text.
    pub(crate) fn push(&mut self, more: &str, out: &mut Vec<Piece>) {
        // The common case: text that cannot contain a tag is passed on whole.
        let plain = self.held.is_empty() && self.inside.is_none() && !self.fresh && !self.fence;
        if plain && self.line.is_none() && self.marks.len() >= 3 && !more.contains('\n') {
            return text(more.to_owned(), out);
        }
        self.held.push_str(more);
        self.run(false, out);
    }

    /// Ends the text.
    pub(crate) fn finish(&mut self, out: &mut Vec<Piece>) {
        self.run(true, out);
        if self.inside.is_none() && !self.thought {
            text(std::mem::take(&mut self.lead), out);
        }
        if self.inside.is_none() && !self.fresh {
            text(self.line.take().unwrap_or_default(), out);
        }
    }

    fn run(&mut self, last: bool, out: &mut Vec<Piece>) {
        let all = std::mem::take(&mut self.held);
        let mut rest = all.as_str();
        while !rest.is_empty() {
            rest = match self.inside {
                Some(close) => match self.thoughts(rest, close, last, out) {
                    Some(rest) => rest,
                    None => return,
                },
                None => match self.words(rest, last, out) {
                    Some(rest) => rest,
                    None => return,
                },
            };
        }
    }

    /// Within a thought. `None`: the rest is kept for the next piece, or consumed.
    fn thoughts<'t>(
        &mut self,
        rest: &'t str,
        close: &'static str,
        last: bool,
        out: &mut Vec<Piece>,
    ) -> Option<&'t str> {
        let rest = if self.begun { rest } else { rest.trim_start() };
        self.begun |= !rest.is_empty() && !rest.starts_with(close) && !close.starts_with(rest);
        if let Some(at) = rest.find(close) {
            thought(rest[..at].trim_end().to_owned(), out);
            self.begun = false;
            self.lead.clear();
            self.inside = None;
            self.thought = true;
            self.line = Some(String::new());
            self.marks.clear();
            let after = &rest[at + close.len()..];
            // Line ends of the template belong to neither.
            return Some(if self.fresh { after.trim_start_matches(['\n', '\r']) } else { after });
        }
        // Trailing blanks belong to a tag that may follow.
        let kept = if last { 0 } else { held_back(rest, close) };
        let words = rest[..rest.len() - kept].trim_end().len();
        thought(rest[..words].to_owned(), out);
        self.held = if last { String::new() } else { rest[words..].to_owned() };
        None
    }

    /// Outside of a thought. One step: a blank, a tag, or text up to the end of the line.
    fn words<'t>(&mut self, rest: &'t str, last: bool, out: &mut Vec<Piece>) -> Option<&'t str> {
        if self.line.is_some() && !self.fence {
            // More than three blanks make the line code.
            let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            if blank > 0 {
                if let Some(line) = &mut self.line {
                    line.push_str(&rest[..blank]);
                }
                return Some(&rest[blank..]);
            }
            match self.tag(rest, last) {
                Tag::Opens(close, len) => {
                    self.lead.clear();
                    self.inside = Some(close);
                    self.line = Some(String::new());
                    return Some(&rest[len..]);
                }
                Tag::Closes(len) => {
                    out.push(Piece::AllThought);
                    self.thought = true;
                    self.fresh = true;
                    self.line = Some(String::new());
                    return Some(rest[len..].trim_start_matches(['\n', '\r']));
                }
                Tag::Perhaps => {
                    rest.clone_into(&mut self.held);
                    return None;
                }
                Tag::No => {}
            }
        }
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let (part, after) = rest.split_at(end);
        let blanks = self.line.take().unwrap_or_default();
        if self.fresh && part.trim().is_empty() {
            self.lead.push_str(&blanks);
            self.lead.push_str(part);
            self.line = Some(String::new());
            return Some(after);
        }
        self.fresh = false;
        let lead = std::mem::take(&mut self.lead);
        if !self.thought {
            text(lead, out);
        }
        if self.marks.len() < 3 {
            self.marks.push_str(part.trim_start().get(..3.min(part.trim_start().len())).unwrap_or("..."));
        }
        text(blanks + part, out);
        if part.ends_with('\n') {
            if self.marks.starts_with("```") || self.marks.starts_with("~~~") {
                self.fence = !self.fence;
            }
            self.marks.clear();
            self.line = Some(String::new());
        }
        Some(after)
    }

    /// The tag at the beginning of `rest`, which begins a line.
    fn tag(&self, rest: &str, last: bool) -> Tag {
        if !self.fresh && self.line.as_ref().is_some_and(|blanks| blanks.len() > 3) {
            return Tag::No;
        }
        let mut perhaps = false;
        for (open, close) in TAGS {
            if let Some(after) = rest.strip_prefix(open) {
                // In the middle of a text it must be alone on its line.
                let alone = after.trim_start_matches([' ', '\t', '\r']);
                return match (self.fresh, alone.starts_with('\n'), alone.is_empty() && !last) {
                    (true, _, _) | (_, true, _) => Tag::Opens(close, open.len()),
                    (_, _, true) => Tag::Perhaps,
                    _ => Tag::No,
                };
            }
            if !self.thought
                && !self.fresh
                && let Some(after) = rest.strip_prefix(close)
            {
                let alone = after.trim_start_matches([' ', '\t', '\r']);
                return match (alone.starts_with('\n') || last && alone.is_empty(), alone.is_empty()) {
                    (true, _) => Tag::Closes(close.len()),
                    (_, true) => Tag::Perhaps,
                    _ => Tag::No,
                };
            }
            perhaps |= !last && (open.starts_with(rest) || close.starts_with(rest));
        }
        if perhaps { Tag::Perhaps } else { Tag::No }
    }
}

enum Tag {
    /// The corresponding closing tag, and the length of this one.
    Opens(&'static str, usize),
    Closes(usize),
    /// Undecided until more text arrives.
    Perhaps,
    No,
}

/// Number of bytes at the end of `text` that may be the beginning of `tag`.
fn held_back(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|n| text.ends_with(&tag[..*n])).unwrap_or(0)
}

fn text(more: String, out: &mut Vec<Piece>) {
    match out.last_mut() {
        _ if more.is_empty() => {}
        Some(Piece::Text(before)) => before.push_str(&more),
        _ => out.push(Piece::Text(more)),
    }
}

fn thought(more: String, out: &mut Vec<Piece>) {
    match out.last_mut() {
        _ if more.is_empty() => {}
        Some(Piece::Thought(before)) => before.push_str(&more),
        _ => out.push(Piece::Thought(more)),
    }
}

#[cfg(test)]
#[path = "think_tags_tests.rs"]
mod tests;
