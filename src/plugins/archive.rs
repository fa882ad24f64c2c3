//! Archives of plugins: `.tar` and `.tar.gz`. Only regular files and folders are taken, below the folder that they are
//! unpacked into.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Most bytes of an unpacked archive.
const BYTES: u64 = 20 << 20;
/// Most entries.
const ENTRIES: usize = 2000;
const BLOCK: usize = 512;

/// Unpacks an archive into an empty folder. Returns the folder that holds the plugin: `into`, or the only folder in it.
///
/// # Errors
/// A sentence.
pub fn unpack(archive: &Path, into: &Path) -> Result<PathBuf, String> {
    let fail = |e: std::io::Error| format!("{} cannot be read: {e}", archive.display());
    let mut file = std::fs::File::open(archive).map_err(fail)?;
    let mut head = [0; 2];
    let read = file.read(&mut head).map_err(fail)?;
    let file = std::fs::File::open(archive).map_err(fail)?;
    if read == 2 && head == [0x1f, 0x8b] {
        entries(&mut flate2::read::GzDecoder::new(file).take(BYTES), into)?;
    } else {
        entries(&mut file.take(BYTES), into)?;
    }
    let mut inside = std::fs::read_dir(into).map_err(fail)?.flatten();
    let one = inside.next().filter(|e| e.path().is_dir() && !into.join(crate::MANIFEST).exists());
    Ok(match (one, inside.next()) {
        (Some(only), None) => only.path(),
        _ => into.to_owned(),
    })
}

fn entries(from: &mut dyn Read, into: &Path) -> Result<(), String> {
    let broken = |what: &str| format!("the archive is broken: {what}");
    let mut block = [0; BLOCK];
    for _ in 0..ENTRIES {
        if from.read_exact(&mut block).is_err() || block.iter().all(|b| *b == 0) {
            return Ok(());
        }
        let size = octal(&block[124..136]).ok_or_else(|| broken("a size is wrong"))?;
        let kind = block[156];
        let prefix = if &block[257..262] == b"ustar" { text(&block[345..500]) } else { String::new() };
        let name = text(&block[..100]);
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let mut bytes = Vec::new();
        let padded = size.div_ceil(BLOCK as u64) * BLOCK as u64;
        from.take(padded).read_to_end(&mut bytes).map_err(|e| broken(&e.to_string()))?;
        if (bytes.len() as u64) < padded {
            return Err(broken("it ends too early, or is larger than 20 MB"));
        }
        bytes.truncate(usize::try_from(size).unwrap_or(0));
        match kind {
            b'0' | 0 | b'5' => entry(into, &name, kind == b'5', &bytes, block[100..108].contains(&b'7'))?,
            // Comments of other programs.
            b'g' | b'x' => {}
            _ => {
                return Err(format!(
                    "{} is a link or a special file, which a plugin cannot have",
                    name.escape_debug()
                ));
            }
        }
    }
    Err(broken("it has too many entries"))
}

fn entry(into: &Path, name: &str, folder: bool, bytes: &[u8], executable: bool) -> Result<(), String> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = Path::new(name);
    let plain = |c: Component<'_>| matches!(c, Component::Normal(_) | Component::CurDir);
    if name.is_empty() || !path.components().all(plain) {
        return Err(format!("{} leads out of the archive's folder", name.escape_debug()));
    }
    let fail = |e: std::io::Error| format!("{} cannot be unpacked: {e}", name.escape_debug());
    let path = into.join(path);
    let parent = if folder { Some(path.as_path()) } else { path.parent() };
    std::fs::create_dir_all(parent.unwrap_or(into)).map_err(fail)?;
    if folder {
        return Ok(());
    }
    let mode = if executable { 0o700 } else { 0o600 };
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
    let mut file = opened.map_err(fail)?;
    std::io::Write::write_all(&mut file, bytes).map_err(fail)
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits: String = text(field).trim().to_owned();
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(&digits, 8).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One entry of a tar file.
    fn tar(name: &str, kind: u8, bytes: &[u8]) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[100..107].copy_from_slice(b"0000644");
        block[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        block[156] = kind;
        block[257..262].copy_from_slice(b"ustar");
        block.extend(bytes);
        block.resize(block.len().div_ceil(BLOCK) * BLOCK, 0);
        block
    }

    fn unpacked(parts: &[Vec<u8>]) -> (tempfile::TempDir, Result<PathBuf, String>) {
        let tmp = tempfile::tempdir().unwrap();
        let (archive, into) = (tmp.path().join("a.tar"), tmp.path().join("into"));
        std::fs::create_dir(&into).unwrap();
        let mut bytes = parts.concat();
        bytes.resize(bytes.len() + 2 * BLOCK, 0);
        std::fs::write(&archive, bytes).unwrap();
        let result = unpack(&archive, &into);
        (tmp, result)
    }

    #[test]
    fn an_archive_is_unpacked_below_its_folder_only() {
        let (_tmp, result) = unpacked(&[
            tar("mine/", b'5', b""),
            tar("mine/plugin.toml", b'0', b"name = \"mine\"\n"),
            tar("mine/a/b.sh", b'0', &[b'x'; 700]),
        ]);
        let folder = result.unwrap();
        assert!(folder.ends_with("mine"));
        assert_eq!(std::fs::read(folder.join("a/b.sh")).unwrap(), [b'x'; 700]);
        for (name, kind) in [
            ("../out", b'0'),
            ("/etc/out", b'0'),
            ("a/../../out", b'0'),
            ("link", b'2'),
            ("hard", b'1'),
            ("device", b'3'),
            ("", b'0'),
        ] {
            let (tmp, result) = unpacked(&[tar(name, kind, b"x")]);
            assert!(result.is_err(), "{name}");
            assert!(!tmp.path().join("out").exists());
        }
        let twice = [tar("a", b'0', b"1"), tar("a", b'0', b"2")];
        assert!(unpacked(&twice).1.is_err(), "a file is not written twice");
        let mut long = tar("a", b'0', b"x");
        long[124..135].copy_from_slice(format!("{:011o}", 1 << 30).as_bytes());
        assert!(unpacked(&[long]).1.unwrap_err().contains("too early"));
    }
}
