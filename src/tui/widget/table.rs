//! Rows in columns: text at the left, figures at the right with their units dimmed, each as wide as its widest cell.
//!
//! ```text
//! let widths = Widths::of(rows.iter().map(|r| r.cells.as_slice()));   // when the rows change
//! let fit = widths.fit(&COLUMNS, area.width);                         // when they are drawn
//! let line = fit.row(&cells);                                         // a `Line`, exactly as wide as the area
//! ```
//! Columns that do not fit are left out in all rows, those with the highest [`Column::rank`] first.

use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, shorten_middle, width};
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::excerpt::excerpt;

/// Columns between two columns.
const GAP: usize = 2;
/// Fewest columns for a text that is cut.
const LEAST: usize = 12;

/// What a column holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Text from the left, cut at its end.
    #[default]
    Text,
    /// A path from the left, cut in its middle.
    Path,
    /// Text that ends at the right, cut at its end.
    Right,
    /// A figure, which ends at the right and is never cut.
    Number,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Column {
    title: &'static str,
    kind: Kind,
    /// Left out in this order where there is no room, the highest first; 0: never.
    rank: u8,
    /// It gets the room that the others leave.
    grows: bool,
    /// Columns below which its text is not cut.
    least: usize,
}

impl Column {
    const fn of(title: &'static str, kind: Kind) -> Self {
        Self { title, kind, rank: 0, grows: false, least: LEAST }
    }

    /// Text that starts at the left.
    pub const fn text(title: &'static str) -> Self {
        Self::of(title, Kind::Text)
    }

    /// A path, which is cut in the middle.
    pub const fn path(title: &'static str) -> Self {
        Self::of(title, Kind::Path)
    }

    /// Text that ends at the right: keys, times.
    pub const fn right(title: &'static str) -> Self {
        Self::of(title, Kind::Right)
    }

    /// Keys, which end at the right and are never cut.
    pub const fn key(title: &'static str) -> Self {
        Self::of(title, Kind::Number)
    }

    /// Figures, aligned at the right. They are never cut.
    pub const fn number(title: &'static str) -> Self {
        Self::of(title, Kind::Number)
    }

    /// It has a title.
    pub fn is_named(&self) -> bool {
        !self.title.is_empty()
    }

    /// Left out where the room is short, before columns with a lower rank; 0: never.
    #[must_use]
    pub const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// Its text is not cut below this many columns: for names that are to be typed.
    #[must_use]
    pub const fn keeps(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// It gets the room that the others leave. Without such a column the first one gets it.
    #[must_use]
    pub const fn grows(self) -> Self {
        Self { grows: true, ..self }
    }
}

/// What stands in a column of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    /// Dimmed, behind the text: `k`, `ms`, `tokens`.
    pub unit: &'static str,
    pub role: Role,
    /// A part of the text that stays in sight where the text is cut: start and end in bytes.
    pub mark: Option<(usize, usize)>,
}

impl Default for Cell {
    fn default() -> Self {
        Self::new("", Role::Text)
    }
}

impl Cell {
    /// Text in this role. It may be foreign: it is drawn clean, on one line.
    pub fn new(text: impl Into<String>, role: Role) -> Self {
        Self { text: text.into(), unit: "", role, mark: None }
    }

    /// Less important text.
    pub fn dim(text: impl Into<String>) -> Self {
        Self::new(text, Role::Dim)
    }

    /// A figure with its unit.
    pub fn number(text: impl Into<String>, unit: &'static str) -> Self {
        Self { unit, ..Self::new(text, Role::Text) }
    }

    /// A number of tokens, calls or the like in at most three digits: `39` `k`.
    pub fn count(n: u64) -> Self {
        match n {
            0..1000 => Self::number(n.to_string(), ""),
            1000..9950 => Self::number(format!("{:.1}", n as f64 / 1000.0), "k"),
            9950..999_500 => Self::number(format!("{:.0}", n as f64 / 1000.0), "k"),
            999_500..9_950_000 => Self::number(format!("{:.1}", n as f64 / 1e6), "M"),
            _ => Self::number(format!("{:.0}", n as f64 / 1e6), "M"),
        }
    }

