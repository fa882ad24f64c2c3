use super::pen::blank;
use super::*;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

pub(super) fn terminal(rows: u16, columns: u16) -> vt100::Parser {
    let size = |n| std::num::NonZeroU16::new(n).unwrap();
    vt100::Parser::new(size(rows), size(columns), 0)
}

fn screen(encoder: &mut Encoder, buf: &Buffer, vt: &mut vt100::Parser, cursor: Option<Position>) -> usize {
    let mut out = String::new();
    encoder.frame(buf, &[buf.area], cursor, &mut out);
    grammar(&out);
    vt.process(out.as_bytes());
    out.len()
}

fn colour(c: Color) -> vt100::Color {
    match c {
        Color::Reset => vt100::Color::Default,
        Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
        Color::Indexed(n) => vt100::Color::Idx(n),
        named => vt100::Color::Idx(crate::theme::color::number(named)),
    }
}

/// The terminal shows the symbols and the looks of the buffer.
pub(super) fn shows(vt: &vt100::Parser, buf: &Buffer) {
    for y in 0..buf.area.height {
        let mut x = 0;
        while x < buf.area.width {
            let want = buf.cell((x, y)).unwrap();
            let got = vt.screen().cell(y, x).unwrap();
            let text = got.contents().to_string();
            let symbol = want.symbol();
            assert_eq!(if text.is_empty() { " " } else { &text }, symbol, "{x},{y}");
            assert_eq!(got.bgcolor(), colour(want.bg), "background of {x},{y}");
            if !blank(want) {
                let looks = (got.fgcolor(), got.bold(), got.dim(), got.italic(), got.underline());
                let has = |m| want.modifier.contains(m);
                let (bold, dim) = (has(Modifier::BOLD), has(Modifier::DIM));
                let (italic, line) = (has(Modifier::ITALIC), has(Modifier::UNDERLINED));
                assert_eq!(
                    looks,
                    (colour(want.fg), bold, dim, italic, line),
                    "look of {symbol:?} at {x},{y}"
                );
                assert_eq!(got.inverse(), has(Modifier::REVERSED), "{symbol:?} at {x},{y}");
            }
            x += (symbol.width() as u16).max(1);
        }
    }
}

#[test]
fn a_terminal_shows_what_the_buffer_holds() {
    let mut vt = terminal(6, 20);
    let mut e = Encoder::default();
    let mut buf = Buffer::empty(Rect::new(0, 0, 20, 6));
    let texts = ["hello", "漢字 wide", "a\u{301}e\u{308} marks", "", "last cell of a line!", "x"];
    for (i, text) in texts.iter().cycle().take(40).enumerate() {
        buf.reset();
        let style = Style::new().fg(Color::Indexed(i as u8)).bg(Color::Rgb(1, 2, i as u8));
        buf.set_string((i % 3) as u16, (i % 6) as u16, text, style);
        buf.set_string(0, ((i + 3) % 6) as u16, text, Style::new().add_modifier(Modifier::BOLD));
        let at = Position::new((i % 20) as u16, (i % 6) as u16);
        screen(&mut e, &buf, &mut vt, Some(at));
        shows(&vt, &buf);
        assert_eq!(vt.screen().cursor_position(), (at.y, at.x));
    }
}

#[test]
fn looks_arrive() {
    let mut vt = terminal(1, 8);
    let mut e = Encoder::default();
    let mut buf = Buffer::empty(Rect::new(0, 0, 8, 1));
    buf.set_string(0, 0, "a", Style::new().fg(Color::LightRed).add_modifier(Modifier::BOLD));
    buf.set_string(1, 0, "b", Style::new().bg(Color::Blue));
    buf.set_string(2, 0, "c", Style::new().fg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::REVERSED));
    screen(&mut e, &buf, &mut vt, None);
    let cell = |x| vt.screen().cell(0, x).unwrap();
    assert!(cell(0).bold() && cell(0).fgcolor() == vt100::Color::Idx(9));
    assert!(!cell(1).bold() && cell(1).bgcolor() == vt100::Color::Idx(4));
    assert!(cell(2).inverse() && cell(2).fgcolor() == vt100::Color::Rgb(1, 2, 3));
    assert!(vt.screen().hide_cursor());
}

