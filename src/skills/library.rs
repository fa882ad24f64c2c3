//! The skills of a process, as they are now.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

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
        let skills = skills.switched(&self.0.switched.read().unwrap_or_else(PoisonError::into_inner));
        *self.0.skills.write().unwrap_or_else(PoisonError::into_inner) = skills;
    }

    /// Turns a skill off or on until the end of the process.
    pub fn switch(&self, name: &str, on: bool) {
        self.0.switched.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), on);
        self.replace(self.now());
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
        if let Some(reload) = reload {
            self.replace(reload());
        }
        self.now()
    }
}
