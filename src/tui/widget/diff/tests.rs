use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::ChangeKind;

use super::*;
use crate::text::highlight;
use crate::text::paint::{self, PaintTarget};
use crate::text::sheet::Sheet;
use crate::theme::{Depth, Theme};

const DIFF: &str = "--- a/src/client.rs\n+++ b/src/client.rs\n@@ -40,3 +40,4 @@ fn retry() {\n     let wait = parse(header);\n-\
                    \tsleep(wait);\n+\tsleep(wait.min(limit));\n+\tlog(\"capped\");\n }\n@@ -80 +81 @@ fn other() {\n-x\n+y\n";

fn change() -> FileDiff {
    FileDiff {
        path: "src/client.rs".into(),
        kind: ChangeKind::Modified,
        added: 3,
        removed: 2,
        diff: DIFF.into(),
    }
}

/// A highlighter that is asked on the thread of the test.
struct AtOnce;

impl Highlight for AtOnce {
    fn want(&mut self, language: &str, lines: &[Line]) -> Answer {
        let code: Vec<String> = lines.iter().map(|l| l.text().to_owned()).collect();
        highlight::Syntaxes::shared()
            .colour_within(Duration::MAX, language, &code)
            .map_or(Answer::Plain, |runs| Answer::Ready(std::sync::Arc::new(runs)))
    }
}

fn theme() -> Theme {
    Theme::built_in("tiller-dark", Depth::True).unwrap()
}

/// The cells of a diff.
fn painted(text: &DiffText, columns: u16, theme: &Theme) -> Buffer {
    let sheet = Sheet::new(text.lines.clone(), columns.into());
    let mut buf = Buffer::empty(Rect::new(0, 0, columns, sheet.rows.len() as u16));
    for (y, row) in sheet.rows.iter().enumerate() {
        let place = PaintTarget { x: 0, y: y as u16, columns };
        paint::row(&mut buf, place, &sheet.lines[row.line as usize], *row, theme, &[]);
    }
    buf
}

