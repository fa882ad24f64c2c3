//! Permission rules: the person's file, the trusted project's file, flags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_engine::{AlwaysWriter, Permit};
use tiller_permit::{Effect, Policy, Roots, Rule, RuleSet, Source};
use tiller_protocol::{Notice, NoticeKind};

use super::Setup;

/// The project's file of rules, in the folder.
pub(super) const PROJECT: &str = ".tiller/permissions.yaml";

/// The person's file of rules.
pub(super) fn file(config: &Path) -> PathBuf {
    config.join("permissions.yaml")
}

/// Everything that judges calls, and what was wrong in the files.
pub(super) fn permit(
    setup: &Setup,
    trusted: bool,
    allow: &[String],
    deny: &[String],
) -> Result<(Permit, Policy, Vec<Notice>), Notice> {
    let p = &setup.places;
    let own = vec![p.config.clone(), p.data.clone(), p.state.clone(), p.cache.clone()];
    let home = (setup.env)("HOME").map(PathBuf::from);
    let mut policy = Policy::new(Roots::new(&setup.project, home, own));
    let mut notices = Vec::new();
    let user = file(&p.config);
    add(&mut policy.rules, std::fs::read_to_string(&user).ok(), Source::User, &user, true, &mut notices);
    if trusted {
        let name = PROJECT;
        let text = setup.brings.bytes(name).map(|b| String::from_utf8_lossy(b).into_owned());
        add(&mut policy.rules, text, Source::Project, Path::new(name), true, &mut notices);
    }
    for (effect, list, flag) in [(Effect::Allow, allow, "--allow"), (Effect::Deny, deny, "--deny")] {
        for text in list {
            let rule = Rule::parse(effect, Source::Session, text).map_err(|why| {
                Notice::new(NoticeKind::Config, format!("{flag} '{text}' is not a rule: {why}"))
                    .hint("Write it as tool(argument), for instance 'terminal(cargo test*)'.")
            })?;
            policy.rules.push(rule);
        }
    }
    Ok((Permit::new(policy.clone(), writer(user)), policy, notices))
}

fn add(
    rules: &mut RuleSet,
    text: Option<String>,
    source: Source,
    path: &Path,
    trusted: bool,
    notices: &mut Vec<Notice>,
) {
    let Some(text) = text else { return };
    let problems = match tiller_permit::rulefile::load(&text, source) {
        Ok(loaded) => {
            rules.add(loaded.rules, trusted);
            loaded.problems
        }
        Err(problem) => {
            // Nothing of it is known, so everything that it may have forbidden asks.
            match RuleSet::ask_all(source) {
                Ok(rule) => rules.push(rule),
                Err(why) => notices.push(Notice::new(NoticeKind::Internal, why)),
            }
            vec![problem]
        }
    };
    for p in problems {
        notices.push(
            Notice::new(NoticeKind::Config, format!("{}, {p}", path.display()))
                .hint("Until it is mended, what the rule was about asks."),
        );
    }
}

/// Adds a rule to the person's file; everything else in it stays as it is.
fn writer(path: PathBuf) -> AlwaysWriter {
    Arc::new(move |pattern| {
        let old = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(format!("{} could not be read: {e}", path.display())),
        };
        let new = tiller_permit::rulefile::with_allow(&old, pattern)
            .map_err(|e| format!("{}, {e}", path.display()))?;
        tiller_config::write_private(&path, &new).map_err(|e| e.to_string())
    })
}
