//! What becomes a skill, and what is said of the rest.

use std::fs;

use super::*;

fn put(config: &Path, folder: &str, text: &str) {
    let folder = config.join("skills").join(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

fn file(name: &str, description: &str, body: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {description}\nlicense: MIT\nmetadata: {{ by: us }}\n---\n{body}\n"
    )
}

fn requiring(name: &str, requires: &str) -> String {
    format!("---\nname: {name}\ndescription: x\nmetadata:\n  requires: {requires}\n---\nDo it.\n")
}

fn of(config: &Path) -> Sources<'static> {
    Sources { config: Some(config.to_owned()), ..Sources::default() }
}

fn names(skills: &Skills) -> Vec<&str> {
    skills.iter().map(|s| s.name.as_str()).collect()
}

fn said(config: &Path, problems: &[Problem]) -> Vec<String> {
    let home = config.join("skills").display().to_string() + "/";
    problems.iter().map(|p| p.to_string().replace(&home, "")).collect()
}

fn warnings(config: &Path, skills: &Skills) -> Vec<String> {
    let all: Vec<Problem> = skills.flaws().iter().filter(|f| !f.skipped).map(|f| f.problem.clone()).collect();
    said(config, &all)
}

#[test]
fn the_projects_takes_the_place_of_the_persons_and_what_is_hidden_is_known() {
    let config = tempfile::tempdir().unwrap();
    put(config.path(), "rust-style", &file("rust-style", "Mine", "Be brief."));
    put(config.path(), "notes", &file("notes", "How notes\n  are taken", "Take them."));
    fs::create_dir_all(config.path().join("skills/empty")).unwrap();
    let text = |body: &str| file("rust-style", "Ours", body);
    let (claude, agents, ours) = (text("claude"), text("agents"), text("Be careful."));
    let script = ProjectFile { path: ".tiller/skills/rust-style/run.sh", bytes: Some(b"rm -rf /") };
    let deeper = ProjectFile { path: ".tiller/skills/a/b/SKILL.md", bytes: Some(ours.as_bytes()) };
    let ours = ProjectFile { path: ".tiller/skills/rust-style/SKILL.md", bytes: Some(ours.as_bytes()) };
    let claude = ProjectFile { path: ".claude/skills/rust-style/SKILL.md", bytes: Some(claude.as_bytes()) };
    let agents = ProjectFile { path: ".agents/skills/rust-style/SKILL.md", bytes: Some(agents.as_bytes()) };

    let project = vec![script, deeper, ours, claude, agents];
    let (all, wrong) = Skills::load(&Sources { project, ..of(config.path()) });

    assert_eq!(wrong, []);
    let told: Vec<_> =
        all.iter().map(|s| (s.name.as_str(), s.description.as_str(), s.body.as_str())).collect();
    assert_eq!(told, [("notes", "How notes are taken", "Take them."), ("rust-style", "Ours", "Be careful.")]);
    let hidden: Vec<_> = all.hidden().iter().map(|s| (s.from, s.body.as_str())).collect();
    let expected = [(Origin::User, "Be brief."), (Origin::Project, "claude"), (Origin::Project, "agents")];
    assert_eq!(hidden, expected);
    let style = all.get("rust-style").unwrap();
    assert_eq!(
        style.files.list().iter().map(|f| f.path.as_str()).collect::<Vec<_>>(),
        ["SKILL.md", "run.sh"]
    );
    assert_eq!(style.files.read("run.sh").unwrap(), b"rm -rf /");
    assert_eq!((style.license.as_deref(), style.metadata["by"].as_str()), (Some("MIT"), "us"));
}

