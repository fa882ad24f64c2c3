use tiller_permit::Effect;
use tiller_permit::trust::{Choice, TrustDecision, discover, status};
use tiller_store::{Options, Store};

use super::*;

fn shared(project: &std::path::Path) -> Arc<SharedSettings> {
    let sources = tiller_config::Sources {
        project: Some(project.join(crate::app::settings::PROJECT)),
        kinds: tiller_provider::ApiFormats::built_in().kinds(),
        ..tiller_config::Sources::default()
    };
    SharedSettings::of(Arc::new(|_| None), project.join("no-keys"), sources)
}

fn after(shared: &Arc<SharedSettings>, then: Option<OnTrust>) -> TrustEffects {
    let trusted = Arc::new(AtomicBool::new(false));
    let path = PathBuf::from("no-config");
    let places = tiller_config::Places {
        config: path.clone(),
        data: path.clone(),
        state: path.clone(),
        cache: path,
        plugins: Vec::new(),
    };
    let tools = tiller_tool::Registry::built_in().catalog();
    let (hooks, project) = (tiller_hooks::Hooks::default(), PathBuf::from("no-project"));
    let mcp = McpSetup::none();
    let skills = Library::default();
    let memory = crate::app::tools::memory::add(
        &mut tiller_tool::Registry::default(),
        &tiller_config::Config::default(),
        &places,
        &project,
        &(Arc::new(tiller_protocol::SystemClock::default()) as Arc<dyn tiller_protocol::Clock>),
        &[],
    );
    TrustEffects {
        shared: Arc::clone(shared),
        trusted,
        places,
        tools,
        skills,
        hooks,
        project,
        mcp,
        memory,
        then,
    }
}

fn stored(store: &Store, folder: &str) -> Option<TrustDecision> {
    store.trust().get(folder).unwrap().map(|row| TrustDecision {
        choice: if row.trusted { Choice::Trust } else { Choice::Never },
        items: row.items.into_iter().map(|i| (i.path, i.hash)).collect(),
    })
}

#[test]
fn a_yes_is_kept_and_gives_the_rules_of_the_bytes_that_were_shown() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join(".tiller/permissions.yaml");
    std::fs::create_dir(tmp.path().join(".tiller")).unwrap();
    std::fs::write(&file, "allow:\n  - terminal(cargo test*)\ndeny:\n  - read_file(.env)\n").unwrap();
    let store = Store::not_saving("a test", Options::default()).unwrap();
    let folder_config = discover(tmp.path(), &tiller_tool::Registry::built_in().catalog());
    let shared = shared(tmp.path());
    let offer = |folder_config: &FolderConfig, status: &Status| {
        super::offer("/p", folder_config, &store, status, after(&shared, None))
    };
    assert!(offer(&folder_config, &Status::Nothing).is_none());
    assert!(offer(&folder_config, &Status::Never).is_none());
    let asked = offer(&folder_config, &status(&folder_config, None)).unwrap();
    assert!(!asked.changed && asked.items.len() == 1);
    // Changed while the question was open: the yes is for the content that was shown.
    std::fs::write(&file, "allow:\n  - terminal(*)\n").unwrap();
    let agreed = (asked.decide)(true).unwrap();
    assert!(!agreed.settings && agreed.faults.is_empty());
    let rules = agreed.rules;
    let texts: Vec<(Effect, &str)> = rules.iter().map(|r| (r.effect, r.text())).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts.contains(&(Effect::Allow, "terminal(cargo test*)")), "{texts:?}");
    assert_eq!(status(&folder_config, stored(&store, "/p").as_ref()), Status::Trusted);
    // And the change causes a new question.
    let now = discover(tmp.path(), &tiller_tool::Registry::built_in().catalog());
    let changed = status(&now, stored(&store, "/p").as_ref());
    let asked = offer(&now, &changed).unwrap();
    assert!(asked.changed);
    assert!((asked.decide)(false).unwrap().rules.is_empty());
    assert_eq!(status(&now, stored(&store, "/p").as_ref()), Status::Never);
}

