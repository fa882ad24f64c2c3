//! Memory files that are over their budget: their oldest entries move into the archive. The fast tier, where there is one, sums
//! them up in a few entries that stay.

use std::sync::Arc;

use tiller_memory::Memory;
use tiller_memory::files::Condensed;
use tiller_protocol::{AgentId, Provenance};

use crate::context::side_call::{self, SideCall};
use crate::core::Core;
use crate::core::services::{Redact, Services};

const PROMPT: &str = include_str!("../../../assets/prompts/condense.md");
/// Entries that sum up others, at most, and their length in characters.
const LINES: usize = 3;
const LONGEST: usize = 300;

/// Moves entries into the archive without a model, where no fast tier is configured. One that is configured may turn out to be
/// unusable: see [`with_model`]. Blocks.
pub(crate) fn without_model(services: &Services) {
    if services.config().tiers.fast.is_some() {
        return;
    }
    let Some(memory) = &services.user.memory else { return };
    for surplus in memory.over_budget() {
        archive(memory, &surplus, &[]);
    }
}

/// Sums up what is over the budget with the fast tier, in the background: later sessions see it. Where the tier cannot be asked
/// now, the entries only move.
pub(crate) fn with_model(core: &mut Core) {
    let Some(memory) = core.services.user.memory.clone().filter(|_| core.identity.owns_session()) else {
        return;
    };
    if core.services.config().tiers.fast.is_none() {
        return;
    }
    let side = side_call::fast(core);
    let redact = Arc::clone(&core.services.redaction.redact);
    core.spawn(async move {
        let all = Arc::clone(&memory);
        let surplus = tokio::task::spawn_blocking(move || all.over_budget()).await.unwrap_or_default();
        for surplus in surplus {
            let summary = match &side {
                Some(side) => sum_up(side, &surplus, &redact).await,
                None => Vec::new(),
            };
            let memory = Arc::clone(&memory);
            let done = tokio::task::spawn_blocking(move || archive(&memory, &surplus, &summary)).await;
            if done.is_err() {
                tracing::warn!("a memory file could not be shortened");
            }
        }
    });
}

/// Lines that sum up entries; none when the model fails, so that they only move.
async fn sum_up(side: &SideCall, surplus: &Condensed, redact: &Redact) -> Vec<String> {
    let text: String = surplus.entries.iter().map(|e| format!("{}\n", e.line())).collect();
    match side.ask(PROMPT, redact(&text), Some(500)).await {
        Ok(answer) if !answer.cut => {
            let lines = answer.text.lines().map(|l| l.trim().trim_start_matches(['-', '*']).trim());
            let fits = |l: &&str| !l.is_empty() && l.chars().count() <= LONGEST;
            lines.filter(fits).take(LINES).map(str::to_owned).collect()
        }
        Ok(_) => Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "the fast model failed: entries of memory move into the archive as they are");
            Vec::new()
        }
    }
}

fn archive(memory: &Memory, surplus: &Condensed, summary: &[String]) {
    let from = Provenance { agent: AgentId::main(), ..Provenance::default() };
    // A summary that is refused is left out; the entries are in the archive all the same.
    let done = memory.condense(surplus, summary, &from).or_else(|_| memory.condense(surplus, &[], &from));
    if let Err(error) = done {
        tracing::warn!(%error, "a memory file over its budget could not be shortened");
    }
}
