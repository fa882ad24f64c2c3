//! The registry: a JSON file that says which packs there are, where, and what their hashes are.
//!
//! ```json
//! {"version": 1, "packs": [
//!   {"name": "devops", "description": "Deployments", "source": "https://example.com/devops.tar.gz", "hash": "sha256:0123..."},
//!   {"name": "data", "description": "Tables", "source": "https://example.com/data.git#v2", "commit": "0123..."}
//! ]}
//! ```

use serde::Deserialize;

use crate::skill::is_name;

/// Packs of an index at most.
const MOST: usize = 5000;

/// What a registry lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Index {
    /// Of this form; 1.
    pub version: u32,
    #[serde(default)]
    pub packs: Vec<IndexEntry>,
}

/// One pack of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct IndexEntry {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// An archive or a git URL. Never a folder of this machine.
    pub source: String,
    /// `sha256:` and the hash of the archive. Required for an archive.
    #[serde(default)]
    pub hash: Option<String>,
    /// The whole hash of the commit. Required for a git URL.
    #[serde(default)]
    pub commit: Option<String>,
}

impl Index {
    /// Reads it. Entries that cannot be used are left out.
    ///
    /// # Errors
    /// A sentence, when it is not an index.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut index: Self = serde_json::from_slice(bytes)
            .map_err(|e| format!("the registry is not valid (line {}, column {})", e.line(), e.column()))?;
        if index.version != 1 {
            return Err(format!("the registry has version {}, and only version 1 is known", index.version));
        }
        index.packs.truncate(MOST);
        index.packs.retain(|entry| is_name(&entry.name));
        Ok(index)
    }

    /// The pack of this name.
    ///
    /// # Errors
    /// A sentence, when there is none.
    pub fn find(&self, name: &str) -> Result<&IndexEntry, String> {
        let found = self.packs.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| {
            let names = self.packs.iter().map(|entry| entry.name.as_str());
            match tiller_protocol::nearest::nearest(name, names) {
                Some(near) => format!("the registry has no pack {name}; did you mean {near}?"),
                None => format!("the registry has no pack {name}"),
            }
        })
    }
}

/// Compares an archive with the hash that the registry gives. `sha256`: that of the archive, as hexadecimal digits.
///
/// # Errors
/// A sentence, when they differ or there is none.
pub fn verify(entry: &IndexEntry, sha256: &str) -> Result<(), String> {
    let wanted = entry.hash.as_deref().and_then(|hash| hash.strip_prefix("sha256:"));
    match wanted {
        Some(wanted) if wanted.eq_ignore_ascii_case(sha256) => Ok(()),
        Some(_) => {
            Err(format!("{} is not the file that the registry means: its hash is another", entry.name))
        }
        None => Err(format!("the registry has no sha256 hash for {}, so it cannot be checked", entry.name)),
    }
}
