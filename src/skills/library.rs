//! The skills of a process, as they are now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tiller_protocol::skill::SkillRecord;
use tiller_store::Store;

use crate::change::Editor;
use crate::load::Skills;

/// Reads all skills again. Blocks.
pub type Reload = Arc<dyn Fn() -> Skills + Send + Sync>;

/// The skills as they are now. Clones share one list, which is replaced as a whole: when the user trusts a folder, and when
/// a skill changes.
#[derive(Clone, Default)]
pub struct Library(Arc<Shared>);

#[derive(Default)]
struct Shared {
    skills: RwLock<Skills>,
    reload: RwLock<Option<Reload>>,
    /// Held while they are read again: what was read earlier never takes the place of what was read later.
    reloading: Mutex<()>,
    editor: RwLock<Option<Editor>>,
    store: RwLock<Option<Store>>,
    /// Names of skills that were turned off or on since the start.
    switched: RwLock<BTreeMap<String, bool>>,
}

impl Library {
    /// These skills.
    pub fn new(skills: Skills) -> Self {
        let library = Self::default();
        library.replace(skills);
        library
    }

    /// The skills as they are now.
    pub fn now(&self) -> Skills {
        self.0.skills.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the skills, for all clones.
    pub fn replace(&self, skills: Skills) {
        // In this order everywhere: a switch in between is not lost.
        let switched = self.0.switched.read().unwrap_or_else(PoisonError::into_inner);
        *self.0.skills.write().unwrap_or_else(PoisonError::into_inner) = skills.switched(&switched);
    }

    /// Turns a skill off or on until the end of the process.
    pub fn switch(&self, name: &str, on: bool) {
        let mut switched = self.0.switched.write().unwrap_or_else(PoisonError::into_inner);
        switched.insert(name.to_owned(), on);
        let mut skills = self.0.skills.write().unwrap_or_else(PoisonError::into_inner);
        *skills = skills.switched(&switched);
    }

    /// How they are read again.
    pub fn reload_with(&self, reload: Reload) {
        *self.0.reload.write().unwrap_or_else(PoisonError::into_inner) = Some(reload);
    }

    /// What changes them.
    pub fn edit_with(&self, editor: Editor) {
        *self.0.editor.write().unwrap_or_else(PoisonError::into_inner) = Some(editor);
    }

    /// What changes them; `None`: nothing can.
    pub fn editor(&self) -> Option<Editor> {
        self.0.editor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the records of skills are kept.
    pub fn record_in(&self, store: Store) {
        *self.0.store.write().unwrap_or_else(PoisonError::into_inner) = Some(store);
    }

    /// How often a skill was used, and what came of it. Blocks.
    pub fn record(&self, name: &str) -> SkillRecord {
        let store = self.0.store.read().unwrap_or_else(PoisonError::into_inner).clone();
        let all = store.and_then(|store| store.skill_uses().records().ok());
        all.and_then(|mut all| all.remove(name)).unwrap_or_default()
    }

    /// Reads them again, where that is possible, and returns them. Blocks.
    pub fn reload(&self) -> Skills {
        let reload = self.0.reload.read().unwrap_or_else(PoisonError::into_inner).clone();
        let _one_at_a_time = self.0.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reload) = reload {
            self.replace(reload());
        }
        self.now()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::load::Sources;

    #[test]
    fn what_was_read_earlier_never_takes_the_place_of_what_was_read_later() {
        let library = Library::default();
        let (begun, begins) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let first = Mutex::new(Some(goes_on));
        library.reload_with(Arc::new(move || {
            let earlier = first.lock().unwrap().take();
            let built_in = earlier.is_none();
            if let Some(goes_on) = earlier {
                begun.send(()).unwrap();
                goes_on.recv().unwrap();
            }
            Skills::load(&Sources { built_in, ..Sources::default() }).0
        }));
        std::thread::scope(|scope| {
            scope.spawn(|| library.reload());
            begins.recv().unwrap();
            // It may be read at once, or after the first: the result stands in both cases.
            let later = scope.spawn(|| library.reload());
            go_on.send(()).unwrap();
            assert!(later.join().unwrap().iter().next().is_some());
        });
        assert!(library.now().iter().next().is_some());
    }
}
