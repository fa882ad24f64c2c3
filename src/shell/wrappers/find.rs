//! `find -exec` and `fd --exec`: what they run.

use super::effects::{Effects, Inner};
use crate::analysis::FIND;
use crate::command::{HOLE, Word};

/// `find -exec cmd {} ;` and `fd -x cmd`.
pub(super) fn find(base: &str, args: &[Word]) -> Effects {
    const RUN: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
    const FD: &[&str] = &["-x", "-X", "--exec", "--exec-batch"];
    let mut out = Effects::default();
    let mut at = 0;
    let is_fd = base.starts_with("fd");
    while let Some(word) = args.get(at) {
        at += 1;
        if let Some(joined) = joined_exec(word).filter(|_| is_fd) {
            let mut argv = vec![Word { text: joined.to_owned(), ..word.clone() }];
            argv.extend_from_slice(&args[at..]);
            out.runs.push(Inner::Command { argv, env: vec![], guess: false });
            out.loose = Some("fd adds names that are known only at run time".into());
            return out;
        }
        let fd = is_fd && (FD.contains(&word.text.as_str()) || ends_in_exec(&word.text));
        if !fd && !RUN.contains(&word.text.as_str()) {
            if word.dynamic && (word.splits || word.text.starts_with([HOLE, '-'])) {
                out.unclear_words = Some("find gets arguments that are known only at run time".into());
            }
            continue;
        }
        let rest = &args[at..];
        let end = rest.iter().position(|w| w.text == ";" || (w.text == "+" && !fd)).unwrap_or(rest.len());
        let mut argv: Vec<Word> = rest[..end].to_vec();
        for w in &mut argv {
            if w.text.contains("{}") || (fd && w.text.contains('{')) {
                if w.text != "{}" && w.text.contains(char::is_whitespace) {
                    out.unclear = Some("a file's name becomes part of a command".into());
                }
                let text = w.text.replace("{}", &HOLE.to_string());
                *w = Word { text, dynamic: true, added: !w.dynamic, ..w.clone() };
            }
        }
        if fd && !argv.iter().any(|w| w.dynamic) {
            argv.push(Word { splits: true, added: true, ..Word::unknown() });
        }
        if argv.is_empty() {
            out.unclear = Some("find -exec without a command".into());
        } else {
            out.runs.push(Inner::Command { argv, env: vec![], guess: false });
        }
        let why = if is_fd { "fd adds names that are known only at run time" } else { FIND };
        out.loose = Some(why.into());
        at += end;
    }
    out
}

/// The program in `--exec=cmd` and `-xcmd` of fd.
fn joined_exec(word: &Word) -> Option<&str> {
    let t = word.text.as_str();
    let joined = ["--exec=", "--exec-batch=", "-x", "-X"].iter().find_map(|o| t.strip_prefix(o))?;
    (!joined.is_empty()).then_some(joined)
}

/// `-Hx`: short options of fd whose last one runs a program.
fn ends_in_exec(text: &str) -> bool {
    text.len() > 2 && text.starts_with('-') && !text.starts_with("--") && text.ends_with(['x', 'X'])
}
