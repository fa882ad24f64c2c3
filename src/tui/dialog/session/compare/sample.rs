//! A comparison with plausible content.

use tiller_protocol::compare::{Comparison, Pair, Side};

use super::Compare;

/// The dialog with plausible content, for the tests that visit all dialogs.
pub(crate) fn sample() -> Compare {
    use tiller_protocol::compare::{ComparedSide, SaidLine};
    let entry = tiller_protocol::EntryId(Default::default());
    let kind = tiller_protocol::ChangeKind::Modified;
    let changed = tiller_protocol::restore::StepFile::new("src/client.rs", kind);
    let side = |name: &str, word: &str, text: &str| ComparedSide {
        name: name.into(),
        entries: 4,
        usage: tiller_protocol::Usage { input: 1200, output: 340, ..Default::default() },
        cost: Some(tiller_protocol::Cost::from_usd(0.0123)),
        files: vec![changed.clone()],
        said: vec![
            SaidLine { entry, who: "you".into(), text: word.into() },
            SaidLine { entry, who: "agent".into(), text: text.into() },
        ],
        ..ComparedSide::default()
    };
    let diff = "@@ -1,3 +1,3 @@\n fn wait() {\n-    sleep(1)\n+    sleep(wait.min(limit))\n }\n";
    let file = tiller_protocol::RestoreFile {
        path: "src/client.rs".into(),
        kind: tiller_protocol::ChangeKind::Modified,
        added: 1,
        removed: 1,
        diff: diff.into(),
        conflict: None,
    };
    let compared = Comparison {
        base_line: "Make the client retry".into(),
        left: side("main", "Sleep a second", "It sleeps a second now."),
        right: side("by the header", "Honour Retry-After", "It waits as long as the server says."),
        files: vec![file],
        ..Comparison::default()
    };
    let branch = |name: &str| Side::Branch(name.into());
    let mut c = Compare::of(Pair { left: branch("main"), right: branch("branch-1f") });
    c.compared = Some(compared);
    c.choose_file();
    c
}
