//! Patterns of rules: `*` any text, `?` one character, `<name>` one plain word, `\` takes the next
//! character as it is. In a rule that allows a command, a `*` at the end of a word ends that word: `cargo test*`
//! is `cargo test` with any arguments, and not `cargo test-all`.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

use tiller_shell::HOLE;

/// Longest pattern.
const MAX: usize = 2_000;
/// What `<name>` stands for: a plain word that cannot be an option, an absolute path, a step upwards
/// or a refspec.
const NAME: &str = r"[A-Za-z0-9_]+(?:[.@/-][A-Za-z0-9_]+)*";

/// Patterns of up to this many bytes always compile, so that they are compiled when first used.
const SURE: usize = 100;

/// A pattern. It is compiled when it is first used: a start reads many rules and uses few.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// As a regular expression.
    source: String,
    /// `None` inside: it cannot be compiled. That is reported when the rule is read.
    exact_case: OnceLock<Option<Regex>>,
    any_case: OnceLock<Option<Regex>>,
    /// The same for commands, where its last `*` begins a new word.
    prefix: Option<Prefix>,
    /// Characters that stand for themselves: the more, the more specific.
    literal: usize,
    wild: bool,
}

/// A pattern whose last `*` stands at the end of a word.
#[derive(Clone, Debug)]
struct Prefix {
    source: String,
    compiled: OnceLock<Option<Regex>>,
}

/// Any text, as a regular expression.
const ANY: &str = "(?s:.*)";

impl Pattern {
    /// Reads `text`.
    ///
    /// # Errors
    /// In words.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > MAX {
            return Err(format!("a pattern can have at most {MAX} bytes"));
        }
        let mut source = String::from(r"\A");
        let (mut literal, mut wild) = (0, false);
        // Whether what was read last ends a word, and whether a `*` follows it.
        let (mut word, mut open) = (false, false);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '*' => {
                    source.push_str(ANY);
                    wild = true;
                    open = word;
                    word = false;
                    continue;
                }
                '?' => {
                    source.push_str(&format!("[^{HOLE}]"));
                    wild = true;
                    word = false;
                }
                '<' if is_name(chars.as_str()) => {
                    source.push_str(NAME);
                    wild = true;
                    chars.by_ref().find(|c| *c == '>');
                    word = true;
                }
                _ => {
                    let c = if c == '\\' { chars.next().unwrap_or(c) } else { c };
                    source.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
                    literal += 1;
                    word = c.is_alphanumeric() || c == '_';
                }
            }
            open = false;
        }
        let prefix = source
            .strip_suffix(ANY)
            .filter(|_| open)
            .map(|start| Prefix { source: format!(r"{start}(?s:\s.*)?\z"), compiled: OnceLock::new() });
        source.push_str(r"\z");
        let (exact_case, any_case) = (OnceLock::new(), OnceLock::new());
        if text.len() > SURE {
            let build = |fold| compile(&source, fold).map_err(|e| e.to_string());
            (_, _) = (exact_case.set(Some(build(false)?)), any_case.set(Some(build(true)?)));
            if let Some(prefix) = &prefix {
                let _ = prefix.compiled.set(Some(compile(&prefix.source, false).map_err(|e| e.to_string())?));
            }
        }
        Ok(Self { text: text.to_owned(), source, exact_case, any_case, prefix, literal, wild })
    }

    /// Exact case: for what loosens.
    pub fn matches(&self, text: &str) -> bool {
        let compiled = self.exact_case.get_or_init(|| compile(&self.source, false).ok());
        compiled.as_ref().is_some_and(|r| r.is_match(text))
    }

    /// Exact case, for a rule that allows a command: a `*` at the end of a word does not go on with that word.
    pub fn allows(&self, command: &str) -> bool {
        match &self.prefix {
            None => self.matches(command),
            Some(prefix) => {
                let compiled = prefix.compiled.get_or_init(|| compile(&prefix.source, false).ok());
                compiled.as_ref().is_some_and(|r| r.is_match(command))
            }
        }
    }

    /// Any case: for what narrows, because some file systems do not tell case apart.
    pub fn matches_any_case(&self, text: &str) -> bool {
        let compiled = self.any_case.get_or_init(|| compile(&self.source, true).ok());
        // What narrows does so in doubt, too.
        compiled.as_ref().is_none_or(|r| r.is_match(text))
    }

    /// As written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of characters that stand for themselves.
    pub fn literal(&self) -> usize {
        self.literal
    }

    /// True when it stands for more than one text.
    pub fn is_wild(&self) -> bool {
        self.wild
    }
}

fn compile(source: &str, any_case: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(source).case_insensitive(any_case).build()
}

/// `word>` follows.
fn is_name(rest: &str) -> bool {
    rest.find('>').is_some_and(|end| {
        end > 0 && end <= 20 && rest[..end].chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '_')
    })
}

/// Text as a pattern that stands for itself only.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '\\' | '<') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_later_is_sure_to_compile() {
        // Each kind of part as often as fits, and what folds to several characters.
        for part in ["*", "?", "<a>", "a", "\\*", "K", "\u{17f}", "\u{1e9e}", "\u{10ffff}", "*?<a>x"] {
            let text = part.repeat(SURE / part.len());
            let pattern = Pattern::new(&text).unwrap();
            for any_case in [false, true] {
                assert!(compile(&pattern.source, any_case).is_ok(), "{part}");
            }
        }
    }

    #[test]
    fn a_prefix_of_a_command_ends_at_a_word() {
        for (pattern, command, want) in [
            ("cargo test*", "cargo test", true),
            ("cargo test*", "cargo test --lib", true),
            ("cargo test*", "cargo test\t--lib", true),
            ("cargo test*", "cargo test-evil", false),
            ("cargo test*", "cargo tests", false),
            ("cargo test*", "cargo test/../evil", false),
            ("cargo test *", "cargo test --lib", true),
            ("cargo test *", "cargo test", false),
            ("git push <branch>*", "git push main --tags", true),
            ("git push <branch>*", "git push main:evil", false),
            // After anything else it goes on with the word.
            ("npm run test:*", "npm run test:unit", true),
            ("./scripts/*", "./scripts/x y", true),
            ("cargo test-*", "cargo test-all", true),
            ("*", "anything at all", true),
            ("cargo *test*", "cargo nextest run", true),
            ("cargo *test*", "cargo nextester", false),
            (r"echo a\*", "echo a*", true),
            (r"echo a\*", "echo a", false),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().allows(command), want, "{pattern} {command}");
            // What narrows is as wide as ever.
            let narrows = Pattern::new(pattern).unwrap().matches_any_case(command);
            assert!(narrows || !want, "{pattern} {command}");
        }
        assert!(Pattern::new("cargo test*").unwrap().matches_any_case("cargo test-evil"));
        let long = format!("{}*", "ab".repeat(SURE));
        let long = Pattern::new(&long).unwrap();
        assert!(
            long.allows(&format!("{} c", "ab".repeat(SURE)))
                && !long.allows(&format!("{}c", "ab".repeat(SURE)))
        );
    }

    #[test]
    fn long_ones_are_looked_at_when_they_are_read() {
        assert!(Pattern::new(&"?".repeat(MAX + 1)).is_err());
        let long = Pattern::new(&format!("{}*", "ab".repeat(SURE))).unwrap();
        assert!(long.exact_case.get().is_some() && long.any_case.get().is_some());
        assert!(long.matches(&format!("{}c", "ab".repeat(SURE))));
        assert!(long.matches_any_case(&"AB".repeat(SURE)) && !long.matches(&"AB".repeat(SURE)));
    }
}
