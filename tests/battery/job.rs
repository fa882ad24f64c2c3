//! Everyday jobs, from their file.

use anyhow::Result;
use serde::Deserialize;

const FILE: &str = include_str!("jobs/everyday.toml");

/// What people do every day.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub name: String,
    /// Script for `bash`, in a workspace with a repository. It stops at the first command that fails.
    pub(crate) shell: String,
    /// Programs without which it cannot be tried.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
}

impl Job {
    /// Does nothing, to see whether a sandbox starts at all.
    pub(crate) fn trivial() -> Self {
        Self { name: "nothing".into(), shell: "true".into(), needs: Vec::new() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    job: Vec<Job>,
}

/// All jobs.
///
/// # Errors
/// When the file is malformed.
pub fn jobs() -> Result<Vec<Job>> {
    let file: File = toml::from_str(FILE)?;
    Ok(file.job)
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_enough() {
        assert!(super::jobs().unwrap().len() >= 20);
    }
}
