//! A table of things at work: a sign or lines of a graph, the name, the state, and figures in columns of their own. The
//! columns have names where there is room; without room the state gives way, then figure by figure.

use super::draw;
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;

/// Columns from which the state and the names of the columns are shown.
pub(crate) const WIDE: usize = 60;

/// Columns that the state keeps while a figure is taken in: of low rank, and of high rank.
const STATE: [usize; 2] = [18, 34];
/// Ranks from which a figure leaves the state more room.
const EXTRA: u8 = 6;

/// A column of figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FigureColumn {
    pub(crate) title: &'static str,
    /// Words at the left; else a number at the right.
    pub(crate) words: bool,
    /// Columns with a high rank are left out first.
    pub(crate) rank: u8,
}

impl FigureColumn {
    pub(crate) const fn words(title: &'static str, rank: u8) -> Self {
        Self { title, words: true, rank }
    }

    pub(crate) const fn number(title: &'static str, rank: u8) -> Self {
        Self { title, words: false, rank }
    }
}

/// The names of the columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnNames {
    pub(crate) name: &'static str,
    /// Columns before the name: of signs, or of a graph.
    pub(crate) lead: usize,
    pub(crate) state: &'static str,
    pub(crate) figures: &'static [FigureColumn],
}

/// One row before it is drawn.
#[derive(Clone, Debug)]
pub(crate) struct ActivityRow {
    /// Clean text before the name.
    pub(crate) lead: Vec<(String, Look)>,
    pub(crate) name: String,
    pub(crate) look: Look,
    /// State and current activity in pieces.
    pub(crate) state: Vec<(String, Role)>,
    /// In the order of the columns; empty text: nothing to say.
    pub(crate) figures: Vec<(String, Role)>,
    /// A second row where the state has no column; empty: none.
    pub(crate) below: (String, Role),
}

impl ActivityRow {
    /// A row without state and figures.
    pub(crate) fn new(lead: Vec<(String, Look)>, name: String, columns: &[FigureColumn]) -> Self {
        Self {
            lead,
            name,
            look: Look::of(Role::Text),
            state: Vec::new(),
            figures: vec![(String::new(), Role::Dim); columns.len()],
            below: (String::new(), Role::Dim),
        }
    }

    /// Sets a figure.
    pub(crate) fn figure(&mut self, at: usize, text: impl Into<String>, role: Role) {
        if let Some(figure) = self.figures.get_mut(at) {
            *figure = (text.into(), role);
        }
    }

    fn lead_width(&self) -> usize {
        self.lead.iter().map(|(text, _)| width(text)).sum()
    }

    fn name_width(&self) -> usize {
        self.lead_width() + width(&one_line(&self.name))
    }

    fn state_width(&self) -> usize {
        self.state.iter().map(|(text, _)| width(&one_line(text))).sum()
    }
}

fn one_line(text: &str) -> String {
    clean::plain(&text.replace('\n', " ")).into_owned()
}

/// Which columns are shown, and their widths.
pub(crate) struct ActivityTable {
    names: ColumnNames,
    columns: usize,
    /// Width of lead and name, and of the state; 0: it has no column.
    name: usize,
    state: usize,
    /// Number and width of each figure that is shown, from left to right.
    shown: Vec<(usize, usize)>,
    /// Blanks before each column.
    gap: usize,
}

