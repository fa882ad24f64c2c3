//! Every reader of files of the workspace that is no tool, while a folder is swapped with a link to a foreign one.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use tiller_fs::testing::swap::{FOREIGN, MINE, Swaps};
use tiller_protocol::{Attachment, ChangeKind, EntryId, IdSource as _, Message, SeqIds, Time};
use tiller_tool::Workspace;

use super::outside::{self, Uncovered};
use crate::context::mentions;
use crate::context::prefix::project;
use crate::prompts::comments;
use crate::prompts::finder::{self, symbols};
use crate::undo::before::{self, Reviews};

/// A reader, given the workspace and a folder of Tiller's own.
type Read = fn(&Path, &Path) -> String;

/// The readers; a new one is a row.
const READERS: &[(&str, Read)] = &[
    ("a typed mention", |root, _| attached("see @d/f.rs", Vec::new(), root)),
    ("a mention of lines", |root, _| attached("see @d/f.rs:1-2", Vec::new(), root)),
    ("a chosen file", |root, _| {
        attached("x", vec![Attachment::File { label: "l".into(), path: "d/f.rs".into(), lines: None }], root)
    }),
    ("a mention of a folder", |root, _| attached("see @d", Vec::new(), root)),
    ("the preview of a mention", |root, _| finder::mention(root, "d/f.rs".into(), false, true).preview),
    ("definitions", |root, _| {
        format!("{:?}", symbols::find(root, &[("d/f.rs".into(), false)], &AtomicBool::new(false)))
    }),
    ("comments that start turns", |root, _| {
        comments::look(root, "d/f.rs".into()).map(|found| format!("{:?}", found.comments)).unwrap_or_default()
    }),
    ("AGENTS.md", |root, _| format!("{:?}", project::instructions(&root.join("d"), None))),
    ("CLAUDE.md further down", |root, _| format!("{:?}", project::instructions(&root.join("d/sub"), None))),
    ("files before a call", |root, _| {
        let (reviews, turn) = (Mutex::new(Reviews::default()), EntryId(SeqIds::default().next(Time(0))));
        before::keep(&reviews, turn, root, &root.join("d/f.rs"));
        let kept = crate::lock::lock(&reviews).kept(turn);
        kept.values().flatten().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }),
    ("the review of a turn", |root, _| format!("{:?}", before::since(root, "d/f.rs", Some(b"old\n")))),
    ("the copy before a file is put back", |root, own| {
        let folder = own.join("saved");
        let _ = std::fs::remove_dir_all(&folder);
        match before::save_copy(&folder, root, "d/f.rs") {
            Ok(()) => texts_in(&folder),
            Err(e) => e.to_string(),
        }
    }),
    ("copies of files that no checkpoint covers", |root, own| {
        let files = vec![(root.join("d/f.rs"), Uncovered::Inside)];
        let _ = std::fs::remove_dir_all(own.join("copies"));
        match outside::keep(&own.join("copies"), files, Time(1_800_000_000_000)) {
            Ok(copies) => copies.iter().map(|file| texts_in(file.copy.parent().unwrap())).collect(),
            Err(e) => e.to_string(),
        }
    }),
];

fn attached(text: &str, attachments: Vec<Attachment>, root: &Path) -> String {
    let message = Message { attachments, ..Message::text(text) };
    let inside = root.to_owned();
    let outside = move |path: &Path| (!path.starts_with(&inside)).then(|| "deny all outside".to_owned());
    let workspace = Workspace::new(root).unwrap().forbid(std::sync::Arc::new(outside));
    format!("{:?}", mentions::freeze(&message, &workspace))
}

/// The contents of all files of a folder.
fn texts_in(folder: &Path) -> String {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    all.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect()
}

