//! Permission rules: the person's file, the trusted project's file, flags.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tiller_config::ConfigError;
use tiller_config::schema::SkillApproval;
use tiller_engine::{AlwaysWriter, Permit};
use tiller_permit::rules::rulefile::RuleProblem;
use tiller_permit::{Effect, Policy, Roots, Rule, RuleSet, Source};
use tiller_protocol::{Notice, NoticeKind, ToolCatalog};

use crate::app::extensions::hooks;
use crate::app::{Setup, sandbox};

/// Path of the project's rule file in the project.
pub(super) const PROJECT: &str = ".tiller/permissions.yaml";

/// The person's rule file.
pub(crate) fn file(config: &Path) -> PathBuf {
    config.join("permissions.yaml")
}

/// The tool that writes skills.
const MANAGE: &str = "skill_manage";

/// Everything that decides about calls, and the errors in the files.
pub(super) fn permit(
    setup: &Setup,
    trusted: bool,
    [allow, ask, deny]: [&[String]; 3],
) -> Result<(Permit, Policy, Vec<Notice>), Notice> {
    let p = &setup.places;
    let own = vec![p.config.clone(), p.data.clone(), p.state.clone(), p.cache.clone()];
    let home = (setup.env)("HOME").map(PathBuf::from);
    let around = Arc::new(tiller_watch::GitSurroundings::new(setup.children()));
    let mut roots = Roots::new(&setup.project, home, own);
    roots.hook_files = hooks::files(setup).iter().map(|path| setup.project.join(path)).collect();
    let mut policy = Policy::new(roots, setup.tools.catalog()).within(around);
    policy.sandboxed = sandbox::confines_reading(setup);
    policy.writable = sandbox::caches(setup);
    let mut notices = Vec::new();
    let tools = policy.tools.clone();
    let user = file(&p.config);
    let stamp = stamp(&user);
    add(&mut policy.rules, std::fs::read_to_string(&user).ok(), Source::User, &user, &tools, &mut notices);
    if trusted {
        let name = PROJECT;
        let text = setup.folder_config.bytes(name).map(|b| String::from_utf8_lossy(b).into_owned());
        add(&mut policy.rules, text, Source::Project, Path::new(name), &tools, &mut notices);
    }
    let lists =
        [(Effect::Allow, allow, "--allow"), (Effect::Ask, ask, "ask"), (Effect::Deny, deny, "--deny")];
    for (effect, list, flag) in lists {
        for text in list {
            let rule = Rule::written(effect, Source::Session, text, &policy.tools).map_err(|why| {
                Notice::new(NoticeKind::Config, format!("{flag} '{text}' is not a rule: {why}"))
                    .hint("Write it as tool(argument), for example 'terminal(cargo test*)'.")
            })?;
            policy.rules.push(rule);
        }
    }
    // The setting holds in every mode, also where a mode allows what is not declared.
    let effect = match setup.config.config.skills.approve {
        SkillApproval::Always => Some(Effect::Allow),
        SkillApproval::Ask => Some(Effect::Ask),
        SkillApproval::Never => None,
    };
    if let Some(effect) = effect.filter(|_| policy.tools.contains(MANAGE)) {
        let rule = Rule::written(effect, Source::BuiltIn, MANAGE, &policy.tools);
        rule.into_iter().for_each(|rule| policy.rules.push(rule));
    }
    let permit =
        Permit::new(policy.clone(), writer(user.clone(), tools.clone())).live(reader(user, stamp, tools));
    Ok((permit, policy, notices))
}

/// Errors in the person's file.
pub(crate) fn problems(config: &Path, tools: &ToolCatalog) -> Vec<Notice> {
    let (user, mut notices) = (file(config), Vec::new());
    let text = std::fs::read_to_string(&user).ok();
    add(&mut RuleSet::default(), text, Source::User, &user, tools, &mut notices);
    notices
}

/// Inode, length and times of a file; cheap to read.
type FileStamp = Option<(u64, u64, i64, i64, i64)>;

fn stamp(path: &Path) -> FileStamp {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ctime_nsec()))
}

/// Reads the person's file when it changed since the last read. An invalid file (half written, perhaps) changes
/// nothing.
fn reader(path: PathBuf, seen: FileStamp, tools: ToolCatalog) -> tiller_engine::RulesReader {
    let seen = Mutex::new(seen);
    Arc::new(move || {
        let now = stamp(&path);
        {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == now {
                return None;
            }
            *seen = now;
        }
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(_) => return None,
        };
        let mut rules = RuleSet::default();
        let mut notices = Vec::new();
        if let Err(problem) = tiller_permit::rules::rulefile::load(&text, Source::User, &tools) {
            let notice = Notice::new(NoticeKind::Config, format!("{}, {problem}", path.display()))
                .hint("Until it is corrected, the previous rules stay in use.");
            return Some((None, vec![notice]));
        }
        add(&mut rules, Some(text), Source::User, &path, &tools, &mut notices);
        Some((Some(rules.rules().to_vec()), notices))
    })
}

fn add(
    rules: &mut RuleSet,
    text: Option<String>,
    source: Source,
    path: &Path,
    tools: &ToolCatalog,
    notices: &mut Vec<Notice>,
) {
    let Some(text) = text else { return };
    let problems = match tiller_permit::rules::rulefile::load(&text, source, tools) {
        Ok(loaded) => {
            rules.add(loaded.rules, true);
            loaded.problems
        }
        Err(problem) => {
            // Its content is unknown, so everything that it may have denied needs approval.
            match RuleSet::ask_all(source, tools) {
                Ok(rule) => rules.push(rule),
                Err(why) => notices.push(Notice::new(NoticeKind::Internal, why)),
            }
            vec![problem]
        }
    };
    for p in problems {
        notices.push(
            Notice::new(NoticeKind::Config, format!("{}, {p}", path.display()))
                .hint("Until it is corrected, calls that the rule covers ask."),
        );
    }
}

/// Adds a rule to the person's file without changing anything else in it.
pub(crate) fn writer(path: PathBuf, tools: ToolCatalog) -> AlwaysWriter {
    Arc::new(move |pattern| {
        change(&path, |old| tiller_permit::rules::rulefile::with_allow(old, pattern, &tools))
    })
}

/// Changes the person's file. `change` returns the new text, or the old one to leave the file as it is.
///
/// # Errors
/// A sentence; the file is then as it was.
pub(crate) fn change(
    path: &Path,
    change: impl Fn(&str) -> Result<String, RuleProblem>,
) -> Result<(), String> {
    let changed = tiller_config::change_private(path, |old| {
        let refused = |e: RuleProblem| ConfigError::Refused(format!("{}, {e}", path.display()));
        Ok(Some(change(old).map_err(refused)?).filter(|new| new != old))
    });
    changed.map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_persons_file_is_read_again_when_it_changed() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("permissions.yaml");
        let read = reader(path.clone(), stamp(&path), tiller_tool::Registry::built_in().catalog());
        assert!(read().is_none(), "there is none");
        std::fs::write(&path, "deny:\n  - read_file(.env)\n").unwrap();
        let (rules, wrong) = read().unwrap();
        assert_eq!((rules.unwrap().len(), wrong.len()), (1, 0));
        assert!(read().is_none(), "it is as it was");
        std::fs::write(&path, "deny: [\n").unwrap();
        let (rules, wrong) = read().unwrap();
        assert!(rules.is_none() && wrong[0].message.contains("line 1"), "{wrong:?}");
        assert!(wrong[0].hints[0].contains("previous rules"), "{wrong:?}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read().unwrap().0.unwrap().len(), 0, "without a file there are no rules");
    }
}