fn shown(buf: &Buffer) -> String {
    let row = |y: u16| -> String { (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect() };
    (0..buf.area.height).map(|y| format!("{}\n", row(y).trim_end())).collect()
}

/// Row and column of the first cell of `what`.
fn find(buf: &Buffer, what: &str) -> (u16, u16) {
    let text = shown(buf);
    let (y, row) = text
        .lines()
        .enumerate()
        .find(|(_, l)| l.contains(what))
        .unwrap_or_else(|| panic!("no {what} in\n{text}"));
    (width(&row[..row.find(what).unwrap()]) as u16, y as u16)
}

#[test]
fn a_file_has_a_header_with_counts_and_no_lines_of_the_format() {
    let text = file(&change(), DiffLayout::new(60, false), &mut AtOnce);
    let seen = shown(&painted(&text, 60, &theme()));
    assert_eq!(
        seen,
        "src/client.rs   +3 −2\n  40        let wait = parse(header);\n  41 −      sleep(wait);\n  41 +      \
         sleep(wait.min(limit));\n  42 +      log(\"capped\");\n  43    }\n   ⋯    fn other() {\n  80 −  x\n  81 +  y\n"
    );
    for other in ["@@", "---", "+++"] {
        assert!(!seen.contains(other), "{seen}");
    }
}

#[test]
fn in_ascii_the_signs_are_ascii_and_a_row_that_goes_on_is_marked() {
    let text = file(&change(), DiffLayout::new(24, true), &mut Uncoloured);
    let seen = shown(&painted(&text, 24, &theme()));
    assert!(seen.is_ascii(), "{seen}");
    assert!(seen.contains("  41 -      sleep(wait);\n"), "{seen}");
    assert!(seen.contains("  41 +      sleep(wait.\n     \\  min(limit));\n"), "{seen}");
    let text = file(&change(), DiffLayout::new(24, false), &mut Uncoloured);
    let seen = shown(&painted(&text, 24, &theme()));
    assert!(seen.contains("     ↪  min(limit));\n"), "{seen}");
}

#[test]
fn bands_fill_their_rows_and_changed_words_stand_out_in_the_colours_of_the_language() {
    let theme = theme();
    let text = file(&change(), DiffLayout::new(60, false), &mut AtOnce);
    let buf = painted(&text, 60, &theme);
    let (_, y) = find(&buf, "sleep(wait.min");
    let ground = |role: Role| theme.style(role).bg.unwrap();
    assert_ne!(ground(Role::AddedBand), ground(Role::RemovedBand));
    for x in [0, 4, 59] {
        assert_eq!(buf[(x, y)].bg, ground(Role::AddedBand), "column {x}");
        assert_eq!(buf[(x, y - 1)].bg, ground(Role::RemovedBand), "column {x}");
        assert_ne!(buf[(x, y - 2)].bg, ground(Role::AddedBand), "column {x}");
    }
    let (x, _) = find(&buf, ".min(limit)");
    assert_eq!(buf[(x, y)].bg, ground(Role::AddedWord));
    // Line numbers are as bright as text.
    assert_eq!(buf[(2, y)].fg, theme.style(Role::Text).fg.unwrap());
    // A string has its colour on the band too.
    let (x, y) = find(&buf, "\"capped\"");
    let string = highlight::CLASSES.iter().position(|c| *c == "string").unwrap() as u8 + 1;
    assert_eq!(Some(buf[(x + 1, y)].fg), highlight::style(string, &theme).fg);
    assert_eq!(buf[(x + 1, y)].bg, ground(Role::AddedBand));
}

#[test]
fn without_colours_the_signs_say_what_changed() {
    let theme = Theme::built_in("mono", Depth::Mono).unwrap();
    let text = file(&change(), DiffLayout::new(60, false), &mut Uncoloured);
    let buf = painted(&text, 60, &theme);
    assert!(shown(&buf).contains("  41 −      sleep(wait);"), "{}", shown(&buf));
    let (x, y) = find(&buf, ".min(limit)");
    // `sleep(` is equal.
    assert_ne!(buf[(x, y)].modifier, buf[(x - 7, y)].modifier, "a changed word looks like an equal one");
}

#[test]
fn side_by_side_both_halves_have_their_band() {
    let theme = theme();
    let o = DiffLayout { side_by_side: true, ..DiffLayout::new(100, false) };
    let buf = painted(&file(&change(), o, &mut AtOnce), 100, &theme);
    let (x, y) = find(&buf, "sleep(wait.min");
    assert!(x > 50, "{}", shown(&buf));
    let ground = |role: Role| theme.style(role).bg.unwrap();
    assert_eq!(buf[(0, y)].bg, ground(Role::RemovedBand));
    assert_eq!(buf[(48, y)].bg, ground(Role::RemovedBand));
    assert_eq!(buf[(99, y)].bg, ground(Role::AddedBand));
    // Nothing stands beside the line that was added.
    assert_ne!(buf[(0, y + 1)].bg, ground(Role::RemovedBand));
    let string = highlight::CLASSES.iter().position(|c| *c == "string").unwrap() as u8 + 1;
    let (x, y) = find(&buf, "\"capped\"");
    assert_eq!(Some(buf[(x + 1, y)].fg), highlight::style(string, &theme).fg);
}

#[test]
fn long_lines_are_cut_where_the_caller_wants_it() {
    let text = file(&change(), DiffLayout::new(24, false).cut(), &mut Uncoloured);
    let buf = painted(&text, 24, &theme());
    assert!(shown(&buf).contains("  41 +      sleep(wait.…\n"), "{}", shown(&buf));
    assert_eq!(usize::from(buf.area.height), text.lines.len());
}

#[test]
fn what_is_not_coloured_yet_is_named_and_coloured_later() {
    let mut text = file(&change(), DiffLayout::new(60, false), &mut Uncoloured);
    let spans: Vec<(usize, usize)> = text.codes.iter().map(|c| (c.from, c.to)).collect();
    assert_eq!(spans, [(1, 6), (7, 9)]);
    assert_eq!(&*text.codes[0].language, "rs");
    let before = painted(&text, 60, &theme());
    for code in std::mem::take(&mut text.codes) {
        let lines = &mut text.lines[code.from..code.to];
        let Answer::Ready(runs) = AtOnce.want(&code.language, lines) else { panic!("rust is known") };
        lines.iter_mut().zip(runs.iter()).for_each(|(l, r)| l.recolour(r));
    }
    let after = painted(&text, 60, &theme());
    assert_eq!(shown(&before), shown(&after));
    let (x, y) = find(&after, "\"capped\"");
    assert_ne!(before[(x, y)].fg, after[(x, y)].fg);
    let (x, y) = find(&after, ".min(limit)");
    assert_eq!(before[(x, y)].bg, after[(x, y)].bg, "a changed word keeps its ground");
}

#[test]
fn a_dialog_lays_out_again_when_colours_are_there_and_then_rests() {
    let mut colours = DiffColours::default();
    let layout = DiffLayout::new(160, false);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let mut text = file(&change(), layout, &mut colours);
    colours.note(&text);
    assert!(colours.wake().is_some());
    while colours.wake().is_some() {
        if colours.again() {
            text = file(&change(), layout, &mut colours);
            colours.note(&text);
        }
        std::thread::yield_now();
        assert!(std::time::Instant::now() < deadline, "no colours");
    }
    assert!(!text.pending && !colours.again());
}

#[test]
fn hostile_text_is_spelled_out_and_stays_so_when_it_is_coloured() {
    let bad = "\u{202e}\x1b[31m";
    let change = FileDiff {
        path: format!("src/{bad}.rs"),
        diff: format!(
            "@@ -1 +1 @@ {bad}\n-let a = \"{bad}\";\n+let b = \"{bad}\";\n@@ -9 +9 @@ {bad}\n-a\n+b\n"
        ),
        ..change()
    };
    let text = file(&change, DiffLayout::new(80, false), &mut AtOnce);
    let theme = theme();
    let buf = painted(&text, 80, &theme);
    for cell in &buf.content {
        assert!(!cell.symbol().chars().any(|c| c.is_control() || c == '\u{202e}'), "{:?}", cell.symbol());
    }
    let mark = text.lines[1].runs().iter().find(|r| r.look.role == Role::Hostile);
    assert_eq!(mark.map(|r| r.look.class), Some(0));
}
