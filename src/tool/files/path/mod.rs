//! From what the model wrote to one real place: absolute, no links, no `..`. The result is what is judged
//! and what is opened; opening follows no link any more (see [`crate::files::path::beneath`]), so a swap between the
//! two cannot lead elsewhere.

pub(crate) mod beneath;
pub(crate) mod declared;
mod view;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use tiller_protocol::{Access, names};

use self::view::{Seen, View};
use crate::{ToolCx, ToolError};

/// Links in one path; the kernel's own limit.
const LINKS: usize = 40;
/// Bytes of a path, and of one name: the kernel's own limits.
const PATH_BYTES: usize = 4096;
const NAME_BYTES: usize = 255;

/// Where a place lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// In the workspace.
    Inside,
    /// In the session's folder of full outputs: may be read.
    Spill,
    Outside,
}

/// A resolved path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// What is opened: absolute; no component was a link when it was resolved.
    pub path: PathBuf,
    /// The same as commands and rules know it, which is another path in the session's `/tmp`, and where a script would have
    /// written.
    pub named: PathBuf,
    pub zone: Zone,
    pub exists: bool,
    /// The first link on the way, as it was written.
    pub link: Option<PathBuf>,
    /// The last component itself was a link.
    pub leaf_link: bool,
    /// As the model and the person know it: relative inside the workspace.
    pub name: String,
    /// The session's folder, for a path of its `/tmp` that exists in the machine's own `/tmp` only.
    pub hidden: Option<PathBuf>,
}

impl Place {
    fn inside(&self) -> bool {
        self.zone == Zone::Inside
    }

    /// What reading it needs.
    pub(crate) fn reads(&self) -> Access {
        match self.zone {
            // The agent's own outputs.
            Zone::Spill => Access::Free,
            _ => Access::Read { path: names::written(&self.named), inside: self.inside() },
        }
    }

    /// What changing it needs.
    pub(crate) fn writes(&self) -> Access {
        Access::Write { path: names::written(&self.named), inside: self.inside() }
    }

    /// Says why a file that is there is not found; empty where that is not so.
    pub(crate) fn hidden_note(&self) -> String {
        let Some(folder) = &self.hidden else { return String::new() };
        format!(
            ". The sandbox hides it: a file of this name lies in the machine's own /tmp, and this session has a /tmp of its own. \
             Ask the user to copy it into the workspace or to {}",
            folder.display()
        )
    }
}

/// An error for the model.
pub(crate) fn tell<T>(text: impl Into<String>) -> Result<T, ToolError> {
    Err(ToolError::Tell(text.into()))
}

/// Resolves `raw`. Touches nothing but directory entries and links.
pub(crate) fn resolve(raw: &str, cx: &ToolCx) -> Result<Place, ToolError> {
    check_spelling(raw)?;
    let root = &cx.workspace.root;
    let given = &names::path(raw);
    let mut walk = Walk {
        view: View::new(cx),
        at: if given.is_absolute() { "/".into() } else { root.clone() },
        rest: VecDeque::new(),
        links: 0,
        exists: false,
        link: None,
        leaf_link: false,
    };
    walk.push_front(given);
    walk.run(raw)?;
    let Walk { view, at: named, exists, link, leaf_link, .. } = walk;
    // By its one name, whichever way it was named.
    let named = cx.workspace.tmp_name(&named).unwrap_or(named);
    let (path, drafted) = match view.seen(&named) {
        Seen::At(path) => (path, false),
        Seen::Same => (named.clone(), false),
        // Never the machine's own `/tmp`.
        Seen::Folder | Seen::Gone => (view.lies(&named), view.drafts(&named)),
    };
    // A folder that only leads to what is shown has nothing of its own.
    let exists = exists && (drafted || path == named || path.symlink_metadata().is_ok());
    let hidden = if exists { None } else { view.hides(&named) };
    let zone = if named.starts_with(root) {
        Zone::Inside
    } else if cx.folders.spill.canonicalize().is_ok_and(|spill| named.starts_with(spill)) {
        Zone::Spill
    } else {
        Zone::Outside
    };
    let name = match named.strip_prefix(root) {
        Ok(rel) if rel.as_os_str().is_empty() => ".".into(),
        Ok(rel) => names::written(rel),
        Err(_) => names::written(&named),
    };
    Ok(Place { path, named, zone, exists, link, leaf_link, name, hidden })
}

fn check_spelling(raw: &str) -> Result<(), ToolError> {
    if raw.is_empty() {
        return tell("the path is empty; use '.' for the workspace itself");
    }
    if raw.contains('\0') {
        return tell("the path contains a NUL byte");
    }
    if raw == "~" || raw.starts_with("~/") {
        return tell("'~' is not expanded here; write the absolute path (a folder named '~' is './~')");
    }
    if raw.len() >= PATH_BYTES || raw.split('/').any(|name| name.len() > NAME_BYTES) {
        return tell("the path or a name in it is too long");
    }
    Ok(())
}

/// Follows a path component by component, as the kernel would.
struct Walk<'a> {
    view: View<'a>,
    at: PathBuf,
    rest: VecDeque<Step>,
    links: usize,
    exists: bool,
    link: Option<PathBuf>,
    leaf_link: bool,
}

enum Step {
    Root,
    Up,
    Down(OsString),
}

