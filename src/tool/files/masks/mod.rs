//! A file with masks in the place of its secrets, as a model reads it. Whatever a model writes goes through
//! [`restore`]: each mask becomes the value again for which it stands in the file, and text with a mask whose value
//! is unknown is not written. A mask that stands in the file itself is a value like any other.

pub(crate) mod pictures;
pub(crate) mod unmask;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use tiller_protocol::mask::{
    OF_VARIABLES, READS_VARIABLES, Secret, has_variables, mask, masks, reads_variables,
};

use crate::files::masks::unmask::Answer;
use crate::{Secrets, ToolCx, ToolError, Workspace};

/// Larger texts are not masked as a whole: what a model reads of them is masked piece by piece.
const WHOLE: usize = 4 << 20;

/// A mask and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MaskPlace {
    /// In the masked text.
    shown: Range<usize>,
    /// In the real one.
    real: Range<usize>,
}

/// A text and its masked form.
#[derive(Clone, Debug)]
pub(crate) struct MaskedText<'t> {
    real: &'t str,
    shown: Cow<'t, str>,
    /// In order, without overlap.
    places: Vec<MaskPlace>,
    /// It is too large to be masked as a whole: what a mask stands for is not known.
    large: bool,
}

impl<'t> MaskedText<'t> {
    /// Masks what `secrets` finds in `text`.
    pub(crate) fn of(text: &'t str, secrets: &Secrets) -> Self {
        let mut found: Vec<Secret> = if text.len() > WHOLE { Vec::new() } else { secrets(text) };
        found.sort_by_key(|s| s.range.start);
        let mut all: Vec<(Range<usize>, Option<String>)> = Vec::new();
        let mut literal = masks(text).peekable();
        for secret in found {
            while let Some(l) = literal.next_if(|l| l.end <= secret.range.start) {
                all.push((l, None));
            }
            while literal.next_if(|l| l.start < secret.range.end).is_some() {}
            all.push((secret.range, Some(mask(secret.name))));
        }
        all.extend(literal.map(|l| (l, None)));
        Self { large: text.len() > WHOLE, ..Self::with(text, all) }
    }

    /// Masks what `secrets` finds in the text of the file at `path`: every value, when it is a file of variables.
    pub(crate) fn of_file(path: &str, text: &'t str, secrets: &Secrets) -> Self {
        if !has_variables(path) {
            return Self::of(text, secrets);
        }
        let secrets = Arc::clone(secrets);
        let all: Secrets = Arc::new(move |text: &str| below(OF_VARIABLES, text, &secrets));
        Self::of(text, &all)
    }

    /// As it is.
    pub(crate) fn plain(text: &'t str) -> Self {
        Self { real: text, shown: Cow::Borrowed(text), places: Vec::new(), large: false }
    }

    fn with(text: &'t str, all: Vec<(Range<usize>, Option<String>)>) -> Self {
        if all.is_empty() {
            return Self::plain(text);
        }
        let mut shown = String::with_capacity(text.len());
        let mut places = Vec::with_capacity(all.len());
        let mut at = 0;
        for (real, name) in all {
            shown.push_str(&text[at..real.start]);
            let start = shown.len();
            shown.push_str(name.as_deref().unwrap_or(&text[real.clone()]));
            at = real.end;
            places.push(MaskPlace { shown: start..shown.len(), real });
        }
        shown.push_str(&text[at..]);
        Self { real: text, shown: Cow::Owned(shown), places, large: false }
    }

    /// The masked text.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The text itself.
    pub(crate) fn real(&self) -> &'t str {
        self.real
    }

    /// Where a position of the masked text lies in the real one; `Err` holds the real range of the value when it is
    /// in the middle of a mask.
    pub(crate) fn to_real(&self, shown: usize) -> Result<usize, Range<usize>> {
        let after = self.places.partition_point(|p| p.shown.start < shown);
        let Some(last) = after.checked_sub(1).map(|n| &self.places[n]) else { return Ok(shown) };
        if shown < last.shown.end {
            return Err(last.real.clone());
        }
        Ok(last.real.end + (shown - last.shown.end))
    }

    /// Where a position of the real text lies in the masked one; `Err` holds the real range of the value when it is
    /// in the middle of a value.
    pub(crate) fn to_shown(&self, real: usize) -> Result<usize, Range<usize>> {
        let after = self.places.partition_point(|p| p.real.start < real);
        let Some(last) = after.checked_sub(1).map(|n| &self.places[n]) else { return Ok(real) };
        if real < last.real.end {
            return Err(last.real.clone());
        }
        Ok(last.shown.end + (real - last.real.end))
    }

    /// The real range of a masked one; `None` when it begins or ends in the middle of a mask.
    pub(crate) fn real_range(&self, shown: Range<usize>) -> Option<Range<usize>> {
        Some(self.to_real(shown.start).ok()?..self.to_real(shown.end).ok()?)
    }

    /// A part of it, by its real range. Values that are cut by the range belong to no mask of the part.
    pub(crate) fn part(&self, real: Range<usize>) -> Self {
        let text = &self.real[real.clone()];
        let inside = self.places.iter().filter(|p| p.real.start >= real.start && p.real.end <= real.end);
        let all = inside.map(|p| {
            let name = self.shown[p.shown.clone()].to_owned();
            (p.real.start - real.start..p.real.end - real.start, Some(name))
        });
        Self { large: self.large, ..MaskedText::with(text, all.collect()) }
    }

    /// Ranges of the masks in the masked text.
    pub(crate) fn masks(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.places.iter().map(|p| p.shown.clone())
    }

    /// The value of a mask by its number.
    pub(crate) fn value(&self, n: usize) -> &'t str {
        &self.real[self.places[n].real.clone()]
    }
}

