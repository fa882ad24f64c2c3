//! Starting Chromium with its DevTools on a pipe: no TCP port is opened, and the browser ends when the pipe closes,
//! also when this process is killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::lock;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio_util::task::AbortOnDropHandle;

use super::profile;
use crate::browser::cdp::{Cdp, pipe};
use crate::browser::outlet::NO_BYPASS;
use crate::shell::own_folder;

/// Longest time of a browser to end after it was asked to.
const END: Duration = Duration::from_secs(3);
/// Bytes of the browser's error output that are kept.
const STDERR: usize = 4_000;
/// Chromium reads messages from descriptor 3 and writes them to descriptor 4. The shell moves its input and output there.
const DESCRIPTORS: &str = "exec 3<&0 4>&1 </dev/null >/dev/null; exec \"$@\"";

/// What is started.
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a Path,
    /// A profile that is kept; `None`: a temporary one.
    pub(crate) profile: Option<&'a Path>,
    pub(crate) headless: bool,
    /// Address of the proxy that everything goes through.
    pub(crate) proxy: &'a str,
    /// Further arguments.
    pub(crate) arguments: &'a [String],
    /// The whole environment.
    pub(crate) env: &'a [(String, String)],
}

/// A browser that this process started.
pub(crate) struct Running {
    pub(crate) cdp: Arc<Cdp>,
    child: Child,
    group: Option<rustix::process::Pid>,
    stderr: Arc<std::sync::Mutex<Vec<u8>>>,
    _drain: AbortOnDropHandle<()>,
    /// The temporary profile; removed with its content.
    _profile: Option<tempfile::TempDir>,
}

/// Starts a browser.
///
/// # Errors
/// What is wrong and what to do, in words.
pub(crate) fn start(launch: &Launch<'_>) -> Result<Running, String> {
    let (folder, temporary) = match launch.profile {
        Some(folder) => {
            if let Some(owner) = profile::owner(folder) {
                return Err(format!(
                    "the browser profile {} is in use by {owner}. Close that browser, or set another browser.profile",
                    folder.display()
                ));
            }
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            (folder.to_owned(), None)
        }
        None => {
            let made = own_folder::make("browser");
            let made = made.map_err(|e| format!("no folder for the browser's profile: {e}"))?;
            (made.path().to_owned(), Some(made))
        }
    };
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(DESCRIPTORS)
        .arg("sh")
        .arg(launch.program)
        .args(arguments(&folder, launch.headless));
    command.args(launch.arguments);
    // Behind the person's: the last of two counts.
    command.args(way_out(launch.proxy));
    command.env_clear().envs(launch.env.iter().map(|(k, v)| (k, v)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: the browser's processes end together, and Ctrl-C of the terminal does not reach them.
    command.process_group(0).kill_on_drop(true);
    let failed = |e: std::io::Error| format!("{} could not be started: {e}", launch.program.display());
    let mut child = command.spawn().map_err(failed)?;
    let group = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
    let (Some(input), Some(output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("the browser has no pipes".into());
    };
    let stderr = Arc::new(std::sync::Mutex::new(Vec::new()));
    let drain = AbortOnDropHandle::new(tokio::spawn(keep_tail(errors, Arc::clone(&stderr))));
    let (transmit, receive) = pipe(input, output);
    Ok(Running {
        cdp: Arc::new(Cdp::new(transmit, receive)),
        child,
        group,
        stderr,
        _drain: drain,
        _profile: temporary,
    })
}

fn arguments(profile: &Path, headless: bool) -> Vec<std::ffi::OsString> {
    let mut args: Vec<std::ffi::OsString> = [
        "--remote-debugging-pipe=cbor",
        "--no-first-run",
        "--no-default-browser-check",
        "--no-startup-window",
        "--disable-background-networking",
        "--disable-background-timer-throttling",
        "--disable-renderer-backgrounding",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-extensions",
        "--disable-sync",
        "--disable-breakpad",
        "--disable-dev-shm-usage",
        "--metrics-recording-only",
        "--mute-audio",
        "--password-store=basic",
        "--use-mock-keychain",
        "--window-size=1280,800",
        // A page's own dialogs stay results of calls; a print dialog would wait for a person.
        "--disable-print-preview",
        // A second wall: the proxy judges what a page of the internet reaches.
        "--enable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets,LocalNetworkAccessChecksWebRTC,LocalNetworkAccessChecksWebTransport",
        "--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication",
    ]
    .map(Into::into)
    .into();
    if headless {
        args.push("--headless=new".into());
        args.push("--hide-scrollbars".into());
    }
    if rustix::process::geteuid().is_root() {
        // Chromium refuses to start its own sandbox as root.
        args.push("--no-sandbox".into());
    }
    let mut folder = std::ffi::OsString::from("--user-data-dir=");
    folder.push(profile);
    args.push(folder);
    args
}

/// The arguments by which everything that the browser opens goes through the proxy at this address, and by no other way.
fn way_out(proxy: &str) -> [String; 7] {
    [
        format!("--proxy-server={proxy}"),
        format!("--proxy-bypass-list={NO_BYPASS}"),
        // It finds no name itself, so that nothing that ignores the proxy reaches a host, and no query of names leaks. The rule
        // for addresses is the same as for names.
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1".into(),
        "--dns-prefetch-disable".into(),
        "--disable-quic".into(),
        // The second name is that of older versions.
        "--webrtc-ip-handling-policy=disable_non_proxied_udp".into(),
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp".into(),
    ]
}

/// Reads all of it and keeps its end, so that the browser never waits for a reader.
async fn keep_tail(mut errors: tokio::process::ChildStderr, tail: Arc<std::sync::Mutex<Vec<u8>>>) {
    let mut piece = [0; 4096];
    while let Ok(read) = errors.read(&mut piece).await {
        if read == 0 {
            break;
        }
        let mut tail = lock(&tail);
        tail.extend_from_slice(&piece[..read]);
        let over = tail.len().saturating_sub(STDERR);
        tail.drain(..over);
    }
}

impl Running {
    /// The last lines that the browser wrote to its error output, not cleaned.
    pub(crate) fn errors(&self) -> String {
        let tail = lock(&self.stderr);
        let text = String::from_utf8_lossy(&tail);
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].join("\n")
    }

    /// Ends the browser and all of its processes, and waits for that.
    pub(crate) async fn end(mut self) {
        self.cdp.post(None, "Browser.close", serde_json::json!({})).await;
        if tokio::time::timeout(END, self.child.wait()).await.is_err() {
            tracing::warn!("the browser did not end when asked to");
        }
        self.kill();
        // It was killed above at the latest.
        let _ = self.child.wait().await;
    }

    /// Its process group.
    #[cfg(test)]
    pub(crate) fn group(&self) -> Option<rustix::process::Pid> {
        self.group
    }

    /// Kills what is left of its group.
    pub(crate) fn kill(&self) {
        if let Some(group) = self.group {
            // Usually nothing is left.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A profile's folder by its name, below the folder of all profiles. `None`: the name is no plain file name.
pub(crate) fn profile_folder(profiles: &Path, name: &str) -> Option<PathBuf> {
    let plain = !name.is_empty()
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    plain.then(|| profiles.join(name))
}
