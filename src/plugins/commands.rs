//! `/` commands of a folder: `commands/NAME.md`, a prompt below an optional front matter with a `description`.

use std::path::Path;

/// Most files, and bytes of each.
const FILES: usize = 200;
const LARGEST: u64 = 64 * 1024;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginCommand {
    /// The name of its file.
    pub name: String,
    pub about: String,
    pub prompt: String,
}

/// The commands of a folder, by name. What cannot be read is left out.
pub fn commands(folder: &Path) -> Vec<PluginCommand> {
    let entries = std::fs::read_dir(folder.join("commands")).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|e| e.path()).collect();
    paths.sort();
    paths.truncate(FILES);
    paths.iter().filter_map(|path| command(path)).collect()
}

fn command(path: &Path) -> Option<PluginCommand> {
    let name = path.file_stem()?.to_str()?.to_owned();
    let meta = std::fs::metadata(path).ok()?;
    let plain = crate::valid_name(&name) && path.extension()? == "md";
    if !plain || !meta.is_file() || meta.len() > LARGEST {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let front = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    let (front, body) = front.map_or(("", text.as_str()), |(front, body)| {
        (front, body.split_once('\n').map_or("", |(_, body)| body))
    });
    let about = front.lines().find_map(|line| line.strip_prefix("description:"));
    let about = about.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned();
    let prompt = body.trim().to_owned();
    (!prompt.is_empty()).then_some(PluginCommand { name, about, prompt })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_and_odd_files_are_left_out() {
        let tmp = tempfile::tempdir().unwrap();
        let folder = tmp.path().join("commands");
        std::fs::create_dir(&folder).unwrap();
        for (name, text) in [
            ("deploy.md", "---\ndescription: \"Deploys it\"\n---\nDeploy to $ARGUMENTS.\n"),
            ("plain.md", "Say hello.\n"),
            ("empty.md", "---\ndescription: x\n---\n\n"),
            ("Bad Name.md", "x"),
            ("other.txt", "x"),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let all = commands(tmp.path());
        let shown: Vec<_> =
            all.iter().map(|c| (c.name.as_str(), c.about.as_str(), c.prompt.as_str())).collect();
        assert_eq!(shown, [("deploy", "Deploys it", "Deploy to $ARGUMENTS."), ("plain", "", "Say hello.")]);
    }
}
