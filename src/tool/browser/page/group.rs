//! Events in the tabs of one agent as a whole: windows that pages ask for, downloads. Tabs come and go; this stays.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio::sync::Notify;

use super::state::quoted;
use crate::browser::orphans::Orphans;

/// Windows that pages asked for which are kept by their addresses.
const ASKED: usize = 100;
/// Addresses that a note names.
const NAMED: usize = 3;
/// Downloads of one agent that are not told yet.
const DOWNLOADS: usize = 16;
/// Downloads that no page has reported yet, whose progress is kept.
const EARLY: usize = 64;

/// The events of the tabs of one agent.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Whose cookies the tabs have; `None`: the browser's own.
    pub(crate) context: Option<String>,
    /// The newest number of an element, for all tabs.
    pub(crate) refs: Arc<AtomicU32>,
    pub(crate) state: Mutex<GroupState>,
    /// Ended downloads that no page of the browser has reported.
    pub(crate) orphans: Arc<Orphans>,
    /// Notified after each change.
    pub(crate) changed: Notify,
}

/// The windows and downloads that the browser reported.
#[derive(Debug, Default)]
pub(crate) struct GroupState {
    /// Windows that pages asked for and that have not come.
    asked: Vec<AskedWindow>,
    /// Further ones.
    more: usize,
    /// Windows that came before the page's session told that it asked for them: these are two tasks.
    ahead: usize,
    /// The last progress of downloads that no page has reported yet, oldest first.
    early: VecDeque<(String, Progress)>,
    /// Downloads by their ids.
    pub(crate) downloads: BTreeMap<String, Download>,
}

/// A window that a page asked for.
#[derive(Debug)]
struct AskedWindow {
    url: String,
    /// The person, or the agent in its place, caused it: the browser opens such a window.
    gesture: bool,
}

/// A file that a page gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Download {
    /// As the page calls it.
    pub(crate) name: String,
    pub(crate) received: u64,
    /// Bytes of the whole; 0: not known.
    pub(crate) total: u64,
    pub(crate) stage: Stage,
    /// A result named its present stage.
    pub(crate) told: bool,
}

/// How far a download is, as the browser reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) received: u64,
    /// Bytes of the whole; 0: not known.
    pub(crate) total: u64,
    /// `Some(true)`: complete; `Some(false)`: cancelled.
    pub(crate) ended: Option<bool>,
}

impl Download {
    /// Takes in how far it is. `true`: it is too large and to be cancelled.
    fn take(&mut self, now: Progress, most: u64) -> bool {
        (self.received, self.total) = (now.received, now.total);
        let large = now.received.max(now.total) > most;
        let stage = match now.ended {
            _ if self.stage != Stage::Running => return false,
            _ if large => Stage::TooLarge,
            Some(true) => Stage::Complete,
            Some(false) => Stage::Cancelled,
            None => return false,
        };
        (self.stage, self.told) = (stage, false);
        large
    }
}

/// The state of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    Complete,
    /// Stopped by the page, the server or the browser.
    Cancelled,
    /// Stopped, since it is larger than allowed.
    TooLarge,
}

impl Group {
    /// The request that cancels a download of these tabs.
    pub(crate) fn cancel(&self, id: &str) -> Value {
        let mut ask = json!({"guid": id});
        if let Some(context) = &self.context {
            ask["browserContextId"] = context.as_str().into();
        }
        ask
    }

    /// Notes that a page asks for a window.
    pub(super) fn ask(&self, url: &str, gesture: bool) {
        {
            let mut state = lock(&self.state);
            if state.ahead > 0 {
                state.ahead -= 1;
            } else if state.asked.len() < ASKED {
                state.asked.push(AskedWindow { url: url.to_owned(), gesture });
            } else {
                state.more += 1;
            }
        }
        self.changed.notify_waiters();
    }

    /// Notes that a tab has come. `opened`: by a page.
    pub(crate) fn came(&self, opened: bool) {
        {
            let mut state = lock(&self.state);
            let at = state.asked.iter().position(|a| a.gesture);
            if let Some(at) = at.or(if state.asked.is_empty() { None } else { Some(0) }) {
                state.asked.remove(at);
            } else if opened {
                state.ahead += 1;
            }
        }
        self.changed.notify_waiters();
    }

    /// Returns true while a window that a page asked for has not come.
    pub(crate) fn awaits_any(&self) -> bool {
        !lock(&self.state).asked.is_empty()
    }

    /// Returns true while a window that the browser opens has not come.
    pub(crate) fn awaits_window(&self) -> bool {
        lock(&self.state).asked.iter().any(|a| a.gesture)
    }

    /// Returns true while a download that was not told runs.
    pub(crate) fn awaits_download(&self) -> bool {
        lock(&self.state).downloads.values().any(|d| !d.told && d.stage == Stage::Running)
    }

    /// Takes the note of the windows that the browser did not open.
    pub(crate) fn take_held_back(&self) -> Option<String> {
        let mut state = lock(&self.state);
        let (asked, more) = (std::mem::take(&mut state.asked), std::mem::take(&mut state.more));
        state.ahead = 0;
        drop(state);
        let count = asked.len() + more;
        if count == 0 {
            return None;
        }
        let urls: Vec<String> = asked.iter().take(NAMED).map(|a| quoted(&a.url)).collect();
        let (windows, rest) = match count {
            1 => ("1 more window".to_owned(), ""),
            n => (format!("{n} more windows"), if n > NAMED { ", ..." } else { "" }),
        };
        Some(format!(
            "the page asked for {windows}, which the browser did not open: {}{rest}; browser_navigate opens an address",
            urls.join(", ")
        ))
    }

