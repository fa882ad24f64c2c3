//! The text of PDF files. A file is hostile: its work, its memory and its text are bounded, and what cannot be read is said.
//!
//! | file | its job |
//! | --- | --- |
//! | `object` | the syntax: numbers, names, strings, dictionaries |
//! | `file` | finds the objects of a file and its pages, also in damaged ones |
//! | `filter` | unpacks streams |
//! | `cmap` | tables from codes to characters |
//! | `glyphs` | names of characters |
//! | `font` | codes of a font as characters with widths |
//! | `content` | the operators of a page as lines of text |
//!
//! Not read: encrypted files, text in pictures, and fonts without a table of their characters.

mod cmap;
mod content;
mod file;
mod filter;
mod font;
mod glyphs;
mod object;
#[cfg(test)]
pub(crate) mod tests;

use std::cell::Cell;

use file::File;

/// Pages that are read.
const PAGES: usize = 2_000;
/// Bytes of text that are kept.
const TEXT: usize = 4 << 20;
/// Numbers of pages that a note lists.
const LISTED: usize = 12;

/// The text of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PdfText {
    /// Its pages, each after a line that names it.
    pub text: String,
    /// Its kind, and the parts that are not in the text.
    pub notes: Vec<String>,
}

/// Why a file has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PdfError {
    #[error(
        "it is protected by a password, so its text was not read; `qpdf --decrypt IN OUT` makes a file that can be read, \
         mostly without a password; else only the user can open it"
    )]
    Encrypted,
    #[error("it is damaged: it has no pages that could be found")]
    NoPages,
    #[error(
        "none of the pages that were read ({0}) has a text; they may be scans, which `ocrmypdf` gives one"
    )]
    NoText(usize),
    #[error("it unpacks to far more than its size, so it was not read to its end")]
    TooLarge,
    #[error("reading it takes too much work, so it was given up")]
    TooMuch,
}

/// The work that the reading of one file may take.
#[derive(Debug)]
pub(super) struct Budget {
    /// Bytes that may still be unpacked.
    bytes: Cell<usize>,
    /// Steps of work: objects and operators that may still be read, and characters written.
    steps: Cell<usize>,
}

impl Budget {
    fn new() -> Self {
        Self { bytes: Cell::new(96 << 20), steps: Cell::new(8_000_000) }
    }

    /// Takes `n` steps; `false`: none are left.
    fn step(&self, n: usize) -> bool {
        let left = self.steps.get().checked_sub(n);
        self.steps.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Names what ran out.
    fn spent(&self) -> PdfError {
        if self.bytes.get() == 0 { PdfError::TooLarge } else { PdfError::TooMuch }
    }

    fn is_spent(&self) -> bool {
        self.steps.get() == 0 || self.bytes.get() == 0
    }
}

/// True for the begin of a PDF file.
pub(crate) fn is_pdf(head: &[u8]) -> bool {
    let head = &head[..head.len().min(1024)];
    memchr::memmem::find(head, b"%PDF-").is_some()
}

/// Reads the text.
///
/// # Errors
/// Why there is none.
pub(crate) fn read(bytes: &[u8]) -> Result<PdfText, PdfError> {
    let budget = Budget::new();
    let file = File::find(bytes, &budget)?;
    let pages = file.pages();
    if pages.is_empty() {
        return Err(if budget.is_spent() { budget.spent() } else { PdfError::NoPages });
    }
    let (mut text, mut empty, mut reader) = (String::new(), Vec::new(), content::Reader::new(&file));
    let (total, mut read) = (pages.len(), 0);
    for page in pages.iter().take(PAGES) {
        let of_page = reader.page(page);
        if budget.is_spent() && of_page.trim().is_empty() || text.len() + of_page.len() > TEXT {
            break;
        }
        read += 1;
        text.push_str(&format!("--- page {read} of {total} ---\n"));
        if of_page.trim().is_empty() {
            empty.push(read);
        }
        text.push_str(of_page.trim_end());
        text.push('\n');
    }
    if empty.len() == read {
        return Err(if read < total.min(PAGES) { budget.spent() } else { PdfError::NoText(read) });
    }
    let mut notes = vec![format!(
        "the text of a PDF of {}",
        if total == 1 { "1 page".into() } else { format!("{total} pages") }
    )];
    if read < total {
        notes.push(format!("only its first {read} pages were read"));
    } else if budget.is_spent() {
        notes.push(format!("a part of its text is missing: {}", budget.spent()));
    }
    if !empty.is_empty() {
        let listed: Vec<String> = empty.iter().take(LISTED).map(usize::to_string).collect();
        let more = if empty.len() > LISTED { ", ..." } else { "" };
        notes.push(format!("pages without text, perhaps pictures: {}{more}", listed.join(", ")));
    }
    if reader.cut > 0 {
        notes.push(format!(
            "pages with more than 1 MB of text, of which only the beginning is shown: {}",
            reader.cut
        ));
    }
    if reader.unknown > 0 {
        notes.push(format!("{} characters are of fonts that do not say what they are", reader.unknown));
    }
    Ok(PdfText { text, notes })
}
