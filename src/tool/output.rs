//! What a tool gives back, and how long output is kept within bounds.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::ToolCx;
use tiller_protocol::tool::Display;
use tiller_protocol::{Part, ToolOutcome};

/// A result. `content` goes to the model, `display` only to the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    pub content: Vec<Part>,
    pub display: Option<Display>,
    pub outcome: ToolOutcome,
}

impl ToolOutput {
    /// Plain text, all well.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Part::Text { text: text.into() }], display: None, outcome: ToolOutcome::Ok }
    }

    /// Adds what the screen shows.
    #[must_use]
    pub fn show(mut self, display: Display) -> Self {
        self.display = Some(display);
        self
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// For the model: what was wrong and what to do instead.
    #[error("{0}")]
    Tell(String),
    /// It was stopped; the text is what it had so far.
    #[error("interrupted")]
    Interrupted(String),
    /// It took too long; the text is what it had so far.
    #[error("timed out")]
    TimedOut(String),
    /// The user declined.
    #[error("{0}")]
    Declined(String),
    /// The user had to answer, and could not be asked.
    #[error("{0}")]
    Unanswered(String),
}

/// Cuts the middle out of `text` when it is longer than `limit` bytes: 60 % head, 40 % tail, at line ends
/// where one is near. `pointer` says where the whole is. The result is at most about `limit` + 200 bytes.
pub fn cut_middle(text: &str, limit: usize, pointer: &str) -> Option<String> {
    if text.len() <= limit {
        return None;
    }
    let mut head = text.floor_char_boundary(limit / 5 * 3);
    let mut tail = text.ceil_char_boundary(text.len() - limit / 5 * 2);
    // A line end within the last (first) tenth is a better place.
    if let Some(at) = text[..head].rfind('\n').filter(|at| head - at < limit / 10) {
        head = at + 1;
    }
    if let Some(at) = text[tail..].find('\n').filter(|at| *at < limit / 10) {
        tail += at + 1;
    }
    let gap = &text[head..tail];
    let lines = gap.matches('\n').count();
    let size = human(gap.len() as u64);
    let line_end = if text[..head].ends_with('\n') { "" } else { "\n" };
    Some(format!(
        "{}{line_end}[... {size}, {lines} lines left out; {pointer} ...]\n{}",
        &text[..head],
        &text[tail..]
    ))
}

/// The text as the model gets it: whole when short, else cut in the middle with the whole in a spill file.
/// `text` must be clean (see [`crate::text`]).
pub fn bound(text: String, cx: &ToolCx) -> String {
    let limit = cx.limits.output_bytes;
    if text.len() <= limit {
        return text;
    }
    shortened(&text, limit, &cx.folders.spill, &cx.call_id)
}

/// The text with its middle cut out when it is longer than `limit` bytes; the whole is then in a spill file in `folder`. Blocks.
pub fn shortened(text: &str, limit: usize, folder: &Path, call_id: &str) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let earlier = text.lines().filter_map(pointed_at).map(Path::new);
    let pointer = match earlier.filter(|file| file.starts_with(folder)).find(|file| file.is_file()) {
        // It was shortened before: the whole is there.
        Some(file) => format!("{POINTER}: {}", file.display()),
        None => Spill::of_call(folder, call_id, "txt", text.len() as u64)
            .and_then(|mut spill| spill.write(text.as_bytes()).map(|()| spill.pointer()))
            .unwrap_or_else(|e| format!("the full output could not be kept: {e}")),
    };
    cut_middle(text, limit, &pointer).unwrap_or_default()
}

/// The note on how long a command took, a line of its result.
pub fn duration_note(seconds: &str) -> String {
    format!("[took {seconds} s]")
}

/// Whether a line of a result is a [`duration_note`], which differs each time.
pub fn is_duration_note(line: &str) -> bool {
    let note = line.strip_prefix("[took ").and_then(|l| l.strip_suffix(" s]"));
    let seconds = note.or_else(|| line.strip_prefix("duration_seconds: "));
    seconds.is_some_and(|s| s.parse::<f64>().is_ok())
}

/// How a [`Spill::pointer`] begins.
const POINTER: &str = "read_file can page the whole";

/// How a pointer to binary output begins.
const BYTES_POINTER: &str = "read_file with byte=0 shows its bytes";

/// A line of a result without the pointer in it, whose file has another name for each call.
pub fn without_pointer(line: &str) -> &str {
    [POINTER, BYTES_POINTER].iter().find_map(|p| line.find(p)).map_or(line, |at| &line[..at])
}

/// The file that a line of [`cut_middle`] with a [`Spill::pointer`] names.
pub fn pointed_at(line: &str) -> Option<&str> {
    let mark = line.strip_prefix("[... ")?.strip_suffix(" ...]")?;
    let (_, pointer) = mark.split_once(" lines left out; ")?;
    let pointer = pointer.strip_prefix(POINTER)?;
    Some(pointer.split_once(": ")?.1)
}

/// `1.5 KB`, `12 MB`: for people and models, powers of 1,000.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 9.95 { format!("{value:.1} {}", UNITS[unit]) } else { format!("{value:.0} {}", UNITS[unit]) }
}

/// A file (0600, in the session's spill folder, 0700) that holds the raw bytes of an output up to a cap.
///
/// Secrets in it are not masked here. It may be binary, it is paged and searched by byte while it grows, and a
/// key may be cut by any piece that comes; so it is masked wherever it is read instead: for the model, for the
/// screen, for exports. It never leaves this machine, and goes some
/// time after its session.
#[derive(Debug)]
pub struct Spill {
    file: File,
    path: PathBuf,
    left: u64,
    dropped: u64,
}

impl Spill {
    /// A fresh file named after the call.
    ///
    /// # Errors
    /// When the folder cannot be made or written.
    pub fn create(cx: &ToolCx) -> std::io::Result<Self> {
        Self::named(cx, "txt")
    }

    /// A fresh file named after the call, with another ending.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub(crate) fn named(cx: &ToolCx, ending: &str) -> std::io::Result<Self> {
        Self::of_call(&cx.folders.spill, &cx.call_id, ending, cx.limits.spill_bytes)
    }

    fn of_call(folder: &Path, call_id: &str, ending: &str, cap: u64) -> std::io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let name: String = call_id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
            .take(80)
            .collect();
        for n in 0..1000u32 {
            let path =
                folder.join(if n == 0 { format!("{name}.{ending}") } else { format!("{name}-{n}.{ending}") });
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(Self { file, path, left: cap, dropped: 0 }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(std::io::ErrorKind::AlreadyExists.into())
    }

    /// Appends as much as the cap allows; counts the rest.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let keep = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.file.write_all(&bytes[..keep])?;
        self.left -= keep as u64;
        self.dropped += (bytes.len() - keep) as u64;
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that the cap kept out.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// For the model: how to read the whole.
    pub fn pointer(&self) -> String {
        format!("{POINTER}{}: {}", self.capped(), self.path.display())
    }

    /// For the model: how to see the bytes of what is no text.
    pub(crate) fn bytes_pointer(&self) -> String {
        format!("{BYTES_POINTER}{}: {}", self.capped(), self.path.display())
    }

    fn capped(&self) -> String {
        if self.dropped > 0 { format!(" (without its last {})", human(self.dropped)) } else { String::new() }
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
