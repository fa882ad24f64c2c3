//! Scenes of reviews, branches and sessions, and the tree that they show.

use tiller_protocol::compare::{Pair, Side};
use tiller_protocol::tree::{
    NodeKind, SessionTree, TreeHead, TreeLine, TreeMarks, TreeNode, TreeQuery, TreeReply, TreeSpawned,
    TreeTag,
};
use tiller_protocol::{AgentId, AgentState, Cost};

use super::answers::{CLIENT, MODEL, PROJECT, README, ago, entry, restored, session};
use super::scene::Scene;
use super::stage::Stage;
use super::story;
use crate::dialog::session::compare::Compare;
use crate::dialog::session::restore::Restore;

pub(super) const REVIEW: Scene = Scene::new("review", "Review of a turn's changes", review);
pub(super) const TREE: Scene = Scene::new("tree", "The tree of a session", tree);
pub(super) const SEARCH: Scene = Scene::new("search", "Search in sessions", search);
pub(super) const COMPARE: Scene = Scene::new("compare", "Two branches side by side", compare);
pub(super) const LIST: Scene = Scene::new("sessions", "List of sessions", list);
pub(super) const BRANCHES: Scene = Scene::new("branches", "List of branches", branches);
pub(super) const RESTORE: Scene = Scene::new("restore", "Restoring files and conversation", restore);

fn review(s: &mut Stage) {
    story::finished(s);
    s.act("review.open");
}

fn tree(s: &mut Stage) {
    story::finished(s);
    s.act("tree.open");
}

fn search(s: &mut Stage) {
    story::finished(s);
    s.act("search.open");
    s.write("retry");
    s.wait(500);
}

fn compare(s: &mut Stage) {
    story::finished(s);
    let branch = |name: &str| Side::Branch(name.into());
    s.push(Box::new(Compare::of(Pair { left: branch("branch-1f"), right: branch("main") })));
}

fn list(s: &mut Stage) {
    story::finished(s);
    s.act("sessions.open");
}

fn branches(s: &mut Stage) {
    story::finished(s);
    s.act("branches.open");
}

fn restore(s: &mut Stage) {
    story::finished(s);
    s.push(Box::new(Restore::branch("branch-1f".into(), "with a library".into(), entry(10))));
}

/// The nodes of the tree: parent, what it is, its first line.
const NODES: &[(Option<u32>, NodeKind, &str)] = &[
    (None, NodeKind::User, "Look at how the client retries"),
    (Some(0), NodeKind::Assistant, "The loop is in Client.get; the pause is computed in Client.wait."),
    (Some(1), NodeKind::User, "Make the retry logic honour Retry-After and add what is missing."),
    (Some(2), NodeKind::Assistant, "The header has two forms, and the client only reads the first one."),
    (Some(3), NodeKind::ToolResult, "src/client.py"),
    (Some(4), NodeKind::Checkpoint, "before the tests"),
    (Some(5), NodeKind::User, "also update the README"),
    (Some(6), NodeKind::Assistant, "The section on retries names both forms now."),
    (Some(1), NodeKind::User, "Try it with tenacity instead of our own loop"),
    (Some(8), NodeKind::Assistant, "tenacity can wait by a function of the response."),
    (Some(9), NodeKind::ToolResult, "python -m pytest -q"),
    (Some(5), NodeKind::User, "Only the tests first, please"),
    (Some(11), NodeKind::Assistant, "Three tests: the cap, a date, and what is not a time."),
    (Some(9), NodeKind::User, "Without the dependency, but in the same shape"),
    (Some(13), NodeKind::Assistant, "A small class with one method, tested on its own."),
    (Some(14), NodeKind::User, "as a decorator"),
    (Some(15), NodeKind::Assistant, "The decorator keeps the signature."),
    (Some(10), NodeKind::User, "Pin tenacity to 9"),
    (Some(17), NodeKind::Assistant, "Pinned in pyproject.toml."),
];

