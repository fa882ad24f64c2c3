//! Folders that must not lie in a folder for temporary files, and addresses of folders.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Longest path of a folder in which sockets are made: their paths have at most 107 bytes.
const LONGEST: usize = 60;

/// A new folder in `target` (`CARGO_TARGET_TMPDIR`), deleted at the end. In `/var/tmp` where that would be in `/tmp`, of
/// which each command in a sandbox has its own; where its path is too long for sockets; or where words of a shell have to
/// be quoted to name it.
pub fn lasting(target: &str) -> tempfile::TempDir {
    let real = Path::new(target).canonicalize().unwrap_or_else(|_| target.into());
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    let fits = |path: &str| path.len() <= LONGEST && path.chars().all(plain);
    let good = !real.starts_with("/tmp") && real.to_str().is_some_and(fits);
    let mut builder = tempfile::Builder::new();
    // Other users may pass through it, as a test with two users does.
    builder.prefix("t").permissions(std::fs::Permissions::from_mode(0o711));
    if good {
        std::fs::create_dir_all(&real).unwrap();
    }
    builder.tempdir_in(if good { real.as_path() } else { Path::new("/var/tmp") }).unwrap()
}

/// The address of a folder or file, in which signs that an address cannot have are escaped.
pub fn file_url(path: &Path) -> String {
    let escaped = |byte: u8| match byte {
        b'/' | b'.' | b'_' | b'-' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    let path = path.as_os_str().as_encoded_bytes();
    format!("file://{}", path.iter().map(|byte| escaped(*byte)).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{file_url, lasting};

    #[test]
    fn an_address_has_no_blanks() {
        assert_eq!(file_url(Path::new("/a b/c%d.git")), "file:///a%20b/c%25d.git");
    }

    #[test]
    fn it_is_never_in_a_private_folder_and_its_path_is_one_word() {
        let parts =
            ["/tmp".to_owned(), "/tmp/x/target/tmp".into(), "/a b/c".into(), format!("/{}", "x".repeat(90))];
        for target in parts {
            assert!(lasting(&target).path().starts_with("/var/tmp"), "{target}");
        }
        let own = lasting("/var/tmp");
        let below = own.path().join("target");
        let made = lasting(below.to_str().unwrap());
        assert!(made.path().starts_with(&below));
    }
}
