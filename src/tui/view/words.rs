//! Figures and states as the words that header, footer and panels share.

use tiller_protocol::{AgentState, GoalState, GoalView};

use crate::model::Model;
use crate::theme::Role;

/// State of a goal in a word or two, and its look.
pub(crate) fn goal(g: &GoalView) -> (String, Role) {
    match g.state {
        GoalState::Working => (format!("goal {}/{}", g.done, g.goal.turns), Role::Accent),
        GoalState::Checking => ("goal?".to_owned(), Role::Accent),
        GoalState::Stopped => ("goal stopped".to_owned(), Role::Waiting),
        GoalState::Reached => ("goal reached".to_owned(), Role::Ok),
    }
}

/// How many questions and agents wait for the person.
pub(crate) fn needs_you(m: &Model) -> usize {
    let agents = m
        .crew
        .agents
        .iter()
        .filter(|a| a.state == AgentState::Waiting && !m.questions.open.iter().any(|k| k.agent == a.id))
        .count();
    m.questions.open.len() + agents
}

/// `$0.83`; small costs to a tenth of a cent, for `$0.00` would say that it was free.
pub(crate) fn money(usd: f64) -> String {
    if usd > 0.0 && usd < 0.0005 {
        return "<$0.001".into();
    }
    if usd > 0.0 && usd < 0.0995 { format!("${usd:.3}") } else { format!("${usd:.2}") }
}

/// `182k`, `9k`, `740`.
pub(crate) fn short(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..10_000 => format!("{:.1}k", n as f64 / 1e3),
        10_000..1_000_000 => format!("{}k", n / 1_000),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// Thousands apart: `2,314`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}
