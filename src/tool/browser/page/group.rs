//! What happens in the tabs of one agent as a whole: windows that pages ask for, downloads. Tabs come and go; this stays.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio::sync::Notify;

use super::state::quoted;

/// Windows that pages asked for which are kept by their addresses.
const ASKED: usize = 100;
/// Addresses that a note names.
const NAMED: usize = 3;
/// Downloads of one agent that are not told yet.
const DOWNLOADS: usize = 16;

/// The events of the tabs of one agent.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Whose cookies the tabs have; `None`: the browser's own.
    pub(crate) context: Option<String>,
    pub(crate) state: Mutex<GroupState>,
    /// Notified after each change.
    pub(crate) changed: Notify,
}

/// What the browser reported.
#[derive(Debug, Default)]
pub(crate) struct GroupState {
    /// Windows that pages asked for and that have not come.
    asked: Vec<AskedWindow>,
    /// Further ones.
    more: usize,
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

/// How far a download is.
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
    /// What cancels a download of these tabs.
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
            if state.asked.len() < ASKED {
                state.asked.push(AskedWindow { url: url.to_owned(), gesture });
            } else {
                state.more += 1;
            }
        }
        self.changed.notify_waiters();
    }

    /// Notes that a tab has come.
    pub(crate) fn came(&self) {
        {
            let mut state = lock(&self.state);
            let at = state.asked.iter().position(|a| a.gesture);
            if let Some(at) = at.or(if state.asked.is_empty() { None } else { Some(0) }) {
                state.asked.remove(at);
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

    /// Notes that a download begins; `false`: there are too many, and it is to be cancelled.
    pub(super) fn download(&self, id: String, name: String) -> bool {
        let room = {
            let mut state = lock(&self.state);
            let room = state.downloads.len() < DOWNLOADS;
            if room {
                let new = Download { name, received: 0, total: 0, stage: Stage::Running, told: false };
                state.downloads.insert(id, new);
            }
            room
        };
        self.changed.notify_waiters();
        room
    }

    /// Notes how far a download is. `Some(true)`: it is to be cancelled; `None`: another agent's.
    pub(crate) fn progress(
        &self,
        id: &str,
        received: u64,
        total: u64,
        ended: Option<bool>,
        most: u64,
    ) -> Option<bool> {
        let cancel = {
            let mut state = lock(&self.state);
            let download = state.downloads.get_mut(id)?;
            (download.received, download.total) = (received, total);
            let large = received.max(total) > most;
            match (download.stage, ended) {
                (Stage::Running, _) if large => {
                    (download.stage, download.told) = (Stage::TooLarge, false);
                    true
                }
                (Stage::Running, Some(complete)) => {
                    download.stage = if complete { Stage::Complete } else { Stage::Cancelled };
                    download.told = false;
                    false
                }
                _ => false,
            }
        };
        self.changed.notify_waiters();
        Some(cancel)
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
        group.came();
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
    fn a_download_is_bounded_by_its_size_and_their_number() {
        let group = Group::default();
        assert_eq!(group.progress("x", 1, 1, None, 10), None);
        assert!(group.download("x".into(), "a".into()));
        assert_eq!(group.progress("x", 5, 0, None, 10), Some(false));
        assert_eq!(group.progress("x", 5, 11, None, 10), Some(true), "by the size that is announced");
        assert_eq!(group.progress("x", 6, 11, Some(false), 10), Some(false));
        assert_eq!(lock(&group.state).downloads["x"].stage, Stage::TooLarge);
        for n in 1..DOWNLOADS {
            assert!(group.download(n.to_string(), "a".into()));
        }
        assert!(!group.download("over".into(), "a".into()));
    }
}
