//! The options that servers refused, kept in a file, so that the next session does not send them again. By the address and the
//! model; forgotten after a month, since servers are replaced.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiller_protocol::Time;

use crate::codec::amend::{OPTIONS, Refused};

/// Maximum bytes of the file, and maximum models in it.
const SIZE_LIMIT: u64 = 256 * 1024;
const MODEL_LIMIT: usize = 500;
/// Milliseconds after which a refusal is forgotten.
const AGE: i64 = 30 * 24 * 3600 * 1000;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    base: String,
    model: String,
    options: Vec<String>,
    /// When one was last refused.
    time: Time,
}

/// The file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Learned(PathBuf);

impl Learned {
    /// The file beside that of the keys.
    pub(crate) fn beside(keys: &Path) -> Self {
        Self(keys.with_file_name("refused-options.json"))
    }

    /// The options that the server at this address refused, by model. A file that cannot be read says nothing: then they are
    /// learned again.
    pub(crate) fn of(&self, base: &str, now: Time) -> BTreeMap<String, Refused> {
        let base = bare(base);
        let known = |row: &Row| {
            OPTIONS.iter().copied().filter(|option| row.options.iter().any(|own| own == option)).collect()
        };
        let rows = self.rows(now).into_iter().filter(|row| row.base == base);
        rows.map(|row| (row.model.clone(), known(&row))).collect()
    }

    /// Keeps what the server at this address refused. What cannot be written is learned again.
    pub(crate) fn keep(&self, base: &str, refused: &BTreeMap<String, Refused>, now: Time) {
        let base = bare(base);
        let mut rows = self.rows(now);
        for (model, options) in refused {
            let mut options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            let found = rows.iter().find(|row| row.base == base && row.model == *model);
            // Another process may have learned more.
            options.extend(found.into_iter().flat_map(|row| row.options.iter().cloned()));
            options.sort_unstable();
            options.dedup();
            match rows.iter_mut().find(|row| row.base == base && row.model == *model) {
                Some(row) if row.options == options => {}
                Some(row) => (row.options, row.time) = (options, now),
                None => rows.push(Row { base: base.clone(), model: model.clone(), options, time: now }),
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.time.millis()));
        rows.truncate(MODEL_LIMIT);
        if let Err(e) = self.write(&rows) {
            tracing::debug!(error = %e, "the refused options are not kept");
        }
    }

    fn rows(&self, now: Time) -> Vec<Row> {
        let size = std::fs::metadata(&self.0).map_or(0, |meta| meta.len());
        if size == 0 || size > SIZE_LIMIT {
            return Vec::new();
        }
        let rows: Vec<Row> = std::fs::read(&self.0)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let holds = |row: &Row| (0..AGE).contains(&now.millis().saturating_sub(row.time.millis()));
        rows.into_iter().filter(holds).collect()
    }

    fn write(&self, rows: &[Row]) -> std::io::Result<()> {
        let next = self.0.with_extension(format!("new{}", std::process::id()));
        let mut open = std::fs::OpenOptions::new();
        open.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut open, 0o600);
        open.open(&next)?.write_all(&serde_json::to_vec_pretty(rows)?)?;
        std::fs::rename(&next, &self.0).inspect_err(|_| drop(std::fs::remove_file(&next)))
    }
}

/// The address without a name and a password in it.
fn bare(base: &str) -> String {
    let Some((scheme, rest)) = base.split_once("://") else { return base.to_owned() };
    let host = rest.find('/').unwrap_or(rest.len());
    let from = rest.get(..host).and_then(|host| host.rfind('@')).map_or(0, |at| at + 1);
    format!("{scheme}://{}", rest.get(from..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p17_refusals_are_kept_by_address_and_model_for_a_month() {
        let dir = tempfile::tempdir().unwrap();
        let file = Learned::beside(&dir.path().join("keys.toml"));
        let now = Time(1_000);
        assert!(file.of("http://a", now).is_empty(), "there is no file");
        let refused = BTreeMap::from([("m".to_owned(), Refused::from(["stream_options"]))]);
        file.keep("http://a", &refused, now);
        file.keep("http://b", &BTreeMap::from([("m".to_owned(), Refused::from(["max_tokens"]))]), now);
        assert_eq!(file.of("http://a", now), refused);
        assert_eq!(file.of("http://b", now)["m"], Refused::from(["max_tokens"]));
        assert!(file.of("http://c", now).is_empty());
        // The options that another process has learned stay, and a password is no part of an address.
        let more = BTreeMap::from([("m".to_owned(), Refused::from(["store"]))]);
        file.keep("http://me:secret@d/v1", &refused, now);
        file.keep("http://d/v1", &more, now);
        assert_eq!(file.of("http://me:other@d/v1", now)["m"], Refused::from(["store", "stream_options"]));
        let kept = std::fs::read_to_string(dir.path().join("refused-options.json")).unwrap();
        assert!(!kept.contains("secret"), "{kept}");
        assert!(file.of("http://a", Time(1_000 + AGE)).is_empty());
        // Only options of this program count, and a broken file says nothing.
        let path = dir.path().join("refused-options.json");
        let text = std::fs::read_to_string(&path).unwrap().replace("stream_options", "messages");
        std::fs::write(&path, text).unwrap();
        assert!(file.of("http://a", now)["m"].is_empty());
        for broken in ["{", "[1]", "", "null"] {
            std::fs::write(&path, broken).unwrap();
            assert!(file.of("http://a", now).is_empty(), "{broken}");
        }
        file.keep("http://a", &refused, now);
        assert_eq!(file.of("http://a", now), refused);
    }
}
