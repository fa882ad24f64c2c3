use tiller_permit::trust::discover;
use tiller_provider::registry::LOCALS;

use super::*;

struct Bench {
    tmp: tempfile::TempDir,
    shared: Arc<SharedSettings>,
}

impl Bench {
    fn new(env: &'static [(&'static str, &'static str)]) -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let user = tmp.path().join("config.toml");
        let project = tmp.path().join("project").join(PROJECT);
        std::fs::create_dir_all(project.parent().unwrap()).unwrap();
        let var: Env = Arc::new(|name| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()));
        let sources = Sources {
            user: Some(user),
            project: Some(project),
            kinds: tiller_provider::ApiFormats::built_in().kinds(),
            ..Sources::default()
        };
        let shared = SharedSettings::of(var, tmp.path().join("credentials.toml"), sources);
        Self { tmp, shared }
    }

    fn user(&self, text: &str) {
        std::fs::write(self.tmp.path().join("config.toml"), text).unwrap();
    }

    fn project(&self, text: &str) {
        std::fs::write(self.tmp.path().join("project").join(PROJECT), text).unwrap();
    }

    fn brings(&self) -> FolderConfig {
        discover(&self.tmp.path().join("project"), &tiller_tool::Registry::built_in().catalog())
    }
}

#[test]
fn a_mistake_is_told_with_its_line_and_the_last_good_settings_stay() {
    let b = Bench::new(&[]);
    b.user("[limits]\nturns = 7\n");
    assert_eq!(b.shared.read().unwrap().limits.turns, 7);
    b.user("[limits]\nturns = 8\ntruns = 9\n");
    let notice = b.shared.read().unwrap_err();
    assert!(
        notice.message.contains("config.toml:3") && notice.message.contains("turns"),
        "{}",
        notice.message
    );
    assert_eq!(b.shared.current().limits.turns, 7);
    b.user("[limits]\nturns = 9\n");
    assert_eq!(b.shared.fresh().map(|f| f.config.limits.turns).ok(), Some(9));
}

#[test]
fn exactly_the_bytes_that_were_hashed_are_loaded() {
    let b = Bench::new(&[]);
    b.user("[limits]\nturns = 50\n");
    b.project("[ui]\ntheme = \"gruvbox-dark\"\n[limits]\nturns = 10\n");
    let folder_config = b.brings();
    // Changed while the question was open.
    b.project("[ui]\ntheme = \"tokyonight\"\n[limits]\nturns = 20\n");
    b.shared.read().unwrap();
    assert_eq!(b.shared.current().limits.turns, 50, "nothing before the yes");
    assert_eq!(b.shared.trust(&folder_config), Some(Vec::new()));
    let now = b.shared.current();
    assert_eq!((now.ui.theme.as_str(), now.limits.turns), ("gruvbox-dark", 10));
    // And stays that way when the person's own file is read again.
    b.user("[limits]\nturns = 60\nattempts = 2\n");
    let now = b.shared.read().unwrap();
    assert_eq!((now.ui.theme.as_str(), now.limits.turns, now.limits.attempts), ("gruvbox-dark", 10, 2));
}

#[test]
fn a_mistake_of_the_project_is_told_and_does_not_hinder_the_persons_own_file() {
    let b = Bench::new(&[]);
    b.project("[ui]\nthem = \"x\"\n");
    let wrong = b.shared.trust(&b.brings()).unwrap();
    assert!(wrong[0].message.contains("config.toml:2"), "{wrong:?}");
    b.user("[limits]\nturns = 5\n");
    assert_eq!(b.shared.read().unwrap().limits.turns, 5);
    // A folder without settings has none to trust.
    std::fs::remove_file(b.tmp.path().join("project").join(PROJECT)).unwrap();
    assert_eq!(b.shared.trust(&b.brings()), None);
}

#[test]
fn a_link_in_place_of_the_settings_is_not_loaded() {
    let b = Bench::new(&[]);
    std::fs::write(b.tmp.path().join("elsewhere.toml"), "[limits]\nturns = 1\n").unwrap();
    let place = b.tmp.path().join("project").join(PROJECT);
    std::os::unix::fs::symlink(b.tmp.path().join("elsewhere.toml"), place).unwrap();
    assert_eq!(b.shared.trust(&b.brings()), None);
    assert_ne!(b.shared.read().unwrap().limits.turns, 1);
}

#[test]
fn a_yes_to_a_local_server_is_written_and_makes_it_ready() {
    let b = Bench::new(&[]);
    b.user("# mine\nmodel = \"demo/demo\"\n");
    let file = b.tmp.path().join("config.toml");
    keep_local(&file, &tiller_provider::ApiFormats::built_in().kinds(), &LOCALS[0]).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# mine\nmodel"), "{text}");
    let fresh = b.shared.fresh().unwrap_or_else(|n| panic!("{}", n.message));
    assert!(fresh.providers.get("ollama").is_ok());
    assert_eq!(fresh.config.providers["ollama"].base_url.as_deref(), Some("http://127.0.0.1:11434/v1"));
    // Agreed twice, written once.
    keep_local(&file, &tiller_provider::ApiFormats::built_in().kinds(), &LOCALS[0]).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn keys_that_come_with_new_settings_are_masked() {
    let b = Bench::new(&[("MY_KEY", "correct-horse-battery")]);
    let redact = b.shared.redact();
    assert_eq!(redact("it is correct-horse-battery"), "it is correct-horse-battery");
    b.user("[providers.mine]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_env = \"MY_KEY\"\n");
    assert!(b.shared.fresh().is_ok());
    assert!(!redact("it is correct-horse-battery").contains("horse"));
    b.shared.learn("short");
    assert_eq!(redact("a short text"), "a short text");
}
