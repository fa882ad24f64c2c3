//! `search_learnings`: what failed before, and what worked instead.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{
    Access, Learning, LearningState, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch,
};
use tiller_store::StoreError;
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput};

use crate::Learnings;
use crate::files::OrderTexts;

use super::{LearningsSlot, learning_access, learning_spec, off_thread};

/// Most learnings of an answer.
const LIMIT: u32 = 10;
/// Learnings that are compared with the words, the last used or made first.
const SEARCHED: u32 = 5_000;

/// The tool.
pub(super) struct SearchLearnings(pub(super) LearningsSlot);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What it is about
    query: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "search_learnings",
    set: ToolSet::Read,
    grant: ToolGrant::Main,
    starts_agents: false,
    touch: Touch::Read,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Recall,
    target: |args| format!("\"{}\"", args.get("query").and_then(Value::as_str).unwrap_or_default()),
};

#[async_trait]
impl Tool for SearchLearnings {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        learning_spec::<Args>(&INFO, include_str!("search_learnings.md"))
    }

    fn access(&self, args: &Value, _: &ToolCx) -> Result<Vec<Access>, ToolError> {
        learning_access::<Args>(args)
    }

    async fn run(&self, args: Value, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = tiller_tool::schema::read(&args)?;
        let (learnings, order) = (self.0.get()?, self.0.order.get().cloned());
        let found = off_thread(move || fitting(&learnings, order.as_ref(), &args.query));
        let found = found.await?.map_err(|e| ToolError::Tell(e.notice().message))?;
        let texts: Vec<String> = found.iter().map(cited).collect();
        let measure =
            if found.len() == 1 { "1 learning".into() } else { format!("{} learnings", found.len()) };
        let text = if texts.is_empty() { "No learning fits these words.".into() } else { texts.join("\n") };
        Ok(ToolOutput::text(text).show(Display::Measure { text: measure }))
    }
}

/// A learning as a hit: with the entry that it comes from.
fn cited(learning: &Learning) -> String {
    let from = learning.source.cited().map_or_else(String::new, |from| format!(" ({from})"));
    crate::learnings::note(learning) + &from
}

/// Active learnings that fit the words, best first; then those that contain all of them, in whatever script.
fn fitting(
    learnings: &Learnings,
    order: Option<&OrderTexts>,
    query: &str,
) -> Result<Vec<Learning>, StoreError> {
    // Proposals are not the user's yet: they are not shown to a model.
    let list =
        |filter: &str, most| learnings.store().learnings().list(filter, Some(&LearningState::Active), most);
    let containing = list(query, LIMIT)?;
    let Some(order) = order else { return Ok(containing) };
    let all = list("", SEARCHED)?;
    let best = order(query, all.iter().map(Learning::search_text).collect()).unwrap_or_default().0;
    let mut found: Vec<Learning> = best.into_iter().filter_map(|at| all.get(at).cloned()).collect();
    let missed = containing.into_iter().filter(|l| !found.iter().any(|known| known.id == l.id));
    let missed: Vec<Learning> = missed.collect();
    found.extend(missed);
    found.truncate(LIMIT as usize);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tiller_protocol::{EntryId, IdSource, ManualClock, SeqIds, SessionId, Taint, Time};
    use tiller_store::{Options, Store};
    use tiller_tool::testing::Bench;

    use super::*;
    use crate::testing::{learning, learning_source};

    #[test]
    fn a_hit_cites_the_entry_that_it_comes_from() {
        let ids = SeqIds::default();
        let (session, entry) = (SessionId(ids.next(Time(0))), EntryId(ids.next(Time(0))));
        let mut found = learning("cargo test", "failed", "run nextest");
        (found.source.session, found.source.entry) = (None, None);
        assert!(cited(&found).ends_with("only where it fits.]"));
        (found.source.session, found.source.entry) = (Some(session), Some(entry));
        assert!(cited(&found).ends_with(&format!("] (session {session}, entry {entry})")));
    }

    #[tokio::test]
    async fn learnings_are_found_in_the_order_of_the_finder() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("tiller.db"), Options::default()).unwrap();
        let learning = |fix: &str, state| Learning {
            state,
            source: learning_source(Taint::Person),
            ..learning("cargo test", fix, fix)
        };
        for (fix, state) in [
            ("run nextest", LearningState::Active),
            ("start the database", LearningState::Active),
            ("of nobody", LearningState::Proposed),
            ("\u{6570}\u{636e} database", LearningState::Active),
        ] {
            store.learnings().add(learning(fix, state)).wait().unwrap();
        }
        let slot = LearningsSlot::default();
        assert!(slot.set(Arc::new(Learnings::new(store, Arc::new(ManualClock::new(Time(2)))))));
        let (bench, tool) = (Bench::new(), SearchLearnings(slot.clone()));
        let fixes = |said: String| -> Vec<String> {
            let fix = |line: &str| line.split("What worked: ").nth(1)?.split('.').next().map(str::to_owned);
            said.lines().filter_map(fix).collect()
        };
        let ask = async |query: &str| fixes(bench.say(&tool, json!({ "query": query })).await);
        assert_eq!(ask("database cargo").await, ["\u{6570}\u{636e} database", "start the database"]);
        assert!(ask("databases of tests").await.is_empty(), "not all words");
        // As the finder: by fit, and not by all words. The newest come first in the list.
        slot.order_by(Arc::new(|query: &str, texts: Vec<String>| {
            assert_eq!(texts.len(), 3, "{query}: {texts:?}");
            assert!(texts[1].starts_with("terminal cargo test start the database cargo test start"));
            Some((vec![1, 2, 9], None))
        }));
        assert_eq!(ask("databases of tests").await, ["start the database", "run nextest"]);
        // One that has all the words is never missed.
        let found = ask("\u{6570}\u{636e}").await;
        assert_eq!(found, ["start the database", "run nextest", "\u{6570}\u{636e} database"]);
    }
}
