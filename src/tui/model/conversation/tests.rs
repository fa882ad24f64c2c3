use serde_json::json;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::tool::Display;
use tiller_protocol::{Block, NoticeKind, Part, StopReason, ToolCall, ToolOutcome, Usage};

use super::script::{Script, call, text};
use super::*;

fn turn(s: &mut Script, c: &mut Conversation, e: TurnEvent) {
    let e = s.event(EventBody::Turn(e));
    c.apply(&e);
}

fn kinds(c: &Conversation) -> Vec<&'static str> {
    c.cells()
        .iter()
        .map(|c| match &c.body {
            Body::User { .. } => "user",
            Body::Reply { .. } => "reply",
            Body::Thinking { .. } => "thinking",
            Body::Tool(t) => match t.state {
                ToolState::Begun => "tool-begun",
                ToolState::Waiting => "tool-waiting",
                ToolState::Running => "tool-running",
                ToolState::Done(_) => "tool",
                ToolState::Lost => "tool-lost",
            },
            Body::Demo => "demo",
            Body::End(_) => "end",
            Body::Notice(_) => "notice",
            Body::Finished(_) => "finished",
            _ => "other",
        })
        .collect()
}

#[test]
fn a_streamed_reply_keeps_its_key_when_its_entry_comes() {
    let (mut s, mut c) = (Script::new(), Conversation::default());
    let user = s.user("hi");
    turn(&mut s, &mut c, TurnEvent::TurnStarted {});
    turn(&mut s, &mut c, TurnEvent::UserMessage { entry: user.id, text: "hi".into(), node: Box::new(user) });
    turn(&mut s, &mut c, TurnEvent::ThinkingDelta { text: "hm".into() });
    turn(&mut s, &mut c, TurnEvent::ThinkingDelta { text: "m".into() });
    for part in ["I ", "look"] {
        turn(&mut s, &mut c, TurnEvent::TextDelta { text: part.into() });
    }
    turn(&mut s, &mut c, TurnEvent::ToolCallBegun { name: "read_file".into() });
    assert_eq!(kinds(&c), ["user", "thinking", "reply", "tool-begun"]);
    let keys: Vec<u64> = c.cells().iter().map(|c| c.key).collect();
    let rev = c.cells()[2].rev;
    let thought = Block::Thinking { text: "hmm".into(), signature: None };
    let node = s.assistant(vec![thought, text("I look"), call("c1")], StopReason::ToolUse);
    turn(
        &mut s,
        &mut c,
        TurnEvent::AssistantMessage { entry: node.id, text: String::new(), node: Box::new(node) },
    );
    assert_eq!(kinds(&c), ["user", "thinking", "reply", "tool-waiting"]);
    assert_eq!(c.cells().iter().map(|c| c.key).collect::<Vec<_>>(), keys);
    assert_eq!(c.cells()[2].rev, rev, "the same text needs no new layout");
    assert!(matches!(&c.cells()[1].body, Body::Thinking { seconds: Some(s), .. } if *s > 0.0));
    assert!(c.cells().iter().all(|c| !c.open));
}

#[test]
fn tools_run_by_call_id_and_finish() {
    let (mut s, mut c) = (Script::new(), Conversation::default());
    let node = s.assistant(vec![call("a"), call("b")], StopReason::ToolUse);
    turn(
        &mut s,
        &mut c,
        TurnEvent::AssistantMessage { entry: node.id, text: String::new(), node: Box::new(node) },
    );
    for id in ["b", "a"] {
        let started = ToolEvent::ToolStarted {
            call_id: id.into(),
            name: "read_file".into(),
            arguments: json!({}),
            verb: "read".into(),
            target: "src/a.rs".into(),
        };
        let e = s.event(EventBody::Tool(started));
        c.apply(&e);
        let e = s.event(EventBody::Tool(ToolEvent::ToolProgress { call_id: id.into(), text: "x\n".into() }));
        c.apply(&e);
    }
    assert_eq!(kinds(&c), ["tool-running", "tool-running"]);
    let node = s.result("b", "done");
    let e = s.event(EventBody::Tool(ToolEvent::ToolFinished {
        call_id: "b".into(),
        name: "read_file".into(),
        arguments: json!({}),
        ok: true,
        outcome: ToolOutcome::Ok,
        output: "done".into(),
        seconds: 0.5,
        display: Some(Display::Measure { text: "3 lines".into() }),
        node: Box::new(node),
    }));
    c.apply(&e);
    assert_eq!(kinds(&c), ["tool-running", "tool"]);
    assert_eq!(c.tool("b").unwrap().output.text(), "done");
}

