//! A command in every form that rules are compared with.

use tiller_shell::Part;

use crate::rules::launched::launched;
use crate::rules::words::compared;

/// The forms of a command, or of several that run together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spellings {
    /// As text. A rule that allows is compared with the first only.
    pub(crate) texts: Vec<String>,
    /// As the words of each program.
    words: Vec<Vec<String>>,
    /// As words that perhaps run, with their text.
    launched: Vec<(String, Vec<String>)>,
    /// More may run than is listed.
    more: bool,
}

impl Spellings {
    /// One text.
    pub(crate) fn of_text(text: impl Into<String>) -> Self {
        Self { texts: vec![text.into()], ..Self::default() }
    }

    /// Texts that are known by their words only.
    pub(crate) fn of_texts(texts: Vec<String>) -> Self {
        let words = texts.iter().map(|text| compared(text)).collect();
        Self { texts, words, ..Self::default() }
    }

    /// All forms of a part.
    pub(crate) fn of_part(part: &Part) -> Self {
        let mut all = Self::of_texts(part.also.clone());
        all.texts = part.spellings();
        // Words that a loop supplies are compared where they are written out.
        if part.argv.iter().all(|word| word.each.is_none()) {
            all.words.push(part.worded());
        }
        let launched = launched(part);
        all.more = launched.more;
        all.launched = launched.rests.into_iter().map(|words| (words.join(" "), words)).collect();
        all
    }

    /// Adds those of what runs beside it, or of the same in another spelling.
    pub(crate) fn extend(&mut self, other: Self) {
        self.texts.extend(other.texts);
        self.words.extend(other.words);
        self.launched.extend(other.launched);
        self.more |= other.more;
    }

    /// The same, which may be more than is listed.
    pub(crate) fn and_more(self, more: bool) -> Self {
        Self { more: self.more || more, ..self }
    }

    /// Returns true if more may run than is listed.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// The words of each program that surely runs.
    pub(crate) fn words(&self) -> impl Iterator<Item = &[String]> {
        self.words.iter().map(Vec::as_slice)
    }

    /// The text and the words of what perhaps runs.
    pub(crate) fn launched(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.launched.iter().map(|(text, words)| (text.as_str(), words.as_slice()))
    }
}
