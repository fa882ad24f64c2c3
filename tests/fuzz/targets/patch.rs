//! Patches: whatever a model writes, and what it means.

use std::fmt::Write as _;

use tiller_tool::files::testing::patch;

use super::texts;
use crate::outline::fields;
use crate::{Outline, Target};

pub(super) const TARGET: Target = Target { name: "patch", words: &[WORDS], seeds, run };

const WORDS: &[&str] = &[
    "\u{1f}",
    "*** Begin Patch\n",
    "*** End Patch\n",
    "*** End Patch",
    "*** Update File: f\n",
    "*** Add File: f\n",
    "*** Delete File: f\n",
    "*** Move to: g\n",
    "*** End of File\n",
    "@@\n",
    "@@ a\n",
    "@@ -1,2 +1,2 @@\n",
    "@@ -99999999999999999999,1 +1 @@\n",
    "@@ -2 +2 @@ fn a() {\n",
    " a\n",
    " b\n",
    " c\n",
    "-a\n",
    "-b\n",
    "+x\n",
    "+y\n",
    "-\n",
    "+\n",
    " \n",
    "\n",
    "a\n",
    "b\n",
    "c\n",
    "a",
    "\r\n",
    "-a\r\n",
    " a\r\n",
    "a\r\n",
    "b\r\n",
    "\\ No newline at end of file\n",
    "```\n",
    "```diff\n",
    "--- a/f\n",
    "+++ b/f\n",
    "diff --git a/f b/f\n",
    " a  \n",
    "a  \n",
    "\t",
    "  ",
    "é",
    "日本\n",
    "-日本\n",
    "*** ",
    "***",
    "@@",
    "+",
    "-",
    " ",
    "\u{1f}a\nb\nc\n",
    "\u{1f}a\r\nb\nc",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+x\n c\n*** End Patch\n\u{1f}a\nb\nc\n",
        "*** Begin Patch\n*** Update File: f\n@@ a\n-b\n+x\n*** End of File\n*** End Patch\n\u{1f}a\r\nb\r\n",
        "*** Begin Patch\n*** Add File: f\n+x\n+y\n*** End Patch\n\u{1f}",
        "*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@ -2,1 +2,1 @@\n-b\n+c\n@@\n c\n+d\n*** End Patch\n\u{1f}a\nb\nc\n",
    ])
}

fn run(data: &[u8]) -> u64 {
    let [written, text] = fields(data);
    let mut outline = Outline::default();
    match patch(&written, &text) {
        Ok(Some(after)) => {
            outline.size(after.lines().count());
            outline.add(after == text);
        }
        Ok(None) => outline.add(1),
        Err(why) => outline.message(&why),
    }
    // The same two texts as a file before and after: a patch that says so does so, and its reverse takes it back.
    let (before, after) = (lines(&written), lines(&text));
    if before != after && !before.is_empty() && !after.is_empty() {
        there_and_back(&before, &after);
    }
    outline.end()
}

/// Lines that a patch can name: no line ends of their own, no masks, no pictures of characters that cannot be shown.
fn lines(text: &str) -> Vec<&str> {
    let masked = tiller_protocol::mask::has_mask(text);
    let picture = |c: char| matches!(c, '\u{2400}'..='\u{2421}' | '\u{fffd}');
    text.lines().filter(|l| !masked && !l.contains('\r') && !l.contains(picture)).take(60).collect()
}

fn there_and_back(before: &[&str], after: &[&str]) {
    for end in ["\n", "\r\n"] {
        let file = |lines: &[&str]| lines.iter().map(|l| format!("{l}{end}")).collect::<String>();
        let (old, new) = (file(before), file(after));
        for (from, to, a, b) in [(&old, &new, before, after), (&new, &old, after, before)] {
            let written = written(a, b);
            let done = patch(&written, from);
            assert_eq!(done.as_ref().map(Option::as_deref), Ok(Some(to.as_str())), "{written}");
        }
    }
}

/// A patch with the whole file in one hunk.
fn written(before: &[&str], after: &[&str]) -> String {
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - same;
    let tail = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let mut out = String::from("*** Begin Patch\n*** Update File: f\n@@\n");
    let mut put = |sign: char, lines: &[&str]| lines.iter().for_each(|l| _ = writeln!(out, "{sign}{l}"));
    put(' ', &before[..same]);
    put('-', &before[same..before.len() - tail]);
    put('+', &after[same..after.len() - tail]);
    put(' ', &before[before.len() - tail..]);
    out.push_str("*** End Patch\n");
    out
}
