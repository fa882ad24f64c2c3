//! Pages of files that are too large to be held: streamed, with bounds on what is read.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use tokio_util::sync::CancellationToken;

use crate::ToolError;
use crate::files::content::encoding::lossy;
use crate::files::content::{Page, Pager, Range};
use crate::output::human;
use crate::text::visible;

/// Bytes that are looked through for the start of a page.
const SCAN_MAX: u64 = 512 << 20;

/// A page of `file`, whose size is `size`, in UTF-8 or else in `encoding`. Holds at most one page and one buffer.
pub(crate) fn page(
    file: File,
    size: u64,
    range: Range,
    limit: usize,
    encoding: Option<&'static encoding_rs::Encoding>,
    cancel: &CancellationToken,
) -> Result<Page, ToolError> {
    let io = |e: std::io::Error| ToolError::Tell(e.to_string());
    let mut reader = BufReader::with_capacity(1 << 16, file);
    if let Some(byte) = range.byte {
        return by_byte(reader, byte, size, limit, encoding).map_err(io);
    }
    let first = range.start.unwrap_or(1).max(1);
    let mut at = skip_lines(&mut reader, first - 1, cancel)?;
    let mut pager = Pager::new(limit, first);
    let last = range.end.unwrap_or(u64::MAX);
    let mut line = Vec::new();
    while pager.next() <= last {
        line.clear();
        // One byte more than fits is enough to know that it does not.
        (&mut reader).take(limit as u64 + 1).read_until(b'\n', &mut line).map_err(io)?;
        if line.is_empty() {
            let note = format!("the end of the file ({})", human(size));
            return Ok(pager.finish(&note));
        }
        let bare = line.strip_suffix(b"\n").map_or(&line[..], |l| l.strip_suffix(b"\r").unwrap_or(l));
        let text = lossy(bare, encoding);
        match pager.add(&text) {
            Ok(()) => at += line.len() as u64,
            Err(None) => break,
            Err(Some(_)) => {
                // Bytes of the file, not of the lossy text: up to a whole character. One byte has three in it at most.
                let room = if text.len() > bare.len() { limit / 3 } else { limit };
                let shown = room.saturating_sub(32).min(bare.len());
                let n = pager.next() - 1;
                let mut short = Pager::new(limit, n);
                let head = lossy(&bare[..whole_chars(&bare[..shown])], encoding).into_owned();
                let taken = whole_chars(&bare[..shown]) as u64;
                let _ = short.add(&head);
                return Ok(short.finish(&format!("line {n} continues; next page: byte={}", at + taken)));
            }
        }
    }
    let next = pager.next();
    let note = format!(
        "lines {first}-{} of a file of {}; next page: start={next} (or byte={at})",
        next - 1,
        human(size)
    );
    Ok(pager.finish(&note))
}

/// Length of `bytes` without a character that is cut at the end.
fn whole_chars(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        _ => bytes.len(),
    }
}

fn skip_lines(
    reader: &mut BufReader<File>,
    lines: u64,
    cancel: &CancellationToken,
) -> Result<u64, ToolError> {
    let (mut left, mut at) = (lines, 0u64);
    while left > 0 {
        if cancel.is_cancelled() {
            return Err(ToolError::Interrupted(String::new()));
        }
        let buf = reader.fill_buf().map_err(|e| ToolError::Tell(e.to_string()))?;
        if buf.is_empty() {
            return Err(ToolError::Tell(format!("there are only {} lines", lines - left)));
        }
        let mut used = buf.len();
        for (n, _) in buf.iter().enumerate().filter(|(_, b)| **b == b'\n') {
            left -= 1;
            if left == 0 {
                used = n + 1;
                break;
            }
        }
        reader.consume(used);
        at += used as u64;
        if at > SCAN_MAX {
            return Err(ToolError::Tell(format!(
                "line {} is more than {} into the file; use byte= or the search tool",
                lines + 1,
                human(SCAN_MAX)
            )));
        }
    }
    Ok(at)
}

fn by_byte(
    mut reader: BufReader<File>,
    byte: u64,
    size: u64,
    limit: usize,
    encoding: Option<&'static encoding_rs::Encoding>,
) -> std::io::Result<Page> {
    reader.seek(SeekFrom::Start(byte))?;
    let mut piece = Vec::new();
    reader.take(limit as u64).read_to_end(&mut piece)?;
    let whole = whole_chars(&piece);
    let end = byte + whole as u64;
    let text = lossy(&piece[..whole], encoding);
    let more = if end < size { format!("; next page: byte={end}") } else { ": the end".into() };
    let lines = text.lines().count() as u64;
    Ok(Page { text: format!("{}\n[bytes {byte}-{end} of {size}{more}]\n", visible(&text)), lines })
}
