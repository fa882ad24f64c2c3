//! The question about a plan, as [`crate::dialog::question::program`] shows it: the plan's text, and what can be done with it.

use std::path::PathBuf;

use tiller_protocol::{AskBody, AskReply};

use crate::app::effect::{Effect, External, Job, Task, Token};
use crate::dialog::question::program::QuestionButton;
use crate::text::line::{Line, Look, Wrap};
use crate::text::markdown_lines;
use crate::theme::Role;

/// Names the job that reads the file.
pub(super) const READ: Token = Token(2);
/// Bytes of a plan that are shown.
const MOST: u64 = 256 << 10;

/// Text of the plan's file, or why it cannot be read.
type Read = Result<String, String>;

/// The plan as it is shown: Markdown, and below it where it is stored.
pub(super) fn lines(file: &str, plan: &str) -> Vec<Line> {
    let mut all = vec![Line::new(Wrap::Word)];
    all.extend(markdown_lines(plan.trim(), None));
    all.push(Line::new(Wrap::Word));
    all.push(Line::strict(&format!("Stored in {file}"), Look::of(Role::Dim), Wrap::Word));
    all
}

/// Returns what can be done with it. What changes nothing comes first.
pub(super) fn choices() -> Vec<QuestionButton> {
    vec![
        QuestionButton("question.change", "say what to change", None),
        QuestionButton("question.editor", "editor", None),
        QuestionButton("question.drop", "discard", Some(AskReply::Never)),
        QuestionButton("question.approve", "approve", Some(AskReply::Yes { value: None })),
    ]
}

/// Opens the editor on its file.
pub(super) fn editor(body: &AskBody) -> Option<Effect> {
    let AskBody::Plan { file, .. } = body else { return None };
    Some(Effect::Task(Task::Suspend(External::Editor { file: PathBuf::from(file), line: None })))
}

/// Reads the file again, after the editor.
pub(super) fn read(body: &AskBody) -> Option<Effect> {
    let AskBody::Plan { file, .. } = body else { return None };
    let file = file.clone();
    let job: Job = Box::new(move || {
        let read = || -> std::io::Result<String> {
            use std::io::Read as _;
            let mut text = Vec::new();
            std::fs::File::open(&file)?.take(MOST).read_to_end(&mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        let read: Read = read().map_err(|e| format!("The plan cannot be read: {e}"));
        Box::new(read)
    });
    Some(Effect::Task(Task::Job(job, READ)))
}

/// Takes the result of the job.
pub(super) fn found(
    body: &AskBody,
    result: Box<dyn std::any::Any + Send>,
) -> Option<Result<Vec<Line>, String>> {
    let AskBody::Plan { file, .. } = body else { return None };
    let read = result.downcast::<Read>().ok()?;
    Some(read.map(|text| lines(file, &text)))
}
