//! Common programs and builtins, with what holds of each whatever its arguments are.

/// What holds of a program for any arguments.
#[derive(Clone, Copy)]
pub struct Utility {
    /// No option makes it dangerous.
    pub safe_options: bool,
    /// It shows the content of no file.
    pub shows_no_content: bool,
}

const BOTH: Utility = Utility { safe_options: true, shows_no_content: true };
const SAFE_OPTIONS: Utility = Utility { safe_options: true, shows_no_content: false };
const NO_CONTENT: Utility = Utility { safe_options: false, shows_no_content: true };

const UTILITIES: &[(&str, Utility)] = &[
    ("echo", BOTH),
    ("printf", BOTH),
    ("test", BOTH),
    ("[", BOTH),
    ("ls", BOTH),
    ("basename", BOTH),
    ("dirname", BOTH),
    ("exit", BOTH),
    ("return", BOTH),
    ("shift", BOTH),
    ("true", BOTH),
    ("false", BOTH),
    (":", BOTH),
    ("sleep", BOTH),
    ("seq", BOTH),
    ("expr", BOTH),
    ("cd", BOTH),
    ("stat", BOTH),
    ("du", BOTH),
    ("tr", BOTH),
    ("read", BOTH),
    ("wait", BOTH),
    ("local", BOTH),
    ("cat", SAFE_OPTIONS),
    ("wc", SAFE_OPTIONS),
    ("head", SAFE_OPTIONS),
    ("tail", SAFE_OPTIONS),
    ("pwd", SAFE_OPTIONS),
    ("grep", SAFE_OPTIONS),
    ("egrep", SAFE_OPTIONS),
    ("fgrep", SAFE_OPTIONS),
    ("file", SAFE_OPTIONS),
    ("cut", SAFE_OPTIONS),
    ("break", SAFE_OPTIONS),
    ("continue", SAFE_OPTIONS),
    ("nl", SAFE_OPTIONS),
    ("rev", SAFE_OPTIONS),
    ("pushd", NO_CONTENT),
    ("popd", NO_CONTENT),
    ("export", NO_CONTENT),
    ("mkdir", NO_CONTENT),
    ("rmdir", NO_CONTENT),
    ("rm", NO_CONTENT),
    ("touch", NO_CONTENT),
    ("realpath", NO_CONTENT),
    ("readlink", NO_CONTENT),
    ("chmod", NO_CONTENT),
    ("chown", NO_CONTENT),
    ("kill", NO_CONTENT),
    ("declare", NO_CONTENT),
    ("set", NO_CONTENT),
    ("unset", NO_CONTENT),
    ("date", NO_CONTENT),
    ("which", NO_CONTENT),
    ("type", NO_CONTENT),
];

/// What holds of the program `base` (its name without a folder), when it is one of the common ones.
pub fn utility(base: &str) -> Option<Utility> {
    UTILITIES.iter().find(|(name, _)| *name == base).map(|(_, utility)| *utility)
}
