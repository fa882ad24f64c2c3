//! Rules at the point of action: the one of many that matters is attached to the call that it concerns.

use async_trait::async_trait;
use serde_json::{Value, json};
use tiller_config::schema::LearningsSetting;
use tiller_memory::learnings::{LEARNING_TOKENS, SavedLearning};
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::{ReplyEvent, ToolEvent, TurnEvent};
use tiller_protocol::{
    Access, Addition, AskReply, CommandBody, Decision, EntryBody, EventBody, LearningCommand, LearningState,
    LearningsQuery, MemoryCommand, MemoryTarget, Profile, PromotionKind, Provenance, RuleArgument,
    RuleReceipts, RuleView, Taint, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch,
};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput};

use super::{Bench, run};
use crate::rig::*;
use crate::turns::questions::permission;
use crate::turns::scripts::{lacks_python, ready, script};

/// 69 rules, of which one concerns a push.
fn many() -> String {
    let mut text = String::from("# Rules of this project\n\n");
    for n in 0..68 {
        text.push_str(&format!(
            "- 2026-10-{:02}: Rule {n} is about tool{n}. [when: terminal \"tool{n} *\"]\n",
            n % 28 + 1
        ));
    }
    text.push_str("- 2026-11-02: Deployments are on Fridays.\n");
    text.push_str("- 2026-11-01: Nothing is pushed to main, the bot does that.\n  [when: terminal \"git push*\"] [never: terminal \"git push* main*\"]\n");
    text
}

