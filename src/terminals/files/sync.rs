//! What changed on which side since both were the same, and what is done about it. A change of one side is copied; of a
//! file that changed on both, the version of the other side is put beside it; nothing is lost.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tiller_tool::Workspace;
use tiller_tool::shell::ShellError;

use super::archive;
use super::git::{self, Repository};
use super::known::{Known, Stamp, left_out, listing};
use super::tree::{self, Ignored};
use crate::failed;
use crate::link::{Frame, LEAVE, Link};
use crate::place::Way;

/// Bytes of one archive.
const ARCHIVE: usize = 32 << 20;
/// Bytes of the paths of one request.
const ARGUMENTS: usize = 48 << 10;
/// So many removed files at once, and at least half of all, look like a folder that is gone.
const MANY: usize = 50;
/// Paths that a note names.
const NAMED: usize = 5;

#[derive(Debug)]
pub(super) struct Sync {
    way: Arc<Way>,
    /// Where [`Known`] is stored.
    file: PathBuf,
    link: Option<Link>,
    known: Option<Known>,
    /// The connection is new: the folder there may be another one than before.
    fresh: bool,
    /// Git's own files go there, too.
    git: bool,
}

/// What the model has to know, by path.
#[derive(Debug, Default)]
struct Notes {
    /// Changed on both sides.
    both: Vec<String>,
    /// Not taken from the other side, and why.
    refused: Vec<String>,
    large: usize,
}

impl Notes {
    fn words(&self, terminal: &str) -> Option<String> {
        let mut all = Vec::new();
        if !self.both.is_empty() {
            all.push(format!(
                "changed here and at {terminal}, so that the version of {terminal} is beside the file with the ending \
                 .{terminal}: {}",
                named(&self.both)
            ));
        }
        if !self.refused.is_empty() {
            all.push(format!("not taken from {terminal}: {}", named(&self.refused)));
        }
        if self.large > 0 {
            all.push(format!("{} files above {} MiB are not copied", self.large, tree::LARGEST >> 20));
        }
        (!all.is_empty()).then(|| all.join("; "))
    }
}

fn named(paths: &[String]) -> String {
    let mut text = paths.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if paths.len() > NAMED {
        text.push_str(&format!(" and {} more", paths.len() - NAMED));
    }
    text
}

impl Sync {
    pub(super) fn new(way: Arc<Way>, file: PathBuf, git: bool) -> Self {
        Self { way, file, link: None, known: None, fresh: true, git }
    }

    /// Waits until the other side has removed its temporary files.
    pub(super) async fn close(&mut self) {
        if let Some(link) = self.link.take() {
            link.leave(LEAVE).await;
        }
    }

    /// Brings the changes of this side there.
    pub(super) async fn send(&mut self, workspace: &Workspace) -> Result<Option<String>, ShellError> {
        let (mut here, large) = self.scan().await?;
        here.retain(|path, _| workspace.unreadable(&workspace.root.join(path)).is_none());
        let first = self.known.is_none();
        if first {
            self.known = Known::load(&self.file);
        }
        let mut known = match self.known.take() {
            Some(known) => known,
            None => self.begin().await?,
        };
        let mut result = self.send_known(workspace, &here, &mut known).await;
        if self.git && result.is_ok() {
            match self.send_git(&mut known).await {
                Ok(false) => {}
                Ok(true) => result = result.map(|notes| Some(notes.unwrap_or_default())),
                Err(error) => result = Err(error),
            }
        }
        if !matches!(result, Ok(None)) || first {
            self.store(&known);
        }
        self.known = Some(known);
        let mut notes = result?.unwrap_or_default();
        notes.large = if first { large } else { 0 };
        Ok(notes.words(&self.way.name))
    }

