//! What is searched, and the model that makes vectors, by the settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tiller_memory::{Memory, OrderTexts};
use tiller_protocol::memory::has_matcher;
use tiller_protocol::{
    DocumentKind, Learning, LearningState, MemoryFile, MemoryQuery, MemoryScope, MemoryState, Notice,
    NoticeKind, Time,
};
use tiller_search::{Document, Embedder, Endpoint, Finder, Source, Table};
use tiller_skills::Library;
use tiller_store::Store;

use crate::app::Setup;

/// Where the imported table of vectors is.
pub(crate) fn table(setup: &Setup) -> PathBuf {
    setup.places.data.join("embeddings.table")
}

/// The search of this process. With a notice where the settings ask for vectors that cannot be made; keywords are
/// searched all the same.
pub(crate) fn finder(setup: &Setup, store: &Store) -> (Arc<Finder>, Option<Notice>) {
    let settings = &setup.config.config.embeddings;
    let keys = tiller_config::KeyFile::usual(&setup.places);
    let kept = |name: &str| keys.get(name).ok().flatten().map(|s| s.reveal().to_owned());
    let variable = |name: &str| (setup.env)(name).or_else(|| kept(name));
    let embedder = match Endpoint::new(settings, &variable) {
        Ok(Some(endpoint)) => Ok(Some(Embedder::Endpoint(endpoint))),
        Ok(None) => Table::open(&table(setup)).map(|table| table.map(Embedder::Table)).map_err(|e| e.0),
        Err(fault) => Err(fault.0),
    };
    let (embedder, notice) = match embedder {
        Ok(embedder) => (embedder, None),
        Err(why) => {
            let notice = Notice::new(NoticeKind::Config, why).hint("Search goes on by keywords.");
            (None, Some(notice))
        }
    };
    let finder = Finder::new(store.clone(), embedder).weighted(settings.weight);
    finder.add(Arc::new(MemoryEntries {
        memory: Arc::clone(&setup.services.memory),
        project: setup.project_name(),
    }));
    finder.add(Arc::new(LearningTexts(store.clone())));
    finder.add(Arc::new(SkillFiles(setup.services.skills.clone())));
    let finder = Arc::new(finder);
    // The finder reads memory, so memory does not own it.
    let order = Arc::downgrade(&finder);
    let order: OrderTexts = Arc::new(move |query: &str, texts: Vec<String>| {
        let ranked = order.upgrade()?.order(query, texts);
        Some((ranked.best, ranked.suggestion))
    });
    setup.services.learnings.order_by(Arc::clone(&order));
    setup.services.memory.order_by(order);
    (finder, notice)
}

/// The search for a command without a session: with memory and skills as a session here would have them.
pub(crate) fn for_command(setup: &Setup, store: &Store) -> (Arc<Finder>, Option<Notice>) {
    let status = setup.trust(store);
    let redactor = Arc::clone(&setup.redactor);
    super::memory::open(
        setup,
        store,
        super::memory::may_use(&status),
        Arc::new(move |text: &str| redactor.secrets(text)),
    );
    // A skill that cannot be read is named where skills are listed.
    drop(setup.read_skills(None, &Arc::new(AtomicBool::new(status.may_load()))));
    finder(setup, store)
}

/// Entries of the memory files.
struct MemoryEntries {
    memory: Arc<Memory>,
    /// The folder of the project's own entries.
    project: String,
}

impl Source for MemoryEntries {
    fn kind(&self) -> DocumentKind {
        DocumentKind::Memory
    }

    fn documents(&self) -> Vec<Document> {
        // The browser of memory says which file cannot be read.
        let Ok(page) = self.memory.page(&MemoryQuery { filter: String::new() }) else { return Vec::new() };
        let kept = page.entries.into_iter();
        let kept = kept.filter(|e| matches!(e.state, MemoryState::Kept | MemoryState::Archived) && !e.hidden);
        kept.map(|e| Document {
            key: format!("{} {}", e.target.label(), blake3::hash(e.text.as_bytes()).to_hex().split_at(12).0),
            title: e.target.label().to_owned(),
            time: Time::parse(&format!("{}T00:00:00Z", e.date)).ok(),
            from: e.from.as_ref().and_then(|from| from.session.zip(from.entry)),
            lasting: e.target.file == MemoryFile::Memory || (e.has_matcher() && e.fault.is_empty()),
            project: (e.target.scope == MemoryScope::Project).then(|| self.project.clone()),
            text: e.marked_text(),
        })
        .collect()
    }
}

/// Active learnings: what waits for the user or was retired is not found.
struct LearningTexts(Store);