#[test]
fn what_cannot_be_used_is_reported_with_its_line_and_leaves_the_rest() {
    let config = tempfile::tempdir().unwrap();
    put(config.path(), "good", &file("good", "Good", "Do it."));
    put(config.path(), "bare", "---\nname: bare\n---\nDo it.\n");
    put(config.path(), "hollow", "---\nname: hollow\ndescription: x\n---\n");
    put(config.path(), "listed", "---\nname: listed\ndescription: [a]\n---\nDo it.\n");
    put(config.path(), "plain", "Do it.\n");
    put(config.path(), "signs", "---\nname: '***'\ndescription: x\n---\nDo it.\n");
    put(config.path(), "twice", &file("good", "Again", "Do it."));

    let link = ProjectFile { path: ".tiller/skills/link/SKILL.md", bytes: None };
    let (all, wrong) = Skills::load(&Sources { project: vec![link], ..of(config.path()) });

    assert_eq!(names(&all), ["good"]);
    assert_eq!(all.get("good").unwrap().description, "Good");
    let first = config.path().join("skills/good/SKILL.md").display().to_string();
    let said: Vec<String> =
        said(config.path(), &wrong).into_iter().map(|s| s.replace(&first, "good/SKILL.md")).collect();
    assert_eq!(
        said,
        [
            "bare/SKILL.md:1:1: the description is missing (add `description: ...`: what it does and when to use it)",
            "hollow/SKILL.md:5:1: there is nothing below the front matter (write the instructions below the second ---)",
            "listed/SKILL.md:3:1: `description` is a list, not text (put it in quotes if it is text)",
            "plain/SKILL.md:1:1: the file does not start with front matter (start with ---, then name and description, then --- and the prompt)",
            "signs/SKILL.md:2:1: `***` is not a skill name (use lower-case letters, digits and -, at most 64)",
            "twice/SKILL.md:1:1: `good` is already the skill in good/SKILL.md (give one of them another name)",
            ".tiller/skills/link/SKILL.md: the file cannot be read: it is a link, or too large",
        ]
    );
}

#[test]
fn what_is_only_over_a_limit_is_loaded_with_a_warning_and_unknown_keys_with_none() {
    let config = tempfile::tempdir().unwrap();
    put(config.path(), "Big", &file("Big Name", "A capital", "Do it."));
    put(config.path(), "other", &file("another", "Named otherwise", "Do it."));
    put(config.path(), "long", &file("long", &"w ".repeat(700), "Do it."));
    put(config.path(), "colon", "---\nname: colon\ndescription: Use when: asked\n---\nDo it.\n");
    put(config.path(), "unnamed", "---\ndescription: x\nmodel: opus\nhooks: [a, {b: c}]\n---\nDo it.\n");
    put(
        config.path(),
        "keys",
        "---\nname: keys\ndescription: x\nmodel: opus\nhooks: [a, {b: c}]\n---\nDo it.\n",
    );

    let (all, wrong) = Skills::load(&of(config.path()));

    assert_eq!(wrong, []);
    assert_eq!(names(&all), ["another", "big-name", "colon", "keys", "long", "unnamed"]);
    assert_eq!(all.get("colon").unwrap().description, "Use when: asked");
    assert_eq!(all.get("long").unwrap().description.chars().count(), 1024);
    let warned = warnings(config.path(), &all);
    for (at, message) in [
        ("Big/", "`Big Name` is not a valid skill name; it is called `big-name`"),
        ("colon/", ""),
        ("long/", "the description is too long and is cut"),
        ("other/", "the skill is named `another`, but its folder `other`"),
        ("unnamed/", "the name is missing"),
    ] {
        assert!(warned.iter().any(|w| w.starts_with(at) && w.contains(message)), "{at}: {warned:?}");
    }
    assert_eq!(warned.len(), 5, "{warned:?}");
}

