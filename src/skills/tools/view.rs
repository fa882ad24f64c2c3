//! `skill_view`: a skill, or one of its files.

use std::path::Path;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_config::agents::Origin;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput, output, text};

use crate::files::{SkillFiles, is_odd};
use crate::fill::{fill, missing};
use crate::library::Library;
use crate::load::Skills;
use crate::skill::{FILE, Skill, is_hidden};

/// Files of a skill that are named with it.
const NAMED: usize = 30;

/// The tool.
pub(super) struct SkillView(pub(super) Library);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[async_trait]
impl Tool for SkillView {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "skill_view",
            set: ToolSet::Read,
            grant: ToolGrant::All,
            starts_agents: false,
            touch: Touch::Read,
            rule: RuleArgument::Text,
            aliases: &["skill", "skills"],
            verb: ToolVerb::Read,
            target: |args| match args.get("file").and_then(Value::as_str) {
                Some(file) => format!("{file} of the skill {}", super::name(args)),
                None if super::name(args).is_empty() => "skills".into(),
                None => format!("the skill {}", super::name(args)),
            },
        }
    }

    fn spec(&self) -> ToolSpec {
        super::spec::<Args>(self.name(), include_str!("view.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        super::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = super::read(&args)?;
        let skills = self.0.now();
        let Some(name) = args.name.as_deref().map(str::trim).filter(|n| !n.is_empty()) else {
            return Ok(ToolOutput::text(output::bound(super::listed(&skills), cx)));
        };
        // A rule that forbids reading the skill's files holds here as well.
        let forbidden = cx.workspace.forbidden();
        let root = cx.workspace.root.clone();
        let allowed = move |skill: &Skill, file: &str| {
            let folder = match &skill.files {
                SkillFiles::Embedded(_) => return Ok(()),
                SkillFiles::Folder(folder) | SkillFiles::Pinned { folder, .. } => folder.clone(),
                SkillFiles::InMemory(_) => root.join(skill.file.parent().unwrap_or(&skill.file)),
            };
            match forbidden(&folder.join(file)) {
                Some(rule) => Err(format!("denied by the rule {rule}")),
                None => Ok(()),
            }
        };
        let (name, file, arguments) = (name.to_owned(), args.file, args.arguments.unwrap_or_default());
        let work = move || match file {
            None => {
                for skill in skills.with_required(&name)? {
                    allowed(&skill, FILE)?;
                }
                shown(&skills, &name, &arguments)
            }
            Some(file) => {
                let skill = skills.get(&name).ok_or_else(|| skills.no_such(&name))?;
                let file = file.strip_prefix("./").unwrap_or(&file);
                allowed(skill, file)?;
                let bytes = skill.files.read(file)?;
                if text::is_binary(&bytes) {
                    return Err(format!("`{file}` is not text"));
                }
                let source = source(skill);
                let (text, hidden) = without_hidden(&text::clean(&bytes));
                let hidden = match hidden {
                    0 => String::new(),
                    1 => "; 1 invisible character is left out".to_owned(),
                    n => format!("; {n} invisible characters are left out"),
                };
                Ok(format!("{file} of the skill {name} ({source}{hidden}):\n{text}"))
            }
        };
        let said = tokio::task::spawn_blocking(work).await;
        let said = said.map_err(|e| ToolError::Tell(e.to_string()))?.map_err(ToolError::Tell)?;
        let lines = said.lines().count();
        let measure = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        Ok(ToolOutput::text(output::bound(said, cx)).show(Display::Measure { text: measure }))
    }
}

/// A text without the characters that are not seen, and how many there were. A byte order mark is not counted.
fn without_hidden(text: &str) -> (String, usize) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (text.replace(is_hidden, ""), text.chars().filter(|c| is_hidden(*c)).count())
}

/// Where a skill is from, in words.
fn source(skill: &Skill) -> String {
    match skill.from {
        Origin::BuiltIn => "built in".into(),
        Origin::Project => format!("of the project, {}", plain(&skill.file)),
        Origin::User | Origin::Plugin => format!("{}, {}", skill.from.word(), plain(&skill.file)),
    }
}

/// A path that cannot end the tag that contains it.
fn plain(path: &Path) -> String {
    path.display().to_string().replace(is_odd, "?")
}

/// The line that names the parameters of a skill without a value; empty where each has one.
fn not_given(skill: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let marks: Vec<String> = names.iter().map(|name| format!("{{{{{name}}}}}")).collect();
    let words: Vec<String> = names.iter().map(|name| format!("{name}=VALUE")).collect();
    format!(
        "Not given, so they stand in the text below: {}. Take the values from the task, or ask the user; \
         skill_view of {skill} takes them as arguments \"{}\".\n",
        marks.join(", "),
        words.join(" ")
    )
}

/// A skill as it is loaded: what it requires first, with their sources, then its text with the arguments put in. Blocks.
///
/// # Errors
/// A sentence: there is no such skill, or its requirements cannot be met.
pub fn shown(skills: &Skills, name: &str, arguments: &str) -> Result<String, String> {
    let mut out = String::new();
    for skill in skills.with_required(name)? {
        let last = skill.name == name;
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str(&format!("<skill name=\"{}\" source=\"{}\">\n", skill.name, source(&skill)));
        let others = skill.files.named(|path| path != FILE, NAMED);
        if !others.is_empty() {
            out.push_str(&format!("Files for skill_view: {others}\n"));
            if let Some(folder) = skill.files.folder() {
                out.push_str(&format!("Folder: {}\n", plain(folder)));
            }
        }
        if !skill.allowed_tools.is_empty() {
            let tools = skill.allowed_tools.join(", ");
            out.push_str(&format!(
                "Only these tools run while its task lasts: {tools}. This grants none: your permissions stay as they are.\n"
            ));
        }
        let given = if last { arguments } else { "" };
        out.push_str(&not_given(&skill.name, &missing(&skill, given)));
        let body = fill(&skill.body, &skill.params, given);
        // What closes the mark must not come from the text itself.
        let body = text::clean(body.as_bytes()).replace("</skill", "<\\/skill");
        out.push_str(&body);
        out.push_str("\n</skill>");
    }
    out.push('\n');
    Ok(out)
}
