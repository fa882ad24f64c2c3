//! Questions to the user during turns, and the effect of the answers.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tiller_protocol::command::{Query, SessionCommand, TodoCommand};
use tiller_protocol::event::{AskEvent, ReplyEvent, StateEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::{AskBody, AskReply, CommandBody, Decision, EventBody, NoticeKind, Profile, Risk};

use crate::rig::*;
use crate::scripted_model::lock;
use tiller_engine::{EngineConfig, Open};

pub(crate) fn ask_profile(p: &mut EngineConfig) {
    p.session.profile = Some(Profile::Ask);
}

fn write(id: &str, path: &str, content: &str) -> Vec<Step> {
    calls(&[(id, "write_file", json!({"path": path, "content": content}))])
}

pub(crate) fn permission(ask: &tiller_protocol::Ask) -> tiller_protocol::ask::PermissionAsk {
    match &ask.body {
        AskBody::Permission(p) => p.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_waits_for_the_persons_yes_and_shows_what_it_would_do() {
    let place = Place::new();
    let fake = Fake::new([write("c1", "new.txt", "hello\n"), says("Written.")]);
    let mut rig = place.start_with(&fake, ask_profile).await;
    rig.submit("write it");
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert_eq!((p.tool.as_str(), p.risk), ("write_file", Risk::Low));
    assert!(p.diff.as_deref().unwrap_or_default().contains("+hello"), "{p:?}");
    assert_eq!(ask.call.as_deref(), Some("c1"));
    assert!(!place.work.join("new.txt").exists());
    // An answer to other text is rejected.
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: "other".into() });
    assert!(rig.refused().await.message.contains("has changed since"));
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash.clone() });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(place.read("new.txt"), "hello\n");
    // It cannot be answered twice.
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    assert!(rig.refused().await.message.contains("no longer open"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_that_cannot_be_made_fails_before_anybody_is_asked() {
    let place = Place::new();
    place.file("a.txt", "one\ntwo\n");
    let edit = |id, old, new| calls(&[(id, "edit_file", json!({"path": "a.txt", "old": old, "new": new}))]);
    let fake = Fake::new([
        calls(&[("c1", "read_file", read_args("a.txt"))]),
        says("Read."),
        edit("c2", "two", "2"),
        edit("c3", "three", "3"),
        edit("c4", "two", "2"),
        says("Done."),
    ]);
    let mut rig = place.start_with(&fake, ask_profile).await;
    rig.turn("read").await;
    place.file("a.txt", "one\ntwo\nand theirs\n");
    rig.seen.clear();
    rig.submit("edit");
    let (id, output) = rig.tool_finished().await;
    assert_eq!(id, "c2");
    assert!(output.contains("changed by someone else") && output.contains("+and theirs"), "{output}");
    let (id, output) = rig.tool_finished().await;
    assert_eq!(id, "c3");
    assert!(output.contains("a.txt"), "{output}");
    assert!(!rig.kinds().contains(&"permission_asked".into()), "{:?}", rig.kinds());
    let ask = rig.asked().await;
    assert_eq!(ask.call.as_deref(), Some("c4"));
    // A change while the question is open is noticed.
    place.file("a.txt", "one\ntwo\nand more\n");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: permission(&ask).hash });
    assert!(rig.tool_finished().await.1.contains("changed by someone else"));
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(place.read("a.txt"), "one\ntwo\nand more\n");
}

