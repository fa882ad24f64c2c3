//! The changes of texts that the tools make, without files, for tests of other rooms. Behind the feature `testing`.

use tiller_protocol::ChangeKind;

use super::change::diff;
use super::change::replace::{self, Ask};
use super::content::encoding::Text;
use super::masks::MaskedText;
use super::patch::hunks;
use super::patch::parse::{Section, parse};

/// `text` as `edit_file` changes it, and the lines of the changed places from 1.
///
/// # Errors
/// As for the model.
pub fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<(String, Vec<usize>), String> {
    let done = replace::replace("f", &MaskedText::plain(text), Ask { old, new, all })?;
    Ok((done.text, done.lines))
}

/// What the first section of a patch makes of `text`: the new text, or `None` when it removes the file.
///
/// # Errors
/// As for the model.
pub fn patch(patch: &str, text: &str) -> Result<Option<String>, String> {
    match parse(patch)?.into_iter().next() {
        None | Some(Section::Delete { .. }) => Ok(None),
        Some(Section::Add { content, .. }) => Ok(Some(content)),
        Some(Section::Update { hunks, .. }) => hunks::apply("f", &MaskedText::plain(text), &hunks).map(Some),
    }
}

/// The unified difference that the screen shows; `None`: a part of it is left out.
pub fn difference(before: &str, after: &str) -> Option<String> {
    let shown = diff::file("f", ChangeKind::Modified, before, after);
    (shown.cut == 0).then_some(shown.file.diff)
}

/// The text of a file, and the file again from this text; `None`: it is not edited as text.
pub fn decode(bytes: &[u8]) -> Option<(String, Result<Vec<u8>, char>)> {
    let text = Text::decode(bytes).ok()?;
    let again = text.encode_file(&text.text);
    Some((text.text, again))
}