    /// `None`: there was nothing to send.
    async fn send_known(
        &mut self,
        workspace: &Workspace,
        here: &BTreeMap<String, Stamp>,
        known: &mut Known,
    ) -> Result<Option<Notes>, ShellError> {
        // Over a connection that broke at rest the folder may be another one, too.
        let fresh = self.fresh || self.link.as_ref().is_none_or(Link::closed);
        if *here == known.here && !fresh {
            return Ok(None);
        }
        // What changed there meanwhile comes first: sending must not replace it unseen.
        let there = self.list().await?;
        self.fresh = false;
        if there.is_empty() {
            // A new machine or container: all is sent, nothing is removed here.
            *known = Known::default();
        }
        let notes = self.take(workspace, here, &there, known).await?;
        let differs = |path: &&String, stamp: &Stamp| known.here.get(*path) != Some(stamp);
        let changed = here.iter().filter(|(path, stamp)| differs(path, stamp));
        // What was just taken is the same on both sides.
        let changed: Vec<String> = changed
            .filter(|(path, _)| tree::now(&workspace.root, path).as_ref() != known.here.get(*path))
            .map(|(path, _)| path.clone())
            .collect();
        let removed = known.here.keys().filter(|path| tree::now(&workspace.root, path).is_none());
        let removed: Vec<String> = removed.cloned().collect();
        let mut rest = changed.as_slice();
        while !rest.is_empty() {
            let root = workspace.root.clone();
            let batch = rest.to_vec();
            let (bytes, taken) = blocking(move || pack(&batch, |path| tree::read(&root, path))).await?;
            rest = &rest[taken..];
            self.done(&format!("put {}", bytes.len()), &bytes).await?;
        }
        if !removed.is_empty() {
            let names = removed.join("\n") + "\n";
            self.done(&format!("remove {}", names.len()), names.as_bytes()).await?;
        }
        if changed.is_empty() && removed.is_empty() {
            return Ok(Some(notes));
        }
        let there = self.list().await?;
        for path in &changed {
            // Read before it was packed: a change meanwhile is seen the next time.
            if let (Some(stamp), Some(other)) = (here.get(path), there.get(path)) {
                known.here.insert(path.clone(), *stamp);
                known.there.insert(path.clone(), other.clone());
            }
        }
        for path in &removed {
            known.here.remove(path);
            known.there.remove(path);
        }
        Ok(Some(notes))
    }

    /// Sends git's own files, as far as they have changed here. False: nothing had to be sent.
    async fn send_git(&mut self, known: &mut Known) -> Result<bool, ShellError> {
        let root = self.way.root.clone();
        let scan = move || Repository::of(&root).map(|repository| (repository.scan().0, repository));
        let Some((here, repository)) = blocking(scan).await? else { return Ok(false) };
        if here == known.git {
            return Ok(false);
        }
        let mut changed: Vec<String> = here
            .iter()
            .filter(|(path, stamp)| known.git.get(*path) != Some(stamp))
            .map(|(p, _)| p.clone())
            .collect();
        // What refers to others comes after them: a command that runs meanwhile finds every object.
        changed.sort_by_key(|path| !path.starts_with(".git/objects/"));
        if known.git.is_empty() {
            let mut bytes = Vec::new();
            git::kept().for_each(|path| archive::add(&mut bytes, path, 0o644, b""));
            archive::finish(&mut bytes);
            self.done(&format!("put {}", bytes.len()), &bytes).await?;
        }
        let mut rest = changed.as_slice();
        while !rest.is_empty() {
            let (repository, batch) = (repository.clone(), rest.to_vec());
            let (bytes, taken) = blocking(move || pack(&batch, |path| repository.read(path))).await?;
            rest = &rest[taken..];
            self.done(&format!("put {}", bytes.len()), &bytes).await?;
        }
        let removed: Vec<&String> = known.git.keys().filter(|path| !here.contains_key(*path)).collect();
        if !removed.is_empty() {
            let names: String = removed.iter().map(|path| format!("{path}\n")).collect();
            self.done(&format!("remove {}", names.len()), names.as_bytes()).await?;
        }
        known.git = here;
        Ok(true)
    }

    /// Fetches the changes of the other side.
    pub(super) async fn fetch(&mut self, workspace: &Workspace) -> Result<Option<String>, ShellError> {
        // Nothing was ever sent: there is nothing to compare with.
        let Some(mut known) = self.known.take() else { return Ok(None) };
        let result = self.fetch_known(workspace, &mut known).await;
        if result.as_ref().is_ok_and(|(changed, _)| *changed) {
            self.store(&known);
        }
        self.known = Some(known);
        Ok(result?.1.words(&self.way.name))
    }

