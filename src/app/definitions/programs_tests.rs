use tiller_store::{Options, Store};

use super::*;

struct Place {
    tmp: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let store = Store::open(&tmp.path().join("data/tiller.db"), Options::default()).unwrap();
        let place = Self { tmp, store };
        std::fs::create_dir_all(place.at("repo/.git")).unwrap();
        std::fs::create_dir_all(place.at("repo/sub")).unwrap();
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.tmp.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn ask(&self, folder: &str) -> Option<TrustOffer> {
        let reads = [".toy/settings.json".to_owned(), ".toy/hooks".to_owned()];
        let (project, home, folder) = (self.at("repo/sub"), self.at("home"), self.at(folder));
        let places = Places { project: &project, home: Some(&home), folder: &folder };
        untrusted(&self.store, &places, &reads, &[])
    }

    /// The question about `other.json` and `rules` in the project.
    fn other(&self, rules: &[TrustItem]) -> Option<TrustOffer> {
        let project = self.at("repo/sub");
        let places = Places { project: &project, home: None, folder: &project };
        untrusted(&self.store, &places, &["other.json".into()], rules)
    }

    fn paths(&self, folder: &str) -> Vec<String> {
        self.ask(folder).map(|o| o.items.into_iter().map(|i| i.path).collect()).unwrap_or_default()
    }
}

#[test]
fn a_program_starts_only_where_what_steers_it_is_agreed_to_in_this_form() {
    let place = Place::new();
    place.write("repo/sub/other.json", "{}");
    assert!(place.ask("repo/sub").is_none(), "nothing there steers it");
    place.write("repo/sub/.toy/settings.json", "{}");
    place.write("repo/sub/.toy/hooks/run.sh", "touch x");
    let offer = place.ask("repo/sub").unwrap();
    assert_eq!(offer.items.len(), 2);
    (offer.decide)(true).unwrap();
    assert!(place.ask("repo/sub").is_none());
    place.write("repo/sub/.toy/hooks/run.sh", "touch y");
    assert_eq!(place.paths("repo/sub"), [".toy/hooks/run.sh"], "what changed is asked about");
    (place.ask("repo/sub").unwrap().decide)(true).unwrap();
    assert!(place.ask("repo/sub").is_none());
    // A yes to one program's files does not change the yes to another's.
    (place.other(&[]).unwrap().decide)(true).unwrap();
    assert!(place.ask("repo/sub").is_none());
}

#[test]
fn folders_above_count_up_to_the_repository_and_a_copy_counts_as_the_project() {
    let place = Place::new();
    place.write(".toy/settings.json", "above the repository");
    assert!(place.ask("repo/sub").is_none());
    place.write("repo/.toy/settings.json", "{}");
    let offer = place.ask("repo/sub").unwrap();
    assert_eq!(offer.folder, place.at("repo").display().to_string());
    (offer.decide)(true).unwrap();
    assert!(place.ask("repo/sub").is_none());
    // A worktree of an isolated agent is elsewhere, with the project's files.
    place.write("repo/sub/.toy/settings.json", "mine");
    (place.ask("repo/sub").unwrap().decide)(true).unwrap();
    place.write("copy/.git", "gitdir: x");
    place.write("copy/.toy/settings.json", "mine");
    assert!(place.ask("copy").is_none());
    place.write("copy/.toy/settings.json", "theirs");
    assert_eq!(place.paths("copy"), [".toy/settings.json"]);
    // In the home folder they are the person's own. It is a repository, so that no folder above counts, whatever lies there.
    place.write("home/.git/HEAD", "ref: refs/heads/main");
    place.write("home/.toy/settings.json", "{}");
    assert!(place.ask("home").is_none());
}

#[test]
fn what_cannot_be_compared_later_cannot_be_agreed_to() {
    let place = Place::new();
    std::fs::create_dir_all(place.at("repo/sub/.toy")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.at("repo/sub/.toy/settings.json")).unwrap();
    let offer = place.ask("repo/sub").unwrap();
    assert!((offer.decide)(true).unwrap_err().contains("link"));
    assert!(place.ask("repo/sub").is_some());
    std::fs::remove_file(place.at("repo/sub/.toy/settings.json")).unwrap();
    place.write("repo/sub/.toy/settings.json", &"x".repeat(300 << 10));
    assert!((place.ask("repo/sub").unwrap().decide)(true).is_err());
    for n in 0..600 {
        place.write(&format!("repo/sub/.toy/hooks/{n}"), "");
    }
    assert!((place.ask("repo/sub").unwrap().decide)(true).unwrap_err().contains("too many"));
}

/// A yes from `tiller trust COPY --yes` counts for a start in the copy.
#[test]
fn x18_a_yes_given_by_the_command_for_a_copy_counts_there() {
    let place = Place::new();
    place.write("repo/sub/.toy/settings.json", "working version");
    (place.ask("repo/sub").unwrap().decide)(true).unwrap();
    place.write("copy/.git", "gitdir: x");
    place.write("copy/.toy/settings.json", "committed version");
    let copy = PathBuf::from(place.ask("copy").unwrap().folder);
    let shown = discover_for(&copy, &[".toy/settings.json".to_owned()]).items();
    agree(&place.store, &copy, &[], &shown).unwrap();
    assert!(place.ask("copy").is_none());
}