#[test]
fn a_file_of_rules_that_cannot_be_read_asks_for_everything() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir(tmp.path().join(".tiller")).unwrap();
    std::fs::write(tmp.path().join(".tiller/permissions.yaml"), "allow: [[[").unwrap();
    let store = Store::not_saving("a test", Options::default()).unwrap();
    let folder_config = discover(tmp.path(), &tiller_tool::Registry::built_in().catalog());
    let asked = offer("/p", &folder_config, &store, &Status::New, after(&shared(tmp.path()), None)).unwrap();
    let agreed = (asked.decide)(true).unwrap();
    // The notice names the file and the reason.
    assert!(agreed.faults[0].message.contains("permissions.yaml"), "{:?}", agreed.faults);
    let rules = agreed.rules;
    assert_eq!(rules.iter().map(|r| r.effect).collect::<Vec<_>>(), [Effect::Ask]);
}

#[test]
fn a_yes_that_is_taken_back_is_noticed_once() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir(tmp.path().join(".tiller")).unwrap();
    std::fs::write(tmp.path().join(".tiller/config.toml"), "[limits]\nturns = 3\n").unwrap();
    let store = Store::not_saving("a test", Options::default()).unwrap();
    let folder_config = discover(tmp.path(), &tiller_tool::Registry::built_in().catalog());
    let shared = shared(tmp.path());
    let effects = after(&shared, None);
    let check = super::check("/p", &store, effects.clone());
    assert!(check().is_none());
    let asked = offer("/p", &folder_config, &store, &Status::New, effects.clone()).unwrap();
    (asked.decide)(true).unwrap();
    assert!(check().is_none() && shared.current().limits.turns == 3);
    assert!(store.trust().revoke("/p").wait().unwrap());
    let loss = check().unwrap();
    assert!(loss.settings);
    assert!(!effects.trusted.load(Ordering::Relaxed) && shared.current().limits.turns != 3);
    assert!(check().is_none(), "it is told once");
    // Never is as good as no yes.
    (asked.decide)(true).unwrap();
    store.trust().set("/p", false, Vec::new()).wait().unwrap();
    assert!(check().is_some());
    // What is used without a stored yes, as for `--trust`, stays in use.
    effects.trusted.store(true, Ordering::Relaxed);
    let check = super::check("/other", &store, effects.clone());
    assert!(check().is_none() && effects.trusted.load(Ordering::Relaxed));
}

#[test]
fn settings_hold_at_once_and_what_cannot_be_read_is_named() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir(tmp.path().join(".tiller")).unwrap();
    std::fs::write(tmp.path().join(".tiller/config.toml"), "[limits]\nturns = 3\n").unwrap();
    let rules = "allow:\n  - terminal(cargo test*)\n  - '((('\n";
    std::fs::write(tmp.path().join(".tiller/permissions.yaml"), rules).unwrap();
    let store = Store::not_saving("a test", Options::default()).unwrap();
    let folder_config = discover(tmp.path(), &tiller_tool::Registry::built_in().catalog());
    let shared = shared(tmp.path());
    let told = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (hear, then) = (Arc::clone(&told), true);
    let then: OnTrust = Arc::new(move || hear.store(then, std::sync::atomic::Ordering::SeqCst));
    let asked = offer("/p", &folder_config, &store, &Status::New, after(&shared, Some(then))).unwrap();
    let agreed = (asked.decide)(true).unwrap();
    assert!(agreed.settings && told.load(std::sync::atomic::Ordering::SeqCst), "the screen hears of it");
    assert_eq!(shared.current().limits.turns, 3);
    assert!(agreed.rules.iter().any(|r| r.text() == "terminal(cargo test*)"));
    let wrong = &agreed.faults[0].message;
    assert!(wrong.contains("permissions.yaml") && wrong.contains('3'), "{wrong}");
}
