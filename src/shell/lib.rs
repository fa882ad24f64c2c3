//! The grammar of the shell: a command line, taken apart into every simple command that would run.
//!
//! What cannot be taken apart for certain is [`Analysis::unclear`]. No file, clock or process is touched; the only input is
//! text. It uses no other room. Not here: whether a command may run (`permit`), and running it (`tool`).
//!
//! | module | holds |
//! | --- | --- |
//! | `command`, `analysis` | the result: words, redirections, simple commands, and what is in doubt |
//! | `precheck` | checks of the text before the parser sees it: length, nesting, invisible characters |
//! | `words` | quotes removed, expansions marked |
//! | `walk` | from the tree of the parser to a flat list of commands, each with its input |
//! | `wrappers` | programs that run other programs (`env`, `sudo`, `find -exec`, `sh -c`): which, and with what |
//! | `programs` | tables: names, interpreters, options that run programs, variables, keys of git |
//! | `spelling` | canonical text of a command, and the further spellings that `ask` and `deny` rules match |

mod analysis;
mod command;
mod precheck;
mod programs;
mod spelling;
mod walk;
mod words;
mod wrappers;

pub use analysis::Analysis;
pub use command::{HOLE, Part, Redirect, RedirectKind, Role, Word};
pub use precheck::{MAX_CHARS, MAX_PARTS, fold, invisibles};
pub use programs::{
    RefusedGitChange, base_name, changes_programs, check_git_change, check_git_change_but, code_pieces,
    code_reads, git_key_runs_program, git_section_runs_program, interpreter, is_cosmetic, is_shell,
    most_code_pieces, program_name, runs_other, takes_code, utility,
};
pub use spelling::{crude_pieces, quote};
pub use wrappers::SETTERS;

/// Takes apart the command line of a process that gets `input` as its standard input.
pub fn analyse_with_input(command: &str, input: &str) -> Analysis {
    walk::analyse_with_input(command, Some(input))
}

/// Takes `command` apart. Never fails: doubts are in [`Analysis::unclear`].
pub fn analyse(command: &str) -> Analysis {
    walk::analyse(command)
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
