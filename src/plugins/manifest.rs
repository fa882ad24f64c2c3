//! `plugin.toml`, and what the folder of a plugin brings.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tiller_config::schema;

/// The file that makes a folder a plugin.
pub const MANIFEST: &str = "plugin.toml";
/// Longest name, in characters.
const NAME: usize = 40;
/// Largest manifest, in bytes.
const LARGEST: u64 = 256 * 1024;
/// Own commands that are counted at most, and folders of them below each other: as many as are read.
const COMMANDS: usize = 200;
const COMMAND_FOLDERS: usize = 4;
/// Files and folders of commands that are looked at.
const ENTRIES: usize = 10 * COMMANDS;

/// What `plugin.toml` says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Lower-case letters, digits and `-`.
    pub name: String,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub description: String,
    /// Hooks, as in `[hooks]` of `config.toml`. They start in the project's folder.
    #[serde(default)]
    pub hooks: schema::Hooks,
    /// Tools.
    #[serde(default)]
    pub tools: Vec<PluginTool>,
    /// MCP servers by name, as in `[mcp.NAME]` of `config.toml`. Their programs start in the plugin's folder.
    #[serde(default)]
    pub mcp: BTreeMap<String, schema::McpServer>,
}

/// A tool of a plugin.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginTool {
    /// Lower-case letters, digits and `_`. Models call it `PLUGIN_NAME`.
    pub name: String,
    /// For the model.
    pub description: String,
    /// Command line for `/bin/sh`, started in the plugin's folder for each call. It reads one line of JSON and writes one.
    pub command: String,
    /// JSON schema of the arguments: an object.
    #[serde(default = "any_object")]
    pub schema: toml::Value,
    /// Seconds that a call may take.
    #[serde(default = "seconds")]
    pub timeout: u64,
}

fn any_object() -> toml::Value {
    let pair = ("type".to_owned(), toml::Value::String("object".into()));
    toml::Value::Table(toml::Table::from_iter([pair]))
}

fn seconds() -> u64 {
    60
}

/// Numbers of what a plugin brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brought(pub Vec<(usize, &'static str)>);

impl Brought {
    /// For people: `2 hooks, 1 tool`.
    pub fn words(&self) -> String {
        let one = |(n, what): &(usize, &str)| format!("{n} {what}{}", if *n == 1 { "" } else { "s" });
        let all: Vec<String> = self.0.iter().filter(|(n, _)| *n > 0).map(one).collect();
        if all.is_empty() { "nothing".into() } else { all.join(", ") }
    }
}

/// Reads the manifest of a folder.
///
/// # Errors
/// A sentence, with the line where there is one.
pub fn read(folder: &Path) -> Result<Manifest, String> {
    let path = folder.join(MANIFEST);
    let meta = std::fs::symlink_metadata(&path).map_err(|_| format!("there is no {MANIFEST}"))?;
    if !meta.is_file() || meta.len() > LARGEST {
        return Err(format!("{MANIFEST} is not a regular file, or is larger than 256 KiB"));
    }
    let bytes = tiller_fs::beneath::read_below(folder, Path::new(MANIFEST), LARGEST);
    parse(&bytes.map_err(|e| format!("{MANIFEST} cannot be read: {e}"))?)
}

/// The manifest in the content of its file.
///
/// # Errors
/// As [`read`].
pub(crate) fn parse(bytes: &[u8]) -> Result<Manifest, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("{MANIFEST} cannot be read: {e}"))?;
    let manifest: Manifest = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        // The first line says what; the rest would quote the text.
        format!("{MANIFEST}, line {line}: {}", e.message().lines().next().unwrap_or("invalid TOML"))
    })?;
    check(&manifest)?;
    Ok(manifest)
}

/// Whether a plugin may be called this.
pub fn valid_name(name: &str) -> bool {
    let plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
    !name.is_empty() && name.len() <= NAME && name.chars().all(plain) && !name.starts_with('-')
}

