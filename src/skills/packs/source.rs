//! What a user may name as the source of a pack.

use std::path::{Path, PathBuf};

use super::built_in::{built_in_packs, no_such};
use crate::skill::{NAME, is_name};

/// Endings of archives.
const ENDINGS: [&str; 4] = [".tar.gz", ".tgz", ".tar", ".zip"];

/// Where a pack comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder of this machine.
    Folder(PathBuf),
    /// An archive of this machine.
    Archive(PathBuf),
    /// An archive elsewhere.
    Download(String),
    /// A repository, and a branch, tag or commit of it.
    Git { url: String, reference: Option<String> },
    /// A pack that comes with the program, by its name.
    BuiltIn(String),
    /// A name in the registry.
    Registry(String),
}

/// What is written before the name of a built-in pack.
pub(super) const BUILT_IN: &str = "builtin:";

impl Source {
    /// Reads what a user wrote. `is_git_url`: whether git may be given an address.
    ///
    /// # Errors
    /// A sentence, when it names no source.
    pub fn read(text: &str, is_git_url: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix(BUILT_IN) {
            return match built_in_packs().any(|pack| pack == name) {
                true => Ok(Self::BuiltIn(name.to_owned())),
                false => Err(no_such(name)),
            };
        }
        let path = Path::new(text);
        // A repository may have a folder whose name looks like an address.
        let address = text.contains("://") || text.starts_with("git@");
        if !address && path.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        if !address && path.is_file() {
            return Ok(Self::Archive(path.to_owned()));
        }
        let (url, reference) = match text.split_once('#') {
            Some((url, reference)) => (url, Some(reference.to_owned())),
            None => (text, None),
        };
        if is_download(url) && is_archive(url) {
            return Ok(Self::Download(url.to_owned()));
        }
        if is_git_url(url) {
            return Ok(Self::Git { url: url.to_owned(), reference });
        }
        if is_name(text) {
            return Ok(Self::Registry(text.to_owned()));
        }
        let shown: String = text.chars().take(200).collect();
        Err(format!(
            "{} is no folder, no archive, and not an address that packs are fetched from (https://, ssh://, file://, git@); a pack of this program is named builtin:NAME",
            shown.escape_debug()
        ))
    }

    /// The name that a pack from here has where its content gives none.
    pub fn pack_name(&self) -> String {
        let text = match self {
            Self::Folder(path) | Self::Archive(path) => {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Self::Download(url) | Self::Git { url, .. } => {
                let url = url.split('?').next().unwrap_or_default().trim_end_matches('/');
                url.rsplit(['/', ':']).next().unwrap_or_default().to_owned()
            }
            Self::BuiltIn(name) | Self::Registry(name) => name.clone(),
        };
        let mut text = text.to_lowercase();
        for ending in ENDINGS.iter().chain(&[".git"]) {
            text = text.strip_suffix(ending).unwrap_or(&text).to_owned();
        }
        let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
        let mut name: String = text.chars().map(plain).collect();
        while name.contains("--") {
            name = name.replace("--", "-");
        }
        let name: String = name.trim_matches('-').chars().take(NAME).collect();
        let name = name.trim_end_matches('-');
        if name.is_empty() { "pack".to_owned() } else { name.to_owned() }
    }
}

/// Whether this is an address that is downloaded from: https, or this machine.
pub fn is_download(url: &str) -> bool {
    let own = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
    let plain = url.chars().all(|c| c.is_ascii_graphic());
    // What stands before an @ is no host.
    let on_own = |start: &&str| url.starts_with(*start) && !url.contains('@');
    plain && (url.starts_with("https://") || own.iter().any(on_own))
}

fn is_archive(url: &str) -> bool {
    let path = url.split('?').next().unwrap_or_default();
    ENDINGS.iter().any(|ending| path.ends_with(ending))
}
