//! The `/` commands: one file each, by subject, listed in [`list`]. They do the same as keys and palette.

pub(crate) mod agents;
mod alias;
mod list;
mod prompt;
pub(crate) mod session;
pub(crate) mod settings;

pub use prompt::PromptCommand;
pub(crate) use prompt::call;
pub use session::init::message as init_message;

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;

/// One command.
pub trait SlashCommand: Sync {
    /// Without the slash.
    fn name(&self) -> &'static str;

    /// Returns what it does, in a few words; shown in the list and in help.
    fn help(&self) -> &'static str;

    /// How to write it, for instance `/rename TITLE`.
    fn usage(&self) -> &'static str {
        ""
    }

    /// The action that it does without arguments, when it is another name of one.
    fn action(&self) -> Option<Action> {
        None
    }

    /// It stops, ends or takes something away, or begins a turn: a list that was just opened does not take it.
    fn ends(&self) -> bool {
        false
    }

    /// It comes from a file, which may change while the program runs.
    fn of_file(&self) -> bool {
        false
    }

    /// Does it. `args` is the trimmed rest of the line.
    ///
    /// # Errors
    /// A sentence for the person; the text then stays in the composer.
    fn run(&self, args: &str, model: &Model) -> Result<Vec<Effect>, String>;
}

/// A list of commands, in the order of their names.
#[derive(Clone, Copy, Default)]
pub struct Commands(pub &'static [&'static dyn SlashCommand]);

/// The commands of this program.
pub const COMMANDS: Commands = Commands(list::ALL);

/// Name and arguments, when `text` is one line that begins with a slash and a word. A path such as
/// `/usr/bin` is text.
pub(crate) fn parse(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('/')?;
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    word.then(|| (name, args.trim()))
}

/// Names of commands in other programs, and ours. They work, and are not listed.
const ELSEWHERE: &[(&str, &str)] = &[
    ("approvals", "permissions"),
    ("clear", "new"),
    ("config", "settings"),
    ("exit", "quit"),
    ("fork", "branch"),
    ("hotkeys", "help"),
    ("login", "setup"),
    ("mode", "permissions"),
    ("reset", "new"),
    ("resume", "sessions"),
    ("todos", "todo"),
    ("usage", "cost"),
];

/// Names elsewhere of our command `name`, for searches.
pub(crate) fn others(name: &str) -> String {
    let all = ELSEWHERE.iter().filter(|(_, ours)| *ours == name).map(|(other, _)| format!("/{other}"));
    all.collect::<Vec<_>>().join(" ")
}

impl Commands {
    /// True when there is a command of this name.
    pub fn exists(self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// By its exact name, one of [`ELSEWHERE`], or the last part of a name such as `team:review` where one command alone
    /// has it.
    pub(crate) fn find(self, name: &str) -> Option<&'static dyn SlashCommand> {
        let ours = ELSEWHERE.iter().find(|(other, _)| *other == name).map_or(name, |(_, ours)| *ours);
        let exact = self.0.iter().copied().find(|c| c.name() == ours);
        exact.or_else(|| match self.in_folders(name).as_slice() {
            [one] => Some(*one),
            _ => None,
        })
    }

    /// The commands of folders whose name ends with this one: `team:review` for `review`.
    fn in_folders(self, name: &str) -> Vec<&'static dyn SlashCommand> {
        let ends = |c: &dyn SlashCommand| c.name().rsplit_once(':').is_some_and(|(_, last)| last == name);
        self.0.iter().copied().filter(|c| ends(*c)).collect()
    }

    /// Those that begin with `word`, then those that another name leads to, then those that contain it.
    pub(crate) fn matching(self, word: &str) -> Vec<&'static dyn SlashCommand> {
        let elsewhere = |c: &dyn SlashCommand| {
            ELSEWHERE.iter().any(|(other, ours)| *ours == c.name() && other.starts_with(word))
        };
        let rank = |c: &dyn SlashCommand| match c.name() {
            n if n.starts_with(word) => Some(0),
            _ if elsewhere(c) => Some(1),
            n if n.contains(word) => Some(2),
            _ => None,
        };
        let mut found: Vec<_> = self.0.iter().filter_map(|c| Some((rank(*c)?, *c))).collect();
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, c)| c).collect()
    }

    /// The sentence for a name that is none, with the nearest one.
    pub(crate) fn unknown(self, name: &str) -> String {
        let same: Vec<_> = self.in_folders(name).iter().map(|c| format!("/{}", c.name())).collect();
        if same.len() > 1 {
            return format!("Several commands are called {name}. Write one of {}.", same.join(", "));
        }
        match tiller_protocol::nearest::nearest(name, self.0.iter().map(|c| c.name())) {
            Some(near) => format!("There is no command /{name}. Did you mean /{near}?"),
            None => format!("There is no command /{name}. Type / to see all commands."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_named_once_and_says_what_it_does() {
        let mut names: Vec<_> = COMMANDS.0.iter().map(|c| c.name()).collect();
        assert!(names.is_sorted(), "keep the list in order");
        names.dedup();
        assert_eq!(names.len(), COMMANDS.0.len());
        for c in COMMANDS.0 {
            assert!(!c.help().is_empty() && c.help().len() <= 70, "/{}", c.name());
            assert!(c.usage().is_empty() || c.usage().starts_with(&format!("/{}", c.name())));
        }
    }

    #[test]
    fn what_an_alias_stands_for_exists() {
        for c in COMMANDS.0 {
            if let Ok(effects) = c.run("", &Model::default()) {
                for e in effects {
                    if let Effect::Act(a) = e {
                        assert!(
                            crate::shipped::registry().words().find(a.0).is_some(),
                            "/{} stands for {}",
                            c.name(),
                            a.0
                        );
                    }
                }
            }
        }
    }

    /// The palette shows an action and its command as one row.
    #[test]
    fn a_command_that_only_does_an_action_names_it() {
        for c in COMMANDS.0 {
            if let Ok([Effect::Act(a)]) = c.run("", &Model::default()).as_deref() {
                assert_eq!(c.action(), Some(*a), "/{}", c.name());
            }
            let known = |a: Action| crate::shipped::registry().words().find(a.0).is_some();
            assert!(c.action().is_none_or(known), "/{}", c.name());
        }
    }

    #[test]
    fn names_from_elsewhere_lead_to_ours() {
        for (other, ours) in ELSEWHERE {
            assert!(COMMANDS.0.iter().all(|c| c.name() != *other), "/{other} is one of ours by now");
            assert_eq!(COMMANDS.find(other).map(|c| c.name()), Some(*ours));
        }
        assert_eq!(COMMANDS.matching("clea").iter().map(|c| c.name()).collect::<Vec<_>>(), ["new"]);
    }

    #[test]
    fn paths_are_not_commands() {
        assert_eq!(parse("/usr/bin/env"), None);
        assert_eq!(parse("/"), None);
        assert_eq!(parse("/compact the parser"), Some(("compact", "the parser")));
    }

    #[test]
    fn a_slip_is_told() {
        assert!(COMMANDS.unknown("compat").contains("/compact"));
        assert!(COMMANDS.unknown("zzzzzzzz").contains("Type / to see"));
    }
}
