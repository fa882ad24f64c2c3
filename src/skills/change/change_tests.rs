//! Changes on a real disk: what is refused, what is kept, and what a kill leaves.

use std::cell::Cell;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tiller_config::schema::SkillApproval;
use tiller_protocol::{ManualClock, Time};

use super::super::{Act, EditorSettings, Request, Scope};
use super::*;
use crate::load::{PackSource, Skills, Sources};

thread_local! {
    /// What an exchange of two folders in one step fails with, in this thread.
    pub(super) static SWAP_FAILS: Cell<Option<Errno>> = const { Cell::new(None) };
}

/// Files and folders below a folder whose names begin with a dot: what a change that was cut off left.
fn left(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with('.') {
            all.push(entry.path());
        } else if entry.file_type().unwrap().is_dir() {
            all.extend(left(&entry.path()));
        }
    }
    all
}

fn settings(home: &Path) -> EditorSettings {
    EditorSettings {
        user: home.join("config/skills"),
        project: Some(home.join("project/.tiller/skills")),
        versions: home.join("data/skill-versions"),
        drafts: None,
        approve: SkillApproval::Ask,
        screen: Arc::new(|text| text.contains('\u{202e}').then(|| "it contains invisible characters".into())),
        clock: Arc::new(ManualClock::new(Time(1_795_000_000_000))),
        step: None,
    }
}

fn editor(home: &Path) -> Editor {
    Editor::new(settings(home))
}

fn skills(home: &Path) -> Skills {
    Skills::load(&Sources { built_in: true, config: Some(home.join("config")), ..Sources::default() }).0
}

fn text(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}\n---\n{body}\n")
}

fn request(name: &str, act: Act) -> Request {
    Request { scope: Scope::User, name: name.into(), file: None, act }
}

fn make(home: &Path, request: &Request) -> Result<String, String> {
    let editor = editor(home);
    editor.apply(&editor.plan(request, &skills(home))?, "main in session 1")
}

fn body(home: &Path, name: &str) -> Option<String> {
    skills(home).get(name).map(|s| s.body.clone())
}

#[test]
fn the_scripts_of_a_copied_skill_can_be_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let tmp = tempfile::tempdir().unwrap();
    let all = skills(tmp.path());
    editor(tmp.path()).copy_to_user(all.get("debug-by-bisection").unwrap(), "you").unwrap();
    let folder = tmp.path().join("config/skills/debug-by-bisection");
    let mode = |path: &str| std::fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("scripts/verdict.sh"), mode("SKILL.md")), (0o700, 0o600));
}

/// Of a pack's skill only what the user agreed to is copied, also when it changes while it is copied.
#[test]
fn a_packs_skill_is_copied_as_the_user_agreed_to_it() {
    let tmp = tempfile::tempdir().unwrap();
    let (home, pack) = (tmp.path(), tmp.path().join("pack"));
    let script = pack.join("skills/notes/run.sh");
    std::fs::create_dir_all(script.parent().unwrap()).unwrap();
    std::fs::write(pack.join("skills/notes/SKILL.md"), text("notes", "Do it.")).unwrap();
    std::fs::write(&script, "echo agreed").unwrap();
    let pin = |name: &str| {
        let bytes = std::fs::read(pack.join(name)).unwrap();
        (name.to_owned(), blake3::hash(&bytes).to_hex().to_string())
    };
    let agreed = std::collections::BTreeMap::from(["skills/notes/SKILL.md", "skills/notes/run.sh"].map(pin));
    let source = PackSource { agreed: Some(Arc::new(agreed)), ..PackSource::unpinned(&pack) };
    let all = Skills::load(&Sources { packs: vec![source], ..Sources::default() }).0;
    let skill = all.get("notes").unwrap();
    let copied = home.join("config/skills/notes");
    for name in ["run.sh", "new.sh"] {
        let file = script.with_file_name(name);
        std::fs::write(&file, "echo other").unwrap();
        let why = editor(home).copy_to_user(skill, "you").unwrap_err();
        assert_eq!(why, format!("`{name}` of the skill `notes` changed since you agreed to it"));
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&script, "echo agreed").unwrap();
    }
    let changed = script.clone();
    let step = Arc::new(move || std::fs::write(&changed, "echo other").unwrap());
    let late = Editor::new(EditorSettings { step: Some(step), ..settings(home) });
    let why = late.copy_to_user(skill, "you").unwrap_err();
    assert!(why.contains("its files changed while they were copied"), "{why}");
    assert!(!copied.exists() && left(&home.join("config")).is_empty());
    std::fs::write(&script, "echo agreed").unwrap();
    editor(home).copy_to_user(skill, "you").unwrap();
    assert_eq!(std::fs::read_to_string(copied.join("run.sh")).unwrap(), "echo agreed");
}

