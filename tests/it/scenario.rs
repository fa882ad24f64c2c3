//! The scripted session that `sessions/whole_session.rs` runs in the workbench and with `exec`: a small crate in a git
//! repository, a model server, and the expected results of both.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Wire};

use crate::common::Place;

/// A model server whose replies can be added while it runs. Requests for titles are answered separately.
pub(crate) struct Model {
    pub(crate) server: ScriptServer,
    pub(crate) wire: Wire,
    replies: Arc<Mutex<VecDeque<Reply>>>,
}

/// A request for a title is not part of the conversation: it has no tools.
fn is_title(body: &Value) -> bool {
    body.get("tools").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

impl Model {
    pub(crate) fn new(wire: Wire) -> Self {
        let replies = Arc::new(Mutex::new(VecDeque::<Reply>::new()));
        let theirs = Arc::clone(&replies);
        let server = ScriptServer::with(move |request: &Recorded, _| {
            if is_title(&request.json()) {
                return Reply::script(wire, &Script::new().text("Mend the sum"));
            }
            let next = theirs.lock().unwrap().pop_front();
            next.unwrap_or_else(|| Reply::status(400).bytes("the script is over"))
        });
        Self { server, wire, replies }
    }

    pub(crate) fn push(&self, script: Script) {
        self.reply(Reply::script(self.wire, &script));
    }

    pub(crate) fn reply(&self, reply: Reply) {
        self.replies.lock().unwrap().push_back(reply);
    }

    /// Number of unused scripted replies.
    pub(crate) fn left(&self) -> usize {
        self.replies.lock().unwrap().len()
    }

    /// All requests, without titles.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.server.requests().into_iter().filter(|r| !is_title(&r.json())).collect()
    }

    /// As [`Self::requests`], parsed as JSON.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.requests().iter().map(Recorded::json).collect()
    }

    /// The messages of the last request, as sent.
    pub(crate) fn last(&self) -> String {
        Cut::of(&self.requests().last().unwrap().text()).list
    }

    /// Every request equals the one before, byte for byte, plus new material at the end of the conversation or of its last
    /// message.
    pub(crate) fn assert_only_grows(&self) {
        let bodies: Vec<Cut> = self.requests().iter().map(|r| Cut::of(&r.text())).collect();
        for (n, pair) in bodies.windows(2).enumerate() {
            let (before, after) = (&pair[0], &pair[1]);
            assert_eq!(before.head, after.head, "what stands before the messages of request {}", n + 1);
            assert_eq!(before.tail, after.tail, "what stands behind the messages of request {}", n + 1);
            let (mut old, new) = (before.list.strip_suffix(']').unwrap(), &after.list);
            if !new.starts_with(old) {
                // The last message is joined with a following one of the same role.
                old = old.trim_end_matches(['}', ']', '"']);
            }
            assert!(new.starts_with(old), "request {}:\n{old}\nis no beginning of\n{new}", n + 1);
            let more = &new[old.len()..];
            assert!(more.len() > 10, "request {} brings nothing: {more}", n + 1);
        }
    }
}

/// The parts of a request before and after its conversation.
struct Cut {
    head: String,
    list: String,
    tail: String,
}

impl Cut {
    fn of(body: &str) -> Self {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow, alias = "input")]
            messages: &'a RawValue,
        }
        let body = without_marks(&without_thinking(body));
        let list = serde_json::from_str::<Body<'_>>(&body).unwrap().messages.get();
        let at = list.as_ptr().addr() - body.as_ptr().addr();
        Self { head: body[..at].into(), list: list.into(), tail: body[at + list.len()..].into() }
    }
}

/// Without the thinking budget: it precedes the prefix, and the format allows none in the middle of a turn that began
/// without a thought.
fn without_thinking(body: &str) -> String {
    const START: &str = "\"thinking\":{\"type\":\"enabled\"";
    let Some(at) = body.find(START) else { return body.to_owned() };
    let end = body[at..].find("},").map_or(at, |n| at + n + 2);
    format!("{}{}", &body[..at], &body[end..])
}

