//! Shell code that updates the variables of a running shell after another terminal was attached. A variable that the
//! agent set itself keeps its value.

use crate::shell::local::quote;
use crate::shell::processes::environment;

/// Longest value that is reported; a line goes through the shell's control pipe.
const LONGEST: usize = 4096;

/// One line of shell code from `old` to `new`; `None`: a shell would not see a difference.
pub(crate) fn change(old: &[(String, String)], new: &[(String, String)]) -> Option<String> {
    let [old, new] = [old, new].map(environment::environment);
    let value = |all: &[(String, String)], name: &str| {
        all.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()).filter(|v| fits(v))
    };
    let mut names: Vec<&String> = old.iter().chain(&new).map(|(n, _)| n).filter(|n| named(n)).collect();
    names.sort();
    names.dedup();
    let mut line = String::new();
    for n in names {
        let step = match (value(&old, n), value(&new, n)) {
            (Some(a), Some(b)) if a != b => {
                format!("[ \"${{{n}-}}\" = {} ] && command export {n}={}; ", quote(&a), quote(&b))
            }
            (Some(a), None) => format!("[ \"${{{n}-}}\" = {} ] && command unset {n}; ", quote(&a)),
            (None, Some(b)) => format!("[ -z \"${{{n}+x}}\" ] && command export {n}={}; ", quote(&b)),
            _ => continue,
        };
        line.push_str(&step);
    }
    (!line.is_empty()).then(|| format!("{line}:"))
}

/// A name that a shell knows.
fn named(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A value that fits on a line.
fn fits(value: &str) -> bool {
    value.len() <= LONGEST && !value.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }

    /// What a shell has after `before` and the change.
    fn after(before: &str, old: &[(&str, &str)], new: &[(&str, &str)]) -> String {
        let line = change(&vars(old), &vars(new)).unwrap_or_default();
        let text =
            format!("{before}\n{line}\nprintf '%s|%s|%s' \"${{A-none}}\" \"${{B-none}}\" \"${{C-none}}\"");
        let mut sh = std::process::Command::new("sh");
        let out = sh.arg("-c").arg(text).env_clear().envs(old.iter().copied()).output().unwrap();
        assert!(out.stderr.is_empty(), "{out:?}");
        String::from_utf8(out.stdout).unwrap()
    }

    #[test]
    fn what_came_from_the_old_screen_is_replaced_and_what_was_set_since_stays() {
        let (old, new) = ([("A", "it's $1"), ("B", "b")], [("A", "it's `new`"), ("C", "c")]);
        assert_eq!(after("", &old, &new), "it's `new`|none|c");
        assert_eq!(after("export A=mine B=mine C=mine", &old, &new), "mine|mine|mine");
        assert_eq!(change(&vars(&old), &vars(&old)), None);
        // What could be more than a value is not told.
        assert_eq!(after("", &old, &[("A", "x\nB=evil"), ("B", "b"), ("A;rm", "x")]), "none|b|none");
    }
}