/// Sessions of agents that the second message started.
fn spawned() -> Vec<TreeSpawned> {
    let agent = |n: u128, title: &str, state, files| TreeSpawned {
        session: session(0x100 + n),
        node: 3,
        title: title.into(),
        agent: Some(AgentId(format!("main/a{n}"))),
        state: Some(state),
        time: Some(ago(30 - n as i64)),
        entries: 14,
        tokens: 64_500,
        cost: Some(Cost::from_usd(0.12)),
        files,
    };
    vec![agent(1, "date handling", AgentState::Done, 1), agent(2, "cap and back-off", AgentState::Failed, 0)]
}

/// Returns what the tree browser receives.
pub(super) fn tree_of(query: &TreeQuery) -> Option<TreeReply> {
    Some(match query {
        TreeQuery::Nodes { session: asked } => {
            let node = |(n, (parent, kind, _)): (usize, &(Option<u32>, NodeKind, &str))| {
                let reply = *kind == NodeKind::Assistant;
                TreeNode {
                    id: entry(n as u128),
                    seq: n as i64,
                    parent: *parent,
                    kind: *kind,
                    time: ago(40 - 2 * n as i64),
                    agent: 0,
                    model: reply.then_some(0),
                    tokens: if reply { 8_000 + 1_700 * n as u64 } else { 0 },
                    cost: reply.then(|| Cost::from_usd(0.04 + 0.013 * n as f64)),
                }
            };
            let head = |name: &str, label: &str, node, current| TreeHead {
                name: name.into(),
                label: label.into(),
                node: Some(node),
                archived: false,
                current,
                open_in: None,
            };
            TreeReply::Nodes {
                tree: std::sync::Arc::new(SessionTree {
                    session: asked.unwrap_or(session(1)),
                    title: "Honour Retry-After".into(),
                    project: PROJECT.into(),
                    agents: vec!["main".into()],
                    models: vec![MODEL.into()],
                    nodes: NODES.iter().enumerate().map(node).collect(),
                    heads: vec![
                        head("main", "", 7, true),
                        head("branch-1f", "with a library", 18, false),
                        head("branch-2c", "", 12, false),
                        head("branch-3a", "no dependency", 14, false),
                        head("branch-4e", "decorator", 16, false),
                    ],
                    tags: vec![TreeTag { name: "works".into(), node: 7 }],
                    spawned: spawned(),
                }),
            }
        }
        TreeQuery::Marks { session } => TreeReply::Marks {
            session: *session,
            marks: TreeMarks {
                files: vec![(2, 2), (4, 1), (6, 1), (8, 2)],
                failed: vec![10],
                within: Vec::new(),
            },
        },
        TreeQuery::Lines { entries } => TreeReply::Lines {
            lines: NODES
                .iter()
                .enumerate()
                .map(|(n, (_, kind, text))| TreeLine {
                    entry: entry(n as u128),
                    text: (*text).into(),
                    origin: None,
                    call: (*kind == NodeKind::ToolResult).then(|| tiller_protocol::tree::TreeCall {
                        name: if n == 4 { "edit_file".into() } else { "terminal".into() },
                        arguments: serde_json::json!({ "path": text, "command": text }),
                    }),
                })
                .filter(|line| entries.contains(&line.entry))
                .collect(),
        },
        TreeQuery::Preview { entry: asked } => {
            let at = (0..NODES.len()).find(|n| entry(*n as u128) == *asked)?;
            TreeReply::Preview {
                preview: Box::new(tiller_protocol::tree::EntryPreview {
                    entry: *asked,
                    text: NODES.get(at)?.2.into(),
                    cut: false,
                    files: vec![restored("src/client.py", CLIENT), restored("README.md", README)],
                    more: 0,
                    notes: Vec::new(),
                }),
            }
        }
        TreeQuery::Find { .. } => return None,
    })
}
