//! Finds files and definitions for `@`. The workspace is walked once for all letters that are typed within some
//! seconds; a query is given up when a newer one arrives. One thread at a time walks or compares.

pub(crate) mod symbols;
pub(crate) mod tmp;

use base64::Engine as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tiller_protocol::view::MentionKind;

use tiller_protocol::view::Mention;
use tokio::sync::Mutex;

use crate::context::{mentions, tokens};
use crate::lock::lock;
use symbols::Symbol;

/// Most files that are listed.
const FILES: usize = 200_000;
/// Bytes of a preview.
const PREVIEW: usize = 2_000;
/// Bytes of a picture that are read for its size: before the size, a photograph may have a small picture of itself.
const HEADER: u64 = 96 << 10;
/// Endings of pictures that a message can hold.
const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];
/// How long the result of a walk is used.
const FRESH: Duration = Duration::from_secs(5);
/// Names between two checks whether the query is still current.
const LOOK: usize = 512;

/// How long definitions are used, how many are shown, after how many letters, and after how many files.
const SYMBOLS: Duration = Duration::from_secs(30);
const DEFINED: usize = 20;
const LETTERS: usize = 2;
const BEST: usize = 3;

/// Paths relative to the workspace, and whether each is a folder.
type Names = Arc<Vec<(String, bool)>>;

/// The names and definitions of the workspace.
pub(crate) struct Finder {
    root: PathBuf,
    /// Number of the last query.
    last: AtomicU64,
    /// Files were added or removed.
    stale: Arc<AtomicBool>,
    /// The finder was dropped: walks end.
    over: Arc<AtomicBool>,
    /// Locked while one task walks or compares; other tasks wait without a thread.
    walked: Mutex<Option<(Instant, Names)>>,
    /// Definitions, found in the background: until then, only files are found.
    symbols: Arc<Symbols>,
    /// Walks so far, for tests.
    walks: AtomicU64,
}

/// The definitions, and whether a task is rebuilding them.
#[derive(Default)]
struct Symbols {
    made: std::sync::Mutex<Option<(Instant, Arc<Vec<Symbol>>)>>,
    making: AtomicBool,
}

