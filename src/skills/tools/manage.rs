//! `skill_manage`: creates, changes and deletes skills of the user and the project.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_config::schema::SkillApproval;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};
use tiller_tool::{Preview, Tool, ToolCx, ToolError, ToolOutput};

use crate::change::{Act, Editor, Plan, Request, Scope};
use crate::library::Library;
use crate::skill::FILE;
use crate::tools::record;

/// The tool.
pub(super) struct SkillManage {
    library: Library,
    editor: Editor,
    /// The differences that the user was shown, by call: what is written is exactly that.
    shown: Mutex<HashMap<String, String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    action: String,
    name: String,
    /// user or project
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    old: Option<String>,
    #[serde(default)]
    new: Option<String>,
}

impl SkillManage {
    pub(super) fn new(library: Library, editor: Editor) -> Self {
        Self { library, editor, shown: Mutex::default() }
    }

    fn request(args: &Value) -> Result<Request, ToolError> {
        let args: Args = super::read(args)?;
        let tell = |text: String| ToolError::Tell(text);
        let scope = match args.scope.as_deref().unwrap_or("user") {
            "user" => Scope::User,
            "project" => Scope::Project,
            other => {
                return Err(tell(format!("scope: `{}` is neither user nor project", other.escape_default())));
            }
        };
        let needs = |value: Option<String>, name: &str| {
            value.ok_or_else(|| tell(format!("{} needs `{name}`", args.action)))
        };
        let act = match args.action.as_str() {
            "create" => Act::Create(needs(args.content, "content")?),
            "edit" => Act::Edit(needs(args.content, "content")?),
            "patch" => Act::Patch { old: needs(args.old, "old")?, new: needs(args.new, "new")? },
            "delete" => Act::Delete,
            other => {
                let known = "create, edit, patch, delete";
                return Err(tell(format!("action: `{}` is none of {known}", other.escape_default())));
            }
        };
        Ok(Request { scope, name: args.name, file: args.file, act })
    }

    /// Notes what the user is shown.
    fn remember(&self, call: String, diff: String) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() >= SHOWN {
            shown.clear();
        }
        shown.insert(call, diff);
    }

    /// What the call would do now.
    async fn plan(&self, args: &Value) -> Result<Plan, ToolError> {
        let request = Self::request(args)?;
        let (editor, skills) = (self.editor.clone(), self.library.now());
        let planned = tokio::task::spawn_blocking(move || editor.plan(&request, &skills)).await;
        planned.map_err(|e| ToolError::Tell(e.to_string()))?.map_err(ToolError::Tell)
    }
}

/// When a change of a project's skill takes effect: its files are used as the user trusted them.
pub(super) const AFTER_TRUST: &str =
    "It takes effect in the next session, after the user has trusted the changed files of the project";

/// Differences that are remembered at most.
const SHOWN: usize = 100;

#[async_trait]
impl Tool for SkillManage {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "skill_manage",
            set: ToolSet::Edit,
            grant: ToolGrant::Main,
            starts_agents: false,
            touch: Touch::Write,
            rule: RuleArgument::Text,
            aliases: &[],
            verb: ToolVerb::Write,
            target: |args| format!("the skill {}", super::name(args)),
        }
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        super::spec::<Args>(self.name(), include_str!("manage.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let request = Self::request(args)?;
        match self.editor.approve() {
            SkillApproval::Never => {
                Err(ToolError::Tell("the user does not let agents write skills (skills.approve)".into()))
            }
            SkillApproval::Always | SkillApproval::Ask => {
                let what = format!(
                    "changes the skill {}, and with it what agents are told in later sessions",
                    request.name
                );
                // Where the place is not known, the call fails.
                let path = self.editor.file(&request).map(|path| path.display().to_string());
                Ok(vec![Access::Store { what, path }])
            }
        }
    }

    async fn ready(&self, args: &Value, _cx: &ToolCx, _show: bool) -> Result<(), ToolError> {
        self.plan(args).await.map(drop)
    }

    async fn preview(&self, args: &Value, cx: &ToolCx) -> Preview {
        let Ok(plan) = self.plan(args).await else { return Preview::default() };
        let diff = plan.diff();
        self.remember(key(args, cx), diff.clone());
        let (editor, library) = (self.editor.clone(), self.library.clone());
        let author = author(cx);
        let noted =
            tokio::task::spawn_blocking(move || record::notes(&editor, &library, &plan, &author)).await;
        Preview { diff: Some(diff), edit: editable(args), ..noted.unwrap_or_default() }
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let plan = self.plan(&args).await?;
        let agreed = self.shown.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(&args, cx));
        if agreed.is_some_and(|diff| diff != plan.diff()) {
            let why = "the skill has changed since the user saw the difference: read it again, and propose it again";
            return Err(ToolError::Tell(why.into()));
        }
        let by = author(cx);
        let (editor, library) = (self.editor.clone(), self.library.clone());
        let done = tokio::task::spawn_blocking(move || {
            let said = editor.apply(&plan, &by)?;
            editor.drop_draft(&plan.name, &by);
            let skills = library.reload();
            let said = match plan.scope {
                Scope::Project => format!("{said}. {AFTER_TRUST}"),
                Scope::User => said,
            };
            let flaw = skills.flaws().iter().find(|f| f.skill == plan.name && f.skipped);
            Ok::<_, String>(match flaw {
                Some(flaw) => format!("{said}, but it is not used: {}", flaw.problem),
                None => said,
            })
        });
        let said = done.await.map_err(|e| ToolError::Tell(e.to_string()))?.map_err(ToolError::Tell)?;
        Ok(ToolOutput::text(said))
    }
}

/// The call that writes the whole main file in place of what the call writes.
fn editable(args: &Value) -> Option<(Value, &'static str)> {
    let action = match args.get("action").and_then(Value::as_str)? {
        "create" => "create",
        "edit" | "patch" => "edit",
        _ => return None,
    };
    if args.get("file").and_then(Value::as_str).is_some_and(|file| file != FILE) {
        return None;
    }
    let mut args = args.as_object()?.clone();
    args.retain(|key, _| key != "old" && key != "new");
    args.insert("action".into(), action.into());
    args.insert("content".into(), Value::String(String::new()));
    Some((Value::Object(args), "content"))
}

/// Who proposes a change.
fn author(cx: &ToolCx) -> String {
    format!("{} in session {}", cx.agent, cx.session)
}

fn key(args: &Value, cx: &ToolCx) -> String {
    format!("{} {} {args}", cx.session, cx.agent)
}
