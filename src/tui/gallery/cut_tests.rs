//! No text is cut while its row has room.

use super::*;
use crate::widget::excerpt::WORD;

/// Blank columns that may follow a text that was cut: the gap between two columns, or the padding of a pane, and the half
/// of a wide character that found no room.
const GAP: usize = 3;

/// Themes with areas of their own, and with the terminal's own ground, where lines separate the areas; and ASCII signs.
const FORMS: [(&str, bool); 3] = [("tiller-dark", false), ("ansi", false), ("tiller-dark", true)];

/// Every scene at a size in every form, with where it is from.
fn scenes(size: (u16, u16), mut take: impl FnMut(&str, &Buffer)) {
    for (theme, ascii) in FORMS {
        let look = Look::named(theme).expect("a shipped theme");
        for scene in SCENES {
            let settings: fn(&mut Ui) = if ascii { |ui| ui.ascii = true } else { |_| {} };
            let mut stage = play_with(scene, size, &look, settings).expect(scene.name);
            stage.coloured();
            let form = if ascii { "ascii" } else { theme };
            take(&format!("{} in {form} at {}x{}", scene.name, size.0, size.1), &stage.picture().cells);
        }
    }
}

/// The texts that were cut although more than `gap` blank columns of the same pane follow them, as `row: text`. A pane
/// ends where another background or another sign begins.
fn cut_beside_room(cells: &Buffer, gap: usize) -> Vec<String> {
    let area = cells.area;
    let mut found = Vec::new();
    for y in area.top()..area.bottom() {
        let at = |x: u16| cells.cell((x, y)).filter(|_| x < area.right());
        let is = |x: u16, symbol: &str| at(x).is_some_and(|c| c.symbol() == symbol);
        // In ASCII the mark is two dots; three are no mark.
        let dots = |x: u16| is(x, ".") && is(x + 1, ".") && !is(x + 2, ".") && (x == 0 || !is(x - 1, "."));
        for x in area.left()..area.right() {
            let Some(mark) = at(x).filter(|c| c.symbol() == "…" || dots(x)) else { continue };
            // Of a path the end follows the mark.
            let end = (x + 1..area.right()).find(|x| is(*x, " ")).unwrap_or(area.right());
            let ground = |x: &u16| at(*x).is_some_and(|c| c.symbol() == " " && c.bg == mark.bg);
            let room = (end..area.right()).take_while(ground).count();
            if room > gap {
                let row: String = (area.left()..area.right()).filter_map(&at).map(|c| c.symbol()).collect();
                found.push(format!("{y:2} {room:3} blank: {}", row.trim_end()));
            }
        }
    }
    found
}

#[test]
fn a_cut_beside_room_is_found_and_one_at_the_end_is_not() {
    let row = |text: &str| cut_beside_room(&Buffer::with_lines([text]), GAP).len();
    assert_eq!(row("one that was cu…          7"), 1);
    assert_eq!(row("src/…/file.rs             7"), 1);
    assert_eq!(row("one that was cut…  7       "), 0);
    assert_eq!(row("src/…/file.rs"), 0);
    assert_eq!(row("whole                     7"), 0);
    assert_eq!(row("two cu…  and two cu…       "), 1);
    assert_eq!(row("one that was cu..          7"), 1);
    assert_eq!(row("Loading...                 7"), 0);
}

#[test]
fn a_text_that_finds_no_room_is_noted() {
    use crate::text::paint::{self, CLIPPED, PaintTarget};
    let mut cells = Buffer::empty(ratatui::layout::Rect::new(0, 0, 20, 1));
    let place = PaintTarget { x: 0, y: 0, columns: 8 };
    for text in ["whole", "blank at the end?".split_at(8).0, "padded      "] {
        paint::text(&mut cells, place, text, ratatui::style::Style::new());
    }
    assert_eq!(CLIPPED.take(), Vec::<String>::new());
    for text in ["too long for it", "zu groß für es"] {
        paint::text(&mut cells, place, text, ratatui::style::Style::new());
    }
    assert_eq!(CLIPPED.take(), ["too long for it", "zu groß für es"]);
}

/// A text that is cut says so, by the mark of a text that was shortened; and nothing is cut while its row has room.
#[test]
fn nothing_is_cut_without_a_mark_or_beside_room() {
    let check = |size: (u16, u16)| -> Vec<String> {
        let mut found = Vec::new();
        scenes(size, |from, cells| {
            // What is noted is noted for the thread that draws.
            let unmarked = crate::text::paint::CLIPPED.take();
            found.extend(unmarked.iter().map(|text| format!("without a mark, {from}: {text}")));
            // The rows of a search keep words whole.
            let gap = if from.starts_with("search ") { WORD } else { GAP };
            found.extend(cut_beside_room(cells, gap).iter().map(|row| format!("beside room, {from}: {row}")));
        });
        found
    };
    let check = &check;
    let mut found: Vec<String> = std::thread::scope(|threads| {
        let all: Vec<_> = SIZES.into_iter().map(|size| threads.spawn(move || check(size))).collect();
        all.into_iter().flat_map(|t| t.join().expect("a size was drawn")).collect()
    });
    found.dedup();
    assert!(found.is_empty(), "cut:\n{}", found.join("\n"));
}