impl ActivityTable {
    pub(crate) fn new<'a>(
        names: ColumnNames,
        rows: impl Iterator<Item = &'a ActivityRow>,
        columns: usize,
    ) -> Self {
        let (mut widths, mut name, mut state) = (vec![0; names.figures.len()], 0, 0);
        for row in rows {
            name = name.max(row.name_width());
            state = state.max(row.state_width());
            for (most, (text, _)) in widths.iter_mut().zip(&row.figures) {
                *most = width(text).max(*most);
            }
        }
        let wide = columns >= WIDE;
        let gap = if wide { 2 } else { 1 };
        let mut by_rank: Vec<usize> = (0..widths.len()).filter(|at| widths[*at] > 0).collect();
        by_rank.sort_by_key(|at| names.figures[*at].rank);
        let mut used = 0;
        let mut shown = Vec::new();
        for at in by_rank {
            let FigureColumn { title, rank, .. } = names.figures[at];
            let own = if wide { widths[at].max(title.len()) } else { widths[at] };
            let least = match (wide, rank) {
                (true, _) => name.min(columns * 2 / 5) + gap + state.min(STATE[usize::from(rank >= EXTRA)]),
                // The first figure stays beside a long name, the others do not.
                (false, 0) => name.min(columns / 2),
                (false, _) => name,
            };
            if least + used + gap + own <= columns {
                used += gap + own;
                shown.push((at, own));
            }
        }
        shown.sort_unstable();
        let rest = columns.saturating_sub(used);
        let (name, state) = match wide {
            false => (rest, 0),
            true if name + gap + state <= rest => (name, rest - name - gap),
            true => {
                let name = name.min((columns * 2 / 5).max(rest.saturating_sub(gap + state)));
                (name, rest.saturating_sub(name + gap))
            }
        };
        Self { names, columns, name, state, shown, gap }
    }

    /// The names of the columns.
    pub(crate) fn head(&self) -> Option<Line> {
        if self.columns < WIDE {
            return None;
        }
        let dim = Look::of(Role::Dim);
        let mut line = Line::new(Wrap::Cut);
        line.pad_to(self.names.lead, dim);
        line.push_strict(self.names.name, dim);
        line.pad_to(self.name + self.gap, dim);
        line.push_strict(self.names.state, dim);
        line.pad_to(self.name + self.gap + self.state, dim);
        for (at, own) in &self.shown {
            let FigureColumn { title, words, .. } = self.names.figures[*at];
            line.push_strict(&" ".repeat(self.gap), dim);
            push_aligned(&mut line, title, *own, words, dim);
        }
        Some(line)
    }

    /// A row of it. The columns that it leaves empty belong to the text before them.
    pub(crate) fn row(&self, row: &ActivityRow) -> Line {
        let text = Look::of(Role::Text);
        let mut line = Line::new(if row.below.0.is_empty() { Wrap::Cut } else { Wrap::Hard });
        row.lead.iter().for_each(|(part, look)| line.push_strict(part, *look));
        let lead = width(line.text());
        let figures = self.figures(row);
        let end = figures.first().map_or(self.columns, |(start, ..)| start.saturating_sub(self.gap));
        let state = self.state > 0 && row.state_width() > 0;
        let name = if state { self.name } else { end };
        line.push_strict(
            &shorten_end(&one_line(&row.name), name.saturating_sub(lead), draw::ascii()),
            row.look,
        );
        if state {
            line.pad_to(self.name + self.gap, text);
            let mut room = end.saturating_sub(self.name + self.gap);
            for (part, role) in &row.state {
                let part = shorten_end(&one_line(part), room, draw::ascii());
                room -= width(&part).min(room);
                line.push_strict(&part, Look::of(*role));
            }
        }
        for (start, at, figure, role) in figures {
            line.pad_to(start, text);
            if self.names.figures[at].words {
                line.push_strict(figure, Look::of(role));
            } else {
                push_figure(&mut line, figure, Look::of(role));
            }
        }
        line.pad_to(self.columns, text);
        if !row.below.0.is_empty() {
            line.pad_to(self.columns + lead, text);
            let below =
                shorten_end(&one_line(&row.below.0), self.columns.saturating_sub(lead), draw::ascii());
            line.push_strict(&below, Look::of(row.below.1));
        }
        line
    }
}

