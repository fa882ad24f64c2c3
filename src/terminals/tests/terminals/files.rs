//! Files that are copied to the other side and back.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use tiller_tool::files::{EditFile, ReadFile};

impl There {
    fn remote(&self, path: &str) -> PathBuf {
        self.home.join("work").join(path)
    }

    fn at_home(&self, path: &str) -> String {
        std::fs::read_to_string(self.bench.root.join(path)).unwrap_or_else(|e| format!("error: {e}"))
    }

    fn away(&self, path: &str) -> String {
        std::fs::read_to_string(self.remote(path)).unwrap_or_else(|e| format!("error: {e}"))
    }
}

#[tokio::test]
async fn files_go_there_before_a_command_and_come_back_after_it() {
    let there = There::pod(30);
    there.bench.file("src/main.rs", "fn main() {}\n");
    there.bench.file("with blank/ü 'q' $x", "odd\n");
    there.bench.file(".gitignore", "target/\n*.log\n");
    there.bench.file("target/big", "built here");
    there.bench.file(".git/config", "[core]\n");
    program(&there.bench.root.join("run.sh"), "#!/bin/sh\necho run\n");
    assert_eq!(
        there.run("cat src/main.rs; cat with*/*; ./run.sh; ls -A").await,
        "fn main() {}\nodd\nrun\n.gitignore\nrun.sh\nsrc\nwith blank"
    );
    there.run("echo changed >>src/main.rs; mkdir -p new/deep; echo n >new/deep/f; chmod +x new/deep/f; mkdir target; echo o >target/out; rm run.sh; mkdir .git; echo evil >.git/config").await;
    assert_eq!(there.at_home("src/main.rs"), "fn main() {}\nchanged\n");
    assert_eq!(there.at_home("new/deep/f"), "n\n");
    assert!(
        std::fs::metadata(there.bench.root.join("new/deep/f")).unwrap().permissions().mode() & 0o100 != 0
    );
    assert!(!there.bench.root.join("target/out").exists() && !there.bench.root.join("run.sh").exists());
    assert_eq!(there.at_home(".git/config"), "[core]\n", "git's own files are not taken");
    // The other way, with an edit of the agent: it is there without another command.
    there.bench.say(&ReadFile, json!({"path": "src/main.rs"})).await;
    let edited =
        there.bench.say(&EditFile, json!({"path": "src/main.rs", "old": "changed", "new": "edited"})).await;
    assert!(edited.starts_with("edited"), "{edited}");
    assert_eq!(there.away("src/main.rs"), "fn main() {}\nedited\n");
    std::fs::remove_file(there.bench.root.join("new/deep/f")).unwrap();
    there.run("true").await;
    assert!(!there.remote("new/deep/f").exists());
    there.end().await;
}

#[tokio::test]
async fn a_file_that_changed_on_both_sides_is_kept_twice() {
    let there = There::pod(30);
    there.bench.file("a", "one\n");
    there.bench.file("b", "one\n");
    there.run("true").await;
    // A file here is edited while the command runs.
    let edit = async {
        until("the command runs", || there.away("a") == "there\n").await;
        there.bench.file("a", "here\n");
        std::fs::write(there.home.join("edited"), "").unwrap();
    };
    let command = "echo there >a; echo there >b; until [ -e ~/edited ]; do sleep 0.02; done";
    let (said, ()) = tokio::join!(there.run(command), edit);
    assert!(said.contains("changed here and at build") && said.ends_with(".build: a]"), "{said}");
    assert_eq!(
        (there.at_home("a"), there.at_home("a.build"), there.at_home("b")),
        ("here\n".into(), "there\n".into(), "there\n".into())
    );
    there.run("true").await;
    assert_eq!(there.away("a"), "here\n", "the version of here holds");
    // A background process there and an edit here, before the next command.
    std::fs::write(there.remote("b"), "later there\n").unwrap();
    there.bench.file("b", "later here\n");
    there.run("true").await;
    assert_eq!((there.away("b"), there.at_home("b.build")), ("later here\n".into(), "later there\n".into()));
    there.end().await;
}

#[tokio::test]
async fn protected_names_links_and_unreadable_files_are_judged_as_here() {
    let mut there = There::pod(30);
    there.change(|w| {
        w.protect(Arc::new(|p: &Path| p.ends_with("locked").then(|| "it is protected".into())))
            .forbid(Arc::new(|p: &Path| p.ends_with(".env").then(|| "a rule".into())))
    });
    let out = there.bench.scratch.path().join("outside");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("key"), "secret").unwrap();
    symlink(&out, there.bench.root.join("dir")).unwrap();
    there.bench.file("locked", "mine\n");
    there.bench.file(".env", "KEY=1\n");
    assert_eq!(there.run("ls -A").await, "locked");
    let said = there
        .run("echo x >locked; mkdir dir; echo x >dir/key; echo x >dir/new; ln -s /etc/passwd link")
        .await;
    assert!(said.contains("not taken from build") && said.contains("locked (it is protected)"), "{said}");
    assert_eq!(there.at_home("locked"), "mine\n");
    assert_eq!(std::fs::read_to_string(out.join("key")).unwrap(), "secret");
    assert!(!out.join("new").exists() && !there.bench.root.join("link").exists());
    there.end().await;
}