#[test]
fn a_skill_is_created_changed_and_deleted_and_each_state_comes_back() {
    let tmp = tempfile::tempdir().unwrap();
    let home = tmp.path();
    let said = make(home, &request("notes", Act::Create(text("notes", "One.\nTwo.")))).unwrap();
    assert!(said.contains("is created") && !said.contains("is kept"), "there is no version before: {said}");
    let patch = Act::Patch { old: "Two.".into(), new: "Three.".into() };
    let planned = editor(home).plan(&request("notes", patch), &skills(home)).unwrap();
    let diff = planned.diff();
    assert!(diff.starts_with("--- a/skills/notes/SKILL.md\n+++ b/skills/notes/SKILL.md\n"), "{diff}");
    assert!(diff.ends_with(" One.\n-Two.\n+Three.\n"), "{diff}");
    let said = editor(home).apply(&planned, "main in session 1").unwrap();
    assert!(said.contains("is changed") && said.contains("the version before is kept"), "{said}");
    let script =
        Request { file: Some("scripts/run.sh".into()), ..request("notes", Act::Create("echo\n".into())) };
    make(home, &script).unwrap();
    assert_eq!(body(home, "notes").unwrap(), "One.\nThree.");
    make(home, &request("notes", Act::Delete)).unwrap();
    assert_eq!(body(home, "notes"), None);

    let editor = editor(home);
    let versions = editor.versions(Scope::User, "notes");
    let told: Vec<_> = versions.iter().map(|v| (v.number, v.action.as_str(), v.existed)).collect();
    assert_eq!(told, [(4, "delete", true), (3, "create", true), (2, "patch", true), (1, "create", false)]);
    assert_eq!(editor.changed_skills(Scope::User), ["notes"]);
    let restore = |number| {
        let plan = editor.plan_restore(Scope::User, "notes", number)?;
        editor.apply(&plan, "you").map(|_| plan.diff())
    };
    let diff = restore(4).unwrap();
    assert!(diff.contains("+++ b/skills/notes/scripts/run.sh") && diff.contains("--- /dev/null"), "{diff}");
    assert_eq!(body(home, "notes").unwrap(), "One.\nThree.");
    assert_eq!(skills(home).get("notes").unwrap().files.read("scripts/run.sh").unwrap(), b"echo\n");
    assert_eq!(restore(4).unwrap_err(), "the skill `notes` is already as in version 4");
    restore(2).unwrap();
    assert_eq!(body(home, "notes").unwrap(), "One.\nTwo.");
    assert!(skills(home).get("notes").unwrap().files.read("scripts/run.sh").is_err(), "as it was then");
    // What was restored away comes back too.
    restore(editor.versions(Scope::User, "notes")[0].number).unwrap();
    assert_eq!(body(home, "notes").unwrap(), "One.\nThree.");
    restore(1).unwrap();
    assert_eq!(body(home, "notes"), None);
}

