//! `.tar`, with the long names of GNU and POSIX.

use std::io::Read;

use super::intake::{Intake, special};

const BLOCK: usize = 512;
/// Most bytes of an entry that only says the name of the next one.
const NAME: u64 = 64 << 10;

/// Takes all entries.
pub(super) fn entries(from: &mut dyn Read, intake: &mut Intake<'_>) -> Result<(), String> {
    let broken = |what: &str| format!("the archive is broken: {what}");
    let mut block = [0; BLOCK];
    let mut long: Option<String> = None;
    let mut any = false;
    loop {
        match from.read_exact(&mut block) {
            Ok(()) if block.iter().all(|b| *b == 0) => break,
            Ok(()) => {}
            Err(_) if any => return Err(broken("it ends too early, or is too large")),
            Err(_) => return Err(broken("it is neither a .tar, .tar.gz nor a .zip file")),
        }
        if !sum_is_right(&block) {
            return Err(broken("it is neither a .tar, .tar.gz nor a .zip file, or it was cut"));
        }
        any = true;
        let size = octal(&block[124..136]).ok_or_else(|| broken("a size is wrong"))?;
        let kind = block[156];
        let padding = size.div_ceil(BLOCK as u64) * BLOCK as u64 - size;
        let mut content = (&mut *from).take(size);
        match kind {
            // Of these only the name of the next entry is used.
            b'L' | b'x' => {
                if size > NAME {
                    return Err(broken("a name is too long"));
                }
                let mut bytes = Vec::new();
                content.read_to_end(&mut bytes).map_err(|e| broken(&e.to_string()))?;
                let name = if kind == b'L' { Some(text(&bytes)?) } else { pax_path(&bytes)? };
                long = name.or(long);
            }
            b'g' => {}
            _ => {
                let name = match long.take() {
                    Some(name) => name,
                    None => header_name(&block)?,
                };
                let executable = octal(&block[100..108]).is_some_and(|mode| mode & 0o100 != 0);
                match kind {
                    b'0' | 0 | b'7' if name.ends_with('/') => intake.folder(&name)?,
                    b'0' | 0 | b'7' => intake.file(&name, executable, &mut content)?,
                    b'5' => intake.folder(&name)?,
                    _ => return Err(special(&name)),
                }
            }
        }
        // What was not read, and the padding.
        let rest = content.limit() + padding;
        let skipped = std::io::copy(&mut (&mut *from).take(rest), &mut std::io::sink());
        if skipped.map_err(|e| broken(&e.to_string()))? < rest {
            return Err(broken("it ends too early, or is too large"));
        }
    }
    if any { Ok(()) } else { Err(broken("it is empty")) }
}

/// The checksum: the sum of all bytes with blanks in its own place.
fn sum_is_right(block: &[u8; BLOCK]) -> bool {
    let sum: u64 = block
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { u64::from(b' ') } else { u64::from(*byte) })
        .sum();
    octal(&block[148..156]) == Some(sum)
}

fn header_name(block: &[u8; BLOCK]) -> Result<String, String> {
    let name = text(&block[..100])?;
    let prefix = if &block[257..263] == b"ustar\0" { text(&block[345..500])? } else { String::new() };
    Ok(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
}

/// `path` of an extended header: lines of `LENGTH KEY=VALUE`.
fn pax_path(mut bytes: &[u8]) -> Result<Option<String>, String> {
    let broken = || "the archive is broken: an extended header is wrong".to_owned();
    let mut path = None;
    while !bytes.is_empty() {
        let blank = bytes.iter().position(|b| *b == b' ').ok_or_else(broken)?;
        let length: usize =
            std::str::from_utf8(&bytes[..blank]).ok().and_then(|n| n.parse().ok()).ok_or_else(broken)?;
        let line = bytes.get(blank + 1..length.saturating_sub(1)).ok_or_else(broken)?;
        if let Some(value) = line.strip_prefix(b"path=") {
            path = Some(text(value)?);
        }
        if line.starts_with(b"size=") || line.starts_with(b"linkpath=") || line.starts_with(b"GNU.sparse") {
            // What they say would differ from the header that is read here.
            return Err(broken());
        }
        bytes = bytes.get(length..).ok_or_else(broken)?;
    }
    Ok(path)
}

fn text(field: &[u8]) -> Result<String, String> {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    let name = std::str::from_utf8(&field[..end]);
    Ok(name.map_err(|_| "the archive has a name that is not UTF-8".to_owned())?.to_owned())
}

fn octal(field: &[u8]) -> Option<u64> {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    let digits = std::str::from_utf8(&field[..end]).ok()?.trim();
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}
