//! File tools and the `/tmp` of the session.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use serde_json::json;
use tiller_protocol::Access;

use crate::Tool;
use crate::files::{EditFile, ListDir, Patch, ReadFile, Search, WriteFile};
use crate::shell::{SessionTmp, ShownInTmp, TmpFolder};
use crate::testing::Bench;

/// A bench whose commands have a `/tmp` of their own, and a name below `/tmp` that no other test has. `mounts`: they have.
fn bench(mounts: bool) -> (Bench, TmpFolder, String) {
    let mut b = Bench::new();
    let folder = TmpFolder::default();
    let root = b.root.clone();
    let shown: ShownInTmp = Arc::new(move |_, _| mounts.then(|| vec![root.clone()]));
    let tmp = SessionTmp { folder: folder.clone(), shown };
    let workspace = crate::Workspace::new(&b.root).unwrap().tmp(Some(tmp));
    b.cx.workspace = Arc::new(workspace);
    let name = folder.path().unwrap().file_name().unwrap().to_string_lossy().replace("tiller-tmp", "test");
    (b, folder, name)
}

/// Removes a file of the machine's own `/tmp`.
struct Real(String);

impl Drop for Real {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn declared(tool: &dyn Tool, args: &serde_json::Value, b: &Bench) -> Vec<Access> {
    tool.access(args, &b.cx).unwrap()
}

#[tokio::test]
async fn each_tool_finds_what_commands_have_below_tmp() {
    for mounts in [true, false] {
        let (b, folder, name) = bench(mounts);
        let real = Real(format!("/tmp/{name}"));
        std::fs::create_dir(&real.0).unwrap();
        // Where a command would have written it.
        let own = match mounts {
            true => folder.path().unwrap().join(&name),
            false => real.0.clone().into(),
        };
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("report.txt"), "the needle\n").unwrap();
        let path = format!("{}/report.txt", real.0);
        let args = json!({"path": path});
        // Rules see the path as it is written, outside of the workspace.
        let reads = [Access::Read { path: path.clone(), inside: false }];
        assert_eq!(declared(&ReadFile, &args, &b), reads);
        assert!(b.say(&ReadFile, args.clone()).await.contains("the needle"), "mounts: {mounts}");
        let found = b.say(&Search, json!({"path": real.0, "pattern": "needle"})).await;
        assert!(found.contains(&path), "mounts: {mounts}: {found}");
        let listed = b.say(&Search, json!({"path": real.0, "glob": "*.txt"})).await;
        assert_eq!(listed.trim(), path, "mounts: {mounts}");
        let listed = b.say(&ListDir, json!({"path": real.0})).await;
        assert!(listed.contains("report.txt"), "mounts: {mounts}: {listed}");
        let edit = json!({"path": path, "old": "needle", "new": "pin"});
        let said = b.say(&EditFile, edit).await;
        assert!(said.contains("edited"), "mounts: {mounts}: {said}");
        let write = json!({"path": format!("{}/new.txt", real.0), "content": "x"});
        let writes = [Access::Write { path: format!("{}/new.txt", real.0), inside: false }];
        assert_eq!(declared(&WriteFile, &write, &b), writes);
        assert!(b.say(&WriteFile, write).await.contains("created"), "mounts: {mounts}");
        let patch = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n");
        assert!(b.say(&Patch, json!({"patch": patch})).await.contains("patched"), "mounts: {mounts}");
        assert!(own.join("new.txt").exists() && !own.join("report.txt").exists(), "mounts: {mounts}");
        assert_eq!(std::path::Path::new(&real.0).join("new.txt").exists(), !mounts);
        // The folder by its own path: the same file by the same name where it is mounted, else another file.
        let by_path = folder.path().unwrap().join(&name).join("new.txt");
        std::fs::create_dir_all(by_path.parent().unwrap()).unwrap();
        std::fs::write(&by_path, "of the session\n").unwrap();
        let named = match mounts {
            true => format!("{}/new.txt", real.0),
            false => by_path.canonicalize().unwrap().display().to_string(),
        };
        let args = json!({"path": by_path});
        assert_eq!(declared(&ReadFile, &args, &b), [Access::Read { path: named, inside: false }]);
        assert!(b.say(&ReadFile, args).await.contains("of the session"), "mounts: {mounts}");
        assert_eq!(b.cx.workspace.tmp_name(&by_path).is_some(), mounts);
        // The workspace, also one below `/tmp`, is what it was.
        b.file("in.txt", "mine\n");
        assert!(b.say(&ReadFile, json!({"path": b.root.join("in.txt")})).await.contains("mine"));
    }
}

