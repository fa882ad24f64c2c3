//! Diagrams and documents: by real renderers where they are installed, by scripts that misbehave, and without any.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::ToolError;

fn local(renderers: Renderers, name: &str) -> &'static dyn Tool {
    local_tools(renderers).into_iter().find(|tool| tool.name() == name).unwrap()
}

/// A renderer that is this shell script. It stands outside of the workspace.
fn script(b: &Bench, text: &str) -> Option<PathBuf> {
    let path = b.scratch.path().join("renderer");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(path)
}

fn dot(path: &str) -> Value {
    json!({"kind": "dot", "source": "digraph { a -> b }", "path": path})
}

#[tokio::test]
async fn mermaid_is_drawn_as_text_without_a_renderer() {
    let b = Bench::new();
    let tool = local(Renderers::default(), "render_diagram");
    let args = json!({"kind": "mermaid", "source": "graph LR; A[Start] --> B[End]", "path": "flow.txt"});
    let needs = crate::access_guarded(tool, &args, &b.cx).unwrap();
    assert!(
        matches!(needs.as_slice(), [Access::Write { inside: true, .. }]),
        "no program is started: {needs:?}"
    );
    let out = b.call(tool, args).await.unwrap();
    let drawn = std::fs::read_to_string(b.root.join("flow.txt")).unwrap();
    assert!(drawn.contains("Start") && drawn.contains("End") && drawn.contains('─'), "{drawn}");
    assert!(text_of(&out.content).contains(&drawn), "the model sees it: {out:?}");
    let Some(Display::Diff { files }) = &out.display else { panic!("{:?}", out.display) };
    assert!(files[0].diff.contains("Start"), "the person sees the lines: {files:?}");
    let garbage = json!({"kind": "mermaid", "source": "no \u{1b}[2J diagram", "path": "x.txt"});
    let said = b.say(tool, garbage).await;
    assert!(said.starts_with("error: the Mermaid source cannot be drawn: "), "{said}");
}

#[tokio::test]
async fn mermaid_draws_with_the_chromium_that_is_known() {
    let b = Bench::new();
    let args = json!({"kind": "mermaid", "source": "graph LR; A-->B", "path": "a.svg"});
    let shows = "echo \"<svg>$*\" > out.svg; cat puppeteer.json >> out.svg 2>/dev/null; exit 0";
    let renderers = Renderers { mmdc: script(&b, shows), ..Renderers::default() };
    let known = Renderers { chromium: Some("/opt/chrome/chrome".into()), ..renderers.clone() };
    b.call(local(known, "render_diagram"), args.clone()).await.unwrap();
    let told = std::fs::read_to_string(b.root.join("a.svg")).unwrap();
    assert!(
        told.contains("-p puppeteer.json") && told.contains("\"executablePath\":\"/opt/chrome/chrome\""),
        "{told}"
    );
    b.call(local(renderers, "render_diagram"), args).await.unwrap();
    let told = std::fs::read_to_string(b.root.join("a.svg")).unwrap();
    assert!(!told.contains("puppeteer"), "{told}");
}

#[tokio::test]
async fn without_a_renderer_the_error_says_what_to_install() {
    let b = Bench::new();
    b.file("a.md", "# A");
    let tool = local(Renderers::default(), "render_diagram");
    let said = b.say(tool, dot("a.svg")).await;
    assert!(
        said.starts_with("error: Graphviz is not installed here: ") && said.contains("apt install graphviz"),
        "{said}"
    );
    let mermaid = json!({"kind": "mermaid", "source": "graph LR; A-->B", "path": "a.svg"});
    let said = b.say(tool, mermaid).await;
    assert!(said.contains("npm install -g @mermaid-js/mermaid-cli") && said.contains(".txt"), "{said}");
    assert!(b.say(tool, dot("a.txt")).await.contains("only Mermaid is drawn as .txt"));
    assert!(b.say(tool, dot("a.pdf")).await.contains("must end with .svg"));
    let document = |path: &str| json!({"source": "a.md", "path": path});
    let tool = local(Renderers::default(), "make_document");
    assert!(b.say(tool, document("a.pdf")).await.starts_with("error: pandoc is not installed here: "));
    let renderers = Renderers { pandoc: Some("/bin/false".into()), ..Renderers::default() };
    let said = b.say(local(renderers, "make_document"), document("a.pdf")).await;
    assert!(said.contains("needs a second program for PDF") && said.contains("typst"), "{said}");
    assert!(b.say(tool, document("a.exe")).await.contains("must end with .pdf"));
}

#[tokio::test]
async fn where_nothing_confines_it_a_renderer_needs_the_right_to_run() {
    let b = Bench::new();
    let renderers = Renderers { dot: Some("/usr/bin/dot".into()), ..Renderers::default() };
    let needs = crate::access_guarded(local(renderers, "render_diagram"), &dot("a.svg"), &b.cx).unwrap();
    assert!(matches!(&needs[0], Access::Write { .. }), "{needs:?}");
    assert!(matches!(&needs[1], Access::Run { command, .. } if command == "/usr/bin/dot"), "{needs:?}");
}

