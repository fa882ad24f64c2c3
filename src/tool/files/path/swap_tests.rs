//! Every reader of files among the tools, while a folder is swapped with a link to a foreign one.

use std::fmt::Debug;

use serde_json::{Value, json};
use tiller_fs::testing::swap::{FOREIGN, MINE, Swaps};
use tiller_protocol::Access;

use super::{declare, resolve};
use crate::files::{EditFile, ListDir, Patch, ReadFile, Search, WriteFile};
use crate::media::{document, vision};
use crate::testing::Bench;
use crate::{Tool, ToolCx};

/// A way to reach a file.
enum Reader {
    /// A call, as the engine makes it.
    Call(&'static dyn Tool, Value),
    /// The difference that the question about a call shows.
    Preview(&'static dyn Tool, Value),
    Vision(&'static str),
    Document(&'static str),
}

/// The readers; a new one is a row.
fn readers() -> Vec<(&'static str, Reader)> {
    let update = "*** Begin Patch\n*** Update File: d/f.txt\n-    let mine-51x2 = 1;\n+    x\n*** End Patch";
    let edit = json!({"path": "d/f.txt", "old": "    let mine-51x2 = 1;", "new": "x"});
    vec![
        ("read_file", Reader::Call(&ReadFile, json!({"path": "d/f.txt"}))),
        ("read_file, a page", Reader::Call(&ReadFile, json!({"path": "d/f.txt", "start": 2, "end": 2}))),
        ("read_file, further down", Reader::Call(&ReadFile, json!({"path": "d/sub/f.txt"}))),
        ("list_dir", Reader::Call(&ListDir, json!({"path": "d"}))),
        ("search in a folder", Reader::Call(&Search, json!({"path": "d", "pattern": "51c2|7f3a"}))),
        ("search in a file", Reader::Call(&Search, json!({"path": "d/f.txt", "pattern": "51c2|7f3a"}))),
        ("search everywhere", Reader::Call(&Search, json!({"pattern": "51c2|7f3a"}))),
        ("search of names", Reader::Call(&Search, json!({"path": "d", "glob": "*"}))),
        ("search of names everywhere", Reader::Call(&Search, json!({"glob": "**/*.txt"}))),
        ("edit_file", Reader::Call(&EditFile, edit)),
        ("patch", Reader::Call(&Patch, json!({ "patch": update }))),
        (
            "write_file",
            Reader::Call(&WriteFile, json!({"path": "d/w.txt", "content": format!("{MINE}, new\n")})),
        ),
        ("write_file, asked", Reader::Preview(&WriteFile, json!({"path": "d/f.txt", "content": "x"}))),
        ("vision_analyze", Reader::Vision("d/f.txt")),
        ("make_document", Reader::Document("d/f.txt")),
    ]
}

/// What a model or the user would see.
fn shown(result: Result<impl Debug, impl Debug>) -> String {
    match result {
        Ok(out) => format!("{out:?}"),
        Err(e) => format!("{e:?}"),
    }
}

impl Reader {
    /// Makes the call as the engine does: it is judged (only what is inside is allowed), its access is asked for again, for rules
    /// and snapshots, and it runs.
    async fn call(&self, cx: &ToolCx) -> String {
        cx.workspace.judge(&cx.call_id);
        let done = match self {
            Self::Call(tool, args) | Self::Preview(tool, args) => {
                let Ok(access) = tool.access(args, cx) else { return "refused".into() };
                let inside = |a: &Access| {
                    matches!(a, Access::Read { inside: true, .. } | Access::Write { inside: true, .. })
                };
                if !access.iter().all(inside) {
                    return "asked".into();
                }
                let _ = tool.access(args, cx);
                match self {
                    Self::Preview(..) => format!("{:?}", tool.preview(args, cx).await.diff),
                    _ => shown(tool.run(args.clone(), cx).await),
                }
            }
            Self::Vision(path) | Self::Document(path) => {
                let Some(place) = resolve(path, cx).ok().filter(|place| place.inside()) else {
                    return "asked".into();
                };
                declare(cx, &[&place]);
                let bytes = match self {
                    Self::Vision(path) => vision::read((*path).into(), cx).await.map(|(_, bytes)| bytes),
                    _ => document::source((*path).into(), cx).await.map(|(bytes, _)| bytes),
                };
                shown(bytes.map(|bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned()))
            }
        };
        cx.workspace.forget(&cx.call_id);
        done
    }
}

fn scene(b: &Bench) -> Swaps {
    let swaps = Swaps::new(b.scratch.path(), "d", &["sub/f.txt", "w.txt"]);
    let text = |word: &str| format!("fn f() {{\n    let {word} = 1;\n}}\n");
    swaps.put("f.txt", text(MINE), text(FOREIGN));
    swaps.put(&format!("{MINE}.txt"), "", "");
    swaps
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn x20_each_tool_reads_what_was_judged() {
    let rt = runtime();
    for (name, reader) in readers() {
        let mut b = Bench::new();
        let swaps = scene(&b);
        // What is changed was read before.
        for path in ["d/f.txt", "d/w.txt"] {
            rt.block_on(b.say(&ReadFile, json!({ "path": path })));
        }
        let mut n = 0;
        swaps.check(name, || {
            n += 1;
            b.cx.call_id = format!("call-{n}");
            rt.block_on(reader.call(&b.cx))
        });
        let foreign = std::fs::read_to_string(b.scratch.path().join("out/w.txt")).unwrap();
        assert_eq!(foreign.trim_end(), FOREIGN, "{name}");
    }
}

/// What was judged stays what may be opened, whatever the access of the call is when it is asked for again.
#[test]
fn x20_a_swap_after_the_judgement_is_not_declared_in_its_place() {
    let rt = runtime();
    for (name, reader) in readers() {
        let Reader::Call(tool, args) = reader else { continue };
        let b = Bench::new();
        let swaps = scene(&b);
        b.cx.workspace.judge("call-1");
        tool.access(&args, &b.cx).unwrap();
        swaps.swap();
        let _ = tool.access(&args, &b.cx);
        let text = shown(rt.block_on(tool.run(args.clone(), &b.cx)));
        assert!(!text.contains(FOREIGN), "{name}: {text}");
        // The next judgement counts.
        b.cx.workspace.judge("call-1");
        let access = tool.access(&args, &b.cx);
        if name == "read_file" {
            assert!(matches!(access.unwrap()[..], [Access::Read { inside: false, .. }]));
            assert!(
                shown(rt.block_on(tool.run(args, &b.cx))).contains(FOREIGN),
                "it was judged as what it is"
            );
        }
    }
}