pub(super) async fn rules(rig: &mut Rig) -> Vec<RuleView> {
    let query = LearningsQuery { limit: 10, ..LearningsQuery::default() };
    match rig.query(Query::Learnings { query }).await {
        ReplyEvent::LearningsReply { reply } => reply.rules,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn push(rig: &mut Rig, fake: &Fake, command: &str) -> String {
    fake.push(run("c1", command));
    fake.push(says("Done."));
    rig.submit("go on");
    let (_, output) = rig.tool_finished().await;
    rig.finished().await;
    output
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_to_a_note_says_why_its_matcher_is_no_rule() {
    let bench = Bench::new(false);
    bench.memory("");
    let fake = Fake::new([]);
    let mut rig = bench.place.start_with(&fake, |p| drop(bench.learns(p, LearningsSetting::Never))).await;
    for (text, end) in [
        ("[never: terminl \"rm*\"] no rm", ", but it is no rule: there is no tool 'terminl'"),
        ("[never: terminal \"rm -rf /*\" never", ", but it is no rule: '[never:' has no ']'"),
        ("[never: terminal \"rm*\"] no rm", ""),
        ("likes tea", ""),
    ] {
        let target = MemoryTarget::default();
        rig.send(CommandBody::Memory(MemoryCommand::Add { target, text: text.into() }));
        let said = match rig.reply().await {
            ReplyEvent::DoneReply { said } => said,
            other => panic!("{other:?}"),
        };
        let rest = said.strip_prefix("kept in MEMORY.md").unwrap();
        assert!(rest.starts_with(end) && rest.is_empty() == end.is_empty(), "{said}");
    }
    rig.quit().await;
}

/// The entry of a result separates the tool's output from the rule and the reminder behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_and_a_reminder_behind_a_result_are_told_from_what_the_tool_said() {
    let bench = Bench::new(false);
    bench.memory("- Ask first. [when: terminal \"git push*\"]\n");
    bench.result("git push", false, "error: no remote");
    let fake = Fake::new([]);
    let mut rig = bench.place.start_with(&fake, |p| drop(bench.learns(p, LearningsSetting::Never))).await;
    let todos = json!({"merge": false, "todos": [{"id": "a", "content": "push", "status": "pending"}]});
    fake.push(calls(&[("c0", "todo_write", todos)]));
    fake.push(run("c1", "git push"));
    fake.push(says("Done."));
    rig.submit("go on");
    let node = rig
        .until("the result of the push", |e| match e {
            EventBody::Tool(ToolEvent::ToolFinished { call_id, node, .. }) if call_id == "c1" => {
                Some(node.clone())
            }
            _ => None,
        })
        .await;
    rig.finished().await;
    assert_eq!(node.body.own_text().as_deref(), Some("error: no remote\n[exit 1]"));
    let EntryBody::ToolResult { added, content, .. } = &node.body else { panic!("{node:?}") };
    assert_eq!(added.after, [Addition::Rule("Ask first.".into()), Addition::Reminder]);
    let behind: Vec<&str> = added.behind(content).map(|(_, text)| text).collect();
    assert!(behind[0].contains("concerns this call: Ask first.") && behind[1].contains("plan"), "{behind:?}");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_69_rules_the_one_that_matters_is_attached_to_the_call_and_counted() {
    let bench = Bench::new(false);
    bench.memory(&many());
    let fake = Fake::new([]);
    let mut rig = bench.place.start_with(&fake, |p| drop(bench.learns(p, LearningsSetting::Never))).await;
    assert_eq!(rules(&mut rig).await.len(), 69);

    let output = push(&mut rig, &fake, "git push origin topic").await;
    assert!(
        output.ends_with(
            "[A rule of MEMORY.md concerns this call: Nothing is pushed to main, the bot does that.]"
        ),
        "{output}"
    );
    assert_eq!(output.matches("[A rule of").count(), 1, "{output}");
    // It is in no prompt, where what is no rule stands, and in nothing that was sent before.
    let prompt = fake.request(0).system.to_string();
    assert!(prompt.contains("Deployments are on Fridays"), "{prompt}");
    assert!(!prompt.contains("pushed to main") && !prompt.contains("is about tool7"), "{prompt}");

    // Followed: it is not repeated. Violated: it is.
    assert!(!push(&mut rig, &fake, "git push -u origin other").await.contains("[A rule"));
    let output = push(&mut rig, &fake, "cd x && git push origin main").await;
    assert!(output.contains("[A rule of MEMORY.md forbids this call: Nothing is pushed"), "{output}");
    assert!(!push(&mut rig, &fake, "git status").await.contains("[A rule"));
    let rule = rules(&mut rig).await.remove(0);
    assert_eq!(rule.receipts, RuleReceipts { shown: 2, followed: 1, violated: 1 });

    // Once violated, it cannot be promoted yet; the person sees the exact line, and nothing else may be written.
    let line = "terminal(git push* main*)";
    let promote = |kind, text: &str| {
        CommandBody::Learning(LearningCommand::Promote { rule: rule.text.clone(), kind, text: text.into() })
    };
    let (permission, hook) = (PromotionKind::Permission, PromotionKind::Hook);
    rig.send(promote(permission, line));
    assert!(rig.refused().await.message.contains("not violated twice"));
    push(&mut rig, &fake, "git push origin main").await;
    rig.send(promote(permission, "terminal"));
    assert!(rig.refused().await.message.contains("changed since"));
    rig.send(promote(permission, line));
    rig.reply().await;
    let written = |name: &str| std::fs::read_to_string(bench.place.home().join(name)).unwrap_or_default();
    assert_eq!((written("permissions.yaml"), written("config.toml")), (format!("{line}\n"), String::new()));
    let made = rules(&mut rig).await[0].promoted.clone().unwrap();
    assert_eq!((made.kind, made.text.as_str()), (permission, line));
    assert!(made.file.ends_with("permissions.yaml"));
    // One at a time, and back.
    let text = &rule.offers.iter().find(|offer| offer.kind == hook).unwrap().text;
    rig.send(promote(hook, text));
    assert!(rig.refused().await.message.contains("a permission rule already"));
    let demote = || CommandBody::Learning(LearningCommand::Demote { rule: rule.text.clone() });
    rig.send(demote());
    rig.reply().await;
    assert_eq!(written("permissions.yaml"), "");
    // The hook is written as it was shown, and taken out as it was written.
    rig.send(promote(hook, &text.replace("exit 2", "rm x")));
    assert!(rig.refused().await.message.contains("changed since"));
    rig.send(promote(hook, text));
    rig.reply().await;
    assert_eq!((written("permissions.yaml"), written("config.toml")), (String::new(), format!("{text}\n")));
    assert_eq!(rules(&mut rig).await[0].promoted.as_ref().unwrap().kind, hook);
    rig.send(demote());
    rig.reply().await;
    assert_eq!(written("config.toml"), "");
    rig.send(demote());
    assert!(rig.refused().await.message.contains("nothing was made of this rule"));
    rig.quit().await;
}

/// A process may end between the file and the record of what it wrote: the same promotion made again records it, and it can be
/// taken out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promotion_that_a_kill_interrupted_is_taken_back_and_what_the_user_wrote_stays() {
    let bench = Bench::new(false);
    bench
        .memory("- No pushes. [never: terminal \"git push* main*\"] [never: terminal \"git push* prod*\"]\n");
    let fake = Fake::new([]);
    let mut kept = None;
    let mut rig =
        bench.place.start_with(&fake, |p| kept = Some(bench.learns(p, LearningsSetting::Never))).await;
    let learnings = kept.unwrap();
    for _ in 0..3 {
        push(&mut rig, &fake, "git push origin main").await;
    }
    let rule = rules(&mut rig).await.remove(0);
    for offer in &rule.offers {
        let path = std::path::PathBuf::from(&offer.file);
        let (text, kind) = (offer.text.clone(), offer.kind);
        let demote = || CommandBody::Learning(LearningCommand::Demote { rule: rule.text.clone() });
        // Killed between the record and the file.
        let made = Some((kind, text.clone()));
        learnings.store().receipts().promote(&rule.text, made).wait().unwrap();
        assert_eq!(rules(&mut rig).await[0].promoted.as_ref().unwrap().kind, kind);
        rig.send(demote());
        assert!(matches!(rig.reply().await, ReplyEvent::DoneReply { .. }));
        // What the user has in the file is not taken over, and so not taken out.
        let promote = || {
            CommandBody::Learning(LearningCommand::Promote {
                rule: rule.text.clone(),
                kind,
                text: text.clone(),
            })
        };
        learnings.promotions().unwrap().write(kind, &text, &[]).unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        rig.send(promote());
        assert!(matches!(rig.reply().await, ReplyEvent::ErrorReply { .. }));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
        assert!(rules(&mut rig).await[0].promoted.is_none());
        std::fs::write(&path, "").unwrap();
        rig.send(promote());
        let ReplyEvent::DoneReply { said } = rig.reply().await else { panic!("it is refused") };
        assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
        if kind == PromotionKind::Permission {
            let patterns = "deny terminal(git push* main*), deny terminal(git push* prod*)";
            assert!(said.ends_with(patterns), "{said}");
        }
        rig.send(CommandBody::Learning(LearningCommand::Demote { rule: rule.text.clone() }));
        rig.reply().await;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    }
    assert_eq!(rule.offers.len(), 2);
    rig.quit().await;
}

/// A rule that forbids nothing can ask for a command: it becomes a hook once it was shown twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_asks_for_a_command_becomes_a_hook() {
    let bench = Bench::new(false);
    bench.memory(
        "- Run `make docs` after a push. [when: terminal \"git push*\"]\n- Be careful. [when: read]\n",
    );
    let fake = Fake::new([]);
    let mut rig = bench.place.start_with(&fake, |p| drop(bench.learns(p, LearningsSetting::Never))).await;
    assert!(push(&mut rig, &fake, "git push").await.contains("concerns this call: Run `make docs`"));
    let rule = rules(&mut rig).await.remove(0);
    assert_eq!((rule.offers.len(), rule.may_be_promoted()), (1, false));
    rig.send(CommandBody::Session(SessionCommand::New));
    rig.until("the new session", |e| {
        matches!(e, EventBody::Turn(TurnEvent::SessionStarted { resumed: false, .. })).then_some(())
    })
    .await;
    push(&mut rig, &fake, "git push").await;
    let text = rules(&mut rig).await.remove(0).offers.remove(0).text;
    let promote = LearningCommand::Promote { rule: rule.text, kind: PromotionKind::Hook, text: text.clone() };
    rig.send(CommandBody::Learning(promote));
    rig.reply().await;
    let written = std::fs::read_to_string(bench.place.home().join("config.toml")).unwrap();
    assert_eq!(written, format!("{text}\n"));
    assert!(text.starts_with("[[hooks.after-tool-call]]") && text.ends_with("command = \"make docs\""));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_is_shown_with_the_question_about_its_call() {
    let bench = Bench::new(false);
    // Three that concern the call stand before the one that forbids it.
    let concern = "- Pushes are logged. [when: terminal \"git push*\"]\n- Slow. [when: run]\n- Git. [when: terminal \"git*\"]\n";
    bench.memory(&(concern.to_owned() + &many()));
    let fake = Fake::new([run("c1", "git push origin main"), says("Done.")]);
    let mut rig = bench
        .place
        .start_with(&fake, |p| {
            p.session.profile = Some(Profile::Ask);
            bench.learns(p, LearningsSetting::Never);
        })
        .await;
    rig.submit("push");
    let ask = rig.asked().await;
    let asked = permission(&ask);
    let line = "a rule of MEMORY.md forbids it: Nothing is pushed to main, the bot does that.";
    let rules: Vec<&String> = asked.effects.iter().filter(|e| e.starts_with("a rule of")).collect();
    assert!(rules.len() == 3 && rules[0] == line, "{:?}", asked.effects);
    rig.answer(&ask, AskReply::Permission { decision: Decision::Deny { comment: None }, hash: asked.hash });
    rig.finished().await;
    rig.quit().await;
}

/// Many rules of one tool are all compared with a call of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_many_rules_about_edits_is_attached_to_an_edit() {
    let bench = Bench::new(true);
    let many: String =
        (0..150).map(|n| format!("- Part {n} is generated. [never: edit part{n}/**]\n")).collect();
    bench.memory(&(many + "- Ask Ada about notes. [when: edit notes*]\n"));
    let write = calls(&[("c1", "write_file", serde_json::json!({"path": "notes.txt", "content": "x"}))]);
    let fake = Fake::new([write, says("Done.")]);
    let mut rig = bench
        .place
        .start_with(&fake, |p| {
            p.session.profile = Some(Profile::Full);
            bench.learns(p, LearningsSetting::Never);
        })
        .await;
    rig.submit("write it");
    let (_, output) = rig.tool_finished().await;
    assert!(output.ends_with("[A rule of MEMORY.md concerns this call: Ask Ada about notes.]"), "{output}");
    assert_eq!(output.matches("[A rule of").count(), 1, "{output}");
    rig.finished().await;
    rig.quit().await;
}

/// A learning with a matcher is a rule once the user accepts it, though the output of a command had a part in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_accepted_learning_with_a_matcher_is_a_rule() {
    let bench = Bench::new(false);
    let fake = Fake::new([]);
    let mut kept = None;
    let mut rig =
        bench.place.start_with(&fake, |p| kept = Some(bench.learns(p, LearningsSetting::Save))).await;
    let learnings = kept.unwrap();
    let saved = SavedLearning {
        pattern: "make docs".into(),
        fix: "Build the docs before. [when: terminal \"make docs*\"]".into(),
        ..SavedLearning::default()
    };
    let from = Provenance { taint: Taint::ToolOutput, ..Provenance::default() };
    learnings.set(LearningsSetting::Save, LEARNING_TOKENS);
    let learning = learnings.save(saved, &from).unwrap().unwrap();
    assert_eq!(learning.state, LearningState::Proposed);
    let (store, id) = (learnings.store().clone(), learning.id);
    assert!(!push(&mut rig, &fake, "make docs").await.contains("[A rule"));
    rig.send(CommandBody::Learning(LearningCommand::Decide { id, state: LearningState::Active }));
    rig.reply().await;
    let output = push(&mut rig, &fake, "make docs").await;
    assert!(
        output.contains(&format!("[A rule of learning {id} concerns this call: Build the docs before.]")),
        "{output}"
    );
    // Undoing it takes the power as well.
    rig.send(CommandBody::Learning(LearningCommand::Undo { id }));
    rig.reply().await;
    assert_eq!(store.learnings().get(id).unwrap().source.taint, Taint::ToolOutput);
    rig.quit().await;
}

