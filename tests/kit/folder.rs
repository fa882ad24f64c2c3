//! Folders of a test that must not lie in a folder for temporary files.

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
    builder.tempdir_in(if good { &real } else { Path::new("/var/tmp") }).unwrap()
}

#[cfg(test)]
mod tests {
    use super::lasting;

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
