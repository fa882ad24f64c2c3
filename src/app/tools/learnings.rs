//! Learnings and rules of memory files: their tools, and what the engine gets.

use std::path::PathBuf;
use std::sync::Arc;

use tiller_config::schema::ProviderKinds;
use tiller_memory::Learnings;
use tiller_memory::rules::{Promotions, RuleBook, RuleFile, WriteTexts};
use tiller_memory::{LearningsSlot, learning_tools};
use tiller_permit::rules::rulefile::{with_rule, without_deny};
use tiller_permit::{Effect, RuleProblem};
use tiller_protocol::ToolCatalog;
use tiller_store::Store;
use tiller_tool::Registry;

use crate::app::Setup;

/// Adds the tools. They have no learnings until [`service`] gives them some.
pub(crate) fn add(registry: &mut Registry) -> LearningsSlot {
    let slot = LearningsSlot::default();
    learning_tools(&slot).into_iter().for_each(|tool| registry.push(tool));
    slot
}

/// The learnings of this person, with the rules of the memory files in use.
/// `reload`: reads the hooks of the settings again.
pub(crate) fn service(setup: &Setup, store: &Store, reload: Arc<dyn Fn() + Send + Sync>) -> Arc<Learnings> {
    let config = &setup.places.config;
    let tools = setup.tools.catalog();
    let (permissions, settings) = (crate::app::rules::file(config), config.join(tiller_config::FILE));
    let promotions = Promotions {
        permissions: RuleFile {
            file: permissions.display().to_string(),
            write: permission_writer(permissions, tools.clone()),
        },
        hooks: RuleFile {
            file: settings.display().to_string(),
            write: hook_writer(settings, setup.formats.kinds(), reload),
        },
    };
    let memory = Arc::clone(&setup.services.memory);
    let learnings = Learnings::new(store.clone(), Arc::clone(&setup.clock))
        .with_rules(RuleBook::new(Arc::clone(&memory), tools), Some(promotions))
        .finding_secrets(Arc::new(move |text: &str| memory.secret_in(text)));
    let learnings = Arc::new(learnings);
    // A process opens one database.
    let _ = setup.services.learnings.set(Arc::clone(&learnings));
    learnings
}

/// Adds deny rules to the person's file, or takes them out, without changing anything else in it.
fn permission_writer(path: PathBuf, tools: ToolCatalog) -> WriteTexts {
    Arc::new(move |patterns: &[&str], add| {
        crate::app::rules::change(&path, |old| {
            patterns.iter().try_fold(old.to_owned(), |text, pattern| {
                if add {
                    let with = with_rule(&text, Effect::Deny, pattern, &tools)?;
                    // A line of the user's own would go with what was written here.
                    if with == text {
                        let text = format!("'deny {pattern}' stands in the file already");
                        return Err(RuleProblem { line: 0, text });
                    }
                    Ok(with)
                } else {
                    without_deny(&text, pattern, &tools)
                }
            })
        })
    })
}

/// Adds hooks to the person's settings, or takes them out; from then on they are in force, or no longer.
fn hook_writer(path: PathBuf, kinds: ProviderKinds, reload: Arc<dyn Fn() + Send + Sync>) -> WriteTexts {
    Arc::new(move |tables: &[&str], add| {
        // A rule has one text of hooks.
        tables
            .iter()
            .try_for_each(|tables| tiller_config::set_tables(&path, tables, add, &kinds))
            .map_err(|e| format!("{}: {e}", path.display()))?;
        reload();
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tiller_protocol::PromotionKind;

    use super::*;

    fn promotions(folder: &Path) -> Promotions {
        let tools = tiller_tool::Registry::built_in().catalog();
        let kinds: ProviderKinds = ["demo"].into_iter().collect();
        let (permissions, settings) = (folder.join("permissions.yaml"), folder.join("config.toml"));
        let file = |path: &Path| path.display().to_string();
        Promotions {
            permissions: RuleFile { file: file(&permissions), write: permission_writer(permissions, tools) },
            hooks: RuleFile { file: file(&settings), write: hook_writer(settings, kinds, Arc::new(|| ())) },
        }
    }

    #[test]
    fn rules_of_two_processes_are_all_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let always = crate::app::rules::writer(
            dir.path().join("permissions.yaml"),
            tiller_tool::Registry::built_in().catalog(),
        );
        let promotions = promotions(dir.path());
        std::thread::scope(|scope| {
            scope.spawn(|| (0..20).for_each(|n| always(&format!("terminal(allowed{n}*)")).unwrap()));
            scope.spawn(|| {
                for n in 0..20 {
                    let pattern = format!("terminal(denied{n}*)");
                    promotions.write(PromotionKind::Permission, &pattern, &[]).unwrap();
                }
            });
        });
        let text = std::fs::read_to_string(dir.path().join("permissions.yaml")).unwrap();
        let count = |of: &str| text.lines().filter(|line| line.contains(of)).count();
        assert_eq!((count("terminal(allowed"), count("terminal(denied")), (20, 20), "{text}");
    }

    #[test]
    fn all_patterns_of_a_rule_are_written_or_none_and_none_twice() {
        let dir = tempfile::tempdir().unwrap();
        let promotions = promotions(dir.path());
        let text = || std::fs::read_to_string(dir.path().join("permissions.yaml")).unwrap_or_default();
        let both = "terminal(git push* main*)\nterminal(git push* prod*)";
        assert!(promotions.write(PromotionKind::Permission, "terminal(a*)\ntreminal(b*)", &[]).is_err());
        assert_eq!(text(), "");
        promotions.write(PromotionKind::Permission, both, &[]).unwrap();
        // What stands there already, from a hand or another time, is not taken over.
        for again in [both, "terminal(git push* prod*)"] {
            assert!(promotions.write(PromotionKind::Permission, again, &[]).is_err());
            promotions.write(PromotionKind::Permission, again, &[both]).unwrap();
            let mut lines: Vec<String> = text().lines().map(str::to_owned).collect();
            lines.sort();
            let rules = ["  - 'terminal(git push* main*)'", "  - 'terminal(git push* prod*)'", "deny:"];
            assert_eq!(lines, rules);
        }
        for _ in 0..2 {
            promotions.take_out(PromotionKind::Permission, both, &[]).unwrap();
            assert_eq!(text(), "");
        }
    }

    #[test]
    fn a_hook_that_stands_in_the_file_is_the_users_and_one_that_was_written_is_taken_out() {
        let dir = tempfile::tempdir().unwrap();
        let promotions = promotions(dir.path());
        let hook = "[[hooks.after-tool-call]]\nmatch = \"terminal(git push*)\"\ncommand = \"make docs\"";
        let text = || std::fs::read_to_string(dir.path().join("config.toml")).unwrap();
        promotions.write(PromotionKind::Hook, hook, &[]).unwrap();
        assert!(promotions.write(PromotionKind::Hook, hook, &[]).is_err());
        assert_eq!(text(), format!("{hook}\n"));
        // One that was changed since is in force, and is not taken out.
        let changed = hook.replace('"', "'");
        std::fs::write(dir.path().join("config.toml"), &changed).unwrap();
        assert!(promotions.take_out(PromotionKind::Hook, hook, &[]).is_err());
        std::fs::write(dir.path().join("config.toml"), format!("{hook}\n")).unwrap();
        for _ in 0..2 {
            promotions.take_out(PromotionKind::Hook, hook, &[]).unwrap();
            assert_eq!(text(), "");
        }
    }
}
