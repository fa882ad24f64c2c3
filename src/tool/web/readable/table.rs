//! Tables of data as Markdown tables; those that only place things as their parts.

use dom_query::NodeRef;

use super::markdown::Writer;
use super::{attribute, is};

/// Columns that are shown.
const COLUMNS: usize = 64;

/// Writes a table.
pub(super) fn write(writer: &mut Writer<'_>, table: &NodeRef<'_>) {
    let (mut rows, mut captions) = (Vec::new(), Vec::new());
    for child in table.children_it(false) {
        if is(&child, &["thead", "tbody", "tfoot"]) {
            rows.extend(child.children_it(false).filter(|row| is(row, &["tr"])));
        } else if is(&child, &["tr"]) {
            rows.push(child);
        } else if is(&child, &["caption"]) {
            captions.push(child);
        }
    }
    if !is_data(table, &rows.iter().map(cells).collect::<Vec<_>>()) {
        writer.block(true, |w| {
            for caption in &captions {
                w.element(caption);
            }
            for cell in rows.iter().flat_map(cells) {
                w.element(&cell);
            }
        });
        return;
    }
    writer.block(true, |w| {
        for caption in &captions {
            w.element(caption);
        }
        let mut carried = Vec::new();
        let rows: Vec<Vec<String>> = rows.iter().map(|row| texts(w, &cells(row), &mut carried)).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0).min(COLUMNS);
        for (at, row) in rows.iter().filter(|row| !row.is_empty()).enumerate() {
            let mut line = String::from("|");
            for column in 0..columns {
                line.push_str(&format!(" {} |", row.get(column).map_or("", String::as_str)));
            }
            w.exact(&line);
            if at == 0 {
                w.exact(&format!("|{}", " --- |".repeat(columns)));
            }
        }
    });
}

/// The cells of a row.
fn cells<'a>(row: &NodeRef<'a>) -> Vec<NodeRef<'a>> {
    row.children_it(false).filter(|cell| is(cell, &["td", "th"])).collect()
}

/// The texts of a row's cells; where one spans columns or rows, its other places are empty. `carried`: the rows below that
/// the cell in each column still spans.
fn texts(writer: &mut Writer<'_>, cells: &[NodeRef<'_>], carried: &mut Vec<usize>) -> Vec<String> {
    let mut texts = Vec::new();
    let spans = |cell: &NodeRef<'_>, name: &str| {
        attribute(cell, name).parse::<usize>().unwrap_or(1).clamp(1, usize::from(u16::MAX))
    };
    let skip = |texts: &mut Vec<String>, carried: &mut Vec<usize>| {
        while let Some(rows) = carried.get_mut(texts.len()).filter(|rows| **rows > 0) {
            *rows -= 1;
            texts.push(String::new());
        }
    };
    for cell in cells {
        skip(&mut texts, carried);
        let columns = spans(cell, "colspan").min(COLUMNS.saturating_sub(texts.len()));
        if columns == 0 || !writer.spend(columns) {
            writer.left_cell();
            continue;
        }
        let from = texts.len();
        texts.push(writer.in_line(cell).replace('|', "\\|"));
        texts.resize(from + columns, String::new());
        carried.resize(carried.len().max(texts.len()), 0);
        carried[from..texts.len()].fill(spans(cell, "rowspan") - 1);
    }
    skip(&mut texts, carried);
    carried.iter_mut().skip(texts.len()).for_each(|rows| *rows = rows.saturating_sub(1));
    texts
}

/// True for a table of data: it has a heading, or rows of several cells without blocks in them.
fn is_data(table: &NodeRef<'_>, rows: &[Vec<NodeRef<'_>>]) -> bool {
    if matches!(attribute(table, "role").as_str(), "presentation" | "none") {
        return false;
    }
    let all = || rows.iter().flatten();
    let blocks = ["table", "pre", "ul", "ol", "h1", "h2", "h3", "blockquote", "form", "article"];
    let block = |cell: &NodeRef<'_>| cell.descendants_it().any(|inner| is(&inner, &blocks));
    if all().any(|cell| cell.descendants_it().any(|inner| is(&inner, &["table", "pre"]))) {
        return false;
    }
    if all().any(|cell| is(cell, &["th"])) {
        return true;
    }
    rows.iter().filter(|row| row.len() > 1).count() * 2 > rows.len() && !all().any(block)
}
