use serde_json::json;
use tiller_protocol::tool::{Display, FileDiff};
use tiller_protocol::{ChangeKind, Notice, NoticeKind, Origin, ToolOutcome};

use super::*;
use crate::model::conversation::{ReplyEnd, TextTail, ToolCell, ToolState, TurnSummary};

fn cell(body: Body) -> Cell {
    Cell { key: 1, entry: None, entries: 1, turn: 1, time: Time(37_260_000), rev: 0, open: false, body }
}

fn cx(columns: usize) -> CellCx<'static> {
    static UTC: TimeZone = TimeZone::UTC;
    CellCx {
        columns,
        measure: 100,
        ascii: true,
        unfolded: false,
        gap: false,
        last_turn: true,
        now: Time(37_272_000),
        zone: &UTC,
        keys: ["Ctrl-O", "Ctrl-X o", "Ctrl-X d"],
        folders: &[],
    }
}

/// As a person sees it: marks, gutters, text, what stands at the right.
pub(crate) fn shown(laid: &CellLayout, columns: usize) -> String {
    let mut out = String::new();
    let stack = laid.stack();
    for n in 0..stack.rows() {
        let (_, line, row) = stack.row(n).unwrap();
        let gutter = if row.is_first() { &line.first } else { &line.rest };
        let mark = laid.mark.filter(|_| n == 0).map_or(" ", |m| m.0);
        let left = laid.indent.saturating_sub(2);
        let mark = if laid.indent < 2 { String::new() } else { format!("{:left$}{mark} ", "") };
        let part = &line.text()[row.start as usize..row.end as usize];
        let mut text = format!("{mark}{}{part}", gutter.text);
        if let Some(right) = line.right.as_ref().filter(|_| row.is_first()) {
            let used = crate::text::width(&text);
            text.push_str(&" ".repeat(columns.saturating_sub(used + crate::text::width(&right.text))));
            text.push_str(&right.text);
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

fn tool(name: &str, arguments: serde_json::Value, state: ToolState) -> ToolCell {
    ToolCell {
        call_id: "c".into(),
        name: name.into(),
        info: crate::testing::tools().get(name).cloned(),
        arguments,
        state,
        seconds: 0.14,
        ..ToolCell::default()
    }
}

fn diff() -> FileDiff {
    FileDiff {
        path: "src/client.rs".into(),
        kind: ChangeKind::Modified,
        added: 2,
        removed: 1,
        diff: "--- a/src/client.rs\n+++ b/src/client.rs\n@@ -40,3 +40,4 @@ fn retry()\n     let wait = header.map(parse);\n-    sleep(wait)\n+    sleep(wait.min(limit))\n+    // a\u{202e}b\n }\n".into(),
    }
}

/// One of each, as a conversation would hold them.
fn all() -> Vec<Cell> {
    let mut read = tool(
        "read_file",
        json!({"path": "src/provider/anthropic/stream/a_rather_long_name.rs"}),
        ToolState::Done(ToolOutcome::Ok),
    );
    read.display = Some(Display::Measure { text: "412 lines".into() });
    let mut edit = tool("edit_file", json!({"path": "src/client.rs"}), ToolState::Done(ToolOutcome::Ok));
    edit.display = Some(Display::Diff { files: vec![diff()] });
    let mut shell = tool("terminal", json!({"command": "cargo test -p api"}), ToolState::Running);
    shell.started = Some(Time(37_260_000));
    shell.heard = Some(Time(37_271_000));
    shell.output =
        TextTail::of(&(0..44).map(|n| format!("test retry::case_{n} ... ok\n")).collect::<String>());
    let mut silent = shell.clone();
    silent.output = TextTail::default();
    silent.heard = Some(Time(37_234_000));
    let mut failed =
        tool("terminal", json!({"command": "make\nmake install"}), ToolState::Done(ToolOutcome::Error));
    failed.display = Some(Display::Output { tail: String::new(), exit: Some(2), full: None });
    failed.output = TextTail::of("cc: error: \x1b[31mno input\x1b[0m\nmake: *** [all] Error 2\n");
    let mut asking = tool("terminal", json!({"command": "git push origin docs"}), ToolState::Waiting);
    asking.asked = Some(tiller_protocol::Time(0));
    let denied = tool(
        "web_fetch",
        json!({"url": "https://example.org/very/long/path/to/some/page.html?with=query&and=more"}),
        ToolState::Done(ToolOutcome::Denied),
    );
    let lost = tool("search", json!({"pattern": "Retry-After"}), ToolState::Lost);
    let begun = tool("write_file", json!(null), ToolState::Begun);
    let bodies = vec![
        Body::User { text: "Make the retry logic honour Retry-After and add tests, and keep the old behaviour behind a flag.".into(), origin: Origin::Prompt, learnings: Vec::new(), sent: None },
        Body::User { text: "be quick\u{200b}".into(), origin: Origin::Steer, learnings: Vec::new(), sent: None },
        Body::User { text: "src/a.rs changed\nsrc/b.rs changed".into(), origin: Origin::Engine, learnings: Vec::new(), sent: None },
        Body::Demo,
        Body::Thinking { text: "The header may hold seconds or a date, so both forms have to be parsed and the wait capped at a limit.".into(), seconds: Some(3.2) },
        Body::Thinking { text: String::new(), seconds: None },
        Body::Reply { text: "I will look at the **client** first.\n\n```rust\nlet a = 1;\n```\n".into() },
        Body::Tool(Box::new(read)),
        Body::Tool(Box::new(edit)),
        Body::Tool(Box::new(shell)),
        Body::Tool(Box::new(silent)),
        Body::Tool(Box::new(failed)),
        Body::Tool(Box::new(asking)),
        Body::Tool(Box::new(denied)),
        Body::Tool(Box::new(lost)),
        Body::Tool(Box::new(begun)),
        Body::End(ReplyEnd::Interrupted),
        Body::End(ReplyEnd::Cut("connection reset\x07".into())),
        Body::Summary { summary: "We did this.\nThen that.".into(), focus: Some("tests".into()), tokens: Some((182_000, 9_400)) },
        Body::Checkpoint { name: "before the refactoring".into() },
        Body::Note { text: "model is now vendor/other".into() },
        Body::Shell { line: "git status".into(), output: TextTail::of("clean\n"), exit: Some(1), shared: false, run: None },
        Body::Finished(TurnSummary { seconds: 72.4, calls: 14, files: vec!["src/client.rs".into()], more: 0, added: 12, removed: 0 }),
        Body::Notice(Notice::new(NoticeKind::Network, "the connection to api.example was refused").hint("check the network, then continue with /retry")),
    ];
    bodies.into_iter().map(cell).collect()
}

fn gallery(columns: usize, unfolded: bool) -> String {
    all().iter().map(|c| shown(&lay(c, &[], &CellCx { unfolded, ..cx(columns) }, None), columns)).collect()
}

#[test]
fn every_look_at_78() {
    insta::assert_snapshot!(gallery(78, false));
}

#[test]
fn every_look_at_44() {
    insta::assert_snapshot!(gallery(44, false));
}

#[test]
fn every_look_unfolded_at_78() {
    insta::assert_snapshot!(gallery(78, true));
}

#[test]
fn every_look_in_words() {
    let text: Vec<String> = all().iter().flat_map(|c| plain::plain_lines(c, 78)).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn a_difference_side_by_side_from_140_columns_on() {
    let mut t = tool("edit_file", json!({"path": "src/client.rs"}), ToolState::Done(ToolOutcome::Ok));
    t.display = Some(Display::Diff { files: vec![diff()] });
    let laid =
        lay(&cell(Body::Tool(Box::new(t))), &[], &CellCx { unfolded: true, measure: 150, ..cx(150) }, None);
    insta::assert_snapshot!(shown(&laid, 150));
}

#[test]
fn the_output_of_a_shell_line_folds_at_twenty_lines() {
    for (lines, shown_lines) in [(1, 1), (20, 20), (21, 21), (22, 20), (300, 20)] {
        let output: String = (1..=lines).map(|n| format!("line {n}\n")).collect();
        let body = Body::Shell {
            line: "cat notes.txt".into(),
            output: TextTail::of(&output),
            exit: Some(0),
            shared: true,
            run: None,
        };
        let c = cell(body);
        let folded = shown(&lay(&c, &[], &cx(80), None), 80);
        let count =
            |text: &str| text.lines().filter(|l| l.contains("line ") && !l.contains("lines above")).count();
        assert_eq!(count(&folded), shown_lines, "{folded}");
        assert!(folded.contains(&format!("| line {lines}\n")), "the end is shown: {folded}");
        let more = lines - shown_lines;
        assert_eq!(folded.contains(&format!("+{more} lines above Ctrl-O")), more > 0, "{folded}");
        let whole = shown(&lay(&c, &[], &CellCx { unfolded: true, ..cx(80) }, None), 80);
        assert!(count(&whole) == lines && !whole.contains("above"), "{whole}");
    }
}

/// An addition of the engine to a result hides no reason: the row of a failed call says why, its mark says that there is a rule, and the
/// opened row has all of it.
#[test]
fn the_row_of_a_failed_call_says_the_reason_and_that_a_rule_concerns_it() {
    use crate::model::conversation::ResultEntry;
    use tiller_protocol::Addition;

    let behind = vec![
        (Addition::Rule("Ask before a push.".into()), "[A rule of MEMORY.md forbids this call: ...]".into()),
        (Addition::Reminder, "[10 calls since the todo list was updated: review the plan.]".into()),
    ];
    let id = tiller_protocol::EntryId::fresh(&tiller_protocol::SeqIds::default(), Time(0));
    let result = ResultEntry { id, learnings: vec![4], behind };
    for outcome in [ToolOutcome::Denied, ToolOutcome::Error] {
        let mut t = tool("edit_file", json!({"path": "src/a.rs"}), ToolState::Done(outcome));
        t.output = TextTail::of("The file changed since it was read.\n-assert!(old)\n+error: new\n");
        t.result = Some(result.clone());
        let c = cell(Body::Tool(Box::new(t)));
        let folded = shown(&lay(&c, &[], &cx(80), None), 80);
        assert!(folded.contains("rule, learning 4"), "{folded}");
        assert!(folded.contains("| The file changed since it was read."), "{folded}");
        assert!(!folded.contains("Ask before") && !folded.contains("review the plan"), "{folded}");
        let whole = shown(&lay(&c, &[], &CellCx { unfolded: true, ..cx(80) }, None), 80);
        assert!(whole.contains("+error: new") && whole.contains("| rule: Ask before a push."), "{whole}");
        assert!(whole.contains("review the plan"), "{whole}");
    }
    // A program ends with the reason.
    let mut t = tool("terminal", json!({"command": "make"}), ToolState::Done(ToolOutcome::Error));
    t.display = Some(Display::Output { tail: String::new(), exit: Some(2), full: None });
    t.output = TextTail::of("begin\nthe end\n");
    t.result = Some(result);
    let folded = shown(&lay(&cell(Body::Tool(Box::new(t))), &[], &cx(80), None), 80);
    assert!(folded.contains("| the end"), "{folded}");
}

/// A mark stands on the row of its own call.
#[test]
fn calls_with_a_mark_share_no_row() {
    use crate::model::conversation::ResultEntry;
    use tiller_protocol::Addition;

    let read = || tool("read_file", json!({"path": "src/a.rs"}), ToolState::Done(ToolOutcome::Ok));
    assert!(tool::joins(&read(), &read()));
    let id = tiller_protocol::EntryId::fresh(&tiller_protocol::SeqIds::default(), Time(0));
    let behind = vec![(Addition::Rule("Ask.".into()), "[A rule: Ask.]".into())];
    let marked = ToolCell { result: Some(ResultEntry { id, learnings: Vec::new(), behind }), ..read() };
    assert!(!tool::joins(&read(), &marked) && !tool::joins(&marked, &read()));
}

#[test]
fn nothing_is_wider_than_its_room() {
    for columns in [1, 2, 5, 10, 20, 30, 40, 60, 80, 118, 160, 220] {
        for unfolded in [false, true] {
            for c in all() {
                let laid = lay(&c, &[], &CellCx { unfolded, ..cx(columns) }, None);
                for n in 0..laid.stack().rows() {
                    let (_, line, row) = laid.stack().row(n).unwrap();
                    let text = &line.text()[row.start as usize..row.end as usize];
                    let gutter = if row.is_first() { &line.first } else { &line.rest };
                    let wide =
                        laid.indent + crate::text::width(&gutter.text) + crate::text::width(text.trim_end());
                    assert!(columns < 20 || wide <= columns, "{columns}: {text:?}");
                }
            }
        }
    }
}

#[test]
fn u1_no_look_lets_a_control_through() {
    let bad = "\x1b]0;x\x07\u{202e}\u{9b}2J\r";
    let mut t = tool(bad, json!({"x": bad}), ToolState::Done(ToolOutcome::Error));
    t.output = TextTail::of(bad);
    t.display = Some(Display::Diff {
        files: vec![FileDiff {
            path: bad.into(),
            diff: format!("@@ -1 +1 @@ {bad}\n-{bad}\n+a{bad}\n"),
            ..diff()
        }],
    });
    let bodies = [
        Body::User { text: bad.into(), origin: Origin::Prompt, learnings: Vec::new(), sent: None },
        Body::Reply { text: bad.into() },
        Body::Thinking { text: bad.into(), seconds: None },
        Body::Tool(Box::new(t)),
        Body::Summary { summary: bad.into(), focus: Some(bad.into()), tokens: Some((1, 1)) },
        Body::Checkpoint { name: bad.into() },
        Body::Note { text: bad.into() },
        Body::Shell { line: bad.into(), output: TextTail::of(bad), exit: None, shared: true, run: None },
        Body::Finished(TurnSummary {
            seconds: 72.4,
            calls: 14,
            files: vec!["src/client.rs".into()],
            more: 0,
            added: 12,
            removed: 0,
        }),
        Body::Notice(Notice::new(NoticeKind::Network, bad).hint(bad)),
        Body::End(ReplyEnd::Cut(bad.into())),
        Body::End(ReplyEnd::Refusal(bad.into())),
    ];
    for body in bodies {
        let c = cell(body);
        for unfolded in [false, true] {
            let laid = lay(&c, &[], &CellCx { unfolded, ..cx(60) }, None);
            for n in 0..laid.stack().lines() {
                let text = laid.stack().line(n).unwrap().text();
                assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
            }
        }
        for line in plain::plain_lines(&c, 60) {
            assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
    }
}

#[test]
fn the_text_that_was_sent_is_shown_when_its_message_is_unfolded() {
    let sent = Some("Look.\nthe output".into());
    let c = cell(Body::User { text: "/look".into(), origin: Origin::Prompt, learnings: Vec::new(), sent });
    assert!(folds(&c));
    let folded = shown(&lay(&c, &[], &cx(80), None), 80);
    assert!(folded.contains("/look") && folded.contains("sent text +2 Ctrl-O"), "{folded}");
    assert!(!folded.contains("the output"), "{folded}");
    let whole = shown(&lay(&c, &[], &CellCx { unfolded: true, ..cx(80) }, None), 80);
    assert!(whole.contains("/look") && whole.contains("the output"), "{whole}");
    assert!(search_text(&c).contains("the output"));
    let long = cell(Body::User {
        text: "/look".into(),
        origin: Origin::Prompt,
        learnings: Vec::new(),
        sent: Some("understand ".repeat(12)),
    });
    let whole = shown(&lay(&long, &[], &CellCx { unfolded: true, ..cx(60) }, None), 60);
    assert_eq!(whole.matches("understand").count(), 12, "no word is broken: {whole}");
}

#[test]
fn rows_name_paths_without_the_workspace() {
    let folders = ["/w/app".to_owned(), "/real/app".to_owned()];
    let unnamed = |name: &str, arguments| tool(name, arguments, ToolState::Done(ToolOutcome::Ok));
    let called = |verb: &str, target: &str| {
        let mut t = unnamed("x", json!({}));
        (t.verb, t.target) = (verb.into(), target.into());
        t
    };
    for (t, row) in [
        (called("read", "/w/app/src/a.rs:3-9"), "src/a.rs:3-9"),
        (called("write", "/real/app/a.rs"), "a.rs"),
        (called("edit", "/w/app/a b.rs"), "a b.rs"),
        (called("patch", "/w/app/a.rs and 2 more"), "a.rs and 2 more"),
        (called("list", "/w/app"), "."),
        (called("draw", "/w/app/a.svg"), "a.svg"),
        (called("search", "/w/app/x in /w/app/src"), "/w/app/x in src"),
        (called("search", "/w/app/x"), "/w/app/x"),
        // Where it is needed, the path is whole.
        (called("read", "/w/apple/a.rs"), "/w/apple/a.rs"),
        (called("read", "/w/app/../b.rs"), "/w/app/../b.rs"),
        (called("read", "/etc/hosts"), "/etc/hosts"),
        // A command stays as it is.
        (called("shell", "/w/app/run --all"), "/w/app/run --all"),
        (called("script", "/w/app/run"), "/w/app/run"),
        // After a restart.
        (unnamed("read_file", json!({"path": "/w/app/src/a.rs"})), "src/a.rs"),
        (unnamed("terminal", json!({"command": "cat /w/app/a"})), "cat /w/app/a"),
    ] {
        let c = cell(Body::Tool(Box::new(t)));
        let text = shown(&lay(&c, &[], &CellCx { folders: &folders, ..cx(78) }, None), 78);
        let words = text.lines().next().unwrap().split_once(' ').unwrap().1;
        let words: Vec<&str> = words.trim().split("  ").collect();
        assert!(words.iter().any(|w| w.trim().ends_with(row)), "{row}: {text}");
        assert_eq!(text.contains("/w/app") || text.contains("/real"), row.contains("/w/app"), "{text}");
    }
}
