//! Repositories in and around the workspace: never touched, never run. (W4, W5, W7, X11)

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::world::{World, agent, diff, restore, sh, tree, undo};
use crate::{Answer, Goal, Reason, SkipReason};

/// A repository with history, a branch, a stash, a staged change and a hook.
const REPOSITORY: &str = "git init -q -b trunk . && echo 1 > f && git add f && git commit -qm one && git branch other \
    && echo stashed > f && git stash -q && echo staged > f && git add f && echo worktree > f \
    && printf '#!/bin/sh\\ntouch HOOKED\\n' > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout";

#[test]
fn the_store_is_a_repository_that_git_can_read() {
    let w = World::new();
    w.put("a.txt", "one\n");
    w.put("d/b c", vec![b'x'; 100_000]);
    w.put("d/run", "#!/bin/sh\n");
    w.sh("chmod 755 d/run; ln -s a.txt link; mkdir hollow");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || w.put("a.txt", "two\n"));
    for n in 0..300 {
        w.put(&format!("many/{n}"), n.to_string());
    }
    s.snapshot().unwrap();
    let repo = w.store().join("repo");
    let git = |line: &str| sh(&repo, &format!("git --git-dir=. {line}"));
    git("fsck --full --strict --no-dangling");
    git("verify-pack objects/pack/*.idx");
    let names = git(&format!("ls-tree -r --name-only {}", first.id));
    assert_eq!(names, "a.txt\nd/b c\nd/run\nlink\n");
    assert_eq!(git(&format!("show {}:a.txt", step.after)), "two\n");
    assert!(
        git(&format!("ls-tree {}", first.id))
            .contains("040000 tree 6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321\thollow")
    );
    // Git itself must not collect it.
    let mut gc = std::process::Command::new("git");
    gc.arg("--git-dir").arg(&repo).args(["gc", "--prune=now", "-q"]);
    assert!(tiller_testkit::plain_git(&mut gc).output().is_ok());
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
    assert_eq!(s.read(first.id, Path::new("a.txt")).unwrap().unwrap(), b"one\n");
}

#[test]
fn the_persons_repository_stays_byte_for_byte() {
    let w = World::new();
    w.sh(REPOSITORY);
    let git = tree(&w.work().join(".git"));
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || {
        w.put("f", "agent");
        w.put("g/h", "agent");
    });
    let done = restore(&mut s, &first, &[step]);
    assert_eq!(w.get("f"), "worktree\n");
    undo(&mut s, &done);
    s.collect(&[], std::time::Duration::ZERO, 0).unwrap();
    s.verify().unwrap();
    drop(s);
    w.open();
    assert_eq!(tree(&w.work().join(".git")), git);
    assert!(!w.work().join("HOOKED").exists());
}

#[test]
fn five_shapes_of_nested_repositories_are_left_whole() {
    let w = World::new();
    w.sh(&format!(
        "{REPOSITORY}; git checkout -q -f trunk; \
         mkdir nested && (cd nested && {REPOSITORY}); \
         git init -q -b trunk ../lib && (cd ../lib && echo l > l && git add l && git commit -qm l); \
         git -c protocol.file.allow=always submodule add -q ../lib module; \
         git worktree add -q tree-of-root other; \
         git clone -q --bare ../lib bare.git; \
         mkdir pointer && cd pointer && git init -q --separate-git-dir ../../elsewhere . && echo p > p"
    ));
    let histories = ["work/.git", "work/nested/.git", "work/bare.git", "elsewhere", "lib"];
    let read = || histories.map(|h| tree(&w.top.join(h)));
    let pointers = || ["module/.git", "tree-of-root/.git", "pointer/.git"].map(|p| w.get(p));
    let (before, points) = (read(), pointers());
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let list: Vec<_> = first.uncovered.iter().map(|u| (u.path.to_str().unwrap(), u.reason)).collect();
    let nested = ["module", "nested", "pointer", "tree-of-root"].map(|p| (p, Reason::Repository));
    assert_eq!(list, [&[("bare.git", Reason::BareRepository)][..], &nested].concat());
    let files = ["nested/f", "module/l", "tree-of-root/f", "pointer/p"];
    let old = files.map(|f| w.get(f));
    let step = agent(&mut s, || files.into_iter().for_each(|f| w.put(f, "agent")));
    let done = restore(&mut s, &first, &[step]);
    assert_eq!((done.done.len(), files.map(|f| w.get(f))), (4, old));
    undo(&mut s, &done);
    assert_eq!((read(), pointers()), (before, points));
}

#[test]
fn going_back_before_a_repository_was_made_leaves_it() {
    let w = World::new();
    w.put("a", "0");
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || {
        w.put("a", "1");
        w.sh(&format!("mkdir -p deep/new && cd deep/new && {REPOSITORY}"));
        w.put("deep/beside", "x");
    });
    let nested = tree(&w.work().join("deep/new"));
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    let answers: BTreeMap<_, _> = plan.items.iter().map(|i| (i.diff.path.clone(), Answer::Restore)).collect();
    let done = s.restore(&plan, &answers).unwrap();
    assert_eq!(w.get("a"), "0");
    assert!(!w.work().join("deep/beside").exists());
    assert_eq!(tree(&w.work().join("deep/new")), nested);
    assert_eq!(done.left.iter().map(|l| l.why.clone()).collect::<Vec<_>>(), [SkipReason::Repository]);
}