#[test]
fn a_skill_comes_back_with_all_that_it_had() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let tmp = tempfile::tempdir().unwrap();
    let home = tmp.path();
    let folder = home.join("config/skills/notes");
    let at = |path: &str| folder.join(path);
    let mode = |path: &str| std::fs::metadata(at(path)).unwrap().permissions().mode() & 0o777;
    let set_mode =
        |path: &str, mode| std::fs::set_permissions(at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    make(home, &request("notes", Act::Create(text("notes", "One.")))).unwrap();
    let script = |act| Request { file: Some("scripts/run.sh".into()), ..request("notes", act) };
    make(home, &script(Act::Create("echo\n".into()))).unwrap();
    set_mode("scripts/run.sh", 0o755);
    make(home, &script(Act::Edit("echo 2\n".into()))).unwrap();
    assert_eq!(mode("scripts/run.sh"), 0o755, "an edit keeps the mode");

    std::fs::create_dir_all(at("a/b/c/d/e/f/g/h")).unwrap();
    std::fs::write(at("a/b/c/d/e/f/g/h/deep.md"), "deep").unwrap();
    (0..250).for_each(|n| std::fs::write(at(&format!("a/{n}.md")), "x").unwrap());
    std::fs::write(at("logo.bin"), vec![7; 3 << 20]).unwrap();
    symlink("SKILL.md", at("link")).unwrap();
    let editor = editor(home);
    let whole = Tree::read(&folder).unwrap();
    let planned = editor.plan(&request("notes", Act::Delete), &skills(home)).unwrap();
    let diff = planned.diff();
    let unshown = "Changes that are not shown as text:\n  link: a link to SKILL.md -> nothing\n  logo.bin: a file of 3145728 bytes";
    assert!(diff.starts_with(unshown) && diff.contains("skills/notes/a/249.md"), "{diff}");
    std::fs::write(at("logo.bin"), vec![8; 3 << 20]).unwrap();
    assert!(editor.apply(&planned, "you").unwrap_err().contains("has changed meanwhile"));
    std::fs::write(at("logo.bin"), vec![7; 3 << 20]).unwrap();
    editor.apply(&planned, "you").unwrap();
    assert!(!folder.exists());
    let newest = || editor.versions(Scope::User, "notes")[0].number;
    let deleted = newest();
    let restore = || {
        let plan = editor.plan_restore(Scope::User, "notes", deleted)?;
        editor.apply(&plan, "you").map(|_| plan.diff())
    };
    restore().unwrap();
    assert!(Tree::read(&folder).unwrap() == whole, "all of it is back");
    assert_eq!(mode("scripts/run.sh"), 0o755);
    assert!(restore().unwrap_err().contains("is already as in version"));
    // What differs in nothing but its mode, or is no file, is put back as well.
    set_mode("scripts/run.sh", 0o600);
    std::fs::remove_file(at("link")).unwrap();
    std::fs::write(at("a/new.md"), "later").unwrap();
    let diff = restore().unwrap();
    assert!(diff.contains("  link: nothing -> a link to SKILL.md\n"), "{diff}");
    assert!(diff.contains("run.sh: a file of 7 bytes, mode 600 -> a file of 7 bytes, mode 755\n"), "{diff}");
    assert!(Tree::read(&folder).unwrap() == whole);
    // And what was restored away.
    let plan = editor.plan_restore(Scope::User, "notes", newest()).unwrap();
    editor.apply(&plan, "you").unwrap();
    assert!(mode("scripts/run.sh") == 0o600 && at("a/new.md").exists() && !at("link").exists());
}