/// `memory` runs when it asks, and its question does not name the call.
#[test]
fn a_running_call_that_asks_needs_the_user() {
    let (mut s, mut c) = (Script::new(), Conversation::default());
    let Block::ToolCall(mut second) = call("b") else { panic!("no call") };
    second.name = "terminal".into();
    let node = s.assistant(vec![call("a"), Block::ToolCall(second)], StopReason::ToolUse);
    turn(
        &mut s,
        &mut c,
        TurnEvent::AssistantMessage { entry: node.id, text: String::new(), node: Box::new(node) },
    );
    for (id, name) in [("a", "read_file"), ("b", "terminal")] {
        let started = ToolEvent::ToolStarted {
            call_id: id.into(),
            name: name.into(),
            arguments: json!({}),
            verb: "run".into(),
            target: "x".into(),
        };
        let e = s.event(EventBody::Tool(started));
        c.apply(&e);
    }
    let ask = crate::scene::question(1);
    let id = ask.id;
    let asking = |c: &Conversation| ["a", "b"].map(|id| c.tool(id).unwrap().asked.is_some());
    let e = s.event(EventBody::Ask(AskEvent::PermissionAsked { ask }));
    c.apply(&e);
    // The same question again, as after a new connection, is about the same call.
    c.apply(&e);
    assert_eq!(asking(&c), [false, true]);
    let e = s.event(EventBody::Ask(AskEvent::PermissionDecided {
        id: Some(id),
        tool: "terminal".into(),
        what: "x".into(),
        decision: tiller_protocol::PermissionOutcome::Once,
        by: "person".into(),
        allow: None,
        change: false,
    }));
    // A minute went by: the time in which the call waited is none in which it ran.
    let before = c.tool("b").unwrap().started.unwrap();
    let mut e = e;
    e.time = tiller_protocol::Time(c.tool("b").unwrap().asked.unwrap().millis() + 60_000);
    c.apply(&e);
    assert_eq!(asking(&c), [false, false]);
    let after = c.tool("b").unwrap().started.unwrap();
    assert_eq!(after.millis() - before.millis(), 60_000);
    let silent = c.tool("b").unwrap().heard.unwrap();
    assert!(silent >= after, "nor was it silent then");
}

#[test]
fn a_discarded_try_leaves_nothing() {
    let (mut s, mut c) = (Script::new(), Conversation::default());
    turn(&mut s, &mut c, TurnEvent::TextDelta { text: "half".into() });
    let retry = TurnEvent::Retrying { attempt: 1, of: 5, seconds: 1.0, why: "503".into(), discard: true };
    turn(&mut s, &mut c, retry);
    assert!(c.cells().is_empty());
    turn(&mut s, &mut c, TurnEvent::TextDelta { text: "half".into() });
    let kept = TurnEvent::Retrying { attempt: 1, of: 5, seconds: 1.0, why: "503".into(), discard: false };
    turn(&mut s, &mut c, kept);
    assert_eq!(kinds(&c), ["reply"]);
}

#[test]
fn interrupted_and_failed_turns_say_so() {
    let (mut s, mut c) = (Script::new(), Conversation::default());
    turn(&mut s, &mut c, TurnEvent::TextDelta { text: "par".into() });
    let node = s.assistant(vec![text("par")], StopReason::Interrupted);
    turn(
        &mut s,
        &mut c,
        TurnEvent::AssistantMessage { entry: node.id, text: String::new(), node: Box::new(node) },
    );
    let error = Some(Notice::new(NoticeKind::Network, "the network is gone"));
    turn(
        &mut s,
        &mut c,
        TurnEvent::TurnFinished {
            status: TurnStatus::Failed,
            text: String::new(),
            usage: Usage::default(),
            cost_usd: None,
            error,
        },
    );
    assert_eq!(kinds(&c), ["reply", "end", "notice"]);
}

#[test]
fn a_snapshot_rebuilds_and_keeps_keys() {
    let (mut s, mut c) = (Script::new(), Conversation::default());
    s.model = ModelRef("demo/tour".into());
    let entries = vec![
        s.user("one"),
        s.assistant(vec![text("a"), call("x")], StopReason::ToolUse),
        s.result("x", "out"),
    ];
    let e = s.snapshot(entries.clone(), 7, false);
    c.apply(&e);
    assert_eq!(kinds(&c), ["user", "demo", "reply", "tool", "finished"]);
    let keys: Vec<u64> = c.cells().iter().filter(|c| c.entry.is_some()).map(|c| c.key).collect();
    let revs: Vec<u32> = c.cells().iter().map(|c| c.rev).collect();
    c.apply(&e);
    let again: Vec<u64> = c.cells().iter().filter(|c| c.entry.is_some()).map(|c| c.key).collect();
    assert_eq!(again, keys);
    assert_eq!(c.cells().iter().map(|c| c.rev).collect::<Vec<_>>(), revs);
    assert_eq!(c.earlier(), 7);
    assert_eq!(c.page_before(), Some(entries[0].id));
}

