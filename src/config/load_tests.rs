use std::fs;

use proptest::prelude::*;

use super::*;
use crate::json_schema;
use crate::testing::kinds;

fn fixtures(kind: &str) -> Vec<(PathBuf, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(kind);
    let mut all: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .map(|p| (p.clone(), fs::read_to_string(p).unwrap()))
        .collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

fn said(path: &Path, text: &str, layer: Layer) -> String {
    let name = Path::new(path.file_name().unwrap());
    problems_of(name, text, layer, &kinds()).iter().map(|p| format!("{p}\n")).collect()
}

/// A folder with the two files.
struct Files(tempfile::TempDir);

impl Files {
    fn new(user: &str, project: &str) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        fs::write(files.0.path().join("user.toml"), user).unwrap();
        fs::write(files.0.path().join("project.toml"), project).unwrap();
        files
    }

    fn sources(&self) -> Sources {
        Sources {
            user: Some(self.0.path().join("user.toml")),
            project: Some(self.0.path().join("project.toml")),
            trusted: true,
            kinds: kinds(),
            ..Sources::default()
        }
    }
}

#[test]
fn valid_files_have_no_problems() {
    for (path, text) in fixtures("valid") {
        assert_eq!(said(&path, &text, Layer::User), "", "{}", path.display());
        let loaded = load(&Sources { user: Some(path.clone()), kinds: kinds(), ..Sources::default() });
        assert_eq!(loaded.problems, vec![], "{}", path.display());
    }
    let (path, _) = fixtures("valid").into_iter().find(|(p, _)| p.ends_with("full.toml")).unwrap();
    let config = load(&Sources { user: Some(path), kinds: kinds(), ..Sources::default() }).config;
    assert_eq!(config.model.as_deref(), Some("anthropic/x"));
    assert_eq!((config.profile, config.limits.turns, config.limits.attempts), (Profile::AutoEdit, 50, 6));
    let local = &config.providers["local"];
    assert_eq!((local.timeouts.connect, local.timeouts.idle, local.timeouts.first_byte), (5.0, 30.5, None));
    assert_eq!(local.models["qwen*"].window, Some(32_768));
    assert_eq!(config.budget.tiers["deep"], 3.0);
    assert_eq!(config.watch.ignore, vec!["target", "*.log"]);
}

/// Each mistake of each file, with line, column and the nearest right name.
#[test]
fn invalid_files_are_told_in_full() {
    for (path, text) in fixtures("invalid") {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(
                format!("invalid_{}", path.file_stem().unwrap().to_string_lossy()),
                said(&path, &text, Layer::User)
            );
        });
    }
    for (path, text) in fixtures("project") {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(
                format!("project_{}", path.file_stem().unwrap().to_string_lossy()),
                said(&path, &text, Layer::Project)
            );
        });
    }
}

#[test]
fn a_file_with_a_mistake_is_left_out_as_a_whole() {
    let files = Files::new("model = 'a/b'\n[limits]\nturns = 'x'\n", "");
    let loaded = load(&files.sources());
    assert_eq!((loaded.config, loaded.problems.len()), (Config::default(), 1));
    let notice = Problem::notice(&loaded.problems).unwrap();
    assert!(
        notice.message.ends_with("user.toml:3:9: `limits.turns` must be a whole number, not a string"),
        "{notice:?}"
    );
    assert!(Problem::notice(&[]).is_none());
}

#[test]
fn more_dimensions_than_are_used_are_a_mistake() {
    let read = |n: u32| load(&Files::new(&format!("[embeddings]\ndimensions = {n}\n"), "").sources());
    assert_eq!(read(4096).config.embeddings.dimensions, Some(4096));
    let loaded = read(4097);
    assert_eq!((loaded.config, loaded.problems.len()), (Config::default(), 1));
    let said = loaded.problems[0].to_string();
    assert!(
        said.contains("user.toml:2:14: `embeddings.dimensions` must be at most 4096 (if it is left out, "),
        "{said}"
    );
}