fn check(manifest: &Manifest) -> Result<(), String> {
    if !valid_name(&manifest.name) {
        return Err(format!("the name must have lower-case letters, digits and - only, {NAME} at most"));
    }
    let plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_');
    for (at, tool) in manifest.tools.iter().enumerate() {
        if tool.name.is_empty() || tool.name.len() > NAME || !tool.name.chars().all(plain) {
            return Err(format!(
                "the name of tool {} must have lower-case letters, digits and _ only",
                at + 1
            ));
        }
        if manifest.tools[..at].iter().any(|other| other.name == tool.name) {
            return Err(format!("two tools are named {}", tool.name));
        }
        if tool.command.trim().is_empty() || tool.description.trim().is_empty() {
            return Err(format!("the tool {} needs a command and a description", tool.name));
        }
        if tool.schema.get("type").and_then(toml::Value::as_str) != Some("object") {
            return Err(format!("the schema of the tool {} must have type = \"object\"", tool.name));
        }
    }
    for (name, server) in &manifest.mcp {
        let name = name.escape_default();
        if server.command.is_some() == server.url.is_some() {
            return Err(format!("the MCP server {name} needs either a command or a url"));
        }
        // What the user agrees to names files of the plugin; none of them may leave the sandbox.
        if server.unconfined || !server.writable.is_empty() {
            return Err(format!("the MCP server {name} may have neither unconfined nor writable"));
        }
    }
    Ok(())
}

/// What a folder brings besides its name.
pub fn brought(folder: &Path, manifest: &Manifest) -> Brought {
    let files = |name: &str, ending: &str| {
        let entries = std::fs::read_dir(folder.join(name)).into_iter().flatten().flatten();
        entries.filter(|e| e.path().extension().is_some_and(|x| x == ending)).count()
    };
    let skills = std::fs::read_dir(folder.join("skills")).into_iter().flatten().flatten();
    let skills = skills.filter(|e| e.path().join("SKILL.md").is_file()).count();
    let hooks = serde_json::to_value(&manifest.hooks).unwrap_or_default();
    let hooks = hooks.as_object().into_iter().flatten();
    let mut left = ENTRIES;
    Brought(vec![
        (hooks.filter_map(|(_, list)| Some(list.as_array()?.len())).sum(), "hook"),
        (manifest.tools.len(), "tool"),
        (manifest.mcp.len(), "MCP server"),
        (files("agents", "md"), "agent"),
        (skills, "skill"),
        (commands(&folder.join("commands"), 0, &mut left).min(COMMANDS), "command"),
        (files("themes", "toml"), "theme"),
        (files("keymaps", "toml"), "keymap"),
        (usize::from(folder.join("prompt.md").is_file()), "prompt section"),
    ])
}

/// The number of own commands in a folder and in those below it. Links to folders, and folders whose name begins with a
/// dot, hold none. `left`: entries that may still be looked at.
fn commands(folder: &Path, depth: usize, left: &mut usize) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 {
            break;
        }
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !hidden && depth < COMMAND_FOLDERS => {
                *left -= 1;
                count += commands(&path, depth + 1, left);
            }
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|x| x == "md") => {
                *left -= 1;
                count += 1;
            }
            _ => {}
        }
    }
    count
}

