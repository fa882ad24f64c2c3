//! Programs of a test, written so that they can be started at once.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program, with the folders above it.
///
/// Another process writes it. A file that this process has open for writing is also open in each child that another
/// thread forks at this moment, until that child becomes its program, and meanwhile it cannot be started (`Text file
/// busy`).
pub fn program(path: &Path, text: &str) {
    const SCRIPT: &str =
        r#"mkdir -p "${1%/*}" && cat >"$1.new" && chmod 755 "$1.new" && mv -f "$1.new" "$1""#;
    let mut writer =
        Command::new("/bin/sh").args(["-c", SCRIPT, "sh"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success(), "{} cannot be written", path.display());
}
