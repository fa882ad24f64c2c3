//! The escapes, from their files.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::witness::Witness;

const FILES: &[(&str, &str)] = &[
    ("files", include_str!("escapes/files.toml")),
    ("later", include_str!("escapes/later.toml")),
    ("processes", include_str!("escapes/processes.toml")),
    ("network", include_str!("escapes/network.toml")),
    ("kernel", include_str!("escapes/kernel.toml")),
    ("supervisor", include_str!("escapes/supervisor.toml")),
    (READ, include_str!("escapes/read.toml")),
];

/// Group of the escapes from a sandbox in which nothing may be written.
const READ: &str = "read";

/// In front of each script that is written in Python.
const PRELUDE: &str = include_str!("prelude.py");

/// One way out of a sandbox.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Escape {
    pub name: String,
    /// What it tries, for a person.
    pub tries: String,
    /// Script for `sh`, or
    shell: Option<String>,
    /// for Python, after [`PRELUDE`].
    python: Option<String>,
    /// Script for `sh` that prepares the workspace, outside of the sandbox.
    pub(crate) before: Option<String>,
    /// Decides whether it got out.
    #[serde(default)]
    pub(crate) witness: Witness,
    /// It needs a process outside.
    #[serde(default)]
    pub(crate) victim: bool,
    /// It runs on a terminal.
    #[serde(default)]
    pub(crate) terminal: bool,
    /// Name of its file.
    #[serde(skip)]
    pub group: &'static str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    escape: Vec<Escape>,
}

impl Escape {
    /// It is none from a sandbox in which the workspace may be written.
    pub fn writes_workspace(&self) -> bool {
        self.group == READ
    }

    /// What it gets out is printed: what a sandbox in which nothing may be written has to hold, too.
    pub fn shows_secrets(&self) -> bool {
        self.witness == Witness::Output
    }

    /// Interpreter, suffix of the script's file, and the script.
    pub(crate) fn script(&self) -> (&'static str, &'static str, String) {
        match (&self.shell, &self.python) {
            (_, Some(code)) => ("python3", "py", format!("{PRELUDE}\n\n{code}")),
            (shell, None) => ("sh", "sh", shell.clone().unwrap_or_default()),
        }
    }
}

/// All escapes.
///
/// # Errors
/// When a file is malformed, or two escapes have one name.
pub fn escapes() -> Result<Vec<Escape>> {
    let mut all: Vec<Escape> = Vec::new();
    for (group, text) in FILES {
        let file: File = toml::from_str(text).with_context(|| format!("escapes/{group}.toml"))?;
        for mut escape in file.escape {
            if all.iter().any(|e| e.name == escape.name) {
                bail!("two escapes are called {}", escape.name);
            }
            if escape.shell.is_some() == escape.python.is_some() {
                bail!("{} needs one script", escape.name);
            }
            escape.group = group;
            all.push(escape);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough_of_every_kind() {
        let all = escapes().unwrap();
        assert!(all.len() >= 168, "{}", all.len());
        for (group, _) in FILES {
            assert!(all.iter().filter(|e| e.group == *group).count() >= 15, "{group}");
        }
    }
}
