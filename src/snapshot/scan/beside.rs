//! Attributes and access lists of the files of a snapshot. Git's trees cannot store them, so they are an object of
//! their own, which the snapshot's notes name: a line for each file, `PATH NAME=VALUE ...`, all escaped.

use std::collections::HashMap;

use tiller_fs::Attributes;

use crate::names;

/// Maximum size of a stored value, and maximum number of files. Beyond these attributes are not stored: a restore then
/// uses those of the present file.
pub(crate) const VALUE: usize = 4 << 10;
const BYTES: usize = 4 << 20;

/// Encodes the attributes of one file.
pub(crate) fn write_one(attributes: &Attributes) -> Vec<u8> {
    let some = attributes.iter().filter(|(_, value)| value.len() <= VALUE);
    let words: Vec<String> = some.map(|(name, value)| format!("{}={}", word(name), word(value))).collect();
    words.join(" ").into_bytes()
}

/// Decodes them; malformed ones are left out.
pub(crate) fn read_one(data: &[u8]) -> Attributes {
    let mut out = Attributes::default();
    let text = String::from_utf8_lossy(data);
    for item in text.split(' ') {
        if let Some((name, value)) = item.split_once('=')
            && let (Some(name), Some(value)) = (names::unescape(name), names::unescape(value))
        {
            out.add(&name, &value);
        }
    }
    out
}

/// Encodes the attributes of all files of a snapshot; `None` when there are none.
pub(crate) fn write(all: &[(Vec<u8>, Attributes)]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (path, attributes) in all {
        let line = write_one(attributes);
        if line.is_empty() || out.len() + line.len() > BYTES {
            continue;
        }
        out.extend_from_slice(word(path).as_bytes());
        out.push(b' ');
        out.extend_from_slice(&line);
        out.push(b'\n');
    }
    (!out.is_empty()).then_some(out)
}

/// Whether no file was left out because there were too many.
pub(crate) fn is_complete(data: &[u8]) -> bool {
    data.len() < BYTES / 2
}

/// Decodes them, by path.
pub(crate) fn read(data: &[u8]) -> HashMap<Vec<u8>, Attributes> {
    let lines = data.split(|b| *b == b'\n');
    let one = |line: &[u8]| {
        let at = line.iter().position(|b| *b == b' ')?;
        let path = names::unescape(std::str::from_utf8(&line[..at]).ok()?)?;
        Some((path, read_one(&line[at + 1..])))
    };
    lines.filter_map(one).collect()
}

/// Bytes as one word, without the characters that separate words here.
fn word(bytes: &[u8]) -> String {
    names::escape(bytes).replace('=', "%3D")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_and_value_come_back() {
        let mut odd = Attributes::default();
        odd.add(b"user.a=b c", b"\0 %3D =\n\xff");
        odd.add(b"user.empty", b"");
        let mut big = Attributes::default();
        big.add(b"user.big", &[7; VALUE + 1]);
        let all = [(b"a dir/=x\n".to_vec(), odd.clone()), (b"big".to_vec(), big)];
        let back = read(&write(&all).unwrap());
        assert_eq!(back, HashMap::from([(b"a dir/=x\n".to_vec(), odd)]));
        assert_eq!(write(&[]), None);
    }
}
