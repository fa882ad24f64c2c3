//! Files that pages give: where they arrive, and where the agent finds them.
//!
//! The browser, which no sandbox confines, writes into a folder that no command sees. A complete file is copied from there into
//! the session's `/tmp`, by descriptors that follow no link and replace nothing, since commands can write there.

use std::fs::{DirBuilder, File};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tiller_protocol::lock;
use tokio::time::{Instant, timeout_at};

use super::lease::Lease;
use super::page::{Download, Stage, quoted};
use crate::ToolCx;
use crate::guard::blocking;
use crate::output::human;

/// Longest wait for a download that a call began.
const WAIT: Duration = Duration::from_secs(3);
/// Name of the folder of downloads.
const FOLDER: &str = "downloads";
/// Bytes of a file's name.
const NAME: usize = 120;
/// Bytes of the ending that is kept of a long name.
const ENDING: usize = 16;
/// Bytes of all downloads together.
const TOTAL: u64 = 1 << 30;
/// Files that are counted.
const FILES: usize = 100_000;
/// Files of one name.
const SAME: u32 = 1_000;

/// Where the browser writes the downloads of the session, under names of its own.
pub(super) fn arrives(cx: &ToolCx) -> PathBuf {
    cx.folders.spill.join(FOLDER)
}

/// Adds notes on the downloads, one on each that runs and one on its end, and brings the complete ones to the agent. `last`: the
/// tabs are about to be closed, and nothing is waited for.
pub(super) async fn tell(lease: &mut Lease, cx: &ToolCx, last: bool, notes: &mut Vec<String>) {
    let Some(owner) = lease.owner.clone() else { return };
    let deadline = Instant::now() + if last { Duration::ZERO } else { WAIT };
    loop {
        let changed = owner.group.changed.notified();
        if !owner.group.awaits_download() || timeout_at(deadline, changed).await.is_err() {
            break;
        }
    }
    if last {
        lease.stop_downloads().await;
    }
    let ended: Vec<String> = {
        let mut state = lock(&owner.group.state);
        let untold = state.downloads.values().filter(|d| d.stage == Stage::Running && !d.told && !last);
        notes.extend(untold.map(at_work));
        for download in state.downloads.values_mut() {
            download.told = true;
        }
        let ended = state.downloads.iter().filter(|(_, d)| last || d.stage != Stage::Running);
        ended.map(|(id, _)| id.clone()).collect()
    };
    for id in ended {
        // One by one: when the call is stopped, the others stay for the next one.
        let Some(download) = lock(&owner.group.state).downloads.remove(&id) else { continue };
        let name = quoted(&download.name);
        notes.push(match download.stage {
            Stage::Running | Stage::Cancelled => {
                format!("the download of {name} was cancelled at {}", human(download.received))
            }
            Stage::TooLarge => format!(
                "the download of {name} was stopped: it is larger than {}, the limit of browser.download_mb",
                human(lease.download_bytes())
            ),
            Stage::Complete => match complete(cx, &id, &download.name).await {
                Ok((path, size)) => {
                    format!("the download of {name} is complete: {} ({})", path.display(), human(size))
                }
                Err(why) => format!("the download of {name} could not be kept: {why}"),
            },
        });
    }
}

fn at_work(download: &Download) -> String {
    let of = if download.total > 0 { format!(" of {}", human(download.total)) } else { String::new() };
    format!(
        "the download of {} runs: {}{of}; browser_snapshot tells how it ends",
        quoted(&download.name),
        human(download.received)
    )
}

/// Brings a complete download to where file tools and commands find it: its path there, and its size.
async fn complete(cx: &ToolCx, id: &str, name: &str) -> std::result::Result<(PathBuf, u64), String> {
    let (work, id, name) = (cx.clone(), id.to_owned(), safe_name(name));
    let done = blocking("download", move || {
        let arrived = arrives(&work).join(&id);
        let moved = bring(&work, &arrived, &name);
        // A file that could not be brought is not kept either.
        let _ = std::fs::remove_file(&arrived);
        moved.map_err(|e| crate::ToolError::Tell(e.to_string()))
    });
    done.await.map_err(|e| match e {
        crate::ToolError::Tell(why) => why,
        _ => "it was interrupted".into(),
    })
}

fn bring(cx: &ToolCx, arrived: &Path, name: &str) -> Result<(PathBuf, u64)> {
    let mut from = tiller_fs::beneath::file(&arrived.canonicalize()?)?;
    let root = match cx.workspace.tmp_folder() {
        Some(folder) => folder,
        None => {
            DirBuilder::new().recursive(true).mode(0o700).create(&cx.folders.spill)?;
            cx.folders.spill.canonicalize()?
        }
    };
    let folder = made(&root)?;
    if used(&folder)? + from.metadata()?.len() > TOTAL {
        return Err(Error::other(format!("there are downloads of {} already: remove some", human(TOTAL))));
    }
    let (mut file, name) = new_file(&folder, name)?;
    let size = std::io::copy(&mut from, &mut file).inspect_err(|_| {
        // A part of it is no use, and counts among the bytes of all.
        let _ = rustix::fs::unlinkat(&folder, &name, rustix::fs::AtFlags::empty());
    })?;
    let path = root.join(FOLDER).join(name);
    Ok((cx.workspace.tmp_name(&path).unwrap_or(path), size))
}

