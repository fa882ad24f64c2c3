//! The tools for skills, and for proposals about the agent itself.

use std::sync::{Arc, PoisonError, RwLock};

use tiller_config::Places;
use tiller_config::schema::SkillApproval;
use tiller_memory::screen::{FindSecret, Finding, FindingKind, find};
use tiller_permit::Redactor;
use tiller_protocol::Clock;
use tiller_skills::change::{Editor, EditorSettings};
use tiller_skills::{Library, tools};
use tiller_tool::{Registry, Secrets};

/// Finds secrets in texts of agents. Tools are made before all secrets are known: they hold this, and it is replaced.
#[derive(Clone)]
pub(crate) struct SecretFinder(Arc<RwLock<FindSecret>>);

impl SecretFinder {
    /// With the secrets of the settings.
    pub(crate) fn new(redactor: &Arc<Redactor>) -> Self {
        Self(Arc::new(RwLock::new(find_secret(redactor))))
    }

    /// From now on finds what this masks.
    pub(crate) fn replace(&self, redactor: &Arc<Redactor>) {
        self.put(find_secret(redactor));
    }

    /// From now on uses this finder, which names secrets that come later too.
    pub(crate) fn open(&self, secrets: Secrets) {
        self.put(Arc::new(move |text: &str| secrets(text).first().map(|s| s.name)));
    }

    fn put(&self, find: FindSecret) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = find;
    }

    fn current(&self) -> FindSecret {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Names the kind of the first secret that a redactor finds in a text.
pub(crate) fn find_secret(redactor: &Arc<Redactor>) -> FindSecret {
    let redactor = Arc::clone(redactor);
    Arc::new(move |text: &str| redactor.secrets(text).first().map(|s| s.name))
}

/// Adds the tool by which agents propose changes of SOUL.md and their own definitions.
pub(crate) fn add_proposals(
    registry: &mut Registry,
    places: &Places,
    project: &std::path::Path,
    secrets: &SecretFinder,
) {
    let secrets = secrets.clone();
    registry.push(tiller_memory::proposal_tool(tiller_memory::ProposalSettings {
        config: places.config.clone(),
        project: project.to_owned(),
        screen: Arc::new(move |content| refused(content, &secrets)),
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
    secrets: &SecretFinder,
    clock: &Arc<dyn Clock>,
) -> Editor {
    let secrets = secrets.clone();
    Editor::new(EditorSettings {
        user: places.config.join("skills"),
        project: Some(project.join(".tiller/skills")),
        versions: places.data.join("skill-versions"),
        drafts: Some(places.cache.join("skill-drafts")),
        approve,
        screen: Arc::new(move |content| refused(content, &secrets)),
        clock: Arc::clone(clock),
        step: None,
    })
}

/// Why a text may not become part of a skill, or of what an agent is.
fn refused(content: &str, secrets: &SecretFinder) -> Option<String> {
    let secret = secrets.current();
    // The user reads the difference before it is written: what a skill says is for the user to judge.
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
        let secrets = SecretFinder::new(&Arc::new(Redactor::new(["correct-horse-battery".to_owned()])));
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
            let said = refused(content, &secrets);
            assert_eq!(said.is_some(), why.is_some(), "{content:?}: {said:?}");
            assert!(why.is_none_or(|why| said.unwrap().contains(why)), "{content:?}");
        }
    }

    #[test]
    fn a_secret_that_becomes_known_later_is_refused_by_tools_that_were_made_before() {
        let tmp = tempfile::tempdir().unwrap();
        let secrets = SecretFinder::new(&Arc::default());
        let home = |name: &str| (name == "TILLER_HOME").then(|| tmp.path().display().to_string());
        let places = Places::from_env(&home).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(tiller_protocol::SystemClock::default());
        let editor = editor(&places, tmp.path(), SkillApproval::Ask, &secrets, &clock);
        let text = "---\nname: login\ndescription: How we log in\n---\nUse swordfish-of-the-server.\n";
        let create = tiller_skills::change::Act::Create(text.to_owned());
        let scope = tiller_skills::change::Scope::User;
        let request = tiller_skills::change::Request { scope, name: "login".into(), file: None, act: create };
        let plan = || editor.plan(&request, &tiller_skills::Skills::default()).map(drop);
        assert_eq!(plan(), Ok(()));
        secrets.replace(&Arc::new(Redactor::new(["swordfish-of-the-server".to_owned()])));
        assert!(plan().unwrap_err().contains("secret"));
    }
}
