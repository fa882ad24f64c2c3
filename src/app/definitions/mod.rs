//! Kinds of agents, checked with the knowledge of tools and rules from other rooms.

pub(crate) mod mcp;
pub(crate) mod program_sandbox;
pub(crate) mod programs;
pub(crate) mod skills;
pub(crate) mod workflows;

use tiller_config::agents::{DefinitionContext, Definitions, ProjectFile};
use tiller_config::{Places, Problem};
use tiller_permit::trust::FolderConfig;
use tiller_permit::{Effect, Rule, Source};
use tiller_protocol::{Notice, ToolCatalog, TrustKind};

/// Reads them. Those of the folder only when it is trusted, in the form that was shown. `tools`: those that they may
/// name. Blocks.
pub(crate) fn read(
    places: &Places,
    folder_config: &FolderConfig,
    trusted: bool,
    tools: &ToolCatalog,
) -> (Definitions, Vec<Problem>) {
    let project: Vec<ProjectFile<'_>> = folder_config
        .found
        .iter()
        .filter(|f| trusted && !folder_config.too_much && f.item.kind == TrustKind::Agent)
        .map(|f| ProjectFile { path: &f.item.path, bytes: f.bytes.as_deref() })
        .collect();
    let rule = |text: &str| Rule::written(Effect::Deny, Source::Agent, text, tools).map(drop);
    let known = DefinitionContext { tools, clis: DefinitionContext::CLIS, rule: &rule };
    Definitions::load_with(&places.config, &places.plugins, &project, &known)
}

/// Errors in them, for the person.
pub(crate) fn problem_notice(problems: &[Problem]) -> Option<Notice> {
    let mut notice = Problem::notice(problems)?;
    notice.hints =
        vec!["A file with an error is not used, nor is the agent that it replaces; `tiller agents list` shows the others.".into()];
    Some(notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(config: &std::path::Path) -> Places {
        let path = config.to_owned();
        Places {
            config: path.clone(),
            data: path.clone(),
            state: path.clone(),
            cache: path,
            plugins: Vec::new(),
        }
    }

    fn tools() -> ToolCatalog {
        tiller_tool::Registry::built_in().catalog()
    }

    #[test]
    fn a_rule_of_an_agent_about_a_tool_that_is_not_there_is_an_error() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let agents = home.path().join("agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = "---\ndescription: mine\npermissions: { deny: ['read(.env, &tools())'] }\n---\nDo it.\n";
        std::fs::write(agents.join("mine.md"), text).unwrap();
        let folder_config = tiller_permit::trust::discover(project.path(), &tools());
        let (all, wrong) = read(&places(home.path()), &folder_config, false, &tools());
        assert!(all.get("mine").is_none() && wrong.len() == 1, "{wrong:?}");
        let said = problem_notice(&wrong).unwrap().message;
        assert!(said.contains("there is no tool 'read'; did you mean 'read_file'?"), "{said}");
    }

    #[test]
    fn the_folders_agents_come_only_after_a_yes_and_as_they_were_then() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let agents = project.path().join(".tiller/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = |line: &str| format!("---\ndescription: ours\n{line}\n---\nDo it.\n");
        std::fs::write(agents.join("ours.md"), text("tools: [read]")).unwrap();
        std::fs::write(agents.join("wrong.md"), text("permissions: { deny: ['terminal(rm'] }")).unwrap();
        let folder_config = tiller_permit::trust::discover(project.path(), &tools());
        std::fs::write(agents.join("ours.md"), text("tools: all")).unwrap();
        let (all, wrong) = read(&places(home.path()), &folder_config, false, &tools());
        assert_eq!((all.get("ours"), wrong), (None, Vec::new()));
        let (all, wrong) = read(&places(home.path()), &folder_config, true, &tools());
        assert_eq!(all.get("ours").unwrap().tools.grants("terminal"), Some(false));
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        let said = problem_notice(&wrong).unwrap().message;
        assert!(
            said.starts_with(".tiller/agents/wrong.md:3:23: 'terminal(rm' needs a closing parenthesis"),
            "{said}"
        );
    }
}
