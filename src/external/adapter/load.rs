//! Reads adapter files: the built-in ones, then those of the person and the project, which may replace them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::schema::{Adapter, PromptBy};

/// File name and text of the built-in adapters.
const BUILT_IN: &[(&str, &str)] = &[
    ("claude.toml", include_str!("../../../assets/adapters/claude.toml")),
    ("codex.toml", include_str!("../../../assets/adapters/codex.toml")),
    ("gemini.toml", include_str!("../../../assets/adapters/gemini.toml")),
    ("opencode.toml", include_str!("../../../assets/adapters/opencode.toml")),
    ("aider.toml", include_str!("../../../assets/adapters/aider.toml")),
    ("goose.toml", include_str!("../../../assets/adapters/goose.toml")),
    ("droid.toml", include_str!("../../../assets/adapters/droid.toml")),
];

/// Maximum size of an adapter file, in bytes.
const LARGEST: u64 = 256 << 10;

/// An error in an adapter file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub source: PathBuf,
    /// Line and column (in characters), from 1; `None` for the file as a whole.
    pub at: Option<(usize, usize)>,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source.display())?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All adapters by name, and the errors in adapter files. They are read on first use, which blocks on the disk and
/// compiles their many patterns.
#[derive(Clone, Debug)]
pub struct Adapters {
    folders: Vec<PathBuf>,
    read: Arc<OnceLock<Read>>,
}

#[derive(Debug, Default)]
struct Read {
    all: BTreeMap<String, Arc<Adapter>>,
    problems: Vec<Problem>,
}

impl Adapters {
    /// The built-in ones, then every `*.toml` of `folders` in order (the person's, then a *trusted* project's); a later
    /// one replaces an earlier one of the same name. A file with an error is left out and reported, and with it the one that
    /// has the name of the file.
    pub fn new(folders: &[PathBuf]) -> Self {
        Self { folders: folders.into(), read: Arc::default() }
    }

    fn read(&self) -> &Read {
        self.read.get_or_init(|| Read::from(&self.folders))
    }

    /// The adapter with this name.
    pub fn get(&self, name: &str) -> Option<Arc<Adapter>> {
        self.read().all.get(name).cloned()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Adapter>> {
        self.read().all.values()
    }

    /// Errors in adapter files.
    pub fn problems(&self) -> &[Problem] {
        &self.read().problems
    }

    /// Key variables of all vendors: a program must not get those of another vendor.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().flat_map(|a| a.env.keys.iter().map(String::as_str))
    }
}

impl Read {
    fn from(folders: &[PathBuf]) -> Self {
        let mut all = Self::default();
        for (name, text) in BUILT_IN {
            all.add(Path::new(name), text);
        }
        for folder in folders {
            let entries = match std::fs::read_dir(folder) {
                Ok(entries) => entries,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && !folder.is_symlink() => continue,
                Err(e) => {
                    let message =
                        format!("the folder cannot be read: {e}; no program is available until it can");
                    all.problems.push(Problem { source: folder.clone(), at: None, message });
                    // Any of them may be replaced there by one that may do less.
                    all.all.clear();
                    continue;
                }
            };
            let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
            paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
            paths.sort();
            for path in paths {
                match read(&path) {
                    Ok(text) => all.add(&path, &text),
                    Err(message) => all.fault(Problem { source: path, at: None, message }),
                }
            }
        }
        all
    }

    fn add(&mut self, path: &Path, text: &str) {
        match parse(path, text) {
            Ok(adapter) => _ = self.all.insert(adapter.name.clone(), Arc::new(adapter)),
            Err(problem) => self.fault(problem),
        }
    }

    /// A file that cannot be used. The adapter that it replaces by its name is left out with it: it may do more.
    fn fault(&mut self, problem: Problem) {
        if let Some(stem) = problem.source.file_stem() {
            self.all.remove(&*stem.to_string_lossy());
        }
        self.problems.push(problem);
    }
}

fn read(path: &Path) -> Result<String, String> {
    let text = tiller_fs::restricting::read_text(path, LARGEST)?;
    text.ok_or_else(|| "cannot be read: it was removed meanwhile".to_owned())
}

