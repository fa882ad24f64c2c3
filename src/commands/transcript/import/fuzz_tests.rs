//! Hostile transcripts: each is a valid session afterwards, or none.

use std::sync::Arc;
use std::time::Duration;

use tiller_fuzz::drive::{Plan, drive};
use tiller_fuzz::{Outline, Target};
use tiller_permit::Redactor;
use tiller_store::ImportIds;

use super::tests::{CLAUDE, CODEX, PI, assert_valid, path, store};
use super::{format_of, ours, translate};

/// Cases of a quick run. `TILLER_FUZZ_CASES` asks for more.
const CASES: u64 = 150;

const TARGET: Target = Target { name: "import", words: &[WORDS], seeds, run };

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\n",
    "\n",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "\"type\":",
    "\"user\"",
    "\"assistant\"",
    "\"system\"",
    "\"summary\"",
    "\"message\":{",
    "\"role\":",
    "\"content\":",
    "\"content\":[{",
    "\"text\"",
    "\"text\":",
    "\"tool_use\"",
    "\"tool_result\"",
    "\"tool_use_id\":",
    "\"id\":",
    "\"uuid\":",
    "\"parentUuid\":",
    "\"parentId\":",
    "\"leafUuid\":",
    "\"isSidechain\":true",
    "\"isMeta\":true",
    "\"sessionId\":",
    "\"cwd\":",
    "\"/w\"",
    "\"timestamp\":",
    "\"2026-01-01T00:00:00Z\"",
    "\"name\":",
    "\"input\":{",
    "\"is_error\":true",
    "\"thinking\"",
    "\"signature\":",
    "\"usage\":{",
    "\"input_tokens\":",
    "\"model\":",
    "\"session_meta\"",
    "\"response_item\"",
    "\"event_msg\"",
    "\"payload\":{",
    "\"function_call\"",
    "\"function_call_output\"",
    "\"call_id\":",
    "\"arguments\":",
    "\"output\":",
    "\"compacted\"",
    "\"session\"",
    "\"version\":3",
    "\"toolCall\"",
    "\"toolResult\"",
    "\"toolCallId\":",
    "\"branch_summary\"",
    "\"compaction\"",
    "\"firstKeptEntryId\":",
    "\"label\"",
    "\"targetId\":",
    "\"a\"",
    "\"b\"",
    "\"\"",
    "\"é\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "{\"tiller\":",
    "password=correct-horse-battery",
];

fn seeds() -> Vec<Vec<u8>> {
    let whole = [CLAUDE, CODEX, PI].map(|t| t.as_bytes().to_vec());
    let mut all = whole.to_vec();
    // The beginning tells the format: each line with it.
    for text in [CLAUDE, CODEX, PI] {
        let head = text.lines().next().unwrap_or_default();
        all.extend(text.lines().skip(1).map(|l| format!("{head}\n{l}\n").into_bytes()));
    }
    all
}

fn run(data: &[u8]) -> u64 {
    let mut outline = Outline::default();
    outline.add(ours(data));
    let Some(format) = format_of(data) else { return outline.end() };
    let redactor = Arc::new(Redactor::new(["correct-horse-battery".to_owned()]));
    let (lines, report) = translate(format, data, "/here", &redactor);
    outline.add((format.name, lines.is_some(), report.broken.len().min(3)));
    outline.add(report.kept.keys().take(5).map(|k| k.len().min(12)).collect::<Vec<_>>());
    let Some(lines) = lines else { return outline.end() };
    assert!(!lines.contains("correct-horse-battery"), "a known secret is stored");
    let store = store();
    let came = store.transfer().import(&mut lines.as_bytes(), ImportIds::Keep).wait();
    let came = came.unwrap_or_else(|e| panic!("{e}\n{lines}"));
    outline.size(usize::try_from(came.entries).unwrap_or_default());
    let entries = path(&store, came.session, "main");
    assert_valid(&entries);
    // The same file again adds nothing.
    assert_eq!(translate(format, data, "/here", &redactor).0, Some(lines), "the same session each time");
    outline.end()
}

#[test]
fn any_transcript_becomes_a_valid_session_or_none() {
    let cases = std::env::var("TILLER_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let begin = seeds();
    let plan = Plan {
        cases: begin.len() as u64 + cases,
        seed: 5,
        failures: 5,
        smaller: Duration::from_secs(5),
        time: Duration::MAX,
    };
    let done = drive(&TARGET, begin, plan, |_, _| {});
    let slow = |f: &tiller_fuzz::drive::Failure| matches!(f, tiller_fuzz::drive::Failure::Slow(_));
    let wrong: Vec<String> = done
        .failures
        .iter()
        .filter(|(_, f)| !slow(f))
        .map(|(input, f)| format!("{f}\n{}", String::from_utf8_lossy(input)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(done.new.len() > 5, "the transcripts differ in what comes of them");
}
