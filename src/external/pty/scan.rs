//! The result of the adapter's rules for a screen. Computed once for each drawing: an unchanged screen is not scanned
//! again.

use crate::adapter::{Dialog, Means, Pty};

/// A screen and its scan.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub text: String,
    /// Index of its dialog in the adapter.
    dialog: Option<usize>,
    pub rule: Option<Means>,
    /// Whether it shows that the program works.
    pub works: bool,
    /// Whether its composer is visible and empty.
    pub ready: bool,
}

impl Scan {
    pub(super) fn new(text: String, pty: &Pty) -> Self {
        let dialog = pty.dialog.iter().position(|d| d.all.iter().all(|p| p.found(&text)));
        let rule = pty.state.iter().find(|r| r.on.found(&text)).map(|r| r.means);
        let works = pty.working.as_ref().is_some_and(|p| p.found(&text));
        let ready = pty.ready.found(&text);
        Self { text, dialog, rule, works, ready }
    }

    /// The known dialog on it.
    pub(super) fn dialog<'a>(&self, pty: &'a Pty) -> Option<&'a Dialog> {
        pty.dialog.get(self.dialog?)
    }
}

/// Glyphs with which programs mark the selected line of a list, and begin their composer.
const MARKS: &[char] = &['❯', '›', '▸', '▶', '➤', '●', '>', '┃', '│'];

/// Whether a line of a list is the selected one.
pub(super) fn marked(line: &str, pty: &Pty) -> bool {
    match &pty.marker {
        Some(pattern) => pattern.found(line),
        None => {
            let line = line.trim_start_matches(|c: char| c.is_whitespace() || "│┃".contains(c));
            let rest = line.trim_start_matches(|c| MARKS.contains(&c));
            rest.len() < line.len() && !rest.trim().is_empty()
        }
    }
}

/// The mark before the text in the composer of a ready screen: `>`, `❯`, `┃`.
pub(super) fn prompt_mark(screen: &str, pty: &Pty) -> String {
    let line = screen.lines().find(|l| pty.ready.found(l)).unwrap_or_default();
    line.trim_start().chars().take_while(|c| !c.is_alphanumeric()).collect::<String>().trim_end().to_owned()
}

/// Whether the composer, found by its mark, contains `text` (or a placeholder for a long one). Text elsewhere may be in
/// a dialog, which must not get an Enter.
pub(super) fn composes(screen: &str, mark: &str, text: &str) -> bool {
    let letters = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let whole = letters(text);
    let holds = |line: &str| {
        let Some(rest) = line.trim_start().strip_prefix(mark) else { return false };
        let said = letters(rest);
        !said.is_empty() && whole.starts_with(&said) || rest.trim_start().starts_with("[Past")
    };
    if screen.lines().any(holds) {
        return true;
    }
    // The beginning of a long text has scrolled off: then it is nearly the only text on the screen.
    let lines: Vec<String> = screen.lines().map(letters).filter(|l| l.len() >= 4).collect();
    let own = lines.iter().filter(|l| whole.contains(l.as_str())).count();
    own >= 8 && own * 10 >= lines.len() * 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Adapters;

    fn pty(name: &str) -> Pty {
        Adapters::new(&[]).get(name).unwrap().pty.clone().unwrap()
    }

    #[test]
    fn the_composer_is_known_by_its_mark_and_a_dialog_is_not_it() {
        for (name, ready, typed) in [
            ("claude", "────\n❯ \n────\n ? for shortcuts", "────\n❯ please run it\n────\n ⏸ manual mode on"),
            ("codex", "› Ask Codex to do anything\n\n  GPT-5.5", "› please run it\n\n  GPT-5.5"),
            ("gemini", " >   Type your message or @path", " > please run it"),
            ("opencode", "┃\n┃  Ask anything... \"x\"\n┃", "┃\n┃  please run it\n┃"),
            ("aider", "Tokens: 3\n> ", "> please run it"),
        ] {
            let mark = prompt_mark(ready, &pty(name));
            assert!(composes(typed, &mark, "please run it"), "{name}: {mark:?}");
            assert!(!composes(ready, &mark, "please run it"), "{name}");
        }
        let claude = pty("claude");
        let mark = prompt_mark("❯ \n", &claude);
        for dialog in [
            "❯ please run it\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No",
            " ❯ No, exit\n   Yes, I trust this folder",
        ] {
            assert!(!composes(
                dialog.lines().skip(1).collect::<Vec<_>>().join("\n").as_str(),
                &mark,
                "please run it"
            ));
        }
        assert!(composes("❯ [Pasted text #1 +40 lines]", &mark, &"x\n".repeat(40)));
    }

    #[test]
    fn the_chosen_line_of_a_list_is_known() {
        let claude = pty("claude");
        assert!(marked(" ❯ No, exit", &claude) && marked("│ ● 1. Allow once  │", &claude));
        assert!(!marked("   Yes, I trust", &claude) && !marked(" ❯ ", &claude) && !marked("│ text", &claude));
    }
}