#[tokio::test]
async fn what_the_sandbox_hides_is_said_to_be_hidden() {
    let (b, folder, name) = bench(true);
    let real = Real(format!("/tmp/{name}"));
    std::fs::create_dir(&real.0).unwrap();
    std::fs::write(format!("{}/photo.txt", real.0), "theirs\n").unwrap();
    let path = format!("{}/photo.txt", real.0);
    let calls: [(&dyn Tool, serde_json::Value); 5] = [
        (&ReadFile, json!({"path": path})),
        (&EditFile, json!({"path": path, "old": "theirs", "new": "x"})),
        (&Patch, json!({"patch": format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n")})),
        (&Search, json!({"path": path, "pattern": "theirs"})),
        (&ListDir, json!({"path": real.0})),
    ];
    for (tool, args) in calls {
        let said = b.say(tool, args).await;
        let folder = folder.path().unwrap().display().to_string();
        assert!(said.contains("The sandbox hides it") && said.contains(&folder), "{}: {said}", tool.name());
        assert!(!said.contains("theirs"), "{}: {said}", tool.name());
    }
    let said = b.say(&ReadFile, json!({"path": format!("/tmp/{name}-none")})).await;
    assert!(said.contains("does not exist") && !said.contains("hides"), "{said}");
}

/// The folders above a workspace below `/tmp` are those of the session, not the machine's own.
#[tokio::test]
async fn folders_on_the_way_to_what_is_shown_are_not_the_machines() {
    let (mut b, folder, name) = bench(true);
    let real = Real(format!("/tmp/{name}"));
    let work = std::path::Path::new(&real.0).join("a/w");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(format!("{}/a/needle.txt", real.0), "needle\n").unwrap();
    let shown: ShownInTmp = Arc::new({
        let work = work.clone();
        move |_, _| Some(vec![work.clone()])
    });
    let tmp = SessionTmp { folder: folder.clone(), shown };
    b.cx.workspace = Arc::new(crate::Workspace::new(&b.root).unwrap().tmp(Some(tmp)));
    std::fs::write(work.join("in.txt"), "mine\n").unwrap();
    assert!(b.say(&ReadFile, json!({"path": work.join("in.txt")})).await.contains("mine"));
    let above = format!("{}/a", real.0);
    for made in [false, true] {
        if made {
            std::fs::create_dir_all(folder.path().unwrap().join(&name).join("a")).unwrap();
        }
        let listed = b.say(&ListDir, json!({"path": above})).await;
        let found = b.say(&Search, json!({"path": above, "pattern": "needle"})).await;
        let named = b.say(&Search, json!({"path": above, "glob": "*"})).await;
        for said in [listed, found, named] {
            assert!(!said.contains("needle.txt"), "made {made}: {said}");
            assert!(made || said.contains("The sandbox hides it"), "{said}");
        }
    }
}

/// A script that would write below `/tmp` still searches that of the session.
#[tokio::test]
async fn a_recorded_write_does_not_lead_to_the_machines_tmp() {
    let (mut b, folder, name) = bench(true);
    let real = Real(format!("/tmp/{name}"));
    std::fs::create_dir(&real.0).unwrap();
    std::fs::write(format!("{}/theirs.txt", real.0), "needle\n").unwrap();
    let own = folder.path().unwrap().join(&name);
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("ours.txt"), "needle\n").unwrap();
    let drafts = Arc::new(crate::files::Drafts::new().unwrap());
    assert!(drafts.is_empty());
    let write = json!({"path": format!("{}/new.txt", real.0), "content": "needle\n"});
    crate::files::draft::draft("write_file", &write, Arc::clone(&drafts), &b.cx).await.unwrap();
    assert!(!drafts.is_empty());
    b.cx.run = Arc::new(crate::CommandRun::over(Some(drafts)));
    for args in [json!({"path": real.0, "pattern": "needle"}), json!({"path": real.0, "glob": "*"})] {
        let said = b.say(&Search, args).await;
        assert!(said.contains("ours.txt") && said.contains("new.txt") && !said.contains("theirs"), "{said}");
    }
    let said = b.say(&ListDir, json!({"path": real.0})).await;
    assert!(!said.contains("theirs"), "{said}");
}

/// A link in the session's folder leads where it leads for commands, and is judged there.
#[tokio::test]
async fn links_in_the_folder_are_judged_where_they_lead() {
    let (b, folder, name) = bench(true);
    let own = folder.path().unwrap().join(&name);
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("a"), "inner\n").unwrap();
    symlink("/etc/passwd", own.join("out")).unwrap();
    symlink(format!("/tmp/{name}/a"), own.join("in")).unwrap();
    let of = |leaf: &str| json!({"path": format!("/tmp/{name}/{leaf}")});
    let reads = |path: &str| vec![Access::Read { path: path.to_owned(), inside: false }];
    assert_eq!(declared(&ReadFile, &of("out"), &b), reads("/etc/passwd"));
    assert_eq!(declared(&ReadFile, &of("in"), &b), reads(&format!("/tmp/{name}/a")));
    assert!(b.say(&ReadFile, of("in")).await.contains("inner"));
    // What was judged as a file and became a link is not followed.
    declared(&ReadFile, &of("a"), &b);
    std::fs::remove_file(own.join("a")).unwrap();
    symlink("/etc/passwd", own.join("a")).unwrap();
    let args = of("a");
    let said = ReadFile.run(args, &b.cx).await;
    assert!(said.is_err(), "{said:?}");
}

/// A rule about a path below `/tmp` holds for whatever looks through the folder.
#[tokio::test]
async fn rules_hold_for_the_path_as_commands_know_it() {
    let (mut b, folder, name) = bench(true);
    let own = folder.path().unwrap().join(&name);
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("key"), "needle\n").unwrap();
    std::fs::write(own.join("other"), "needle\n").unwrap();
    let denied = format!("/tmp/{name}/key");
    let root = b.root.clone();
    let shown: ShownInTmp = Arc::new(move |_, _| Some(vec![root.clone()]));
    let workspace = crate::Workspace::new(&b.root).unwrap().tmp(Some(SessionTmp { folder, shown }));
    let rule = move |path: &std::path::Path| (path == std::path::Path::new(&denied)).then(|| "no".to_owned());
    b.cx.workspace = Arc::new(workspace.forbid(Arc::new(rule)));
    let said = b.say(&Search, json!({"path": format!("/tmp/{name}"), "pattern": "needle"})).await;
    assert!(said.contains("other") && !said.contains("key"), "{said}");
    assert!(b.cx.workspace.unreadable(&own.join("key")).is_some());
    assert!((b.cx.workspace.forbidden())(&own.join("key")).is_some());
    assert!(b.cx.workspace.readable(&std::path::Path::new("/tmp").join(&name).join("key")).is_err());
    let other = b.cx.workspace.readable(&std::path::Path::new("/tmp").join(&name).join("other"));
    assert_eq!(other, Ok(own.join("other")), "a mention finds it too");
}
