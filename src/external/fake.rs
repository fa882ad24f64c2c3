//! Programs for the tests of this room: shell scripts behind an adapter.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tiller_tool::shell::Host;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::adapter::{Adapter, parse};
use super::{AgentEvent, Ending, Job, Limits, start};

/// Longest wait for what must come.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

/// A test program: a shell script behind an adapter.
pub(crate) struct Fake {
    pub tmp: tempfile::TempDir,
    pub adapter: Arc<Adapter>,
}

impl Fake {
    pub(crate) fn headless(format: &str, more: &str, script: &str) -> Self {
        Self::new(&format!("[headless]\nformat = \"{format}\"\nprompt = \"stdin\"\n{more}"), script)
    }

    /// `sections` of the adapter; `PROGRAM` is replaced by the script's path.
    pub(crate) fn new(sections: &str, script: &str) -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let program = tmp.path().join("fake");
        tiller_testkit::program(&program, &format!("#!/bin/sh\n{script}\n"));
        let text = format!(
            "name = \"fake\"\ntitle = \"Fake\"\n[program]\ncommand = \"{}\"\ninstall = \"x\"\n[auth]\nmissing = ['Not logged in']\nfix = \"log in\"\n{}",
            program.display(),
            sections.replace("PROGRAM", &program.display().to_string()),
        );
        Self { adapter: Arc::new(parse(Path::new("fake.toml"), &text).unwrap()), tmp }
    }

    pub(crate) fn job(&self, prompt: &str) -> Job {
        Job {
            adapter: self.adapter.clone(),
            transport: None,
            prompt: prompt.into(),
            cwd: self.tmp.path().into(),
            model: None,
            resume: crate::job::Resume::default(),
            env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
            lookup: Arc::new(|_| None),
            auto_approve: true,
            denied: Vec::new(),
            edits: true,
            stay: false,
            size: (80, 24),
            limits: Limits { grace: Duration::from_millis(200), ..Limits::default() },
            files: None,
        }
    }

    pub(crate) async fn ending(&self, job: Job) -> Ending {
        let (_control, said) = start(job, &Host::default()).unwrap();
        all(said).await.1
    }
}

/// All events, and the ending.
pub(crate) async fn all(mut said: mpsc::Receiver<AgentEvent>) -> (Vec<AgentEvent>, Ending) {
    let mut before = Vec::new();
    let collect = async {
        while let Some(s) = said.recv().await {
            before.push(s);
        }
    };
    timeout(TIMEOUT, collect).await.expect("the stream is stuck");
    let Some(AgentEvent::Ended(ending)) = before.pop() else { panic!("no ending: {before:?}") };
    assert!(!before.iter().any(|s| matches!(s, AgentEvent::Ended(_))));
    (before, ending)
}
