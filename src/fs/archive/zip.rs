//! `.zip`: the central directory says what is there; each local header must agree with it.

use std::io::Read;

use super::intake::{Intake, special};

/// Bytes of the record at the end, without the comment, and of the longest comment.
const END: usize = 22;
const COMMENT: usize = 65_535;
const CENTRAL: usize = 46;
const LOCAL: usize = 30;
/// Types of files in the mode of Unix.
const TYPE: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

fn broken(what: &str) -> String {
    format!("the archive is broken: {what}")
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let pair = bytes.get(at..at.checked_add(2)?)?;
    Some(usize::from(u16::from_le_bytes(pair.try_into().ok()?)))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

fn size(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(long(bytes, at)?).ok()
}

/// Takes all entries.
pub(super) fn entries(bytes: &[u8], intake: &mut Intake<'_>) -> Result<(), String> {
    let from = bytes.len().saturating_sub(END + COMMENT);
    let end = bytes[from..].windows(4).rposition(|w| w == b"PK\x05\x06").map(|at| at + from);
    let cut = || broken("it ends too early");
    let end = end.ok_or_else(cut)?;
    let count = short(bytes, end + 10).ok_or_else(cut)?;
    let mut at = size(bytes, end + 16).ok_or_else(cut)?;
    if count == 0xffff || at == 0xffff_ffff {
        return Err("zip64 is not read: pack it as .tar.gz".into());
    }
    if count == 0 {
        return Err(broken("it is empty"));
    }
    for _ in 0..count {
        at = entry(bytes, at, intake)?;
    }
    Ok(())
}

/// Takes the entry whose record of the directory is at `at`. Returns the place of the next one.
fn entry(bytes: &[u8], at: usize, intake: &mut Intake<'_>) -> Result<usize, String> {
    let cut = || broken("its directory is wrong");
    let head = at.checked_add(CENTRAL).and_then(|end| bytes.get(at..end)).ok_or_else(cut)?;
    if !head.starts_with(b"PK\x01\x02") {
        return Err(cut());
    }
    let (made_by, flags, method) = (head[5], short(head, 8), short(head, 10));
    let crc = long(head, 16).ok_or_else(cut)?;
    let packed = size(head, 20).ok_or_else(cut)?;
    let [name, extra, comment] = [28, 30, 32].map(|at| short(head, at).unwrap_or_default());
    let mode = long(head, 38).unwrap_or_default() >> 16;
    let local = size(head, 42).ok_or_else(cut)?;
    let next = at + CENTRAL + name + extra + comment;
    let name = bytes.get(at + CENTRAL..at + CENTRAL + name).ok_or_else(cut)?;
    let text =
        std::str::from_utf8(name).map_err(|_| "the archive has a name that is not UTF-8".to_owned())?;
    if flags.is_none_or(|flags| flags & 1 != 0) {
        return Err(format!("{} is encrypted", text.escape_debug()));
    }
    // Other systems than Unix store no type.
    let kind = if made_by == 3 { mode & TYPE } else { 0 };
    match kind {
        0 | REGULAR if !text.ends_with('/') => {}
        0 | FOLDER => {
            intake.folder(text)?;
            return Ok(next);
        }
        _ => return Err(special(text)),
    }
    // The local header: other readers go by it, so it must not say something else.
    let head = local.checked_add(LOCAL).and_then(|end| bytes.get(local..end)).ok_or_else(cut)?;
    let [local_name, extra] = [26, 28].map(|at| short(head, at).unwrap_or_default());
    let begin = local + LOCAL + local_name;
    let same = bytes.get(local + LOCAL..begin) == Some(name);
    if !head.starts_with(b"PK\x03\x04") || !same {
        return Err(broken(&format!("{} has two names", text.escape_debug())));
    }
    let begin = begin + extra;
    let data = begin.checked_add(packed).and_then(|end| bytes.get(begin..end)).ok_or_else(cut)?;
    let executable = mode & 0o100 != 0;
    let mut sum = Summed { from: data, deflate: None, crc: flate2::Crc::new() };
    match method {
        Some(0) => {}
        Some(8) => sum.deflate = Some(flate2::read::DeflateDecoder::new(data)),
        _ => return Err(format!("{} is compressed in a way that is not read", text.escape_debug())),
    }
    intake.file(text, executable, &mut sum)?;
    if sum.crc.sum() != crc {
        return Err(broken(&format!("{} is damaged", text.escape_debug())));
    }
    Ok(next)
}

/// Reads an entry and sums it up.
struct Summed<'a> {
    from: &'a [u8],
    deflate: Option<flate2::read::DeflateDecoder<&'a [u8]>>,
    crc: flate2::Crc,
}

impl Read for Summed<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = match &mut self.deflate {
            Some(deflate) => deflate.read(into)?,
            None => self.from.read(into)?,
        };
        self.crc.update(&into[..n]);
        Ok(n)
    }
}
