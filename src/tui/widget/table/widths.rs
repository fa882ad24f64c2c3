//! How wide the cells of each column are, and which columns fit.

use super::fit::Place;
use super::{Cell, Column, Fit, GAP, Kind};
use crate::text::width;

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
