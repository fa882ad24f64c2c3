//! Tables of programs, their options and variables.

mod code;
mod git_keys;
mod git_settings;
mod name;
mod run_options;
mod shells;
mod utilities;
mod variables;

pub(crate) use code::{CODE, reads_code};
pub use code::{code_pieces, code_reads, interpreter, most_code_pieces, takes_code};
pub use git_keys::{git_key_runs_program, git_section_runs_program};
pub use git_settings::{RefusedGitChange, check_git_change, check_git_change_but};
pub use name::{base_name, program_name};
pub use run_options::runs_other;
pub(crate) use shells::has_other_grammar;
pub use shells::is_shell;
pub use utilities::utility;
pub use variables::{changes_programs, is_cosmetic};
