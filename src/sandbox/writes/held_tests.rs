//! Changes of protected names that a person can keep.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use tiller_tool::shell::{HeldFile, HeldRelease};

use super::{Session, supervised};
use crate::writes::Judged;

impl Session {
    fn held(&self, judged: Judged) -> Vec<HeldFile> {
        judged.held.into_iter().map(|one| one.file(String::new(), &self.writes)).collect()
    }

    fn release(&self, file: &HeldFile) -> std::io::Result<()> {
        let writes: Arc<dyn HeldRelease> = Arc::clone(&self.writes) as Arc<dyn HeldRelease>;
        writes.release(file)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.work(name)).unwrap_or_default()
    }
}

/// Writes, in the order of their paths: a file of instructions, new and changed protected files, a link, one that was removed.
const SCRIPT: &str = "mkdir -p .vscode sub/.husky; echo tasks > .vscode/tasks.json; echo obey > AGENTS.md; \
                      ln -s AGENTS.md CLAUDE.md; echo registry > .npmrc; rm .envrc; \
                      printf '#!/bin/sh\\n' > sub/.husky/pre-commit; chmod +x sub/.husky/pre-commit";

#[test]
fn what_was_held_back_is_made_as_the_command_left_it() {
    for method in supervised() {
        let session = Session::new(method);
        for name in [".npmrc", ".envrc"] {
            std::fs::write(session.work(name), "mine").unwrap();
        }
        let (out, judged) = session.run(SCRIPT);
        assert!(out.status.success(), "{method:?}: {out:?}");
        assert_eq!(
            (session.text(".npmrc"), session.text(".envrc")),
            ("mine".into(), "mine".into()),
            "{method:?}"
        );
        assert!(
            !session.work("AGENTS.md").exists() && !session.work(".vscode/tasks.json").exists(),
            "{method:?}"
        );
        let held = session.held(judged);
        let names: Vec<_> = held
            .iter()
            .map(|file| (file.path.strip_prefix(session.work("")).unwrap().to_str().unwrap(), file.instructs))
            .collect();
        let expected = [
            (".envrc", false),
            (".npmrc", false),
            (".vscode/tasks.json", false),
            ("AGENTS.md", true),
            ("CLAUDE.md", true),
            ("sub/.husky/pre-commit", false),
        ];
        assert_eq!(names, expected, "{method:?}");
        for file in &held {
            session.release(file).unwrap();
        }
        assert!(!session.work(".envrc").exists(), "{method:?}");
        let texts = [".npmrc", ".vscode/tasks.json", "AGENTS.md"].map(|name| session.text(name));
        assert_eq!(texts, ["registry\n", "tasks\n", "obey\n"], "{method:?}");
        assert_eq!(session.work("CLAUDE.md").read_link().unwrap().to_str(), Some("AGENTS.md"), "{method:?}");
        let mode = session.work("sub/.husky/pre-commit").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{method:?}");
        // It may be there from now on, and go away and come again.
        let (out, judged) = session.run("mv AGENTS.md x; cp x AGENTS.md; : >> .npmrc");
        assert!(out.status.success() && judged.violations.is_empty(), "{method:?}: {out:?} {judged:?}");
        let (_, judged) = session.run("echo more >> AGENTS.md");
        assert_eq!(judged.held.len(), 1, "{method:?}: {judged:?}");
    }
}

#[test]
fn a_place_that_was_changed_since_is_left_alone() {
    for method in supervised() {
        let session = Session::new(method);
        let (_, judged) = session.run(
            "mkdir -p d .vscode; echo evil > d/AGENTS.md; echo evil > .npmrc; echo evil > .vscode/mcp.json",
        );
        let held = session.held(judged);
        assert_eq!(held.len(), 3, "{method:?}");
        std::fs::write(session.work(".npmrc"), "mine").unwrap();
        let outside = session.place.top.join("outside");
        for folder in ["d", ".vscode"] {
            let _ = std::fs::remove_dir_all(session.work(folder));
            symlink(&outside, session.work(folder)).unwrap();
        }
        for file in &held {
            assert!(session.release(file).is_err(), "{method:?}: {:?}", file.path);
        }
        assert_eq!(session.text(".npmrc"), "mine", "{method:?}");
        for name in ["AGENTS.md", "mcp.json"] {
            assert!(!outside.join(name).exists(), "{method:?}: {name}");
        }
    }
}

