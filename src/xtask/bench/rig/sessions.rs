//! Long sessions, written directly into the store.

use std::path::Path;

use anyhow::Result;
use tiller_protocol::{EntryBody, ModelRef, Profile};
use tiller_store::{NewSession, Options, Store};

use super::long_session;
use crate::bench::rig::model::markdown;

/// Entries from which on a compaction stands near the end.
const COMPACTED: usize = 5_000;

/// Text of the last entry, so that a screen shows when it is loaded.
pub(crate) const LAST: &str = "DONE-made";

/// Creates a session of `count` entries in `project`: alternating questions and answers, and a compaction near the end
/// where the text would exceed any model's window.
pub(crate) fn make(database: &Path, project: &Path, count: usize) -> Result<()> {
    make_of(database, project, count, 300)
}

/// As [`make`], with answers of this many lines.
pub(crate) fn make_of(database: &Path, project: &Path, count: usize, lines: usize) -> Result<()> {
    let store = Store::open(database, Options::default())?;
    let model = ModelRef("anthropic/mock".into());
    let new = NewSession {
        id: long_session::new_id(),
        project: project.display().to_string(),
        title: format!("{count} entries"),
        model: model.clone(),
        profile: Profile::Full,
        spawned_by: None,
        made_by: tiller_store::MadeBy::Person,
    };
    let long = markdown(lines);
    let body = |n: usize| {
        let text = match n {
            _ if n + 1 >= count => LAST.to_owned(),
            _ if n % 2 == 1 => format!("Question {n}: what does the parser do with an empty buffer?"),
            _ => format!("Answer {n}.\n\n{long}"),
        };
        match n {
            _ if n + 10 == count && count > COMPACTED => EntryBody::Compaction {
                summary: "What was said before, in short.".into(),
                focus: None,
                kept_from: None,
                tokens_before: 100_000,
                tokens_after: 20,
                taint: None,
                carried: tiller_protocol::Carried::default(),
            },
            _ if n % 2 == 1 => long_session::question(text),
            _ => long_session::answer(text, &model),
        }
    };
    long_session::write(&store, new, (1..=count).map(body))?;
    Ok(())
}
