use super::*;
use crate::load::{Sources, load};
use crate::testing::kinds;

/// Lets two threads make 20 changes each at the same time. A lock is one of the open file, so that threads are kept apart as
/// processes are.
fn two_writers(change: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for writer in ["a", "b"] {
            let change = &change;
            scope.spawn(move || (0..20).for_each(|n| change(&format!("{writer}-{n}"))));
        }
    });
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn changes_of_two_writers_are_all_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules");
    two_writers(|name| {
        change_private(&path, |old| Ok(Some(format!("{old}{name}\n")))).unwrap();
    });
    let text = fs::read_to_string(&path).unwrap();
    for n in 0..20 {
        let there = |line: &str| text.lines().filter(|l| *l == line).count();
        assert_eq!((there(&format!("a-{n}")), there(&format!("b-{n}"))), (1, 1), "{n}");
    }
    assert_eq!(names(dir.path()), [".rules.lock", "rules"], "no part of a change is left");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn settings_of_two_writers_are_all_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    two_writers(|name| crate::set_member(&path, "skills.disabled", name, true, &kinds()).unwrap());
    let sources = Sources { user: Some(path), kinds: kinds(), ..Sources::default() };
    assert_eq!(load(&sources).config.skills.disabled.len(), 40);

    let path = dir.path().join("hooks.toml");
    let hook =
        |name: &str| format!("[[hooks.before-tool-call]]\nmatch = \"terminal(x)\"\ncommand = \"{name}\"");
    two_writers(|name| crate::set_tables(&path, &hook(name), true, &kinds()).unwrap());
    let sources = Sources { user: Some(path), kinds: kinds(), ..Sources::default() };
    assert_eq!(load(&sources).config.hooks.before_tool_call.len(), 40);
}

#[test]
fn keys_of_two_writers_are_all_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let keys = crate::KeyFile::at(&dir.path().join("credentials.toml"));
    two_writers(|name| keys.set(name, &crate::Secret::from("sk-1".to_owned())).unwrap());
    assert_eq!(keys.names().unwrap().len(), 40);
}

/// An editor takes no lock: what it saves while a change is made is the base of the change.
#[test]
fn what_an_editor_saves_meanwhile_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules");
    fs::write(&path, "old\n").unwrap();
    let mut runs = 0;
    let changed = change_private(&path, |old| {
        runs += 1;
        if runs == 1 {
            fs::write(&path, "of the editor\n").unwrap();
        }
        Ok(Some(format!("{old}added\n")))
    });
    changed.unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), runs), ("of the editor\nadded\n", 2));
    // A file that is changed again and again is left to the editor.
    let mut runs = 0;
    let refused = change_private(&path, |_| {
        runs += 1;
        fs::write(&path, format!("{runs}\n")).unwrap();
        Ok(Some("mine\n".into()))
    });
    assert!(refused.unwrap_err().to_string().contains("changed all the time"));
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{runs}\n"));
    assert_eq!(names(dir.path()), [".rules.lock", "rules"]);
}

#[test]
fn a_change_that_fails_or_changes_nothing_leaves_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules");
    change_private(&path, |_| Ok(None)).unwrap();
    assert!(!path.exists());
    fs::write(&path, "old\n").unwrap();
    assert!(change_private(&path, |_| Err(ConfigError::Refused("no".into()))).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
}

#[test]
fn what_a_killed_process_left_is_removed_with_a_later_change() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("credentials.toml");
    let file = |name: &str, age: u64| {
        let file = File::create(dir.path().join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
    };
    file("credentials.toml.4194300.new", 4000);
    for stays in ["credentials.toml.4194301.new", "config.toml.4194300.new", "credentials.toml.mine.new"] {
        file(stays, if stays.ends_with("1.new") { 60 } else { 4000 });
    }
    write_private(&path, "key\n").unwrap();
    let left = [
        "config.toml.4194300.new",
        "credentials.toml",
        "credentials.toml.4194301.new",
        "credentials.toml.mine.new",
    ];
    assert_eq!(names(dir.path()), left);
}
