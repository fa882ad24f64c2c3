//! The `terminal` tool: one command in the agent's shell.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tiller_protocol::ToolVerb;
use tiller_protocol::tool::Display;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{
    Access, Part, RuleArgument, ToolGrant, ToolInfo, ToolOutcome, ToolSet, ToolSpec, Touch,
};

use super::backend::{CommandEnd, ShellError, Sink};
use super::confined::{cause, held};
use super::hints;
use super::outcome::{CommandOutcome, sandbox_lines, word};
use super::pool::JOBS;
use crate::files::masks::OutputMask;
use crate::foreign::{Connections, printed};
use crate::guard::no_masks;
use crate::shell::jobs::pty;
use crate::shell::output::capture::Text;
use crate::shell::processes::end;
use crate::{CommandProfile, Tool, ToolCx, ToolError, ToolOutput, schema};
use tiller_protocol::lock;

/// Longest command.
const LONGEST: usize = 256 << 10;
/// Words of a line that are looked at.
const WORDS: usize = 2_000;

// No doc comment here: it would go to the model.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    pub command: String,
    pub timeout: Option<f64>,
    pub background: Option<bool>,
    /// In a real terminal
    pub pty: Option<bool>,
    /// For this call only
    pub workdir: Option<String>,
    /// Reason shown to the user
    #[expect(dead_code, reason = "read from the arguments by the approval dialog")]
    pub why: Option<String>,
}

impl Input {
    fn folder(&self, cx: &ToolCx) -> Option<PathBuf> {
        let given = self.workdir.as_deref().filter(|w| !w.is_empty())?;
        Some(cx.workspace.root.join(given))
    }
}

/// Runs commands.
pub struct Terminal;

const INFO: ToolInfo = ToolInfo {
    name: "terminal",
    set: ToolSet::Run,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Execute,
    rule: RuleArgument::Command,
    aliases: &["bash", "shell", "sh", "exec", "run", "command", "execute"],
    verb: ToolVerb::Shell,
    target: |args| schema::text(args, "command"),
};

#[async_trait]
impl Tool for Terminal {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "terminal".into(),
            description: include_str!("terminal.md").trim().into(),
            schema: schema::of::<Input>(),
        }
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let input: Input = schema::read(args)?;
        check(&input.command)?;
        no_masks(&input.command)?;
        let folder = input.folder(cx).unwrap_or_else(|| cx.state.shells.folder(cx));
        Ok(vec![Access::Run {
            command: input.command,
            folder: folder.display().to_string(),
            background: input.background == Some(true),
        }])
    }

    fn shell(&self, cx: &ToolCx) -> Option<tiller_protocol::ShellState> {
        Some(cx.state.shells.state(cx))
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let input: Input = schema::read(&args)?;
        check(&input.command)?;
        let folder = input.folder(cx);
        if let Some(folder) = folder.as_ref().filter(|f| cx.workspace.terminal().is_none() && !f.is_dir()) {
            return Err(ToolError::Tell(format!("workdir is not a folder: {}", folder.display())));
        }
        let result = if input.background == Some(true) {
            background(&input, folder, cx).await
        } else if input.pty == Some(true) {
            pty::run(&input.command, folder, limit(&input, cx), cx).await
        } else {
            run_in_shell(&input.command, folder, limit(&input, cx), cx).await
        };
        result.map_err(|e| ToolError::Tell(format!("the command could not be run: {e}")))
    }
}

fn limit(input: &Input, cx: &ToolCx) -> Duration {
    let given = input.timeout.filter(|t| *t > 0.0).and_then(|t| Duration::try_from_secs_f64(t).ok());
    given.unwrap_or(cx.limits.command).min(cx.limits.command_max)
}

fn check(command: &str) -> Result<(), ToolError> {
    let wrong = if command.trim().is_empty() {
        "command is empty"
    } else if command.contains('\0') {
        "command contains a NUL byte"
    } else if command.len() > LONGEST {
        "command is longer than 256 KiB: put it into a script file"
    } else {
        return Ok(());
    };
    Err(ToolError::Tell(wrong.into()))
}

/// Runs a line that the person typed (`!`, `!!`) in the shell of `cx.agent`, with the usual limits.
///
/// # Errors
/// [`ToolError::Tell`] when the line is no command, or no shell can be started.
pub async fn run_line(cx: &ToolCx, line: &str) -> Result<ToolOutput, ToolError> {
    check(line)?;
    run_in_shell(line, None, cx.limits.command_max, cx)
        .await
        .map_err(|e| ToolError::Tell(format!("the command could not be run: {e}")))
}

