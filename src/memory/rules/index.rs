//! Finds the rules that may concern a call without looking through all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::book::BookRule;

/// The tool whose argument is a command line.
const TERMINAL: &str = "terminal";

/// A call, for a first comparison with the patterns of rules: what passes it is compared exactly. Its texts are in small
/// letters, since rules compare in any case.
#[derive(Clone, Debug)]
pub struct RuleCall {
    tool: String,
    /// The arguments, and the texts of commands, a line each.
    texts: String,
    /// Paths that commands name, a line each.
    paths: String,
    /// Programs that commands run, as they are written.
    programs: BTreeSet<String>,
}

impl RuleCall {
    /// A call of the tool `tool` with these arguments, as JSON. `command` is what the tool is called for; of the terminal, the
    /// command line. `parts` are the texts of the command line that permission rules are compared with, so without quotes
    /// and wrappers that would hide a word. `paths` are those that the command line names, absolute, as they are spelled
    /// and as their links lead.
    pub fn new(tool: &str, args: &str, command: &str, parts: &[String], paths: &[String]) -> Self {
        // No word goes over the end of a line.
        let small = |lines: BTreeSet<&str>| lines.into_iter().collect::<Vec<_>>().join("\n").to_lowercase();
        let texts = small(parts.iter().map(String::as_str).chain([args]).collect());
        let small_paths = small(paths.iter().map(String::as_str).collect());
        let raw = command.split(['&', '|', ';', '\n']).chain(parts.iter().map(String::as_str));
        let programs = raw.filter_map(|part| part.split_whitespace().next()).map(str::to_owned).collect();
        Self { tool: tool.to_owned(), texts, paths: small_paths, programs }
    }

    /// Whether a pattern may match the call: the tool, and the first fixed word of the argument; of the terminal also a
    /// pattern about a path that the command names.
    pub fn may_match(&self, pattern: &str) -> bool {
        let (name, argument) = parts(pattern);
        let is_of_tool = is_of_many(name) || name == self.tool;
        if self.tool != TERMINAL {
            return is_of_tool;
        }
        // A path may be written in another way; the word of a command stands in one of its texts.
        let is_of_words = || is_in(&first_word(argument), &self.texts);
        let is_of_paths = || may_be_of_path(name, argument) && is_in(&path_word(argument), &self.paths);
        is_of_tool && is_of_words() || is_of_paths()
    }

    /// Whether the command runs the program that a pattern is about, as the first word of one of its parts. Calls of other tools
    /// are near to no pattern.
    pub fn is_near(&self, pattern: &str) -> bool {
        let program = program(pattern);
        self.tool == TERMINAL && !program.is_empty() && self.programs.contains(program)
    }
}

/// Whether a word stands in a text. An empty one stands in each text that is not empty.
fn is_in(word: &str, text: &str) -> bool {
    !text.is_empty() && text.contains(word)
}

/// The tool of a pattern, which may be several, and its argument.
fn parts(pattern: &str) -> (&str, &str) {
    pattern.split_once('(').unwrap_or((pattern, ""))
}

/// Whether the tool of a pattern may be several, or is one of an MCP server: calls of those have other names.
fn is_of_many(tool: &str) -> bool {
    tool.contains(['*', '?', '<']) || tool.starts_with("mcp:")
}

/// Whether a pattern with this tool and argument may be about a path that a command names.
fn may_be_of_path(tool: &str, argument: &str) -> bool {
    tool != TERMINAL && !tool.starts_with("mcp:") && !argument.is_empty()
}

/// The characters that an argument begins with and that are the same in each command that it matches, in small letters:
/// rules compare commands in any case.
fn first_word(argument: &str) -> String {
    beginning(argument, |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).to_ascii_lowercase()
}

/// The longest text that is the same in each path that an argument matches, in small letters. Empty: none is known.
fn path_word(argument: &str) -> String {
    // Behind these it would take a parser of globs to tell a text from a choice.
    let known = argument.split(['[', '\\']).next().unwrap_or_default();
    let (mut longest, mut from, mut choices) = ("", 0, 0_usize);
    for (at, c) in known.char_indices().chain([(known.len(), '/')]) {
        if choices == 0 && (c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
            continue;
        }
        if choices == 0 && at - from > longest.len() {
            longest = &known[from..at];
        }
        match c {
            '{' => choices += 1,
            '}' => choices = choices.saturating_sub(1),
            _ => {}
        }
        from = at + c.len_utf8();
    }
    longest.to_ascii_lowercase()
}

/// The program that a pattern of the terminal is about; empty: it is about none.
fn program(pattern: &str) -> &str {
    match pattern.split_once('(') {
        Some((TERMINAL, argument)) => beginning(argument, |c| !c.is_whitespace() && !"*?[)".contains(c)),
        _ => "",
    }
}

fn beginning(text: &str, part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c: char| !part(c)).unwrap_or(text.len());
    &text[..end]
}

/// Places of rules in a list.
type RulePlaces = Vec<usize>;

