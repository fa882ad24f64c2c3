use super::*;
use crate::keymap::Lookup;
use crate::keymap::action::LEADER;

fn words() -> &'static Vocabulary {
    crate::shipped::registry().words()
}

fn overlay(text: &str) -> Result<Keymap, KeyError> {
    load(words(), "default", Some(("keys.toml", text)))
}

fn keys(text: &str) -> Vec<Chord> {
    parse_sequence(text, Chord::parse("ctrl-x").unwrap()).unwrap()
}

#[test]
fn every_preset_loads() {
    for (name, _) in PRESETS {
        let map = preset(words(), name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(map.preset, *name);
        assert!(map.table().len() > 50);
    }
}

#[test]
fn every_palette_action_has_a_key_or_is_only_in_the_palette() {
    let map = preset(words(), "default").unwrap();
    let without: Vec<&str> = words()
        .actions()
        .filter(|(_, s)| !s.palette && map.anywhere(s.action).is_none() && s.action != LEADER)
        .map(|(_, s)| s.action.0)
        .collect();
    assert!(without.is_empty(), "neither key nor palette: {without:?}");
}

/// Alt may be dead and any Ctrl key may be eaten: whatever [global] binds with them has another way
/// through the leader.
#[test]
fn every_global_chord_has_a_leader_twin() {
    for (name, _) in PRESETS {
        let map = preset(words(), name).unwrap();
        let twins: Vec<Action> = map
            .scope("global")
            .iter()
            .filter(|b| b.keys.first() == Some(&map.leader))
            .filter_map(|b| match &b.does {
                BindingTarget::Actions(a) => a.first().copied(),
                BindingTarget::Nothing => None,
            })
            .collect();
        for b in map.scope("global").iter().filter(|b| b.keys.len() == 1) {
            let BindingTarget::Actions(actions) = &b.does else { continue };
            let fragile = b.keys[0].mods.intersects(KeyModifiers::ALT | KeyModifiers::CONTROL);
            if fragile && actions[0].0 != "global.escape" {
                assert!(twins.contains(&actions[0]), "{name}: {} has no leader twin", actions[0].0);
            }
        }
    }
}

#[test]
fn an_overlay_changes_only_what_it_says() {
    let map = overlay("[global]\nctrl-t = \"view.watch\"\n\"view.agents\" = [\"f3\", \"f4\"]\n").unwrap();
    let chain = words().chain("composer");
    assert_eq!(map.lookup(&chain, &keys("ctrl-t")), Lookup::Actions(vec![Action("view.watch")]));
    assert_eq!(map.lookup(&chain, &keys("f4")), Lookup::Actions(vec![Action("view.agents")]));
    assert_eq!(map.lookup(&chain, &keys("ctrl-p")), Lookup::Actions(vec![Action("palette.open")]));
    assert_eq!(
        map.describe(Action("view.agents"), &chain).as_deref(),
        Some("F3"),
        "own keys are named first"
    );
    assert!(map.table().iter().any(|r| r.own && written(&r.keys) == "f3"));
}

/// A shipped file gives the key of a dialog its place; in a file of the person's the dialog is named.
#[test]
fn true_is_for_shipped_files_and_a_registered_key() {
    let words = words();
    let read = |own: bool, text: &str| {
        let mut wrong = Mistakes::of(text);
        let source = KeyFile::parse(words, "x.toml", text, own, &mut wrong);
        (source.lines.len(), wrong.end().map(|((line, message), _)| (line, message)))
    };
    let (key, _) = words.opening()[0];
    assert_eq!(read(false, &format!("[global]\n\"{key}\" = true\n")), (1, None));
    let (_, wrong) = read(false, "[global]\nf11 = true\n");
    assert_eq!(wrong, Some((2, "no dialog registers the key 'f11'".into())));
    let (_, wrong) = read(true, &format!("[global]\n\"{key}\" = true\n"));
    assert!(wrong.is_some_and(|(_, message)| message.starts_with("expected an action")));
}

#[test]
fn false_unbinds() {
    let map = overlay("[composer]\nctrl-p = false\n").unwrap();
    assert_eq!(map.lookup(&words().chain("composer"), &keys("ctrl-p")), Lookup::Nothing);
    assert_eq!(map.describe(Action("palette.open"), &words().chain("composer")).as_deref(), Some("Alt-X"));
}

#[test]
fn the_overlay_may_choose_preset_and_leader() {
    let map = overlay("preset = \"emacs\"\nleader = \"ctrl-q\"\n").unwrap();
    assert_eq!(map.preset, "emacs");
    assert_eq!(map.lookup(&["global"], &keys("ctrl-q q")), Lookup::Actions(vec![Action("global.quit")]));
    assert_eq!(map.describe(LEADER, &["global"]).as_deref(), Some("Ctrl-Q"));
}

#[test]
fn mistakes_are_told_with_line_and_nearest_name() {
    for (text, line, part) in [
        ("[global]\n\nctrl-t = \"view.tood\"\n", 3, "did you mean 'view.todo'"),
        ("[globall]\n", 1, "did you mean 'global'"),
        ("[global]\nctrl-tt = \"view.todo\"\n", 2, "unknown key 'tt'"),
        ("\npreset = \"vin\"\n", 2, "did you mean 'vim'"),
        ("[global]\nctrl-x = \"view.todo\"\n", 2, "one is a prefix of the other"),
        (
            "[global]\nf2 = \"view.todo\"\n\"view.agents\" = \"f2\"\n",
            3,
            "already bound in [global], on line 2",
        ),
        ("[global]\nf2 = 3\n", 2, "an action, a list"),
        ("[global]\nf2 = \n", 2, ""),
        ("preste = \"vim\"\n", 1, "did you mean 'preset'"),
    ] {
        let e = overlay(text).expect_err(text);
        assert_eq!((e.file.as_str(), e.line), ("keys.toml", line), "{e}");
        assert!(e.message.contains(part), "{e}");
        // One mistake is reported once.
        assert!(e.more.iter().all(|m| *m != (e.line, e.message.clone())), "{e}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let text = "preset = \"vin\"\nleader = 3\n[globall]\n[global]\nf2 = \"view.tood\"\nf3 = 3\nctrl-tt = \"view.todo\"\n\
        f4 = \"view.todo\"\n\"view.agents\" = \"f4\"\nf5 = \"view.watch\"\n";
    let e = overlay(text).unwrap_err();
    let lines: Vec<usize> = std::iter::once(e.line).chain(e.more.iter().map(|m| m.0)).collect();
    assert_eq!(lines, [1, 2, 3, 5, 6, 7, 9], "{e}");
    let told = e.to_string();
    assert!(told.starts_with("keys.toml:1: ") && told.contains("; line 7: unknown key 'tt'"), "{told}");
    let twice = overlay("[global]\nf2 = \nf3 = \n").unwrap_err();
    assert_eq!(
        (twice.line, twice.more.first().map(|m| m.0)),
        (2, Some(3)),
        "the parser goes on, too: {twice}"
    );
}

#[test]
fn yes_is_never_on_enter_or_space() {
    // The rule looks at the action, so every approving action is covered.
    let yes = words().actions().find(|(_, s)| s.yes).unwrap().1.action.0;
    for key in ["enter", "space", "ctrl-enter", "f2 space"] {
        let e = overlay(&format!("[approval]\n\"{key}\" = \"{yes}\"\n")).expect_err(key);
        assert!(e.message.contains("[approval]"), "{e}");
        let e = overlay(&format!("[approval]\n\"{yes}\" = \"{key}\"\n")).expect_err(key);
        assert!(e.message.contains("[approval]"), "{e}");
    }
}

#[test]
fn sequences_wait_and_inner_sections_win() {
    let map = overlay("[composer]\n\"leader q\" = \"composer.clear\"\n").unwrap();
    let chain = words().chain("composer");
    assert_eq!(map.lookup(&chain, &keys("ctrl-x")), Lookup::Prefix);
    assert_eq!(map.lookup(&chain, &keys("ctrl-x q")), Lookup::Actions(vec![Action("composer.clear")]));
    assert_eq!(map.lookup(&chain, &keys("ctrl-x e")), Lookup::Actions(vec![Action("errors.open")]));
    let all = map.following(&chain, &keys("ctrl-x"));
    assert_eq!(all.iter().filter(|(c, _)| c.to_string() == "q").count(), 1);
}

#[test]
fn every_key_of_every_preset_is_shown_as_on_the_keyboard() {
    for (name, _) in PRESETS {
        for row in preset(words(), name).unwrap().table() {
            let shown = crate::keymap::show(&row.keys);
            for word in shown.split(' ') {
                let last = word
                    .rsplit_once('-')
                    .map_or(word, |(mods, last)| if last.is_empty() { mods } else { last });
                // A single letter without Ctrl or Alt is the key itself: `a` and `A` differ.
                let letter = word.chars().count() == 1;
                assert!(letter || !word.starts_with(char::is_lowercase), "{name}: {shown}");
                assert!(letter || !last.starts_with(char::is_lowercase), "{name}: {shown}");
            }
            assert_eq!(
                parse_sequence(&shown, keys("ctrl-x")[0]).unwrap(),
                row.keys,
                "{shown} can be written in a file"
            );
        }
    }
}

/// A keymap of a plugin inherits like the shipped ones, never takes the place of one, and is named in its mistakes.
#[test]
fn a_keymap_of_a_plugin_is_found_by_its_name() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = tmp.path().join("keymaps");
    std::fs::create_dir(&folder).unwrap();
    let plugins = [tmp.path().to_owned()];
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("team.toml", "preset = \"vim\"\n[global]\n\"F9\" = \"help.open\"\n");
    write("default.toml", "[global]\n\"F9\" = \"no such action\"\n");
    let map = load_with(words(), "team", None, &plugins).unwrap();
    let f9 =
        |map: &Keymap| map.lookup(&["global"], &keys("f9")) == Lookup::Actions(vec![Action("help.open")]);
    assert!(f9(&map) && map.preset == "team");
    // The recorder of keys reads the same preset again.
    let again = load_with(words(), &map.preset, Some(("keys.toml", "[global]\n")), &map.plugins).unwrap();
    assert!(f9(&again));
    assert!(!f9(&load_with(words(), "default", None, &plugins).unwrap()), "the shipped one comes first");
    let error = load_with(words(), "taem", None, &plugins).unwrap_err();
    assert!(error.in_settings && error.message.contains("did you mean 'team'"), "{error}");
    for (text, line) in
        [("preset = \"team\"\n", 1), ("preset = \"vim\"\n[global]\n\"F9\" = \"hepl.open\"\n", 3)]
    {
        write("team.toml", text);
        match load_with(words(), "team", None, &plugins) {
            // It inherits from itself: that ends.
            Ok(_) => assert_eq!(line, 1),
            Err(error) => {
                assert!(!error.in_settings && error.file.ends_with("keymaps/team.toml"), "{error}");
                assert_eq!(error.line, line, "{error}");
            }
        }
    }
}