/// A link there does not lead what is sent out of the folder.
#[tokio::test]
async fn nothing_is_written_through_a_link_of_the_other_side() {
    let there = There::pod(30);
    there.bench.file("a", "1");
    let out = there.home.join("outside");
    std::fs::create_dir_all(&out).unwrap();
    there.run(&format!("ln -s '{}' sub", out.display())).await;
    there.bench.file("sub/x", "1");
    let said = there.run("true").await;
    assert!(said.contains("could not be written"), "{said}");
    assert!(!out.join("x").exists());
}

#[tokio::test]
async fn a_folder_with_files_of_others_is_refused_and_an_empty_one_removes_nothing_here() {
    let there = There::pod(30);
    std::fs::create_dir_all(there.remote("")).unwrap();
    std::fs::write(there.remote("theirs"), "x").unwrap();
    there.bench.file("a", "1");
    there.bench.file("b", "1");
    let said = there.run("true").await;
    assert!(said.contains("has files that do not come from here"), "{said}");
    assert!(there.remote("theirs").exists() && !there.remote("a").exists());
    std::fs::remove_file(there.remote("theirs")).unwrap();
    there.run("true").await;
    assert_eq!(there.away("a"), "1");
    let said = there.run("rm -f a b").await;
    assert!(said.contains("all files are gone there; nothing was removed here"), "{said}");
    assert_eq!(there.at_home("a"), "1");
    for n in 0..120 {
        there.bench.file(&format!("many/{n}"), "x");
    }
    there.run("true").await;
    let said = there.run("rm -rf many").await;
    assert!(said.contains("Nothing was removed"), "{said}");
    assert_eq!(there.at_home("many/7"), "x");
    there.end().await;
}

/// What both sides were like is known over a restart: nothing is sent again, nothing is lost.
#[tokio::test]
async fn a_restart_finds_what_changed_meanwhile() {
    let there = There::pod(30);
    there.bench.file("a", "1\n");
    there.bench.file("b", "1\n");
    there.run("true").await;
    std::fs::write(there.remote("a"), "changed there\n").unwrap();
    there.bench.file("b", "changed here\n");
    let scratch = there.bench.scratch.path().to_owned();
    let setting = Setting {
        kind: TerminalKind::Kubernetes,
        pod: Some("builder-0".into()),
        folder: Some(scratch.join("there/work").display().to_string()),
        ..Setting::default()
    };
    let vars = vec![("PATH".to_owned(), format!("{}:/usr/bin:/bin", scratch.join("bin").display()))];
    let session = Session::new(BTreeMap::from([("build".to_owned(), setting)]), vars, scratch.join("state"));
    let mut again = There {
        bench: there.bench,
        place: session.find("build", &scratch.join("work").canonicalize().unwrap()).unwrap().unwrap(),
        home: there.home,
    };
    again.change(|w| w);
    assert_eq!(again.run("cat a b").await, "changed there\nchanged here");
    assert_eq!(again.at_home("a"), "changed there\n");
    again.end().await;
}

/// Git works there by setting, and nothing that it writes there comes back.
#[tokio::test]
async fn git_works_there_where_the_setting_says_so() {
    let without = There::pod(30);
    git(&without.bench.root, &["init", "-q", "-b", "main"]);
    without.bench.file("a", "1\n");
    assert!(without.run("git status --short --branch").await.contains("not a git repository"));
    without.end().await;

    let there = There::pod_with(30, |setting| setting.git = true);
    let root = there.bench.root.clone();
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["remote", "add", "origin", "https://key@example.com/x"]);
    there.bench.file("a", "1\n");
    there.bench.file(".git/hooks/post-checkout", "#!/bin/sh\ntouch hooked\n");
    assert_eq!(there.run("git status --short --branch").await, "## No commits yet on main\n?? a");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "one"]);
    assert_eq!(
        there.run("echo 2 >a; git status --short; git log --format=%s; git remote").await,
        " M a\none"
    );
    assert!(!there.remote(".git/hooks").exists(), "no hook goes there");
    // What happens to the repository there stays there, and what happens here replaces it.
    there.run("git checkout -q -b side; echo evil >>.git/config; rm .git/packed-refs; mkdir .git/hooks; echo x >.git/hooks/pre-commit").await;
    assert_eq!(git(&root, &["branch", "--show-current"]), "main");
    assert!(!there.at_home(".git/config").contains("evil"));
    assert!(!root.join(".git/hooks/pre-commit").exists());
    git(&root, &["commit", "-qam", "two"]);
    git(&root, &["checkout", "-q", "-b", "next"]);
    assert_eq!(there.run("git log --format=%s next; git branch --show-current").await, "two\none\nnext");
    git(&root, &["branch", "-q", "-D", "main"]);
    assert!(!there.run("git branch --format='%(refname:short)'").await.contains("main"));
    // A new machine gets all of it.
    there.run("cd ..").await;
    std::fs::remove_dir_all(there.remote("")).unwrap();
    assert!(there.cut() > 0, "no connection was found");
    // That the connection broke is noticed at the latest when there is something to send.
    there.bench.file("b", "1\n");
    let said = there.run("git -C work status --short --branch").await;
    assert!(said.starts_with("## next\n?? b"), "{said}");
    there.end().await;
}