#[test]
fn x20_each_reader_of_the_engine_reads_what_was_judged() {
    for (name, read) in READERS {
        let tmp = tempfile::tempdir().unwrap();
        let own = tmp.path().canonicalize().unwrap().join("own");
        std::fs::create_dir(&own).unwrap();
        let swaps = Swaps::new(tmp.path(), "d", &["AGENTS.md", "sub/CLAUDE.md"]);
        let text =
            |word: &str| format!("pub fn {}() {{}}\n// mend {word}, tiller!\n", word.replace('-', "_"));
        let code = |word: &str| format!("// {word}\n{}", text(word));
        swaps.put("f.rs", code(MINE), code(FOREIGN));
        swaps.put(&format!("{MINE}.txt"), "", "");
        std::fs::create_dir(swaps.root().join(".git")).unwrap();
        // Names of definitions have no hyphen.
        let plain = |text: String| text.replace("mine_51c2", MINE).replace("canary_7f3a", FOREIGN);
        swaps.check(name, || plain(read(swaps.root(), &own)));
    }
}

/// A file of instructions may be a link within the repository. One that leads out is not read, whatever it leads to; nor is one
/// that leads to what a rule forbids.
#[test]
fn x20_instructions_that_are_a_link_out_of_the_repository_are_not_read() {
    use std::os::unix::fs::symlink;
    let tmp = tempfile::tempdir().unwrap();
    let top = tmp.path().canonicalize().unwrap();
    let at = |path: &str| top.join(path);
    std::fs::create_dir_all(at("repo/.git")).unwrap();
    std::fs::create_dir_all(at("repo/docs/sub")).unwrap();
    std::fs::create_dir_all(at("out")).unwrap();
    std::fs::write(at("out/key"), FOREIGN).unwrap();
    std::fs::write(at("repo/.env"), FOREIGN).unwrap();
    std::fs::write(at("repo/docs/agents.md"), MINE).unwrap();
    let rule: tiller_tool::Unreadable =
        std::sync::Arc::new(|path: &Path| path.ends_with(".env").then(|| "deny read_file(.env)".to_owned()));
    let texts = |folder: &str| -> Vec<String> {
        project::instructions(&at(folder), Some(&rule)).into_iter().map(|i| i.text).collect()
    };
    let link = |to: &Path, path: &str| {
        let _ = std::fs::remove_file(at(path));
        symlink(to, at(path)).unwrap();
    };
    for name in ["repo/AGENTS.md", "repo/CLAUDE.md"] {
        for to in [at("out/key"), "../out/key".into(), at("repo/docs/../../out/key")] {
            link(&to, name);
            let [said] = &texts("repo")[..] else { panic!("it says nothing") };
            assert!(said.contains("a link out of the repository"), "{said}");
        }
        link(Path::new(".env"), name);
        assert!(texts("repo")[0].contains("a permission rule forbids"));
        link(Path::new("docs/agents.md"), name);
        assert_eq!(texts("repo/docs/sub"), [MINE], "within the repository it is followed");
        std::fs::remove_file(at(name)).unwrap();
    }
    // A folder on the way is a link.
    link(&at("out"), "repo/linked");
    std::fs::write(at("out/AGENTS.md"), FOREIGN).unwrap();
    assert!(!texts("repo/linked").concat().contains(FOREIGN));
    // A sibling whose name begins with that of the repository is outside.
    std::fs::create_dir(at("repo-two")).unwrap();
    std::fs::write(at("repo-two/a"), FOREIGN).unwrap();
    link(&at("repo-two/a"), "repo/AGENTS.md");
    assert!(!texts("repo").concat().contains(FOREIGN));
}

/// Whatever a difference says of a file that a link stands for now, it does not call it deleted.
#[test]
fn x20_a_file_behind_a_new_link_is_neither_compared_nor_called_deleted() {
    let tmp = tempfile::tempdir().unwrap();
    let swaps = Swaps::new(tmp.path(), "d", &["f"]);
    swaps.swap();
    let since = before::since(swaps.root(), "d/f", Some(b"old\n"));
    assert!(matches!(since, before::Since::TooLarge(_)), "{since:?}");
    swaps.swap();
    std::fs::remove_file(swaps.root().join("d/f")).unwrap();
    let since = before::since(swaps.root(), "d/f", Some(b"old\n"));
    assert!(matches!(since, before::Since::Changed(diff) if diff.kind == ChangeKind::Deleted));
}
