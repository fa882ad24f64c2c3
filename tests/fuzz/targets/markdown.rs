//! Markdown of models, whole and while it still grows.

use tiller_text::markdown::{Doc, Opts};
use tiller_text::{Wrap, width};

use super::clean::is_hostile;
use super::texts;
use crate::outline::text_cuts;
use crate::{Outline, Target};

pub(super) const TARGET: Target = Target { name: "markdown", words: &[WORDS], seeds, run };

const WORDS: &[&str] = &[
    "word",
    "two words ",
    "\n",
    "\n\n",
    "\r\n",
    "# ",
    "## Head\n",
    "Head\n===\n",
    "Head\n---\n",
    "- ",
    "- item\n",
    "* ",
    "+ ",
    "1. ",
    "1. one\n",
    "999999999. ",
    "10) ",
    "  ",
    "    ",
    "\t",
    "> ",
    ">> ",
    "> quote\n",
    "```",
    "```rust\n",
    "```\n",
    "~~~\n",
    "````\n",
    "`",
    "``",
    "`code`",
    "**",
    "**bold**",
    "*",
    "_",
    "__",
    "*it*",
    "~~",
    "~~gone~~",
    "[",
    "](",
    "](http://x)",
    "[text](http://x \"title\")",
    "![",
    "![a](b)",
    "<http://x>",
    "<a@b.c>",
    "http://example.com/a",
    "[ref]",
    "[ref]: http://x\n",
    "[^1]",
    "[^1]: note\n",
    "| a | b |\n",
    "|---|:-:|\n",
    "| 1 | 2 |\n",
    "|",
    "---\n",
    "***\n",
    "- [ ] ",
    "- [x] ",
    "<div>",
    "</div>",
    "<b>",
    "<!--",
    "-->",
    "<script>",
    "&amp;",
    "&#x202e;",
    "&nbsp;",
    "\\",
    "\\*",
    "\\\n",
    "  \n",
    "$x$",
    "$$",
    "| ",
    " |",
    ":---",
    "\u{1b}[31m",
    "\u{202e}",
    "日本",
    "👩\u{200d}💻",
    "e\u{301}",
    "\u{0}",
    "term\n: definition\n",
    "#",
    "=",
    "-",
    "+",
    ">",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "# Title\n\nSome *text* with `code` and **bold**.\n\n- one\n- two\n  - three\n\n```rust\nfn main() {}\n```\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "1. a\n1. b\n\n   para\n\n   ```\n   code\n   ```\n2. c\n",
        include_str!("../../../CONTRIBUTING.md").get(..3_000).unwrap_or_default(),
    ])
}

fn run(data: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(data);
    let opts = Opts {
        columns: 1 + data.len() % 60,
        ascii: data.len().is_multiple_of(2),
        tables_as_text: data.len().is_multiple_of(7),
    };
    let whole = Doc::parse(&text, opts);
    let mut outline = Outline::default();
    let stack = whole.stack();
    outline.size(stack.rows());
    for n in 0..stack.rows() {
        let Some((_, line, row)) = stack.row(n) else { continue };
        for gutter in [&line.first, &line.rest] {
            assert!(!gutter.text.contains(is_hostile), "{:?}", gutter.text);
        }
        assert!(!line.text().contains(is_hostile), "{:?}", line.text());
        let text = &line.text()[row.start as usize..row.end as usize];
        let gutter = width(if row.is_first() { &line.first.text } else { &line.rest.text });
        let most = opts.columns.saturating_sub(gutter).max(2);
        assert!(
            line.wrap == Wrap::Cut || width(text.trim_end()) <= most,
            "{text:?} after {gutter} in {opts:?}"
        );
        if n < 12 {
            outline.add((
                line.wrap as u8,
                gutter.min(6),
                line.runs().len().min(4),
                line.band.is_some(),
                row.is_first(),
            ));
        }
    }
    // However it arrives, it is the same in the end; what is settled stays.
    let mut growing = Doc::new(opts);
    let mut settled: Vec<String> = Vec::new();
    for cut in text_cuts(&text, 5) {
        growing.update(&text[..cut], false);
        let rows = shown(&growing, growing.settled_rows());
        assert!(rows.len() >= settled.len() && rows[..settled.len()] == settled[..], "a settled row changed");
        settled = rows;
    }
    growing.update(&text, true);
    assert_eq!(shown(&growing, growing.stack().rows()), shown(&whole, stack.rows()), "in pieces and whole");
    outline.end()
}

/// The first rows as text.
fn shown(doc: &Doc, rows: usize) -> Vec<String> {
    let row = |n| {
        let (_, line, row) = doc.stack().row(n)?;
        let gutter = if row.is_first() { &line.first.text } else { &line.rest.text };
        Some(format!("{gutter}{}", &line.text()[row.start as usize..row.end as usize]))
    };
    (0..rows).filter_map(row).collect()
}
