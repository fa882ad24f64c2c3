//! Which browser is used, and how.

use std::path::{Path, PathBuf};

use super::chromium;

/// The browser of a process's sessions. The composition root makes it from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrowserSettings {
    /// Program of a Chromium of this machine.
    pub program: Option<PathBuf>,
    /// Address of the DevTools of a browser elsewhere (`ws:`, `wss:`, `http:`, `https:`). It goes before `program`.
    pub remote: Option<String>,
    /// Folder of a profile that is kept and used by the main agent; `None`: a temporary one.
    pub profile: Option<PathBuf>,
    /// Without a window.
    pub headless: bool,
    /// Size of a snapshot in tokens, of four bytes each.
    pub snapshot_tokens: usize,
    /// Further arguments of the program.
    pub arguments: Vec<String>,
    /// Greatest download in bytes.
    pub download_bytes: u64,
}

impl BrowserSettings {
    /// A headless browser with a temporary profile. `path`: the folders in which its program is looked for, as `PATH`.
    pub fn local(path: &str) -> Self {
        Self {
            program: chromium::program(path),
            headless: true,
            snapshot_tokens: 2_000,
            download_bytes: 100 << 20,
            ..Self::default()
        }
    }

    /// Keeps a profile by this name below `profiles`. `false`: the name is no plain file name.
    pub fn keep_profile(&mut self, profiles: &Path, name: &str) -> bool {
        self.profile = chromium::profile_folder(profiles, name);
        self.profile.is_some()
    }

    /// Whether there is a browser that could be used.
    pub fn usable(&self) -> bool {
        self.program.is_some() || self.remote.is_some()
    }
}