#[test]
fn layers_lie_over_each_other_and_know_where_values_come_from() {
    let files = Files::new(
        "model = 'a/b'\nprofile = 'auto-edit'\n[ui]\ntheme = 'user'\nplain = false\n[limits]\nturns = 90\n",
        "[ui]\ntheme = 'project'\n[limits]\nturns = 80\nattempts = 2\n",
    );
    let mut sources = files.sources();
    sources.model = Some("c/d".into());
    sources.flags = Flags { plain: true, max_cost: Some(1.5), ..Flags::default() };
    let loaded = load(&sources);
    assert_eq!(loaded.problems, vec![]);
    assert_eq!(loaded.config.model.as_deref(), Some("c/d"));
    assert_eq!((loaded.config.ui.theme.as_str(), loaded.config.ui.plain), ("project", true));
    assert_eq!((loaded.config.limits.turns, loaded.config.limits.attempts), (80, 2));
    assert_eq!(loaded.config.budget.session_hard, Some(1.5));

    let origin = |key: &str| loaded.lines().into_iter().find(|(k, _, _)| k == key).unwrap().2;
    assert_eq!(origin("model"), SettingOrigin { layer: Layer::Environment, file: None });
    assert_eq!(origin("profile").file, Some((sources.user.clone().unwrap(), 2)));
    assert_eq!(origin("limits.turns").file, Some((sources.project.clone().unwrap(), 4)));
    assert_eq!(origin("ui.plain").layer, Layer::Flags);
    assert_eq!(origin("ui.keymap").to_string(), "built in");

    sources.flags.model = Some("e/f".into());
    sources.flags.profile = Some(Profile::ReadOnly);
    let config = load(&sources).config;
    assert_eq!((config.model.as_deref(), config.profile), (Some("e/f"), Profile::ReadOnly));
}

#[test]
fn a_project_only_makes_things_stricter_and_only_when_trusted() {
    let user = "profile = 'ask'\n[limits]\nturns = 50\n[budget]\nsession_hard = 2\n";
    let check = |project: &str| {
        let files = Files::new(user, project);
        let loaded = load(&files.sources());
        assert_eq!(loaded.problems, vec![]);
        loaded.config
    };
    let wide = check("profile = 'full'\n[limits]\nturns = 500\n[budget]\nsession_hard = 20\nday_hard = 9\n");
    assert_eq!((wide.profile, wide.limits.turns), (Profile::Ask, 50));
    assert_eq!((wide.budget.session_hard, wide.budget.day_hard), (Some(2.0), Some(9.0)));
    let strict = check(
        "profile = 'read-only'\n[limits]\nturns = 5\nfetch_private = false\n[budget]\nsession_hard = 1\n",
    );
    assert_eq!((strict.profile, strict.limits.turns), (Profile::ReadOnly, 5));
    assert_eq!(strict.budget.session_hard, Some(1.0));

    let files = Files::new(user, "[limits]\nturns = 5\n");
    let untrusted = load(&Sources { trusted: false, ..files.sources() });
    assert_eq!((untrusted.config.limits.turns, untrusted.problems.len()), (50, 0));
    assert_eq!(untrusted.untrusted, files.sources().project);
    // What is refused takes the rest of its file with it, and nothing of it is used.
    let files = Files::new(user, "model = 'evil/x'\n[limits]\nturns = 5\n");
    let refused = load(&files.sources());
    assert_eq!((refused.config.model, refused.config.limits.turns, refused.problems.len()), (None, 50, 1));
}

/// Whatever a project's file holds: nothing gets wider than the person's own.
#[test]
fn no_key_of_the_schema_lets_a_project_widen() {
    let defaults = serde_json::to_value(Config::default()).unwrap();
    let mut leaves = BTreeMap::new();
    flatten("", &defaults, &mut leaves);
    assert!(leaves.contains_key("profile") && leaves.contains_key("ui.theme"), "{leaves:?}");
    for (key, value) in leaves {
        let wider = match &value {
            Value::Bool(b) => (!b).to_string(),
            Value::Number(n) => format!("{}", n.as_f64().unwrap() * 2.0 + 1.0).replace(".0", ""),
            Value::String(_) if key == "profile" => "'full'".into(),
            Value::String(s) => format!("'{s}x'"),
            Value::Array(_) => "['x']".into(),
            _ => continue,
        };
        let files = Files::new("", &format!("{key} = {wider}\n"));
        let config = load(&files.sources()).config;
        let free = ["ui.theme", "ui.theme_dark", "ui.theme_light", "ui.keymap"].contains(&key.as_str());
        assert_eq!(config == Config::default(), !free, "{key} = {wider}");
    }
}