impl Walk<'_> {
    fn push_front(&mut self, path: &Path) {
        for part in path.components().rev() {
            self.rest.push_front(match part {
                Component::RootDir | Component::Prefix(_) => Step::Root,
                Component::CurDir => continue,
                Component::ParentDir => Step::Up,
                Component::Normal(name) => Step::Down(name.to_owned()),
            });
        }
    }

    fn run(&mut self, raw: &str) -> Result<(), ToolError> {
        self.exists = true;
        while let Some(step) = self.rest.pop_front() {
            match step {
                Step::Root => self.at = "/".into(),
                Step::Up if self.exists => {
                    self.at.pop();
                }
                Step::Up => return tell(format!("{raw}: '..' after a folder that does not exist")),
                Step::Down(name) => self.down(name, raw)?,
            }
        }
        Ok(())
    }

    fn down(&mut self, name: OsString, raw: &str) -> Result<(), ToolError> {
        let next = self.at.join(&name);
        if !self.exists {
            self.at = next;
            return Ok(());
        }
        let lies = match self.view.seen(&next) {
            Seen::Folder => {
                self.at = next;
                return Ok(());
            }
            Seen::Gone => {
                self.exists = false;
                self.at = next;
                return Ok(());
            }
            Seen::Same => next.clone(),
            Seen::At(path) => path,
        };
        match lies.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => {
                self.links += 1;
                if self.links > LINKS {
                    return tell(format!("{raw}: too many links"));
                }
                let target = std::fs::read_link(&lies).map_err(|e| ToolError::Tell(format!("{raw}: {e}")))?;
                if self.link.is_none() {
                    self.link = Some(next);
                }
                // Once set it stays: what follows comes from the link itself.
                self.leaf_link |= self.rest.is_empty();
                self.push_front(&target);
            }
            Ok(meta) if !meta.is_dir() && !self.rest.is_empty() => {
                return tell(format!("{raw}: '{}' is not a folder", next.display()));
            }
            Ok(_) => self.at = next,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                self.exists = false;
                self.at = next;
            }
            Err(e) => return tell(format!("{raw}: {e}")),
        }
        Ok(())
    }
}

/// Resolves a path that is to be written: never through a link that leads out or nowhere, never a
/// protected name.
pub(crate) fn to_write(raw: &str, cx: &ToolCx) -> Result<Place, ToolError> {
    if raw.ends_with('/') || raw.ends_with("/.") || raw.ends_with("/..") || raw == "." || raw == ".." {
        return tell(format!("{raw} names a folder, not a file"));
    }
    let place = resolve(raw, cx)?;
    if let Some(link) = &place.link {
        let at = link.display();
        if place.zone != Zone::Inside {
            return tell(format!(
                "{raw} goes through the link {at} to {}, outside the workspace; nothing is written through \
                 such links. Use the real path if this is intended.",
                place.named.display()
            ));
        }
        if place.leaf_link && !place.exists {
            return tell(format!(
                "{raw}: the target of the link {at} does not exist; files are not created through links"
            ));
        }
    }
    if place.zone == Zone::Spill {
        return tell(format!("{raw} is in the folder of full outputs, which is read-only"));
    }
    if let Some(odd) = place.name.chars().find(|c| hidden(*c)).filter(|_| !place.exists) {
        return tell(format!(
            "the new name {:?} contains the invisible character U+{:04X}",
            raw,
            u32::from(odd)
        ));
    }
    let protected = |path: &Path| (cx.workspace.protected)(path);
    if let Some(why) = protected(&place.named).or_else(|| protected(&place.path)) {
        return tell(format!("{raw} is protected: {why}. No tool may write it, in any mode."));
    }
    if let Some(mode) = read_only(&place) {
        return tell(format!(
            "{raw} is marked as read-only (mode {mode:04o}); nothing was changed. If the user wants it changed, make \
             it writable first (chmod u+w)."
        ));
    }
    Ok(place)
}

/// The permissions of a read-only file. Renaming another file over it would succeed all the same.
fn read_only(place: &Place) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let meta = place.path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mode = meta.permissions().mode() & 0o7777;
    (mode & 0o222 == 0).then_some(mode)
}

/// Characters that make a name look like another one.
fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Remembers what the call was judged for.
pub(crate) fn declare(cx: &ToolCx, places: &[&Place]) {
    cx.workspace.declared.declare(&cx.call_id, places.iter().map(|p| p.named.clone()).collect());
}

/// Refuses a place that the call was not judged for: something was swapped meanwhile.
pub(crate) fn check_declared(place: &Place, cx: &ToolCx) -> Result<(), ToolError> {
    let ok = match cx.workspace.declared.holds(&cx.call_id, &place.named) {
        Some(held) => held,
        None => place.zone != Zone::Outside,
    };
    if ok {
        return Ok(());
    }
    tell(format!(
        "{} is no longer the file that was approved for this call (a folder or link changed in the meantime)",
        place.name
    ))
}

/// A name for people: bytes that are not UTF-8 as `\xNN`, `/` between.
pub(crate) fn show(path: &Path) -> String {
    let mut out = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

#[cfg(test)]
#[path = "swap_tests.rs"]
mod swap_tests;

#[cfg(test)]
#[path = "view_tests.rs"]
mod view_tests;