/// Parses one adapter.
///
/// # Errors
/// The first error, with its place.
pub fn parse(path: &Path, text: &str) -> Result<Adapter, Problem> {
    let problem = |at: Option<usize>, message: String| Problem {
        source: path.into(),
        at: at.map(|offset| place(text, offset)),
        message,
    };
    let mut adapter: Adapter = toml::from_str(text).map_err(|e| {
        let message = e.message().lines().next().unwrap_or("invalid TOML").to_owned();
        problem(e.span().map(|s| s.start), message)
    })?;
    // Checks beyond the format, reported at the line of the word that is wrong.
    let find = |word: &str| text.find(word);
    let wrong = |word: &str, message: String| Err(problem(find(word), message));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if adapter.name.is_empty() || adapter.name.len() > 40 || !adapter.name.chars().all(plain) {
        return wrong("name", "name must consist of lower-case letters, digits and dashes".into());
    }
    if let Some(name) =
        adapter.sandbox.scratch.keys().find(|name| name.contains('/') || name.starts_with('.'))
    {
        return wrong(
            name,
            "the name of a file in [sandbox.scratch] has no slash and no dot at its start".into(),
        );
    }
    if adapter.headless.is_none() && adapter.acp.is_none() && adapter.pty.is_none() {
        return wrong("name", "one of [headless], [acp] and [pty] is needed".into());
    }
    if let Some(h) = &adapter.headless {
        let places = [&h.args, &h.options, &h.last].into_iter().flatten();
        let there = places.into_iter().any(|a| a.contains("{prompt}"));
        if there != (h.prompt == PromptBy::Argument) {
            let message = "prompt = \"argument\" goes with {prompt} in the arguments, \"stdin\" without it";
            return wrong("[headless]", message.into());
        }
    }
    for dialog in adapter.pty.iter().flat_map(|p| &p.dialog) {
        let known = |id: &String| dialog.option.iter().any(|o| o.id == *id);
        if let Some(id) = dialog.rule.iter().chain(&dialog.auto).find(|id| !known(id)) {
            let message = format!("the dialog `{}` has no option `{id}`", dialog.name);
            return wrong(&dialog.name, message);
        }
        if dialog.all.is_empty() || dialog.option.is_empty() {
            return wrong(&dialog.name, format!("the dialog `{}` needs patterns and options", dialog.name));
        }
        if let Some(option) = dialog.option.iter().find(|o| o.keys.is_empty() == o.line.is_none()) {
            let message = format!("the option `{}` of `{}` needs `keys` or `line`", option.id, dialog.name);
            return wrong(&dialog.name, message);
        }
    }
    if adapter.program.reads.is_none() {
        adapter.program.reads = Some(built_in_reads(&adapter.name));
    }
    Ok(adapter)
}

/// The files that configure the built-in program `name`; for an unknown one, those of all built-in programs.
fn built_in_reads(name: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Brief {
        name: String,
        program: Reads,
    }
    #[derive(serde::Deserialize)]
    struct Reads {
        #[serde(default)]
        reads: Vec<String>,
    }
    let mut all: Vec<Brief> = BUILT_IN.iter().filter_map(|(_, text)| toml::from_str(text).ok()).collect();
    if all.iter().any(|a| a.name == name) {
        all.retain(|a| a.name == name);
    }
    let mut reads: Vec<String> = all.into_iter().flat_map(|a| a.program.reads).collect();
    reads.sort();
    reads.dedup();
    reads
}

fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_ones_are_right_and_their_keys_are_their_own() {
        let all = Adapters::new(&[]);
        assert_eq!(all.problems(), []);
        let names: Vec<&str> = all.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["aider", "claude", "codex", "droid", "gemini", "goose", "opencode"]);
        for (name, of) in [("claude", "ANTHROPIC"), ("codex", "OPENAI"), ("gemini", "GEMINI")] {
            let adapter = all.get(name).unwrap();
            assert!(adapter.env.keys.iter().any(|k| k.starts_with(of)));
            for other in ["ANTHROPIC_", "OPENAI_", "GEMINI_", "XAI_", "OPENROUTER_"] {
                let passes = adapter.env.keys.iter().chain(&adapter.env.pass).any(|k| k.starts_with(other));
                assert_eq!(passes, other.starts_with(of), "{name} {other}");
            }
        }
    }

    /// X18: an adapter file without the field (because it is older, or by mistake) disables no protection.
    #[test]
    fn x18_an_adapter_without_reads_has_the_built_in_ones() {
        let own = |name: &str, reads: &str| {
            let text = format!(
                "name = \"{name}\"\ntitle = \"X\"\n[program]\ncommand = \"x\"\ninstall = \"get x\"\n{reads}\n[acp]\ncommand = \"x\"\n"
            );
            parse(Path::new("x.toml"), &text).unwrap().program.reads().to_vec()
        };
        let built_in = Adapters::new(&[]);
        for adapter in built_in.iter() {
            let mut theirs = adapter.program.reads().to_vec();
            theirs.sort();
            assert!(!theirs.is_empty(), "{}", adapter.name);
            assert_eq!(own(&adapter.name, ""), theirs, "{}", adapter.name);
            let unknown = own("mine", "");
            assert!(theirs.iter().all(|r| unknown.contains(r)), "{}", adapter.name);
        }
        assert_eq!(own("claude", "reads = []"), Vec::<String>::new(), "what is said counts");
        assert_eq!(own("mine", "reads = [\"a\"]"), ["a"]);
    }

    #[test]
    fn mistakes_have_their_line() {
        let base = "name = \"x\"\ntitle = \"X\"\n[program]\ncommand = \"x\"\ninstall = \"get x\"\n";
        let said = |more: &str| parse(Path::new("x.toml"), &format!("{base}{more}")).unwrap_err().to_string();
        for (more, at, word) in [
            ("colour = 1\n", "x.toml:6:1:", "colour"),
            ("[pty]\nready = '('\n", "x.toml:7:9:", "not a pattern"),
            ("", "x.toml:1:1:", "is needed"),
            ("[headless]\nformat = \"text\"\nprompt = \"argument\"\n", "x.toml:6:1:", "{prompt}"),
            ("[headless]\nformat = \"morse\"\nprompt = \"stdin\"\n", "x.toml:7:10:", "morse"),
            (
                "[pty]\nready = 'x'\n[[pty.dialog]]\nname = \"d\"\nall = ['a']\nrule = \"no\"\noption = [{id = \"yes\", name = \"Yes\", keys = \"y\"}]\n",
                "x.toml:",
                "no option `no`",
            ),
            ("[[[", "x.toml:6:", ""),
        ] {
            let said = said(more);
            assert!(said.starts_with(at) && said.contains(word), "{more}: {said}");
        }
    }

    #[test]
    fn a_folder_adds_and_replaces_and_a_wrong_file_is_left_out() {
        let tmp = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(tmp.path().join(name), text).unwrap();
        let good =
            "title = \"Mine\"\n[program]\ncommand = \"m\"\ninstall = \"get m\"\n[acp]\ncommand = \"m\"\n";
        file("a.toml", &format!("name = \"mine\"\n{good}"));
        file("b.toml", &format!("name = \"claude\"\n{good}"));
        file("c.toml", "name = 1");
        file("d.txt", "no adapter");
        let all = Adapters::new(&[tmp.path().into(), "/nowhere".into()]);
        assert_eq!(all.get("mine").unwrap().title, "Mine");
        assert_eq!(all.get("claude").unwrap().title, "Mine");
        assert!(all.get("codex").is_some());
        assert_eq!(all.problems().len(), 1);
        assert!(all.problems()[0].to_string().contains("c.toml:1:8:"), "{}", all.problems()[0]);
    }

    #[test]
    fn a_bad_file_leaves_out_the_adapter_that_it_replaces() {
        for bad in tiller_fs::testing::BadFile::all() {
            let tmp = tempfile::tempdir().unwrap();
            if !bad.make(&tmp.path().join("codex.toml"), "name = \"codex\"\n") {
                continue;
            }
            let all = Adapters::new(&[tmp.path().into()]);
            assert!(all.get("codex").is_none() && all.get("claude").is_some(), "{}", bad.name);
            assert_eq!(all.problems().len(), 1, "{}", bad.name);
        }
    }
}