/// Without cache marks, which move by design. (Within a text the quotes would be escaped, so only marks are found.)
fn without_marks(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find(",\"cache_control\":{") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[rest.find('}').unwrap() + 1..];
    }
    out.push_str(rest);
    assert!(!out.contains("\"cache_control\":{"), "a mark stands first in its block: {out}");
    out
}

/// The command that runs the tests of the crate.
pub(crate) const CHECK: &str = "cargo test --offline";

/// The person's message.
pub(crate) const QUESTION: &str = "sum(&[2, 3]) gives 3. Add a test for it and mend it.";

/// The crate, with one error and a test that does not detect it.
const LIB: &str = "//! Adds up.

/// The sum of all numbers.
pub fn sum(numbers: &[i64]) -> i64 {
    numbers.iter().skip(1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_zero() {
        assert_eq!(sum(&[]), 0);
    }
}
";

/// Lines that the first edit inserts before the end of the tests.
const TEST: &str = "        assert_eq!(sum(&[]), 0);
    }

    #[test]
    fn adds_all() {
        assert_eq!(sum(&[2, 3]), 5);
    }
";

/// The final content of the library.
pub(crate) fn mended() -> String {
    let old = "        assert_eq!(sum(&[]), 0);\n    }\n";
    assert!(LIB.contains(old) && LIB.contains(".skip(1)"));
    LIB.replace(old, TEST).replace(".skip(1)", "")
}

/// Makes `cargo` work in this place, with its own target folder. False, with a message on standard error: there is no
/// cargo.
pub(crate) fn with_cargo(place: &mut Place) -> bool {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| env!("CARGO").into());
    // The tool chain itself, since a rustup proxy would look into the person's home.
    let bin = std::path::Path::new(&cargo).parent().unwrap_or(std::path::Path::new("/usr/bin"));
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
    place.set("PATH", &format!("{}:{path}", bin.display()));
    let target = place.user.join("target");
    place.set("CARGO_TARGET_DIR", &target.display().to_string());
    // The target folder lies outside of the workspace; and screens and entries are the same on every machine, whatever
    // its kernel can confine.
    // The tools are those of every machine, with or without a browser.
    place.config("sandbox = \"off\"\n[browser]\nenabled = false\n[skills]\noffer = \"never\"\n");
    // Results have a fixed order.
    let home = place.user.join(".cargo");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.toml"), "[env]\nRUST_TEST_THREADS = \"1\"\n").unwrap();
    let version = place.program("cargo", &["--version"]).output();
    let there = version.is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("skipped: cargo does not run here");
    }
    there
}

/// A small crate without dependencies, in a real git repository. False: there is no cargo.
pub(crate) fn lay_out(place: &mut Place) -> bool {
    if !with_cargo(place) {
        return false;
    }
    place.file("README.md", "# Tally\n\nAdds numbers. `cargo test` runs the tests.\n");
    place.file(
        "Cargo.toml",
        "[package]\nname = \"tally\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\ndoctest = false\n",
    );
    let lock = "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\n\
                version = 4\n\n[[package]]\nname = \"tally\"\nversion = \"0.1.0\"\n";
    place.file("Cargo.lock", lock);
    place.file("src/lib.rs", LIB);
    place.git(&["init", "-q", "-b", "main"]);
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "Begin"]);
    true
}

fn todo(statuses: [&str; 3]) -> Value {
    let names = ["see a test fail", "mend src/lib.rs", "see it pass"];
    let todos: Vec<Value> = (0..3)
        .map(|i| json!({"id": (i + 1).to_string(), "content": names[i], "status": statuses[i]}))
        .collect();
    json!({"todos": todos})
}

