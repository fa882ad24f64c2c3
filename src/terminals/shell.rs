//! A persistent shell at the other side. It outlives its connection: when that breaks, another one is made, and the command
//! that runs is found again, or said to be lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tiller_tool::ToolCx;
use tiller_tool::shell::{CommandEnd, CommandResult, Exit, Line, Refusals, Shell, ShellError, Sink};
use tokio::time::sleep_until;

use crate::kinds::Failure;
use crate::link::{Frame, LEAVE, Link};
use crate::place::{ShellStart, Way, key};
use crate::quote;

/// Between two tries to connect.
const TRIES: &[Duration] = &[
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
];
/// After KILL, until the other side has to say that all has ended.
const GIVE_UP: Duration = Duration::from_secs(10);
/// Until the answer to a line of Tiller.
const WHISPER: Duration = Duration::from_secs(30);

/// What a connection that broke came to.
pub(crate) enum Again {
    /// The shell is there, and so is what it ran.
    Found(Link),
    /// There is a connection, but what ran is gone.
    Lost,
    /// There is none. A sentence.
    Never(String),
}

/// Makes a broken connection again, for as long as the other side keeps the shell.
pub(crate) async fn again(way: &Way, start: &ShellStart) -> Again {
    let until = Instant::now() + Duration::from_secs(way.keep.into());
    let mut tries = TRIES.iter();
    let mut pause = Duration::ZERO;
    loop {
        pause = tries.next().copied().unwrap_or(pause);
        tokio::time::sleep(pause).await;
        match way.open(start).await {
            Ok((link, true)) => return Again::Found(link),
            Ok((link, false)) => {
                // Its folder was gone; the new one is of no use.
                link.ask("quit", &[]).await;
                return Again::Lost;
            }
            Err(Failure::Refused(why)) => return Again::Never(why),
            Err(Failure::Broken(why)) if Instant::now() >= until => return Again::Never(why),
            Err(Failure::Broken(_)) => {}
        }
    }
}

/// What the shell says after a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The shell ends.
    pub(crate) last: bool,
    pub(crate) status: i32,
    pub(crate) folder: String,
    pub(crate) exports: Vec<u8>,
}

impl Report {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.splitn(4, |b| *b == b'\n');
        let mut text = || parts.next().and_then(|p| std::str::from_utf8(p).ok());
        let (kind, status, folder) = (text()?, text()?.trim().parse().ok()?, text()?.to_owned());
        Some(Self { last: kind == "x", status, folder, exports: parts.next().unwrap_or_default().to_vec() })
    }
}

pub(crate) struct RemoteShell {
    way: Arc<Way>,
    start: ShellStart,
    /// `None`: the shell is gone.
    link: Option<Link>,
    commands: u64,
    /// What the agents' folder is really called there.
    folder: String,
}

/// What the watch over a running command is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Running,
    /// TERM was sent; KILL follows at this time.
    Asked(Instant),
    /// KILL was sent; at this time we give up.
    Killed(Instant),
}

/// How a command came to its end.
struct Ended {
    how: CommandEnd,
    report: Option<Report>,
    note: Option<String>,
}

impl RemoteShell {
    pub(crate) async fn open(way: Arc<Way>, start: ShellStart) -> Result<Self, ShellError> {
        let link = first(&way, &start).await?;
        let folder = way.kind.folder().to_owned();
        let mut shell = Self { way, start, link: Some(link), commands: 0, folder };
        // `~` and links in it are only known there.
        let root = shell.way.kind.folder().to_owned();
        let go = match root.strip_prefix("~/") {
            Some(below) => format!("~/{}", quote(below)),
            None => quote(&root),
        };
        let line = format!("command mkdir -p -- {go} && cd -- {go} && pwd -P");
        let Some((_, output)) = shell.ask_line(&line).await? else {
            shell.close().await;
            return Err(crate::failed(&shell.way.title, format!("the folder {root} cannot be used there")));
        };
        shell.folder = output.trim_end_matches('\n').to_owned();
        let first = shell.start.folder.clone();
        let below = first.strip_prefix(&root).map(|below| format!("{}{below}", shell.folder));
        let line = format!("cd -- {}", quote(&below.unwrap_or(first)));
        let _ = shell.ask_line(&line).await?;
        Ok(shell)
    }