#[test]
fn parameters_and_requirements_are_read_from_metadata_in_each_form() {
    let config = tempfile::tempdir().unwrap();
    let with = |name: &str, metadata: &str| {
        put(
            config.path(),
            name,
            &format!(
                "---\nname: {name}\ndescription: x\nallowed-tools: read_file, terminal(git log *) search\nmetadata:\n{metadata}\n---\nDo it.\n"
            ),
        );
    };
    with("text", "  params: branch, since=last week\n  requires: list map");
    with("list", "  params: [branch, since=last week]\n  requires: []");
    with("map", "  params: { branch: which, 'since=last week': from }");
    let (all, wrong) = Skills::load(&of(config.path()));
    assert_eq!(wrong, []);
    for skill in all.iter() {
        let params: Vec<_> = skill.params.iter().map(|p| (p.name.as_str(), p.default.as_deref())).collect();
        assert_eq!(params, [("branch", None), ("since", Some("last week"))], "{}", skill.name);
        assert_eq!(skill.allowed_tools, ["read_file", "terminal(git log *)", "search"]);
    }
    let order = |name: &str| {
        let all = all.with_required(name).unwrap();
        all.iter().map(|s| s.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(order("text"), ["list", "map", "text"]);
    assert_eq!(order("map"), ["map"]);
}

#[test]
fn a_cycle_of_requirements_is_refused_with_its_path_and_others_stay() {
    let config = tempfile::tempdir().unwrap();
    for (name, requires) in
        [("a", "b"), ("b", "c"), ("c", "b"), ("self", "self"), ("gone", "nothing"), ("fine", "leaf")]
    {
        put(config.path(), name, &requiring(name, requires));
    }
    put(config.path(), "leaf", &file("leaf", "x", "Do it."));
    let (all, wrong) = Skills::load(&of(config.path()));
    assert_eq!(names(&all), ["fine", "leaf"]);
    let said = said(config.path(), &wrong).join("\n");
    for part in ["in a cycle: a -> b -> c -> b", "in a cycle: self -> self", "not in use: gone -> nothing"] {
        assert!(said.contains(part) || said.contains(&part.replace("a -> ", "")), "{part}: {said}");
    }
}

#[test]
fn chains_and_crowds_of_requirements_are_bounded() {
    let config = tempfile::tempdir().unwrap();
    for n in 0..12 {
        put(config.path(), &format!("c{n:02}"), &requiring(&format!("c{n:02}"), &format!("c{:02}", n + 1)));
    }
    put(config.path(), "c12", &file("c12", "x", "Do it."));
    let crowd: Vec<String> = (0..20).map(|n| format!("l{n:02}")).collect();
    for name in &crowd {
        put(config.path(), name, &file(name, "x", "Do it."));
    }
    put(config.path(), "many", &requiring("many", &crowd.join(" ")));
    let (all, wrong) = Skills::load(&of(config.path()));
    let said = said(config.path(), &wrong).join("\n");
    assert!(all.get("many").is_none() && said.contains("too many skills (at most 16"), "{said}");
    assert!(all.get("c00").is_none() && all.with_required("c08").unwrap().len() == 5, "{said}");
}

#[test]
fn hostile_files_are_bounded_and_links_lead_nowhere() {
    let config = tempfile::tempdir().unwrap();
    let secret = config.path().join("secret");
    fs::write(&secret, "key").unwrap();
    put(config.path(), "links", &file("links", "x", "Do it."));
    let links = config.path().join("skills/links");
    std::os::unix::fs::symlink(&secret, links.join("out.txt")).unwrap();
    std::os::unix::fs::symlink(config.path(), links.join("up")).unwrap();
    fs::create_dir(config.path().join("skills/linked")).unwrap();
    std::os::unix::fs::symlink(&secret, config.path().join("skills/linked/SKILL.md")).unwrap();
    // Sparse: 100 MB that take no room.
    put(config.path(), "huge", "");
    fs::OpenOptions::new()
        .write(true)
        .open(config.path().join("skills/huge/SKILL.md"))
        .unwrap()
        .set_len(100 << 20)
        .unwrap();
    fs::File::create(links.join("huge.bin")).unwrap().set_len(100 << 20).unwrap();
    let mut bomb = String::from("---\nname: bomb\ndescription: x\na: &a [x,x,x,x,x,x,x,x,x]\n");
    for (now, before) in "bcdefghijk".chars().zip("abcdefghij".chars()) {
        bomb.push_str(&format!("{now}: &{now} [{}]\n", vec![format!("*{before}"); 9].join(",")));
    }
    bomb.push_str("---\nDo it.\n");
    put(config.path(), "bomb", &bomb);
    put(
        config.path(),
        "deep",
        &format!("---\nname: deep\ndescription: x\na: {}\n---\nDo it.\n", "[".repeat(50_000)),
    );
    put(config.path(), "nul", "---\nname: nul\ndescription: x\n---\n\u{0}\u{202e}\u{1b}[2J");

    let began = std::time::Instant::now();
    let (all, wrong) = Skills::load(&of(config.path()));
    // Without bounds it would take years; a loaded machine takes a minute.
    assert!(began.elapsed().as_secs() < 600, "{:?}", began.elapsed());
    assert_eq!(names(&all), ["links", "nul"], "{wrong:?}");
    assert_eq!(wrong.len(), 4, "{wrong:?}");
    assert!(!all.get("nul").unwrap().body.contains('\u{202e}'), "what cannot be seen is left out");
    assert!(warnings(config.path(), &all)[0].contains("characters that cannot be seen"));
    let skill = all.get("links").unwrap();
    assert_eq!(
        skill.files.list().iter().map(|f| f.path.as_str()).collect::<Vec<_>>(),
        ["SKILL.md", "huge.bin"]
    );
    for (path, why) in [
        ("out.txt", "is a link"),
        ("up/secret", "is a link"),
        ("../../secret", "not a path below"),
        ("/etc/passwd", "not a path below"),
        ("./SKILL.md", "not a path below"),
        ("", "not a path below"),
        ("huge.bin", "is larger than"),
        ("none.md", "has no file `none.md`; it has SKILL.md"),
    ] {
        let said = skill.files.read(path).unwrap_err();
        assert!(said.contains(why), "{path}: {said}");
    }
}

#[test]
fn a_skill_that_is_turned_off_says_so() {
    let config = tempfile::tempdir().unwrap();
    put(config.path(), "notes", &file("notes", "x", "Do it."));
    let disabled = BTreeSet::from(["notes".to_owned()]);
    let all = Skills::load(&Sources { disabled, ..of(config.path()) }).0;
    assert_eq!((names(&all).len(), all.disabled().count()), (0, 1));
    assert_eq!(all.no_such("notes"), "the skill `notes` is turned off in the settings");
}

#[test]
fn of_a_name_that_is_none_the_nearest_is_told() {
    let config = tempfile::tempdir().unwrap();
    let none = Skills::load(&of(config.path())).0;
    assert!(none.no_such("x").ends_with("put the knowledge into context"));
    put(config.path(), "rust-style", &file("rust-style", "Mine", "Be brief."));
    let one = Skills::load(&of(config.path())).0;
    assert_eq!(one.no_such("rust-stile"), "there is no skill `rust-stile`; did you mean `rust-style`?");
    assert_eq!(one.no_such("cobol"), "there is no skill `cobol`; available: rust-style");
}

/// Each skill that ships is valid in the strict form, is loaded without a warning, and costs the index little.
#[test]
fn every_built_in_skill_is_valid() {
    let (all, wrong) = Skills::load(&Sources { built_in: true, ..Sources::default() });
    assert_eq!((wrong.as_slice(), all.flaws()), (&[][..], &[][..]));
    for (folder, files) in built_in_folders() {
        let bytes = files.iter().find(|(path, _)| *path == "SKILL.md").unwrap().1;
        assert_eq!(crate::validate_bytes(&Path::new(folder).join("SKILL.md"), bytes), []);
        let skill = all.get(folder).unwrap();
        assert!(skill.description.chars().count() <= 110, "{folder}: {}", skill.description);
    }
}

#[test]
fn the_strict_form_names_each_mistake() {
    let config = tempfile::tempdir().unwrap();
    put(
        config.path(),
        "a",
        "---\nname: A--b\ndescription: ''\nmodel: opus\ncompatibility: 7\nmetadata: x\n---\n",
    );
    let said =
        said(&config.path().canonicalize().unwrap(), &crate::validate(&config.path().join("skills/a")));
    let expected = [
        "a/SKILL.md:2:1: `A--b` is not a valid skill name",
        "a/SKILL.md:3:1: the description is empty or too long",
        "a/SKILL.md:4:1: unknown key `model`",
        "a/SKILL.md:5:1: `compatibility` is a number, not text",
        "a/SKILL.md:6:1: `metadata` is text, not a map",
        "a/SKILL.md:8:1: there is nothing below the front matter",
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}");
    }
    put(
        config.path(),
        "b",
        "---\nname: b\ndescription: x\nallowed-tools: read_file\nmetadata:\n  requires: a\n---\nDo it.\n",
    );
    assert_eq!(crate::validate(&config.path().join("skills/b")), []);
    assert_eq!(crate::validate(&config.path().join("skills/none")).len(), 1);
}

/// A style is answered in by name: a pack cannot take the place of one that comes with the program.
#[test]
fn a_pack_replaces_no_built_in_style_and_the_user_does() {
    let (pack, config) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [pack.path(), config.path()] {
        fs::create_dir_all(folder.join("styles")).unwrap();
        fs::write(folder.join("styles/concise.md"), format!("Style of {}.\n", folder.display())).unwrap();
    }
    let sources =
        Sources { built_in: true, packs: vec![PackSource::unpinned(pack.path())], ..Sources::default() };
    let (all, problems) = Skills::load(&sources);
    assert_eq!(all.style("concise").unwrap().from, Origin::BuiltIn);
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|why| why.contains("`concise` is an output style of Tiller's")), "{told:?}");
    let (all, problems) = Skills::load(&Sources { config: Some(config.path().to_owned()), ..sources });
    assert_eq!(all.style("concise").unwrap().from, Origin::User);
    assert_eq!(problems.len(), 1, "of the pack");
}
