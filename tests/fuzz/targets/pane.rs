//! The terminal in which programs of others run: any output, in any pieces, at any size.

use tiller_external::testing::Pane;
use tiller_protocol::{Grid, GridRun};
use tiller_text::width;

use super::texts;
use crate::outline::{cuts, pieces};
use crate::{Outline, Target};

pub(super) const TARGET: Target =
    Target { name: "pane", words: &[super::words::TERMINAL, WORDS], seeds, run };

const WORDS: &[&str] = &[
    "text ",
    "\u{e}",
    "\u{f}",
    "\u{18}",
    "\u{1a}",
    "\u{1b}",
    "\u{1b}[",
    "\u{1b}]",
    "\u{1b}_",
    "\u{1b}^",
    "\u{1b}X",
    "\u{1b}c",
    "\u{1b}7",
    "\u{1b}8",
    "\u{1b}D",
    "\u{1b}E",
    "\u{1b}M",
    "\u{1b}H",
    "\u{1b}#8",
    "\u{1b}(0",
    "\u{1b}(B",
    "\u{1b}=",
    "\u{1b}>",
    "\u{1b}[H",
    "\u{1b}[2J",
    "\u{1b}[3J",
    "\u{1b}[K",
    "\u{1b}[1K",
    "\u{1b}[999;999H",
    "\u{1b}[5;10H",
    "\u{1b}[A",
    "\u{1b}[99999B",
    "\u{1b}[65535C",
    "\u{1b}[D",
    "\u{1b}[S",
    "\u{1b}[99T",
    "\u{1b}[L",
    "\u{1b}[99M",
    "\u{1b}[@",
    "\u{1b}[P",
    "\u{1b}[X",
    "\u{1b}[b",
    "\u{1b}[99999b",
    "\u{1b}[2;4r",
    "\u{1b}[r",
    "\u{1b}[?1049h",
    "\u{1b}[?1049l",
    "\u{1b}[?47h",
    "\u{1b}[?6h",
    "\u{1b}[?7l",
    "\u{1b}[?25l",
    "\u{1b}[?1000h",
    "\u{1b}[?1003h",
    "\u{1b}[?1006h",
    "\u{1b}[?2004h",
    "\u{1b}[?2026h",
    "\u{1b}[?2026l",
    "\u{1b}[?1h",
    "\u{1b}[?3h",
    "\u{1b}[4h",
    "\u{1b}[20h",
    "\u{1b}[0m",
    "\u{1b}[1;3;4;7;9m",
    "\u{1b}[38;5;196m",
    "\u{1b}[48;2;1;2;3m",
    "\u{1b}[58:2::1:2:3m",
    "\u{1b}[4:3m",
    "\u{1b}[6n",
    "\u{1b}[c",
    "\u{1b}[>c",
    "\u{1b}[5n",
    "\u{1b}[18t",
    "\u{1b}[14t",
    "\u{1b}[22t",
    "\u{1b}[?u",
    "\u{1b}[>1u",
    "\u{1b}[<u",
    "\u{1b}[=5;1u",
    "\u{1b}[>4;2m",
    "\u{1b}[?4m",
    "\u{1b}[?2026$p",
    "\u{1b}[ q",
    "\u{1b}[!p",
    "\u{1b}[g",
    "\u{1b}[3g",
    "\u{1b}[I",
    "\u{1b}[Z",
    "\u{1b}[s",
    "\u{1b}[u",
    "\u{1b}[;H",
    "\u{1b}[?",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]2;t\u{1b}\\",
    "\u{1b}]8;;http://x\u{7}",
    "\u{1b}]8;;\u{7}",
    "\u{1b}]52;c;?\u{7}",
    "\u{1b}]10;?\u{7}",
    "\u{1b}]11;?\u{7}",
    "\u{1b}]4;1;?\u{7}",
    "\u{1b}]4;1;#ff0000\u{7}",
    "\u{1b}]104\u{7}",
    "\u{1b}]9;4;1;50\u{7}",
    "\u{1b}]133;A\u{7}",
    "\u{1b}]1337;File=:",
    "\u{1b}P+q544e\u{1b}\\",
    "\u{1b}P$qm\u{1b}\\",
    "\u{1b}_Ga=T;AAAA\u{1b}\\",
    "\u{1b}Ptmux;",
    "\u{9b}",
    "日本",
    "é",
    "0",
    ";",
    ":",
    "9999999999",
    "?",
    "m",
    "h",
    "l",
    "\u{1f}",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "\u{1b}[2J\u{1b}[H\u{1b}[1mTitle\u{1b}[0m\r\n> \u{1b}[7m \u{1b}[0m",
        "a\r\nb\r\n\u{1b}]0;t\u{7}\u{1b}[6n\u{1b}[c",
        "日本語\u{1b}[1;1Hx",
    ])
}