    /// The same cell in another role.
    #[must_use]
    pub fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// The same cell with a part of its text marked. What is cut is cut around it, between words.
    #[must_use]
    pub fn marked(self, mark: Option<(usize, usize)>) -> Self {
        Self { mark, ..self }
    }

    /// The text before the marked part, this, and the text behind it, clean; `None`: nothing is marked.
    fn pieces(&self) -> Option<(String, String, String)> {
        let (from, to) = self.mark?;
        let piece = |text: Option<&str>| text.map(draw::clean);
        Some((piece(self.text.get(..from))?, piece(self.text.get(from..to))?, piece(self.text.get(to..))?))
    }

    fn shown(&self) -> String {
        draw::clean(&self.text)
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.unit.is_empty()
    }
}

/// How wide the cells of each column are: the widest text, and the widest unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Widths(Vec<(usize, usize)>);

impl Widths {
    /// Of these rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a [Cell]>) -> Self {
        let mut all = Self::default();
        rows.into_iter().for_each(|row| all.add(row));
        all
    }

    /// Takes one more row.
    pub fn add(&mut self, row: &[Cell]) {
        self.add_from(0, row);
    }

    /// Takes the cells of one more row from a column on.
    pub fn add_from(&mut self, column: usize, cells: &[Cell]) {
        for (at, cell) in cells.iter().enumerate() {
            self.cell(column + at, width(&cell.shown()), cell.unit.len());
        }
    }

    /// Takes one more cell of a column.
    pub fn cell(&mut self, column: usize, text: usize, unit: usize) {
        if self.0.len() <= column {
            self.0.resize(column + 1, (0, 0));
        }
        let most = &mut self.0[column];
        *most = (most.0.max(text), most.1.max(unit));
    }

    /// Columns that all rows need side by side.
    pub fn natural(&self) -> usize {
        let wide = self.0.iter().filter(|(text, unit)| text + unit > 0).map(|(text, unit)| text + unit + GAP);
        wide.sum::<usize>().saturating_sub(GAP)
    }

    /// Chooses the columns that fit into `room`, and their widths. Columns that are empty in every row are left out.
    pub fn fit(&self, columns: &'static [Column], room: usize) -> Fit {
        let grows = columns.iter().position(|c| c.grows).unwrap_or(0);
        let mut shown: Vec<Place> = Vec::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            let (text, unit) = self.0.get(at).copied().unwrap_or_default();
            if text + unit > 0 || at == grows {
                let text = text.max(column.title.len().saturating_sub(unit));
                shown.push(Place { at, text, unit });
            }
        }
        let need = |shown: &[Place]| {
            let own = |p: &Place| if p.at == grows { p.wide().min(room / 2).min(24) } else { p.wide() };
            shown.iter().map(own).sum::<usize>() + GAP * shown.len().saturating_sub(1)
        };
        while need(&shown) > room {
            let Some(last) = shown.iter().map(|p| columns[p.at].rank).max().filter(|r| *r > 0) else { break };
            // Of equal ranks the right one goes first.
            let Some(at) = shown.iter().rposition(|p| columns[p.at].rank == last) else { break };
            shown.remove(at);
        }
        // What must stay and does not fit is cut, the widest text first; what grows is cut last.
        let whole = |shown: &[Place]| {
            shown.iter().map(Place::wide).sum::<usize>() + GAP * shown.len().saturating_sub(1)
        };
        while whole(&shown) > room {
            let text = |p: &&mut Place| {
                p.at != grows && columns[p.at].kind != Kind::Number && p.text > columns[p.at].least
            };
            let Some(widest) = shown.iter_mut().filter(text).max_by_key(|p| p.text) else { break };
            widest.text -= 1;
        }
        let others: usize = shown.iter().filter(|p| p.at != grows).map(Place::wide).sum();
        let gaps = GAP * shown.len().saturating_sub(1);
        for place in shown.iter_mut().filter(|p| p.at == grows) {
            place.text = room.saturating_sub(others + gaps + place.unit);
        }
        Fit { columns, shown, room }
    }
}

