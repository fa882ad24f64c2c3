//! The model server of the benchmark: the prompt determines its reply, so that no state is needed.
//!
//! | prompt | reply |
//! | --- | --- |
//! | `bench-echo-ID` | `DONE-ID` |
//! | `bench-stream-N-MS-ID` | N tokens of Markdown, MS milliseconds apart, then `DONE-ID` |
//! | `bench-output-N-ID` | a shell call that prints N lines, 50 ms apart, then `DONE-ID` |
//! | `bench-tools-N-ID` | a shell call `true`, N times, then `DONE-ID` |

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::json;
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Wire};

/// Characters in a delta: the average of a token.
const TOKEN: usize = 4;

/// The server, with the arrival time of each request of a conversation (titles excluded).
pub(crate) struct Model {
    pub(crate) server: ScriptServer,
    arrived: Arc<Mutex<Vec<(Instant, usize)>>>,
}

impl Model {
    pub(crate) fn start() -> Self {
        let arrived: Arc<Mutex<Vec<(Instant, usize)>>> = Arc::default();
        let mine = Arc::clone(&arrived);
        let mut calls = 0;
        let server = ScriptServer::with(move |request, n| {
            let at = Instant::now();
            let Some(asked) = Asked::read(request) else {
                return Reply::script(Wire::Anthropic, &Script::new().text("A title"));
            };
            mine.lock().unwrap_or_else(PoisonError::into_inner).push((at, n));
            if let Asked::Tools { count, command, .. } = &asked
                && calls < *count
            {
                calls += 1;
                let args = json!({"command": command});
                return Reply::script(
                    Wire::Anthropic,
                    &Script::new().call(&format!("c{n}"), "terminal", args),
                );
            }
            calls = 0;
            asked.reply()
        });
        Self { server, arrived }
    }

    /// Arrival times, from number `from` on.
    pub(crate) fn since(&self, from: usize) -> Vec<Instant> {
        let all = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().skip(from).map(|(at, _)| *at).collect()
    }

    /// Number of requests of conversations.
    pub(crate) fn count(&self) -> usize {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The requests, from number `from` on.
    pub(crate) fn requests(&self, from: usize) -> Vec<Recorded> {
        let all = self.server.requests();
        let places = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        places.iter().skip(from).filter_map(|(_, n)| all.get(*n).cloned()).collect()
    }
}

enum Asked {
    Echo { id: String },
    Stream { tokens: usize, ms: u64, id: String },
    Tools { count: usize, command: String, id: String },
}

impl Asked {
    /// The last request in the prompt. `None`: it has another purpose (a title).
    fn read(request: &Recorded) -> Option<Self> {
        let text = request.text();
        if !text.contains("\"tools\":[{") {
            return None;
        }
        let rest = &text[text.rfind("bench-")? + "bench-".len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-')?;
        let words: Vec<&str> = rest[..end].split('-').collect();
        match words[..] {
            ["echo", id] => Some(Self::Echo { id: id.into() }),
            ["stream", n, ms, id] => {
                Some(Self::Stream { tokens: n.parse().ok()?, ms: ms.parse().ok()?, id: id.into() })
            }
            ["tools", n, id] => {
                Some(Self::Tools { count: n.parse().ok()?, command: "true".into(), id: id.into() })
            }
            ["output", n, id] => {
                let n: usize = n.parse().ok()?;
                let command = format!("for i in $(seq {n}); do echo output $i of {n}; sleep 0.05; done");
                Some(Self::Tools { count: 1, command, id: id.into() })
            }
            _ => None,
        }
    }

    fn reply(&self) -> Reply {
        match self {
            Self::Echo { id } | Self::Tools { id, .. } => {
                Reply::script(Wire::Anthropic, &Script::new().text(&format!("DONE-{id}")))
            }
            Self::Stream { tokens, ms, id } => {
                let text = format!("{}\n\nDONE-{id}\n", markdown(tokens * TOKEN));
                let reply = Reply::script(Wire::Anthropic, &Script::new().text(&text).pieces_of(TOKEN));
                if *ms == 0 { reply } else { reply.paced(*ms) }
            }
        }
    }
}

/// About `length` characters of Markdown: headings, paragraphs, lists, code, tables. Always the same.
pub(crate) fn markdown(length: usize) -> String {
    const WORDS: &[&str] = &[
        "server", "request", "parses", "buffer", "each", "frame", "token", "stream", "when", "cell", "state",
        "writes", "returns", "error", "value", "queue", "handle", "loop", "reads", "cache", "table", "index",
    ];
    let mut seed = 7_usize;
    let mut words = |n: usize| {
        let mut out = Vec::new();
        for _ in 0..n {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            out.push(WORDS[(seed >> 33) % WORDS.len()]);
        }
        out.join(" ")
    };
    let mut out = String::new();
    let mut section = 0;
    while out.len() < length {
        section += 1;
        out.push_str(&format!("## Section {section}: {}\n\n", words(3)));
        for _ in 0..3 {
            out.push_str(&format!("{}.\n", words(7)));
        }
        out.push('\n');
        for _ in 0..4 {
            out.push_str(&format!("- **{}** {} `{}()`\n", words(1), words(3), words(1)));
        }
        out.push_str("\n```rust\n");
        for n in 0..2 {
            out.push_str(&format!("fn step_{n}() -> u32 {{\n"));
            for m in 0..2 {
                out.push_str(&format!("    let {}_{m} = {}({m}, \"{}\");\n", words(1), words(1), words(1)));
            }
            out.push_str("}\n");
        }
        out.push_str("```\n\n");
        if section % 5 == 0 {
            out.push_str(&format!("| name | count |\n|---|---|\n| {} | {section} |\n\n", words(1)));
        }
    }
    out
}
