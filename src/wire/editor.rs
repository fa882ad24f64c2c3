//! The person's editor: `$VISUAL`, `$EDITOR`, else `vi`.

use std::path::Path;
use std::process::Command;

/// Editors that take `+LINE` before the file.
const PLUS: &[&str] =
    &["vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg", "ed"];

/// Opens it on a file and waits for it.
///
/// # Errors
/// A sentence: it could not be started, or it ended with an error.
pub(crate) fn open(
    var: &dyn Fn(&str) -> Option<String>,
    file: &Path,
    line: Option<u32>,
) -> Result<(), String> {
    let command = var("VISUAL").or_else(|| var("EDITOR")).unwrap_or_else(|| "vi".into());
    let words = shlex::split(&command).filter(|w| !w.is_empty()).ok_or_else(|| {
        format!("The editor '{command}' cannot be read as a command. Set VISUAL or EDITOR.")
    })?;
    let mut run = Command::new(&words[0]);
    run.args(&words[1..]);
    let name = Path::new(&words[0]).file_name().and_then(|n| n.to_str()).unwrap_or("");
    match line {
        Some(n) if PLUS.contains(&name) => {
            run.arg(format!("+{n}")).arg(file);
        }
        Some(n) if name == "hx" || name == "code" || name == "zed" => {
            if name == "code" {
                run.arg("--goto");
            }
            run.arg(format!("{}:{n}", file.display()));
        }
        _ => {
            run.arg(file);
        }
    }
    match run.status() {
        Ok(s) if s.success() => Ok(()),
        Ok(s) => Err(format!("The editor '{}' ended with {s}; nothing was taken over.", words[0])),
        Err(e) => Err(format!("The editor '{}' could not be started: {e}. Set VISUAL or EDITOR.", words[0])),
    }
}
