//! A command in the background at the other side: a shell of its own that runs one command with an input.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tiller_tool::shell::{Exit, ProcessThere, ShellError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::failed;
use crate::link::{Frame, Link};
use crate::place::{ShellStart, Way};
use crate::shell::{Again, Report, again};

/// From TERM to KILL, and from KILL to giving up.
const GRACE: Duration = Duration::from_secs(3);
/// Bytes of input that are sent at once: less than the pipe at the other side holds.
const INPUT: usize = 4 << 10;

/// Starts it. A task holds the connection until the command has ended.
pub(crate) async fn start(
    way: Arc<Way>,
    start: ShellStart,
    command: &str,
) -> Result<ProcessThere, ShellError> {
    let pipe = |e: std::io::Error| failed(&way.title, e);
    let (out, stdout) = std::io::pipe().map_err(pipe)?;
    let (stdin, input) = std::io::pipe().map_err(pipe)?;
    rustix::io::ioctl_fionbio(&input, true).map_err(|e| pipe(e.into()))?;
    let stdout = Sender::from_owned_fd(OwnedFd::from(stdout)).map_err(pipe)?;
    let stdin = Receiver::from_owned_fd(OwnedFd::from(stdin)).map_err(pipe)?;
    let (link, _) = way.open(&start).await.map_err(|e| way.failed(&e))?;
    link.ask(&format!("run p1 0 {}", command.len()), &[command.as_bytes()]).await;
    let (tx, exit) = watch::channel(None);
    let end = CancellationToken::new();
    let follower = Follower { way, start, command: command.to_owned(), stdout, seen: 0 };
    let fired = end.clone();
    drop(tokio::spawn(async move {
        let code = follower.follow(link, stdin, fired).await;
        let _ = tx.send(Some(Exit { code }));
    }));
    Ok(ProcessThere { output: OwnedFd::from(out), input, exit, end })
}

struct Follower {
    way: Arc<Way>,
    start: ShellStart,
    command: String,
    stdout: Sender,
    /// Bytes of output that have come.
    seen: u64,
}

impl Follower {
    /// Until its end; the exit code.
    async fn follow(mut self, mut link: Link, mut stdin: Receiver, end: CancellationToken) -> i32 {
        let mut buffer = [0; INPUT];
        let mut open = true;
        // KILL follows TERM, and the end of waiting follows KILL.
        let mut signals = 0;
        let mut due = tokio::time::Instant::now();
        let code = loop {
            tokio::select! {
                () = end.cancelled(), if signals == 0 => {
                    link.ask("kill TERM", &[]).await;
                    (signals, due) = (1, tokio::time::Instant::now() + GRACE);
                }
                () = tokio::time::sleep_until(due), if signals > 0 => {
                    if signals == 2 {
                        break 137;
                    }
                    link.ask("kill KILL", &[]).await;
                    (signals, due) = (2, tokio::time::Instant::now() + GRACE);
                }
                read = stdin.read(&mut buffer), if open => match read {
                    Ok(n @ 1..) => link.ask(&format!("input {n}"), &[&buffer[..n]]).await,
                    _ => {
                        open = false;
                        link.ask("close", &[]).await;
                    }
                },
                frame = link.next() => match frame {
                    Some(Frame::Output(bytes)) => {
                        self.seen += bytes.len() as u64;
                        // Its reader is gone with the job.
                        let _ = self.stdout.write_all(&bytes).await;
                    }
                    Some(Frame::End(bytes)) => break Report::read(&bytes).map_or(255, |r| r.status),
                    Some(Frame::Gone) => break if signals > 0 { 143 } else { 137 },
                    Some(_) => {}
                    None if signals > 0 => break 143,
                    None => match self.mend(&end).await {
                        Some(found) => link = found,
                        None => break 255,
                    },
                },
            }
        };
        link.ask("quit", &[]).await;
        code
    }

    async fn say(&mut self, text: &str) {
        let _ = self.stdout.write_all(format!("\n[{text}]\n").as_bytes()).await;
    }

    async fn mend(&mut self, end: &CancellationToken) -> Option<Link> {
        let title = self.way.title.clone();
        self.say(&format!("the connection to {title} broke; trying again")).await;
        let came = tokio::select! {
            () = end.cancelled() => Again::Never("ended while there was no connection".into()),
            came = again(&self.way, &self.start) => came,
        };
        match came {
            Again::Found(link) => {
                let text = &self.command;
                link.ask(&format!("run p1 {} {}", self.seen, text.len()), &[text.as_bytes()]).await;
                self.say("connected again; nothing was lost").await;
                Some(link)
            }
            Again::Lost => {
                self.say(&format!("it is lost: {title} no longer knows it")).await;
                None
            }
            Again::Never(why) => {
                self.say(&format!("it is lost: {why}")).await;
                None
            }
        }
    }
}