#[test]
fn what_must_not_be_written_is_refused_with_the_reason() {
    let tmp = tempfile::tempdir().unwrap();
    let home = tmp.path();
    make(home, &request("notes", Act::Create(text("notes", "One. One.")))).unwrap();
    std::fs::create_dir_all(home.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(home.join("elsewhere"), home.join("config/skills/linked")).unwrap();
    std::os::unix::fs::symlink(home.join("elsewhere"), home.join("config/skills/notes/out")).unwrap();
    let with = |file: &str, act| Request { file: Some(file.into()), ..request("notes", act) };
    let new = || Act::Create("x".into());
    let needs = |name: &str, other: &str| {
        format!("---\nname: {name}\ndescription: x\nmetadata:\n  requires: {other}\n---\nDo it.\n")
    };
    make(home, &request("needs", Act::Create(needs("needs", "notes")))).unwrap();
    for (request, why) in [
        (request("notes", Act::Create(text("notes", "x"))), "exists already: use edit or patch"),
        (request("other", Act::Edit(text("other", "x"))), "there is no skill `other`"),
        (request("other", Act::Delete), "there is no skill `other`"),
        (request("../up", Act::Create(text("up", "x"))), "is not a skill name"),
        (request("Big", Act::Create(text("Big", "x"))), "is not a skill name"),
        (
            request("other", Act::Create("no front matter".into())),
            "SKILL.md:1: the file does not start with front matter",
        ),
        (request("other", Act::Create(text("another", "x"))), "named `another`, but its folder `other`"),
        (
            request("notes", Act::Edit(text("notes", "\u{202e}x"))),
            "the text is refused: it contains invisible",
        ),
        (request("notes", Act::Edit(text("notes", &"x".repeat(300_000)))), "is larger than 256 KiB"),
        (request("notes", Act::Edit(needs("notes", "needs"))), "in a cycle: notes -> needs -> notes"),
        (request("notes", Act::Edit(needs("notes", "nothing"))), "not in use: notes -> nothing"),
        (request("notes", Act::Patch { old: "One.".into(), new: "x".into() }), "is in the file 2 times"),
        (request("notes", Act::Patch { old: "Two.".into(), new: "x".into() }), "`old` is not in the file"),
        (request("notes", Act::Edit(text("notes", "One. One."))), "this changes nothing"),
        (request("linked", Act::Create(text("linked", "x"))), "is a link"),
        (with("../x", new()), "is not a path below"),
        (with("/etc/x", new()), "is not a path below"),
        (with("a/../../x", new()), "is not a path below"),
        (with("out/x", new()), "is a link"),
        (with("skill.MD", new()), "too like SKILL.md"),
        (with("a/b/c/d/e/f/g", new()), "is too deep"),
    ] {
        let said = make(home, &request).unwrap_err();
        assert!(said.contains(why), "{request:?}: {said}");
    }
    assert_eq!(std::fs::read_dir(home.join("elsewhere")).unwrap().count(), 0);
    // A built-in skill is never changed.
    if let Some((name, _)) = crate::built_in_folders().first() {
        for act in [Act::Delete, Act::Edit(text(name, "x"))] {
            let said = make(home, &request(name, act)).unwrap_err();
            assert!(said.contains("is built in and cannot be changed"), "{said}");
        }
    }
}

/// What was shown is what is written: a change of somebody else in between refuses it.
#[test]
fn a_change_in_between_is_never_overwritten() {
    let tmp = tempfile::tempdir().unwrap();
    let home = tmp.path();
    make(home, &request("notes", Act::Create(text("notes", "One.")))).unwrap();
    let editor = editor(home);
    let planned = editor.plan(&request("notes", Act::Edit(text("notes", "Two."))), &skills(home)).unwrap();
    std::fs::write(home.join("config/skills/notes/SKILL.md"), text("notes", "By hand.")).unwrap();
    let said = editor.apply(&planned, "x").unwrap_err();
    assert!(said.contains("has changed meanwhile"), "{said}");
    assert_eq!(body(home, "notes").unwrap(), "By hand.");
    assert_eq!(editor.versions(Scope::User, "notes").len(), 1, "no version of what was not replaced");
}

/// Two processes write at once: every change that was reported as done is there, or was replaced by a later one that is
/// kept; nothing is half.
#[test]
fn two_writers_lose_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    let home = tmp.path();
    make(home, &request("notes", Act::Create(text("notes", "start")))).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            scope.spawn(move || {
                for round in 0..40 {
                    let act = Act::Edit(text("notes", &format!("writer {writer} round {round}")));
                    loop {
                        match make(home, &request("notes", act.clone())) {
                            Ok(_) => break,
                            Err(why) => assert!(why.contains("changed meanwhile"), "{why}"),
                        }
                    }
                }
            });
        }
    });
    let editor = editor(home);
    let mut seen: Vec<String> = vec![body(home, "notes").unwrap()];
    for version in editor.versions(Scope::User, "notes").iter().filter(|v| v.existed) {
        let kept = home.join(format!("data/skill-versions/user/notes/{}/files/SKILL.md", version.number));
        let kept = std::fs::read_to_string(kept).unwrap();
        seen.push(kept.lines().last().unwrap().to_owned());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 81, "every state is there: {seen:?}");
}

const HOME: &str = "TILLER_TEST_SKILL_HOME";
const KILL_AT: &str = "TILLER_TEST_SKILL_KILL_AT";
const NO_SWAP: &str = "TILLER_TEST_SKILL_NO_SWAP";