#[test]
fn a_change_is_read_live_and_a_mistake_leaves_the_last_good_one() {
    let files = Files::new("[ui]\ntheme = 'one'\n", "");
    let path = files.0.path().join("user.toml");
    let mut live = Live::start(files.sources());
    assert_eq!(live.current().config.ui.theme, "one");
    assert!(live.poll().is_none());
    fs::write(&path, "[ui]\ntheme = 'second'\n").unwrap();
    assert_eq!(live.poll().unwrap().unwrap().config.ui.theme, "second");
    fs::write(&path, "[ui]\nthem = 'third'\n").unwrap();
    let problems = live.poll().unwrap().unwrap_err();
    assert_eq!(problems[0].hint.as_deref(), Some("did you mean `ui.theme`?"));
    assert_eq!(live.current().config.ui.theme, "second");
    assert!(live.poll().is_none());
    fs::remove_file(&path).unwrap();
    assert_eq!(live.poll().unwrap().unwrap().config.ui.theme, "auto");
}

#[test]
fn odd_files_are_problems_not_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let read = |path: &Path| {
        load(&Sources { user: Some(path.into()), kinds: kinds(), ..Sources::default() }).problems
    };
    assert_eq!(read(&dir.path().join("none.toml")), vec![]);
    assert!(read(dir.path())[0].message.contains("is a folder"));
    let latin = dir.path().join("latin.toml");
    fs::write(&latin, b"# caf\xe9\n").unwrap();
    assert_eq!(read(&latin)[0].at, Some((1, 6)));
    let big = dir.path().join("big.toml");
    fs::write(&big, "#".repeat(2 << 20)).unwrap();
    assert!(read(&big)[0].message.contains("larger than 1024 KiB"));
    let deep = dir.path().join("deep.toml");
    fs::write(&deep, format!("a = {}", "[".repeat(100_000))).unwrap();
    assert_eq!(read(&deep).len(), 1);
    // A value may be a key in the wrong place: no message repeats one.
    let leak = dir.path().join("leak.toml");
    fs::write(&leak, "profile = 'sk-secret'\nmodel = ['sk-secret']\nui = 'sk-secret'\n").unwrap();
    let all = format!("{:?}", read(&leak));
    assert!(!all.contains("sk-secret"), "{all}");
}

#[test]
fn origins_show_no_secrets() {
    let files = Files::new(
        "[providers.x]\nkind = 'anthropic'\napi_key_command = 'echo sk-secret'\nheaders = { a = 'sk-secret' }\n",
        "",
    );
    let lines = load(&files.sources()).lines();
    assert!(lines.iter().any(|(k, v, _)| k == "providers.x.headers.a" && v == "(set)"));
    assert!(lines.iter().all(|(_, v, _)| !v.contains("sk-secret")));
}

#[test]
fn the_schema_names_every_section() {
    let schema = json_schema(&kinds());
    let sections =
        ["model", "profile", "tiers", "providers", "budget", "limits", "context", "ui", "watch", "snapshots"];
    for section in sections {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, bytes).unwrap();
        let sources = Sources { user: Some(path.clone()), project: Some(path), trusted: true, kinds: kinds(), ..Sources::default() };
        let loaded = load(&sources);
        prop_assert!(!loaded.lines().is_empty());
    }

    #[test]
    fn anything_like_a_file_is_read_without_panic(
        lines in prop::collection::vec(
            prop_oneof![
                "(model|ui|ui\\.theme|limits|providers\\.x|\"é\") = [\\[\\{\"'0-9a-z.,=\\-\\}\\]]{0,8}",
                "\\[{1,2}(ui|limits|providers(\\.\"a b\")?|budget\\.tiers)\\]{1,2}",
                "\\PC{0,20}",
            ],
            0..8
        )
    ) {
        let text = lines.join("\n");
        for layer in [Layer::User, Layer::Project] {
            for problem in problems_of(Path::new("x"), &text, layer, &kinds()) {
                prop_assert!(!problem.to_string().is_empty());
            }
        }
    }
}

#[test]
fn settings_that_cannot_be_read_are_an_error_and_may_restrict() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join(FILE);
    assert!(!crate::may_restrict(&path) && crate::text::read(&path).unwrap().is_none());
    for (text, restricts) in [("[ui]\nthem = 1\n", false), ("[hooks]\nx = 1\n", true), ("a = [", true)] {
        fs::write(&path, text).unwrap();
        assert_eq!(crate::may_restrict(&path), restricts, "{text}");
    }
    for bad in tiller_fs::testing::BadFile::all() {
        if bad.make(&path, "[ui]\n") {
            let said = crate::text::read(&path).unwrap_err().to_string();
            assert!(crate::may_restrict(&path) && said.contains(bad.said), "{}: {said}", bad.name);
        }
    }
}