/// The folder of downloads in `root`, which no link leads to.
fn made(root: &Path) -> Result<OwnedFd> {
    let root = tiller_fs::beneath::folder(root)?;
    match rustix::fs::mkdirat(&root, FOLDER, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(e.into()),
    }
    Ok(tiller_fs::beneath::step(root.as_fd(), FOLDER.as_ref())?)
}

/// Bytes of the downloads that are there.
fn used(folder: &OwnedFd) -> Result<u64> {
    let mut sum = 0;
    for (name, _) in tiller_fs::beneath::entries(folder, FILES)? {
        let stat = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        sum += stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
    }
    Ok(sum)
}

/// A new file of this name, or of one like it.
fn new_file(folder: &OwnedFd, name: &str) -> Result<(File, String)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for n in 1..=SAME {
        let name = if n == 1 { name.to_owned() } else { numbered(name, n) };
        match rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => return Ok((file.into(), name)),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(Error::new(ErrorKind::AlreadyExists, "there are too many files of its name"))
}

fn numbered(name: &str, n: u32) -> String {
    match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, ending)) => format!("{stem}-{n}.{ending}"),
        None => format!("{name}-{n}"),
    }
}

/// A file name that is one on every system, names no folder, is not hidden, and is no option of a command.
pub(super) fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |c: char| match c {
        c if c.is_alphanumeric() => c,
        '.' | '-' | '_' | ' ' | '+' | ',' | '@' | '(' | ')' => c,
        _ => '_',
    };
    let clean: String = crate::foreign::seen(last).chars().map(plain).collect();
    let clean = clean.trim_start_matches(['.', '-', ' ', '~']).trim_end_matches(['.', ' ']);
    if clean.is_empty() {
        return "download".into();
    }
    if clean.len() <= NAME {
        return clean.to_owned();
    }
    let ending = clean.rsplit_once('.').map(|(_, ending)| ending).filter(|e| e.len() <= ENDING);
    let ending = ending.map(|e| format!(".{e}")).unwrap_or_default();
    format!("{}{ending}", &clean[..clean.floor_char_boundary(NAME - ending.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn names_of_pages_become_plain_names() {
        for (given, name) in [
            ("report.csv", "report.csv"),
            ("../../.ssh/authorized_keys", "authorized_keys"),
            ("..\\..\\evil.bat", "evil.bat"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("..", "download"),
            ("", "download"),
            ("/", "download"),
            ("a\nb\u{1b}[31m.txt", "a_b__31m.txt"),
            ("$(id);`id`|x.sh", "_(id)__id__x.sh"),
            ("a\u{202e}fdp.exe", "afdp.exe"),
            ("Bericht März (2).pdf", "Bericht März (2).pdf"),
            ("nul\0.txt", "nul_.txt"),
        ] {
            assert_eq!(safe_name(given), name, "{given:?}");
        }
        let long = safe_name(&format!("{}.tar.gz", "ä".repeat(500)));
        assert!(long.len() <= NAME && long.ends_with(".gz"), "{long}");
    }

    #[test]
    fn a_download_replaces_nothing_and_follows_no_link() {
        let bench = Bench::new();
        let cx = &bench.cx;
        let arrived = arrives(cx).join("id");
        std::fs::create_dir_all(arrived.parent().unwrap()).unwrap();
        let out = tempfile::tempdir().unwrap();
        let target = out.path().join("target");
        let folder = cx.folders.spill.join(FOLDER);
        std::os::unix::fs::symlink(&target, folder.join("b.txt")).unwrap();
        for (name, kept) in
            [("a.txt", "a.txt"), ("a.txt", "a-2.txt"), ("b.txt", "b-2.txt"), ("c", "c"), ("c", "c-2")]
        {
            std::fs::write(&arrived, name).unwrap();
            let (path, size) = bring(cx, &arrived, name).unwrap();
            assert!(path.ends_with(kept), "{path:?}");
            assert_eq!(std::fs::read(&path).unwrap(), name.as_bytes());
            assert_eq!(size, name.len() as u64);
        }
        assert!(!target.exists(), "a link led out");
        // A command puts a link in place of the folder.
        std::fs::write(out.path().join("id"), "x").unwrap();
        std::fs::rename(&folder, cx.folders.spill.join("old")).unwrap();
        std::os::unix::fs::symlink(out.path(), &folder).unwrap();
        assert!(bring(cx, &out.path().join("id"), "d.txt").is_err());
        assert!(!out.path().join("d.txt").exists());
    }
}
