//! What agent programs of other vendors report: ACP, and the records of their modes without a screen.

use std::collections::{HashMap, HashSet};

use tiller_external::AgentEvent;
use tiller_external::testing::{FORMATS, Reports};

use crate::{Outline, Target};

pub(super) const TARGET: Target =
    Target { name: "programs", words: &[super::words::JSON, WORDS], seeds, run };

const WORDS: &[&str] = &[
    "\"\"",
    "\"text\"",
    "\"assistant\"",
    "\"user\"",
    "\"result\"",
    "\"system\"",
    "\"subtype\":\"init\"",
    "\"message\":{",
    "\"content\":[{",
    "\"tool_result\"",
    "\"tool_use_id\":",
    "\"input\":{",
    "\"usage\":{",
    "\"total_cost_usd\":",
    "\"is_error\":true",
    "\"parent_tool_use_id\":",
    "\"item.completed\"",
    "\"item.started\"",
    "\"thread.started\"",
    "\"turn.completed\"",
    "\"turn.failed\"",
    "\"agent_message\"",
    "\"command_execution\"",
    "\"aggregated_output\":",
    "\"exit_code\":",
    "\"file_change\"",
    "\"changes\":[{",
    "\"path\":",
    "\"kind\":",
    "\"error\":",
    "\"step_start\"",
    "\"step_finish\"",
    "\"part\":{",
    "\"tool\":",
    "\"state\":{",
    "\"status\":",
    "\"completed\"",
    "\"failed\"",
    "\"pending\"",
    "\"tokens\":{",
    "\"cost\":",
    "\"init\"",
    "\"tool_id\":",
    "\"parameters\":{",
    "\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"update\":{",
    "\"sessionUpdate\":",
    "\"agent_message_chunk\"",
    "\"agent_thought_chunk\"",
    "\"tool_call\"",
    "\"tool_call_update\"",
    "\"plan\"",
    "\"usage_update\"",
    "\"toolCallId\":",
    "\"content\":{\"text\":",
    "\"entries\":[{",
    "\"used\":",
    "\"size\":",
    "\"amount\":",
    "\"currency\":\"USD\"",
    "\"rawInput\":{",
    "\"rawOutput\":",
    "\"locations\":[{",
    "\"title\":",
    "\"diff\"",
    "\"oldText\":",
    "\"newText\":",
    "\"messageId\":",
    "\"_meta\":{",
    "\"terminal_output_delta\":{\"data\":",
    "\"method\":\"session/request_permission\",\"params\":{\"toolCall\":{",
    "\"command\":",
    "\"file_path\":",
    "Tokens: 1.2k sent, 99999999999999999999k received.",
    "Applied edit to a.py",
    "> ",
    "\u{1b}[31m",
];

fn seeds() -> Vec<Vec<u8>> {
    let mut all = super::texts(&[
        include_str!("../../../src/external/headless/fixtures/aider.out"),
        include_str!("../../../src/external/headless/fixtures/claude.out"),
        include_str!("../../../src/external/headless/fixtures/codex.out"),
        include_str!("../../../src/external/headless/fixtures/gemini.out"),
        include_str!("../../../src/external/headless/fixtures/opencode.out"),
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"text\":\"a\"}}}}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"1\",\"title\":\"t\",\"kind\":\"edit\",\"rawInput\":{\"path\":\"a\"}}}}\n{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"1\",\"status\":\"completed\",\"content\":[{\"type\":\"diff\",\"path\":\"a\",\"newText\":\"b\"}]}}}\n",
    ]);
    // Single lines, which are recombined.
    let lines: Vec<Vec<u8>> =
        all.iter().flat_map(|t| t.split(|b| *b == b'\n').map(|l| [l, b"\n"].concat())).collect();
    all.extend(lines);
    all
}

fn run(data: &[u8]) -> u64 {
    let mut outline = Outline::default();
    for format in FORMATS {
        let mut reports = Reports::new(format);
        let (mut known, mut done) = (HashMap::new(), HashSet::new());
        let mut bytes = 0;
        for line in data.split(|b| *b == b'\n').take(200) {
            for event in reports.line(line) {
                outline.add(std::mem::discriminant(&event));
                bytes += check(format, &event, &mut known, &mut done);
            }
        }
        bytes += reports.text().len();
        // A program cannot make us keep much more than it sent.
        assert!(bytes <= 64 * data.len() + 65_536, "{format}: {bytes} bytes from {}", data.len());
        outline.add((known.len().min(3), done.len().min(3)));
    }
    outline.end()
}

/// Bytes of an event. A call ends once.
fn check(
    format: &str,
    event: &AgentEvent,
    known: &mut HashMap<String, usize>,
    done: &mut HashSet<String>,
) -> usize {
    match event {
        AgentEvent::Text(text) | AgentEvent::Thinking(text) | AgentEvent::Note(text) => text.len(),
        AgentEvent::Tool(tool) => {
            *known.entry(tool.id.clone()).or_default() += 1;
            assert!(tool.paths.len() <= 1000, "{format}: paths");
            tool.name.len() + tool.target.len()
        }
        AgentEvent::ToolProgress { text, .. } => text.len(),
        AgentEvent::ToolDone { id, output, .. } => {
            let first = done.insert(id.clone());
            assert!(first || format != "acp", "{format}: the call {id:?} ends twice");
            output.len()
        }
        AgentEvent::Plan(items) => {
            assert!(items.len() <= 200, "{format}: a plan");
            items.iter().map(|i| i.content.len()).sum()
        }
        _ => 0,
    }
}