    /// Notes that a download begins. `None`: there are too many; `Some(true)`: it is too large already. Both are to be cancelled.
    pub(crate) fn download(&self, id: String, name: String, most: u64) -> Option<bool> {
        let begun = {
            let mut state = lock(&self.state);
            let at = state.early.iter().position(|(early, _)| *early == id);
            let early = at.and_then(|at| state.early.remove(at));
            if state.downloads.contains_key(&id) {
                Some(false)
            } else if state.downloads.len() < DOWNLOADS {
                let mut new = Download { name, received: 0, total: 0, stage: Stage::Running, told: false };
                let large = early.is_some_and(|(_, progress)| new.take(progress, most));
                self.orphans.claim(&id);
                state.downloads.insert(id, new);
                Some(large)
            } else {
                None
            }
        };
        self.changed.notify_waiters();
        begun
    }

    /// Notes how far a download is. `Some(true)`: it is to be cancelled; `None`: another agent's, or no page has reported it yet.
    pub(crate) fn progress(&self, id: &str, now: Progress, most: u64) -> Option<bool> {
        let cancel = {
            let mut state = lock(&self.state);
            match state.downloads.get_mut(id) {
                Some(download) => Some(download.take(now, most)),
                None => {
                    state.early.retain(|(early, _)| early != id);
                    if state.early.len() == EARLY {
                        state.early.pop_front();
                    }
                    state.early.push_back((id.to_owned(), now));
                    None
                }
            }
        };
        self.changed.notify_waiters();
        cancel
    }

    /// The ids of the downloads that run.
    pub(crate) fn running(&self) -> Vec<String> {
        let state = lock(&self.state);
        let running = state.downloads.iter().filter(|(_, d)| d.stage == Stage::Running);
        running.map(|(id, _)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_did_not_come_are_told_with_some_of_their_addresses() {
        let group = Group::default();
        assert_eq!(group.take_held_back(), None);
        group.ask("http://a/0", true);
        assert!(group.awaits_window());
        group.came(true);
        assert!(!group.awaits_window());
        assert_eq!(group.take_held_back(), None);
        for n in 0..500 {
            group.ask(&format!("http://a/{n}"), false);
        }
        let told = group.take_held_back().unwrap();
        assert!(told.contains("500 more windows") && told.contains("http://a/2\", ..."), "{told}");
        assert!(told.len() < 300, "{told}");
        assert_eq!(group.take_held_back(), None);
    }

    #[test]
    fn a_window_that_comes_before_it_is_asked_for_is_not_held_back() {
        let group = Group::default();
        // One of the agent's own is asked for by no page.
        group.came(false);
        group.came(true);
        group.ask("http://a/0", true);
        assert!(!group.awaits_any());
        group.ask("http://a/1", true);
        assert!(group.awaits_any());
        assert!(group.take_held_back().unwrap().contains("1 more window"), "the second one alone");
        // It holds for one call.
        group.came(true);
        assert_eq!(group.take_held_back(), None);
        group.ask("http://a/2", true);
        assert!(group.awaits_any());
    }

    fn at(received: u64, total: u64, ended: Option<bool>) -> Progress {
        Progress { received, total, ended }
    }

    #[test]
    fn a_download_is_bounded_by_its_size_and_their_number() {
        let group = Group::default();
        let begin = |id: &str| group.download(id.into(), "a".into(), 10);
        assert_eq!(begin("x"), Some(false));
        assert_eq!(group.progress("x", at(5, 0, None), 10), Some(false));
        assert_eq!(group.progress("x", at(5, 11, None), 10), Some(true), "by the size that is announced");
        assert_eq!(group.progress("x", at(6, 11, Some(false)), 10), Some(false));
        assert_eq!(lock(&group.state).downloads["x"].stage, Stage::TooLarge);
        assert_eq!(begin("x"), Some(false), "a second report of it changes nothing");
        assert_eq!(lock(&group.state).downloads["x"].stage, Stage::TooLarge);
        for n in 1..DOWNLOADS {
            assert_eq!(begin(&n.to_string()), Some(false));
        }
        assert_eq!(begin("over"), None);
        assert_eq!(group.running().len(), DOWNLOADS - 1);
    }

    #[test]
    fn progress_that_comes_before_the_download_is_known_counts() {
        for (early, begun, stage) in [
            (vec![at(3, 3, None)], false, Stage::Running),
            (vec![at(1, 3, None), at(3, 3, Some(true))], false, Stage::Complete),
            (vec![at(1, 3, Some(false))], false, Stage::Cancelled),
            (vec![at(1, 11, None)], true, Stage::TooLarge),
        ] {
            let group = Group::default();
            for now in &early {
                assert_eq!(group.progress("x", *now, 10), None);
            }
            assert_eq!(group.download("x".into(), "a".into(), 10), Some(begun), "{early:?}");
            let download = lock(&group.state).downloads["x"].clone();
            assert_eq!((download.stage, download.told), (stage, false), "{early:?}");
        }
        let group = Group::default();
        for n in 0..1_000 {
            group.progress(&n.to_string(), at(1, 0, None), 10);
        }
        assert_eq!(lock(&group.state).early.len(), EARLY);
    }
}