async fn run_in_shell(
    command: &str,
    folder: Option<PathBuf>,
    limit: Duration,
    cx: &ToolCx,
) -> Result<ToolOutput, ShellError> {
    let begun = Instant::now();
    let connections = Connections::now(cx);
    let mut sink = Sink::new(command, cx);
    let shells = &cx.state.shells;
    let mut ran = shells.run(command, folder, limit, &mut sink, cx).await.inspect_err(|e| {
        // Nothing has run: the caller may ask whether it may run in another way.
        if !matches!(e, ShellError::Closed) {
            cx.block();
        }
    })?;
    let text = sink.capture.finish(cx).masked(command, cx);
    let how = ran.ended.how;
    let failed = ran.ended.exit.is_none_or(|exit| exit.code != 0);
    let refused = refusals(cx);
    let blocked = match failed {
        true => cause::find(cx, &text.model, &ran.ended.refusals, &refused),
        false => Vec::new(),
    };
    let took = begun.elapsed();
    if !ran.restored.restored.is_empty() {
        cx.block();
    }
    held::settle(&mut ran.restored, cx).await;
    let facts = CommandOutcome {
        refused,
        blocked,
        how,
        exit: ran.ended.exit.map(|e| e.code),
        took,
        limit,
        moved: ran.moved.map(|p| p.display().to_string()),
        left: ran.left,
        waited: ran.ended.waited || how == CommandEnd::TimedOut && hints::prompt(&text.model),
        stuck: ran.ended.stuck,
        excess: ran.ended.excess,
        note: ran.ended.note.or_else(|| other_tmp(command, cx)),
        restored: ran.restored,
        shell: true,
    };
    Ok(finish(text, connections.source(command, cx).as_deref(), &facts))
}

/// Says of a line of the person's, which runs as they are, that a path in it is another file to the session's commands.
fn other_tmp(command: &str, cx: &ToolCx) -> Option<String> {
    if cx.run.profile != CommandProfile::Person || !command.contains("/tmp/") {
        return None;
    }
    let words = command.split(|c: char| c.is_whitespace() || "'\"`;,()<>|&=".contains(c)).take(WORDS);
    let mut found = words.filter_map(|word| Some((word, cx.workspace.in_session_tmp(Path::new(word))?)));
    let (word, at) = found.next()?;
    Some(format!("{word} here is the machine's; the agent's file of that name is {}", at.display()))
}

/// Connections that the sandbox of this call's command refused.
pub(crate) fn refusals(cx: &ToolCx) -> Vec<String> {
    cx.confiner().map(|confiner| confiner.refused()).unwrap_or_default()
}

/// Result for model and screen. `source`: where the text is from, if not from here.
pub(crate) fn finish(text: Text, source: Option<&str>, facts: &CommandOutcome) -> ToolOutput {
    let mut display = text.display(facts.exit);
    if let Display::Output { tail, .. } = &mut display {
        for line in sandbox_lines(facts, &text.model) {
            if !tail.is_empty() && !tail.ends_with('\n') {
                tail.push('\n');
            }
            tail.push_str(&line);
        }
    }
    let outcome = match facts.how {
        CommandEnd::TimedOut => ToolOutcome::TimedOut,
        CommandEnd::Stopped => ToolOutcome::Interrupted,
        // A command that wrote a protected file has not done what it was to do.
        _ if facts.restored.has_restored() => ToolOutcome::Error,
        CommandEnd::Done | CommandEnd::ShellEnded if facts.exit == Some(0) => ToolOutcome::Ok,
        CommandEnd::Done | CommandEnd::ShellEnded => ToolOutcome::Error,
    };
    let text = word(printed(text.model, source), facts);
    ToolOutput { content: vec![Part::Text { text }], display: Some(display), outcome }
}

async fn background(input: &Input, folder: Option<PathBuf>, cx: &ToolCx) -> Result<ToolOutput, ShellError> {
    let pool = &cx.state.shells;
    if pool.running() >= JOBS {
        let text = format!("{JOBS} processes are already running; end one with the process tool first");
        return Ok(ToolOutput { outcome: ToolOutcome::Error, ..ToolOutput::text(text) });
    }
    let folder = folder.unwrap_or_else(|| pool.folder(cx));
    let job = if input.pty == Some(true) {
        pool.start_pty(&input.command, &folder, None, cx).await?
    } else {
        pool.start_piped(&input.command, &folder, cx).await?
    };
    // What fails at once is said at once.
    let mut exit = job.exit.clone();
    let _ = tokio::time::timeout(Duration::from_millis(150), exit.wait_for(Option::is_some)).await;
    if job.exit.borrow().is_some() {
        job.settle().await;
    }
    let (new, _) = lock(&job.output.log).poll();
    let output = crate::text::clean(&new[new.len().saturating_sub(4096)..]);
    let output = match OutputMask::of(&input.command, cx) {
        Some(mask) => mask.of_text(output),
        None => output,
    };
    let shown = printed(output.clone(), job.source(cx).as_deref());
    let text = format!("started as {} ({})\n{shown}", job.id, job.row().state_words());
    let failed = job.exit.borrow().is_some_and(|e| e.code != 0);
    if failed {
        // The words about the process name what was refused.
        cause::find(cx, &output, &job.refusals(), &[]);
    }
    let outcome = if failed { ToolOutcome::Error } else { ToolOutcome::Ok };
    if job.exit.borrow().is_some() {
        end::end(&job.family, Duration::ZERO, None).await;
    }
    Ok(ToolOutput { outcome, ..ToolOutput::text(text.trim_end()) })
}
