//! Agent programs of others that are installed here: named in the first set-up. Nothing is started.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Their commands.
const KNOWN: &[&str] = &[
    "claude",
    "codex",
    "gemini",
    "opencode",
    "aider",
    "goose",
    "cursor-agent",
    "amp",
    "qwen",
    "crush",
    "copilot",
    "kiro-cli",
    "grok",
];

/// Those that stand in a folder of `path`, as `PATH` has them.
pub(super) fn found(path: &str) -> Vec<String> {
    let runs = |file: &Path| {
        std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let folders: Vec<&str> = path.split(':').filter(|f| f.starts_with('/')).collect();
    let there = |name: &&&str| folders.iter().any(|f| runs(&Path::new(f).join(name)));
    KNOWN.iter().filter(there).map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_that_could_run_are_named() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("codex", 0o755), ("claude", 0o644), ("other", 0o755)] {
            let file = dir.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(dir.path().join("aider")).unwrap();
        let path = format!("relative:/nowhere:{}", dir.path().display());
        assert_eq!(found(&path), ["codex"]);
        assert!(found("").is_empty());
    }
}