/// A rule in a file that changes while the session runs, and one with a faulty matcher.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_are_those_of_the_file_at_the_time_of_the_call() {
    let bench = Bench::new(false);
    bench.memory("- Broken [when: treminal \"x\"]\n");
    let fake = Fake::new([]);
    let change = |p: &mut tiller_engine::EngineConfig| {
        bench.learns(p, LearningsSetting::Never);
        // Else what comes into the file after a command that nothing confines would be no rule.
        p.user.memory = None;
    };
    let mut rig = bench.place.start_with(&fake, change).await;
    assert!(!push(&mut rig, &fake, "git push").await.contains("[A rule"));
    bench.memory("- Ask Ada before. [when: terminal \"git push*\"]\n");
    assert!(push(&mut rig, &fake, "git push").await.contains("concerns this call: Ask Ada before."));
    rig.quit().await;
}

/// Stands for the tool that calls tools of MCP servers.
struct ServerCalls;

#[async_trait]
impl Tool for ServerCalls {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "mcp_call",
            set: ToolSet::Web,
            grant: ToolGrant::All,
            starts_agents: false,
            touch: Touch::Network,
            rule: RuleArgument::Text,
            aliases: &[],
            verb: ToolVerb::Tool,
            target: |args| args["tool"].as_str().unwrap_or_default().to_owned(),
        }
    }

    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"server": {}, "tool": {}}});
        ToolSpec { name: self.name().into(), description: "Calls a tool of a server.".into(), schema }
    }

    fn access(&self, args: &Value, _: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let text = |key: &str| args[key].as_str().unwrap_or_default().to_owned();
        Ok(vec![Access::Mcp { server: text("server"), tool: text("tool"), arguments: "{}".into() }])
    }

    async fn run(&self, _: Value, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("called"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_about_a_tool_of_a_server_is_attached_to_its_calls() {
    let mut bench = Bench::new(false);
    bench.place.tools.push(Box::leak(Box::new(ServerCalls)));
    bench.memory(
        "- Name the team. [when: mcp__tracker__create_issue]\n- Nothing is deleted. [never: mcp:tracker:delete_*]\n",
    );
    let fake = Fake::new([]);
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.session.profile = Some(Profile::Full);
        bench.learns(p, LearningsSetting::Never);
    };
    let mut rig = bench.place.start_with(&fake, change).await;
    for (server, tool, told) in [
        ("tracker", "create_issue", "concerns this call: Name the team."),
        ("tracker", "delete_issue", "forbids this call: Nothing is deleted."),
        ("tracker", "list_issues", ""),
        ("notes", "create_issue", ""),
    ] {
        fake.push(calls(&[("c1", "mcp_call", json!({"server": server, "tool": tool}))]));
        fake.push(says("Done."));
        rig.submit("go on");
        let (_, output) = rig.tool_finished().await;
        rig.finished().await;
        assert!(output.contains(told) && output.contains("[A rule") != told.is_empty(), "{tool}: {output}");
    }
    rig.quit().await;
}

/// The counts go on where a session is opened again: the rule stands in its conversation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_was_shown_before_a_restart_is_violated_after_it() {
    let bench = Bench::new(false);
    bench.memory("- No pushes. [never: terminal \"git push*\"]\n");
    let fake = Fake::new([]);
    let mut rig = bench.place.start_with(&fake, |p| drop(bench.learns(p, LearningsSetting::Never))).await;
    assert!(push(&mut rig, &fake, "git push").await.contains("forbids this call: No pushes."));
    let session = rig.session();
    rig.quit().await;
    for (again, violated) in [(true, 1), (false, 1)] {
        let change = |p: &mut tiller_engine::EngineConfig| {
            if again {
                p.session.open = tiller_engine::Open::Session(session);
            }
            bench.learns(p, LearningsSetting::Never);
        };
        let mut rig = bench.place.start_with(&fake, change).await;
        assert!(push(&mut rig, &fake, "git push").await.contains("forbids this call: No pushes."));
        assert_eq!(rules(&mut rig).await[0].receipts.violated, violated, "opened again: {again}");
        rig.quit().await;
    }
}

