//! The work of a cycle: what a person does at the terminal, and the model server's replies.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Wire};

use crate::bench::pause;
use crate::bench::rig::model::markdown;
use crate::bench::rig::place::{Desk, squash};

/// Settings of the person.
pub(super) const SETTINGS: &str =
    "[agents]\nrunning = 4\ntotal = 100000\n\n[ui]\nbranch_summary = \"never\"\n";

/// A program in a pane: draws for a while, and ends.
pub(super) const TOY: &str = "printf '> '; for i in $(seq 60); do printf '\\033[2J\\033[Hframe %s of 60 \\033[3%sm text\\033[0m' $i $((i % 8)); sleep 0.02; done";

/// Longest time that a unit of work is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// One thing that a person does.
#[derive(Clone, Copy, Debug)]
pub(super) enum WorkStep {
    /// A prompt of this kind; its reply ends with a word that is waited for.
    Prompt(&'static str),
    /// A command whose dialog shows this, and is closed again.
    Look(&'static str, &'static str),
    /// A command that changes something; its end is seen as a screen at rest.
    Do(&'static str),
    /// Other sizes of the terminal, and back.
    Resize,
    /// Keys in the composer: their latency is measured.
    Type,
}

use WorkStep::{Do, Look, Prompt, Resize, Type};

/// A cycle.
pub(super) const STEPS: &[WorkStep] = &[
    Prompt("text"),
    Type,
    Prompt("tools"),
    Prompt("edit"),
    Look("/diff", "Esc"),
    Prompt("output"),
    Resize,
    Prompt("delegate"),
    Look("/agents", "a1"),
    Do("/spawn @toy:pty hello"),
    Prompt("edit"),
    Do("/undo"),
    Do("/redo"),
    Look("/tree", "Tree of this project"),
    Look("/search word", "word"),
    Prompt("text"),
    Do("/checkpoint point"),
    Do("/branch other"),
    Prompt("tools"),
    Look("/context", "Esc"),
    Look("/sessions", "Esc"),
    Do("/compact"),
    Prompt("long"),
    Type,
    Do("/new"),
];

/// The model: the last word of the kind `soak-KIND-ID` in a prompt decides about its reply.
pub(super) fn model() -> ScriptServer {
    ScriptServer::with(|request: &Recorded, n| {
        let script = Script::new();
        let body = request.json();
        if body.get("tools").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Reply::script(Wire::Anthropic, &script.text("A title or a summary of what was done"));
        }
        Reply::script(Wire::Anthropic, &reply(&prompts(&body), &body, n))
    })
}

/// What was asked. Calls and results are left out: those of a delegation repeat the prompts of other agents.
fn prompts(body: &Value) -> String {
    let mut out = String::new();
    for message in body["messages"].as_array().into_iter().flatten().filter(|m| m["role"] == "user") {
        match &message["content"] {
            Value::String(text) => out.push_str(text),
            blocks => blocks.as_array().into_iter().flatten().for_each(|b| {
                out.push_str(b["text"].as_str().unwrap_or_default());
            }),
        }
        out.push('\n');
    }
    out
}

fn reply(text: &str, body: &Value, n: usize) -> Script {
    let script = Script::new();
    let Some(at) = text.rfind("soak-") else { return script.text("I do not know.") };
    let words: String = text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let mut words = words.split('-').skip(1);
    let (kind, id) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // Results of this prompt's calls stand at the end: then it is answered.
    let last = body["messages"].as_array().and_then(|m| m.last()).map(Value::to_string).unwrap_or_default();
    let answered = last.contains("tool_result");
    let end = |script: Script| script.text(&format!("DONE{id}"));
    let run = |command: &str| json!({"command": command});
    match kind {
        "text" => end(script.thinking("hm", "sig").text(&markdown(6_000)).pieces_of(12)),
        "long" => end(script.text(&markdown(40_000)).pieces_of(40)),
        _ if answered => end(script),
        "tools" => script
            .call(&format!("a{n}"), "list_dir", json!({"path": "."}))
            .call(&format!("b{n}"), "terminal", run("ls -la; for i in 1 2 3; do echo line $i; done"))
            .call(&format!("c{n}"), "search", json!({"pattern": "word", "path": "."}))
            .call(&format!("d{n}"), "read_file", json!({"path": "README.md"})),
        "edit" => script
            .call(
                &format!("a{n}"),
                "write_file",
                json!({"path": format!("file{}.txt", n % 20), "content": markdown(3_000 + n % 500)}),
            )
            .call(&format!("b{n}"), "terminal", run(&format!("date +%N > stamp.txt; echo {n} >> stamp.txt"))),
        "output" => script.call(
            &format!("a{n}"),
            "terminal",
            run("for i in $(seq 3000); do echo output $i of many words; done"),
        ),
        "delegate" => {
            let task = |at: usize| json!({"goal": format!("soak-text-sub{at}{id} ")});
            script.call(&format!("a{n}"), "delegate_task", json!({"tasks": [task(1), task(2)]}))
        }
        _ => end(script),
    }
}

/// The person at the terminal.
pub(super) struct Work<'m> {
    desk: Desk,
    model: &'m ScriptServer,
    /// Units of work.
    pub(super) done: usize,
    /// What was not seen to its end.
    pub(super) missed: Vec<String>,
    /// Milliseconds from a key to the screen, median of the last time.
    pub(super) key: f64,
}