impl ActivityTable {
    /// The figures of a row that are shown and not empty, from left to right: the column of the screen where each begins,
    /// its number, its text.
    fn figures<'r>(&self, row: &'r ActivityRow) -> Vec<(usize, usize, &'r str, Role)> {
        let mut left = self.name + if self.state > 0 { self.gap + self.state } else { 0 };
        let mut all = Vec::with_capacity(self.shown.len());
        for (at, own) in &self.shown {
            left += self.gap;
            if let Some((text, role)) = row.figures.get(*at).filter(|(text, _)| !text.is_empty()) {
                let blank = if self.names.figures[*at].words { 0 } else { own.saturating_sub(width(text)) };
                all.push((left + blank, *at, text.as_str(), *role));
            }
            left += own;
        }
        all
    }
}

fn push_aligned(line: &mut Line, text: &str, own: usize, words: bool, look: Look) {
    let room = " ".repeat(own.saturating_sub(width(text)));
    if words {
        line.push_strict(text, look);
        line.push_strict(&room, look);
    } else {
        line.push_strict(&room, look);
        push_figure(line, text, look);
    }
}

/// A number in its look, and its unit dimmed: `64` and `k`.
pub(crate) fn push_figure(line: &mut Line, text: &str, look: Look) {
    let unit = |c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '<'));
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| unit(c) != unit(first)).unwrap_or(rest.len());
        let (part, more) = rest.split_at(end);
        line.push_strict(part, if unit(first) { look.role(Role::Dim) } else { look });
        rest = more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: [FigureColumn; 3] =
        [FigureColumn::words("Model", 2), FigureColumn::number("Time", 0), FigureColumn::number("Cost", 1)];
    const NAMES: ColumnNames = ColumnNames { name: "Agent", lead: 2, state: "State", figures: &FIGURES };

    fn made(name: &str, state: &str, figures: [&str; 3]) -> ActivityRow {
        let mut row = ActivityRow::new(vec![("* ".into(), Look::of(Role::Text))], name.into(), &FIGURES);
        row.state = vec![(state.into(), Role::Text)];
        figures.into_iter().enumerate().for_each(|(at, text)| row.figure(at, text, Role::Text));
        row
    }

    fn shown(rows: &[ActivityRow], columns: usize) -> Vec<String> {
        let table = ActivityTable::new(NAMES, rows.iter(), columns);
        let head = table.head().into_iter();
        head.chain(rows.iter().map(|r| table.row(r))).map(|l| l.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn numbers_end_below_one_another_and_give_way_by_rank() {
        let rows = [
            made("a1 date handling", "edit src/client.py", ["coder-small", "1m", "$0.12"]),
            made("a2", "queued", ["", "", "$10.00"]),
        ];
        let wide = shown(&rows, 66);
        assert_eq!(wide[0], "  Agent             State                Model        Time    Cost");
        assert_eq!(wide[1], "* a1 date handling  edit src/client.py   coder-small    1m   $0.12");
        assert_eq!(wide[2], "* a2                queued                                  $10.00");
        assert_eq!(shown(&rows, 30), ["* a1 date handling   1m  $0.12", "* a2                    $10.00"]);
        assert_eq!(shown(&rows, 24), ["* a1 date handling    1m", "* a2"]);
    }

    #[test]
    fn nothing_is_cut_while_the_row_has_room() {
        let rows = [made("a name that is rather long for its column", "edit x", ["m", "1m", "$1"])];
        let line = &shown(&rows, 100)[1];
        assert!(line.contains("rather long for its column") && line.contains("edit x"), "{line}");
        for columns in 1..120 {
            let table = ActivityTable::new(NAMES, rows.iter(), columns);
            assert!(width(table.row(&rows[0]).text()) <= columns.max(4), "{columns}");
        }
    }

    #[test]
    fn units_are_dim() {
        let mut line = Line::new(Wrap::Cut);
        push_figure(&mut line, "$1.67k", Look::of(Role::Text));
        let roles: Vec<Role> = line.runs().iter().map(|r| r.look.role).collect();
        assert_eq!(roles, [Role::Dim, Role::Text, Role::Dim]);
    }
}