impl Drop for Finder {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

impl Finder {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            last: AtomicU64::new(0),
            stale: Arc::default(),
            over: Arc::default(),
            walked: Mutex::default(),
            symbols: Arc::default(),
            walks: AtomicU64::new(0),
        }
    }

    /// Files were added or removed.
    pub(crate) fn stir(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// The number of a new query; earlier ones are outdated.
    pub(crate) fn asked(&self) -> u64 {
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Files and folders whose path contains the letters of `text` in order, best first. Empty when a newer query
    /// arrived meanwhile.
    pub(crate) async fn find(self: &Arc<Self>, number: u64, text: &str, limit: usize) -> Vec<Mention> {
        let mut walked = self.walked.lock().await;
        if self.overtaken(number) {
            return Vec::new();
        }
        let fresh = walked.as_ref().is_some_and(|(at, _)| at.elapsed() < FRESH);
        if !fresh || self.stale.swap(false, Ordering::AcqRel) {
            self.walks.fetch_add(1, Ordering::Relaxed);
            let (root, over) = (self.root.clone(), Arc::clone(&self.over));
            // Newer queries need it, too: only dropping the finder stops it.
            let names = tokio::task::spawn_blocking(move || walk(&root, &over)).await.unwrap_or_default();
            *walked = Some((Instant::now(), Arc::new(names)));
        }
        let Some(names) = walked.as_ref().map(|(_, names)| Arc::clone(names)) else { return Vec::new() };
        self.make_symbols(&names);
        let (me, text) = (Arc::clone(self), text.to_owned());
        let found = tokio::task::spawn_blocking(move || me.best(number, &names, &text, limit)).await;
        drop(walked);
        found.unwrap_or_default()
    }

    /// Searches for definitions on a thread of its own when the known ones are old.
    fn make_symbols(&self, names: &Names) {
        let old = lock(&self.symbols.made).as_ref().is_none_or(|(at, _)| at.elapsed() > SYMBOLS);
        if !old || self.symbols.making.swap(true, Ordering::AcqRel) {
            return;
        }
        let (root, over, names) = (self.root.clone(), Arc::clone(&self.over), Arc::clone(names));
        let symbols = Arc::clone(&self.symbols);
        tokio::task::spawn_blocking(move || {
            let found = symbols::find(&root, &names, &over);
            *lock(&symbols.made) = Some((Instant::now(), Arc::new(found)));
            symbols.making.store(false, Ordering::Release);
        });
    }

    /// The definitions whose names contain the text, best first.
    fn defined(&self, text: &str) -> Vec<Mention> {
        let text = text.to_lowercase();
        if text.chars().count() < LETTERS {
            return Vec::new();
        }
        let Some(all) = lock(&self.symbols.made).as_ref().map(|(_, all)| Arc::clone(all)) else {
            return Vec::new();
        };
        let mut found: Vec<(usize, &Symbol)> =
            all.iter().filter_map(|s| Some((s.score(&text)?, s))).collect();
        found.sort_by_key(|(score, _)| *score);
        found.iter().take(DEFINED).map(|(_, s)| s.mention()).collect()
    }

    fn overtaken(&self, number: u64) -> bool {
        self.last.load(Ordering::Acquire) != number
    }

    fn best(&self, number: u64, names: &[(String, bool)], text: &str, limit: usize) -> Vec<Mention> {
        let wanted: Vec<char> = text.to_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
        let mut found: Vec<(usize, &str, bool)> = Vec::new();
        for chunk in names.chunks(LOOK) {
            if self.overtaken(number) {
                return Vec::new();
            }
            found.extend(
                chunk.iter().filter_map(|(name, dir)| Some((score(name, &wanted)?, name.as_str(), *dir))),
            );
        }
        found.sort_unstable();
        // Definitions follow the best files.
        let defined = self.defined(text);
        let files = limit.saturating_sub(defined.len());
        found.truncate(files);
        let best = found.len().min(BEST);
        let row = |(i, (_, name, dir)): (usize, (usize, &str, bool))| {
            mention(&self.root, name.to_owned(), dir, i == 0)
        };
        let mut all: Vec<Mention> = found.into_iter().enumerate().map(row).collect();
        let rest = all.split_off(best);
        all.extend(defined);
        all.extend(rest);
        all
    }
}

/// All names of the workspace that git does not ignore.
fn walk(root: &Path, over: &AtomicBool) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    let files =
        ignore::WalkBuilder::new(root).hidden(false).filter_entry(|e| e.file_name() != ".git").build();
    for (n, entry) in files.take(FILES).enumerate() {
        if n % LOOK == 0 && over.load(Ordering::Acquire) {
            break;
        }
        let Ok(entry) = entry else { continue };
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        let Some(name) = path.to_str().filter(|n| !n.is_empty()) else { continue };
        names.push((name.to_owned(), entry.file_type().is_some_and(|t| t.is_dir())));
    }
    names
}

/// Smaller is better: letters close together, late in the path, in a short path. `None`: no match.
fn score(name: &str, wanted: &[char]) -> Option<usize> {
    let lower: Vec<char> = name.to_lowercase().chars().collect();
    // From the end, so that file names win over folders.
    let mut at = lower.len();
    let mut gaps = 0;
    for w in wanted.iter().rev() {
        let next = lower[..at].iter().rposition(|c| c == w)?;
        if at != lower.len() {
            gaps += at - next - 1;
        }
        at = next;
    }
    Some(gaps * 100 + lower.len())
}

pub(crate) fn mention(root: &Path, name: String, dir: bool, first: bool) -> Mention {
    let full = root.join(&name);
    let size =
        if dir { None } else { std::fs::metadata(&full).ok().filter(|m| m.is_file()).map(|m| m.len()) };
    let mut preview = String::new();
    if first && size.is_some() {
        let inside = |path: &PathBuf| root.canonicalize().is_ok_and(|root| path.starts_with(root));
        if let Some(judged) = full.canonicalize().ok().filter(inside)
            && let Ok(bytes) = tiller_fs::beneath::read(&judged, PREVIEW as u64)
            && let Ok(head) = tiller_tool::files::readable(&bytes, true)
        {
            preview = head.text;
        }
    }
    Mention {
        kind: if dir { MentionKind::Folder } else { MentionKind::File },
        tokens: size.map(|size| file_tokens(&full, size)),
        name,
        size,
        preview,
    }
}

