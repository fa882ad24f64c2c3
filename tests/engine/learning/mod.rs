//! Learnings and rules in whole turns.

mod commands;
mod fast;
mod pairs;
mod rules;
mod set;
mod swapped;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tiller_engine::EngineConfig;
use tiller_memory::rules::{Promotions, RuleBook, RuleFile, WriteTexts};
use tiller_memory::{Learnings, Memory, MemoryPlaces, MemorySettings};
use tiller_protocol::{
    Access, Learning, RuleArgument, ToolGrant, ToolInfo, ToolOutcome, ToolSet, ToolSpec, ToolVerb, Touch,
};
use tiller_tool::{Registry, Tool, ToolCx, ToolError, ToolOutput};

use crate::rig::*;
use crate::scripted_model::lock;

/// What a command prints, and whether it works, time by time; the last result stays.
type Results = Arc<Mutex<HashMap<String, VecDeque<(bool, String)>>>>;

/// Stands for the terminal: each command has the result of the test.
struct Commands {
    results: Results,
    /// No permission rule asks about a command.
    free: bool,
}

#[async_trait]
impl Tool for Commands {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "terminal",
            set: ToolSet::Run,
            grant: ToolGrant::All,
            starts_agents: false,
            touch: Touch::Execute,
            rule: RuleArgument::Command,
            aliases: &[],
            verb: ToolVerb::Shell,
            target: |args| args["command"].as_str().unwrap_or_default().to_owned(),
        }
    }

    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
        ToolSpec { name: self.name().into(), description: "Runs a command.".into(), schema }
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        if self.free {
            return Ok(vec![Access::Free]);
        }
        let folder = cx.workspace.root.display().to_string();
        Ok(vec![Access::Run { command: self.target(args), folder, background: false }])
    }

    async fn run(&self, args: Value, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        let next = lock(&self.results).get_mut(&self.target(&args)).and_then(|results| {
            if results.len() > 1 { results.pop_front() } else { results.front().cloned() }
        });
        let (ok, text) = next.unwrap_or((true, "(no output)".into()));
        let outcome = if ok { ToolOutcome::Ok } else { ToolOutcome::Error };
        let text = if ok { text } else { format!("{text}\n[exit 1]") };
        Ok(ToolOutput { outcome, ..ToolOutput::text(text) })
    }
}

/// A place whose commands have results of the test, and a memory file.
struct Bench {
    place: Place,
    results: Results,
}

impl Bench {
    fn new(free: bool) -> Self {
        let mut place = Place::new();
        let results = Results::default();
        place.tools = Registry::built_in().without("terminal");
        place.tools.push(Box::leak(Box::new(Commands { results: Arc::clone(&results), free })));
        Self { place, results }
    }

    fn result(&self, command: &str, ok: bool, output: &str) {
        lock(&self.results).insert(command.into(), VecDeque::from([(ok, output.into())]));
    }

    /// What the command gives the next time.
    fn then(&self, command: &str, ok: bool, output: &str) {
        lock(&self.results).entry(command.into()).or_default().push_back((ok, output.into()));
    }

    fn memory(&self, text: &str) {
        std::fs::create_dir_all(self.place.home()).unwrap();
        std::fs::write(self.place.home().join("MEMORY.md"), text).unwrap();
    }

    /// Gives the engine learnings. Its setting is `memory.learnings`.
    fn learns(
        &self,
        parts: &mut EngineConfig,
        setting: tiller_config::schema::LearningsSetting,
    ) -> Arc<Learnings> {
        parts.config.memory.learnings = setting;
        let places = MemoryPlaces {
            data: self.place.home(),
            settings: self.place.home().join("settings"),
            project: None,
        };
        let settings = MemorySettings::of(&parts.config);
        let clock = Arc::clone(&parts.environment.clock);
        let memory = Arc::new(Memory::new(places, clock, tiller_memory::screen::no_secret(), settings));
        memory.open(parts.store.clone());
        parts.user.memory = Some(Arc::clone(&memory));
        let book = RuleBook::new(memory, parts.tools.catalog());
        let learnings = Learnings::new(parts.store.clone(), Arc::clone(&parts.environment.clock))
            .with_rules(book, Some(self.promotions()));
        let learnings = Arc::new(learnings);
        parts.user.learnings = Some(Arc::clone(&learnings));
        learnings
    }

    /// Writes what rules become at the end of two files.
    fn promotions(&self) -> Promotions {
        let file = |name: &str| {
            let path = self.place.home().join(name);
            let file = path.display().to_string();
            let write: WriteTexts = Arc::new(move |texts: &[&str], add| {
                let mut new = std::fs::read_to_string(&path).unwrap_or_default();
                if add && texts.iter().any(|text| new.contains(&format!("{text}\n"))) {
                    return Err("it stands in the file already".into());
                }
                for line in texts.iter().map(|text| format!("{text}\n")) {
                    new = new.replace(&line, "");
                    new.extend(add.then_some(line));
                }
                std::fs::write(&path, new).map_err(|e| e.to_string())
            });
            RuleFile { file, write }
        };
        Promotions { permissions: file("permissions.yaml"), hooks: file("config.toml") }
    }
}

/// A call of the terminal.
fn run(id: &str, command: &str) -> Vec<Step> {
    calls(&[(id, "terminal", json!({"command": command}))])
}

/// Waits until there are this many learnings.
async fn learned(learnings: &Learnings, count: usize) -> Vec<Learning> {
    let until = std::time::Instant::now() + DEADLINE;
    loop {
        let all = learnings.store().learnings().list("", None, 1_000).unwrap();
        if all.len() >= count {
            return all;
        }
        assert!(std::time::Instant::now() < until, "{} of {count} learnings: {all:?}", all.len());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