/// Some terminals erase to their own background, others to the background that is set.
#[test]
fn blanks_of_a_painted_background_are_erased_where_the_terminal_keeps_it() {
    let mut bytes = Vec::new();
    for erases in [false, true] {
        let mut vt = terminal(4, 40);
        let mut e = Encoder { erases, ..Encoder::default() };
        let mut buf = Buffer::empty(Rect::new(0, 0, 40, 4));
        buf.set_style(buf.area, Style::new().bg(Color::Rgb(1, 2, 3)));
        buf.set_string(5, 1, "text", Style::new());
        bytes.push(screen(&mut e, &buf, &mut vt, None));
        shows(&vt, &buf);
        let painted = |x, y| vt.screen().cell(y, x).unwrap().bgcolor() == vt100::Color::Rgb(1, 2, 3);
        assert!((0..4).all(|y| (0..40).all(|x| painted(x, y))), "erases: {erases}");
    }
    assert!(bytes[1] * 2 < bytes[0], "{bytes:?}");
}

#[test]
fn the_cursor_comes_back_to_its_place_in_few_bytes() {
    let mut vt = terminal(10, 40);
    let mut e = Encoder::default();
    let mut buf = Buffer::empty(Rect::new(0, 0, 40, 10));
    let rest = Position::new(2, 9);
    screen(&mut e, &buf, &mut vt, Some(rest));
    let mut bytes = Vec::new();
    for (n, word) in ["one", "two", "three", "red", "more", "yet", "last"].iter().enumerate() {
        let style = if n < 3 { Style::new() } else { Style::new().fg(Color::Red) };
        buf.set_string(0, n as u16, word, style);
        bytes.push(screen(&mut e, &buf, &mut vt, Some(rest)) - word.len());
        shows(&vt, &buf);
        assert_eq!(vt.screen().cursor_position(), (rest.y, rest.x), "{word}");
    }
    // Going there is three or four bytes, going back seven; saving is two more, coming back to what is saved two. Another
    // style takes five, and is saved once two frames have ended with it.
    assert_eq!(bytes, [12, 6, 6, 11, 18, 6, 6]);
    assert_eq!(vt.screen().cell(4, 0).unwrap().fgcolor(), vt100::Color::Idx(1));
    // Elsewhere it is saved anew.
    for (n, y) in [(0, 3), (1, 3), (2, 3)] {
        buf.set_string(20, n, "x", Style::new());
        screen(&mut e, &buf, &mut vt, Some(Position::new(5, y)));
        assert_eq!(vt.screen().cursor_position(), (y, 5));
        shows(&vt, &buf);
    }
}

#[test]
fn the_next_row_is_reached_by_its_beginning_also_from_behind_the_last_column() {
    let mut vt = terminal(6, 30);
    let mut e = Encoder::default();
    let mut buf = Buffer::empty(Rect::new(0, 0, 30, 6));
    screen(&mut e, &buf, &mut vt, None);
    for y in 1..6 {
        buf.set_string(0, y, "│", Style::new());
        buf.set_string(3, y, "wide 漢", Style::new());
        buf.set_string(29, y, "│", Style::new());
    }
    let bytes = screen(&mut e, &buf, &mut vt, None);
    shows(&vt, &buf);
    // To the first row and in each one to the last column, where the wide one leaves the column unsure; two bytes
    // from row to row.
    assert_eq!(bytes, 4 + 5 * (3 + 2 + 8 + 5 + 3) + 4 * 2);
    // Behind a symbol of which terminals disagree how wide it is, columns are not counted on.
    buf.set_string(27, 1, "◐x", Style::new());
    buf.set_string(0, 2, "x", Style::new());
    screen(&mut e, &buf, &mut vt, None);
    shows(&vt, &buf);
}

#[test]
fn an_unchanged_frame_is_no_bytes_and_a_typed_key_is_few() {
    let mut vt = terminal(40, 120);
    let mut e = Encoder::default();
    let mut buf = Buffer::empty(Rect::new(0, 0, 120, 40));
    screen(&mut e, &buf, &mut vt, Some(Position::new(1, 38)));
    assert_eq!(screen(&mut e, &buf, &mut vt, Some(Position::new(1, 38))), 0);
    buf.set_string(1, 38, "k", Style::new());
    assert_eq!(screen(&mut e, &buf, &mut vt, Some(Position::new(2, 38))), 1, "the cursor is there already");
}

