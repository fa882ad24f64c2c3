//! `write_plan`: a plan for the person to approve. It is a file that they may edit; its steps become the todo list.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tiller_protocol::ToolVerb;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{
    Access, AskBody, AskReply, RuleArgument, TodoItem, TodoStatus, ToolGrant, ToolInfo, ToolSet, ToolSpec,
    Touch,
};

use super::todo::ITEMS;
use crate::text::visible;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Bytes of a plan.
const MOST: usize = 64 << 10;
/// Characters of one step in the todo list.
const STEP: usize = 300;

/// The tool.
pub struct WritePlan;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    plan: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "write_plan",
    set: ToolSet::Plan,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Plan,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    let plan = args.get("plan").and_then(Value::as_str).unwrap_or_default();
    plan.lines()
        .map(|l| l.trim_start_matches(['#', '-', '*', ' ']).trim())
        .find(|l| !l.is_empty())
        .unwrap_or("")
        .to_owned()
}

#[async_trait]
impl Tool for WritePlan {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("write_plan.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        checked(schema::read(args)?)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let plan = checked(schema::read(&args)?)?;
        let file = place(&cx.folders.plans, &cx.call_id, &plan);
        let shown = blocking({
            let (file, plan) = (file.clone(), plan.clone());
            move || keep(&file, &plan)
        })
        .await?;
        let name = file.display().to_string();
        let body = AskBody::Plan { file: name.clone(), plan: shown };
        let reply = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Interrupted("the plan was not answered".into())),
            reply = cx.ports.ask(&cx.agent, body) => reply,
        };
        let now = blocking(move || read(&file)).await?;
        let edited = (now != plan).then_some(now.as_str());
        let also = |said: &str| match edited {
            Some(now) => format!("{said}\nThe user also edited the plan. It now reads:\n\n{now}"),
            None => said.to_owned(),
        };
        let show = |text: &str| Display::Measure { text: text.into() };
        match reply {
            Ok(AskReply::Yes { .. }) => {
                let todos = steps(&now);
                let n = todos.len();
                let list = if n > 0 {
                    cx.ports.set_todos(&cx.agent, todos).await.map_err(ToolError::Tell)?;
                    format!(" Its {n} steps are the todo list: update it as you work.")
                } else {
                    String::new()
                };
                let text = also(&format!("The user approved the plan.{list} Follow it now."));
                Ok(ToolOutput::text(text).show(show(&format!("approved, {n} steps"))))
            }
            Ok(AskReply::Choice { answers }) => {
                let said = format!("Not approved yet. The user wants this changed: {}", answers.join("; "));
                let text = also(&format!("{said}\nChange the plan and submit it again."));
                Ok(ToolOutput::text(text).show(show("to be changed")))
            }
            Ok(AskReply::Never) => Err(ToolError::Declined(
                "the user discarded the plan: do not carry it out; say so briefly and stop".into(),
            )),
            Ok(_) => Err(ToolError::Declined(also(
                "the user did not approve the plan: do not carry it out; ask what to change, or stop",
            ))),
            Err(why) => {
                let text = format!(
                    "{why}, so the plan is not approved: do not carry it out. It is stored in {name}. End your turn with it."
                );
                Ok(ToolOutput::text(text).show(show("not answered")))
            }
        }
    }
}

fn checked(args: Args) -> Result<String, ToolError> {
    let plan = visible(args.plan.trim()).into_owned();
    if plan.is_empty() {
        return Err(ToolError::Tell("the plan is empty".into()));
    }
    if plan.len() > MOST {
        return Err(ToolError::Tell(format!("the plan is longer than {} KB: shorten it", MOST >> 10)));
    }
    Ok(format!("{plan}\n"))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|e| Err(std::io::Error::other(e)));
    done.map_err(|e| ToolError::Tell(format!("the plan's file cannot be used: {e}")))
}

/// Each plan has a file of its own; the same call finds it again, with what the person changed in it.
fn place(folder: &Path, call: &str, plan: &str) -> PathBuf {
    let hash = blake3::hash(format!("{call}\n{plan}").as_bytes()).to_hex();
    folder.join(format!("{}.md", &hash[..12]))
}

/// Writes the plan where there is none yet, whole or not at all; gives what is there. Folder and file are the
/// person's alone.
fn keep(file: &Path, plan: &str) -> std::io::Result<String> {
    if file.exists() {
        return read(file);
    }
    if let Some(folder) = file.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let fresh: PathBuf = file.with_extension("md.new");
    let mut out =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    out.write_all(plan.as_bytes())?;
    out.sync_all()?;
    std::fs::rename(&fresh, file)?;
    Ok(plan.to_owned())
}

/// Reads what the person left there.
fn read(file: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(MOST as u64).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(format!("{}\n", visible(text.trim())))
}

/// The steps of a plan: its boxes, else its numbered items, else its bullets; the outermost of them.
fn steps(plan: &str) -> Vec<TodoItem> {
    let mut kinds: [Vec<(String, bool)>; 3] = Default::default();
    let mut fenced = false;
    for line in plan.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced || line.starts_with([' ', '\t']) {
            continue;
        }
        let bullet = ["- ", "* ", "+ "].iter().find_map(|m| line.strip_prefix(m));
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let numbered = (digits > 0)
            .then(|| &line[digits..])
            .and_then(|l| l.strip_prefix(". ").or_else(|| l.strip_prefix(") ")));
        let Some(item) = bullet.or(numbered) else { continue };
        let boxed = ["[ ] ", "[x] ", "[X] "].iter().find_map(|b| Some((item.strip_prefix(b)?, *b != "[ ] ")));
        match boxed {
            Some((text, done)) => kinds[0].push((text.to_owned(), done)),
            None => kinds[if numbered.is_some() { 1 } else { 2 }].push((item.to_owned(), false)),
        }
    }
    let found = kinds.into_iter().find(|k| !k.is_empty()).unwrap_or_default();
    let items = found.into_iter().map(|(text, done)| (text.replace("**", "").trim().to_owned(), done));
    items
        .filter(|(text, _)| !text.is_empty())
        .take(ITEMS)
        .enumerate()
        .map(|(n, (text, done))| TodoItem {
            id: (n + 1).to_string(),
            content: text.chars().take(STEP).collect(),
            status: if done { TodoStatus::Completed } else { TodoStatus::Pending },
            agent: None,
        })
        .collect()
}

#[cfg(test)]
#[path = "write_plan_tests.rs"]
mod tests;