/// The process that is killed; only [`kill_in_each_step`] starts it with a folder.
#[test]
fn writes_until_it_is_killed() {
    let (Ok(home), Ok(at)) = (std::env::var(HOME), std::env::var(KILL_AT)) else { return };
    let (home, at) = (PathBuf::from(home), at.parse::<u32>().unwrap());
    SWAP_FAILS.set(std::env::var(NO_SWAP).is_ok().then_some(Errno::INVAL));
    let steps = AtomicU32::new(0);
    let step = move || {
        if steps.fetch_add(1, Ordering::SeqCst) == at {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    };
    let editor = Editor::new(EditorSettings { step: Some(Arc::new(step)), ..settings(&home) });
    let all = skills(&home);
    let edit = Act::Edit(text("notes", "new"));
    editor.apply(&editor.plan(&request("notes", edit), &all).unwrap(), "x").unwrap();
    editor
        .apply(&editor.plan(&request("fresh", Act::Create(text("fresh", "new"))), &all).unwrap(), "x")
        .unwrap();
    editor.apply(&editor.plan_restore(Scope::User, "many", 1).unwrap(), "x").unwrap();
    editor.apply(&editor.plan(&request("gone", Act::Delete), &all).unwrap(), "x").unwrap();
}

#[test]
fn a_kill_in_any_step_leaves_old_or_new() {
    kill_in_each_step(true);
}

/// Where folders cannot be exchanged in one step, a kill between the two steps leaves no skill, and the next change puts it
/// back.
#[test]
fn a_kill_in_any_step_without_an_exchange_loses_nothing() {
    kill_in_each_step(false);
}

fn kill_in_each_step(swap: bool) {
    for at in 0..60 {
        let tmp = tempfile::tempdir().unwrap();
        let home = tmp.path();
        for name in ["notes", "gone", "many"] {
            make(home, &request(name, Act::Create(text(name, "old")))).unwrap();
        }
        // A state of two files, and one of two others, of which version 1 of `many` is none.
        let file = Request { file: Some("a.md".into()), ..request("many", Act::Create("a".into())) };
        make(home, &file).unwrap();
        std::fs::rename(
            home.join("data/skill-versions/user/many/2"),
            home.join("data/skill-versions/user/many/9"),
        )
        .unwrap();
        std::fs::remove_dir_all(home.join("data/skill-versions/user/many/1")).unwrap();
        std::fs::rename(
            home.join("data/skill-versions/user/many/9"),
            home.join("data/skill-versions/user/many/1"),
        )
        .unwrap();
        std::fs::write(home.join("config/skills/many/SKILL.md"), text("many", "middle")).unwrap();

        let mut writer = Command::new(std::env::current_exe().unwrap());
        writer.args(["--exact", "change::apply::tests::writes_until_it_is_killed", "--test-threads", "1"]);
        writer.env(HOME, home).env(KILL_AT, at.to_string());
        if !swap {
            writer.env(NO_SWAP, "1");
        }
        let status = writer.output().unwrap();
        let all = skills(home);
        assert_eq!(all.flaws(), [], "step {at}");
        let notes = body(home, "notes").unwrap();
        assert!(notes == "old" || notes == "new", "step {at}: {notes}");
        assert!(body(home, "fresh").is_none_or(|b| b == "new"), "step {at}");
        assert!(body(home, "gone").is_none_or(|b| b == "old"), "step {at}");
        let many = |all: &Skills| all.get("many").map(|many| (many.body.clone(), many.files.list().len()));
        let whole =
            |(body, files): (String, usize)| matches!((body.as_str(), files), ("middle", 2) | ("old", 1));
        assert!(many(&all).map_or(!swap, whole), "step {at}: {:?}", many(&all));
        // A file that was not put into its place is none of the skill's.
        assert_eq!(all.get("notes").unwrap().files.list().len(), 1, "step {at}");
        // Each version that is listed is whole, and what was replaced is among them.
        for name in editor(home).changed_skills(Scope::User) {
            for version in editor(home).versions(Scope::User, &name) {
                let kept =
                    home.join(format!("data/skill-versions/user/{name}/{}/files/SKILL.md", version.number));
                assert!(!version.existed || kept.is_file(), "step {at}: {version:?}");
            }
        }
        if notes == "new" {
            let newest = editor(home).versions(Scope::User, "notes")[0].number;
            assert!(editor(home).plan_restore(Scope::User, "notes", newest).is_ok(), "step {at}");
        }
        // The next change works.
        make(home, &request("after", Act::Create(text("after", "x")))).unwrap();
        make(home, &request("notes", Act::Edit(text("notes", "later")))).unwrap();
        assert_eq!(left(home), Vec::<PathBuf>::new(), "step {at}");
        assert!(many(&skills(home)).is_some_and(whole), "step {at}: {:?}", many(&skills(home)));
        if status.status.success() {
            assert!(at >= 12, "only {at} steps");
            return;
        }
    }
    panic!("it never came to its end");
}

#[test]
fn folders_are_replaced_in_two_steps_only_where_one_is_not_possible() {
    let tmp = tempfile::tempdir().unwrap();
    let home = tmp.path();
    make(home, &request("notes", Act::Create(text("notes", "One.")))).unwrap();
    make(home, &request("notes", Act::Edit(text("notes", "Two.")))).unwrap();
    let restore = |editor: &Editor, number| {
        editor.apply(&editor.plan_restore(Scope::User, "notes", number).unwrap(), "you")
    };
    // Another error is no sign that it is not possible.
    SWAP_FAILS.set(Some(Errno::ACCESS));
    assert!(restore(&editor(home), 2).unwrap_err().contains("cannot be written"));
    assert_eq!(body(home, "notes").unwrap(), "Two.");
    for errno in [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP] {
        SWAP_FAILS.set(Some(errno));
        restore(&editor(home), 2).unwrap();
        assert_eq!((body(home, "notes").unwrap().as_str(), left(home)), ("One.", vec![]));
        make(home, &request("notes", Act::Edit(text("notes", "Two.")))).unwrap();
    }
    // The second step fails: the first is taken back.
    let place = home.join("config/skills");
    let beside = move |ending: &str| place.join(format!(".notes.{}.{ending}", std::process::id()));
    let step = move || {
        if beside("old").exists() {
            std::fs::remove_dir_all(beside("new")).unwrap();
        }
    };
    let failing = Editor::new(EditorSettings { step: Some(Arc::new(step)), ..settings(home) });
    assert!(restore(&failing, 2).unwrap_err().contains("cannot be written"));
    assert_eq!(body(home, "notes").unwrap(), "Two.");
    // A process ended between the two steps.
    std::fs::rename(home.join("config/skills/notes"), home.join("config/skills/.notes.1.old")).unwrap();
    assert_eq!(body(home, "notes"), None);
    make(home, &request("other", Act::Create(text("other", "x")))).unwrap();
    assert_eq!((body(home, "notes").unwrap().as_str(), left(home)), ("Two.", vec![]));
}

/// A checkout that nobody trusts may bring links: no skill is written where they lead.
#[test]
fn a_linked_folder_of_a_project_is_refused_and_what_is_no_skill_is_not_deleted() {
    let tmp = tempfile::tempdir().unwrap();
    let (home, outside) = (tmp.path(), tmp.path().join("outside"));
    std::fs::create_dir_all(outside.join("skills/autostart")).unwrap();
    std::fs::create_dir_all(home.join("project")).unwrap();
    let of = |act| Request { scope: Scope::Project, ..request("autostart", act) };
    let new = || Act::Create(text("autostart", "x"));
    let link = home.join("project/.tiller");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    for _ in 0..2 {
        for act in [new(), Act::Delete] {
            let said = make(home, &of(act)).unwrap_err();
            assert!(said.contains("is a link"), "{said}");
        }
        assert!(std::fs::read_dir(outside.join("skills/autostart")).unwrap().next().is_none());
        // Then the folder of skills alone.
        let _ = std::fs::remove_file(&link);
        std::fs::create_dir_all(&link).unwrap();
        let _ = std::os::unix::fs::symlink(outside.join("skills"), link.join("skills"));
    }
    std::fs::remove_file(link.join("skills")).unwrap();
    std::fs::create_dir_all(link.join("skills/autostart")).unwrap();
    std::fs::write(link.join("skills/autostart/mine.txt"), "mine").unwrap();
    assert!(make(home, &of(Act::Delete)).unwrap_err().contains("there is no skill"));
    assert!(link.join("skills/autostart/mine.txt").is_file());
    make(home, &of(new())).unwrap();
    make(home, &of(Act::Delete)).unwrap();
}