/// Rules by a word in small letters that stands in each text that they may be about.
#[derive(Debug, Default)]
struct WordIndex {
    /// Those without a word.
    all: RulePlaces,
    /// In the order of the words.
    words: Vec<(String, RulePlaces)>,
}

impl WordIndex {
    fn new(mut words: BTreeMap<String, RulePlaces>) -> Self {
        let all = words.remove("").unwrap_or_default();
        Self { all, words: words.into_iter().collect() }
    }

    /// Adds the rules whose word stands in a text, also within a longer word.
    fn add(&self, text: &str, found: &mut BTreeSet<usize>) {
        if !text.is_empty() {
            found.extend(&self.all);
        }
        let bytes = text.as_bytes();
        for from in 0..bytes.len() {
            // The words that begin as the text does here.
            let mut words = self.words.as_slice();
            for (at, byte) in bytes[from..].iter().enumerate() {
                let begin = words.partition_point(|(word, _)| word.as_bytes().get(at) < Some(byte));
                let end = words.partition_point(|(word, _)| word.as_bytes().get(at) <= Some(byte));
                words = &words[begin..end];
                let Some((word, rules)) = words.first() else { break };
                if word.len() == at + 1 {
                    found.extend(rules);
                }
            }
        }
    }
}

/// Where the rules of a list are found: by their text, and by what they are about.
#[derive(Debug, Default)]
pub(super) struct RuleIndex {
    texts: HashMap<String, usize>,
    /// By the name of a tool other than the terminal.
    tools: HashMap<String, RulePlaces>,
    /// Rules about several tools.
    many: RulePlaces,
    /// Rules about commands of the terminal, by their first word.
    commands: WordIndex,
    /// Rules that may be about a path, by the longest word of the path.
    paths: WordIndex,
    /// Rules about commands of the terminal by the program.
    programs: HashMap<String, RulePlaces>,
}

impl RuleIndex {
    pub(super) fn new(rules: &[BookRule]) -> Self {
        let mut index = Self::default();
        let (mut commands, mut paths) =
            (BTreeMap::<String, RulePlaces>::new(), BTreeMap::<String, RulePlaces>::new());
        for (at, rule) in rules.iter().enumerate() {
            index.texts.insert(rule.rule.text.clone(), at);
            for pattern in rule.rule.when.iter().chain(&rule.rule.never) {
                let (tool, argument) = parts(pattern);
                if may_be_of_path(tool, argument) {
                    paths.entry(path_word(argument)).or_default().push(at);
                }
                if is_of_many(tool) {
                    index.many.push(at);
                } else if tool != TERMINAL {
                    index.tools.entry(tool.to_owned()).or_default().push(at);
                    continue;
                }
                commands.entry(first_word(argument)).or_default().push(at);
                let program = program(pattern);
                if !program.is_empty() {
                    index.programs.entry(program.to_owned()).or_default().push(at);
                }
            }
        }
        (index.commands, index.paths) = (WordIndex::new(commands), WordIndex::new(paths));
        index
    }

    /// The place of the rule with this text.
    pub(super) fn of_text(&self, text: &str) -> Option<usize> {
        self.texts.get(text).copied()
    }