#[tokio::test]
async fn a_renderer_that_fails_or_lies_writes_nothing() {
    for (text, want) in [
        (
            "echo \"$PWD/in.dot: syntax \u{1b}[31merror in line 1\" >&2; exit 3",
            "failed (exit 3): in.dot: syntax error in line 1",
        ),
        ("exit 1", "failed (exit 1) without a message"),
        ("true", "made no file"),
        (": > out.svg", "made an empty file"),
        ("echo garbage > out.svg", "made no svg file; nothing was written"),
        ("ln -s /etc/passwd out.svg", "made no file"),
        ("mkdir out.svg", "made no file"),
        ("yes | head -c 3000000; exit 1", "failed (exit 1)"),
    ] {
        let b = Bench::new();
        let tool = local(Renderers { dot: script(&b, text), ..Renderers::default() }, "render_diagram");
        let said = b.say(tool, dot("a.svg")).await;
        assert!(said.starts_with("error: ") && said.contains(want) && said.len() < 900, "{text}: {said}");
        assert!(!b.root.join("a.svg").exists(), "{text}");
    }
}

/// Waits until nothing runs that was started with this file.
async fn gone(pid: &Path) {
    let pid = std::fs::read_to_string(pid).unwrap();
    let running = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        // Dead, and not collected yet, is gone.
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while running() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_renderer_without_end_is_ended_with_all_that_it_started() {
    let b = Bench::new();
    let pid = b.scratch.path().join("pid");
    let text = format!("sleep 1000 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; wait", pid.display());
    let slow =
        |time| local(Renderers { dot: script(&b, &text), time, ..Renderers::default() }, "render_diagram");
    let done = b.call(slow(Some(Duration::from_secs(2))), dot("a.svg")).await;
    assert!(
        matches!(&done, Err(ToolError::TimedOut(why)) if why == "renderer was ended after 2 s"),
        "{done:?}"
    );
    if pid.exists() {
        gone(&pid).await;
        std::fs::remove_file(&pid).unwrap();
    }
    // Esc.
    let running = b.call(slow(None), dot("a.svg"));
    let stop = async {
        while !pid.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        b.cx.cancel.cancel();
    };
    let (done, ()) = tokio::join!(running, stop);
    assert!(matches!(done, Err(ToolError::Interrupted(_))), "{done:?}");
    gone(&pid).await;
    assert!(!b.root.join("a.svg").exists());
}

#[tokio::test]
async fn graphviz_draws_where_it_is_installed() {
    let found = Renderers::find("/usr/local/bin:/usr/bin:/bin");
    if found.dot.is_none() {
        eprintln!("skipped: Graphviz is not installed");
        return;
    }
    let b = Bench::new();
    let tool = local(found, "render_diagram");
    b.call(tool, dot("out/a.svg")).await.unwrap();
    assert!(std::fs::read_to_string(b.root.join("out/a.svg")).unwrap().contains("<svg"));
    let out = b.call(tool, dot("out/a.png")).await.unwrap();
    assert!(matches!(&out.content[1], Part::Image { .. }), "the model and the person see it: {out:?}");
    let said = b.say(tool, json!({"kind": "dot", "source": "digraph {", "path": "b.svg"})).await;
    assert!(said.starts_with("error: dot failed (exit 1): ") && said.contains("syntax error"), "{said}");
}

#[tokio::test]
async fn pandoc_makes_documents_where_it_is_installed() {
    let found = Renderers::find("/usr/local/bin:/usr/bin:/bin");
    let Some(pandoc) = found.pandoc.clone() else {
        eprintln!("skipped: pandoc is not installed");
        return;
    };
    let b = Bench::new();
    b.file("docs/a.md", "# Title\n\nWords, and \\input{/etc/passwd}.\n");
    let tool = local(found.clone(), "make_document");
    for path in ["a.docx", "a.pptx", "a.html"] {
        let out = b.call(tool, json!({"source": "docs/a.md", "path": path})).await;
        assert!(out.is_ok(), "{}: {path}: {out:?}", pandoc.display());
    }
    assert!(std::fs::read_to_string(b.root.join("a.html")).unwrap().contains("Title"));
    // What a document names is not fetched.
    let server = Server::always(Said(200, "image/png", png()));
    b.file("docs/b.md", format!("# B\n\n![x]({}/x.png)\n", server.url));
    for path in ["b.docx", "b.html"] {
        b.say(tool, json!({"source": "docs/b.md", "path": path})).await;
    }
    assert_eq!(server.requests().len(), 0);
    if found.pdf.is_none() {
        eprintln!("skipped: nothing makes PDF files here");
        return;
    }
    b.call(tool, json!({"source": "docs/a.md", "path": "a.pdf"})).await.unwrap();
    assert!(std::fs::read(b.root.join("a.pdf")).unwrap().starts_with(b"%PDF-"));
}