/// Question, search, edit, failing test, fix, passing test, todo. Four calls need approval: the edit, the check, the
/// fix, the check again.
pub(crate) fn fix() -> Vec<Script> {
    let edit = |old: &str, new: &str| json!({"path": "src/lib.rs", "old": old, "new": new});
    let check = |why: &str| json!({"command": CHECK, "why": why});
    vec![
        Script::new()
            .thinking("A plan first.", "sig-1")
            .text("I make a plan and look around.")
            .call("c1", "todo_write", todo(["in_progress", "pending", "pending"]))
            .call("c2", "search", json!({"pattern": "fn sum", "path": "."})),
        Script::new().text("There it is.").call("c3", "read_file", json!({"path": "src/lib.rs"})),
        Script::new().text("A test first.").call(
            "c4",
            "edit_file",
            edit("        assert_eq!(sum(&[]), 0);\n    }\n", TEST),
        ),
        Script::new().call("c5", "terminal", check("see it fail")),
        Script::new()
            .text("It skips the first number.")
            .call("c6", "todo_write", todo(["completed", "in_progress", "pending"]))
            .call("c7", "edit_file", edit("numbers.iter().skip(1).sum()", "numbers.iter().sum()")),
        Script::new().text("Once more.").call("c8", "terminal", check("see it pass")),
        Script::new().call("c9", "todo_write", todo(["completed", "completed", "completed"])),
        Script::new().text("The sum is right now."),
    ]
}

/// How many requests [`fix`] makes.
pub(crate) const FIX: usize = 8;

/// An entry without parts that differ between runs (ids, times, the place) or compilers.
pub(crate) fn essence(entry: &Value, place: &Place) -> Option<Value> {
    let body = &entry["body"];
    let (root, user) = (place.work.display().to_string(), place.user.display().to_string());
    let clean = |v: &Value| -> Value {
        let text = serde_json::to_string(v).unwrap().replace(&root, "/WORK").replace(&user, "/USER");
        serde_json::from_str(&text).unwrap()
    };
    Some(match body["kind"].as_str().unwrap() {
        "prefix" => json!(["prefix", names(&body["tools"])]),
        "user" => json!(["user", body["message"], body["origin"], clean(&body["content"])]),
        "assistant" => {
            json!(["assistant", clean(&body["blocks"]), body["stop"], body["model"], body["usage"]])
        }
        "tool_result" => {
            let content = clean(&body["content"]);
            let content = if body["name"] == "terminal" { tested(&content) } else { content };
            json!(["result", body["call_id"], body["name"], body["outcome"], content])
        }
        // A line for the person; a screen may show other ones than a script.
        "note" => return None,
        other => json!([other]),
    })
}

/// Names of tools, as a prefix lists them. Those of the browser depend on the machine.
fn names(tools: &Value) -> Vec<Value> {
    let all = tools.as_array().into_iter().flatten().map(|t| t.get("name").unwrap_or(t).clone());
    all.filter(|name| !name.as_str().is_some_and(|name| name.starts_with("browser_"))).collect()
}

/// The output of a test run, without the compiler's own messages and times.
fn tested(content: &Value) -> Value {
    let kept = |text: &str| -> Vec<String> {
        let mut all: Vec<String> = text
            .lines()
            .filter(|l| ["test ", "exit", "  left", " right", "open gate"].iter().any(|w| l.starts_with(w)))
            .map(|l| l.split("; finished in").next().unwrap_or(l).to_owned())
            .collect();
        // Tests that run side by side end in any order.
        let each = all.iter().take_while(|l| l.starts_with("test tests::")).count();
        all[..each].sort();
        all
    };
    match content {
        Value::String(text) => json!(kept(text)),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|b| b["text"].as_str()).flat_map(kept).map(Value::from).collect()
        }
        other => other.clone(),
    }
}

/// The entries of the last session, one line each.
pub(crate) fn entries(place: &Place) -> Vec<String> {
    let shown = place.lines(&["sessions", "show", "last", "--json"]);
    shown.iter().filter_map(|e| essence(e, place)).map(|e| e.to_string()).collect()
}