fn run(data: &[u8]) -> u64 {
    let size = |n: usize| (1 + (n % 41) as u16, 1 + (n / 41 % 11) as u16);
    let (columns, rows) = size(data.len());
    let mut pane = Pane::new(columns, rows);
    let mut whole = Pane::new(columns, rows);
    let all = whole.feed(data);
    let (mut answers, mut rev, mut mine) = (Vec::new(), 0, Vec::<Vec<GridRun>>::new());
    let cuts = cuts(data, 6);
    for piece in pieces(data, &cuts) {
        answers.extend(pane.feed(piece));
        follow(&pane, &mut rev, &mut mine);
        check(&pane.grid());
    }
    // Colours and sizes are answered, keys and texts never: an answer is typed into the program.
    for answers in [&all, &answers] {
        let harmless = |b: &u8| matches!(b, 0x1b | 0x20..=0x7e | 0x07);
        assert!(answers.iter().all(harmless), "{:?}", String::from_utf8_lossy(answers));
        assert!(answers.is_empty() || answers[0] == 0x1b);
    }
    let in_pieces = pane.grid();
    assert_eq!(text_of(&in_pieces), text_of(&whole.grid()), "in pieces and whole");
    assert!(!in_pieces.title.contains(char::is_control) && in_pieces.title.chars().count() <= 200);
    let title = pane.title();
    let lines = pane.lines(200);
    assert!(lines.iter().all(|l| !l.contains(char::is_control)));
    // Another size, and more of the same.
    for (n, piece) in pieces(data, &cuts).iter().enumerate() {
        let (columns, rows) = size(data.len() * 7 + n * 53);
        pane.resize(columns, rows);
        pane.feed(piece);
        follow(&pane, &mut rev, &mut mine);
        check(&pane.grid());
    }
    let mut outline = Outline::default();
    outline.add((title.is_some(), in_pieces.cursor, lines.len().min(9)));
    outline.add(answers.iter().filter(|b| **b == 0x1b).count().min(4));
    for row in in_pieces.rows.iter().take(6) {
        outline.add((
            row.len().min(4),
            row.first().map(|r| (r.style.bold, r.style.reverse, r.text.len().min(5))),
        ));
    }
    outline.end()
}

/// An observer has the whole screen from the changes that it read.
fn follow(pane: &Pane, rev: &mut u64, mine: &mut Vec<Vec<GridRun>>) {
    if let Some(view) = pane.since(*rev) {
        mine.resize(view.height.into(), Vec::new());
        for (at, row) in view.rows {
            mine[usize::from(at)] = row;
        }
        *rev = view.rev;
    }
    assert_eq!(*mine, pane.grid().rows, "what an observer has is what is drawn");
}

/// No control characters, and no row wider than the terminal.
fn check(grid: &Grid) {
    for row in &grid.rows {
        let text: String = row.iter().map(|r| r.text.as_str()).collect();
        assert!(!text.contains(char::is_control), "{text:?}");
        // Marks and joiners count for nothing here: the screen cleans them.
        let cells: usize = text.chars().filter(|c| width(c.encode_utf8(&mut [0; 4])) > 0).count();
        assert!(cells <= usize::from(grid.cols), "{text:?} in {}", grid.cols);
    }
    if let Some((column, row)) = grid.cursor {
        assert!(
            column < grid.cols.max(1) && usize::from(row) < grid.rows.len().max(1),
            "the cursor is on the screen"
        );
    }
}

/// The characters without their marks, whose number depends on the pieces.
fn text_of(grid: &Grid) -> Vec<String> {
    let row = |row: &Vec<GridRun>| {
        row.iter().flat_map(|r| r.text.chars()).filter(|c| width(c.encode_utf8(&mut [0; 4])) > 0).collect()
    };
    grid.rows.iter().map(row).collect()
}
