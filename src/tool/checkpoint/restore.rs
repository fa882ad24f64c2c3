//! `restore`: brings the files back to a named moment, after the person said yes.

use async_trait::async_trait;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::tool::Display;
use tiller_protocol::{
    Access, AskBody, AskReply, ChangeKind, RestorePreview, RuleArgument, ToolGrant, ToolInfo, ToolSet,
    ToolSpec, Touch,
};

use super::{Args, name};
use crate::text::visible;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Files that the question names.
const NAMED: usize = 12;

const YES: &str = "restore them";
const NO: &str = "keep the current files";

/// The tool.
pub struct Restore;

const INFO: ToolInfo = ToolInfo {
    name: "restore",
    set: ToolSet::Plan,
    grant: ToolGrant::Main,
    starts_agents: false,
    // The question is its own, whatever the profile; what comes of it is recorded as a restore.
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Restore,
    target: |args| schema::text(args, "name"),
};

#[async_trait]
impl Tool for Restore {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("restore.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let what = format!("restores the files of the checkpoint {}", name(args)?);
        Ok(vec![Access::Store { what, path: None }])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let name = name(&args)?;
        let (entry, preview) = cx.ports.restore_preview(&name).await.map_err(ToolError::Tell)?;
        let goes = preview.files.iter().filter(|f| f.conflict.is_none()).count() + preview.more;
        if goes == 0 {
            return Ok(ToolOutput::text(format!("nothing to do: {}", stays(&preview))));
        }
        let body = AskBody::Clarify {
            question: question(&name, goes, &preview),
            choices: vec![NO.into(), YES.into()],
            allow_freetext: false,
            multiple: false,
            default: None,
            decides: vec![1],
        };
        let reply = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Interrupted("the question was withdrawn".into())),
            reply = cx.ports.ask(&cx.agent, body) => reply,
        };
        match reply {
            Ok(AskReply::Choice { answers }) if answers.iter().any(|a| a == YES) => {}
            Ok(_) => return Err(ToolError::Declined("the user kept the current files".into())),
            Err(why) => return Err(ToolError::Unanswered(format!("{why}: a restore needs an approval"))),
        }
        let paths: Vec<_> = preview.files.iter().map(|f| cx.workspace.root.join(&f.path)).collect();
        cx.ports.writing(&cx.agent, &paths);
        let said = cx.ports.restore(entry).await;
        cx.ports.wrote(&cx.agent, &paths);
        let said = said.map_err(ToolError::Tell)?;
        let text = format!("{said}\nRead files again before you edit them.");
        Ok(ToolOutput::text(text).show(Display::Measure { text: said }))
    }
}

/// What differs and stays.
fn stays(preview: &RestorePreview) -> String {
    let kept = preview
        .files
        .iter()
        .filter_map(|f| f.conflict.as_ref().map(|why| format!("{} was kept: {why}", visible(&f.path))));
    let left: Vec<String> = kept.chain(preview.left.iter().map(|l| visible(l).into_owned())).collect();
    match left.is_empty() {
        true if preview.notes.is_empty() => "the files were restored".into(),
        true => preview.notes.join("; "),
        false => left.join("; "),
    }
}

fn question(name: &str, goes: usize, preview: &RestorePreview) -> String {
    let files = if goes == 1 { "1 file".into() } else { format!("{goes} files") };
    let mut text = format!("The agent wants to restore {files} to the checkpoint \"{name}\":\n");
    for f in preview.files.iter().filter(|f| f.conflict.is_none()).take(NAMED) {
        let mark = match f.kind {
            ChangeKind::Added => 'A',
            ChangeKind::Deleted => 'D',
            _ => 'M',
        };
        text.push_str(&format!("{mark} {}  +{} -{}\n", visible(&f.path), f.added, f.removed));
    }
    if goes > NAMED {
        text.push_str(&format!("and {} more\n", goes - NAMED));
    }
    let kept = preview.files.iter().filter(|f| f.conflict.is_some()).count();
    if kept > 0 {
        text.push_str(&format!("Files with other changes are kept as they are: {kept}\n"));
    }
    text + "The current state is kept; /undo restores it."
}
