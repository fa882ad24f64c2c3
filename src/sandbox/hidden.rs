//! Hidden files in the output of a command that failed.

use std::path::{Path, PathBuf};

use crate::policy::Policy;

/// The first of these paths, or a path below it, that stands in the output of a command.
pub(crate) fn hidden_in(hidden: &[PathBuf], output: &str) -> Option<String> {
    let end = |c: char| c.is_whitespace() || "'\"`:,;)]}>".contains(c);
    hidden.iter().find_map(|path| {
        let path = path.to_str()?;
        let (at, _) = output.match_indices(path).find(|(at, _)| {
            let next = output[at + path.len()..].chars().next();
            next.is_none_or(|next| next == '/' || end(next))
        })?;
        Some(output[at..].split(end).next().unwrap_or(path).to_owned())
    })
}

/// The first file that a command tried to read in vain, because it does not see it: what its output names, as seen from
/// `folder`, and is there.
pub(crate) fn unseen_in(policy: &Policy, output: &str, folder: &Path) -> Option<String> {
    let text = output.to_lowercase();
    let denied = ["denied", "eacces"].iter().any(|word| text.contains(word));
    let missing =
        |line: &str| ["no such file", "enoent"].iter().any(|words| line.to_lowercase().contains(words));
    let (sight, hidden) = (policy.sight(), policy.hidden_paths());
    let lines = output.lines().filter(|line| denied || missing(line));
    let names =
        lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "'\"`:,;()[]{}<>=".contains(c)));
    let names = names.filter(|name| !name.is_empty()).take(NAMES);
    let mut found = names.filter_map(|name| folder.join(name).canonicalize().ok());
    let unseen =
        found.find(|path| !sight.sees(path) || hidden.iter().any(|secret| path.starts_with(secret)))?;
    Some(unseen.display().to_string())
}

/// Words of an output that are looked at for names of files.
const NAMES: usize = 2_000;
