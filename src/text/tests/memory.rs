//! What the laid-out lines of a long reply take. In a program of its own: no other test changes its memory.

use tiller_text::markdown::{Doc, Opts};

/// Lines of the reply.
const LINES: usize = 60_000;
/// Most bytes for each of them.
const MOST: usize = 340;

/// Kilobytes of memory in use that no file backs; `None`: this system does not say.
fn anonymous() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[test]
fn k_a_line_of_a_reply_takes_few_bytes() {
    let mut text = String::with_capacity(LINES * 40);
    let mut ends = Vec::with_capacity(LINES / 10);
    for n in 0..LINES / 10 {
        text.push_str(&format!("## Section {n}\n\nSome words of a sentence, and *more* of them.\n\n"));
        text.push_str("- **bold** words and `code()`\n- an item that has no marks\n\n```rust\n");
        text.push_str(&format!("let a_{n} = call({n}, \"text\");\n}}\n```\n\n"));
        ends.push(text.len());
    }
    let Some(before) = anonymous() else {
        println!("skipped: this system does not say what memory a process uses");
        return;
    };
    let mut doc = Doc::new(Opts { columns: 84, ascii: false, tables_as_text: false });
    ends.iter().for_each(|end| doc.update(&text[..*end], false));
    let after = anonymous().unwrap();
    let lines = doc.stack().lines();
    let bytes = (after - before) * 1024 / lines;
    println!("{lines} lines, {bytes} bytes each");
    assert!(lines > LINES / 2 && bytes <= MOST, "{lines} lines, {bytes} bytes each, more than {MOST}");
}