/// The figures of the snapshots replace what calls reported, when they come, and in a conversation that is loaded later.
#[test]
fn the_end_of_a_turn_has_the_figures_of_the_snapshots() {
    use tiller_protocol::ChangeKind;
    use tiller_protocol::restore::{StepFile, TurnChanges};
    let (mut s, mut c) = (Script::new(), Conversation::default());
    let mut entries = Vec::new();
    for n in 0..2 {
        let id = format!("x{n}");
        entries.extend([
            s.user("change it"),
            s.assistant(vec![text("a"), call(&id)], StopReason::ToolUse),
            s.result(&id, "out"),
        ]);
    }
    let first = entries[0].id;
    let snapshot = s.snapshot(entries, 0, false);
    c.apply(&snapshot);
    let ends = |c: &Conversation| -> Vec<(usize, u64, u32, u32)> {
        let sums = c.cells().iter().filter_map(|c| match &c.body {
            Body::Finished(sum) => Some((sum.files.len(), sum.more, sum.added, sum.removed)),
            _ => None,
        });
        sums.collect()
    };
    assert_eq!(ends(&c), [(0, 0, 0, 0), (0, 0, 0, 0)]);
    let file = StepFile { lines: Some((13, 1)), ..StepFile::new("a", ChangeKind::Modified) };
    let mut changes = TurnChanges::new(first, Time(0), vec![file]);
    changes.more = 4;
    let event = s.event(EventBody::State(StateEvent::TurnChanged { changes: Box::new(changes.clone()) }));
    c.apply(&event);
    assert_eq!(ends(&c), [(1, 4, 13, 1), (0, 0, 0, 0)], "of its own turn only");
    c.apply(&snapshot);
    assert_eq!(ends(&c)[0].2, 0);
    let mut stored = snapshot;
    if let EventBody::Reply(reply) = &mut stored.body
        && let ReplyEvent::SnapshotReply { snapshot } = reply.as_mut()
    {
        snapshot.turns.push(changes);
    }
    c.apply(&stored);
    assert_eq!(ends(&c), [(1, 4, 13, 1), (0, 0, 0, 0)]);
}

#[test]
fn a_call_without_result_is_lost_when_nothing_runs() {
    let (mut s, mut c) = (Script::new(), Conversation::default());
    let entries = vec![s.user("one"), s.assistant(vec![call("x")], StopReason::ToolUse)];
    let e = s.snapshot(entries.clone(), 0, false);
    c.apply(&e);
    assert_eq!(kinds(&c), ["user", "tool-lost", "finished"]);
    let e = s.snapshot(entries, 0, true);
    c.apply(&e);
    assert_eq!(kinds(&c), ["user", "tool-waiting"]);
}

#[test]
fn pages_come_in_above_and_results_find_their_calls_across_the_edge() {
    let (mut s, mut c) = (Script::new(), Conversation::default());
    let old = vec![s.user("old"), s.assistant(vec![text("b"), call("x")], StopReason::ToolUse)];
    let new = vec![s.result("x", "out"), s.assistant(vec![text("done")], StopReason::EndTurn)];
    let e = s.snapshot(new, 2, false);
    c.apply(&e);
    assert_eq!(kinds(&c), ["tool", "reply"]);
    let page = |entries: Vec<Entry>| {
        EventBody::Reply(Box::new(ReplyEvent::PageReply { entries, earlier: 0, turns: Vec::new() }))
    };
    let stray = s.user("another branch");
    let e = s.event(page(vec![stray]));
    c.apply(&e);
    assert_eq!(c.cells().len(), 2, "a page that does not fit is not taken");
    assert!(c.page_before().is_some());
    let e = s.event(page(old.clone()));
    c.apply(&e);
    assert_eq!(kinds(&c), ["user", "reply", "tool", "reply"]);
    assert_eq!(c.tool("x").unwrap().arguments["path"], "src/a.rs");
    assert_eq!(c.page_before(), None);
    let e = s.event(page(old));
    c.apply(&e);
    assert_eq!(c.cells().len(), 4, "twice is once");
    assert!(c.cells().iter().map(|cell| cell.turn).is_sorted(), "turns are counted from above");
}

