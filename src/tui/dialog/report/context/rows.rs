//! The rows of `/context`: one for each layer of the report, and those of tools, messages and sums.

use std::path::{Path, PathBuf};

use tiller_protocol::notice::capital;
use tiller_protocol::view::{ContextReport, LayerCost};

use crate::dialog::picker::Item;
use crate::view::words::grouped;
use crate::widget::table::{Cell, Column};

/// Cells of the gauge of a share.
const BAR: usize = 20;

/// The columns of a row.
pub(super) const COLUMNS: &[Column] = &[
    Column::text("Part").grows(),
    Column::text("").rank(1),
    Column::number("Share"),
    Column::number("Tokens"),
    Column::number("Budget").rank(2),
];

/// The content of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// A layer of the report.
    Layer(usize),
    /// A file of [`super::FILES`] that is not in the report: it does not exist yet, or was made since the session began.
    Missing(usize),
    Tools,
    Messages,
    /// Sums.
    Other,
}

/// The file of a layer; `None`: it is built in.
pub(super) fn file_of(layer: &LayerCost) -> Option<PathBuf> {
    let path = Path::new(&layer.source);
    path.is_absolute().then(|| path.to_owned())
}

fn file_name(layer: &LayerCost) -> Option<String> {
    file_of(layer)?.file_name().map(|n| n.to_string_lossy().into_owned())
}

/// The name of a layer with that of its file. The project's own memory has its folder with it, as in the memory browser.
fn title(layer: &LayerCost) -> String {
    let name = capital(&layer.name);
    let Some(file) = file_name(layer) else { return name };
    let of_project =
        file_of(layer).and_then(|path| Some(path.parent()?.ends_with(".tiller"))).unwrap_or(false);
    if of_project { format!("{name}: .tiller/{file}") } else { format!("{name}: {file}") }
}

/// The rows of a report: its layers first, in their order, then tools, messages and sums.
pub(super) fn of_report(r: &ContextReport) -> Vec<(Row, Item)> {
    let row = |name: String, n: u64, budget: Option<u64>, note: String| {
        let share = |w: u64| n as f64 * 100.0 / w.max(1) as f64;
        let percent = r.window.map_or(Cell::dim(""), |w| Cell::number(format!("{:.1}", share(w)), " %"));
        let bar = r.window.map_or(Cell::dim(""), |w| Cell::gauge(n, w, BAR));
        Item { more: note, ..Item::new("", name) }
            .cell(bar)
            .cell(percent)
            .cell(Cell::number(grouped(n), ""))
            .cell(budget.map_or(Cell::dim(""), |b| Cell::number(grouped(b), "")))
    };
    let layer = |(at, l): (usize, &LayerCost)| {
        let cut = if l.shortened { ", shortened to fit" } else { "" };
        (Row::Layer(at), row(title(l), l.tokens, Some(l.budget), format!("From {}{cut}", l.source)))
    };
    let mut rows: Vec<(Row, Item)> = r.layers.iter().enumerate().map(layer).collect();
    let plain = |kind, name: &str, n, note: String| (kind, row(capital(name), n, None, note));
    rows.push(plain(Row::Tools, "tools", r.tools, "Descriptions and schemas of the tools".into()));
    let messages = "The conversation since the last compaction".into();
    rows.push(plain(Row::Messages, "messages", r.messages, messages));
    let all = if r.exact { "total, counted by the provider" } else { "total, estimated" };
    let of = r.window.map_or("The model's context window is not known".into(), |w| {
        format!("The model's context window has {} tokens", grouped(w))
    });
    let (kind, sum) = plain(Row::Other, all, r.used, of.clone());
    rows.push((kind, sum.strong()));
    rows.extend(r.window.map(|w| plain(Row::Other, "free", w.saturating_sub(r.used), of)));
    rows
}