/// A conversation with a frame, a header, a panel beside it and a footer; `first`: its first line.
fn conversation(first: usize, ticks: usize) -> Buffer {
    let mut buf = Buffer::empty(Rect::new(0, 0, 100, 30));
    buf.set_string(0, 0, format!("header {ticks}"), Style::new().bg(Color::Blue));
    for y in 1..26_u16 {
        let line = first + usize::from(y);
        buf.set_string(0, y, "│", Style::new());
        let colour = Style::new().fg(Color::Indexed((line % 7) as u8));
        buf.set_string(1, y, format!("{line} 漢字 {}", "words of a line ".repeat(1 + line % 4)), colour);
        buf.set_string(75, y, if y % 9 == 0 { "├─ panel ─" } else { "│" }, Style::new());
    }
    buf.set_string(0, 27, "composer", Style::new());
    buf.set_string(0, 29, format!("{ticks} s"), Style::new());
    buf
}

#[test]
fn moved_rows_are_moved_by_the_terminal() {
    let mut vt = terminal(30, 100);
    let mut e = Encoder::default();
    let whole = screen(&mut e, &conversation(50, 0), &mut vt, None);
    // On by one and more, back, a jump too far, nothing.
    for (tick, first) in [51, 52, 55, 67, 66, 60, 500, 500, 501].into_iter().enumerate() {
        let buf = conversation(first, tick + 1);
        let bytes = screen(&mut e, &buf, &mut vt, Some(Position::new(3, 27)));
        shows(&vt, &buf);
        if first == 51 {
            assert!(bytes < whole / 8, "{bytes} of {whole}");
        }
    }
}

#[test]
fn u1_no_control_gets_through_whatever_a_cell_holds() {
    let mut e = Encoder::default();
    let mut buf = Buffer::empty(Rect::new(0, 0, 40, 1));
    for (i, s) in ["\x1b", "\x07", "\x7f", "\u{9b}", "\r", "a\x1b[2J", "\0"].iter().enumerate() {
        buf.cell_mut((i as u16 * 2, 0)).unwrap().set_symbol(s);
    }
    let mut out = String::new();
    e.frame(&buf, &[buf.area], None, &mut out);
    grammar(&out);
    assert_eq!(out.matches('?').count(), 7 + out.matches("[?").count());
}

/// Every control sequence in `out` is one of ours.
pub(crate) fn grammar(out: &str) {
    let mut rest = out;
    while let Some(i) = rest.find(|c: char| c.is_control()) {
        let tail = &rest[i..];
        if let Some(more) = ["\r", "\n", "\x1b7", "\x1b8"].iter().find_map(|known| tail.strip_prefix(known)) {
            rest = more;
            continue;
        }
        let body = tail.strip_prefix("\x1b[").unwrap_or_else(|| panic!("foreign control: {tail:.20?}"));
        let end = body.find(|c: char| ('\x40'..='\x7e').contains(&c)).expect("a whole sequence");
        let (params, last) = (&body[..end], &body[end..=end]);
        let known = match last {
            "m" | "H" | "C" => params.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "B" | "G" | "K" | "M" | "L" | "r" | "s" | "X" => {
                params.chars().all(|c| c.is_ascii_digit() || c == ';')
            }
            "J" => params == "2",
            "h" | "l" => ["?2026", "?25", "?69"].contains(&params),
            _ => false,
        };
        assert!(known, "not in the allow list: ESC [ {params}{last}");
        rest = &body[end + 1..];
    }
}

