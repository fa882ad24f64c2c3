//! Exact replacement in files, and their encodings.

use tiller_tool::files::testing::{decode, difference, replace};

use super::texts;
use crate::outline::fields;
use crate::{Outline, Target};

pub(super) const TARGET: Target = Target { name: "edit", words: &[WORDS], seeds, run };

/// Pieces of files.
const WORDS: &[&str] = &[
    "\u{1f}",
    "\u{1f}",
    "a",
    "b",
    "x",
    "line",
    "line one\n",
    "line two\n",
    "\n",
    "\n",
    "\r\n",
    "\r\n",
    "\r",
    "\n\n",
    " ",
    "  ",
    "\t",
    "}\n",
    "{\n",
    "    indented\n",
    "    indented",
    "fn a() {\n",
    "é",
    "日本",
    "e\u{301}",
    "\u{feff}",
    "\u{0}",
    "\u{85}",
    "\u{2028}",
    "[redacted key]",
    "[redacted ",
    "KEY=[redacted api key]\n",
    "same\nsame\n",
    "same\r\nsame\n",
    "0",
    "1\ta",
    "a\na\na\n",
    "trailing  \n",
    "\u{10ff00}",
    "\u{10ffff}",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "a b c\u{1f}b\u{1f}x",
        "a\r\nb\r\nc\r\n\u{1f}a\nb\n\u{1f}x\ny\nz\n",
        "k\nk\r\n\u{1f}k\n\u{1f}v\nw\n",
        "one\ntwo\n\u{1f}two\n\u{1f}",
    ])
}

fn run(data: &[u8]) -> u64 {
    let mut outline = Outline::default();
    // The bytes as a file: what is decoded is the same file when it is encoded.
    match decode(data) {
        Some((text, again)) => {
            assert_eq!(again.as_deref(), Ok(data), "{text:?}");
            outline.add(text.is_ascii());
        }
        None => outline.add(0),
    }
    let [text, old, new] = fields(data);
    for all in [false, true] {
        match replace(&text, &old, &new, all) {
            Ok((after, lines)) => {
                check(&text, &old, &new, all, &after, &lines);
                outline.size(lines.len());
            }
            Err(why) => {
                outline.message(&why);
                let places = text.matches(old.as_str()).count();
                let plain = !old.is_empty() && old != new && !stands_for_other(&format!("{text}{old}{new}"));
                assert!(
                    !plain || all || places != 1 || !plain_ends(&text, &new),
                    "{why}: {old:?} in {text:?}"
                );
            }
        }
    }
    // What the screen shows is what happens.
    if let Some(diff) =
        difference(&text, &new).filter(|_| text != new && !text.contains('\r') && !new.contains('\r'))
    {
        let patch = diffy::Patch::from_str(&diff);
        assert!(patch.is_ok(), "{diff:?} cannot be read: {:?}", patch.err());
        if let Ok(patch) = patch {
            let done = |from: &str, patch| diffy::apply(from, patch).ok();
            assert_eq!(done(&text, &patch).as_deref(), Some(new.as_str()), "{diff:?}");
            assert_eq!(done(&new, &patch.reverse()).as_deref(), Some(text.as_str()), "{diff:?} in reverse");
        }
    }
    outline.end()
}

/// Whether there may be masks of secrets, or pictures of characters that cannot be shown.
fn stands_for_other(text: &str) -> bool {
    tiller_protocol::mask::has_mask(text)
        || text.contains(|c| matches!(c, '\u{2400}'..='\u{2421}' | '\u{fffd}'))
}

/// Whether line ends need no thought.
fn plain_ends(text: &str, new: &str) -> bool {
    !text.contains('\r') && !new.contains('\r')
}

/// What lies outside of the places is there byte for byte, and between them is the new text.
fn check(text: &str, old: &str, new: &str, all: bool, after: &str, lines: &[usize]) {
    assert!(!lines.is_empty() && (all || lines.len() == 1));
    assert!(lines.windows(2).all(|l| l[0] <= l[1]), "{lines:?} are in order");
    assert!(
        lines.iter().all(|l| *l >= 1 && *l <= 1 + text.matches('\n').count()),
        "{lines:?} are lines of the file"
    );
    assert_ne!(after, text, "an edit that changes nothing is refused");
    if stands_for_other(&format!("{text}{old}{new}")) {
        return;
    }
    if plain_ends(text, new) && !old.contains('\r') {
        let want = if all { text.replace(old, new) } else { text.replacen(old, new, 1) };
        assert_eq!(after, want);
        return;
    }
    // With two kinds of line ends: the same but for them, when no return stands alone.
    let alone = |t: &str| t.replace("\r\n", "").contains('\r');
    let unix = |t: &str| t.replace("\r\n", "\n");
    if ![text, old, new].into_iter().any(alone) && !old.contains('\r') {
        let want =
            if all { unix(text).replace(old, &unix(new)) } else { unix(text).replacen(old, &unix(new), 1) };
        assert_eq!(unix(after), want);
    }
    // Whole lines before the first place and after the last are untouched.
    let first: usize = text.split_inclusive('\n').take(lines[0] - 1).map(str::len).sum();
    assert!(after.starts_with(&text[..first]), "{:?} begins otherwise than {:?}", after, &text[..first]);
}