    /// Runs a line of Tiller; its report and its output. `None`: it failed.
    async fn ask_line(&mut self, line: &str) -> Result<Option<(Report, String)>, ShellError> {
        self.commands += 1;
        let Some(link) = self.link.as_mut() else { return Ok(None) };
        link.ask(&format!("run {} 0 {}", self.commands, line.len()), &[line.as_bytes()]).await;
        let mut output = Vec::new();
        let report = tokio::time::timeout(WHISPER, async {
            loop {
                match link.next().await {
                    Some(Frame::Output(bytes)) => output.extend_from_slice(&bytes),
                    Some(Frame::End(bytes)) => return Report::read(&bytes),
                    _ => return None,
                }
            }
        });
        match report.await {
            Ok(Some(report)) if report.status == 0 && !report.last => {
                Ok(Some((report, String::from_utf8_lossy(&output).into_owned())))
            }
            Ok(Some(report)) if !report.last => Ok(None),
            _ => {
                self.link = None;
                Ok(None)
            }
        }
    }

    /// Before a command: a connection that broke at rest is made again. Where the shell is gone with it, another one
    /// takes its place; returns what the model has to know then.
    async fn revive(&mut self) -> Result<Option<String>, ShellError> {
        if self.link.as_ref().is_some_and(|link| !link.closed()) {
            return Ok(None);
        }
        let title = self.way.title.clone();
        match again(&self.way, &self.start).await {
            Again::Found(link) => {
                self.link = Some(link);
                Ok(None)
            }
            Again::Lost => {
                self.start.key = key();
                self.link = Some(first(&self.way, &self.start).await?);
                self.commands = 0;
                Ok(Some(format!(
                    "{title} had lost the shell; this one has the same folder and exported variables, but no functions \
                     and other variables"
                )))
            }
            Again::Never(why) => Err(crate::failed(&title, why)),
        }
    }

    /// Follows the command to its end.
    async fn follow(&mut self, line: &Line<'_>, sink: &mut Sink, cx: &ToolCx) -> Ended {
        let id = self.commands;
        let mut seen: u64 = 0;
        let mut phase = Phase::Running;
        let mut how = CommandEnd::Done;
        let mut note = None;
        while let Some(link) = self.link.as_mut() {
            let timer = match phase {
                Phase::Running => line.until,
                Phase::Asked(at) | Phase::Killed(at) => at,
            };
            let timer = sink.due().map_or(timer, |due| due.min(timer));
            tokio::select! {
                biased;
                () = line.hard.cancelled(), if !matches!(phase, Phase::Killed(_)) => {
                    how = if how == CommandEnd::Done { CommandEnd::Stopped } else { how };
                    link.ask("kill KILL", &[]).await;
                    phase = Phase::Killed(Instant::now() + GIVE_UP);
                }
                () = line.cancel.cancelled(), if phase == Phase::Running => {
                    how = CommandEnd::Stopped;
                    link.ask("kill TERM", &[]).await;
                    phase = Phase::Asked(Instant::now() + line.grace);
                }
                frame = link.next() => match frame {
                    Some(Frame::Output(bytes)) => {
                        seen += bytes.len() as u64;
                        sink.push(&bytes, cx);
                    }
                    Some(Frame::End(bytes)) => return Ended { how, report: Report::read(&bytes), note },
                    Some(Frame::Gone) => {
                        how = if how == CommandEnd::Done { CommandEnd::ShellEnded } else { how };
                        break;
                    }
                    Some(_) => {}
                    None => match self.mend(line, sink, cx, &mut note).await {
                        Some(link) => {
                            let text = line.command;
                            link.ask(&format!("run {id} {seen} {}", text.len()), &[text.as_bytes()]).await;
                            self.link = Some(link);
                            // A stop that came meanwhile is sent over the new connection.
                            phase = Phase::Running;
                        }
                        None => {
                            self.link = None;
                            how = if line.cancel.is_cancelled() { CommandEnd::Stopped } else { CommandEnd::ShellEnded };
                            return Ended { how, report: None, note };
                        }
                    },
                },
                () = sleep_until(timer.into()) => {
                    sink.send();
                    let now = Instant::now();
                    match phase {
                        Phase::Running if now >= line.until => {
                            how = CommandEnd::TimedOut;
                            link.ask("kill TERM", &[]).await;
                            phase = Phase::Asked(now + line.grace);
                        }
                        Phase::Asked(at) if now >= at => {
                            link.ask("kill KILL", &[]).await;
                            phase = Phase::Killed(now + GIVE_UP);
                        }
                        Phase::Killed(at) if now >= at => {
                            note = Some(format!("{} did not say whether its processes ended", self.way.title));
                            break;
                        }
                        _ => {}
                    }
                }
            }
        }
        if let Some(link) = self.link.take() {
            link.ask("quit", &[]).await;
        }
        Ended { how, report: None, note }
    }

