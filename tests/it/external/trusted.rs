//! X4, X18 with the real programs: a hook of the folder runs after the yes to it, and never before.

use tiller_external::Transport;

use super::{Bench, present};
use crate::agents::folder_trust::answer_trust;
use crate::common::{Place, wait};
use crate::screen::{quit, say};

/// Claude's hook runs without asking wherever its own screen would trust the folder. The canary after the yes shows
/// that the hook works.
#[test]
fn x18_a_hook_of_the_folder_runs_after_the_yes_only() {
    for (name, clis) in present(&["claude"], Transport::Headless) {
        let b = Bench::new(&clis);
        let mut place = Place::anthropic(&b.server);
        place.set("PATH", &b.path);
        place.set("HOME", &b.home.display().to_string());
        place.set("ANTHROPIC_BASE_URL", &b.server.url());
        let canary = b.home.join("canary");
        let command = format!("touch '{}'", canary.display());
        let hook = serde_json::json!({"hooks": [{"type": "command", "command": command}]});
        let settings = serde_json::json!({"hooks": {"SessionStart": [hook]}});
        place.file(".claude/settings.json", &settings.to_string());
        let mut term = place.term(&["--profile", "full"], 118, 25);
        term.wait_text("Type what you want done");
        let before = b.server.count();
        say(&mut term, &format!("/spawn @{name}:headless say hello"));
        term.wait("the question about the file", |s| {
            s.contains("Trust this folder?") && s.contains(".claude/settings.json")
        });
        answer_trust(&mut term, "\x1b");
        term.wait_text("was not started");
        assert!(!canary.exists() && b.server.count() == before, "{name} ran before the yes");
        say(&mut term, &format!("/spawn @{name}:headless say hello again"));
        answer_trust(&mut term, "t");
        wait("the hook", || canary.exists());
        wait("its request", || b.server.count() > before);
        assert_eq!(quit(&mut term), 0);
    }
}