#[test]
fn p7_a_million_tiny_deltas_are_cheap_and_one_cell() {
    let reply = |deltas: usize| {
        let (mut s, mut c) = (Script::new(), Conversation::default());
        let event = s.event(EventBody::Turn(TurnEvent::TextDelta { text: "ab ".into() }));
        let begun = tiller_testkit::thread_cpu_time();
        for _ in 0..deltas {
            c.apply(&event);
        }
        let took = tiller_testkit::thread_cpu_time() - begun;
        assert_eq!(c.cells().len(), 1);
        assert!(matches!(&c.cells()[0].body, Body::Reply { text } if text.len() == 3 * deltas));
        took
    };
    // A small part of a second, also unoptimised. If each delta copied the text before it, these alone would move
    // 60 GB.
    let took = reply(200_000);
    assert!(took < std::time::Duration::from_secs(3), "{took:?} of cpu time for 200,000 deltas");
    reply(1_000_000);
    // The tail of a tool is bounded whatever comes.
    let mut tail = TextTail::default();
    for n in 0..200_000 {
        tail.push(&format!("line {n}\n"));
    }
    assert!(tail.text().len() <= 40_000 && tail.text().ends_with("line 199999\n"));
    assert_eq!(tail.dropped() + tail.text().lines().count() as u64, 200_000);
}

#[test]
fn old_cells_go_when_nobody_looks_and_their_number_is_known() {
    const ENTRIES: u64 = 20_000;
    let (mut s, mut c) = (Script::new(), Conversation::default());
    for n in 0..ENTRIES {
        let node = s.user(&format!("m{n}"));
        turn(
            &mut s,
            &mut c,
            TurnEvent::UserMessage { entry: node.id, text: String::new(), node: Box::new(node) },
        );
    }
    assert!(c.cells().len() <= KEEP + SLACK);
    assert_eq!(c.earlier() + c.cells().len() as u64, ENTRIES);
    assert!(c.page_before().is_some());
    // The window stands at the top: what is visible is not removed.
    c.reading.hold.set(c.cells().front().map(|c| c.key));
    let first = c.cells().front().map(|c| c.key);
    for n in 0..2 * SLACK {
        let node = s.user(&format!("n{n}"));
        turn(
            &mut s,
            &mut c,
            TurnEvent::UserMessage { entry: node.id, text: String::new(), node: Box::new(node) },
        );
    }
    assert_eq!(c.cells().front().map(|c| c.key), first);
}

