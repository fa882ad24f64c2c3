//! Agent programs of other vendors on this machine, for the doctor and for the setup of a first model.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Command and title of each known program.
const KNOWN: &[(&str, &str)] = &[
    ("claude", "Claude Code"),
    ("codex", "Codex"),
    ("gemini", "Gemini CLI"),
    ("aider", "aider"),
    ("opencode", "OpenCode"),
    ("goose", "goose"),
    ("cursor-agent", "Cursor"),
    ("amp", "Amp"),
    ("qwen", "Qwen Code"),
    ("crush", "Crush"),
    ("copilot", "GitHub Copilot"),
    ("kiro-cli", "Kiro"),
    ("grok", "Grok"),
];

/// Maximum bytes of an answer that are read.
const MOST: u64 = 4096;

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentCli {
    /// The command.
    pub(crate) name: &'static str,
    /// The title for people.
    pub(crate) title: &'static str,
    pub(crate) path: PathBuf,
}

/// The programs on `path` (in the syntax of `$PATH`), in the order of `KNOWN`. Starts nothing.
pub(crate) fn found(path: &str) -> Vec<AgentCli> {
    let runs =
        |p: &PathBuf| std::fs::metadata(p).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    // A relative folder would be a different one in each project.
    let folders: Vec<PathBuf> = std::env::split_paths(path).filter(|f| f.is_absolute()).collect();
    let of = |(name, title): &(&'static str, &'static str)| {
        let path = folders.iter().map(|f| f.join(name)).find(runs)?;
        Some(AgentCli { name, title, path })
    };
    KNOWN.iter().filter_map(of).collect()
}

/// The version that each prints, queried concurrently, with a time limit for each. `None`: no answer in time.
pub(crate) fn versions(found: &[AgentCli], env: &[(String, String)], time: Duration) -> Vec<Option<String>> {
    let asked: Vec<_> = found.iter().map(|agent| ask(agent, env)).collect();
    let end = std::time::Instant::now() + time;
    asked
        .into_iter()
        .map(|asked| asked?.answer(end.saturating_duration_since(std::time::Instant::now())))
        .collect()
}

/// A running query.
struct VersionQuery {
    child: std::process::Child,
    said: mpsc::Receiver<String>,
}

fn ask(agent: &AgentCli, env: &[(String, String)]) -> Option<VersionQuery> {
    let mut command = Command::new(&agent.path);
    command
        .arg("--version")
        .env_clear()
        .envs(env.iter().map(|(k, v)| (k, v)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let mut child = tiller_tool::shell::retry_while_busy(|| command.spawn()).ok()?;
    let stdout = child.stdout.take()?;
    // One message: the output. The thread holds the sender and ends when the pipe is closed, at the latest by the kill
    // below.
    let (tx, said) = mpsc::sync_channel(1);
    let reader = move || {
        let mut text = Vec::new();
        let _ = stdout.take(MOST).read_to_end(&mut text);
        let _ = tx.send(String::from_utf8_lossy(&text).into_owned());
    };
    std::thread::Builder::new().name("tiller-version".into()).spawn(reader).ok()?;
    Some(VersionQuery { child, said })
}

impl VersionQuery {
    fn answer(mut self, time: Duration) -> Option<String> {
        let said = self.said.recv_timeout(time).ok();
        // Its child processes are killed, too.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
            && !matches!(self.child.try_wait(), Ok(Some(_)))
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
        let line = said?.lines().map(str::trim).find(|l| !l.is_empty())?.to_owned();
        Some(line.chars().filter(|c| !c.is_control()).take(60).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(folder: &std::path::Path, name: &str, script: &str, mode: u32) {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn programs_on_the_path_are_found_and_say_their_version() {
        let tmp = tempfile::tempdir().unwrap();
        program(tmp.path(), "claude", "printf '\\n 2.1.0 (Claude Code)\\n'; env | grep -c SECRET", 0o755);
        program(tmp.path(), "codex", "sleep 1000 & wait", 0o755);
        program(tmp.path(), "aider", "echo never", 0o644);
        let path = format!("relative:/nowhere:{}", tmp.path().display());
        let agents = found(&path);
        assert_eq!(agents.iter().map(|a| a.name).collect::<Vec<_>>(), ["claude", "codex"]);
        let env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let said = versions(&agents[..1], &env, Duration::from_secs(60));
        assert_eq!(said, [Some("2.1.0 (Claude Code)".to_owned())]);
        assert_eq!(versions(&agents[1..], &env, Duration::from_millis(300)), [None]);
        assert_eq!(found(""), []);
    }
}
