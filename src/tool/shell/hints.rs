//! Seeing that a command wanted a person. There is none at its keyboard: its input is empty and it has no
//! terminal, so it fails or, at worst, runs into its time limit.

use crate::shell::processes::proc_fs::{self, Stat};

/// What programs say when they would have asked.
const ASKED: &[&str] = &[
    "a terminal is required",
    "terminal prompts disabled",
    "could not read username",
    "could not read password",
    "could not open /dev/tty",
    "can't open /dev/tty",
    "cannot open /dev/tty",
    "/dev/tty: no such device or address",
    "no such device or address: '/dev/tty'",
    "host key verification failed",
    "inappropriate ioctl for device",
    "not a tty",
    "must be run from a terminal",
    "must be run in a terminal",
    "stdin is not a terminal",
    "input is not a terminal",
    "input is not from a terminal",
    "output is not to a terminal",
    "standard input is not a terminal",
    "standard input is not a tty",
    "eof when reading a line",
    "error opening terminal",
    "error reading input",
    "no askpass program",
    "askpass",
    "problem with the editor",
    "aborting commit due to empty commit message",
    "authentication token manipulation error",
    "pinentry",
    "no tty present",
    "user input required",
    "not interactive",
];

/// How the last line of a prompt ends.
const PROMPTS: &[&str] = &[
    "password:",
    "passphrase:",
    "username:",
    "login:",
    "[y/n]",
    "[y/n]:",
    "[y/n]?",
    "(y/n)",
    "(y/n)?",
    "(y/n):",
    "[y/n/q]",
    "(yes/no)",
    "(yes/no)?",
    "(yes/no/[fingerprint])?",
    "?",
    "continue? ",
    "press enter",
    ">>>",
    "--more--",
    "(end)",
];

/// The note for the model, when the output of a failed command shows that it asked for something.
pub(crate) fn asked(output: &str) -> Option<&'static str> {
    let from = output.ceil_char_boundary(output.len().saturating_sub(4096));
    let end = output[from..].to_lowercase();
    let hit = ASKED.iter().any(|a| end.contains(a));
    hit.then_some(
        "It seems to have waited for input: commands have no terminal and empty input. Pass the answer as an \
         option, file or environment variable, or use pty: true with background: true and the process tool.",
    )
}

/// What programs say that cannot become another user: the kernel ignores the setuid bit where files are protected by mounts.
const NO_RIGHTS: &[&str] = &[
    "\"no new privileges\" flag is set",
    "must be owned by uid 0 and have the setuid bit set",
    "effective uid is not 0",
    "not installed setuid",
    "pkexec must be setuid root",
    "is owned by uid 65534, should be 0",
];

/// The note for model and user, when a failed command could not gain rights (`sudo`).
pub(crate) fn no_rights(output: &str) -> Option<&'static str> {
    let from = output.ceil_char_boundary(output.len().saturating_sub(4096));
    let end = output[from..].to_lowercase();
    NO_RIGHTS.iter().any(|words| end.contains(words)).then_some(
        "Commands of agents cannot gain rights by sudo, also outside the sandbox, where protected files are kept by \
         mounts. The user can run it after ! or in another terminal.",
    )
}

/// Whether the output ends like a prompt.
pub(crate) fn prompt(output: &str) -> bool {
    let line = output.trim_end_matches([' ', '\t']);
    if line.ends_with('\n') || line.is_empty() {
        return false;
    }
    let last = line.rsplit('\n').next().unwrap_or(line).to_lowercase();
    PROMPTS.iter().any(|p| last.ends_with(p))
}

/// Whether one of these processes is blocked in a read of a terminal.
pub(crate) fn someone_waits(living: &[Stat]) -> bool {
    living.iter().any(|s| proc_fs::waits_for_terminal(s.pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_last_lines_without_an_end() {
        for yes in ["Password:", "x\n[sudo] password: ", "Overwrite? [y/N] ", "ok\nProceed?"] {
            assert!(prompt(yes), "{yes:?}");
        }
        for no in ["", "done\n", "Password:\n", "50 %", "really?\nyes"] {
            assert!(!prompt(no), "{no:?}");
        }
    }

    #[test]
    fn a_program_that_gains_no_rights_is_known_by_its_words() {
        for said in [
            "sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root.\n",
            "sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set\n",
            "doas: not installed setuid\n",
        ] {
            assert!(no_rights(said).is_some(), "{said}");
        }
        assert!(no_rights("sudo: a password is required\n").is_none());
    }

    #[test]
    fn only_known_words_count_as_a_question() {
        assert!(asked("fatal: could not read Username for 'https://x': terminal prompts disabled").is_some());
        assert!(asked("error[E0308]: mismatched types").is_none());
        // Far before the end it is part of something else.
        assert!(asked(&format!("not a tty\n{}", "x\n".repeat(4096))).is_none());
    }
}
