use super::*;
use ratatui::style::Style;

fn terminal(rows: u16, columns: u16) -> vt100::Parser {
    let size = |n| std::num::NonZeroU16::new(n).unwrap();
    vt100::Parser::new(size(rows), size(columns), 0)
}

fn screen(encoder: &mut Encoder, buf: &Buffer, vt: &mut vt100::Parser, cursor: Option<Position>) -> usize {
    let mut out = String::new();
    encoder.frame(buf, &[buf.area], cursor, &mut out);
    vt.process(out.as_bytes());
    out.len()
}

fn same(vt: &vt100::Parser, buf: &Buffer) {
    for y in 0..buf.area.height {
        let mut x = 0;
        while x < buf.area.width {
            let want = buf.cell((x, y)).unwrap().symbol();
            let got = vt.screen().cell(y, x).unwrap();
            let text = got.contents().to_string();
            assert_eq!(if text.is_empty() { " " } else { &text }, want, "{x},{y}");
            x += (want.width() as u16).max(1);
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
        same(&vt, &buf);
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

/// Some terminals erase to their own background, others to the one that is set.
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
        same(&vt, &buf);
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
        same(&vt, &buf);
        assert_eq!(vt.screen().cursor_position(), (rest.y, rest.x), "{word}");
    }
    // Going there is six bytes, going back seven; saving is two more, coming back to what is saved two. Another style
    // takes five; once two frames began with it, it is saved with the cursor, which takes seven more.
    assert_eq!(bytes, [15, 8, 8, 13, 20, 8, 8]);
    assert_eq!(vt.screen().cell(4, 0).unwrap().fgcolor(), vt100::Color::Idx(1));
    // Elsewhere it is saved anew.
    for (n, y) in [(0, 3), (1, 3), (2, 3)] {
        buf.set_string(20, n, "x", Style::new());
        screen(&mut e, &buf, &mut vt, Some(Position::new(5, y)));
        assert_eq!(vt.screen().cursor_position(), (y, 5));
        same(&vt, &buf);
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
    same(&vt, &buf);
    // To the first row and in each one to the last column, where the wide one leaves the column unsure; two bytes
    // from row to row.
    assert_eq!(bytes, 6 + 5 * (3 + 2 + 8 + 7 + 3) + 4 * 2);
    // What is not surely one column wide is no place to count from.
    buf.set_string(28, 1, "漢", Style::new());
    buf.set_string(0, 2, "x", Style::new());
    screen(&mut e, &buf, &mut vt, None);
    same(&vt, &buf);
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
        same(&vt, &buf);
        for (y, x) in [(0, 3), (9, 10), (25, 20), (28, 0)] {
            let (got, want) = (vt.screen().cell(y, x).unwrap(), buf.cell((x, y)).unwrap());
            let colour = |c| match c {
                Color::Indexed(n) => vt100::Color::Idx(n),
                Color::Blue => vt100::Color::Idx(4),
                _ => vt100::Color::Default,
            };
            assert_eq!((got.fgcolor(), got.bgcolor()), (colour(want.fg), colour(want.bg)), "{x},{y}");
        }
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

/// Every control in `out` is one that we make.
pub(crate) fn grammar(out: &str) {
    let mut rest = out;
    while let Some(i) = rest.find(|c: char| c.is_control()) {
        let tail = &rest[i..];
        if let Some(more) = ["\r\n", "\x1b7", "\x1b8"].iter().find_map(|known| tail.strip_prefix(known)) {
            rest = more;
            continue;
        }
        let body = tail.strip_prefix("\x1b[").unwrap_or_else(|| panic!("foreign control: {tail:.20?}"));
        let end = body.find(|c: char| ('\x40'..='\x7e').contains(&c)).expect("a whole sequence");
        let (params, last) = (&body[..end], &body[end..=end]);
        let known = match last {
            "m" | "H" | "C" => params.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "M" | "L" | "r" | "s" | "X" => params.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "J" => params == "2",
            "h" | "l" => ["?2026", "?25", "?69"].contains(&params),
            _ => false,
        };
        assert!(known, "not in the allow list: ESC [ {params}{last}");
        rest = &body[end + 1..];
    }
}