    /// Makes a broken connection again while the command may still run. `None`: it is lost, or the person stops.
    async fn mend(
        &self,
        line: &Line<'_>,
        sink: &mut Sink,
        cx: &ToolCx,
        note: &mut Option<String>,
    ) -> Option<Link> {
        let title = &self.way.title;
        let keep = self.way.keep;
        sink.send();
        let _ = cx.progress.try_send(format!("\n[the connection to {title} broke; trying again]\n"));
        let began = Instant::now();
        let came = tokio::select! {
            biased;
            () = line.cancel.cancelled() => Again::Never("stopped while there was no connection".into()),
            came = again(&self.way, &self.start) => came,
        };
        let (text, link) = match came {
            Again::Found(link) => {
                let seconds = began.elapsed().as_secs_f64();
                let text = format!(
                    "the connection to {title} broke and was made again after {seconds:.1} s; nothing was lost"
                );
                (text, Some(link))
            }
            Again::Lost => (
                format!(
                    "the connection to {title} broke, and what ran there is lost: {title} no longer knows it"
                ),
                None,
            ),
            Again::Never(why) => {
                let text = format!(
                    "the connection to {title} is lost: {why}. It is not known how far the command came; what still runs \
                     there is ended within {keep} s"
                );
                (text, None)
            }
        };
        *note = Some(text);
        link
    }
}

/// The first connection: what may pass by itself is tried a second time.
async fn first(way: &Way, start: &ShellStart) -> Result<Link, ShellError> {
    match way.open(start).await {
        Ok((link, _)) => return Ok(link),
        Err(refused @ Failure::Refused(_)) => return Err(way.failed(&refused)),
        Err(Failure::Broken(_)) => tokio::time::sleep(TRIES[1]).await,
    }
    way.open(start).await.map(|(link, _)| link).map_err(|e| way.failed(&e))
}

#[async_trait]
impl Shell for RemoteShell {
    async fn run(
        &mut self,
        line: Line<'_>,
        sink: &mut Sink,
        cx: &ToolCx,
    ) -> Result<CommandResult, ShellError> {
        let fresh = self.revive().await?;
        self.commands += 1;
        let header = format!("run {} 0 {}", self.commands, line.command.len());
        if let Some(link) = self.link.as_mut() {
            link.ask(&header, &[line.command.as_bytes()]).await;
        }
        let Ended { how, report, note } = self.follow(&line, sink, cx).await;
        let note = note.or(fresh);
        sink.send();
        let how = if how == CommandEnd::Done && report.as_ref().is_none_or(|r| r.last) {
            CommandEnd::ShellEnded
        } else {
            how
        };
        if how != CommandEnd::Done {
            // The pool drops it; what is left of it there goes now.
            if let Some(link) = self.link.take() {
                link.ask("quit", &[]).await;
            }
        }
        let exit = report.as_ref().map(|r| Exit { code: r.status });
        let (folder, exports) = match report {
            Some(r) => {
                (self.start.folder, self.start.exports) = (r.folder.clone(), r.exports.clone());
                (Some(self.way.here(&r.folder, &self.folder)), Some(r.exports))
            }
            None => (None, None),
        };
        Ok(CommandResult {
            how,
            exit,
            folder,
            exports,
            state: None,
            leftover: None,
            waited: false,
            stuck: 0,
            excess: None,
            note,
            lives_on: None,
            refusals: Refusals::default(),
        })
    }

    async fn whisper(&mut self, line: &str) -> Result<bool, ShellError> {
        Ok(self.ask_line(line).await?.is_some())
    }

    async fn enter(&mut self, folder: &Path) -> Result<bool, ShellError> {
        let there = match folder.strip_prefix(&self.way.root) {
            Ok(below) if below.as_os_str().is_empty() => self.folder.clone(),
            Ok(below) => format!("{}/{}", self.folder, below.display()),
            Err(_) => folder.display().to_string(),
        };
        self.whisper(&format!("cd -- {}", quote(&there))).await
    }

    fn root(&self) -> Option<(i32, u64)> {
        None
    }

    fn pipes(&self) -> Option<PathBuf> {
        None
    }

    async fn close(&mut self) {
        if let Some(link) = self.link.take() {
            link.ask("quit", &[]).await;
            // The program may end right after this.
            link.leave(LEAVE).await;
        }
    }
}

impl Drop for RemoteShell {
    /// One that was not closed in order ends there as well, instead of waiting for a connection.
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            link.ask_last("quit");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_taken_apart_and_what_is_none_is_refused() {
        let report = Report::read(b"r\n3\n/srv/a b\nexport A='x'\nexport B\n").unwrap();
        assert_eq!((report.last, report.status, report.folder.as_str()), (false, 3, "/srv/a b"));
        assert_eq!(report.exports, b"export A='x'\nexport B\n");
        assert!(Report::read(b"x\n0\n/\n").unwrap().last);
        for wrong in [&b""[..], b"r", b"r\n0", b"r\nx\n/\n", b"r\n\xff\n/\n"] {
            assert_eq!(Report::read(wrong), None, "{wrong:?}");
        }
    }
}
