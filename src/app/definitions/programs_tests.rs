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
        untrusted(&self.store, &self.at("repo/sub"), Some(&self.at("home")), &self.at(folder), &reads)
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
    // A no is not kept, and starts nothing.
    (offer.decide)(false).unwrap();
    let offer = place.ask("repo/sub").unwrap();
    (offer.decide)(true).unwrap();
    assert!(place.ask("repo/sub").is_none());
    place.write("repo/sub/.toy/hooks/run.sh", "touch y");
    assert_eq!(place.paths("repo/sub"), [".toy/hooks/run.sh"], "what changed is asked about");
    (place.ask("repo/sub").unwrap().decide)(true).unwrap();
    assert!(place.ask("repo/sub").is_none());
    // A yes to one program's files leaves the yes to another's.
    let other =
        untrusted(&place.store, &place.at("repo/sub"), None, &place.at("repo/sub"), &["other.json".into()]);
    (other.unwrap().decide)(true).unwrap();
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
    // A worktree of an isolated agent lies elsewhere, with the project's files.
    place.write("repo/sub/.toy/settings.json", "mine");
    (place.ask("repo/sub").unwrap().decide)(true).unwrap();
    place.write("copy/.git", "gitdir: x");
    place.write("copy/.toy/settings.json", "mine");
    assert!(place.ask("copy").is_none());
    place.write("copy/.toy/settings.json", "theirs");
    assert_eq!(place.paths("copy"), [".toy/settings.json"]);
    // In the home folder they are the person's own.
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

/// What `tiller trust COPY --yes` stores is what a start in the copy looks for.
#[test]
fn x18_a_yes_given_by_the_command_for_a_copy_counts_there() {
    let place = Place::new();
    place.write("repo/sub/.toy/settings.json", "working version");
    (place.ask("repo/sub").unwrap().decide)(true).unwrap();
    place.write("copy/.git", "gitdir: x");
    place.write("copy/.toy/settings.json", "committed version");
    let copy = PathBuf::from(place.ask("copy").unwrap().folder);
    let shown = discover_for(&copy, &[".toy/settings.json".to_owned()]).items();
    agree(&place.store, &programs_name(&copy), &[], &shown).unwrap();
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
