//! `execute_code`: one script, many calls.

use std::path::PathBuf;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};

use super::child::{Child, Program};
use super::report::Report;
use super::run::{Exposed, Ran, RunEnd, run};
use super::sessions::SessionKey;
use super::stub;
use crate::guard::no_masks;
use crate::shell::Refusals;
use crate::shell::ShellError;
use crate::shell::confined::{cause, held};
use crate::shell::processes::environment;
use crate::shell::put_back;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Longest script, in bytes.
const LONGEST: usize = 256 << 10;

// No doc comment here: it would go to the model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "script")]
    code: String,
    /// Name
    session: Option<String>,
    /// Reason shown to the user
    #[expect(dead_code, reason = "read from the arguments by the approval dialog")]
    why: Option<String>,
}

/// The tool.
pub struct ExecuteCode;

const INFO: ToolInfo = ToolInfo {
    name: "execute_code",
    set: ToolSet::Code,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Execute,
    rule: RuleArgument::Text,
    aliases: &["python", "script", "code"],
    verb: ToolVerb::Script,
    target,
};

/// What its row shows: the comment at the top of the script, or its first line that does something.
fn target(args: &Value) -> String {
    let code = schema::text(args, "code");
    let mut lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    if let Some(comment) = first.strip_prefix('#').filter(|c| !c.starts_with('!')) {
        return comment.trim().to_owned();
    }
    let acts = |line: &&str| !["import ", "from ", "#"].iter().any(|head| line.starts_with(head));
    std::iter::once(first).chain(lines).find(acts).unwrap_or(first).to_owned()
}

/// The interpreter of the settings, never one below the workspace. `None`: there is none.
pub fn find_python(python: &str, env: &[(String, String)], workspace: &std::path::Path) -> Option<PathBuf> {
    if python.contains('/') {
        let path = PathBuf::from(python);
        return (path.is_absolute() && path.is_file()).then_some(path);
    }
    environment::find(python, &environment::outside(env, workspace))
}

#[async_trait]
impl Tool for ExecuteCode {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: INFO.name.into(),
            description: include_str!("execute_code.md").trim().into(),
            schema: schema::of::<Args>(),
        }
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        let wrong = if args.code.trim().is_empty() {
            "code is empty"
        } else if args.code.len() > LONGEST {
            "code is longer than 256 KiB"
        } else if args.session.is_some_and(|name| name.is_empty() || name.len() > 60) {
            "session is a name of 1 to 60 bytes"
        } else {
            no_masks(&args.code)?;
            return Ok(vec![Access::Script { code: args.code }]);
        };
        Err(ToolError::Tell(wrong.into()))
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let failed = |e: ShellError| ToolError::Tell(format!("the script could not be run: {e}"));
        let exposed = Exposed::of(cx);
        let confiner = cx.local_confiner().cloned();
        // What it writes is judged at its end.
        let runs = cx.state.shells.script(cx);
        let guard = cx.state.shells.guard(confiner, cx).await.map_err(failed)?;
        let ran = match &args.session {
            None => fresh(&args.code, &exposed, cx).await,
            Some(name) => kept(&args.code, name, &exposed, cx).await,
        };
        let mut ran = ran?;
        if let Some(guard) = &guard {
            let mut compared = put_back(guard).await;
            drop(runs);
            cx.witness.remade(&compared.remade);
            held::settle(&mut compared, cx).await;
            if compared.has_restored() {
                ran.report.ran.end = RunEnd::Broken("it wrote protected files".into());
            }
            ran.report.notes.extend(compared.lines());
        }
        Ok(conclude(ran, cx))
    }
}

/// A run, and what its sandbox refused.
struct Finished {
    report: Report,
    refusals: Refusals,
}

/// The interpreter.
fn python(cx: &ToolCx) -> Result<PathBuf, ToolError> {
    let name = &cx.limits.code.python;
    find_python(name, &cx.child_env, &cx.workspace.root).ok_or_else(|| {
        ToolError::Tell(format!(
            "{name} was not found on this machine, so that scripts cannot be run; use the tools directly"
        ))
    })
}

