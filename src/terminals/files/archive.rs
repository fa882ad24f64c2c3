//! Several files as one tar archive: what `tar` of GNU, BSD and BusyBox writes and reads of regular files.

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) content: Vec<u8>,
}

const BLOCK: usize = 512;

/// Adds a file.
pub(super) fn add(archive: &mut Vec<u8>, path: &str, mode: u32, content: &[u8]) {
    if path.len() > 100 {
        // As GNU tar writes a long name: it is the content of an entry before.
        let mut name = path.as_bytes().to_vec();
        name.push(0);
        block(archive, b"././@LongLink", b'L', 0o644, &name);
    }
    block(archive, &path.as_bytes()[..path.len().min(100)], b'0', mode, content);
}

/// Ends it.
pub(super) fn finish(archive: &mut Vec<u8>) {
    archive.resize(archive.len() + 2 * BLOCK, 0);
}

fn block(archive: &mut Vec<u8>, name: &[u8], kind: u8, mode: u32, content: &[u8]) {
    let mut header = [0_u8; BLOCK];
    header[..name.len()].copy_from_slice(name);
    let mut put = |at: usize, text: String| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(100, format!("{:07o}", mode & 0o777));
    put(108, "0000000".into());
    put(116, "0000000".into());
    put(124, format!("{:011o}", content.len()));
    put(136, "00000000000".into());
    put(148, "        ".into());
    put(156, char::from(kind).to_string());
    put(257, "ustar  ".into());
    let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
    let sum = format!("{sum:06o}\0 ");
    header[148..156].copy_from_slice(sum.as_bytes());
    archive.extend_from_slice(&header);
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

/// The regular files of an archive of the other side. Stops at the first byte that is none.
pub(super) fn read(archive: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut rest = archive;
    let mut long: Option<String> = None;
    while let Some((header, after)) = rest.split_at_checked(BLOCK) {
        let Some((size, kind)) = sizes(header) else { break };
        let Some(content) = after.get(..size) else { break };
        rest = after.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
        match kind {
            b'L' => long = text(content),
            b'x' => long = attribute(content, "path").or(long),
            b'0' | 0 | b'7' => {
                let name = long.take().or_else(|| name(header));
                let mode = octal(&header[100..108]).and_then(|m| u32::try_from(m).ok()).unwrap_or(0o644);
                if let Some(path) = name {
                    let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
                    entries.push(Entry { path, mode: mode & 0o777, content: content.to_vec() });
                }
            }
            _ => long = None,
        }
    }
    entries
}

/// Size and kind of an entry; `None`: the end, or no header.
fn sizes(header: &[u8]) -> Option<(usize, u8)> {
    let sum = octal(&header[148..156])?;
    let blank = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) };
    if header.iter().enumerate().map(blank).sum::<u64>() != sum {
        return None;
    }
    Some((usize::try_from(octal(&header[124..136])?).ok()?, header[156]))
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(text, 8).ok()
}

fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8(bytes[..end].to_vec()).ok()
}

fn name(header: &[u8]) -> Option<String> {
    let name = text(&header[..100])?;
    // POSIX: the folder of a longer name stands apart. GNU has other things there.
    let prefix = if &header[257..263] == b"ustar\0" { text(&header[345..500])? } else { String::new() };
    Some(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
}

/// An attribute of an extended header: lines of `LENGTH NAME=VALUE`.
fn attribute(content: &[u8], wanted: &str) -> Option<String> {
    let mut rest = content;
    while !rest.is_empty() {
        let blank = rest.iter().position(|b| *b == b' ')?;
        let length: usize = std::str::from_utf8(&rest[..blank]).ok()?.parse().ok()?;
        let line = rest.get(blank + 1..length)?;
        rest = rest.get(length..)?;
        let line = String::from_utf8(line.to_vec()).ok()?;
        if let Some((name, value)) = line.trim_end_matches('\n').split_once('=')
            && name == wanted
        {
            return Some(value.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn samples() -> Vec<Entry> {
        let long = format!("{}/{}/file with blanks", "a".repeat(60), "ü".repeat(20));
        [("run.sh", 0o755, vec![7; 1500]), ("empty", 0o644, vec![]), (&long, 0o600, vec![1; 512])]
            .map(|(path, mode, content)| Entry { path: path.to_owned(), mode, content })
            .into()
    }

    /// Both ways through the programs of this machine.
    #[test]
    fn programs_read_our_archives_and_we_read_theirs() {
        let mut ours = Vec::new();
        samples().iter().for_each(|e| add(&mut ours, &e.path, e.mode, &e.content));
        finish(&mut ours);
        assert_eq!(read(&ours), samples());
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("a.tar"), &ours).unwrap();
        let run = |line: &str| {
            let out = Command::new("sh").args(["-c", line]).current_dir(tmp.path()).output().unwrap();
            assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
            out.stdout
        };
        run("mkdir x && tar xpf a.tar -C x && cd x && find . -type f | sed 's,^./,,' > ../names");
        for format in ["gnu", "pax", "ustar"] {
            let out = run(&format!("cd x && tar cf - --format={format} -T ../names 2>/dev/null"));
            let mut theirs = read(&out);
            theirs.sort_by_key(|e| samples().iter().position(|s| s.path == e.path));
            assert_eq!(theirs, samples(), "{format}");
        }
    }

    #[test]
    fn rubbish_gives_no_files_and_no_panic() {
        let mut ours = Vec::new();
        add(&mut ours, "a", 0o644, b"abc");
        for at in 0..ours.len() {
            let mut broken = ours.clone();
            broken[at] = broken[at].wrapping_add(1);
            let _ = read(&broken);
            let _ = read(&ours[..at]);
        }
        assert!(read(&[b'7'; 2048]).is_empty());
    }
}