/// Estimated tokens of a file that is attached: of a picture by its pixels, of a text by the bytes that are taken of it.
fn file_tokens(path: &Path, size: u64) -> u64 {
    if is_picture(&path.to_string_lossy()) {
        let head = tiller_fs::beneath::read(path, HEADER).unwrap_or_default();
        return tokens::of_image(&base64::engine::general_purpose::STANDARD.encode(head));
    }
    tokens::of_bytes(size.min(mentions::FILE))
}

/// The name is that of a picture.
pub(crate) fn is_picture(name: &str) -> bool {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    PICTURES.iter().any(|kind| end.eq_ignore_ascii_case(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &[Mention]) -> Vec<&str> {
        found.iter().map(|m| m.name.as_str()).collect()
    }

    #[test]
    fn a_picture_counts_by_its_pixels_and_a_long_text_by_what_is_taken_of_it() {
        let tmp = tempfile::tempdir().unwrap();
        // A picture of 1,200 by 900 pixels in 250 KB, and one without a header.
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\xb0\0\0\x03\x84\x08\x02\0\0\0".to_vec();
        png.resize(250 << 10, 7);
        std::fs::write(tmp.path().join("Shot.PNG"), &png).unwrap();
        std::fs::write(tmp.path().join("odd.jpg"), vec![0; 250 << 10]).unwrap();
        std::fs::write(tmp.path().join("log.txt"), vec![b'x'; 900 << 10]).unwrap();
        let of = |name: &str| mention(tmp.path(), name.into(), false, false);
        assert_eq!((of("Shot.PNG").size, of("Shot.PNG").tokens), (Some(250 << 10), Some(1_440)));
        assert_eq!(of("odd.jpg").tokens, Some(1_500));
        assert_eq!(of("log.txt").tokens, Some((100 << 10) * 2 / 5));
        let huge = tokens::of_pixels(8000, 8000);
        assert!(huge < 2_000 && tokens::of_pixels(200, 200) == 54 && tokens::of_pixels(1, 1) == 1, "{huge}");
    }

    #[tokio::test]
    async fn letters_typed_one_after_the_other_walk_once_and_older_ones_give_up() {
        let tmp = tempfile::tempdir().unwrap();
        for name in ["alpha.rs", "beta.rs", "gamma.txt"] {
            std::fs::write(tmp.path().join(name), "text\n").unwrap();
        }
        let finder = Arc::new(Finder::new(tmp.path()));
        let (old, new) = (finder.asked(), finder.asked());
        assert!(finder.find(old, "a", 9).await.is_empty(), "overtaken");
        assert_eq!(finder.walks.load(Ordering::Relaxed), 0);
        let found = finder.find(new, "alp", 9).await;
        assert_eq!((names(&found), found[0].preview.as_str()), (vec!["alpha.rs"], "text\n"));
        for text in ["b", "be", "bet"] {
            let number = finder.asked();
            assert_eq!(names(&finder.find(number, text, 9).await), ["beta.rs"]);
        }
        assert_eq!(finder.walks.load(Ordering::Relaxed), 1);
        std::fs::write(tmp.path().join("bet2"), "x").unwrap();
        finder.stir();
        let number = finder.asked();
        assert_eq!(names(&finder.find(number, "bet", 9).await), ["bet2", "beta.rs"]);
        assert_eq!(finder.walks.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn definitions_are_found_by_name_once_they_are_known() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("shop.rs"), "fn checkout() {\n    1;\n}\n").unwrap();
        let finder = Arc::new(Finder::new(tmp.path()));
        let begun = Instant::now();
        let found = loop {
            let found = finder.find(finder.asked(), "checkou", 9).await;
            if !found.is_empty() || begun.elapsed() > Duration::from_secs(60) {
                break found;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(names(&found), ["shop.rs:1-3"]);
        assert_eq!(found[0].kind.to_string(), "fn checkout");
        assert!(found[0].preview.contains("fn checkout()"));
    }

    #[test]
    fn a_walk_ends_with_the_engine() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("a"), "x").unwrap();
        assert_eq!(walk(tmp.path(), &AtomicBool::new(false)).len(), 1);
        assert_eq!(walk(tmp.path(), &AtomicBool::new(true)).len(), 0);
    }
}
