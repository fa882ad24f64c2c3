use std::fs;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::load::{Sources, load};
use crate::testing::kinds;
use crate::{KeyFile, Secret};

#[test]
fn a_setting_is_changed_and_everything_else_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let before = "# mine\nmodel = \"a/b\" # the good one\n\n[ui] # looks\n# which\ntheme = \"one\"   # was two\nmeasure = 80\n";
    fs::write(&path, before).unwrap();
    set_value(&path, "ui.theme", &json!("new"), &kinds()).unwrap();
    set_value(&path, "model", &json!("c/d"), &kinds()).unwrap();
    let after = before.replace("\"one\"", "\"new\"").replace("a/b", "c/d");
    assert_eq!(fs::read_to_string(&path).unwrap(), after);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    set_value(&path, "limits.turns", &json!(9), &kinds()).unwrap();
    set_value(&path, "providers.\"a.b\".kind", &json!("anthropic"), &kinds()).unwrap();
    set_value(&path, "watch.ignore", &json!(["x", "y"]), &kinds()).unwrap();
    set_value(&path, "ui.measure", &json!(null), &kinds()).unwrap();
    set_value(&path, "tiers.fast", &json!(null), &kinds()).unwrap();
    let config = load(&Sources { user: Some(path.clone()), kinds: kinds(), ..Sources::default() }).config;
    assert_eq!((config.limits.turns, config.ui.measure), (9, 100));
    assert!(config.providers.contains_key("a.b"));
    assert_eq!(config.watch.ignore, vec!["x", "y"]);
    assert!(fs::read_to_string(&path).unwrap().starts_with("# mine\nmodel = \"c/d\" # the good one\n"));
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.filter(|name| name != ".config.toml.lock").collect();
    assert_eq!(names, ["config.toml"], "nothing but the lock is left beside it");
}

#[test]
fn a_name_of_a_list_comes_and_goes_and_the_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let set = |name: &str, present| set_member(&path, "skills.disabled", name, present, &kinds()).unwrap();
    let list = || {
        let sources = Sources { user: Some(path.clone()), kinds: kinds(), ..Sources::default() };
        load(&sources).config.skills.disabled
    };
    set("deploy", true);
    assert_eq!(list(), ["deploy"], "the file is made");
    fs::write(&path, "# mine\n[skills] # which\ndisabled = [\"of-another-folder\"] # off\n").unwrap();
    set("deploy", true);
    set("notes", true);
    set("notes", true);
    assert_eq!(list(), ["of-another-folder", "deploy", "notes"]);
    set("deploy", false);
    set("nothing", false);
    assert_eq!(list(), ["of-another-folder", "notes"]);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# mine\n[skills] # which\n") && text.ends_with("] # off\n"), "{text}");
}

#[test]
fn tables_are_added_at_the_end_and_taken_out_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let hook = "[[hooks.before-tool-call]]\nmatch = \"terminal(x)\"\ncommand = \"exit 2\"";
    let add = |add: bool| set_tables(&path, hook, add, &kinds());
    add(true).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{hook}\n"));
    assert!(matches!(add(true), Err(ConfigError::Refused(_))), "it may be the user's own");
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{hook}\n"));
    add(false).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    add(false).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "", "nothing of it is in the file");

    let before = "# mine\nmodel = \"a/b\"\n\n[ui]\ntheme = \"one\"\n";
    fs::write(&path, before).unwrap();
    add(true).unwrap();
    let config = load(&Sources { user: Some(path.clone()), kinds: kinds(), ..Sources::default() }).config;
    assert_eq!((config.hooks.before_tool_call.len(), config.ui.theme.as_str()), (1, "one"));
    add(false).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    // Between other tables.
    let after = format!("{before}\n{hook}\n\n[limits]\nturns = 9\n");
    fs::write(&path, &after).unwrap();
    add(false).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{before}\n[limits]\nturns = 9\n"));
    // What the user changed since is left to the user.
    for changed in [format!("{before}\n{hook}\n# more\ntimeout = 5\n"), format!("{before}\n# {hook}\n")] {
        fs::write(&path, &changed).unwrap();
        assert!(matches!(add(false), Err(ConfigError::Refused(_))), "{changed}");
        assert_eq!(fs::read_to_string(&path).unwrap(), changed);
    }
    // Where an array of hooks has another form, nothing is written.
    let inline = "hooks = { before-tool-call = [{ command = \"x\" }] }\n";
    fs::write(&path, inline).unwrap();
    assert!(add(true).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), inline);
}

