//! The demo model uses every tool, on the sample project and on other folders.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{ask, user};
use serde_json::Value;
use tiller_config::Config;
use tiller_protocol::{AskReply, Block, ModelRef, Part, StopReason, ToolSet};
use tiller_provider::demo::{Demo, sample, tour};
use tiller_provider::{ChatMessage, Effort, Provider, Request, models};
use tiller_testkit::{Reply, ScriptServer};
use tiller_tool::testing::{Bench, text_of};
use tiller_tool::{Registry, ToolError};

/// Maximum number of requests in one turn.
const STEPS: usize = 20;

struct World {
    bench: Bench,
    demo: Arc<dyn Provider>,
    messages: Vec<ChatMessage>,
    used: BTreeSet<String>,
    /// Name and arguments of each call.
    calls: Vec<(String, Value)>,
    /// A message of the person, and after how many results it is sent.
    steer: Option<(usize, String)>,
    /// Tools that the person refuses.
    denied: BTreeSet<&'static str>,
}

fn lay_out(bench: &Bench) {
    for (path, bytes, executable) in sample() {
        if *executable {
            tiller_testkit::program(&bench.root.join(path), &String::from_utf8_lossy(bytes));
        } else {
            bench.file(path, bytes);
        }
    }
}

impl World {
    fn new(with_sample: bool) -> Self {
        let bench = Bench::new().limits(|l| l.fetch_private = true);
        if with_sample {
            lay_out(&bench);
        }
        Self {
            bench,
            demo: Arc::new(Demo::new(Duration::ZERO)),
            messages: Vec::new(),
            used: BTreeSet::new(),
            calls: Vec::new(),
            steer: None,
            denied: BTreeSet::new(),
        }
    }

    fn request(&self) -> Request {
        Request {
            model: "demo".into(),
            system: "You are the demo.".into(),
            tools: Registry::built_in().specs().into(),
            messages: self.messages.clone().into(),
            max_output: None,
            effort: Effort::Default,
            cache_key: "s".into(),
        }
    }

    /// Runs one turn; returns the text of its last reply.
    async fn turn(&mut self, prompt: &str) -> String {
        self.messages.push(user(prompt));
        for step in 0..STEPS {
            let out = ask(&self.demo, self.request()).await;
            assert_eq!(out.error, None);
            let words = out.text();
            self.messages.push(ChatMessage::Assistant {
                blocks: out.reply.blocks.clone(),
                model: ModelRef("demo/demo".into()),
            });
            // As in the engine: ids are unique within the session.
            let mut ended = true;
            for (n, call) in out.reply.calls().enumerate() {
                ended = false;
                assert_eq!(call.malformed, None);
                self.used.insert(call.name.clone());
                self.calls.push((call.name.clone(), call.arguments.clone()));
                let id = format!("{}-{step}-{n}", self.messages.len());
                rename(&mut self.messages, &call.id, &id);
                let (ok, content) = self.run(&call.name, call.arguments.clone()).await;
                self.messages.push(ChatMessage::ToolResult {
                    call_id: id,
                    name: call.name.clone(),
                    ok,
                    content,
                });
            }
            if ended {
                assert_eq!(out.reply.stop, Some(StopReason::EndTurn));
                assert!(!words.is_empty(), "a turn ends with words");
                return words;
            }
            assert_eq!(out.reply.stop, Some(StopReason::ToolUse));
            if let Some((_, text)) = self.steer.take_if(|(at, _)| *at <= self.calls.len()) {
                self.messages.push(user(&text));
            }
        }
        panic!("no end after {STEPS} steps: {:?}", self.calls);
    }

    async fn run(&self, name: &str, args: Value) -> (bool, Vec<Part>) {
        let text = |t: String| vec![Part::Text { text: t }];
        if self.denied.contains(name) {
            return (false, text("the person said no".into()));
        }
        let tool = Registry::built_in().find(name).unwrap_or_else(|| panic!("{name}"));
        match self.bench.call(tool, args).await {
            Ok(out) => (out.outcome.ok(), out.content),
            Err(
                ToolError::Tell(e)
                | ToolError::Interrupted(e)
                | ToolError::TimedOut(e)
                | ToolError::Declined(e)
                | ToolError::Unanswered(e),
            ) => (false, text(e)),
        }
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.bench.root.join(path)).unwrap()
    }

    fn names(&self) -> Vec<&str> {
        self.calls.iter().map(|(n, _)| n.as_str()).collect()
    }

    fn count(&self, name: &str) -> usize {
        self.calls.iter().filter(|(n, _)| n == name).count()
    }
}

fn rename(messages: &mut [ChatMessage], from: &str, to: &str) {
    if let Some(ChatMessage::Assistant { blocks, .. }) =
        messages.iter_mut().rev().find(|m| matches!(m, ChatMessage::Assistant { .. }))
    {
        for block in blocks {
            if let Block::ToolCall(call) = block
                && call.id == from
            {
                call.id = to.into();
            }
        }
    }
}

