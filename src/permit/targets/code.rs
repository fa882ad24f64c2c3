//! Files that code in an argument writes.

use tiller_shell::{Part, Word, takes_code};

/// Names in quotes in code that looks as if it wrote: `open('x', 'w')`, `:w x`.
pub(crate) fn named_in_code(part: &Part) -> Vec<Word> {
    if !takes_code(&part.base()) {
        return vec![];
    }
    part.args().iter().chain(&part.stdin).flat_map(|w| names_in_code(&w.text)).collect()
}

/// The same of the code itself.
pub(crate) fn names_in_code(code: &str) -> Vec<Word> {
    const WRITES: &[&str] = &[
        "'w", "\"w", "'a", "\"a", "write", "append", "unlink", "remove", "rename", "chmod", "link", "mkdir",
        "copy", "move", "replace", "touch", "system", "exec", "spawn", "popen", ">", "rm",
    ];
    let mut out = Vec::new();
    if WRITES.iter().any(|w| code.contains(w)) {
        // A quote in a comment shifts what stands in quotes.
        let shifted = code.split(['\'', '"', '`']).step_by(2).filter(|t| is_name(t));
        out.extend(quoted(code).chain(shifted).map(Word::fixed));
    }
    // `:w file` of an editor.
    if let Some((command, file)) = code.trim_start_matches(['+', ':']).split_once(' ')
        && matches!(command.trim_end_matches('!'), "w" | "wq" | "write" | "sav" | "saveas" | "up" | "update")
    {
        out.push(Word::fixed(file.trim()));
    }
    out
}

/// What stands in quotes in code.
pub(crate) fn quoted(code: &str) -> impl Iterator<Item = &str> {
    code.split(['\'', '"', '`']).skip(1).step_by(2).filter(|t| is_name(t))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// `w file` and `s///w file` of sed.
pub(super) fn sed_writes(args: &[Word]) -> Vec<Word> {
    let mut out = Vec::new();
    for w in args {
        for (i, _) in w.text.match_indices('w') {
            let before = w.text[..i].chars().next_back();
            if before.is_none_or(|c| !c.is_alphanumeric() || w.text[..i].contains('/')) {
                let file = w.text[i + 1..].lines().next().unwrap_or_default().trim_matches([' ', '}', ';']);
                if !file.is_empty() {
                    out.push(Word::fixed(file));
                }
            }
        }
    }
    out
}

/// `print > "file"` of awk.
pub(super) fn code_writes(args: &[Word]) -> Vec<Word> {
    args.iter()
        .flat_map(|w| w.text.match_indices('>').map(|(i, _)| w.text[i + 1..].to_owned()).collect::<Vec<_>>())
        .filter_map(|rest| {
            let rest = rest.trim_start_matches(['>', ' ']);
            let inner = rest.strip_prefix('"')?;
            Some(Word::fixed(inner.split('"').next()?))
        })
        .collect()
}
