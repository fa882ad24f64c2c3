//! Words of a command, and the paths that these stand for.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use globset::GlobBuilder;
use regex::Regex;
use tiller_shell::Word;

/// Stands for the folder of the project in a text.
const PROJECT: &str = "/.tiller-project";
/// Stands for the folder of the script in a text.
const SCRIPT: &str = "/.tiller-script";
/// Variables of a text that are replaced, and the longest text in which they are: each is looked for in all of it.
const VARIABLES: usize = 30;
const LONGEST: usize = 32 << 10;
/// Most paths that a pattern stands for.
const MATCHES: usize = 50;

/// Where the words of a text are looked up.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The project, without links.
    pub(super) project: PathBuf,
    /// Folders that relative words may be in.
    pub(super) bases: Vec<PathBuf>,
    /// The folders of the script; without, its text is a command.
    pub(super) script: Vec<PathBuf>,
}

fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// Ways to write the project's folder.
static PROJECTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r"\$(TILLER_PROJECT_DIR|CLAUDE_PROJECT_DIR|TILLER_PLUGIN_DIR|PWD)\b|\$\{(TILLER_PROJECT_DIR|CLAUDE_PROJECT_DIR|TILLER_PLUGIN_DIR|PWD)(:?[-=?][^}]*)?\}|\$\(\s*(pwd( -[LP])?|git rev-parse --show-toplevel)\s*(2>\s*/dev/null\s*)?\)|`\s*(pwd|git rev-parse --show-toplevel)\s*`",
    )
});
/// The path of a script in its own text.
const SELF: &str = r#""?\$(0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(\[0\])?(:?-\$0)?\}|\{\(%\):-%[xN]\})"?"#;
/// Ways to write the folder of a script, the ones around others last.
static SCRIPTS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let place = regex::escape(SCRIPT);
    let ways = [
        r"\$\{(0|BASH_SOURCE(\[0\])?)%/\*\}".to_owned(),
        format!(r"\$\(\s*dirname( --)? (\$\((readlink|realpath)( -[a-z]+)?( --)? )?{SELF}\s*\)?\s*\)"),
        format!(r"`\s*dirname( --)? {SELF}\s*`"),
        format!(
            r#"\$\(\s*(CDPATH=\S* )?(cd|builtin cd)( -[LP])?( --)? "?{place}(?P<below>[\w./-]*)"?\s*(>\s*/dev/null(\s*2>&1)?\s*)?(&&|;)\s*pwd( -[LP])?\s*\)"#
        ),
    ];
    ways.iter().filter_map(|way| regex(way)).collect()
});
/// An assignment of a text that is known.
static ASSIGNED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        r#"(?m)(?:^|[;&]|\b(?:export|local|readonly|declare)\s)\s*([A-Za-z_]\w*)=("[\w./-]*"|'[\w./-]*'|[\w./-]+)(?:\s|;|$)"#,
    )
});

/// The text with the folders of the project and of the script in the place of what stands for them, and with variables that
/// are assigned once, to a text that is known.
pub(super) fn prepared(text: &str, in_script: bool) -> String {
    let mut text = match PROJECTS.as_ref() {
        Some(ways) if text.contains(['$', '`']) => ways.replace_all(text, PROJECT).into_owned(),
        _ => text.to_owned(),
    };
    if in_script && text.contains(['$', '`']) {
        for way in SCRIPTS.iter() {
            let has_below = way.capture_names().flatten().any(|name| name == "below");
            let by = if has_below { format!("{SCRIPT}$below") } else { SCRIPT.to_owned() };
            text = way.replace_all(&text, by.as_str()).into_owned();
        }
    }
    // A value may hold another variable.
    for _ in 0..3 {
        let Some(next) = with_variables(&text) else { break };
        text = next;
    }
    text
}

/// Commands that take in another text, which may give a variable another value.
static SOURCES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(r"(?m)(^|[;&|({!]|\b(then|do|else|if|exec|builtin|command))\s*(\.|source)\s[^\n]*")
});
/// Text that runs later than it stands, or again.
static REPEATS: LazyLock<Option<Regex>> = LazyLock::new(|| regex(r"\b(do|function)\b|\(\s*\)"));

/// The length of the text that no other one has changed variables of.
fn own_variables(text: &str) -> usize {
    let (Some(sources), Some(repeats)) = (SOURCES.as_ref(), REPEATS.as_ref()) else { return 0 };
    // Behind the first command of its line the variables are those of the other text, too.
    let end = |found: regex::Match<'_>| {
        let line = found.as_str().trim_start_matches([';', '&', '|', '(', '{', '!', '\n']);
        found.end() - line.len() + line.find([';', '&', '|']).unwrap_or(line.len())
    };
    match sources.find(text) {
        None => text.len(),
        Some(found) if repeats.is_match(&text[..found.start()]) => 0,
        Some(found) => end(found),
    }
}

