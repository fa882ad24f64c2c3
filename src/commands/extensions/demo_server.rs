//! `tiller demo-server`: the MCP server of `tiller demo`, on standard input and output. It keeps a list of issues in a file of
//! its folder, so that each call can be seen in the feed of changes.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use serde_json::{Value, json};
use tiller_protocol::{Notice, NoticeKind, lock};

use crate::commands::Exit;

/// The file with the issues: one line each, `- [ ] 1. Title`, or `- [x] 1. Title` for a closed one.
const FILE: &str = "ISSUES.md";
/// Longest title, in characters.
const TITLE: usize = 200;
/// Largest file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Serves until the client closes standard input.
///
/// # Errors
/// When the folder or the connection cannot be used.
pub(in crate::commands) fn run() -> Result<Exit, Notice> {
    let internal = |e: &dyn std::fmt::Display| Notice::new(NoticeKind::Internal, format!("{e}"));
    let folder = std::env::current_dir().map_err(|e| internal(&e))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| internal(&e))?.block_on(async {
        let server = IssueServer { file: folder.join(FILE), one: Mutex::default() };
        let running = server.serve(rmcp::transport::stdio()).await.map_err(|e| internal(&e))?;
        running.waiting().await.map_err(|e| internal(&e))
    })?;
    Ok(Exit::Done)
}

/// The server.
struct IssueServer {
    file: PathBuf,
    /// Held while the file is read and written.
    one: Mutex<()>,
}

/// One issue.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Issue {
    number: usize,
    title: String,
    open: bool,
}

impl Issue {
    /// Reads a line of the file; `None`: it is another kind of line.
    fn read(line: &str) -> Option<Self> {
        let (open, rest) = match line.strip_prefix("- [ ] ") {
            Some(rest) => (true, rest),
            None => (false, line.strip_prefix("- [x] ")?),
        };
        let (number, title) = rest.split_once(". ")?;
        Some(Self { number: number.parse().ok()?, title: title.to_owned(), open })
    }

    fn line(&self) -> String {
        format!("- [{}] {}. {}", if self.open { ' ' } else { 'x' }, self.number, self.title)
    }
}

impl IssueServer {
    /// The text of the file; empty where there is none.
    fn text(&self) -> Result<String, String> {
        match std::fs::symlink_metadata(&self.file) {
            Ok(meta) if meta.is_file() && meta.len() <= LARGEST => {
                std::fs::read_to_string(&self.file).map_err(|e| format!("{FILE} cannot be read: {e}"))
            }
            Ok(_) => Err(format!("{FILE} is not a regular file, or is larger than 1 MiB")),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(e) => Err(format!("{FILE} cannot be read: {e}")),
        }
    }

    /// What a call returns; `Err`: why it failed, for the model.
    fn call(&self, tool: &str, arguments: &JsonObject) -> Result<String, String> {
        let _one = lock(&self.one);
        let text = self.text()?;
        let issues = text.lines().filter_map(Issue::read);
        match tool {
            "list_issues" => {
                let all = arguments.get("closed").and_then(Value::as_bool) == Some(true);
                let lines: Vec<String> = issues.filter(|i| all || i.open).map(|i| i.line()).collect();
                Ok(if lines.is_empty() { "There are no open issues.".into() } else { lines.join("\n") })
            }
            "add_issue" => {
                let title = arguments.get("title").and_then(Value::as_str).unwrap_or_default();
                let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                if title.is_empty() || title.chars().count() > TITLE {
                    return Err(format!("title must have 1 to {TITLE} characters"));
                }
                let number = issues.map(|i| i.number).max().unwrap_or_default().saturating_add(1);
                let issue = Issue { number, title, open: true };
                let head = if text.is_empty() { "# Issues\n\n" } else { "" };
                let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                replace(&self.file, &format!("{text}{end}{head}{}\n", issue.line()))?;
                Ok(format!("Issue {number} was added to {FILE}."))
            }
            "close_issue" => {
                let number = arguments.get("number").and_then(Value::as_u64);
                let open = issues.filter(|i| i.open).find(|i| u64::try_from(i.number).ok() == number);
                let Some(issue) = open else {
                    return Err("there is no open issue with this number; list_issues shows them".into());
                };
                let closed = Issue { open: false, ..issue.clone() };
                let lines = text.lines().map(|line| match Issue::read(line) {
                    Some(read) if read == issue => closed.line() + "\n",
                    _ => format!("{line}\n"),
                });
                replace(&self.file, &lines.collect::<String>())?;
                Ok(format!("Issue {} is closed.", issue.number))
            }
            _ => Err(format!("there is no tool {}", tool.escape_default())),
        }
    }
}

/// Replaces the file as a whole.
fn replace(file: &Path, text: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{FILE} cannot be written: {e}");
    let new = file.with_extension("md.new");
    std::fs::write(&new, text).map_err(failed)?;
    std::fs::rename(&new, file).map_err(failed)
}

/// `schema`: of the arguments, an object.
fn tool(name: &'static str, description: &'static str, schema: Value, hints: ToolAnnotations) -> Tool {
    Tool::new(name, description, schema.as_object().cloned().unwrap_or_default()).with_annotations(hints)
}

fn tools() -> Vec<Tool> {
    let hints = ToolAnnotations::new;
    vec![
        tool(
            "list_issues",
            "Lists the open issues of this project.",
            json!({"type": "object", "properties": {"closed": {"type": "boolean", "description": "The closed ones, too"}}}),
            hints().read_only(true),
        ),
        tool(
            "add_issue",
            "Adds an issue to the list of this project.",
            json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}),
            hints().read_only(false).destructive(false),
        ),
        tool(
            "close_issue",
            "Closes an issue.",
            json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}),
            hints().read_only(false).destructive(false),
        ),
    ]
}

impl ServerHandler for IssueServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("issues", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let result = match self.call(&request.name, &request.arguments.unwrap_or_default()) {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        };
        Ok(result.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_are_added_listed_and_closed_and_other_lines_stay() {
        let folder = tempfile::tempdir().unwrap();
        let server = IssueServer { file: folder.path().join(FILE), one: Mutex::default() };
        let call = |tool: &str, arguments: Value| server.call(tool, arguments.as_object().unwrap());
        assert_eq!(call("list_issues", json!({})).unwrap(), "There are no open issues.");
        assert!(call("add_issue", json!({"title": "  "})).is_err());
        assert_eq!(
            call("add_issue", json!({"title": "div by\nzero"})).unwrap(),
            "Issue 1 was added to ISSUES.md."
        );
        std::fs::write(&server.file, server.text().unwrap() + "\nMine, without a line end").unwrap();
        call("add_issue", json!({"title": "mod"})).unwrap();
        assert_eq!(call("list_issues", json!({})).unwrap(), "- [ ] 1. div by zero\n- [ ] 2. mod");
        assert!(call("close_issue", json!({"number": 3})).unwrap_err().contains("list_issues"));
        call("close_issue", json!({"number": 1})).unwrap();
        assert_eq!(call("list_issues", json!({})).unwrap(), "- [ ] 2. mod");
        assert_eq!(
            call("list_issues", json!({"closed": true})).unwrap(),
            "- [x] 1. div by zero\n- [ ] 2. mod"
        );
        assert_eq!(
            server.text().unwrap(),
            "# Issues\n\n- [x] 1. div by zero\n\nMine, without a line end\n- [ ] 2. mod\n"
        );
        assert!(call("drop", json!({})).unwrap_err().contains("no tool drop"));
    }
}
