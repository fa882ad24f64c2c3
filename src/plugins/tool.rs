//! Tools of plugins. For each call the tool's command is started in the sandbox, reads one line of JSON,
//! `{"id": 1, "tool": NAME, "arguments": {...}, "folder": FOLDER}`, and writes one: `{"id": 1, "result": TEXT}` or
//! `{"id": 1, "error": TEXT}`. Other lines are ignored.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tiller_hooks::ChangedFile;
use tiller_hooks::command::{CommandEnd, CommandRun, run};
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};
use tiller_tool::shell::{Confiner, Host, Launch};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput};

use crate::manifest::{Manifest, PluginTool};

/// Longest target in a row, in characters.
const TARGET: usize = 80;

/// What tools of plugins are started with.
#[derive(Clone)]
pub struct ToolServices {
    /// Confines their commands to the workspace; `None`: the sandbox is off, or this system has none.
    pub confiner: Option<Arc<dyn Confiner>>,
    /// Names a file of the plugin that is no longer as the user agreed to it; `None`: all are. Reads files.
    pub changed: ChangedFile,
}

/// The tools of a plugin. They live as long as the process: there is one list of tools for all sessions.
pub fn tools(folder: &Path, manifest: &Manifest, services: &ToolServices) -> Vec<&'static dyn Tool> {
    let make = |tool: &PluginTool| {
        let name = format!("{}_{}", manifest.name.replace('-', "_"), tool.name);
        let host = Host::default().confined(services.confiner.clone());
        let rpc = RpcTool {
            name: Box::leak(name.into_boxed_str()),
            tool: tool.clone(),
            folder: folder.to_owned(),
            host,
            services: services.clone(),
        };
        let tool: &'static dyn Tool = Box::leak(Box::new(rpc));
        tool
    };
    manifest.tools.iter().map(make).collect()
}

struct RpcTool {
    name: &'static str,
    tool: PluginTool,
    folder: PathBuf,
    host: Host,
    services: ToolServices,
}

fn target(args: &Value) -> String {
    let first = args.as_object().and_then(|fields| fields.values().find_map(Value::as_str));
    let line = first.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(TARGET).collect()
}

#[async_trait]
impl Tool for RpcTool {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: self.name,
            set: ToolSet::Run,
            grant: ToolGrant::All,
            starts_agents: false,
            touch: Touch::Execute,
            rule: RuleArgument::Text,
            aliases: &[],
            verb: ToolVerb::from("plugin"),
            target,
        }
    }

    fn spec(&self) -> ToolSpec {
        let schema = serde_json::to_value(&self.tool.schema).unwrap_or_else(|_| json!({ "type": "object" }));
        ToolSpec { name: self.name.into(), description: self.tool.description.clone(), schema }
    }

    /// What it touches is not known: it is asked about, or allowed by its name.
    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        match args {
            Value::Object(_) | Value::Null => Ok(Vec::new()),
            _ => Err(ToolError::Tell("the arguments must be an object".into())),
        }
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let changed = Arc::clone(&self.services.changed);
        let looked = tokio::task::spawn_blocking(move || changed()).await;
        if let Some(file) = looked.unwrap_or_else(|_| Some("one of its files".into())) {
            let text =
                format!("{file} of the plugin has changed since the user agreed to it: it was not run");
            return Err(ToolError::Tell(text));
        }
        let mut env = (*cx.child_env).clone();
        env.push(("TILLER_PLUGIN_DIR".into(), self.folder.display().to_string()));
        // It may write in the workspace, and starts beside its own files.
        let script = format!("cd \"$TILLER_PLUGIN_DIR\" || exit 1\n{}", self.tool.command);
        let launch = Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script],
            env,
            folder: cx.workspace.root.clone(),
        };
        let folder = tiller_protocol::names::written(&cx.workspace.root);
        let call = json!({ "id": 1, "tool": self.tool.name, "arguments": args, "folder": folder });
        let limit = Duration::from_secs(self.tool.timeout.clamp(1, 3600));
        let ran =
            run(&self.host, (launch, Vec::new()), format!("{call}\n").into_bytes(), limit, &cx.cancel).await;
        answer(&ran).map(ToolOutput::text)
    }
}

/// The result of a call.
fn answer(ran: &CommandRun) -> Result<String, ToolError> {
    match &ran.end {
        CommandEnd::Cancelled => return Err(ToolError::Interrupted(String::new())),
        CommandEnd::TimedOut => return Err(ToolError::TimedOut(String::new())),
        CommandEnd::TooMuch => return Err(ToolError::Tell("the plugin printed too much".into())),
        CommandEnd::NotStarted(why) => {
            return Err(ToolError::Tell(format!("the plugin could not be started: {why}")));
        }
        CommandEnd::Exit(_) => {}
    }
    let text = String::from_utf8_lossy(&ran.stdout);
    let replies = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let Some(reply) = replies.into_iter().find(|reply| reply["id"] == 1) else {
        let errors = tiller_tool::text::clean(&ran.stderr);
        let end = errors.floor_char_boundary(500);
        let code = if let CommandEnd::Exit(code) = ran.end { code } else { -1 };
        let text = format!("the plugin gave no answer (exit code {code}). {}", errors[..end].trim());
        return Err(ToolError::Tell(text));
    };
    let words = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match (reply.get("result"), reply.get("error")) {
        (Some(result), None) => Ok(words(result)),
        (_, Some(error)) => Err(ToolError::Tell(words(error))),
        (None, None) => Err(ToolError::Tell("the answer of the plugin has neither result nor error".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(end: CommandEnd, stdout: &str) -> CommandRun {
        CommandRun { end, stdout: stdout.into(), stderr: b"sh: not found".to_vec(), took: Duration::ZERO }
    }

    #[test]
    fn the_answer_is_the_line_with_the_number_of_the_call() {
        let done = |stdout: &str| answer(&ran(CommandEnd::Exit(0), stdout));
        assert_eq!(done("log\n{\"id\":0}\n{\"id\":1,\"result\":\"x\"}\n").unwrap(), "x");
        assert_eq!(done("{\"id\":1,\"result\":{\"a\":2}}").unwrap(), "{\"a\":2}");
        for (stdout, said) in [
            ("{\"id\":1,\"error\":\"no\"}", "no"),
            ("{\"id\":1}", "neither"),
            ("", "exit code 0). sh: not found"),
            ("{\"id\":", "no answer"),
        ] {
            let Err(ToolError::Tell(text)) = done(stdout) else { panic!("{stdout}") };
            assert!(text.contains(said), "{stdout}: {text}");
        }
        assert!(matches!(answer(&ran(CommandEnd::TimedOut, "")), Err(ToolError::TimedOut(_))));
    }
}
