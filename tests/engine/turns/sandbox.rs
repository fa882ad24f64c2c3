//! A command that runs without a question, in a sandbox that blocks it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tiller_engine::EngineConfig;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AskReply, Decision, Profile};
use tiller_tool::Workspace;
use tiller_tool::shell::{Confiner, Launch};

use crate::rig::*;
use crate::turns::questions::permission;

/// Gives what it confines a `cat` that fails as under a sandbox.
#[derive(Debug)]
struct Blocking(PathBuf);

impl Confiner for Blocking {
    fn confine(&self, mut launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        for (name, value) in &mut launch.env {
            if name == "PATH" {
                *value = format!("{}:{value}", self.0.display());
            }
        }
        launch
    }
}

fn blocking(place: &Place, profile: Profile) -> impl FnOnce(&mut EngineConfig) + use<> {
    let folder = place.tmp.path().join("blocked");
    std::fs::create_dir_all(&folder).unwrap();
    let cat = folder.join("cat");
    std::fs::write(&cat, "#!/bin/sh\necho \"cat: $1: Permission denied\" >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&cat, std::fs::Permissions::from_mode(0o755)).unwrap();
    let work = place.work.clone();
    move |parts| {
        parts.session.profile = Some(profile);
        let workspace = Workspace::new(&work).unwrap();
        parts.workspace = workspace.confine(Some(Arc::new(Blocking(folder))), None);
    }
}

fn cat(id: &str) -> Vec<Step> {
    calls(&[(id, "terminal", json!({"command": "cat a.txt"}))])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_command_is_asked_about_and_runs_outside_after_a_yes() {
    let place = Place::new();
    place.file("a.txt", "the content\n");
    let fake = Fake::new([cat("c1"), says("Read.")]);
    let mut rig = place.start_with(&fake, blocking(&place, Profile::Ask)).await;
    rig.submit("read");
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert_eq!(p.rule, "blocked by the sandbox");
    assert!(p.effects.iter().any(|effect| effect.contains("sandbox")), "{p:?}");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    let (_, output) = rig.tool_finished().await;
    assert_eq!(output.trim(), "the content");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_no_the_model_gets_the_failure_and_its_likely_cause() {
    let place = Place::new();
    place.file("a.txt", "the content\n");
    let fake = Fake::new([cat("c1"), says("I see.")]);
    let mut rig = place.start_with(&fake, blocking(&place, Profile::Ask)).await;
    rig.submit("read");
    let ask = rig.asked().await;
    let deny = Decision::Deny { comment: Some("not that file".into()) };
    rig.answer(&ask, AskReply::Permission { decision: deny, hash: permission(&ask).hash });
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("Permission denied") && output.contains("It ran in the sandbox"), "{output}");
    assert!(output.contains("not that file") && !output.contains("the content"), "{output}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
}

/// A mode that runs every command does not ask about this one, and one that runs none outside does not either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_mode_runs_it_outside_at_once_and_read_only_mode_never() {
    for (profile, content) in [(Profile::Full, true), (Profile::ReadOnly, false)] {
        let place = Place::new();
        place.file("a.txt", "the content\n");
        let fake = Fake::new([cat("c1"), says("Read.")]);
        let mut rig = place.start_with(&fake, blocking(&place, profile)).await;
        rig.submit("read");
        let (_, output) = rig.tool_finished().await;
        assert_eq!(output.contains("the content"), content, "{profile:?}: {output}");
        assert_eq!(rig.finished().await.0, TurnStatus::Done);
        assert!(!rig.kinds().contains(&"permission_asked".into()), "{profile:?}");
    }
}