impl<'m> Work<'m> {
    pub(super) fn new(desk: Desk, model: &'m ScriptServer) -> Self {
        Self { desk, model, done: 0, missed: Vec::new(), key: 0.0 }
    }

    /// The process that was started.
    pub(super) fn pid(&self) -> u32 {
        self.desk.pid
    }

    /// The process with the engine.
    pub(super) fn host(&self) -> u32 {
        self.desk.term.host().unwrap_or(self.desk.pid)
    }

    /// Waits until nothing is drawn.
    pub(super) fn rest(&mut self) {
        self.desk.settle(Duration::from_millis(1_500));
    }

    /// Does one step, and notes when its end is not seen.
    pub(super) fn step(&mut self, step: &WorkStep) {
        self.done += 1;
        let seen = match step {
            Prompt(kind) => {
                let id = format!("k{}e", self.done);
                self.type_in(&format!("soak-{kind}-{id} "));
                self.until(&format!("DONE{id}"))
            }
            Look(command, shown) => {
                self.type_in(command);
                let seen = self.until(&squash(shown));
                self.escape();
                seen
            }
            Do(command) => {
                self.type_in(command);
                self.desk.settle(Duration::from_millis(400));
                // A question is answered as its first button says.
                self.escape();
                true
            }
            Resize => {
                for (columns, rows) in [(80, 24), (200, 50), (40, 12), (120, 40)] {
                    self.desk.term.resize(columns, rows);
                    self.desk.settle(Duration::from_millis(150));
                }
                true
            }
            Type => self.keys(),
        };
        if !seen {
            let screen = self.desk.term.screen();
            let missed = format!("{step:?} after {} requests:\n{screen}", self.model.count());
            eprintln!("not seen: {missed}");
            self.missed.push(missed);
            self.escape();
        }
    }

    fn type_in(&mut self, text: &str) {
        // What was left there is not sent with it.
        self.desk.term.keys("\x15");
        self.desk.term.keys(text);
        self.until(&squash(
            &text.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect::<String>(),
        ));
        // Enter directly after fast typing belongs to a paste.
        pause(Duration::from_millis(250));
        self.desk.term.keys("\r");
    }

    fn escape(&mut self) {
        for _ in 0..3 {
            self.desk.term.keys("\x1b");
            // Two in a row would open something else.
            pause(Duration::from_millis(700));
        }
    }

    fn until(&self, text: &str) -> bool {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            if squash(&self.desk.term.screen()).contains(text) {
                return true;
            }
            pause(Duration::from_millis(10));
        }
        false
    }

    /// Types a few letters; the median time until the screen changes.
    fn keys(&mut self) -> bool {
        self.desk.term.keys("\x15");
        self.rest();
        let mut times = Vec::new();
        for n in 0..15_u8 {
            let written = self.desk.term.written();
            let from = Instant::now();
            self.desk.term.keys(&char::from(b'a' + n).to_string());
            while self.desk.term.written() == written && from.elapsed() < Duration::from_secs(5) {
                pause(Duration::from_micros(100));
            }
            times.push(from.elapsed().as_secs_f64() * 1e3);
            pause(Duration::from_millis(40));
        }
        times.sort_by(f64::total_cmp);
        self.key = times[times.len() / 2];
        let seen = self.until("abcdefghijklmno");
        self.desk.term.keys("\x15");
        seen
    }
}