#[tokio::test]
async fn it_fixes_the_failing_test_of_the_sample() {
    let mut w = World::new(true);
    let last = w.turn("fix the failing test").await;
    assert!(last.starts_with("All tests pass now."), "{last}\n{:?}", w.calls);
    assert!(w.read("lib/ops.sh").contains("op_sub() { echo $(($1 - $2)); }"));
    assert_eq!(w.count("terminal"), 2, "a failure was seen, then a success");
    for tool in ["list_dir", "todo_write", "search", "read_file", "edit_file"] {
        assert!(w.used.contains(tool), "{tool}: {:?}", w.names());
    }
    let todos = w.bench.ports.todos.lock().unwrap().0.clone();
    assert_eq!(todos.len(), 4);
    assert!(todos.iter().all(|t| t.status == tiller_protocol::TodoStatus::Completed), "{todos:?}");

    let again = w.turn("fix it").await;
    assert!(again.contains("nothing to fix"), "{again}");
}

#[tokio::test]
async fn it_drives_every_tool() {
    let page = "<html><head><title>T</title></head><body><h1>Title</h1><p>Words of the page, enough of them to read.</p></body></html>";
    let server =
        ScriptServer::with(move |_, _| Reply::status(200).header("content-type", "text/html").bytes(page));
    let mut w = World::new(true);
    w.turn("fix the failing test").await;
    let added = w.turn("add a max operation").await;
    assert!(added.contains("Added `max`: code, check and README"), "{added} {:?}", w.calls.last());
    assert!(w.read("README.md").contains("- `max A B`: the larger one"));
    w.turn("add notes.md with hello there").await;
    assert_eq!(w.read("notes.md"), "hello there\n");
    let planned = w.turn("plan: read, write, check").await;
    assert!(planned.contains("write"), "{planned}");
    w.bench.ports.reply(AskReply::Choice { answers: vec!["Explain the project".into()] });
    let asked = w.turn("ask me something").await;
    assert!(asked.contains("Explain the project"), "{asked}");
    w.bench.ports.reply(AskReply::Choice { answers: vec!["End it".into()] });
    let started = w.turn("run sleep 300 in the background").await;
    assert!(started.contains("has ended"), "{started} {:?}", w.messages.last());
    let fetched = w.turn(&format!("fetch {}/page", server.url())).await;
    assert!(fetched.contains("Words of the page"), "{fetched}");
    let recalled = w.turn("recall walnut").await;
    assert!(recalled.contains("no hits"), "{recalled}");
    let named = w.turn("checkpoint halfway").await;
    assert_eq!(named, "named halfway");
    let none = w.turn("restore nowhere").await;
    assert!(none.contains("there is no checkpoint nowhere"), "{none}");
    // There are no other agents here; `tests/it/agents/spawn.rs` runs it with an engine.
    w.turn("delegate: explain the project; run the tests").await;
    w.turn("spawn explain the project").await;
    // The planner starts agents and waits for them; it neither steers them nor plans by itself. It searches no network.
    // A script needs an engine, which is not here.
    let starts = ["delegate_task", "spawn_agent"];
    let others =
        |t: &&'static dyn tiller_tool::Tool| t.info().set == ToolSet::Crew && !starts.contains(&t.name());
    let registry = Registry::built_in();
    let elsewhere = ["write_plan", "web_search", "web_extract", "execute_code"];
    let all = registry.iter().filter(|t| !others(t) && !elsewhere.contains(&t.name()));
    let all: BTreeSet<String> = all.map(|t| t.name().to_owned()).collect();
    assert_eq!(w.used, all);
}

#[tokio::test]
async fn it_explains_searches_runs_and_renames() {
    let mut w = World::new(true);
    let told = w.turn("explain this project").await;
    assert!(
        told.contains("Its title is \"calc\"") && told.contains("A small calculator in plain shell"),
        "{told}"
    );
    let told = w.turn("what is in lib/ops.sh?").await;
    assert!(told.contains("`op_add`") && told.contains("`op_div`"), "{told}");
    let found = w.turn("search for op_mul()").await;
    assert!(found.contains("lib/ops.sh"), "{found}");
    let found = w.turn("search for no-such-text-anywhere").await;
    assert!(found.contains("was not found"), "{found}");
    let ran = w.turn("run sh calc.sh add 20 22").await;
    assert!(ran.contains("42") && ran.contains("succeeded"), "{ran}");
    let ran = w.turn("run sh calc.sh nonsense 1 2").await;
    assert!(ran.contains("failed") && ran.contains("unknown operation"), "{ran}");
    let renamed = w.turn("rename op_mul to op_mult").await;
    assert!(renamed.contains("lib/ops.sh"), "{renamed}");
    assert!(w.read("lib/ops.sh").contains("op_mult()"));
    w.bench.ports.reply(AskReply::Choice { answers: vec!["one more line".into()] });
    let edited = w.turn("edit README.md").await;
    assert!(edited.contains("Added the line to"), "{edited}");
    assert!(w.read("README.md").ends_with("\none more line\n"));
}

