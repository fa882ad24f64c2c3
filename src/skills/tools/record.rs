//! What the approval of a change says of the skill's uses and trials.

use tiller_tool::Preview;

use crate::change::{Editor, Plan, Scope};
use crate::library::Library;

/// How often the skill was used and what came of it, the newest trial, and what a trial of the planned state is given.
/// `author`: who proposes it. Blocks.
pub(super) fn notes(editor: &Editor, library: &Library, plan: &Plan, author: &str) -> Preview {
    let record = library.record(&plan.name);
    let mut lines = Vec::new();
    if plan.action != "create" || record.uses > 0 {
        lines.push(format!("`{}` was {}", plan.name, record.words()));
    }
    if plan.scope == Scope::Project {
        lines.push(
            "it takes effect in the next session, which asks you first whether you trust the changed files"
                .into(),
        );
    }
    let Some(text) = plan.text() else { return Preview { lines, ..Preview::default() } };
    let tried = record.trial.as_ref().map(|trial| {
        let same = trial.text == blake3::hash(&text).to_hex().as_str();
        let which = if same { "a trial of this text" } else { "a trial of an earlier text" };
        (same, format!("{which}: {}", trial.words()))
    });
    let folder = editor.draft(plan, author).map(|folder| folder.display().to_string());
    match (tried, &folder) {
        (Some((true, words)), _) => lines.push(words),
        (other, Some(folder)) => {
            lines.extend(other.map(|(_, words)| words));
            lines.push(format!(
                "this text was not tried; `tiller skills try {}` compares runs with and without it",
                quoted(folder)
            ));
        }
        (Some((_, words)), None) => lines.push(words),
        (None, None) => lines.push("this text was not tried".into()),
    }
    Preview { lines, draft: folder, ..Preview::default() }
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