async fn start(keep: bool, exposed: &Exposed, cx: &ToolCx) -> Result<Child, ToolError> {
    let (python, stub) = (python(cx)?, stub::source(&exposed.specs, &exposed.aliases()));
    let program = Program { python: &python, stub: &stub, keep };
    Child::start(program, cx).await.map_err(|e| ToolError::Tell(format!("the script could not be run: {e}")))
}

/// What is known after a run in `child`.
fn finished(ran: Ran, child: &Child, cx: &ToolCx) -> Finished {
    let masked = |text: String| match &child.mask {
        Some(mask) => mask.of_text(text),
        None => text,
    };
    let report = Report {
        out: masked(child.out.text()),
        err: masked(child.err.text()),
        most: cx.limits.code.calls,
        limit: cx.limits.code.time.as_secs(),
        notes: child.excess().into_iter().collect(),
        blocked: Vec::new(),
        ran,
    };
    let refusals = Refusals { known: child.watch.is_supervised(), blocked: child.watch.blocked.take() };
    Finished { report, refusals }
}

/// In a process of its own.
async fn fresh(code: &str, exposed: &Exposed, cx: &ToolCx) -> Result<Finished, ToolError> {
    let mut child = start(false, exposed, cx).await?;
    let ran = run(code, false, &mut child, exposed, cx).await;
    let mut all = finished(ran, &child, cx);
    let stuck = child.end(cx).await;
    all.report.notes.extend(stuck_note(stuck));
    Ok(all)
}

fn stuck_note(stuck: usize) -> Option<String> {
    (stuck > 0).then(|| format!("{stuck} of its processes could not be ended"))
}

/// In the process of a session. It goes on with the variables of this run, unless the run is to be repeated.
async fn kept(code: &str, name: &str, exposed: &Exposed, cx: &ToolCx) -> Result<Finished, ToolError> {
    let key = SessionKey { agent: cx.agent.clone(), name: name.to_owned() };
    let sessions = &cx.state.code;
    let there = sessions.take(&key);
    let fresh = there.is_none();
    let same = there.filter(|kept| kept.profile == cx.run.profile);
    let lost = !fresh && same.is_none();
    let mut child = match same {
        Some(kept) => kept.child,
        None => start(true, exposed, cx).await?,
    };
    let ran = run(code, true, &mut child, exposed, cx).await;
    let mut all = finished(ran, &child, cx);
    if lost {
        all.report
            .notes
            .push("the session began anew, because it ran in another profile of the sandbox before".into());
    } else if fresh {
        all.report.notes.push(format!("session {name} is new"));
    }
    if matches!(all.report.ran.end, RunEnd::Done(_)) {
        let keep = !cx.run.script.waits();
        let verdict = format!("{{\"keep\": {keep}}}");
        if child.to.send(verdict).await.is_ok() {
            sessions.put(key, child, cx.run.profile);
            return Ok(all);
        }
    }
    let stuck = child.end(cx).await;
    all.report.notes.extend(stuck_note(stuck));
    all.report.notes.push("the session ended with it, and its variables are lost".into());
    Ok(all)
}

/// Whether the run is to be repeated, and the result.
fn conclude(finished: Finished, cx: &ToolCx) -> ToolOutput {
    let Finished { mut report, refusals } = finished;
    let approval = &cx.run.script;
    let done = matches!(report.ran.end, RunEnd::Done(true) | RunEnd::Gone(0));
    if approval.waits() && !done {
        // Nothing is asked about a script that fails by itself, or was stopped.
        let by_itself = !matches!(report.ran.end, RunEnd::Done(false)) || !approval.made_up();
        if by_itself {
            approval.forget();
            report.notes.push(
                match approval.was_approved() {
                    true => "the calls that the user approved before were made; those that need another approval were not made, and \
                             the user was not asked about them: the script failed before",
                    false => "the calls that need an approval were not made, and the user was not asked: the script failed before",
                }
                .into(),
            );
        }
    }
    if !done && !approval.wrote() && !approval.waits() {
        let text = format!("{}\n{}", report.out, report.err);
        report.blocked = cause::find(cx, &text, &refusals, &[]);
    }
    report.output()
}