fn with_variables(text: &str) -> Option<String> {
    let assigned = ASSIGNED.as_ref().filter(|_| text.len() <= LONGEST)?;
    let (own, behind) = text.split_at(own_variables(text));
    let mut out = own.to_owned();
    for found in assigned.captures_iter(own).take(VARIABLES) {
        let (Some(name), Some(value)) = (found.get(1), found.get(2)) else { continue };
        let (name, value) = (name.as_str(), value.as_str().trim_matches(['"', '\'']));
        // `read x`, a loop over it or another assignment would give it another value.
        let Some(bare) = regex(&format!(r"(^|[^\w$\{{]){name}\b")) else { continue };
        if bare.find_iter(text).count() != 1 {
            continue;
        }
        if let Some(used) = regex(&format!(r"\$(\{{{name}\}}|{name}\b)")) {
            out = used.replace_all(&out, regex::NoExpand(value)).into_owned();
        }
    }
    (out != own).then(|| out + behind)
}

impl Places {
    /// The paths that a word may be, existing or not, those in the first base first.
    pub(super) fn paths(&self, word: &Word) -> Vec<PathBuf> {
        self.of_text(&word.text)
    }

    pub(super) fn of_text(&self, text: &str) -> Vec<PathBuf> {
        let below = |rest: &str| rest.trim_start_matches('/').to_owned();
        if let Some(rest) = text.strip_prefix(PROJECT) {
            let tops = self.project.ancestors().filter(|top| top.join(".git").exists());
            // `$PWD` is the folder that was changed to.
            let all = std::iter::once(self.project.as_path()).chain(self.bases.iter().map(PathBuf::as_path));
            return all.chain(tops).map(|top| top.join(below(rest))).collect();
        }
        if let Some(rest) = text.strip_prefix(SCRIPT) {
            return self.script.iter().map(|folder| folder.join(below(rest))).collect();
        }
        if text.starts_with('/') {
            return vec![PathBuf::from(text)];
        }
        self.bases.iter().map(|base| base.join(text)).collect()
    }

    /// The existing files that a word stands for, its pattern expanded.
    pub(super) fn files(&self, word: &Word) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for path in self.paths(word) {
            if word.glob {
                expand(&path, &mut all);
            } else if path.is_file() {
                all.push(path);
            }
        }
        all
    }

    /// The same places, and the folders that a command changes to.
    pub(super) fn with_folders(mut self, folders: &[Option<String>]) -> Self {
        const MOST: usize = 24;
        for folder in folders.iter().flatten() {
            let more = self.of_text(folder);
            for path in more.into_iter().filter(|path| path.is_dir()) {
                if self.bases.len() < MOST && !self.bases.contains(&path) {
                    self.bases.push(path);
                }
            }
        }
        self
    }
}

/// The files that a path with patterns stands for.
fn expand(pattern: &Path, into: &mut Vec<PathBuf>) {
    let mut level = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy();
        if !text.contains(['*', '?', '[', '{']) {
            level.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let Ok(glob) = GlobBuilder::new(&text).literal_separator(true).build() else { return };
        let glob = glob.compile_matcher();
        let mut next = Vec::new();
        for path in &level {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            let fits = entries.filter(|entry| glob.is_match(Path::new(&entry.file_name())));
            next.extend(fits.map(|entry| entry.path()).take(MATCHES));
        }
        level = next;
    }
    level.sort();
    into.extend(level.into_iter().filter(|path| path.is_file()).take(MATCHES));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_project_and_of_the_script_are_known() {
        for (text, expected) in [
            ("sh $PWD/x.sh", "sh /.tiller-project/x.sh"),
            ("sh \"${CLAUDE_PROJECT_DIR:-.}\"/x.sh", "sh \"/.tiller-project\"/x.sh"),
            ("sh $(pwd)/x.sh", "sh /.tiller-project/x.sh"),
            ("sh \"$(git rev-parse --show-toplevel)/x.sh\"", "sh \"/.tiller-project/x.sh\""),
            (". \"$(dirname \"$0\")/lib.sh\"", ". \"/.tiller-script/lib.sh\""),
            (". \"$(dirname \"${BASH_SOURCE[0]}\")/lib.sh\"", ". \"/.tiller-script/lib.sh\""),
            (". \"${0%/*}/lib.sh\"", ". \"/.tiller-script/lib.sh\""),
            (
                "HERE=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\n. \"$HERE/lib.sh\"\n",
                "HERE=\"/.tiller-script\"\n. \"/.tiller-script/lib.sh\"\n",
            ),
            ("D=$(dirname $0)/..\n. $D/lib.sh\n", "D=/.tiller-script/..\n. /.tiller-script/../lib.sh\n"),
            ("A=x.sh; sh $A", "A=x.sh; sh x.sh"),
            ("A=x.sh; A=y.sh; sh $A", "A=x.sh; A=y.sh; sh $A"),
            ("A=x.sh; read A; sh ${A}", "A=x.sh; read A; sh ${A}"),
            ("sh $PWDX/x.sh", "sh $PWDX/x.sh"),
        ] {
            assert_eq!(prepared(text, true), expected);
        }
        assert_eq!(prepared(". $(dirname $0)/x", false), ". $(dirname $0)/x");
    }
}