/// Numbers in no order that a person would see.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        // Constants of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn style(&mut self) -> Style {
        const COLOURS: [Color; 5] =
            [Color::Reset, Color::Rgb(215, 219, 228), Color::Rgb(20, 22, 27), Color::Red, Color::Indexed(77)];
        const MODIFIERS: [Modifier; 6] = [
            Modifier::empty(),
            Modifier::BOLD,
            Modifier::DIM,
            Modifier::ITALIC.union(Modifier::BOLD),
            Modifier::UNDERLINED,
            Modifier::REVERSED,
        ];
        let style = Style::new().fg(COLOURS[self.below(5)]).bg(COLOURS[self.below(5)]);
        // In place of those that stand there: the emulator knows no text that is both bold and dim.
        style.remove_modifier(Modifier::all()).add_modifier(MODIFIERS[self.below(12).min(5)])
    }

    fn area(&mut self, of: Rect) -> Rect {
        let (x, y) = (self.below(of.width.into()) as u16, self.below(of.height.into()) as u16);
        let (width, height) = (1 + self.below(of.width.into()) as u16, 1 + self.below(5) as u16);
        Rect { x, y, width, height }.intersection(of)
    }

    /// Changes a part of a frame: text, a ground, a look, or rows that move.
    fn change(&mut self, buf: &mut Buffer) {
        let area = self.area(buf.area);
        match self.below(5) {
            0 => buf.set_style(area, Style::new().bg(self.style().bg.unwrap())),
            1 => buf.set_style(area, self.style()),
            2 => area.positions().for_each(|at| buf.cell_mut(at).unwrap().reset()),
            3 => {
                let by = 1 + self.below(4) as u16;
                for y in area.y..buf.area.bottom() - by {
                    for x in 0..buf.area.width {
                        let cell = buf.cell((x, y + by)).unwrap().clone();
                        *buf.cell_mut((x, y)).unwrap() = cell;
                    }
                }
            }
            _ => {
                const PARTS: [&str; 9] =
                    ["word ", "x", "漢字", "◐", "──", "a\u{301}", "한", "    ", "two words"];
                let text: String = (0..1 + self.below(6)).map(|_| PARTS[self.below(9)]).collect();
                buf.set_string(area.x, area.y, text, self.style());
            }
        }
    }
}

#[test]
fn whatever_changes_the_terminal_shows_the_frame() {
    for (seed, erases) in (0..40).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut numbers = Numbers(seed);
        let (mut vt, mut e) = (terminal(14, 44), Encoder { erases, ..Encoder::default() });
        let mut buf = Buffer::empty(Rect::new(0, 0, 44, 14));
        buf.set_style(buf.area, Style::new().fg(Color::Rgb(215, 219, 228)).bg(Color::Rgb(20, 22, 27)));
        let mut rest = Position::new(5, 12);
        for _ in 0..60 {
            (0..1 + numbers.below(4)).for_each(|_| numbers.change(&mut buf));
            if numbers.below(8) == 0 {
                rest = Position::new(numbers.below(44) as u16, numbers.below(14) as u16);
            }
            screen(&mut e, &buf, &mut vt, Some(rest));
            shows(&vt, &buf);
            assert_eq!(vt.screen().cursor_position(), (rest.y, rest.x));
            assert_eq!(screen(&mut e, &buf, &mut vt, Some(rest)), 0, "nothing is left to write");
        }
    }
}

#[test]
fn many_looks_are_written_one_after_the_other_where_that_is_shorter() {
    let mut vt = terminal(12, 60);
    let mut e = Encoder { erases: true, ..Encoder::default() };
    let mut buf = Buffer::empty(Rect::new(0, 0, 60, 12));
    screen(&mut e, &buf, &mut vt, None);
    let colours = [Color::Rgb(185, 167, 236), Color::Rgb(148, 195, 243), Color::Rgb(169, 207, 157)];
    for y in 0..8 {
        for (n, colour) in colours.iter().enumerate() {
            buf.set_string(2 + 12 * n as u16, y, "word", Style::new().fg(*colour));
        }
    }
    let mut out = String::new();
    e.frame(&buf, &[buf.area], None, &mut out);
    vt.process(out.as_bytes());
    shows(&vt, &buf);
    assert_eq!(out.matches("38;2;").count(), colours.len(), "each colour is set once: {out:?}");
}

#[test]
fn ideographs_are_written_without_a_move_before_each() {
    let mut vt = terminal(3, 60);
    let mut e = Encoder::default();
    let mut buf = Buffer::empty(Rect::new(0, 0, 60, 3));
    screen(&mut e, &buf, &mut vt, None);
    let text = "服务器请求，한국어かなカナ。";
    buf.set_string(0, 1, text, Style::new());
    assert_eq!(screen(&mut e, &buf, &mut vt, None), text.len() + "\x1b[2H".len());
    shows(&vt, &buf);
}
