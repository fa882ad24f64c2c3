//! Finds the rules that may concern a call without looking through all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::book::BookRule;

/// The tool whose argument is a command line.
const TERMINAL: &str = "terminal";

/// A call, for a first comparison with the patterns of rules: what passes it is compared exactly.
#[derive(Clone, Copy, Debug)]
pub struct RuleCall<'a> {
    /// The name of its tool.
    pub tool: &'a str,
    /// Its arguments as JSON.
    pub args: &'a str,
    /// What the tool is called for; of the terminal, the command line.
    pub command: &'a str,
}

impl RuleCall<'_> {
    /// Whether a pattern may match the call: the tool, and the first fixed word of the argument.
    pub fn may_match(&self, pattern: &str) -> bool {
        let (name, argument) = parts(pattern);
        if !is_of_many(name) && name != self.tool {
            return false;
        }
        let word = first_word(argument);
        // A path may be written in another way; the word of a command stands in it.
        self.tool != TERMINAL || word.is_empty() || self.args.contains(word)
    }

    /// Whether the command runs the program that a pattern is about, as the first word of one of its parts. Calls of other tools
    /// are near to no pattern.
    pub fn is_near(&self, pattern: &str) -> bool {
        let program = program(pattern);
        self.tool == TERMINAL && !program.is_empty() && self.programs().any(|word| word == program)
    }

    fn programs(&self) -> impl Iterator<Item = &str> {
        let parts = self.command.split(['&', '|', ';', '\n']);
        parts.filter_map(|part| part.split_whitespace().next())
    }
}

/// The tool of a pattern, which may be several, and its argument.
fn parts(pattern: &str) -> (&str, &str) {
    pattern.split_once('(').unwrap_or((pattern, ""))
}

/// Whether the tool of a pattern may be several, or is one of an MCP server: calls of those have other names.
fn is_of_many(tool: &str) -> bool {
    tool.contains(['*', '?', '<']) || tool.starts_with("mcp:")
}

/// The characters that an argument begins with and that are the same in each command that it matches.
fn first_word(argument: &str) -> &str {
    beginning(argument, |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
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

/// Where the rules of a list are found: by their text, and by what they are about.
#[derive(Debug, Default)]
pub(super) struct RuleIndex {
    texts: HashMap<String, usize>,
    /// By the name of a tool other than the terminal.
    tools: HashMap<String, RulePlaces>,
    /// Rules about several tools.
    many: RulePlaces,
    /// Rules about commands of the terminal without a fixed word.
    commands: RulePlaces,
    /// Rules about commands of the terminal by their first word, in the order of the words.
    words: Vec<(String, RulePlaces)>,
    /// Rules about commands of the terminal by the program.
    programs: HashMap<String, RulePlaces>,
}

impl RuleIndex {
    pub(super) fn new(rules: &[BookRule]) -> Self {
        let (mut index, mut words) = (Self::default(), BTreeMap::<String, RulePlaces>::new());
        for (at, rule) in rules.iter().enumerate() {
            index.texts.insert(rule.rule.text.clone(), at);
            for pattern in rule.rule.when.iter().chain(&rule.rule.never) {
                let (tool, argument) = parts(pattern);
                if is_of_many(tool) {
                    index.many.push(at);
                } else if tool != TERMINAL {
                    index.tools.entry(tool.to_owned()).or_default().push(at);
                    continue;
                }
                match first_word(argument) {
                    "" => index.commands.push(at),
                    word => words.entry(word.to_owned()).or_default().push(at),
                }
                let program = program(pattern);
                if !program.is_empty() {
                    index.programs.entry(program.to_owned()).or_default().push(at);
                }
            }
        }
        index.words = words.into_iter().collect();
        index
    }

    /// The place of the rule with this text.
    pub(super) fn of_text(&self, text: &str) -> Option<usize> {
        self.texts.get(text).copied()
    }

    /// The places of the rules of which a pattern may match the call, or is near to it.
    pub(super) fn of_call(&self, call: &RuleCall<'_>) -> BTreeSet<usize> {
        let mut found: BTreeSet<usize> = BTreeSet::new();
        if call.tool != TERMINAL {
            found.extend(&self.many);
            found.extend(self.tools.get(call.tool).into_iter().flatten());
            return found;
        }
        found.extend(&self.commands);
        self.add_words(call.args, &mut found);
        for program in call.programs() {
            found.extend(self.programs.get(program).into_iter().flatten());
        }
        found
    }

    /// Adds the rules of each word that stands anywhere in a text, also within a longer one.
    fn add_words(&self, text: &str, found: &mut BTreeSet<usize>) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::ActionRule;

    fn near(pattern: &str, tool: &str, command: &str) -> bool {
        RuleCall { tool, args: "", command }.is_near(pattern)
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

    proptest! {
        #[test]
        fn the_index_finds_what_a_look_through_all_rules_finds(
            rules in rules(),
            tool in prop::sample::select(vec!["terminal", "read_file", "edit_file", "mcp__a__b", "term"]),
            command in command(),
        ) {
            let args = serde_json::json!({ "command": command }).to_string();
            let call = RuleCall { tool, args: &args, command: &command };
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