/// Tiller alone writes its folder, and what a link leads to elsewhere could be changed after the answer.
#[test]
fn what_no_question_can_show_stays_out() {
    for method in supervised() {
        let session = Session::new(method);
        let (_, judged) = session.run(
            "mkdir -p x .tiller; echo evil > x/tasks.json; ln -s x .vscode; ln -s x/tasks.json AGENTS.md; \
             ln -s /etc/hosts CLAUDE.md; ln x/tasks.json .envrc; mkfifo .npmrc; echo evil > .tiller/MEMORY.md",
        );
        assert!(judged.held.iter().all(|one| one.path.ends_with(".envrc")), "{method:?}: {:?}", judged.held);
        for name in [".vscode", "AGENTS.md", "CLAUDE.md", ".envrc", ".npmrc", ".tiller/MEMORY.md"] {
            assert!(session.work(name).symlink_metadata().is_err(), "{method:?}: {name}");
        }
    }
}

/// A link may go up to another protected name of the workspace, and by no other way.
#[test]
fn a_link_to_another_protected_name_is_held() {
    for method in supervised() {
        let session = Session::new(method);
        std::fs::write(session.work("AGENTS.md"), "mine").unwrap();
        let (out, judged) = session.run(
            "mkdir -p packages/a sub; ln -s sub way; cd packages/a; ln -s ../../AGENTS.md CLAUDE.md; \
             ln -s ./../../.npmrc .envrc; ln -s ../../../outside/AGENTS.md GEMINI.md; ln -s ../../README SKILL.md; \
             ln -s b/../../../AGENTS.md SOUL.md; ln -s ../../way/AGENTS.md HEARTBEAT.md; \
             ln -s ../../../work/AGENTS.md .npmrc; ln -s \"$PWD/../../AGENTS.md\" .goosehints",
        );
        assert!(out.status.success(), "{method:?}: {out:?}");
        let held = session.held(judged);
        let names: Vec<_> =
            held.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, [".envrc", "CLAUDE.md"], "{method:?}");
        for file in &held {
            session.release(file).unwrap();
        }
        assert_eq!(session.text("packages/a/CLAUDE.md"), "mine", "{method:?}");
        assert!(!session.work("packages/a/GEMINI.md").is_symlink(), "{method:?}");
    }
}

/// The question shows that something becomes a program, not that others may write it.
#[test]
fn rights_that_were_not_shown_are_not_given() {
    for method in supervised() {
        let session = Session::new(method);
        std::fs::write(session.work(".npmrc"), "mine").unwrap();
        std::fs::set_permissions(session.work(".npmrc"), PermissionsExt::from_mode(0o600)).unwrap();
        let (_, judged) = session.run("for f in .npmrc .envrc; do echo x > $f; chmod 777 $f; done");
        for file in &session.held(judged) {
            session.release(file).unwrap();
        }
        let mode = |name| session.work(name).metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(".npmrc"), mode(".envrc")), (0o711, 0o755), "{method:?}");
        let left = std::fs::read_dir(session.work("")).unwrap().flatten().map(|entry| entry.file_name());
        let left: Vec<_> =
            left.filter(|name| name.to_string_lossy().starts_with(super::super::TEMPORARY)).collect();
        assert!(left.is_empty(), "{method:?}: {left:?}");
    }
}

/// A program that asks by itself before it writes instructions, and one that does not.
#[test]
fn instructions_of_a_program_that_is_asked_are_its_own() {
    for method in supervised() {
        for asks in [false, true] {
            let mut session = Session::new(method);
            session.confined.policy.asks = asks;
            let (_, judged) = session.run("echo x > AGENTS.md; echo x > .npmrc");
            assert_eq!(session.work("AGENTS.md").exists(), asks, "{method:?}: {judged:?}");
            assert!(!session.work(".npmrc").exists(), "{method:?}");
        }
    }
}