    async fn fetch_known(
        &mut self,
        workspace: &Workspace,
        known: &mut Known,
    ) -> Result<(bool, Notes), ShellError> {
        let there = self.list().await?;
        if there == known.there {
            return Ok((false, Notes::default()));
        }
        if there.is_empty() {
            return Err(failed(&self.way.title, "all files are gone there; nothing was removed here"));
        }
        let (here, _) = self.scan().await?;
        let notes = self.take(workspace, &here, &there, known).await?;
        Ok((true, notes))
    }

    /// Takes what changed there.
    async fn take(
        &mut self,
        workspace: &Workspace,
        here: &BTreeMap<String, Stamp>,
        there: &BTreeMap<String, String>,
        known: &mut Known,
    ) -> Result<Notes, ShellError> {
        let ignored = Ignored::of(&workspace.root, here);
        let mut notes = Notes::default();
        let changed = there
            .iter()
            .filter(|(path, stamp)| known.there.get(*path) != Some(stamp))
            .filter(|(path, _)| known.there.contains_key(*path) || !ignored.hides(path));
        let (mut wanted, mut out) = (Vec::new(), Vec::new());
        for (path, stamp) in changed {
            match left_out(stamp, tree::LARGEST) {
                None => wanted.push(path.clone()),
                Some(why) => {
                    notes.refused.push(format!("{path} ({why})"));
                    out.push((path.clone(), stamp.clone()));
                }
            }
        }
        // They are named once, until they change.
        known.there.extend(out);
        let removed: Vec<String> =
            known.there.keys().filter(|path| !there.contains_key(*path)).cloned().collect();
        if removed.len() > MANY && removed.len() * 2 > known.there.len() {
            return Err(failed(
                &self.way.title,
                format!(
                    "{} of {} files are gone there; if that is what you want, remove them here too. Nothing was removed",
                    removed.len(),
                    known.there.len()
                ),
            ));
        }
        for paths in chunks(&wanted) {
            let names = paths.join("\n") + "\n";
            let bytes = match self.ask(&format!("get {}", names.len()), names.as_bytes()).await? {
                Frame::Data(bytes) => bytes,
                other => return Err(self.odd(&other)),
            };
            for entry in archive::read(&bytes) {
                if let Some(stamp) = there.get(&entry.path).filter(|_| paths.contains(&entry.path)) {
                    put_here(&self.way.name, workspace, &entry, known, &mut notes);
                    known.there.insert(entry.path, stamp.clone());
                }
            }
        }
        for path in removed {
            let same = tree::now(&workspace.root, &path).as_ref() == known.here.get(&path);
            if same && known.here.contains_key(&path) {
                match workspace.protection(&workspace.root.join(&path)) {
                    Some(why) => notes.refused.push(format!("the removal of {path} ({why})")),
                    None => {
                        if let Err(e) = tree::remove(&workspace.root, &path) {
                            notes.refused.push(format!("the removal of {path} ({e})"));
                        }
                    }
                }
                known.here.remove(&path);
            }
            known.there.remove(&path);
        }
        Ok(notes)
    }

    async fn scan(&self) -> Result<(BTreeMap<String, Stamp>, usize), ShellError> {
        let root = self.way.root.clone();
        blocking(move || tree::scan(&root)).await
    }

    /// The first time: the folder there must be empty, so that nothing in it can be lost.
    async fn begin(&mut self) -> Result<Known, ShellError> {
        let there = self.list().await?;
        if there.is_empty() {
            return Ok(Known::default());
        }
        let (folder, name) = (self.way.kind.folder(), &self.way.name);
        Err(failed(
            &self.way.title,
            format!(
                "the folder {folder} has files that do not come from here, and copying could replace them: empty it, or \
                 set terminals.{name}.folder to another one"
            ),
        ))
    }

    fn store(&self, known: &Known) {
        if let Err(error) = known.store(&self.file) {
            tracing::warn!(%error, "what is known of the files of a terminal could not be stored");
        }
    }