#[test]
fn nothing_wrong_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/config.toml");
    set_value(&path, "ui.theme", &json!("x"), &kinds()).unwrap();
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let before = fs::read_to_string(&path).unwrap();
    for (key, value) in [
        ("ui.them", json!("x")),
        ("ui.theme", json!(3)),
        ("ui.theme.deeper", json!("x")),
        ("limits.turns", json!(0)),
        ("", json!(1)),
        ("a b = c", json!(1)),
        ("providers.x.base_url", json!("no kind")),
    ] {
        assert!(set_value(&path, key, &value, &kinds()).is_err(), "{key}");
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{key}");
    }
    // An invalid file is left for the user to mend.
    fs::write(&path, "model = [").unwrap();
    assert!(matches!(set_value(&path, "ui.theme", &json!("y"), &kinds()), Err(ConfigError::Wrong { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "model = [");
}

#[test]
fn a_link_to_a_file_kept_elsewhere_stays_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("dotfiles.toml"), dir.path().join("config.toml"));
    fs::write(&real, "").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    set_value(&link, "ui.theme", &json!("x"), &kinds()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("theme = \"x\""));
}

#[test]
fn x8_keys_are_0600_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyFile::at(&dir.path().join("config/keys.toml"));
    assert_eq!(keys.names().unwrap(), Vec::<String>::new());
    keys.set("openai", &Secret::from(" sk-secret\n".to_owned())).unwrap();
    keys.set("a_b-2", &Secret::from("other".to_owned())).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(keys.path()), mode(keys.path().parent().unwrap())), (0o600, 0o700));
    assert_eq!(keys.names().unwrap(), vec!["a_b-2", "openai"]);
    let key = keys.get("openai").unwrap().unwrap();
    assert_eq!(key.reveal(), "sk-secret");
    assert!(!format!("{key:?}{keys:?}").contains("sk-secret"));

    fs::set_permissions(keys.path(), fs::Permissions::from_mode(0o644)).unwrap();
    keys.get("openai").unwrap();
    assert_eq!(mode(keys.path()), 0o600);
    for (name, key) in
        [("", "k"), ("a.b", "k"), ("../x", "k"), ("x", ""), ("x", "two words"), ("x", "a\u{7}")]
    {
        let refused = keys.set(name, &Secret::from(key.to_owned()));
        assert!(matches!(refused, Err(ConfigError::Refused(_))), "{name} {key}");
    }
    assert!(keys.remove("openai").unwrap());
    assert!(!keys.remove("openai").unwrap());
    assert_eq!(keys.get("openai").unwrap(), None);

    fs::write(keys.path(), "good = 'sk-secret'\nbad = sk-secret").unwrap();
    let error = keys.get("good").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("sk-secret"), "{error}");
    assert!(error.to_string().contains("line 2"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_key_and_text_is_taken_or_refused(key in "[a-z.\"' ]{0,12}|\\PC{0,12}", text in "\\PC{0,12}") {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        if set_value(&path, &key, &json!(text), &kinds()).is_ok() && path.exists() {
            let loaded = load(&Sources { user: Some(path), kinds: kinds(), ..Sources::default() });
            prop_assert_eq!(loaded.problems, vec![]);
        }
    }
}

#[test]
fn an_entry_is_set_with_everything_around_it_kept() {
    let old = "# top\npreset = \"vim\"\n\n[global]\n\"leader r\" = \"a.b\" # why\n";
    let new = crate::set_entry(old, "global", "leader r", &"c.d".into()).unwrap();
    assert_eq!(new, old.replace("a.b", "c.d"));
    let new = crate::set_entry(old, "list", "ctrl-a", &"c.d".into()).unwrap();
    assert!(new.starts_with(old) && new.ends_with("[list]\nctrl-a = \"c.d\"\n"), "{new}");
    let new = crate::set_entry(&new, "list", "g g", &"e.f".into()).unwrap();
    assert!(new.ends_with("ctrl-a = \"c.d\"\n\"g g\" = \"e.f\"\n"), "{new}");
    assert!(crate::set_entry("preset = 1\n", "preset", "a", &"b".into()).is_err());
    assert!(crate::set_entry("[x", "y", "a", &"b".into()).is_err());
}