    /// The places of the rules of which a pattern may match the call, or is near to it.
    pub(super) fn of_call(&self, call: &RuleCall) -> BTreeSet<usize> {
        let mut found: BTreeSet<usize> = BTreeSet::new();
        if call.tool != TERMINAL {
            found.extend(&self.many);
            found.extend(self.tools.get(&call.tool).into_iter().flatten());
            return found;
        }
        self.commands.add(&call.texts, &mut found);
        self.paths.add(&call.paths, &mut found);
        for program in &call.programs {
            found.extend(self.programs.get(program).into_iter().flatten());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::ActionRule;

    fn near(pattern: &str, tool: &str, command: &str) -> bool {
        RuleCall::new(tool, "", command, &[], &[]).is_near(pattern)
    }

    #[test]
    fn a_command_is_near_to_a_rule_about_its_program() {
        let near_push = |command: &str| near("terminal(git push*)", "terminal", command);
        assert!(near_push("git status") && near_push("cd a && git pull"));
        assert!(!near_push("cat digits.txt") && !near_push("ls git"));
        assert!(!near("terminal(*)", "terminal", "git status"));
        assert!(!near("write_file(src/gen/**)", "write_file", "src/gen/a"));
    }

    fn pattern() -> impl Strategy<Value = String> {
        let tool = prop::sample::select(vec!["terminal", "read_file", "edit_file", "mcp:a:b", "*", "term*"]);
        let argument = prop::sample::select(vec![
            "",
            "*",
            "g",
            "git",
            "git push*",
            "gi*",
            "gitk",
            "it-x y",
            "./run *",
            "a.sh x",
            "ls[ab]",
            "src/**",
            "é",
            "cargo test",
            "car",
            "rm -rf *",
            "Git Push*",
            "src/gen/*.rs",
            "*.{rs,md}",
            "~/.ssh/**",
            "docs/[ab].md",
        ]);
        (tool, prop::option::of(argument)).prop_map(|(tool, argument)| match argument {
            Some(argument) => format!("{tool}({argument})"),
            None => tool.to_owned(),
        })
    }

    fn rules() -> impl Strategy<Value = Vec<BookRule>> {
        let patterns = || prop::collection::vec(pattern(), 0..3);
        let one = (patterns(), patterns());
        prop::collection::vec(one, 0..40).prop_map(|all| {
            let rule = |(at, (when, never)): (usize, (Vec<String>, Vec<String>))| BookRule {
                rule: ActionRule { text: format!("rule {at}"), when, never },
                origin: "learning 1".into(),
            };
            all.into_iter().enumerate().map(rule).collect()
        })
    }

    fn command() -> impl Strategy<Value = String> {
        let words = vec![
            "git", "gitk", "digits", "push", "it-x", "./run", "a.sh", "ls", "lsa", "cargo", "test", "é",
            "rm", "-rf", "g", "&&", ";", "|", "\n", "\"", " ",
        ];
        prop::collection::vec(prop::sample::select(words), 0..8).prop_map(|words| words.join(" "))
    }

    /// Of many rules about paths a command is compared with those about its own.
    #[test]
    fn few_of_many_rules_about_paths_may_concern_a_command() {
        let rule = |n: usize| BookRule {
            rule: ActionRule {
                text: format!("rule {n}"),
                when: Vec::new(),
                never: vec![format!("write_file(src/part{n}/**)"), format!("edit_file(src/part{n}/**)")],
            },
            origin: "learning 1".into(),
        };
        let index = RuleIndex::new(&(0..100_000).map(rule).collect::<Vec<_>>());
        let of = |paths: &[String]| {
            index.of_call(&RuleCall::new(TERMINAL, "{}", "rm x", &["rm x".to_owned()], paths)).len()
        };
        // part1, part12, part123, part1234.
        assert_eq!(of(&["/w/src/part1234/a.rs".to_owned()]), 4);
        assert_eq!((of(&["/w/src/a.rs".to_owned()]), of(&[])), (0, 0));
    }

    fn paths() -> impl Strategy<Value = Vec<String>> {
        let all = vec!["/w/src/gen/a.rs", "/w/Docs/a.md", "/home/a/.ssh/key", "/w/x", "/w/\u{e9}/gen"];
        prop::collection::vec(prop::sample::select(all).prop_map(str::to_owned), 0..4)
    }

    #[test]
    fn a_word_of_a_pattern_stands_in_each_path_that_it_matches() {
        for (argument, word) in [
            ("src/gen/**)", "src"),
            ("src/generated/*.rs)", "generated"),
            ("**/*.rs)", "rs"),
            ("{src,docs}/a)", "a"),
            ("ab[cd]efg/h)", "ab"),
            (r"ab\[cde)", "ab"),
            ("./*)", ""),
            ("*)", ""),
            (")", ""),
            ("Docs/**)", "docs"),
            ("{a,{b,c}d}e", "e"),
            ("a[", "a"),
            ("\u{e9}/x", "x"),
        ] {
            assert_eq!(path_word(argument), word, "{argument}");
        }
    }

    #[test]
    fn a_hidden_word_of_a_command_and_a_path_of_it_are_found() {
        let (parts, paths) = (["git push".to_owned()], ["/w/docs/a.md".to_owned()]);
        let args = "{\"command\":\"g''it push > docs/a.md\"}";
        let call = RuleCall::new(TERMINAL, args, "g''it push > docs/a.md", &parts, &paths);
        for pattern in ["terminal(git push*)", "terminal(GIT*)", "write_file(docs/**)", "*(docs/**)"] {
            assert!(call.may_match(pattern), "{pattern}");
        }
        assert!(call.is_near("terminal(git pull*)"));
        for pattern in ["terminal(cargo*)", "write_file(src/**)", "write_file", "mcp:docs:a(docs)"] {
            let may = call.may_match(pattern);
            assert_eq!(may, pattern.starts_with("mcp:"), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_look_through_all_rules_finds(
            rules in rules(),
            tool in prop::sample::select(vec!["terminal", "read_file", "edit_file", "mcp__a__b", "term"]),
            command in command(),
            parts in prop::collection::vec(command(), 0..3),
            paths in paths(),
        ) {
            let args = serde_json::json!({ "command": command }).to_string();
            let call = RuleCall::new(tool, &args, &command, &parts, &paths);
            let fits = |rule: &BookRule| {
                let mut patterns = rule.rule.when.iter().chain(&rule.rule.never);
                patterns.any(|pattern| call.may_match(pattern) || call.is_near(pattern))
            };
            let all: Vec<usize> = (0..rules.len()).filter(|at| fits(&rules[*at])).collect();
            let index = RuleIndex::new(&rules);
            let found: Vec<usize> = index.of_call(&call).into_iter().collect();
            prop_assert_eq!(found, all);
            for (at, rule) in rules.iter().enumerate() {
                prop_assert_eq!(index.of_text(&rule.rule.text), Some(at));
            }
        }
    }
}
