//! Characters that cannot be shown, and the pictures in their place. A model that writes a picture means the character:
//! [`Shown`] finds where, and [`restore`] puts it back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use similar::{Algorithm, DiffOp};

use crate::ToolError;
use crate::files::content::encoding::stray;
use crate::files::content::ends::split;
use crate::text::{is_picture, picture};

/// Time for the comparison of old and new lines.
const TIMEOUT: Duration = Duration::from_millis(300);

/// Says whether `text` may have pictures in it.
pub(crate) fn has(text: &str) -> bool {
    text.contains(is_picture)
}

fn shows(c: char) -> char {
    if stray(c).is_some() { char::REPLACEMENT_CHARACTER } else { picture(c) }
}

/// A text as it is shown, and where its characters are.
#[derive(Debug)]
pub(crate) struct Shown<'t> {
    pub text: Cow<'t, str>,
    /// For each picture: where it ends in the shown text, and where its character ends.
    ends: Vec<(usize, usize)>,
}

impl<'t> Shown<'t> {
    /// A carriage return before a line feed is a part of the line end.
    pub(crate) fn of(text: &'t str) -> Self {
        if text.chars().all(|c| c == '\r' || shows(c) == c) && !text.replace("\r\n", "").contains('\r') {
            return Self { text: Cow::Borrowed(text), ends: Vec::new() };
        }
        let mut shown = String::with_capacity(text.len());
        let mut ends = Vec::new();
        for (at, c) in text.char_indices() {
            let is_end = c == '\r' && text[at + 1..].starts_with('\n');
            let picture = if is_end { c } else { shows(c) };
            shown.push(picture);
            if picture != c {
                ends.push((shown.len(), at + c.len_utf8()));
            }
        }
        Self { text: Cow::Owned(shown), ends }
    }

    /// The position in the text of a position in the shown text.
    pub(crate) fn real(&self, at: usize) -> usize {
        match self.ends[..self.ends.partition_point(|(end, _)| *end <= at)].last() {
            Some((shown, real)) => real + (at - shown),
            None => at,
        }
    }
}

/// `written` with the characters of `file` in the place of their pictures. `part` is what it replaces.
///
/// # Errors
/// The first picture for which several characters come into question.
pub(crate) fn restore<'w>(written: &'w str, part: &str, file: &str) -> Result<Cow<'w, str>, Unclear> {
    if !has(written) {
        return Ok(Cow::Borrowed(written));
    }
    let shown = Shown::of(file);
    // The character behind each picture; `None`: several.
    let mut behind: HashMap<char, Option<char>> = HashMap::new();
    for (picture, c) in shown.text.chars().zip(file.chars()).filter(|(picture, _)| is_picture(*picture)) {
        behind.entry(picture).and_modify(|b| *b = b.filter(|b| *b == c)).or_insert(Some(c));
    }
    let one = |c: char| if is_picture(c) { *behind.get(&c).unwrap_or(&Some(c)) } else { Some(c) };
    if let Some(text) = written.chars().map(one).collect::<Option<String>>() {
        return Ok(Cow::Owned(text));
    }
    // Lines as they are shown; `None`: different ones look alike.
    let mut lines: HashMap<&str, Option<&str>> = HashMap::new();
    for (line, real) in pairs(&shown.text, file) {
        lines.entry(line).and_modify(|known| *known = known.filter(|k| *k == real)).or_insert(Some(real));
    }
    let new: Vec<&str> = written.split_inclusive('\n').map(|l| split(l).0).collect();
    let known = |line: &&str| {
        let whole = || lines.get(line).copied().flatten().map(str::to_owned);
        line.chars().map(one).collect::<Option<String>>().or_else(whole)
    };
    let mut real: Vec<Option<String>> = new.iter().map(known).collect();
    by_place(part, &new, &mut real);
    let mut out = String::with_capacity(written.len());
    for (n, (line, real)) in written.split_inclusive('\n').zip(real).enumerate() {
        let Some(real) = real else {
            let picture = line.chars().find(|c| one(*c).is_none()).unwrap_or(char::REPLACEMENT_CHARACTER);
            return Err(Unclear { line: n + 1, picture });
        };
        out.push_str(&real);
        out.push_str(split(line).1);
    }
    Ok(Cow::Owned(out))
}

/// The lines of a shown text, each with the line of the text itself, without their ends.
fn pairs<'t>(shown: &'t str, text: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    shown.split_inclusive('\n').zip(text.split_inclusive('\n')).map(|(s, t)| (split(s).0, split(t).0))
}

/// Fills in lines that are still `None`: those that stay where they are, and those in the place of lines with the same
/// pictures in the same order.
fn by_place(part: &str, new: &[&str], real: &mut [Option<String>]) {
    let shown = Shown::of(part);
    let (old, old_real): (Vec<&str>, Vec<&str>) = pairs(&shown.text, part).unzip();
    let deadline = std::time::Instant::now().checked_add(TIMEOUT);
    for op in similar::capture_diff_slices_deadline(Algorithm::Myers, &old, new, deadline) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                for n in 0..len {
                    real[new_index + n].get_or_insert_with(|| old_real[old_index + n].to_owned());
                }
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                let (went, came) = (old_index..old_index + old_len, new_index..new_index + new_len);
                let chars =
                    old[went.clone()].iter().zip(&old_real[went]).flat_map(|(s, r)| s.chars().zip(r.chars()));
                let (pictures, chars): (Vec<char>, Vec<char>) = chars.filter(|(s, _)| is_picture(*s)).unzip();
                if !new[came.clone()].iter().flat_map(|l| l.chars()).filter(|c| is_picture(*c)).eq(pictures) {
                    continue;
                }
                let mut chars = chars.into_iter();
                for n in came {
                    let back = |c| if is_picture(c) { chars.next().unwrap_or(c) } else { c };
                    let line: String = new[n].chars().map(back).collect();
                    real[n].get_or_insert(line);
                }
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } => {}
        }
    }
}

/// A picture for which several characters come into question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unclear {
    /// Its line in the written text, from 1.
    line: usize,
    picture: char,
}

impl Unclear {
    /// The message to the model that wants it in `name`.
    pub(crate) fn tell(self, name: &str) -> String {
        let Self { line, picture } = self;
        format!(
            "line {line} of the text contains '{picture}' (U+{:04X}), which stands for different characters or bytes of \
             {name} that cannot be shown, and it is not clear which is meant. Nothing was changed. Keep such lines as \
             they are shown, and edit the text around them with smaller edits.",
            u32::from(picture)
        )
    }

    pub(crate) fn error(self, name: &str) -> ToolError {
        ToolError::Tell(self.tell(name))
    }
}

#[cfg(test)]
#[path = "pictures_tests.rs"]
mod tests;