/// The secrets of a text below a head.
fn below(head: &str, text: &str, secrets: &Secrets) -> Vec<Secret> {
    let found = secrets(&format!("{head}{text}")).into_iter().filter(|s| s.range.end > head.len());
    let place = |range: Range<usize>| range.start.saturating_sub(head.len())..range.end - head.len();
    found.map(|s| Secret { range: place(s.range), name: s.name }).collect()
}

/// Masks the output of a command that reads a file of variables: what it prints of the file, as in the file.
#[derive(Clone)]
pub(crate) struct OutputMask(Secrets);

impl std::fmt::Debug for OutputMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OutputMask")
    }
}

impl OutputMask {
    /// `None`: the command names no such file, and its output needs no mask of its own.
    pub(crate) fn of(command: &str, cx: &ToolCx) -> Option<Self> {
        reads_variables(command).then(|| Self(Arc::clone(&cx.workspace.secrets)))
    }

    /// The text with masks.
    pub(crate) fn of_text(&self, text: String) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut at = 0;
        for secret in below(READS_VARIABLES, &text, &self.0) {
            masked.push_str(&text[at..secret.range.start]);
            masked.push_str(&mask(secret.name));
            at = secret.range.end;
        }
        masked + &text[at..]
    }
}

/// A part of the file at `path` as a model reads it: values of the whole file are masked, also those that the part cuts.
pub fn masked_part(path: &str, text: &str, part: Range<usize>, workspace: &Workspace) -> String {
    let masked = MaskedText::of_file(path, text, &workspace.secrets);
    let from = masked.to_shown(part.start).or_else(|value| masked.to_shown(value.start));
    let to = masked.to_shown(part.end).or_else(|value| masked.to_shown(value.end));
    let (from, to) = (from.unwrap_or(0), to.unwrap_or(masked.shown().len()));
    masked.shown().get(from..to).unwrap_or_default().to_owned()
}

/// A mask whose value is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// As it is written.
    pub mask: String,
    /// Its line in the written text, from 1.
    pub line: usize,
}

impl Unknown {
    /// What to tell the model that wants it in `name`. `there`: the file exists.
    pub(crate) fn tell(&self, name: &str, there: bool) -> String {
        let Self { mask, line } = self;
        let why = if there {
            format!("it is not clear which value of {name} is meant")
        } else {
            format!("{name} is new and has no value to keep there")
        };
        let what = if there {
            "Keep masked lines unchanged, and edit the text around them with smaller edits."
        } else {
            "Leave it out, let the program read the value from its source, or ask the user to enter it."
        };
        format!(
            "line {line} of the text contains {mask}: a mask for a value that you are not shown, and {why}. \
             Nothing was changed. {what}"
        )
    }

    pub(crate) fn error(&self, name: &str, there: bool) -> ToolError {
        ToolError::Tell(self.tell(name, there))
    }
}

/// Text that a model wrote, with the values in the place of masks. `scopes` are looked at in order: the part that
/// the text replaces, then the whole file.
///
/// # Errors
/// The first mask whose value is unknown.
pub(crate) fn restore<'w>(written: &'w str, scopes: &[&MaskedText<'_>]) -> Result<Cow<'w, str>, Unknown> {
    let found: Vec<Range<usize>> = masks(written).collect();
    if found.is_empty() {
        return Ok(Cow::Borrowed(written));
    }
    let mut values = vec![Answer::Open; found.len()];
    // In a text that was masked piece by piece, a mask in the file itself cannot be distinguished from a mask that hides a
    // value.
    if !scopes.iter().any(|s| s.large) {
        let new = unmask::Side::new(written, &found);
        for scope in scopes {
            unmask::fill(&new, scope, &mut values);
        }
    }
    let mut out = String::with_capacity(written.len());
    let mut at = 0;
    for (range, value) in found.into_iter().zip(values) {
        let Answer::Value(value) = value else {
            let line = written[..range.start].matches('\n').count() + 1;
            return Err(Unknown { mask: written[range].to_owned(), line });
        };
        out.push_str(&written[at..range.start]);
        out.push_str(value);
        at = range.end;
    }
    out.push_str(&written[at..]);
    Ok(Cow::Owned(out))
}

#[cfg(test)]
#[path = "masked_tests.rs"]
mod tests;