/// Makes the folder of a new plugin with an example of a tool and of a hook.
///
/// # Errors
/// When the name is not valid, the folder exists, or it cannot be written.
pub fn new_plugin(folder: &Path, name: &str) -> Result<(), String> {
    if !valid_name(name) {
        return Err("the name must have lower-case letters, digits and - only".into());
    }
    let fail = |e: std::io::Error| format!("{} cannot be made: {e}", folder.display());
    std::fs::create_dir(folder).map_err(fail)?;
    let manifest = format!(
        r#"name = "{name}"
version = "0.1.0"
description = "What it is for"

# A tool. Models call it {tool}_echo. The command reads one line of JSON, {{"id": 1, "tool": "echo", "arguments": {{...}}}},
# and writes one: {{"id": 1, "result": "text"}} or {{"id": 1, "error": "text"}}.
[[tools]]
name = "echo"
description = "Returns the text."
command = "sh echo.sh"
schema = {{ type = "object", properties = {{ text = {{ type = "string" }} }}, required = ["text"] }}

# A hook, as in config.toml.
[[hooks.before-tool-call]]
name = "no force push"
match = "terminal(git push --force*)"
command = "echo 'forced pushes are not allowed' >&2; exit 2"

# An MCP server, as in config.toml. It starts in this folder; ${{TILLER_PLUGIN_DIR}} is this folder in args.
# [mcp.{name}]
# command = "python3"
# args = ["server.py"]

# Folders agents/, skills/, commands/, themes/ and keymaps/, and a file prompt.md, are used when they exist. A keymap is
# chosen by its name: keymap = "{name}" in [ui] of config.toml for keymaps/{name}.toml, which begins with preset = "default".
"#,
        tool = name.replace('-', "_"),
    );
    let script = "read -r line\nprintf '{\"id\": 1, \"result\": \"it works\"}\\n'\n";
    std::fs::write(folder.join(MANIFEST), manifest).map_err(fail)?;
    std::fs::write(folder.join("echo.sh"), script).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_plugin_is_valid_and_mistakes_are_named() {
        let tmp = tempfile::tempdir().unwrap();
        let folder = tmp.path().join("mine");
        new_plugin(&folder, "mine").unwrap();
        let manifest = read(&folder).unwrap();
        assert_eq!(brought(&folder, &manifest).words(), "1 hook, 1 tool");
        assert!(new_plugin(&folder, "mine").is_err(), "it exists");
        // What is commented out in the example is valid, too.
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("# [mcp.", "[mcp.").replace("# command", "command").replace("# args", "args");
        std::fs::write(&path, text).unwrap();
        std::fs::create_dir(folder.join("keymaps")).unwrap();
        std::fs::write(folder.join("keymaps/mine.toml"), "preset = \"default\"\n").unwrap();
        let manifest = read(&folder).unwrap();
        assert_eq!(brought(&folder, &manifest).words(), "1 hook, 1 tool, 1 MCP server, 1 keymap");
        for (path, is_one) in
            [("a", true), ("b/c", true), (".b/c", false), ("1/2/3/4/d", true), ("1/2/3/4/5/e", false)]
        {
            let before = brought(&folder, &manifest);
            let path = folder.join(format!("commands/{path}.md"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "Look.").unwrap();
            assert_eq!(brought(&folder, &manifest) != before, is_one, "{}", path.display());
        }
        assert!(brought(&folder, &manifest).words().contains("3 commands"));
        for (text, said) in [
            ("name = \"Mine\"\n", "lower-case"),
            ("name = \"../x\"\n", "lower-case"),
            ("name = \"mine\"\nnmae = 1\n", "line 2"),
            (
                "name = \"mine\"\n[[tools]]\nname = \"a\"\ndescription = \"d\"\ncommand = \"\"\n",
                "needs a command",
            ),
            ("name = \"mine\"\n[[hooks.before-call]]\ncommand = \"x\"\n", "line 2"),
            ("name = ", "line 1"),
            ("name = \"mine\"\n[mcp.a]\n", "either a command or a url"),
            ("name = \"mine\"\n[mcp.a]\ncomand = \"x\"\n", "line 3"),
            ("name = \"mine\"\n[mcp.a]\ncommand = \"x\"\nunconfined = true\n", "unconfined"),
            ("name = \"mine\"\n[mcp.a]\ncommand = \"x\"\nwritable = [\"/\"]\n", "writable"),
        ] {
            std::fs::write(folder.join(MANIFEST), text).unwrap();
            let error = read(&folder).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
