//! Where a provider's key comes from. Keys are never printed: [`Secret`] hides its value.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use crate::error::ProviderError;

/// How long a key command may take.
pub const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// Bytes read of its output.
const OUTPUT_LIMIT: u64 = 64 * 1024;

/// A value that must not be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key; blanks around it are dropped.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The value, for the header that carries it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Where a key comes from.
#[derive(Debug)]
pub enum Key {
    /// None is needed.
    None,
    Value(Secret),
    /// Runs when first needed, and again after the key was refused.
    Command {
        command: String,
        limit: Duration,
        last: Mutex<Option<Secret>>,
    },
    /// A file written by [`save`]; read each time, so that a key entered later is found.
    File {
        path: PathBuf,
        name: String,
    },
}

impl Key {
    /// A command whose first output line is the key.
    pub fn command(command: &str) -> Self {
        Self::Command { command: command.into(), limit: COMMAND_LIMIT, last: Mutex::new(None) }
    }

    /// The key.
    ///
    /// # Errors
    /// [`ProviderError::Auth`] when there should be one but it cannot be had.
    pub async fn get(&self, provider: &str) -> Result<Option<Secret>, ProviderError> {
        match self {
            Self::None => Ok(None),
            Self::Value(secret) => Ok(Some(secret.clone())),
            Self::Command { command, limit, last } => {
                if let Some(key) = last.lock().unwrap_or_else(PoisonError::into_inner).clone() {
                    return Ok(Some(key));
                }
                let key = run(command, *limit).await.map_err(|why| {
                    ProviderError::Auth(format!(
                        "the key command of {provider} {why}. Check api_key_command in config.toml."
                    ))
                })?;
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(key.clone());
                Ok(Some(key))
            }
            Self::File { path, name } => match load(path, name) {
                Ok(Some(key)) => Ok(Some(key)),
                Ok(None) => Err(ProviderError::Auth(format!("no key for {provider} is set."))),
                Err(why) => Err(ProviderError::Auth(why)),
            },
        }
    }

    /// Drops a remembered key that was refused.
    pub fn forget(&self) {
        if let Self::Command { last, .. } = self {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// Runs a key command in a process group of its own; the whole group ends at the limit.
async fn run(command: &str, limit: Duration) -> Result<Secret, String> {
    let mut child = tokio::process::Command::new("sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| format!("could not be started ({e})"))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    let Some(stdout) = child.stdout.take() else { return Err("printed nothing".into()) };
    let mut text = Vec::new();
    let work = async {
        let read = stdout.take(OUTPUT_LIMIT).read_to_end(&mut text).await;
        ended(group).await;
        read
    };
    let done = tokio::time::timeout(limit, work).await;
    if let Some(group) = group {
        // In the usual case nothing of it is left but the command, which is not collected: the number is still its own.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let status = match done {
        Err(_) => return Err(format!("took longer than {} seconds", limit.as_secs_f32())),
        Ok(Err(e)) => return Err(format!("failed ({e})")),
        Ok(Ok(_)) => child.wait().await.map_err(|e| format!("failed ({e})"))?,
    };
    if !status.success() {
        return Err(format!("failed ({status})"));
    }
    let text = String::from_utf8_lossy(&text);
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Ok(Secret::new(line)),
        _ => Err("printed no key".into()),
    }
}

/// Waits for the end of a child, and does not collect it.
async fn ended(child: Option<rustix::process::Pid>) {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let Some(child) = child else { return };
    let wait = move || {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(child), how), Err(rustix::io::Errno::INTR)) {}
    };
    // A process that cannot be waited for is collected below.
    let _ = tokio::task::spawn_blocking(wait).await;
}

/// Reads the key of a provider from a key file. `Ok(None)`: no file, or no such key in it.
///
/// # Errors
/// A sentence for people, when others may read the file or it cannot be read.
pub fn load(path: &Path, name: &str) -> Result<Option<Secret>, String> {
    let shown = path.display();
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(format!("the key file {shown} cannot be read ({e}).")),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if meta.permissions().mode() & 0o077 != 0 {
            return Err(format!(
                "the key file {shown} can be read by others and is not used. Run: chmod 600 {shown}"
            ));
        }
    }
    if meta.len() > OUTPUT_LIMIT {
        return Err(format!("the key file {shown} is too large."));
    }
    let text =
        std::fs::read_to_string(path).map_err(|e| format!("the key file {shown} cannot be read ({e})."))?;
    let table: toml::Table = text
        .parse()
        .map_err(|_| format!("the key file {shown} is not valid TOML (name = \"key\" lines)."))?;
    Ok(table.get(name).and_then(toml::Value::as_str).filter(|k| !k.trim().is_empty()).map(Secret::new))
}

/// Sets the key of a provider in a key file, 0600, replaced in one step. The folder must exist.
///
/// # Errors
/// A sentence for people.
pub fn save(path: &Path, name: &str, key: &Secret) -> Result<(), String> {
    put_back(path, name, Some(key))
}

/// As [`save`]; `None` takes the provider's key out.
///
/// # Errors
/// A sentence for people.
pub fn put_back(path: &Path, name: &str, key: Option<&Secret>) -> Result<(), String> {
    let shown = path.display();
    let say = |e: std::io::Error| format!("the key file {shown} cannot be written ({e}).");
    let mut table: toml::Table = match std::fs::read_to_string(path) {
        Ok(text) => text.parse().map_err(|_| format!("the key file {shown} is not valid TOML."))?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => toml::Table::new(),
        Err(e) => return Err(say(e)),
    };
    match key {
        Some(key) => drop(table.insert(name.to_owned(), toml::Value::String(key.reveal().to_owned()))),
        None => drop(table.remove(name)),
    }
    let next = path.with_extension(format!("new{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let written = (|| {
        let mut file = options.open(&next)?;
        std::io::Write::write_all(&mut file, table.to_string().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&next, path)
    })();
    written.map_err(|e| {
        let _ = std::fs::remove_file(&next);
        say(e)
    })
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
