//! The folders of configuration, data, state and cache: below `TILLER_HOME`, or the XDG folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are read of one file of a plugin at most; a plugin with a larger one is not used.
const LARGEST: u64 = 1 << 20;

/// A plugin in use, in the form that the user agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginPlace {
    pub folder: PathBuf,
    /// BLAKE3 of each of its files, as hexadecimal digits, by the path below its folder.
    pub hashes: Arc<BTreeMap<String, String>>,
}

impl PluginPlace {
    /// Whether these bytes of its file at `path` are those that the user agreed to. To be asked about the bytes that are
    /// used: the file may have changed since the plugin was checked.
    pub fn is_agreed(&self, path: &Path, bytes: &[u8]) -> bool {
        let below = tiller_protocol::names::written(path.strip_prefix(&self.folder).unwrap_or(path));
        let hash = blake3::hash(bytes).to_hex();
        self.hashes.get(&below).is_some_and(|agreed| agreed == hash.as_str())
    }

    /// The file of this path below its folder. `None`: there is none as the user agreed to it. Blocks.
    pub fn read(&self, below: &str) -> Option<Vec<u8>> {
        let path = self.folder.join(below);
        let bytes = tiller_fs::beneath::read_below(&self.folder, Path::new(below), LARGEST).ok()?;
        self.is_agreed(&path, &bytes).then_some(bytes)
    }
}

/// The four folders of the person's. Files in them are 0600, folders 0700.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub config: PathBuf,
    pub data: PathBuf,
    pub state: PathBuf,
    pub cache: PathBuf,
    /// The plugins in use, by name. Empty until they are looked for.
    pub plugins: Vec<PluginPlace>,
}

impl Places {
    /// Where agents that work apart have their folders: beside the data, because what is in the folders above no tool
    /// may write.
    pub fn worktrees(&self) -> PathBuf {
        let name = if self.data.ends_with("data") { "worktrees" } else { "tiller-worktrees" };
        self.data.with_file_name(name)
    }

    /// Where plugins are: beside the data, because programs in the sandbox cannot read the folders above, and a plugin's own
    /// programs are run there. All of their content is hashed.
    pub fn plugin_folder(&self) -> PathBuf {
        let name = if self.data.ends_with("data") { "plugins" } else { "tiller-plugins" };
        self.data.with_file_name(name)
    }

    /// Where packs of skills are: beside the data, as plugins are, so that commands in the sandbox can read their files.
    pub fn pack_folder(&self) -> PathBuf {
        let name = if self.data.ends_with("data") { "skill-packs" } else { "tiller-skill-packs" };
        self.data.with_file_name(name)
    }

    /// Where programs that settings name, such as MCP servers, keep what they fetch: beside the cache, because programs in the
    /// sandbox cannot write the folders above. Each has a folder of its own in it.
    pub fn program_caches(&self) -> PathBuf {
        let name = if self.cache.ends_with("cache") { "program-caches" } else { "tiller-program-caches" };
        self.cache.with_file_name(name)
    }

    /// From environment variables, given as a function so that tests need not set any.
    /// `None` when neither `TILLER_HOME` nor `HOME` nor XDG folders are set.
    pub fn from_env(var: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |k: &str| var(k).filter(|v| !v.is_empty()).map(PathBuf::from);
        if let Some(home) = set("TILLER_HOME") {
            return Some(Self {
                config: home.join("config"),
                data: home.join("data"),
                state: home.join("state"),
                cache: home.join("cache"),
                plugins: Vec::new(),
            });
        }
        let home = set("HOME");
        if cfg!(target_os = "macos") {
            let lib = home?.join("Library");
            let app = lib.join("Application Support").join("tiller");
            return Some(Self {
                config: app.join("config"),
                data: app.join("data"),
                state: app.join("state"),
                cache: lib.join("Caches").join("tiller"),
                plugins: Vec::new(),
            });
        }
        // The XDG specification says that relative paths are to be ignored.
        let xdg = |k: &str, rest: &str| {
            set(k)
                .filter(|p| p.is_absolute())
                .or_else(|| home.as_ref().map(|h| h.join(rest)))
                .map(|p| p.join("tiller"))
        };
        Some(Self {
            config: xdg("XDG_CONFIG_HOME", ".config")?,
            data: xdg("XDG_DATA_HOME", ".local/share")?,
            state: xdg("XDG_STATE_HOME", ".local/state")?,
            cache: xdg("XDG_CACHE_HOME", ".cache")?,
            plugins: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_plugin_is_read_only_as_the_user_agreed_to_it() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir(tmp.path().join("agents")).unwrap();
        let path = tmp.path().join("agents/a.md");
        std::fs::write(&path, "one").unwrap();
        let hashes = BTreeMap::from([("agents/a.md".to_owned(), blake3::hash(b"one").to_hex().to_string())]);
        let plugin = PluginPlace { folder: tmp.path().to_owned(), hashes: Arc::new(hashes) };
        assert_eq!(plugin.read("agents/a.md").as_deref(), Some(&b"one"[..]));
        assert!(plugin.is_agreed(&path, b"one") && !plugin.is_agreed(&path, b"two"));
        std::fs::write(&path, "two").unwrap();
        assert_eq!(plugin.read("agents/a.md"), None);
        // Nor one that was not there.
        std::fs::write(tmp.path().join("b.md"), "one").unwrap();
        assert_eq!(plugin.read("b.md"), None);
    }

    #[test]
    fn x20_a_folder_of_a_plugin_that_is_swapped_with_a_link_is_not_read() {
        use tiller_fs::testing::swap::{FOREIGN, MINE, Swaps};
        let tmp = tempfile::tempdir().unwrap();
        let swaps = Swaps::new(tmp.path(), "agents", &["a.md"]);
        // Also where both were agreed to: the path is what counts.
        for word in [MINE, FOREIGN] {
            let hash = blake3::hash(format!("{word}\n").as_bytes()).to_hex().to_string();
            let hashes = Arc::new(BTreeMap::from([("agents/a.md".to_owned(), hash)]));
            let plugin = PluginPlace { folder: swaps.root().to_owned(), hashes };
            let read = || String::from_utf8(plugin.read("agents/a.md").unwrap_or_default()).unwrap();
            match word {
                MINE => swaps.check("a file of a plugin", read),
                _ => assert_eq!(swaps.race("a file of a plugin", 200, 1_000, read), 0),
            }
        }
    }
}
