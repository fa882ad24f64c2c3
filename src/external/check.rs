//! Checks whether a program is installed, new enough and logged in. Quick and cached.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tiller_tool::shell::{Host, Launch, find_program};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::adapter::Adapter;
use super::environment::{base, configured};
use super::job::{Limits, Lookup};
use super::pipes::{self, Line, PipedProgram};
use tiller_protocol::Transport;

/// State of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// `version`: if it printed one. `transports`: those whose programs are installed.
    Ready {
        version: Option<String>,
        transports: Vec<Transport>,
    },
    Missing {
        fix: String,
    },
    TooOld {
        version: String,
        min: String,
        fix: String,
    },
    NotAuthenticated {
        version: Option<String>,
        fix: String,
    },
}

impl Ready {
    /// A description after the program's name: `2.1.0 (acp, headless, pty)`, `is not installed`, ...
    pub fn words(&self) -> String {
        let version = |v: &Option<String>| v.as_ref().map_or_else(String::new, |v| format!("{v} "));
        match self {
            Self::Ready { version: v, transports } => {
                let names: Vec<_> = transports.iter().map(|t| t.name()).collect();
                format!("{}({})", version(v), names.join(", "))
            }
            Self::Missing { .. } => "is not installed".into(),
            Self::TooOld { version, min, .. } => {
                format!("{version} is too old; {min} is the oldest that works")
            }
            Self::NotAuthenticated { version: v, .. } => format!("{}is not logged in", version(v)),
        }
    }

    /// What to do when it is not ready.
    pub fn fix(&self) -> Option<&str> {
        match self {
            Self::Ready { .. } => None,
            Self::Missing { fix } | Self::TooOld { fix, .. } | Self::NotAuthenticated { fix, .. } => {
                Some(fix)
            }
        }
    }
}

/// Identity of a program file: path, time of modification, size.
type Stamp = (PathBuf, Option<SystemTime>, u64);

/// Checks programs; caches the version of each file until it changes.
#[derive(Debug, Default)]
pub struct Checker {
    host: Host,
    known: Mutex<HashMap<Stamp, Option<String>>>,
}

impl Checker {
    /// The state of `adapter`'s program. `env` is the allow-listed base, `time` the limit for printing its version
    /// (exceeding it does not make the program unready).
    pub async fn check(
        &self,
        adapter: &Adapter,
        env: &[(String, String)],
        lookup: &Lookup,
        time: Duration,
    ) -> Ready {
        let by_configuration = configured(adapter, env, lookup);
        let env = base(adapter, env, lookup);
        let own = &adapter.program;
        let Some(path) = find_program(&own.command, &env) else {
            return Ready::Missing { fix: own.install.clone() };
        };
        let version = self.version(&path, &own.version, &env, time).await;
        if let (Some(min), Some(version)) = (&own.min, &version)
            && numbers(version) < numbers(min)
        {
            let (version, min) = (version.clone(), min.clone());
            return Ready::TooOld { version, min, fix: own.install.clone() };
        }
        if !by_configuration && !logged_in(adapter, &env) {
            return Ready::NotAuthenticated { version, fix: adapter.auth.fix.clone() };
        }
        let mut transports = Vec::new();
        if adapter.acp.as_ref().is_some_and(|a| find_program(&a.command, &env).is_some()) {
            transports.push(Transport::Acp);
        }
        transports.extend(adapter.headless.as_ref().map(|_| Transport::Headless));
        transports.extend(adapter.pty.as_ref().map(|_| Transport::Pty));
        Ready::Ready { version, transports }
    }

    /// Checks all adapters concurrently; results in their order.
    pub async fn check_all(
        &self,
        adapters: impl IntoIterator<Item = &Arc<Adapter>>,
        env: &[(String, String)],
        lookup: &Lookup,
        time: Duration,
    ) -> Vec<(String, Ready)> {
        let one = |a: &Arc<Adapter>| {
            let a = a.clone();
            async move { (a.name.clone(), self.check(&a, env, lookup, time).await) }
        };
        futures_util::future::join_all(adapters.into_iter().map(one)).await
    }

    async fn version(
        &self,
        path: &Path,
        args: &[String],
        env: &[(String, String)],
        time: Duration,
    ) -> Option<String> {
        let meta = std::fs::metadata(path).ok();
        let changed = meta.as_ref().and_then(|m| m.modified().ok());
        let stamp = (path.to_owned(), changed, meta.map_or(0, |m| m.len()));
        let known = |s: &Self| s.known.lock().unwrap_or_else(PoisonError::into_inner).get(&stamp).cloned();
        if let Some(version) = known(self) {
            return version;
        }
        let launch =
            Launch { program: path.into(), args: args.to_vec(), env: env.to_vec(), folder: "/".into() };
        let PipedProgram { hosted, stdin, mut lines, errors: _errors } =
            pipes::start(&self.host, launch, Limits { line: 4096, output: 256 << 10, ..Limits::default() })
                .ok()?;
        drop(stdin);
        let read = async {
            loop {
                match lines.next().await {
                    Line::Text(line) => {
                        if let Some(found) = dotted(&line) {
                            return Some(found);
                        }
                    }
                    Line::TooLong => {}
                    Line::TooMuch | Line::End => return None,
                }
            }
        };
        let said = timeout(time, read).await;
        hosted.end(Duration::ZERO, &CancellationToken::new()).await;
        // A program that was slow once may be faster next time.
        let said = said.ok()?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(stamp, said.clone());
        said
    }
}