/// A column that is shown.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its number in the table.
    at: usize,
    /// Columns for the text, and for the unit.
    text: usize,
    unit: usize,
}

impl Place {
    fn wide(&self) -> usize {
        self.text + self.unit
    }
}

/// A cell of a row that has content, and the columns of its text.
struct Part<'a> {
    start: usize,
    end: usize,
    kind: Kind,
    text: String,
    cell: &'a Cell,
}

/// The columns of a table for one width.
#[derive(Clone, Debug)]
pub struct Fit {
    columns: &'static [Column],
    shown: Vec<Place>,
    room: usize,
}

impl Fit {
    /// The names of the columns; `None`: they have none.
    pub fn head(&self) -> Option<Line> {
        let titles: Vec<Cell> = self.columns.iter().map(|c| Cell::dim(c.title)).collect();
        let named = self.shown.iter().any(|p| !self.columns[p.at].title.is_empty());
        named.then(|| self.line(&titles, |place, _| Place { text: place.wide(), unit: 0, ..place }))
    }

    /// A row. Cells that are missing are blank.
    pub fn row(&self, cells: &[Cell]) -> Line {
        self.line(cells, |place, _| place)
    }

    fn line(&self, cells: &[Cell], place: impl Fn(Place, &Cell) -> Place) -> Line {
        let mut parts: Vec<Part<'_>> = Vec::with_capacity(self.shown.len());
        let mut from = 0;
        for shown in &self.shown {
            let here = from;
            from += shown.wide() + GAP;
            let Some(cell) = cells.get(shown.at).filter(|c| !c.is_empty()) else { continue };
            let place = place(*shown, cell);
            let kind = self.columns[shown.at].kind;
            let text = cell.shown();
            let right = matches!(kind, Kind::Right | Kind::Number);
            let wide = width(&text).min(place.text);
            let start = if right { here + place.text - wide } else { here };
            parts.push(Part { start, end: here + place.text, kind, text, cell });
        }
        make_way(&mut parts, self.room);
        // What a row leaves empty belongs to the text before it, and then to the text behind it.
        let starts: Vec<usize> = parts.iter().map(|p| p.start).collect();
        let mut line = Line::new(Wrap::Cut);
        for (n, part) in parts.iter().enumerate() {
            let next = starts.get(n + 1).map_or(self.room, |s| s.saturating_sub(GAP));
            let left = if n == 0 { 0 } else { width(line.text()) + GAP };
            if let (Kind::Text, Some((before, marked, behind))) = (part.kind, part.cell.pieces()) {
                let room = next.saturating_sub(part.start);
                let (before, marked, behind) = excerpt((&before, &marked, &behind), room, draw::ellipsis());
                line.pad_to(part.start, Look::of(Role::Text));
                line.push_strict(&before, Look::of(part.cell.role));
                line.push_strict(&marked, Look::of(Role::Match));
                line.push_strict(&behind, Look::of(part.cell.role));
                continue;
            }
            let text = match part.kind {
                Kind::Path => shorten_middle(&part.text, next.saturating_sub(part.start), draw::ascii()),
                Kind::Text => shorten_end(&part.text, next.saturating_sub(part.start), draw::ascii()),
                Kind::Right => shorten_end(&part.text, part.end.saturating_sub(left), draw::ascii()),
                Kind::Number => shorten_end(&part.text, part.end.saturating_sub(part.start), draw::ascii()),
            };
            let start = match part.kind {
                Kind::Right => part.end.saturating_sub(width(&text)),
                _ => part.start,
            };
            line.pad_to(start, Look::of(Role::Text));
            line.push_strict(&text, Look::of(part.cell.role));
            if !part.cell.unit.is_empty() {
                line.push_strict(part.cell.unit, Look::of(Role::Dim));
            }
        }
        line.pad_to(self.room, Look::of(Role::Text));
        line
    }