    fn odd(&self, frame: &Frame) -> ShellError {
        match frame {
            Frame::No(why) => failed(&self.way.title, why),
            _ => failed(&self.way.title, "it answers with what was not asked"),
        }
    }

    async fn list(&mut self) -> Result<BTreeMap<String, String>, ShellError> {
        match self.ask("list", b"").await? {
            Frame::Data(bytes) => Ok(listing(&bytes)),
            other => Err(self.odd(&other)),
        }
    }

    async fn done(&mut self, header: &str, body: &[u8]) -> Result<(), ShellError> {
        match self.ask(header, body).await? {
            Frame::Done => Ok(()),
            other => Err(self.odd(&other)),
        }
    }

    /// One request. A connection that broke meanwhile is made again once: each request can be repeated.
    async fn ask(&mut self, header: &str, body: &[u8]) -> Result<Frame, ShellError> {
        if let Some(link) = &mut self.link {
            link.ask(header, &[body]).await;
            if let Some(frame) = link.next().await {
                return Ok(frame);
            }
        }
        (self.link, self.fresh) = (None, true);
        let (mut link, _) = self.way.link().await.map_err(|e| self.way.failed(&e))?;
        let folder = self.way.kind.folder();
        link.ask(&format!("root {}", folder.len()), &[folder.as_bytes()]).await;
        match self.way.answer(&mut link).await.map_err(|e| self.way.failed(&e))? {
            Frame::Data(_) => {}
            other => return Err(self.odd(&other)),
        }
        link.ask(header, &[body]).await;
        let frame = link.next().await;
        if frame.is_none() {
            return Err(self.way.failed(&self.way.kind.explain(&link.errors().await)));
        }
        self.link = Some(link);
        frame.ok_or_else(|| failed(&self.way.title, "the connection broke"))
    }
}

/// Puts a file of the other side into the folder here.
fn put_here(
    terminal: &str,
    workspace: &Workspace,
    entry: &archive::Entry,
    known: &mut Known,
    notes: &mut Notes,
) {
    let root = &workspace.root;
    let path = &entry.path;
    let full = root.join(path);
    let now = tree::now(root, path);
    // A link, an ignored file, or a file that was never the same on both sides is not replaced.
    let ours = now.as_ref() == known.here.get(path) && (now.is_some() || full.symlink_metadata().is_err());
    let same = || tree::read(root, path).is_ok_and(|(content, _)| content == entry.content);
    let target = if ours || same() { path.clone() } else { format!("{path}.{terminal}") };
    if let Some(why) = workspace.protection(&root.join(&target)) {
        notes.refused.push(format!("{path} ({why})"));
        return;
    }
    if let Err(e) = tree::write(root, &target, &entry.content, entry.mode) {
        notes.refused.push(format!("{path} ({e})"));
        return;
    }
    if target == *path {
        if let Some(stamp) = tree::now(root, path) {
            known.here.insert(path.clone(), stamp);
        }
    } else {
        notes.both.push(path.clone());
    }
}

/// Parts that are small enough for the arguments of a program there.
fn chunks(paths: &[String]) -> Vec<&[String]> {
    let mut parts = Vec::new();
    let mut rest = paths;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |path: &&String| {
            bytes += path.len() + 3;
            bytes <= ARGUMENTS
        };
        let (part, after) = rest.split_at(rest.iter().take(500).take_while(fits).count().max(1));
        parts.push(part);
        rest = after;
    }
    parts
}

/// An archive of the first of these files, and how many it holds. `read`: gives content and mode.
fn pack(paths: &[String], read: impl Fn(&str) -> std::io::Result<(Vec<u8>, u32)>) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    let mut taken = 0;
    for path in paths {
        if bytes.len() > ARCHIVE {
            break;
        }
        // What is gone meanwhile is seen as removed the next time.
        if let Ok((content, mode)) = read(path) {
            archive::add(&mut bytes, path, mode, &content);
        }
        taken += 1;
    }
    archive::finish(&mut bytes);
    (bytes, taken)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ShellError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| ShellError::Elsewhere("internal error while the files were read".into()))
}