/// The first dotted number of a line: `codex-cli 0.166.0` has `0.166.0`.
fn dotted(line: &str) -> Option<String> {
    let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || ".-+".contains(c)));
    let digit = |w: &&str| w.starts_with(|c: char| c.is_ascii_digit()) && w.contains('.');
    let word = words.map(|w| w.trim_start_matches('v')).find(digit)?;
    Some(word.chars().take(40).collect())
}

/// `2.1.197` as numbers; a suffix after a dash is ignored.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    plain.split('.').map(|n| n.parse().unwrap_or(0)).collect()
}

fn logged_in(adapter: &Adapter, env: &[(String, String)]) -> bool {
    let auth = &adapter.auth;
    if auth.env.is_empty() && auth.files.is_empty() {
        return true;
    }
    let var =
        |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str()).filter(|v| !v.is_empty());
    if auth.env.iter().any(|name| var(name).is_some()) {
        return true;
    }
    auth.files.iter().any(|file| {
        let (first, rest) = file.split_once('/').unwrap_or((file, ""));
        let folder = match first.strip_prefix('$') {
            Some(name) => var(name),
            None if first == "~" => var("HOME"),
            None => Some("/"),
        };
        folder.is_some_and(|f| Path::new(f).join(rest).is_file())
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::adapter::{Adapters, parse};

    #[tokio::test]
    async fn each_state_is_told_with_what_to_do_and_a_version_is_asked_once() {
        let tmp = tempfile::tempdir().unwrap();
        let program = tmp.path().join("fake");
        let write = |script: &str| {
            tiller_testkit::program(&program, &format!("#!/bin/sh\n{script}\n"));
        };
        let adapter = |command: &str| {
            let text = format!(
                "name = \"fake\"\ntitle = \"Fake\"\n[program]\ncommand = \"{command}\"\nmin = \"1.10\"\ninstall = \"get it\"\n[auth]\nenv = [\"FAKE_API_KEY\"]\nfiles = [\"~/login\", \"$FAKE_HOME/login\"]\nfix = \"log in\"\n[env]\nkeys = [\"FAKE_API_KEY\"]\n[acp]\ncommand = \"not-there-at-all\"\n[headless]\nformat = \"text\"\nprompt = \"stdin\"\n"
            );
            parse(Path::new("fake.toml"), &text).unwrap()
        };
        let checker = Checker::default();
        let env = vec![
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), tmp.path().display().to_string()),
        ];
        let none: Lookup = Arc::new(|_| None);
        let check = async |command: &str, lookup: &Lookup, time: u64| {
            checker.check(&adapter(command), &env, lookup, Duration::from_millis(time)).await
        };
        let here = program.display().to_string();
        assert_eq!(check("not-there-at-all", &none, 60_000).await, Ready::Missing { fix: "get it".into() });
        write("echo starting; echo Fake v1.9.3-beta");
        assert!(
            matches!(check(&here, &none, 60_000).await, Ready::TooOld { version, .. } if version == "1.9.3-beta")
        );
        let asked = format!("echo x >>'{}/asked'; echo 1.10.2", tmp.path().display());
        write(&asked);
        let out = check(&here, &none, 60_000).await;
        assert_eq!(out.fix(), Some("log in"), "{out:?}");
        std::fs::write(tmp.path().join("login"), "").unwrap();
        let ready = Ready::Ready { version: Some("1.10.2".into()), transports: vec![Transport::Headless] };
        assert_eq!(check(&here, &none, 60_000).await, ready);
        assert_eq!(std::fs::read_to_string(tmp.path().join("asked")).unwrap(), "x\n");
        // A hanging program does not block the check, and still counts as ready.
        std::fs::remove_file(tmp.path().join("login")).unwrap();
        write("sleep 3000");
        let key: Lookup = Arc::new(|n| (n == "FAKE_API_KEY").then(|| "k".into()));
        assert!(matches!(check(&here, &key, 200).await, Ready::Ready { version: None, .. }));
    }

    #[tokio::test]
    async fn programs_that_are_not_installed_say_how_to_get_them() {
        let all = Adapters::new(&[]);
        let env = vec![("PATH".to_owned(), "/nowhere".to_owned())];
        let none: Lookup = Arc::new(|_| None);
        let told = Checker::default().check_all(all.iter(), &env, &none, Duration::from_secs(9)).await;
        assert_eq!(told.len(), 7);
        for (name, ready) in told {
            assert!(matches!(ready, Ready::Missing { .. }), "{name}: {ready:?}");
            assert!(ready.fix().is_some_and(|f| !f.is_empty()));
        }
    }
}
