//! Tables to look at: where the context goes, what it cost, what ran. Each is a picker, so that it can be
//! filtered and has the same keys as every list.

use tiller_protocol::command::{ContextCommand, CostBy, Query};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::view::{AuditRow, ContextReport, CostRow};
use tiller_protocol::{CommandBody, Event, EventBody};

use crate::app::effect::{Effect, Task, Token};
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::view::words::short;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[
        Opener::new("context.open", "context", "What takes up the model's context", |_| {
            Ok(Box::new(context()))
        }),
        Opener::new("cost.open", "cost", "Cost by model, agent and day", |_| Ok(Box::new(cost()))),
        Opener::new("audit.open", "audit", "What ran, what allowed it, how it ended", |_| {
            Ok(Box::new(audit()))
        }),
        Opener::new("ops.open", "operations", "Operations on the conversation, files and titles", |_| {
            Ok(Box::new(ops()))
        }),
    ],
    groups: &[("Reports", ACTIONS)],
    scopes: &[Scope::new("report", Some("picker"), "Reports", true).keys(&[("ctrl-t", "report.next")])],
    ..Dialog::NONE
};

/// Their actions, besides those of a picker.
pub const ACTIONS: &[ActionSpec] =
    &[ActionSpec::key_only("report.next", "group by", "Cost by model, by agent, by day")];

/// Rows of the audit, and operations, shown at most.
const AUDIT: u32 = 1000;
const OPS: u32 = 1000;

/// A table: its title, its query, and the rows of an answer.
struct Report {
    title: &'static str,
    ask: CommandBody,
    rows: fn(&ReplyEvent) -> Option<Vec<Item>>,
    items: Vec<Item>,
    loaded: bool,
}

/// `/context`.
pub(crate) fn context() -> Picker {
    report("Context", CommandBody::Context(ContextCommand::Report), |r| match r {
        ReplyEvent::ContextReply { report } => Some(context_rows(report)),
        _ => None,
    })
}

/// `/cost`.
pub(crate) fn cost() -> Picker {
    report("Cost by model", CommandBody::Query(Query::Costs { by: CostBy::Model }), cost_rows)
}

/// `/audit`.
pub(crate) fn audit() -> Picker {
    report("Audit: what ran", CommandBody::Query(Query::Audit { filter: String::new(), limit: AUDIT }), |r| {
        match r {
            ReplyEvent::AuditReply { rows } => Some(rows.iter().map(audit_row).collect()),
            _ => None,
        }
    })
}

/// `/ops`.
pub(crate) fn ops() -> Picker {
    report("Operations, newest first", CommandBody::Query(Query::Ops { limit: OPS }), |r| match r {
        ReplyEvent::OpsReply { ops, undo, redo } => {
            Some(crate::dialog::report::operations::rows(ops, *undo, *redo))
        }
        _ => None,
    })
}

fn report(title: &'static str, ask: CommandBody, rows: fn(&ReplyEvent) -> Option<Vec<Item>>) -> Picker {
    Picker::new(Report { title, ask, rows, items: Vec::new(), loaded: false })
}

fn context_rows(r: &ContextReport) -> Vec<Item> {
    let share = |n: u64| {
        r.window.map_or(String::new(), |w| format!(" {:>5.1} %", n as f64 * 100.0 / w.max(1) as f64))
    };
    let row = |name: &str, n: u64, note: String| {
        let bar = r.window.map_or(0, |w| (n * 40 / w.max(1)).min(40) as usize);
        let text = format!("{name:32}{}", "#".repeat(bar));
        Item { more: note, ..Item::new(name, text.trim_end()).detail(format!("{n:>8} tokens{}", share(n))) }
    };
    let all = if r.exact { "total (counted by the provider)" } else { "total (estimated)" };
    let mut rows = vec![row(
        all,
        r.used,
        r.window.map_or("The model's context window is not known".into(), |w| format!("of {w} tokens")),
    )];
    rows.extend(r.layers.iter().map(|l| {
        let cut = if l.shortened { ", shortened to fit" } else { "" };
        row(&l.name, l.tokens, format!("from {}, budget {} tokens{cut}", l.source, l.budget))
    }));
    rows.push(row("tools", r.tools, "tool descriptions and schemas".into()));
    rows.push(row("messages", r.messages, "the conversation since the last compaction".into()));
    rows
}

fn cost_rows(r: &ReplyEvent) -> Option<Vec<Item>> {
    let ReplyEvent::CostsReply { rows, total } = r else { return None };
    let row = |c: &CostRow| {
        let cost = c.cost.map_or("unknown".into(), |c| format!("${:.4}", c.usd()));
        let s = if c.calls == 1 { " " } else { "s" };
        let (read, written) = (short(c.usage.context()), short(c.usage.output));
        let about = if c.estimated > 0 { "~" } else { "" };
        let (read, cost) = (format!("{about}{read}"), format!("{about}{cost}"));
        Item {
            more: unsure(c.calls, c.estimated, c.unpriced),
            ..Item::new(&c.key, &c.key)
                .detail(format!("{:>5} call{s}  {read:>6} in  {written:>5} out  {cost:>10}", c.calls))
        }
    };
    let mut items: Vec<Item> = rows.iter().map(row).collect();
    let all = |of: fn(&CostRow) -> u64| rows.iter().map(of).sum::<u64>();
    let (calls, estimated, unpriced) = (all(|c| c.calls), all(|c| c.estimated), all(|c| c.unpriced));
    let about = if estimated > 0 { "~" } else { "" };
    let without = match unpriced {
        0 => String::new(),
        n => format!("without {n} of unknown price  "),
    };
    let sum = total.map_or("unknown".into(), |c| format!("{without}{about}${:.4}", c.usd()));
    items.push(Item { more: unsure(calls, estimated, unpriced), ..Item::new("total", "total").detail(sum) });
    Some(items)
}

/// What is estimated or missing in a number of calls; empty if nothing is.
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
    let decision = r.decision.audit_word();
    Item {
        more: format!(
            "{}\n\n{} {} by {}\n{} after {:.1} s, agent {}",
            r.what, r.tool, decision, r.by, r.outcome, r.seconds, r.agent
        ),
        ..Item::new(&r.what, format!("{time} {:10} {}", r.tool, r.what.lines().next().unwrap_or("")))
            .detail(format!("{decision} {}", r.outcome))
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
            table: Some(match self.ask {
                CommandBody::Query(Query::Costs { .. }) => 0,
                CommandBody::Context(_) => 1,
                _ => 6,
            }),
            empty: if self.loaded { "Nothing yet" } else { "Loading..." },
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
    use tiller_protocol::{Cost, Usage};

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
        assert!(exact.iter().all(|i| !i.detail.contains('~') && i.more.is_empty()));
        let some = items(vec![row("a", 1, 0), row("b", 0, 2)]);
        assert!(
            some[0].detail.contains("~1.2k in") && some[0].detail.contains("~$2.5000"),
            "{}",
            some[0].detail
        );
        assert!(some[0].more.contains("1 of 4 calls are estimated"), "{}", some[0].more);
        assert!(!some[1].detail.contains('~') && some[1].more.contains("2 of 4 calls have no known price"));
        assert_eq!(some[2].detail, "without 2 of unknown price  ~$5.0000");
        assert!(some[2].more.contains("1 of 8 calls") && some[2].more.contains("2 of 8 calls"));
    }
}