#[test]
fn a_line_of_the_persons_is_shown_once_now_and_after_a_restart() {
    let shells = |c: &Conversation| -> Vec<(String, String, bool)> {
        c.cells()
            .iter()
            .map(|c| match &c.body {
                Body::Shell { line, output, shared, .. } => (line.clone(), output.text().to_owned(), *shared),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let (mut s, mut c) = (Script::new(), Conversation::default());
    let shared = s.node(tiller_protocol::EntryBody::User {
        message: tiller_protocol::Message::text("! ls"),
        origin: tiller_protocol::Origin::Shell,
        content: vec![tiller_protocol::Part::Text {
            text: "I ran this command myself:\n$ ls\na.txt\n".into(),
        }],
        taint: None,
        learnings: Vec::new(),
    });
    let private = s.node(tiller_protocol::EntryBody::Note { text: "!! id\nann\n".into() });
    let want = vec![("ls".into(), "a.txt\n".into(), true), ("id".into(), "ann\n".into(), false)];
    for (line, output, shared) in &want {
        let e = ToolEvent::ShellLine {
            call_id: String::new(),
            line: String::clone(line),
            output: String::clone(output),
            exit: Some(0),
            shared: *shared,
        };
        let e = s.event(EventBody::Tool(e));
        c.apply(&e);
    }
    for node in [shared.clone(), private.clone()] {
        let e = s.added(node);
        c.apply(&e);
    }
    assert_eq!(shells(&c), want);
    assert!(c.cells().iter().all(|c| c.entry.is_some() && c.entries == 1));
    let mut again = Conversation::default();
    let e = s.snapshot(vec![shared, private], 0, false);
    again.apply(&e);
    assert_eq!(shells(&again), want);
}

/// The model reads that the user denied a call; the person reads that it was them.
#[test]
fn a_denial_is_addressed_to_the_person() {
    use tiller_protocol::permission::{DENIED_BY_USER, denied_for_person};

    let said = |outcome, text: &str| {
        let mut t = ToolCell::new("c1", "terminal", &ToolCatalog::default());
        t.finish(outcome, text, 0.0, None);
        t.output.text().to_owned()
    };
    assert_eq!(said(ToolOutcome::Denied, &format!("{DENIED_BY_USER}.")), "You denied this.");
    assert_eq!(said(ToolOutcome::Denied, &format!("{DENIED_BY_USER}: not now")), "You denied this: not now");
    let rule = "Denied by the rule terminal(rm *).";
    assert_eq!(said(ToolOutcome::Denied, rule), rule);
    // A file may say the same words.
    let file = format!("{DENIED_BY_USER}.");
    assert_eq!(said(ToolOutcome::Ok, &file), file);
    assert_eq!(denied_for_person(&format!("{DENIED_BY_USER}s")), format!("{DENIED_BY_USER}s"));
}

/// The engine's additions to a result are no output of the tool, live and after a restart.
#[test]
fn additions_to_a_result_are_no_output_of_the_tool() {
    use tiller_protocol::{Addition, Additions, EntryBody, Part};

    let (mut s, mut c) = (Script::new(), Conversation::default());
    let mut node = s.result("c1", "Denied by the rule terminal(rm *).");
    if let EntryBody::ToolResult { content, added, outcome, .. } = &mut node.body {
        *outcome = ToolOutcome::Denied;
        content.insert(0, Part::Text { text: "[The user changed the command to: rm b]".into() });
        content.push(Part::Text { text: "[A rule of MEMORY.md forbids this call: Ask.]".into() });
        content
            .push(Part::Text { text: "[10 calls since the todo list was updated: review the plan.]".into() });
        *added = Additions { before: 1, after: vec![Addition::Rule("Ask.".into()), Addition::Reminder] };
    }
    let e = s.event(EventBody::Tool(ToolEvent::ToolFinished {
        call_id: "c1".into(),
        name: "terminal".into(),
        arguments: json!({}),
        ok: false,
        outcome: ToolOutcome::Denied,
        output: "all of it".into(),
        seconds: 0.0,
        // The calls of a script up to the one that was denied.
        display: Some(Display::Output { tail: "begin\n".into(), exit: None, full: None }),
        node: Box::new(node.clone()),
    }));
    c.apply(&e);
    let mut again = Conversation::default();
    let e = s.snapshot(vec![node], 0, false);
    again.apply(&e);
    for c in [&c, &again] {
        let t = c.tool("c1").unwrap();
        assert_eq!(t.output.text(), "Denied by the rule terminal(rm *).");
    }
    let t = c.tool("c1").unwrap();
    assert_eq!(learned::mark(t), "  rule");
    assert_eq!(learned::behind(t).next().as_deref(), Some("rule: Ask."));
}

/// Their results come before the message, while it waits.
#[test]
fn the_commands_of_a_message_stand_below_it_live_and_after_a_restart() {
    let (mut s, mut c) = (Script::new(), Conversation::default());
    let first = s.user("hi");
    let reply = s.assistant(vec![text("Hello.")], StopReason::EndTurn);
    let mut message = s.user("/look");
    if let EntryBody::User { content, .. } = &mut message.body {
        *content = vec![Part::Text { text: "Look.\nmore".into() }];
    }
    let id = ToolCall::id_in_message(message.id, "run", 1);
    for node in [&first, &reply] {
        let e = s.added(node.clone());
        c.apply(&e);
    }
    for e in s.tool(&id, "terminal", "run", "echo more", "more", None) {
        c.apply(&e);
    }
    assert_eq!(kinds(&c), ["user", "reply", "tool"]);
    let e = s.added(message.clone());
    c.apply(&e);
    assert_eq!(kinds(&c), ["user", "reply", "user", "tool"]);
    let sent = |c: &Conversation| match &c.cells()[2].body {
        Body::User { sent, .. } => sent.clone(),
        other => panic!("{other:?}"),
    };
    let turns = |c: &Conversation| c.cells().iter().take(4).map(|c| c.turn).collect::<Vec<_>>();
    assert_eq!((turns(&c), sent(&c).as_deref()), (vec![1, 1, 2, 2], Some("Look.\nmore")));
    assert!(matches!(&c.cells()[0].body, Body::User { sent: None, .. }), "it was sent as typed");

    let result = s.result(&id, "$ echo more\nmore");
    let e = s.snapshot(vec![first, reply, result, message], 0, false);
    c.apply(&e);
    assert_eq!(kinds(&c)[..4], ["user", "reply", "user", "tool"]);
    assert_eq!((turns(&c), sent(&c).as_deref()), (vec![1, 1, 2, 2], Some("Look.\nmore")));
}
