use std::fs;
use std::path::Path;

use super::{DefinitionContext, Definitions, Origin, Pick, ProjectFile, Tier, Tools};
use crate::problem::Problem;
use crate::testing::tools;

fn load(config: &Path, project: &[(&str, Option<&str>)]) -> (Definitions, Vec<String>) {
    let project: Vec<ProjectFile<'_>> =
        project.iter().map(|(path, text)| ProjectFile { path, bytes: text.map(str::as_bytes) }).collect();
    let (all, problems) = Definitions::load(
        config,
        &project,
        &DefinitionContext { tools: &tools(), clis: DefinitionContext::CLIS, rule: &|_| Ok(()) },
    );
    (all, problems.iter().map(Problem::to_string).collect())
}

fn text(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nDo it.\n")
}

#[test]
fn the_built_in_ones_are_right() {
    let (all, wrong) = load(Path::new(""), &[]);
    assert_eq!(wrong, Vec::<String>::new());
    let names: Vec<&str> = all.iter().map(|d| d.name.as_str()).collect();
    let right = [
        "architect",
        "assistant",
        "coder",
        "explorer",
        "janitor",
        "orchestrator",
        "repo-monitor",
        "reviewer",
        "worker",
    ];
    assert_eq!(names, right);
    for it in all.iter() {
        assert_eq!((it.from, &it.file), (Origin::BuiltIn, &None));
        // About a page: a prompt is paid for with each request.
        let length = it.prompt.len();
        assert!((200..3_000).contains(&length), "{}: {length}", it.name);
    }
    let get = |name: &str| all.get(name).unwrap();
    assert_eq!(get("assistant").tools, Tools::Default);
    assert_eq!(get("worker").pick, Pick::Tier(Tier::Fast));
    for (name, tool, granted) in [
        ("coder", "edit_file", true),
        ("coder", "delegate_task", false),
        ("orchestrator", "delegate_task", true),
        ("orchestrator", "terminal", false),
        ("explorer", "write_file", false),
        ("architect", "patch", false),
        ("reviewer", "terminal", true),
        ("reviewer", "edit_file", false),
    ] {
        assert_eq!(get(name).tools.grants(tool), Some(granted), "{name} {tool}");
    }
}

#[test]
fn the_files_are_all_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/agents");
    let mut files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let (all, _) = load(Path::new(""), &[]);
    let names: Vec<String> = all.iter().map(|d| d.name.clone()).collect();
    assert_eq!(files, names);
}

#[test]
fn the_later_layer_wins_and_a_bad_file_leaves_nothing_in_its_place() {
    let home = tempfile::tempdir().unwrap();
    let agents = home.path().join("agents");
    fs::create_dir(&agents).unwrap();
    fs::write(agents.join("coder.md"), text("mine")).unwrap();
    fs::write(agents.join("worker.md"), text("mine")).unwrap();
    fs::write(agents.join("reviewer.md"), "---\ntier: fsat\n---\n").unwrap();
    fs::write(agents.join("zed.md"), text("mine").replace("---\nd", "---\nname: coder\nd")).unwrap();
    fs::write(agents.join("notes.txt"), "no definition").unwrap();
    fs::create_dir(agents.join("folder.md")).unwrap();
    let project = [
        (".tiller/agents/coder.md", Some(text("ours"))),
        (".tiller/agents/own.md", Some(text("ours"))),
        (".tiller/agents/deep/own.md", Some(text("deeper"))),
        (".tiller/agents/readme.txt", Some("no".into())),
        (".tiller/agents/linked.md", None),
        (".tiller/agents/worker.md", Some("nothing".into())),
        (".tiller/workflows/x.md", Some(text("no agent"))),
    ];
    let project: Vec<(&str, Option<&str>)> = project.iter().map(|(p, t)| (*p, t.as_deref())).collect();
    let (all, wrong) = load(home.path(), &project);
    let of = |name: &str| all.get(name).map(|d| (d.from, d.description.clone()));
    assert_eq!(of("coder"), Some((Origin::Project, "ours".into())));
    assert_eq!(of("own"), Some((Origin::Project, "ours".into())));
    // The one that each replaces may do more.
    assert_eq!((of("worker"), of("reviewer")), (None, None));
    assert_eq!(of("architect").unwrap().0, Origin::BuiltIn);
    assert_eq!(of("linked"), None);
    let at = |name: &str| agents.join(name).display().to_string();
    let begins = [
        at("folder.md"),
        format!("{}:2:7: unknown tier `fsat` (did you mean `fast`?)", at("reviewer.md")),
        format!("{}:1:1: the description is missing", at("reviewer.md")),
        format!("{}:4:1: the prompt is missing", at("reviewer.md")),
        format!("{}:1:1: `coder` is already defined in {}", at("zed.md"), at("coder.md")),
        ".tiller/agents/linked.md: the file cannot be read: it is a link, or too large".into(),
        ".tiller/agents/worker.md:1:1: the file does not start with front matter".into(),
    ];
    assert_eq!(wrong.len(), begins.len(), "{wrong:#?}");
    for (said, begin) in wrong.iter().zip(&begins) {
        assert!(said.starts_with(begin.as_str()), "{said}");
    }
}

#[test]
fn a_folder_that_is_none_is_told() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("agents"), "a file").unwrap();
    let (all, wrong) = load(home.path(), &[]);
    assert!(all.get("coder").is_some());
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].contains("the folder cannot be read"), "{wrong:?}");
}

#[test]
fn a_name_that_is_none_gets_the_nearest() {
    let (all, _) = load(Path::new(""), &[]);
    assert_eq!(all.no_such("codr"), "there is no agent `codr`; did you mean `coder`?");
    assert!(all.no_such("xyzzy").ends_with("repo-monitor, reviewer, worker"), "{}", all.no_such("xyzzy"));
}

#[test]
fn a_bad_file_leaves_out_the_definition_that_it_replaces() {
    for bad in tiller_fs::testing::BadFile::all() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("agents")).unwrap();
        if !bad.make(&home.path().join("agents/coder.md"), &text("mine")) {
            continue;
        }
        let (all, wrong) = load(home.path(), &[]);
        assert!(all.get("coder").is_none() && all.get("worker").is_some(), "{}", bad.name);
        assert!(wrong.iter().any(|said| said.contains("coder.md")), "{}: {wrong:?}", bad.name);
    }
}
