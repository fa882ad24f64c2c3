//! A browser with plausible content.

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::tree::{
    NodeKind, SessionTree, TreeHead, TreeLine, TreeMarks, TreeNode, TreeReply, TreeTag,
};
use tiller_protocol::{Cost, EntryId, ModelRef, SessionId, SessionSummary, Time};

use super::Browser;
use crate::app::effect::Token;

/// The dialog with plausible content, for the tests that visit all dialogs.
pub(crate) fn sample() -> Browser {
    let id = |n: u8| format!("{n:032x}").parse().unwrap_or(EntryId(Default::default()));
    let kinds = [NodeKind::User, NodeKind::Assistant, NodeKind::User, NodeKind::Checkpoint, NodeKind::User];
    let parents = [None, Some(0), Some(1), Some(2), Some(1)];
    let words = [
        "Make the retry logic honour Retry-After",
        "I look.",
        "no, use a queue",
        "queue works",
        "and a test",
    ];
    let node = |(n, (kind, parent)): (usize, (NodeKind, Option<u32>))| TreeNode {
        id: id(n as u8),
        seq: n as i64,
        parent,
        kind,
        time: Time(1_795_291_200_000),
        agent: 0,
        model: (kind == NodeKind::Assistant).then_some(0),
        tokens: if kind == NodeKind::Assistant { 12_345 } else { 0 },
        cost: (kind == NodeKind::Assistant).then_some(Cost(123_456)),
    };
    let head = |name: &str, label: &str, node, current| TreeHead {
        name: name.into(),
        label: label.into(),
        node: Some(node),
        archived: false,
        current,
        open_in: None,
    };
    let session = SessionId(Default::default());
    let tree = SessionTree {
        session,
        title: "retry work".into(),
        project: "/home/ann/api".into(),
        agents: vec!["main".into()],
        models: vec!["vendor/model-x".into()],
        nodes: kinds.into_iter().zip(parents).enumerate().map(node).collect(),
        heads: vec![head("main", "queue", 3, false), head("branch-1", "", 4, true)],
        tags: vec![TreeTag { name: "good".into(), node: 2 }],
        spawned: Vec::new(),
    };
    let summary = SessionSummary {
        id: session,
        title: "retry work".into(),
        project: "/home/ann/api".into(),
        created: Time(1_795_291_200_000),
        used: Time(1_795_291_200_000),
        entries: 5,
        model: ModelRef("vendor/model-x".into()),
        cost: Some(Cost(123_456)),
        archived: false,
        exec: false,
        open_in: None,
        interrupted: None,
        preview: String::new(),
        git_branch: String::new(),
    };
    let mut browser = Browser::of(Some(session));
    let list = ReplyEvent::SessionsReply { sessions: vec![summary] };
    let lines = words.iter().enumerate().map(|(n, text)| TreeLine {
        entry: id(n as u8),
        text: (*text).into(),
        origin: None,
        call: None,
    });
    let marks = TreeMarks { files: vec![(0, 3)], failed: Vec::new(), within: Vec::new() };
    let tree = [
        TreeReply::Nodes { tree: std::sync::Arc::new(tree) },
        TreeReply::Marks { session, marks },
        TreeReply::Lines { lines: lines.collect() },
    ];
    let _ = browser.answered(Token(1), &list);
    for reply in tree {
        let _ = browser.answered(Token(0), &ReplyEvent::TreeReply { reply });
    }
    browser
}
