//! The person's editor: `$VISUAL`, `$EDITOR`, else `vi`.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Editors that accept `+LINE` before the file.
const PLUS: &[&str] =
    &["vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg", "ed"];

/// Runs a command in the foreground; returns its exit code, or an error as part of a sentence.
pub(crate) type Front<'a> = &'a dyn Fn(Vec<OsString>) -> Result<i32, String>;

/// Runs it as a child of this process.
pub(crate) fn here(words: Vec<OsString>) -> Result<i32, String> {
    let mut words = words.into_iter();
    let status = Command::new(words.next().unwrap_or_default()).args(words).status();
    status.map_err(|e| e.to_string()).and_then(|s| s.code().ok_or_else(|| s.to_string()))
}

/// Opens it with a file and waits for its end.
///
/// # Errors
/// A sentence: it could not be started, or it ended with an error.
pub(crate) fn open(
    var: &dyn Fn(&str) -> Option<String>,
    front: Front<'_>,
    file: &Path,
    line: Option<u32>,
) -> Result<(), String> {
    let command = var("VISUAL").or_else(|| var("EDITOR")).unwrap_or_else(|| "vi".into());
    let words = shlex::split(&command).filter(|w| !w.is_empty()).ok_or_else(|| {
        format!("The editor '{command}' cannot be read as a command. Set VISUAL or EDITOR.")
    })?;
    let mut run: Vec<OsString> = words.iter().map(OsString::from).collect();
    let name = Path::new(&words[0]).file_name().and_then(|n| n.to_str()).unwrap_or("");
    match line {
        Some(n) if PLUS.contains(&name) => {
            run.extend([format!("+{n}").into(), file.into()]);
        }
        Some(n) if name == "hx" || name == "code" || name == "zed" => {
            if name == "code" {
                run.push("--goto".into());
            }
            run.push(format!("{}:{n}", file.display()).into());
        }
        _ => {
            run.push(file.into());
        }
    }
    match front(run) {
        Ok(0) => Ok(()),
        Ok(n) => Err(format!("The editor '{}' ended with exit status {n}; its text was not used.", words[0])),
        Err(e) => Err(format!("The editor '{}' failed: {e}. Set VISUAL or EDITOR.", words[0])),
    }
}
