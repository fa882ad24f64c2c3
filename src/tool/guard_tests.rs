use async_trait::async_trait;
use serde_json::json;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::*;
use crate::testing::Bench;

/// Panics at the point that its argument names.
struct Faulty;

#[async_trait]
impl Tool for Faulty {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "faulty",
            set: ToolSet::Read,
            grant: ToolGrant::All,
            starts_agents: false,
            touch: Touch::Read,
            rule: RuleArgument::Text,
            aliases: &[],
            verb: ToolVerb::Other("faulty".into()),
            target: |_| String::new(),
        }
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "faulty".into(), description: "x".into(), schema: json!({}) }
    }
    fn access(&self, args: &Value, _: &ToolCx) -> Result<Vec<Access>, ToolError> {
        assert!(args["at"].as_u64() != Some(5), "while it declares");
        Ok(vec![Access::Free])
    }
    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let at = args["at"].as_u64().unwrap_or(99);
        if at == 0 {
            panic!("at the start");
        }
        tokio::task::yield_now().await;
        if at == 1 {
            let nothing: Option<u64> = args["none"].as_u64();
            nothing.unwrap();
        }
        if at == 2 {
            std::panic::panic_any(7u8);
        }
        if at == 3 {
            return blocking("faulty", || panic!("in a thread {}", 1)).await;
        }
        if at == 4 {
            // The lock is poisoned; every tool takes it over.
            let _held = cx.workspace.seen.lock();
            panic!("with a lock held");
        }
        Ok(ToolOutput::text("fine"))
    }
}

/// Points at which the tool can break.
const POINTS: u64 = 6;

/// Hostile names and content, through every tool that takes a path.
#[tokio::test]
async fn t4_no_control_byte_reaches_the_model() {
    let evil = "e\x1b]0;title\x07\x1b[2J\u{9b}31m\u{7f}\r";
    let b = Bench::new();
    b.file(evil, format!("{evil} needle\n\0"));
    b.file("text", format!("{evil} needle\n"));
    b.file(&format!("{evil}dir/x"), "needle");
    b.file("n.ipynb", json!({"cells": [{"cell_type": evil, "source": evil}]}).to_string());
    let patch = format!("*** Begin Patch\n*** Update File: {evil}\n-{evil}\n+x\n*** End Patch");
    let mut said = String::new();
    for tool in crate::Registry::built_in().iter() {
        for path in [evil, "text", "n.ipynb", ".", &format!("{evil}/none"), &format!("{evil}dir")] {
            for args in [
                json!({"path": path}),
                json!({"path": path, "pattern": "needle"}),
                json!({"path": path, "glob": "*"}),
                json!({"path": path, "content": evil}),
                json!({"path": path, "old": "needle", "new": evil}),
                json!({"path": path, "old": evil, "new": "x"}),
                json!({"patch": patch}),
                json!({"url": format!("http://{evil}/")}),
                json!({"question": evil, "choices": [evil]}),
                json!({"todos": [{"id": evil, "content": evil}]}),
                json!({evil: evil}),
            ] {
                // Commands are the shell's own tests.
                if tool.info().set != ToolSet::Run {
                    said.push_str(&b.say(tool, args).await);
                }
            }
        }
    }
    assert!(said.contains("needle") && said.contains('␛'));
    let bad: Vec<char> = said.chars().filter(|c| c.is_control() && *c != '\n' && *c != '\t').collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[tokio::test]
async fn t7_a_panic_becomes_an_error_result() {
    let bench = Bench::new();
    for at in 0..POINTS {
        let said = bench.say(&Faulty, json!({ "at": at })).await;
        assert!(said.starts_with("error: the tool failed internally (faulty)"), "{at}: {said}");
    }
    // The session goes on, also after a lock was poisoned.
    assert_eq!(bench.say(&Faulty, json!({})).await, "fine");
}

/// A folder that was moved, or replaced by another one, is not split between its old and its new place.
#[tokio::test]
async fn nothing_is_done_in_a_workspace_that_was_moved() {
    let b = Bench::new();
    b.file("a.txt", "text\n");
    let place = b.root.with_file_name("moved");
    let read = crate::Registry::built_in().iter().find(|tool| tool.name() == "read_file").unwrap();
    let write = crate::Registry::built_in().iter().find(|tool| tool.name() == "write_file").unwrap();
    assert!(b.say(read, json!({"path": "a.txt"})).await.contains("text"));
    std::fs::rename(&b.root, &place).unwrap();
    for replaced in [false, true] {
        if replaced {
            std::fs::create_dir(&b.root).unwrap();
        }
        for (tool, args) in
            [(read, json!({"path": "a.txt"})), (write, json!({"path": "new.txt", "content": "x"}))]
        {
            let said = b.say(tool, args).await;
            assert!(said.contains("was moved, removed or replaced"), "{said}");
        }
        assert!(!b.root.join("new.txt").exists() && !place.join("new.txt").exists());
    }
    std::fs::remove_dir(&b.root).unwrap();
    std::fs::rename(&place, &b.root).unwrap();
    assert!(b.say(read, json!({"path": "a.txt"})).await.contains("text"));
}