    /// The first column, and a sentence in place of all others: why the row cannot be chosen.
    pub fn row_with_reason(&self, first: &Cell, reason: &str) -> Line {
        let mut line = Line::new(Wrap::Cut);
        let reason = shorten_end(&draw::clean(reason), self.room.saturating_sub(LEAST + GAP), draw::ascii());
        let left = self.room.saturating_sub(width(&reason) + GAP);
        line.push_strict(&shorten_end(&first.shown(), left, draw::ascii()), Look::of(first.role));
        line.pad_to(self.room.saturating_sub(width(&reason)), Look::of(Role::Dim));
        line.push_strict(&reason, Look::of(Role::Dim));
        line
    }

    /// A text over the whole width, cut at its end.
    pub fn text(&self, text: &str, look: Look) -> Line {
        let mut line = Line::new(Wrap::Cut);
        line.push_strict(&shorten_end(&clean::plain(text), self.room, draw::ascii()), look);
        line
    }
}

/// Moves the texts that end at the right as far as the row has room, where the text before them would be cut.
fn make_way(parts: &mut [Part<'_>], room: usize) {
    for n in 1..parts.len() {
        let before = &parts[n - 1];
        let is_text = matches!(before.kind, Kind::Text | Kind::Path);
        let fits = before.start + width(&before.text) + GAP <= parts[n].start;
        if !is_text || fits || parts[n].kind != Kind::Right {
            continue;
        }
        let mut next = room + GAP;
        for part in parts[n..].iter_mut().rev() {
            let end = next.saturating_sub(GAP + part.cell.unit.len());
            if part.kind == Kind::Right && end > part.end {
                part.start += end - part.end;
                part.end = end;
            }
            next = part.start;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: &[Column] = &[
        Column::text("model"),
        Column::number("window").rank(2),
        Column::number("price").rank(1),
        Column::text("from").rank(3),
    ];

    fn rows() -> Vec<Vec<Cell>> {
        let row = |name: &str, window: u64, price: &str, from: &str| {
            vec![Cell::new(name, Role::Text), Cell::count(window), Cell::number(price, ""), Cell::dim(from)]
        };
        vec![row("acme/large-1", 200_000, "$3.00", "ACME_KEY"), row("local/tiny", 8_192, "$12.50", "server")]
    }

    fn drawn(room: usize) -> Vec<String> {
        let rows = rows();
        let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(COLUMNS, room);
        fit.head().into_iter().chain(rows.iter().map(|r| fit.row(r))).map(|l| l.text().to_owned()).collect()
    }

    #[test]
    fn a_name_that_is_to_be_typed_is_cut_last() {
        const NAMED: &[Column] = &[Column::text("skill").keeps(28), Column::text("for").grows()];
        const CUT: &[Column] = &[Column::text("skill"), Column::text("for").grows()];
        let row = [Cell::new("security-review-of-a-change", Role::Text), Cell::dim("x".repeat(90))];
        let drawn = |columns| Widths::of([&row[..]]).fit(columns, 60).row(&row).text().to_owned();
        assert!(drawn(NAMED).starts_with("security-review-of-a-change  xxx"), "{}", drawn(NAMED));
        assert!(!drawn(CUT).contains("security-review-of-a-change"), "{}", drawn(CUT));
        let long = [Cell::new("n".repeat(64), Role::Text), Cell::dim("x".repeat(90))];
        let fit = Widths::of([&long[..]]).fit(NAMED, 60);
        assert!(fit.row(&long).text().contains("xxx"), "the other column keeps room");
    }

    #[test]
    fn figures_end_in_one_column_and_units_stand_below_each_other() {
        assert_eq!(
            drawn(48),
            [
                "model                   window   price  from    ",
                "acme/large-1              200k   $3.00  ACME_KEY",
                "local/tiny                8.2k  $12.50  server  ",
            ]
        );
    }

    #[test]
    fn what_does_not_fit_goes_by_rank_in_all_rows() {
        assert_eq!(
            drawn(30),
            [
                "model           window   price",
                "acme/large-1      200k   $3.00",
                "local/tiny        8.2k  $12.50",
            ]
        );
        assert_eq!(drawn(21), ["model           price", "acme/large-1    $3.00", "local/tiny     $12.50"]);
        assert_eq!(drawn(9), ["model    ", "acme/lar…", "local/ti…"]);
    }

    #[test]
    fn a_long_text_beside_the_first_one_is_cut_before_it() {
        const TWO: &[Column] = &[Column::text("").grows(), Column::right(""), Column::key("")];
        let rows = [vec![
            Cell::new("what takes up the context", Role::Text),
            Cell::dim("a state of many words that goes on"),
            Cell::dim("Ctrl-X s"),
        ]];
        let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(TWO, 50);
        assert_eq!(fit.row(&rows[0]).text(), "what takes up the context  a state of m…  Ctrl-X s");
    }

    #[test]
    fn a_text_at_the_right_makes_way_for_one_that_would_be_cut() {
        const TWO: &[Column] = &[Column::text("").grows(), Column::right(""), Column::key("")];
        let row = |text: &str, key: &str| vec![Cell::new(text, Role::Text), Cell::dim("now"), Cell::dim(key)];
        let rows = [row("a text that is rather long", "a"), row("short", "Ctrl-X Ctrl-X")];
        let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(TWO, 36);
        assert_eq!(fit.row(&rows[0]).text(), "a text that is rather long    now  a");
        assert_eq!(fit.row(&rows[1]).text(), "short             now  Ctrl-X Ctrl-X");
    }

    #[test]
    fn what_a_row_leaves_empty_belongs_to_its_text() {
        const TWO: &[Column] = &[Column::text("").grows(), Column::right(""), Column::key("")];
        let row = |text: &str, state: &str, key: &str| {
            vec![Cell::new(text, Role::Text), Cell::dim(state), Cell::dim(key)]
        };
        let rows = [
            row("what ran, what allowed it and how it ended", "", "a"),
            row("short", "a state of many words that goes on", "b"),
            row("what ran, what allowed it and how it ended", "now", "Ctrl-X s"),
        ];
        let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(TWO, 52);
        let drawn: Vec<String> = rows.iter().map(|r| fit.row(r).text().to_owned()).collect();
        assert_eq!(
            drawn,
            [
                "what ran, what allowed it and how it ended         a",
                "short   a state of many words that goes on         b",
                "what ran, what allowed it and how it…  now  Ctrl-X s",
            ]
        );
    }

    #[test]
    fn a_column_without_content_takes_no_room() {
        let rows = [vec![Cell::new("a", Role::Text), Cell::dim(""), Cell::dim(""), Cell::dim("x")]];
        let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(COLUMNS, 20);
        assert_eq!(fit.row(&rows[0]).text(), "a               x   ");
    }

    #[test]
    fn a_reason_stands_at_the_right_and_what_is_foreign_is_drawn_clean() {
        let fit = Widths::of(rows().iter().map(Vec::as_slice)).fit(COLUMNS, 40);
        let line = fit.row_with_reason(&Cell::dim("acme/large-1"), "needs ACME_KEY\u{1b}");
        assert_eq!(line.text(), "acme/large-1          needs ACME_KEY\\x1b");
    }

    #[test]
    fn numbers_have_at_most_three_digits() {
        let shown = |n| {
            let cell = Cell::count(n);
            format!("{}{}", cell.text, cell.unit)
        };
        let numbers = [7, 999, 1000, 9_949, 9_950, 39_400, 999_499, 999_500, 12_345_678];
        assert_eq!(numbers.map(shown), ["7", "999", "1.0k", "9.9k", "10k", "39k", "999k", "1.0M", "12M"]);
    }

    proptest! {
        #[test]
        fn every_row_is_exactly_as_wide_as_the_table(
            names in prop::collection::vec("[a-z日é ]{0,30}", 1..5), room in 0..90usize, n in 0u64..9_999_999
        ) {
            let rows: Vec<Vec<Cell>> = names
                .iter()
                .map(|s| vec![Cell::new(s, Role::Text), Cell::count(n), Cell::dim(s), Cell::dim("x")])
                .collect();
            let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(COLUMNS, room);
            for row in &rows {
                let w = width(fit.row(row).text());
                prop_assert!(w == room || room < 24, "{} columns of {}: {:?}", w, room, fit.row(row).text());
            }
        }
    }
}
