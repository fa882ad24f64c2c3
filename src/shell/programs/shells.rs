//! Programs that are shells.

/// Shells whose grammar this crate parses.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "mksh", "rbash"];
/// Shells with another grammar.
const OTHER_SHELLS: &[&str] = &[
    "zsh",
    "fish",
    "csh",
    "tcsh",
    "nu",
    "elvish",
    "xonsh",
    "pwsh",
    "powershell",
    "rc",
    "ion",
    "oil",
    "osh",
    "ysh",
];

/// Whether this program is a shell of any grammar.
pub fn is_shell(base: &str) -> bool {
    SHELLS.contains(&base) || OTHER_SHELLS.contains(&base)
}

/// Whether this program is a shell with a grammar that this crate does not parse.
pub(crate) fn has_other_grammar(base: &str) -> bool {
    OTHER_SHELLS.contains(&base)
}