/// The agent may not read the file: the refusal must not show its content.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_edit_outside_the_workspace_shows_nothing_of_the_file() {
    let place = Place::new();
    let outside = place.tmp.path().canonicalize().unwrap().join("theirs.txt");
    std::fs::write(&outside, "private words\n").unwrap();
    let args = json!({"path": outside, "old": "guess", "new": "x"});
    let fake = Fake::new([calls(&[("c1", "edit_file", args)]), says("I see.")]);
    let mut rig = place.start_with(&fake, ask_profile).await;
    rig.submit("edit");
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("you have not read it"), "{output}");
    assert!(!output.contains("private"), "{output}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert!(!rig.kinds().contains(&"permission_asked".into()), "{:?}", rig.kinds());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_with_a_comment_reaches_the_model_and_session_rules_hold() {
    let place = Place::new();
    let fake = Fake::new([
        write("c1", "a.txt", "1"),
        write("c2", "a.txt", "2"),
        write("c3", "a.txt", "3"),
        says("Done."),
    ]);
    let mut rig = place.start_with(&fake, ask_profile).await;
    rig.submit("go");
    let ask = rig.asked().await;
    let p = permission(&ask);
    let deny = Decision::Deny { comment: Some("use another name".into()) };
    rig.answer(&ask, AskReply::Permission { decision: deny, hash: p.hash });
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("use another name"));
    let ask = rig.asked().await;
    let p = permission(&ask);
    let pattern = p.always.clone().expect("a plain path has a pattern");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Session { pattern }, hash: p.hash });
    assert_eq!(rig.finished().await.0, TurnStatus::Done, "the third is not asked");
    assert_eq!(place.read("a.txt"), "3");
    let ReplyEvent::AuditReply { rows } =
        rig.query(tiller_protocol::command::Query::Audit { filter: String::new(), limit: 10 }).await
    else {
        panic!()
    };
    let decisions: Vec<&str> = rows.iter().rev().map(|r| r.decision.audit_word()).collect();
    assert_eq!(decisions, ["ask:deny", "ask:session", "allow"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_question_survives_a_restart_and_the_turn_goes_on() {
    for graceful in [true, false] {
        let place = Place::new();
        let fake = Fake::new([write("c1", "new.txt", "hello\n")]);
        let mut rig = place.start_with(&fake, ask_profile).await;
        let session = rig.session();
        rig.submit("write it");
        rig.asked().await;
        if graceful {
            rig.quit().await;
        } else {
            // The question is on disk once a later write was answered.
            rig.send(CommandBody::Todo(TodoCommand::Add { content: "x".into() }));
            rig.until("todo", |e| {
                matches!(e, EventBody::State(StateEvent::TodoChanged { .. })).then_some(())
            })
            .await;
            rig.kill().await;
            place.free(session);
        }
        assert!(!place.work.join("new.txt").exists());
        let fake = Fake::new([says("Written after all.")]);
        let mut rig = place
            .start_with(&fake, |p| {
                ask_profile(p);
                p.session.open = Open::Session(session);
            })
            .await;
        let ask = rig.asked().await;
        let hash = permission(&ask).hash;
        rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash });
        let (status, text, _) = rig.finished().await;
        assert_eq!((status, text.as_str()), (TurnStatus::Done, "Written after all."), "graceful {graceful}");
        assert_eq!(place.read("new.txt"), "hello\n");
        assert_valid(&fake.request(0));
        rig.quit().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clarify_waits_and_its_answer_is_the_result() {
    let place = Place::new();
    let question = json!({"question": "Which?", "choices": ["red", "blue"], "allow_freetext": false});
    let fake = Fake::new([calls(&[("c1", "clarify", question)]), says("Blue it is.")]);
    let mut rig = place.start(&fake).await;
    rig.submit("paint it");
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Choice { answers: vec!["blue".into()] });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert!(message_text(&fake.request(1), 2).contains("blue"));
    let answered =
        rig.seen.iter().any(|e| matches!(&e.body, EventBody::Ask(AskEvent::QuestionAnswered { .. })));
    assert!(answered);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_closes_the_question_of_its_call() {
    let place = Place::new();
    let fake = Fake::new([write("c1", "new.txt", "x")]);
    let mut rig = place.start_with(&fake, ask_profile).await;
    rig.submit("go");
    let ask = rig.asked().await;
    rig.interrupt(false);
    let id = ask.id;
    let mut closed = false;
    let mut done = false;
    while !(closed && done) {
        let (c, d) = rig
            .until("the end of both", |e| match e {
                EventBody::Ask(AskEvent::PermissionDecided { id: Some(i), .. }) if *i == id => {
                    Some((true, false))
                }
                EventBody::Turn(TurnEvent::TurnFinished { status, .. }) => {
                    Some((false, *status == TurnStatus::Interrupted))
                }
                _ => None,
            })
            .await;
        closed |= c;
        done |= d;
    }
    assert!(rig.snapshot().await.asks.is_empty());
    assert!(!place.work.join("new.txt").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_the_person_changed_is_told_as_what_ran() {
    let place = Place::new();
    let command = |c: &str| calls(&[("c1", "terminal", json!({ "command": c }))]);
    let fake = Fake::new([command("touch one.txt"), says("I see.")]);
    let mut rig = place.start_with(&fake, ask_profile).await;
    rig.submit("go");
    let ask = rig.asked().await;
    let edit = Decision::Edit { text: "echo two > made.txt".into() };
    rig.answer(&ask, AskReply::Permission { decision: edit, hash: permission(&ask).hash });
    // Changed text is checked again.
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert!(p.shown.contains("echo two"), "{p:?}");
    assert!(!place.work.join("one.txt").exists());
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    let (arguments, output, node) = rig
        .until("the result", |e| match e {
            EventBody::Tool(ToolEvent::ToolFinished { arguments, output, node, .. }) => {
                Some((arguments.clone(), output.clone(), node.clone()))
            }
            _ => None,
        })
        .await;
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(place.read("made.txt"), "two\n");
    assert_eq!(arguments["command"], "echo two > made.txt");
    let said = "[The user changed the command to: echo two > made.txt]";
    assert!(output.starts_with(said), "{output}");
    assert!(node.body.search_text().contains(said), "{node:?}");
    assert!(message_text(&fake.request(1), 2).starts_with(said));
    let ReplyEvent::AuditReply { rows } = rig.query(Query::Audit { filter: String::new(), limit: 10 }).await
    else {
        panic!()
    };
    assert!(rows[0].what.contains("echo two") && rows[0].by.contains("edited command"), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn always_holds_in_the_sessions_that_come_after_this_one() {
    let place = Place::new();
    let fake = Fake::new([write("c1", "a.txt", "1"), says("One."), write("c2", "a.txt", "2"), says("Two.")]);
    let mut rig = place.start_with(&fake, ask_profile).await;
    rig.submit("go");
    let ask = rig.asked().await;
    let p = permission(&ask);
    let pattern = p.always.clone().expect("a plain path has a pattern");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Always { pattern }, hash: p.hash });
    rig.finished().await;
    rig.send(CommandBody::Session(SessionCommand::New));
    rig.until("the new session", |e| {
        matches!(e, EventBody::Turn(TurnEvent::SessionStarted { resumed: false, .. })).then_some(())
    })
    .await;
    place.file("a.txt", "1");
    rig.submit("again");
    assert_eq!(rig.finished().await.0, TurnStatus::Done, "not asked again");
    assert_eq!(fake.count(), 4);
}

/// The runtime has one thread, which must serve commands while another process holds the user's file.
#[tokio::test]
async fn a_rule_is_written_beside_the_thread_that_serves_events() {
    use std::sync::mpsc::channel;
    use tiller_permit::{Policy, Roots};
    let place = Place::new();
    let fake = Fake::new([write("c1", "a.txt", "1"), says("One.")]);
    let (started, began) = tokio::sync::mpsc::unbounded_channel();
    let (free, held) = channel::<()>();
    let (held, mut began) = (Mutex::new(held), began);
    let mut rig = place
        .start_with(&fake, |p| {
            ask_profile(p);
            let roots = Roots::new(&place.work, Some(place.home()), vec![place.home()]);
            let policy = Policy::new(roots, tiller_tool::Registry::built_in().catalog());
            let write = move |_: &str| {
                started.send(()).map_err(|e| e.to_string())?;
                held.lock().unwrap().recv_timeout(DEADLINE / 2).map_err(|e| e.to_string())
            };
            p.permit = tiller_engine::Permit::new(policy, Arc::new(write));
        })
        .await;
    rig.submit("go");
    let ask = rig.asked().await;
    let p = permission(&ask);
    let pattern = p.always.clone().expect("a plain path has a pattern");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Always { pattern }, hash: p.hash });
    began.recv().await.expect("the rule is being written");
    let answer = rig.query(Query::Audit { filter: String::new(), limit: 10 }).await;
    assert!(matches!(answer, ReplyEvent::AuditReply { .. }), "{answer:?}");
    assert!(!place.work.join("a.txt").exists(), "the call waits for its rule");
    free.send(()).expect("the rule is still being written");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    let seen = rig.quit().await;
    assert!(!seen.iter().any(|e| format!("{:?}", e.body).contains("could not be saved")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_are_changed_while_it_runs_hold_for_the_next_call() {
    use tiller_permit::{Effect, Rule, Source};
    let place = Place::new();
    let fake = Fake::new([
        write("c1", "a.txt", "1"),
        write("c2", "b.txt", "2"),
        write("c3", "c.txt", "3"),
        says("Done."),
    ]);
    let file: Arc<Mutex<Vec<tiller_engine::FreshRules>>> = Arc::default();
    let read = Arc::clone(&file);
    let mut rig = place
        .start_with(&fake, move |p| p.permit = p.permit.clone().live(Arc::new(move || lock(&read).pop())))
        .await;
    let rule = |effect, text: &str| {
        Rule::parse(effect, Source::User, text, &tiller_tool::Registry::built_in().catalog()).unwrap()
    };
    lock(&file).push((Some(vec![rule(Effect::Deny, "write_file(a.txt)")]), Vec::new()));
    rig.submit("go");
    assert!(rig.tool_finished().await.1.contains("denied by"), "the first is denied");
    rig.finished().await;
    assert_eq!((place.read("b.txt"), place.work.join("a.txt").exists()), ("2".into(), false));
    // They replace the old ones; faults in the file are reported, and then the old ones stay in force.
    fake.push(write("c4", "a.txt", "4"));
    fake.push(write("c5", "c.txt", "5"));
    fake.push(says("Done."));
    lock(&file).push((None, vec![tiller_protocol::Notice::new(NoticeKind::Config, "line 3: no rule")]));
    lock(&file).push((Some(vec![rule(Effect::Deny, "write_file(c.txt)")]), Vec::new()));
    rig.submit("again");
    rig.notice("line 3").await;
    rig.finished().await;
    assert_eq!((place.read("a.txt"), place.read("c.txt")), ("4".into(), "3".into()));
    rig.quit().await;
}

/// X17: a path that may not be read is read by no tool, no mention, and no line whose output the model sees.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x17_a_path_that_may_not_be_read_reaches_the_model_by_no_way() {
    use tiller_permit::{Effect, Policy, Roots, Rule, Source};
    use tiller_protocol::command::TurnCommand;
    let place = Place::new();
    std::fs::create_dir(place.work.join("sub")).unwrap();
    for file in [".env", "sub/.env"] {
        place.file(file, "TOKEN=hunter2-hunter2\n");
    }
    place.file("a.txt", "TOKEN=none\n");
    // Instructions of the folder are read by Tiller itself.
    place.file("AGENTS.md", "TOKEN=hunter2-hunter2\n");
    std::os::unix::fs::symlink(".env", place.work.join("link.txt")).unwrap();
    let call = |n: usize, tool: &str, args| calls(&[(&format!("c{n}"), tool, args)]);
    let mut replies = Vec::new();
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    for (tool, args) in [
        ("search", r#"{"pattern": "TOKEN"}"#),
        ("search", r#"{"pattern": "TOKEN", "all": true}"#),
        ("search", r#"{"pattern": "TOKEN", "path": "sub"}"#),
        ("search", r#"{"pattern": "TOKEN", "path": ".env"}"#),
        ("search", r#"{"pattern": "TOKEN", "glob": "**/.env"}"#),
        ("read_file", r#"{"path": ".env"}"#),
        ("read_file", r#"{"path": "link.txt"}"#),
        ("read_file", r#"{"path": "sub/../.env"}"#),
        ("edit_file", r#"{"path": ".env", "old": "TOKEN=hunter", "new": "x"}"#),
        ("edit_file", r#"{"path": "sub/.env", "old": "nothing like it", "new": "x"}"#),
        // Overwriting an unread file shows its content, where that may be read.
        ("write_file", r#"{"path": ".env", "content": "x"}"#),
        ("write_file", r#"{"path": ".env", "content": "x"}"#),
        ("write_file", r#"{"path": "link.txt", "content": "x"}"#),
        ("write_file", r#"{"path": "sub/.env", "content": "x"}"#),
        ("patch", r#"{"patch": "*** Begin Patch\n*** Add File: sub/.env\n+x\n*** End Patch\n"}"#),
        ("terminal", r#"{"command": "cat .env"}"#),
        ("terminal", r#"{"command": "(sh) <<< 'cat .env'"}"#),
        ("terminal", r#"{"command": "grep -r TOKEN ."}"#),
        ("terminal", r#"{"command": "cat .e*; cat sub/.e*"}"#),
        ("terminal", r#"{"command": "find . -name '.e*' -exec cat {} +"}"#),
        ("terminal", r#"{"command": "tar c . | cat"}"#),
    ] {
        replies.push(call(replies.len(), tool, json(args)));
    }
    let count = replies.len();
    replies.push(says("Done."));
    let fake = Fake::new(replies);
    let mut rig = place
        .start_with(&fake, |p| {
            let roots = Roots::new(&place.work, Some(place.home()), vec![place.home()]);
            let mut policy = Policy::new(roots, tiller_tool::Registry::built_in().catalog());
            for rule in ["read_file(.env)", "read_file(AGENTS.md)"] {
                policy.rules.push(
                    Rule::written(
                        Effect::Deny,
                        Source::User,
                        rule,
                        &tiller_tool::Registry::built_in().catalog(),
                    )
                    .unwrap(),
                );
            }
            p.permit = tiller_engine::Permit::new(policy, Arc::new(|_| Ok(())));
        })
        .await;
    rig.submit("go");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(fake.count(), count + 1);
    let sent = format!("{:?}", fake.request(count));
    assert!(!sent.contains("hunter2"), "{sent}");
    assert!(sent.contains("Not shown: a permission rule forbids reading this file."), "{sent}");
    assert!(
        sent.contains("TOKEN=none") && sent.contains("skipped"),
        "the rest is found, and the gap is told: {sent}"
    );
    // Mentions, also by hand, in a folder and through a link, are refused with the rule.
    for text in ["look at @.env", "look at @sub/.env:1-2", "look at @link.txt"] {
        rig.submit(text);
        let said = rig.refused().await;
        assert!(said.message.contains("read_file(.env)"), "{said:?}");
    }
    // The output of the user's own commands is shared with the model, or not.
    rig.send(CommandBody::Turn(TurnCommand::Shell { line: "cat .env".into(), share: true }));
    let said = rig.refused().await;
    assert!(said.message.contains("the model would see") && said.hints[0].contains("!!"), "{said:?}");
    assert_eq!(place.read(".env"), "TOKEN=hunter2-hunter2\n");
    rig.quit().await;
}

/// `@diff` and `@session/ID`, chosen or typed, attach their texts; an unknown one stops the send.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_changes_and_other_sessions_can_be_named() {
    use tiller_protocol::command::TurnCommand;
    use tiller_protocol::{Message, SendMode};
    let place = Place::new();
    place.file("a.txt", "one\n");
    let fake = Fake::with(|n, _| match n {
        0 => calls(&[("c0", "read_file", read_args("a.txt"))]),
        1 => calls(&[("c1", "edit_file", serde_json::json!({"path": "a.txt", "old": "one", "new": "ONE"}))]),
        _ => says("The walnut is brown."),
    });
    let mut rig = place.start(&fake).await;
    let first = rig.session();
    rig.send(CommandBody::Turn(TurnCommand::Submit {
        message: Message::text("look at @diff"),
        mode: SendMode::Steer,
    }));
    assert!(rig.refused().await.message.contains("@diff cannot be attached: no turn has changed any files"));
    rig.turn("edit it").await;
    let mentions = async |rig: &mut Rig, text: &str| {
        rig.send(CommandBody::Query(Query::Mentions { text: text.into(), limit: 9 }));
        let ReplyEvent::MentionsReply { mentions, .. } = rig.reply().await else { panic!("no list") };
        mentions
    };
    let diff = mentions(&mut rig, "dif").await;
    assert_eq!(diff[0].name, "diff");
    assert!(diff[0].preview.contains("+ONE") && diff[0].tokens.is_some(), "{diff:?}");
    rig.turn("is @diff right?").await;
    let said = |fake: &Fake| {
        let last = fake.request(fake.count() - 1);
        message_text(&last, last.messages.len() - 1)
    };
    assert!(
        said(&fake).contains("<attached name=\"diff\">") && said(&fake).contains("+ONE"),
        "{}",
        said(&fake)
    );
    // From another session.
    rig.quit().await;
    let mut rig = place.start(&fake).await;
    let list = mentions(&mut rig, "sess").await;
    let id: String = first.to_string().chars().take(13).collect();
    assert_eq!(list[0].name, format!("session/{id}"));
    let name = list[0].name.clone();
    let file =
        tiller_protocol::Attachment::File { label: format!("@{name}"), path: name.clone(), lines: None };
    let message =
        Message { text: format!("go on as in @{name}"), attachments: vec![file], ..Message::default() };
    rig.send(CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }));
    fake.requested(fake.count() + 1).await;
    assert_eq!(said(&fake).matches("The walnut is brown.").count(), 2, "{}", said(&fake));
}

/// X17: nor by the difference of a call (`@diff`), nor by an agent whose task is to read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x17_a_difference_or_an_agent_brings_no_path_that_may_not_be_read() {
    use crate::agents::delegation::{delegate, first, result};
    use tiller_permit::{Effect, Policy, Roots, Rule, Source};
    let place = Place::new();
    place.file(".env", "A=TOKEN-OF-THE-FILE\n");
    place.file("a.txt", "one\n");
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        task if task.starts_with("look") => match result(r) {
            None => calls(&[
                ("r1", "read_file", json!({"path": ".env"})),
                ("r2", "search", json!({"pattern": "TOKEN"})),
                ("r3", "terminal", json!({"command": "cat .env"})),
            ]),
            Some(_) => says("I saw nothing."),
        },
        _ => match r.messages.len() {
            1 => calls(&[("c0", "read_file", read_args("a.txt"))]),
            3 => calls(&[
                ("c1", "edit_file", json!({"path": "a.txt", "old": "one", "new": "two"})),
                ("c2", "write_file", json!({"path": "sub/.env", "content": "OF-THE-MODEL\n"})),
            ]),
            7 => says("Done."),
            8 => delegate(json!([{"goal": "look into .env"}])),
            _ => says("Done."),
        },
    });
    let mut rig = place
        .start_with(&fake, |p| {
            let roots = Roots::new(&place.work, Some(place.home()), vec![place.home()]);
            let mut policy = Policy::new(roots, tiller_tool::Registry::built_in().catalog());
            policy.rules.push(
                Rule::written(
                    Effect::Deny,
                    Source::User,
                    "read_file(.env)",
                    &tiller_tool::Registry::built_in().catalog(),
                )
                .unwrap(),
            );
            p.permit = tiller_engine::Permit::new(policy, Arc::new(|_| Ok(())));
            p.session.profile = Some(Profile::Full);
        })
        .await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    assert_eq!(place.read("sub/.env"), "OF-THE-MODEL\n", "to write is allowed");
    assert_eq!(rig.turn("is @diff right?").await.0, TurnStatus::Done);
    let requests = fake.requests.lock().unwrap().clone();
    let asked =
        requests.iter().find(|r| message_text(r, r.messages.len() - 1).contains("attached name=")).unwrap();
    let attached = message_text(asked, asked.messages.len() - 1);
    assert!(attached.contains("+two") && !attached.contains("OF-THE-MODEL"), "{attached}");
    assert!(requests.iter().any(|r| first(r).starts_with("look") && result(r).is_some()), "the agent worked");
    assert!(!format!("{requests:?}").contains("TOKEN-OF-THE-FILE"));
    rig.quit().await;
}

/// Files are named once, and shortly where they lie in the workspace, however the model wrote them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_names_files_relative_to_the_workspace() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    let inside = |path: &str| place.work.join(path).display().to_string();
    let outside = place.work.with_file_name("b.txt").display().to_string();
    let patch = "*** Begin Patch\n*** Add File: p/one.txt\n+1\n*** Add File: p/two.txt\n+2\n*** End Patch";
    let tilde = inside("~/x.txt");
    for (tool, args, want) in [
        ("write_file", json!({"path": "src/new.txt", "content": "x\n"}), "src/new.txt"),
        ("write_file", json!({"path": inside("src/new.txt"), "content": "x\n"}), "src/new.txt"),
        ("write_file", json!({"path": outside, "content": "x\n"}), outside.as_str()),
        ("write_file", json!({"path": tilde, "content": "x\n"}), tilde.as_str()),
        ("patch", json!({"patch": patch}), "p/one.txt\np/two.txt"),
        ("terminal", json!({"command": "touch a.txt"}), "touch a.txt"),
    ] {
        let fake = Fake::new([calls(&[("c1", tool, args)]), says("Done.")]);
        let mut rig = place.start_with(&fake, ask_profile).await;
        rig.submit("go");
        let ask = rig.asked().await;
        let p = permission(&ask);
        assert_eq!(p.shown, want);
        let folder = format!("{}/", place.work.display());
        let long = p.effects.iter().any(|e| e.contains(&folder));
        assert!(want == tilde || !long, "{:?}", p.effects);
        rig.answer(&ask, AskReply::Permission { decision: Decision::Deny { comment: None }, hash: p.hash });
        rig.finished().await;
        rig.quit().await;
    }
}
