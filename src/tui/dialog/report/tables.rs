//! Tables to look at: what it cost, what ran. Each is a picker, so that it can be
//! filtered and has the same keys as every list.

use tiller_protocol::command::{CostBy, Query};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::view::{AuditRow, CostRow};
use tiller_protocol::{CommandBody, Event, EventBody, Usage};

use crate::app::effect::{Effect, Task, Token};
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[
        Opener::new("cost.open", "cost", "Cost by model, agent and day", |_| Ok(Box::new(cost())))
            .menu(Menu::Go),
        Opener::new("audit.open", "audit", "What ran, what allowed it, how it ended", |_| {
            Ok(Box::new(audit()))
        })
        .menu(Menu::Go),
        Opener::new("ops.open", "operations", "Operations on the conversation, files and titles", |_| {
            Ok(Box::new(ops()))
        })
        .menu(Menu::Go),
    ],
    groups: &[("Reports", ACTIONS)],
    scopes: &[Scope::new("report", Some("picker"), "Reports", true).keys(&[("ctrl-t", "report.next")])],
    ..Dialog::NONE
};

/// Their actions, besides those of a picker.
pub const ACTIONS: &[ActionSpec] =
    &[ActionSpec::key_only("report.next", "group by", "Group by model, by agent, or by day")];

/// Rows of the audit, and operations, shown at most.
const AUDIT: u32 = 1000;
const OPS: u32 = 1000;

/// A table: its title, its query, and the rows of an answer.
struct Report {
    title: &'static str,
    ask: CommandBody,
    columns: &'static [Column],
    rows: fn(&ReplyEvent) -> Option<Vec<Item>>,
    items: Vec<Item>,
    loaded: bool,
}

const COST: &[Column] = &[
    Column::text("").grows(),
    Column::number("Calls").rank(1),
    Column::number("Input"),
    Column::number("Output"),
    Column::number("Cost"),
];
const AUDITED: &[Column] = &[
    Column::text("Call").grows(),
    Column::text("Tool").rank(3),
    Column::text("Decision").rank(1),
    Column::text("Result"),
    Column::right("Time").rank(2),
];
const DONE: &[Column] = &[
    Column::text("Operation").grows(),
    Column::text("Changed"),
    Column::text("State"),
    Column::right("Time").rank(1),
];

/// `/cost`.
pub(crate) fn cost() -> Picker {
    report(("Cost by model", COST), CommandBody::Query(Query::Costs { by: CostBy::Model }), cost_rows)
}

/// `/audit`.
pub(crate) fn audit() -> Picker {
    report(
        ("Audit: what ran", AUDITED),
        CommandBody::Query(Query::Audit { filter: String::new(), limit: AUDIT }),
        |r| match r {
            ReplyEvent::AuditReply { rows } => Some(rows.iter().map(audit_row).collect()),
            _ => None,
        },
    )
}

/// `/ops`.
pub(crate) fn ops() -> Picker {
    report(("Operations, newest first", DONE), CommandBody::Query(Query::Ops { limit: OPS }), |r| match r {
        ReplyEvent::OpsReply { ops, undo, redo } => {
            Some(crate::dialog::report::operations::rows(ops, *undo, *redo))
        }
        _ => None,
    })
}

fn report(
    (title, columns): (&'static str, &'static [Column]),
    ask: CommandBody,
    rows: fn(&ReplyEvent) -> Option<Vec<Item>>,
) -> Picker {
    Picker::new(Report { title, ask, columns, rows, items: Vec::new(), loaded: false })
}

fn cost_rows(r: &ReplyEvent) -> Option<Vec<Item>> {
    let ReplyEvent::CostsReply { rows, total } = r else { return None };
    let figures = |item: Item, row: &CostRow, cost: String| {
        let about = if row.estimated > 0 { "~" } else { "" };
        let tokens = |n: u64| {
            let cell = Cell::count(n);
            Cell::number(format!("{about}{}", cell.text), cell.unit)
        };
        Item { more: unsure(row.calls, row.estimated, row.unpriced), ..item }
            .cell(Cell::number(row.calls.to_string(), ""))
            .cell(tokens(row.usage.context()))
            .cell(tokens(row.usage.output))
            .cell(Cell::number(format!("{about}{cost}"), ""))
    };
    let cost = |c: Option<tiller_protocol::Cost>| c.map_or("unknown".into(), |c| format!("${:.4}", c.usd()));
    let mut items: Vec<Item> =
        rows.iter().map(|c| figures(Item::new(&c.key, &c.key), c, cost(c.cost))).collect();
    let mut sum = CostRow {
        key: String::new(),
        calls: 0,
        usage: Usage::default(),
        cost: *total,
        unpriced: 0,
        estimated: 0,
    };
    for row in rows {
        sum.calls += row.calls;
        sum.estimated += row.estimated;
        sum.unpriced += row.unpriced;
        sum.usage.add(&row.usage);
    }
    let name = match sum.unpriced {
        0 => "Total".to_owned(),
        n => format!("Total without {n} of unknown price"),
    };
    items.push(figures(Item::new("total", name), &sum, cost(*total)).strong());
    Some(items)
}