#[tokio::test]
async fn a_skill_that_came_with_the_message_is_used_whatever_its_text_says() {
    let text = "\n\n<skill name=\"base\" source=\"built in\">\n## Tests\n</skill>\n\n<skill name=\"code-review\" \
                source=\"built in\">\nUse the skill security-review-of-a-change, too.\n\n## 1. Read the change\n\n\
                ## 2. Run the tests\n</skill>";
    for prompt in ["use $code-review please", "$code-review main"] {
        let mut world = World::new(true);
        let said = world.turn(&format!("{prompt}{text}")).await;
        assert!(said.contains("The skill `code-review` is in the conversation"), "{said}");
        let [(name, args)] = &world.calls[..] else { panic!("{:?}", world.calls) };
        assert_eq!(name, "todo_write");
        assert!(args.to_string().contains("Read the change"), "{args}");
    }
}

#[tokio::test]
async fn it_is_honest_about_what_it_cannot_do() {
    let mut w = World::new(true);
    let cannot = "not a language model";
    for (prompt, says) in [
        ("sing a song", cannot),
        ("help", cannot),
        ("", cannot),
        ("write me a web server in Haskell", "I can add"),
    ] {
        let said = w.turn(prompt).await;
        assert!(said.contains(says), "{prompt}: {said}");
        if !prompt.starts_with("write") {
            assert!(w.calls.is_empty(), "{prompt}");
        }
    }
}

#[tokio::test]
async fn it_works_in_any_folder() {
    let mut w = World::new(false);
    for prompt in [
        "fix the tests",
        "explain",
        "search x",
        "run true",
        "add a pow operation",
        "explain nowhere.txt",
        "rename a1b2 to b",
    ] {
        w.turn(prompt).await;
    }
    w.bench.file("test.sh", "echo 'something else: error in frobnication'; exit 3\n");
    let said = w.turn("fix the failing test").await;
    assert!(said.contains("frobnication") && said.contains("not a language model"), "{said}");
}

#[tokio::test]
async fn a_no_ends_the_turn_and_a_note_is_seen() {
    let mut w = World::new(true);
    w.denied.insert("terminal");
    let said = w.turn("fix the failing test").await;
    assert!(said.contains("`terminal` was not done") && said.contains("said no"), "{said}");

    let mut w = World::new(true);
    w.steer = Some((2, "mind the gap".into()));
    let said = w.turn("fix the failing test").await;
    assert!(said.starts_with("All tests pass now."));
    let noted = w.messages.iter().any(|m| {
        matches!(m, ChatMessage::Assistant { blocks, .. } if blocks.iter().any(|b| matches!(b, Block::Text { text } if text.contains("mind the gap"))))
    });
    assert!(noted, "the note is answered");

    let mut w = World::new(true);
    w.steer = Some((2, "stop".into()));
    assert_eq!(w.turn("fix the failing test").await, "Stopped.");
    assert!(w.calls.len() < 6);
}

#[tokio::test]
async fn it_streams_at_a_readable_speed_with_estimates_and_no_price() {
    let paced: Arc<dyn Provider> = Arc::new(Demo::new(Duration::from_millis(2)));
    let w = World::new(true);
    let mut request = w.request();
    request.messages = vec![user("help")].into();
    let start = Instant::now();
    let out = ask(&paced, request).await;
    let pieces = out.chunks.iter().filter(|c| matches!(c, tiller_provider::Chunk::Text { .. })).count();
    assert!(pieces > 20 && start.elapsed() >= Duration::from_millis(2) * pieces as u32);
    assert!(out.reply.usage.input > 100 && out.reply.usage.output > 50);
    let info = models::lookup("demo", "demo", &Config::default());
    assert_eq!(models::cost(&out.reply.usage, &info), None);
    assert!(info.window.is_some());
}

#[tokio::test]
async fn requests_without_tools_get_a_title_or_a_summary() {
    let mut w = World::new(true);
    w.messages = vec![user("please fix the failing test in this project now")];
    let mut request = w.request();
    request.tools = Arc::from([]);
    assert_eq!(ask(&w.demo, request.clone()).await.text(), "please fix the failing test in");
    request.system = "Summarise the conversation.".into();
    assert!(ask(&w.demo, request).await.text().contains("- please fix the failing test"));
}

#[test]
fn the_sample_and_the_tour_are_whole() {
    assert!(sample().iter().any(|(p, _, x)| *p == "test.sh" && *x));
    let steps = tour();
    assert!((8..=14).contains(&steps.len()));
    // The first only welcomes; each of the others has something to do.
    assert!(steps[0].key_hint.is_empty());
    assert!(steps[1..].iter().all(|s| !s.key_hint.is_empty()));
    for step in steps {
        assert!(!step.title.is_empty());
        assert!((40..360).contains(&step.text.len()), "{}", step.title);
    }
    let _ = text_of(&[]);
}