/// A rule about a call of a script is attached to the result of that script, once. The model has not read it before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_about_a_call_of_a_script_stands_at_the_end_of_the_scripts_result() {
    let bench = Bench::new(true);
    if lacks_python(&bench.place) {
        return;
    }
    bench.memory("- Files of out are generated. [never: write_file out*]\n");
    let code = "from tiller_tools import write_file\nfor n in range(3):\n    write_file(f'out{n}.txt', 'x')\nprint('written')\n";
    let fake = Fake::new([script("c1", code), says("Done.")]);
    let change = |p: &mut tiller_engine::EngineConfig| {
        ready(&bench.place, Profile::Full, &[])(p);
        bench.learns(p, LearningsSetting::Never);
    };
    let mut rig = bench.place.start_with(&fake, change).await;
    rig.submit("write them");
    let (_, output) = rig.tool_finished().await;
    rig.finished().await;
    assert!(output.contains("written"), "{output}");
    let told = "[A rule of MEMORY.md forbids this call: Files of out are generated.]";
    assert_eq!(output.matches(told).count(), 1, "{output}");
    let sent = fake.request(1);
    let all: String = (0..sent.messages.len()).map(|n| message_text(&sent, n)).collect();
    assert!(all.matches("A rule of MEMORY.md").count() <= 1, "nowhere else: {all}");
    let receipts = |shown, violated| RuleReceipts { shown, followed: 0, violated };
    assert_eq!(rules(&mut rig).await[0].receipts, receipts(1, 0));
    fake.push(script("c2", &code.replace("out{n}", "out{n}b")));
    fake.push(says("Done."));
    rig.turn("once more").await;
    assert_eq!(rules(&mut rig).await[0].receipts, receipts(2, 3));
    rig.quit().await;
}