#[test]
fn x18_a_yes_in_a_copy_leaves_the_yes_to_the_project() {
    let place = Place::new();
    place.write("repo/sub/.toy/settings.json", "working version");
    (place.ask("repo/sub").unwrap().decide)(true).unwrap();
    place.write("copy/.git", "gitdir: x");
    place.write("copy/.toy/settings.json", "committed version");
    (place.ask("copy").unwrap().decide)(true).unwrap();
    assert!(place.ask("copy").is_none());
    assert!(place.ask("repo/sub").is_none());
    // The project's own version is agreed to in a copy too.
    place.write("copy/.toy/settings.json", "working version");
    assert!(place.ask("copy").is_none());
    place.write("copy/.toy/settings.json", "a third version");
    assert_eq!(place.paths("copy"), [".toy/settings.json"]);
}

#[test]
fn x18_never_is_kept_for_the_files_that_were_shown_until_a_yes_to_them() {
    let place = Place::new();
    place.write("repo/sub/.toy/settings.json", "{}");
    place.write("repo/sub/other.json", "{}");
    let offer = place.ask("repo/sub").unwrap();
    assert!(!offer.never);
    (offer.decide)(false).unwrap();
    assert!(place.ask("repo/sub").unwrap().never);
    // "Never" remains for any content, also in a copy of the project.
    place.write("repo/sub/.toy/settings.json", "{ }");
    assert!(place.ask("repo/sub").unwrap().never);
    place.write("copy/.git", "gitdir: x");
    place.write("copy/.toy/settings.json", "{}");
    assert!(place.ask("copy").unwrap().never);
    // The files of another program are a separate question, whose answer changes nothing here.
    let sub = place.at("repo/sub");
    let other = place.other(&[]).unwrap();
    assert!(!other.never);
    (other.decide)(true).unwrap();
    assert!(place.other(&[]).is_none());
    assert!(place.ask("repo/sub").unwrap().never);
    // `tiller trust` ends it.
    let shown = discover_for(&sub, &[".toy/settings.json".to_owned(), "other.json".to_owned()]).items();
    agree(&place.store, &sub, &[], &shown).unwrap();
    assert!(place.ask("repo/sub").is_none() && place.ask("copy").is_some_and(|o| !o.never));
}

/// Two names that differ in bytes which are not UTF-8 are two files and two folders.
#[test]
fn x18_names_that_are_not_text_are_asked_about_one_by_one() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let name = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
    let hooks = place.at("repo/sub/.toy/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    if std::fs::write(hooks.join(name(b"\xfe")), "one").is_err() {
        eprintln!("skipped: names that are not UTF-8 are refused by this file system");
        return;
    }
    (place.ask("repo/sub").unwrap().decide)(true).unwrap();
    std::fs::write(hooks.join(name(b"\xff")), "two").unwrap();
    assert_eq!(place.paths("repo/sub").len(), 1);
    (place.ask("repo/sub").unwrap().decide)(true).unwrap();
    assert!(place.ask("repo/sub").is_none());
    std::fs::write(hooks.join(name(b"\xff")), "three").unwrap();
    assert_eq!(place.paths("repo/sub").len(), 1);
    // A yes to one folder does not apply to another.
    assert_ne!(
        programs_name(&place.at("repo").join(name(b"\xfe"))),
        programs_name(&place.at("repo").join(name(b"\xff")))
    );
}

/// X17: rules that deny reading and that a program cannot enforce are asked about before it starts.
#[test]
fn x17_a_rule_that_a_program_cannot_be_given_is_asked_about() {
    let place = Place::new();
    let adapters = Adapters::new(&[]);
    let rules =
        |name: &str| unenforced(&adapters.get(name).unwrap(), &["yours: deny read_file(.env)".into()]);
    let offer = place.other(&rules("codex")).unwrap();
    assert_eq!(offer.items.len(), 1);
    assert!(offer.items[0].detail.starts_with("Codex"), "{:?}", offer.items);
    (offer.decide)(true).unwrap();
    assert!(place.other(&rules("codex")).is_none());
    // A yes for one program does not apply to another program, nor to another rule.
    assert!(place.other(&rules("gemini")).is_some());
    let more = unenforced(&adapters.get("codex").unwrap(), &["yours: deny read_file(*.pem)".into()]);
    assert!(place.other(&more).is_some());
}

/// X18: each agent program starts git by itself, so programs that the repository makes git run are asked about too.
#[test]
fn x18_what_the_repository_makes_git_run_is_asked_about() {
    let place = Place::new();
    let repo = place.at("git");
    std::fs::create_dir(&repo).unwrap();
    let git = |args: &[&str]| tiller_testkit::git(&repo, args);
    git(&["init", "-q"]);
    let env = ChildEnv::new(vec![("PATH".into(), std::env::var("PATH").unwrap())]);
    let ask = |home: Option<&Path>| {
        let places = Places { project: &repo, home, folder: &repo };
        untrusted(&place.store, &places, &[], &git_settings(&repo, home, &env))
    };
    assert!(ask(None).is_none());
    git(&["config", "core.fsmonitor", "touch canary"]);
    let offer = ask(None).unwrap();
    assert_eq!(offer.items[0].path, ".git/config: core.fsmonitor");
    assert!(offer.items[0].detail.contains("touch canary"), "{:?}", offer.items);
    assert!(!repo.join("canary").exists());
    assert!(ask(Some(&repo)).is_none(), "in the home folder they are the person's own");
    (offer.decide)(true).unwrap();
    assert!(ask(None).is_none());
    git(&["config", "core.fsmonitor", "touch other"]);
    assert!(ask(None).is_some());
}
