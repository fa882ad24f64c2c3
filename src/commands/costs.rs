//! `tiller costs`: tokens and money, by model, agent or day.

use tiller_protocol::command::CostBy;
use tiller_protocol::view::CostRow;
use tiller_protocol::{Cost, ModelRef, Notice};

use crate::app::Setup;
use crate::commands::args::By;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

/// Prints the table and its sum. Calls without a known price are reported and not counted as free.
pub(super) fn run(setup: &Setup, by: By, json: bool) -> Result<Exit, Notice> {
    let store = crate::commands::opened(setup)?;
    let by = match by {
        By::Agent => CostBy::Agent,
        By::Model => CostBy::Model,
        By::Day => CostBy::Day,
    };
    let rows = store.costs().by(None, by).map_err(|e| e.notice())?;
    if json {
        return say(&rows.iter().map(row_json).collect::<String>());
    }
    if rows.is_empty() {
        return say("No model has been called yet.\n");
    }
    let mut text = format!("{:40} {:>6} {:>12} {:>10} {:>10}\n", "", "calls", "in", "out", "cost");
    let (mut total, mut unpriced, mut estimated) = (Cost::default(), 0, 0);
    for r in &rows {
        // The built-in demo model costs nothing.
        let demo = matches!(by, CostBy::Model) && ModelRef(r.key.clone()).is_demo();
        let none = if demo { "-" } else { "unknown" };
        let cost = r.cost.map_or(none.into(), |c| format!("${:.4}", c.usd()));
        text.push_str(&format!(
            "{:40} {:>6} {:>12} {:>10} {:>10}\n",
            one_line(&r.key),
            r.calls,
            r.usage.context(),
            r.usage.output,
            cost
        ));
        estimated += r.estimated;
        total = total.plus(r.cost.unwrap_or_default());
        unpriced += if demo { 0 } else { r.unpriced };
    }
    text.push_str(&format!("{:40} {:>41}\n", "total", format!("${:.4}", total.usd())));
    if unpriced > 0 {
        text.push_str(&format!(
            "{unpriced} call(s) had no known price and are not in the total. Add prices under \
            [providers.NAME.models].\n"
        ));
    }
    if estimated > 0 {
        text.push_str(&format!(
            "The tokens of {estimated} call(s) are estimated: the server reported none, or the \
                reply was cut off.\n"
        ));
    }
    say(&text)
}

/// A row for scripts: `cost` in millionths of a dollar, `cost_usd` in dollars, both null when no price is known.
fn row_json(row: &CostRow) -> String {
    let mut line = serde_json::to_value(row).unwrap_or_default();
    line["cost_usd"] = row.cost.map(Cost::usd).into();
    json_line(&line)
}
