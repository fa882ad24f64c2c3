//! What a trial brought, for people and for programs.

use serde_json::{Value, json};
use tiller_protocol::Cost;
use tiller_protocol::skill::TrialRuns;

use super::{Case, Run};
use crate::commands::json_line;
use crate::commands::sessions::one_line;

/// A prompt in one line.
pub(super) fn brief(text: &str, most: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(most).collect();
    one_line(&line)
}

/// Sums of runs.
#[derive(Default)]
pub(super) struct Sum {
    runs: usize,
    used: usize,
    done: usize,
    checked: usize,
    passed: usize,
    cost: f64,
    tokens: u64,
    seconds: f64,
}

impl Sum {
    fn of<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        runs.fold(Self::default(), |sum, run| Self {
            runs: sum.runs + 1,
            used: sum.used + usize::from(run.used),
            done: sum.done + usize::from(run.result.is_done()),
            checked: sum.checked + usize::from(run.checked.is_some()),
            passed: sum.passed + usize::from(run.checked == Some(true)),
            cost: sum.cost + run.result.cost_usd.unwrap_or_default(),
            tokens: sum.tokens + run.result.usage.context() + run.result.usage.output,
            seconds: sum.seconds + run.result.seconds,
        })
    }

    fn row(&self, what: &str, used: bool) -> String {
        let of = |n: usize, all: usize| if all == 0 { "-".to_owned() } else { format!("{n} of {all}") };
        let used = if used { of(self.used, self.runs) } else { "-".into() };
        format!(
            "{what:24} {used:>8} {:>8} {:>8} {:>9} {:>9} {:>7.0} s\n",
            of(self.done, self.runs),
            of(self.passed, self.checked),
            format!("${:.4}", self.cost),
            self.tokens,
            self.seconds
        )
    }

    /// As it is kept.
    pub(super) fn kept(&self) -> TrialRuns {
        let count = |n: usize| n as u64;
        TrialRuns {
            runs: count(self.runs),
            used: count(self.used),
            done: count(self.done),
            checked: count(self.checked),
            passed: count(self.passed),
            cost: Cost::from_usd(self.cost),
            tokens: self.tokens,
        }
    }

    fn json(&self) -> Value {
        json!({
            "runs": self.runs, "used": self.used, "done": self.done, "checked": self.checked, "passed": self.passed,
            "cost_usd": self.cost, "tokens": self.tokens, "seconds": self.seconds,
        })
    }
}

/// The three sums of a trial: with and without the skill, and prompts that it should not answer to.
pub(super) fn sums(cases: &[Case]) -> [Sum; 3] {
    let meant = || cases.iter().filter(|case| case.meant);
    [
        Sum::of(meant().map(|case| &case.with)),
        Sum::of(meant().filter_map(|case| case.without.as_ref())),
        Sum::of(cases.iter().filter(|case| !case.meant).map(|case| &case.with)),
    ]
}

/// For people. `over`: the budget was used up.
pub(super) fn report(name: &str, cases: &[Case], over: bool) -> String {
    let mut text = String::from("\n");
    for case in cases {
        let run = |run: &Run| {
            let check =
                run.checked.map_or("", |passed| if passed { ", check passed" } else { ", check failed" });
            format!("{}{check}", one_line(&run.result.status))
        };
        let used = if case.with.used { "used" } else { "not used" };
        let without =
            case.without.as_ref().map(|case| format!("; without: {}", run(case))).unwrap_or_default();
        text.push_str(&format!(
            "{}\n    with: {used}, {}{without}\n",
            brief(&case.prompt, 76),
            run(&case.with)
        ));
    }
    let [with, without, others] = sums(cases);
    text.push_str(&format!(
        "\n{:24} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9}\n",
        name.chars().take(24).collect::<String>(),
        "used",
        "done",
        "check",
        "cost",
        "tokens",
        "time"
    ));
    text.push_str(&with.row("With it", true));
    text.push_str(&without.row("Without it", false));
    if others.runs > 0 {
        text.push_str(&others.row("Should not be used", true));
    }
    if over {
        text.push_str("The budget is used up; a larger --max-cost runs the other prompts, too.\n");
    }
    text
}

/// For programs: a line for each prompt, and the sums.
pub(super) fn report_json(name: &str, cases: &[Case], over: bool) -> String {
    let run = |run: &Run| {
        json!({
            "used": run.used, "status": run.result.status, "checked": run.checked, "cost_usd": run.result.cost_usd,
            "tokens": run.result.usage.context() + run.result.usage.output, "seconds": run.result.seconds,
        })
    };
    let mut text = String::new();
    for case in cases {
        text.push_str(&json_line(&json!({
            "prompt": case.prompt, "meant": case.meant, "with": run(&case.with),
            "without": case.without.as_ref().map(run),
        })));
    }
    let [with, without, others] = sums(cases);
    text.push_str(&json_line(&json!({
        "skill": name, "with": with.json(), "without": without.json(), "others": others.json(), "budget_used_up": over,
    })));
    text
}