/// Returns what is estimated or missing in a number of calls; empty if nothing is.
fn unsure(calls: u64, estimated: u64, unpriced: u64) -> String {
    let mut out = Vec::new();
    if estimated > 0 {
        out.push(format!(
            "~ The tokens of {estimated} of {calls} calls are estimated: the server counted none, or the reply was cut."
        ));
    }
    if unpriced > 0 {
        out.push(format!(
            "{unpriced} of {calls} calls have no known price and are not in the sum. Add it under [providers.NAME.models]."
        ));
    }
    out.join("\n")
}

fn audit_row(r: &AuditRow) -> Item {
    let time = &r.time.to_rfc3339()[11..19];
    let decision = r.decision.label();
    Item {
        more: format!(
            "{}\n\n{} {} by {}\n{} after {:.1} s, agent {}",
            r.what, r.tool, decision, r.by, r.outcome, r.seconds, r.agent
        ),
        ..Item::new(&r.what, r.what.lines().next().unwrap_or(""))
    }
    .detail(r.tool.clone())
    .cell(Cell::new(decision, Role::Text))
    .detail(r.outcome.to_string())
    .detail(time)
}

impl Report {
    /// Returns what the list says when it is empty: what appears there.
    fn nothing(&self) -> &'static str {
        match self.ask {
            CommandBody::Query(Query::Audit { .. }) => "Tool calls appear here, with what allowed them",
            CommandBody::Query(Query::Ops { .. }) => {
                "Nothing to undo yet: branches, restores and new names appear here"
            }
            _ => "Costs appear here after the first request",
        }
    }
}

impl Source for Report {
    fn title(&self) -> String {
        self.title.into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "report",
            verb: "copy",
            columns: self.columns,
            table: Some(match self.ask {
                CommandBody::Query(Query::Costs { .. }) => 2,
                _ => 6,
            }),
            empty: if self.loaded { self.nothing() } else { "Loading..." },
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(self.ask.clone(), Token(1))]
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let items = (self.rows)(reply)?;
        self.loaded = true;
        self.items = items;
        Some(Vec::new())
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        self.items.clone()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        vec![Effect::Task(Task::Copy { text: format!("{}\n{}", item.text, item.more), what: "row" })]
    }

    fn act(&mut self, action: Action, _item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        let CommandBody::Query(Query::Costs { by }) = &mut self.ask else { return None };
        if action.0 != "report.next" {
            return None;
        }
        (*by, self.title) = match by {
            CostBy::Model => (CostBy::Agent, "Cost by agent"),
            CostBy::Agent => (CostBy::Day, "Cost by day"),
            CostBy::Day => (CostBy::Model, "Cost by model"),
        };
        Some(Outcome::Stay { effects: vec![Effect::ask(self.ask.clone(), Token(1))], reload: true })
    }

    fn hints(&self, _any: bool) -> Vec<Hint> {
        if matches!(self.ask, CommandBody::Query(Query::Costs { .. })) {
            vec![Hint::of("report.next")]
        } else {
            Vec::new()
        }
    }

    fn preview(&self, item: &Item) -> Option<String> {
        (!item.more.is_empty()).then(|| item.more.clone())
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::Cost;

    use super::*;

    /// A sum that is in part a guess, or lacks a part, says so.
    #[test]
    fn p15_costs_that_are_estimated_or_incomplete_are_marked() {
        let row = |key: &str, estimated, unpriced| CostRow {
            key: key.into(),
            calls: 4,
            usage: Usage { input: 1200, output: 30, ..Usage::default() },
            cost: Some(Cost(2_500_000)),
            unpriced,
            estimated,
        };
        let items = |rows: Vec<CostRow>| {
            cost_rows(&ReplyEvent::CostsReply { rows, total: Some(Cost(5_000_000)) }).unwrap()
        };
        let exact = items(vec![row("a", 0, 0), row("b", 0, 0)]);
        assert!(exact.iter().all(|i| !i.figures().contains('~') && i.more.is_empty()));
        let some = items(vec![row("a", 1, 0), row("b", 0, 2)]);
        assert!(some[0].figures() == "4  ~1.2k  ~30  ~$2.5000", "{}", some[0].figures());
        assert!(some[0].more.contains("1 of 4 calls are estimated"), "{}", some[0].more);
        assert!(
            !some[1].figures().contains('~') && some[1].more.contains("2 of 4 calls have no known price")
        );
        assert_eq!(some[2].text, "Total without 2 of unknown price");
        assert_eq!(some[2].figures(), "8  ~2.4k  ~60  ~$5.0000");
        assert!(some[2].more.contains("1 of 8 calls") && some[2].more.contains("2 of 8 calls"));
    }
}
