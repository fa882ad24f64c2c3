//! `tiller costs`: tokens and money, by model, agent or day.

use tiller_protocol::command::CostBy;
use tiller_protocol::{Cost, Notice};

use super::sessions::one_line;
use super::{Exit, json_line, say};
use crate::cli::By;
use crate::wire::Setup;

/// Prints the table and its sum. What has no known price is said, not counted as free.
pub(super) fn run(setup: &Setup, by: By, json: bool) -> Result<Exit, Notice> {
    let store = setup.open_store()?;
    let by = match by {
        By::Agent => CostBy::Agent,
        By::Model => CostBy::Model,
        By::Day => CostBy::Day,
    };
    let rows = store.costs(None, by).map_err(|e| e.notice())?;
    if json {
        return say(&rows.iter().map(json_line).collect::<String>());
    }
    if rows.is_empty() {
        return say("No model has been called yet.\n");
    }
    let mut text = format!("{:40} {:>6} {:>12} {:>10} {:>10}\n", "", "calls", "in", "out", "cost");
    let (mut total, mut unpriced) = (Cost::default(), 0);
    for r in &rows {
        let none = if r.key.starts_with("demo/") { "-" } else { "unknown" };
        let cost = r.cost.map_or(none.into(), |c| format!("${:.4}", c.usd()));
        text.push_str(&format!(
            "{:40} {:>6} {:>12} {:>10} {:>10}\n",
            one_line(&r.key),
            r.calls,
            r.usage.context(),
            r.usage.output,
            cost
        ));
        total = total.plus(r.cost.unwrap_or_default());
        // The built-in demo model costs nothing.
        unpriced += if r.key.starts_with("demo/") { 0 } else { r.unpriced };
    }
    text.push_str(&format!("{:40} {:>41}\n", "in all", format!("${:.4}", total.usd())));
    if unpriced > 0 {
        text.push_str(&format!("{unpriced} call(s) had no known price and are not in the sum. Add prices under [providers.NAME.models].\n"));
    }
    say(&text)
}