#[test]
fn a_part_of_a_larger_repository_keeps_to_itself() {
    let mut w = World::new();
    w.sh(&format!("{REPOSITORY}; mkdir -p part sibling; echo s > sibling/canary; echo '*.tmp' > .gitignore; echo secret > .git/info/exclude"));
    w.put("part/x.tmp", "ignored from above");
    w.put("part/secret", "excluded");
    w.put("part/code", "0");
    w.limits.home = Some(w.top.clone());
    let open = || {
        crate::Shadow::open(&w.work().join("part"), &w.store(), w.limits.clone(), w.clock.clone()).unwrap()
    };
    let mut s = open();
    let first = s.snapshot().unwrap();
    assert_eq!(
        s.files(first.id).unwrap().into_iter().map(|(p, _)| p).collect::<Vec<_>>(),
        [PathBuf::from("code"), "secret".into()]
    );
    let step = agent(&mut s, || {
        w.put("part/code", "1");
        w.put("sibling/canary", "changed by somebody");
        w.put("f", "changed by somebody");
    });
    let git = tree(&w.work().join(".git"));
    restore(&mut s, &first, &[step]);
    assert_eq!(w.get("part/code"), "0");
    assert_eq!(
        (w.get("sibling/canary"), w.get("f")),
        ("changed by somebody".into(), "changed by somebody".into())
    );
    assert_eq!(tree(&w.work().join(".git")), git);
}

#[test]
fn a_workspace_that_was_deleted_whole_comes_back() {
    let w = World::new();
    w.sh(REPOSITORY);
    w.put("deep/er/file", "x");
    w.sh("chmod 600 deep/er/file; chmod 700 deep; ln -s deep/er link; mkdir hollow");
    let mut before = w.tree();
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || fs::remove_dir_all(w.work()).unwrap());
    assert_eq!(diff(&s, step.before, step.after), "-deep/er/file -f -hollow -link");
    restore(&mut s, &first, &[step]);
    before.retain(|path, _| !path.starts_with(".git"));
    assert_eq!(w.tree(), before);
}

/// Every setting of a repository that could run something when git examines it.
#[test]
fn nothing_that_a_repository_brings_is_run_or_heeded() {
    let w = World::new();
    let canary = w.top.join("canary");
    w.sh(REPOSITORY);
    let run = format!("touch \"{}\"", canary.display());
    let keys = [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.askPass",
        "core.gitProxy",
        "core.hooksPath",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "credential.helper",
        "gpg.program",
        "sequence.editor",
        "uploadpack.packObjectsHook",
        "alias.status",
        "remote.origin.uploadpack",
        "remote.origin.vcs",
        "protocol.ext.allow",
        "include.path",
        "core.excludesFile",
        "core.attributesFile",
        "core.worktree",
        "extensions.worktreeConfig",
    ];
    for key in keys {
        sh(&w.top, &format!("git config -f work/.git/config {key} '{run}'"));
    }
    sh(
        &w.top,
        "git config -f work/.git/config filter.evil.required true; rm -rf work/.git/hooks; mkdir work/.git/hooks",
    );
    for hook in [
        "pre-commit",
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
        "post-checkout",
        "pre-auto-gc",
    ] {
        let path = w.work().join(".git/hooks").join(hook);
        fs::write(&path, format!("#!/bin/sh\n{run}\n")).unwrap();
        sh(&w.top, &format!("chmod +x '{}'", path.display()));
    }
    w.put(
        ".gitattributes",
        "* filter=evil diff=evil merge=evil text eol=crlf working-tree-encoding=UTF-16\n",
    );
    // A disguised repository: git would apply its settings in that folder.
    w.put("disguise/HEAD", "ref: refs/heads/x\n");
    w.put("disguise/config", format!("[core]\n\tfsmonitor = {run}\n\tbare = true\n"));
    w.sh("mkdir -p disguise/objects disguise/refs");
    w.put("plain", "a\n");
    let git = tree(&w.work().join(".git"));
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || w.put("plain", "b\n"));
    let done = restore(&mut s, &first, &[step]);
    assert_eq!(w.get("plain"), "a\n");
    undo(&mut s, &done);
    s.collect(&[], std::time::Duration::ZERO, u64::MAX).unwrap();
    assert!(!canary.exists());
    assert_eq!(tree(&w.work().join(".git")), git);
    assert_eq!(first.uncovered(Path::new("disguise")), Some(Reason::BareRepository));
}

#[test]
fn links_in_the_way_lead_nowhere() {
    let w = World::new();
    let outside = w.top.join("outside");
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(outside.join("file"), "canary").unwrap();
    fs::write(outside.join("sub/file"), "canary").unwrap();
    w.put("dir/file", "0");
    w.put("dir/sub/file", "0");
    w.put("leaf", "0");
    let canaries = tree(&outside);
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || {
        w.put("dir/file", "1");
        w.put("dir/sub/file", "1");
        w.put("leaf", "1");
    });
    // Folders and a file become links to the outside, before and after the plan.
    w.sh("rm -r dir/sub leaf; ln -s ../../outside/sub dir/sub; ln -s ../outside/file leaf");
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    w.sh("rm -r dir; ln -s ../outside dir");
    let answers: BTreeMap<_, _> = plan.items.iter().map(|i| (i.diff.path.clone(), Answer::Restore)).collect();
    s.restore(&plan, &answers).unwrap();
    assert_eq!(tree(&outside), canaries);
    // A snapshot of named paths does not follow them either.
    let quick = s.snapshot_touched(&["dir/file", "dir/sub/file"]).unwrap();
    let names: Vec<_> = s.files(quick.id).unwrap().into_iter().map(|(p, _)| p).collect();
    assert_eq!(names, [PathBuf::from("dir"), "leaf".into()]);
}
