//! The tools for skills, and for proposals about the agent itself.

use std::sync::Arc;

use tiller_config::Places;
use tiller_config::schema::SkillApproval;
use tiller_memory::screen::{FindSecret, Finding, FindingKind, find};
use tiller_permit::Redactor;
use tiller_protocol::Clock;
use tiller_skills::change::{Editor, EditorSettings};
use tiller_skills::{Library, tools};
use tiller_tool::Registry;

/// Adds the tool by which agents propose changes of SOUL.md and their own definitions.
pub(crate) fn add_proposals(
    registry: &mut Registry,
    places: &Places,
    project: &std::path::Path,
    redactor: &Arc<Redactor>,
) {
    let redactor = Arc::clone(redactor);
    registry.push(tiller_memory::proposal_tool(tiller_memory::ProposalSettings {
        config: places.config.clone(),
        project: project.to_owned(),
        screen: Arc::new(move |content| refused(content, &redactor)),
    }));
}

/// Adds the tools over these skills.
pub(crate) fn add(registry: &mut Registry, library: &Library, editor: &Editor) {
    library.edit_with(editor.clone());
    tools(library, editor).into_iter().for_each(|tool| registry.push(tool));
}

/// What changes the skills of the user and of the project in `project`.
pub(crate) fn editor(
    places: &Places,
    project: &std::path::Path,
    approve: SkillApproval,
    redactor: &Arc<Redactor>,
    clock: &Arc<dyn Clock>,
) -> Editor {
    let redactor = Arc::clone(redactor);
    Editor::new(EditorSettings {
        user: places.config.join("skills"),
        project: Some(project.join(".tiller/skills")),
        versions: places.data.join("skill-versions"),
        drafts: Some(places.cache.join("skill-drafts")),
        approve,
        screen: Arc::new(move |content| refused(content, &redactor)),
        clock: Arc::clone(clock),
        step: None,
    })
}

/// Why a text may not become part of a skill, or of what an agent is.
fn refused(content: &str, redactor: &Arc<Redactor>) -> Option<String> {
    let redactor = Arc::clone(redactor);
    let secret: FindSecret = Arc::new(move |text: &str| redactor.secrets(text).first().map(|s| s.name));
    // The person reads the difference before it is written: what a skill says is for the person to judge.
    let found = find(content, &[FindingKind::Hidden, FindingKind::Secret], &secret)?;
    Some(match found {
        Finding::Secret(_) => format!("it {found}; name the variable that holds it instead"),
        _ => format!("it {found}; remove it"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_text_and_secrets_are_refused_and_plain_text_is_not() {
        let redactor = Arc::new(Redactor::new(["correct-horse-battery".to_owned()]));
        for (content, why) in [
            ("Run `cargo test`.\n\n\t- naïve 日本語 ✓\n", None),
            ("Use the variable API_KEY.", None),
            ("- ✔️ done 👩‍💻\n", None),
            ("hidden \u{202e}text", Some("invisible character")),
            ("hidden \u{200b}text", Some("invisible character")),
            ("tag \u{e0041}", Some("invisible character")),
            ("escape \u{1b}[2J", Some("invisible character")),
            ("password correct-horse-battery", Some("contains a secret")),
        ] {
            let said = refused(content, &redactor);
            assert_eq!(said.is_some(), why.is_some(), "{content:?}: {said:?}");
            assert!(why.is_none_or(|why| said.unwrap().contains(why)), "{content:?}");
        }
    }
}
