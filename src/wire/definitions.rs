//! Kinds of agents and what they are taught, with what the other rooms know of tools and rules.

use std::path::Path;

use tiller_config::Problem;
use tiller_config::agents::{Definitions, Known, ProjectFile};
use tiller_permit::trust::Brings;
use tiller_permit::{Effect, Rule, Source};
use tiller_protocol::Notice;

/// What the folder's files of agents and of what they are taught are called in [`Brings`].
const KINDS: [&str; 2] = ["agent", "skill"];

/// Reads them. Those of the folder only when it is trusted, in the form that was looked at. Blocks.
pub(crate) fn read(config: &Path, brings: &Brings, trusted: bool) -> (Definitions, Vec<Problem>) {
    let project: Vec<ProjectFile<'_>> = brings
        .found
        .iter()
        .filter(|f| trusted && !brings.too_much && KINDS.contains(&f.item.kind.as_str()))
        .map(|f| ProjectFile { path: &f.item.path, bytes: f.bytes.as_deref() })
        .collect();
    let tools: Vec<&str> = tiller_tool::registry::ALL.iter().map(|t| t.name()).collect();
    let rule = |text: &str| Rule::parse(Effect::Deny, Source::Agent, text).map(drop);
    let known = Known { tools: &tools, clis: Known::CLIS, rule: &rule };
    Definitions::load(config, &project, &known)
}

/// What is wrong in them, for the person.
pub(crate) fn told(problems: &[Problem]) -> Option<Notice> {
    let mut notice = Problem::notice(problems)?;
    notice.hints =
        vec!["A file with a mistake is left out as a whole; `tiller agents list` shows the rest.".into()];
    Some(notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_in_a_set() {
        for tool in tiller_tool::registry::ALL {
            assert!(tiller_config::agents::set_of(tool.name()).is_some(), "{} is in no set", tool.name());
        }
    }

    #[test]
    fn the_folders_agents_come_only_after_a_yes_and_as_they_were_then() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let agents = project.path().join(".tiller/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = |line: &str| format!("---\ndescription: ours\n{line}\n---\nDo it.\n");
        std::fs::write(agents.join("ours.md"), text("tools: [read]")).unwrap();
        std::fs::write(agents.join("wrong.md"), text("permissions: { deny: ['terminal(rm'] }")).unwrap();
        let brings = tiller_permit::trust::discover(project.path());
        std::fs::write(agents.join("ours.md"), text("tools: all")).unwrap();
        let (all, wrong) = read(home.path(), &brings, false);
        assert_eq!((all.get("ours"), wrong), (None, Vec::new()));
        let (all, wrong) = read(home.path(), &brings, true);
        assert_eq!(all.get("ours").unwrap().tools.grants("terminal"), Some(false));
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        let said = told(&wrong).unwrap().message;
        assert!(
            said.starts_with(".tiller/agents/wrong.md:3:23: 'terminal(rm' needs a closing bracket"),
            "{said}"
        );
    }
}
