//! Row W14: text that a model reads masked and writes back is unchanged in the file, whatever tool it uses.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;
use tiller_permit::Redactor;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::mask::has_mask;
use tiller_provider::{ChatMessage, Request};

use crate::agents::delegation::{delegate, first, result};
use crate::rig::*;
use tiller_engine::EngineConfig;

/// The figure of row W14.
const SEEDED: usize = 200;
/// Files of the main agent; as many again are its child's.
const FILES: usize = 20;

fn masking(p: &mut EngineConfig) {
    let redactor = Arc::new(Redactor::default());
    let r = Arc::clone(&redactor);
    p.redaction.redact = Arc::new(move |t: &str| r.redact(t).into_owned());
    let workspace = tiller_tool::Workspace::new(&p.workspace.root).unwrap();
    p.workspace = workspace.mask(Arc::new(move |t: &str| redactor.secrets(t)));
}

fn file(name: &str, seed: u64) -> String {
    let lines = tiller_testkit::seeded(SEEDED, seed);
    let number: usize = name.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    let mut text = format!("# {name}\nHOST=h\n# begin\n");
    for s in lines.iter().skip(number).step_by(FILES) {
        writeln!(text, "{}", s.line).unwrap();
    }
    text + "# end\nPORT=1\n"
}

/// Texts of the results since the last reply, without the numbers of lines and what stands in brackets below.
fn results(r: &Request) -> Vec<String> {
    let since = r.messages.iter().rposition(|m| matches!(m, ChatMessage::Assistant { .. })).unwrap_or(0);
    r.messages[since..]
        .iter()
        .filter_map(|m| match m {
            ChatMessage::ToolResult { content, .. } => Some(tiller_engine::testing::text_of(content)),
            _ => None,
        })
        .map(|t| t.lines().filter_map(|l| l.split_once('\t')).map(|(_, l)| format!("{l}\n")).collect())
        .collect()
}

/// Reads all files, writes them whole, edits across all masks, patches with masks around: each with what it was shown.
fn work(r: &Request, prefix: &str, shown: &std::sync::Mutex<Vec<String>>) -> Option<Vec<Step>> {
    let name = |n: usize| format!("{prefix}{n}.env");
    let replies = r.messages.iter().filter(|m| matches!(m, ChatMessage::Assistant { .. })).count();
    let mut shown = shown.lock().unwrap();
    if replies == 1 {
        *shown = results(r);
        assert_eq!(shown.len(), FILES);
        assert!(shown.iter().all(|t| has_mask(t) && t.contains("# end")), "{shown:?}");
    }
    let middle = |t: &str| t[t.find("# begin").unwrap()..].to_owned();
    let args: Vec<(String, &str, serde_json::Value)> = (0..FILES)
        .map(|n| {
            let text = || shown[n].as_str();
            let (tool, args) = match replies {
                0 => ("read_file", json!({"path": name(n)})),
                1 => ("write_file", json!({"path": name(n), "content": text().replace("HOST=h", "HOST=written")})),
                2 => {
                    let old = middle(text());
                    let new = old.replace("PORT=1", "PORT=2").replace("# begin", "# begin\n# edited");
                    ("edit_file", json!({"path": name(n), "old": old, "new": new}))
                }
                _ => {
                    let lines = middle(text()).replace("PORT=1\n", "").replace("# begin\n", "");
                    let kept: String = lines.lines().map(|l| format!(" {l}\n")).collect();
                    let patch = format!(
                        "*** Begin Patch\n*** Update File: {}\n@@\n # edited\n{kept}-PORT=2\n+PORT=3\n*** End Patch",
                        name(n)
                    );
                    ("patch", json!({ "patch": patch }))
                }
            };
            (format!("{prefix}{replies}-{n}"), tool, args)
        })
        .collect();
    let list: Vec<(&str, &str, serde_json::Value)> =
        args.iter().map(|(id, tool, args)| (id.as_str(), *tool, args.clone())).collect();
    (replies < 4).then(|| calls(&list))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w14_two_hundred_masked_secrets_come_back_whole_from_write_edit_patch_and_delegate() {
    let place = Place::new();
    let of = |n: usize| [(format!("m{n}.env"), 0x5EED_0014), (format!("c{n}.env"), 0x5EED_0015)];
    for (name, seed) in (0..FILES).flat_map(of) {
        place.file(&name, &file(&name, seed));
    }
    let (mine, childs) = (std::sync::Mutex::new(Vec::new()), std::sync::Mutex::new(Vec::new()));
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" => match work(r, "m", &mine) {
            Some(steps) => steps,
            None if r.messages.iter().filter(|m| matches!(m, ChatMessage::Assistant { .. })).count() == 4 => {
                delegate(json!([{"goal": "child: keep the values"}]))
            }
            None => says("Done."),
        },
        _ => work(r, "c", &childs).unwrap_or_else(|| says("All kept.")),
    });
    let mut rig = place.start_with(&fake, masking).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!((status, text.as_str()), (TurnStatus::Done, "Done."));
    let mut lost = Vec::new();
    for (name, seed) in (0..FILES).flat_map(of) {
        let want = file(&name, seed).replace("HOST=h", "HOST=written").replace("PORT=1", "PORT=3");
        let want = want.replace("# begin\n", "# begin\n# edited\n");
        if place.read(&name) != want {
            lost.push(format!("{name}:\n{}\ninstead of\n{want}", place.read(&name)));
        }
    }
    let requests = fake.requests.lock().unwrap().clone();
    let told = |r: &Request| result(r).filter(|t| t.contains("holds [redacted") || t.contains("not found"));
    let refused: Vec<String> = requests.iter().filter_map(told).collect();
    assert!(lost.is_empty(), "{} files are not as they were: {}\n{refused:?}", lost.len(), lost[0]);
    // No request held a secret of a file.
    for s in tiller_testkit::seeded(SEEDED, 0x5EED_0014) {
        assert!(!requests.iter().any(|r| format!("{r:?}").contains(&s.secret)), "{}", s.line);
    }
}