/// Learnings that are searched, the last used or made first.
const LEARNINGS: u32 = 5_000;

impl Source for LearningTexts {
    fn kind(&self) -> DocumentKind {
        DocumentKind::Learning
    }

    fn documents(&self) -> Vec<Document> {
        // A database that cannot be read says so where it is written.
        let active = self.0.learnings().list("", Some(&LearningState::Active), LEARNINGS).unwrap_or_default();
        active.into_iter().map(learning).collect()
    }
}

fn learning(l: Learning) -> Document {
    let subject = if l.kind.subject.is_empty() { &l.kind.tool } else { &l.kind.subject };
    let error = match l.kind.error_type.as_str() {
        "" => String::new(),
        error => format!(" ({error})"),
    };
    let others = [l.context.as_str(), &l.tags.join(" ")]
        .map(|t| if t.is_empty() { String::new() } else { format!(" {t}") });
    Document {
        key: l.id.to_string(),
        title: format!("{}: {subject}", l.id),
        text: format!("{} failed{error}. What worked: {}.{}", l.pattern, l.fix, others.concat()),
        time: Some(l.last_used_at.unwrap_or(l.created_at)),
        from: l.source.session.zip(l.source.entry),
        // A rule holds however old it is.
        lasting: has_matcher(&l.fix) || has_matcher(&l.context),
        ..Document::default()
    }
}

/// Skills by their names, descriptions and bodies.
struct SkillFiles(Library);

impl Source for SkillFiles {
    fn kind(&self) -> DocumentKind {
        DocumentKind::Skill
    }

    fn documents(&self) -> Vec<Document> {
        let skills = self.0.now();
        let document = |skill: &Arc<tiller_skills::Skill>| Document {
            key: skill.name.clone(),
            title: skill.name.clone(),
            text: format!("{}\n{}", skill.description, skill.body),
            lasting: true,
            ..Document::default()
        };
        skills.iter().map(document).collect()
    }
}

#[cfg(test)]
mod tests {
    use tiller_memory::{MemoryPlaces, MemorySettings};
    use tiller_protocol::{FailureKind, LearningSource, ManualClock, Taint};
    use tiller_store::Options;

    use super::*;

    const NOW: Time = Time(1_795_291_200_000);

    fn of_fix(fix: &str) -> Learning {
        let kind =
            FailureKind { tool: "terminal".into(), subject: "git push".into(), ..FailureKind::default() };
        let source = LearningSource {
            session: None,
            entry: None,
            agent: "main".into(),
            branch: "main".into(),
            taint: Taint::Person,
        };
        Learning {
            pattern: "git push".into(),
            fix: fix.into(),
            state: LearningState::Active,
            ..Learning::proposed(kind, source, NOW)
        }
    }

    /// The texts of a source whose age does not matter, and of the others.
    fn by_age(source: &dyn Source) -> (Vec<String>, Vec<String>) {
        let (lasting, fading): (Vec<_>, Vec<_>) = source.documents().into_iter().partition(|d| d.lasting);
        let texts = |all: Vec<Document>| {
            let mut texts: Vec<String> = all.into_iter().map(|d| d.text).collect();
            texts.sort();
            texts
        };
        (texts(lasting), texts(fading))
    }

    #[test]
    fn memory_and_rules_do_not_fade() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("data/tiller.db"), Options::default()).unwrap();
        let (data, settings) = (dir.path().join("data"), dir.path().join("config"));
        let rule = "run the tests first [when: terminal(git push*)]";
        std::fs::write(data.join("MEMORY.md"), "- the build needs clang\n").unwrap();
        std::fs::write(data.join("USER.md"), format!("- likes short answers\n- {rule}\n")).unwrap();
        let memory = Memory::new(
            MemoryPlaces { data, settings, project: None },
            Arc::new(ManualClock::new(NOW)),
            Arc::new(|_| None),
            MemorySettings::of(&tiller_config::Config::default()),
        );
        memory.open(store.clone());
        let entries = MemoryEntries { memory: Arc::new(memory), project: "/p".into() };
        let (lasting, fading) = by_age(&entries);
        assert_eq!(lasting, [rule, "the build needs clang"]);
        assert_eq!(fading, ["likes short answers"]);
        let rule = "open the tunnel [when: terminal(git push*)]";
        store.learnings().add_all(vec![of_fix(rule), of_fix("pull first")]).wait().unwrap();
        let (lasting, fading) = by_age(&LearningTexts(store));
        assert!(lasting.len() == 1 && lasting[0].contains(rule), "{lasting:?}");
        assert!(fading.len() == 1 && fading[0].contains("pull first"), "{fading:?}");
    }
}
