//! Servers whose tools, names or answers are not as they were, or not as they should be: what is not concerned goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, json};
use tiller_protocol::mcp::{McpAct, McpState};
use tiller_protocol::{AskBody, AskReply, Part, lock};
use tiller_tool::Tool;
use tiller_tool::mcp::McpServers;

use crate::testing::rig;
use crate::tools::{McpCall, ToolSearch};
use crate::{Hub, NoResult};

async fn call(hub: &Hub, tool: &str) -> Result<String, NoResult> {
    let text = Map::from_iter([("text".to_owned(), json!("said"))]);
    let result = hub.call(hub.servers()[0].name(), tool, text, None).await?;
    let [Part::Text { text }, ..] = &result.parts[..] else { panic!("{result:?}") };
    Ok(text.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_added_tool_is_held_back_alone() {
    let Some(rig) = rig() else { return };
    rig.add("adding");
    rig.hub.learn_all(None).await;
    assert_eq!(rig.hub.servers()[0].tools().unwrap().len(), 2);
    rig.hub.end().await;
    // Where no user can answer: the others work, and what is held back says what to do.
    let later = rig.again("adding", &[("CHANGED", "1")]);
    assert_eq!(call(&later, "echo").await.unwrap(), "said");
    for tool in ["wipe", "same"] {
        let Err(NoResult::HeldBack(why)) = call(&later, tool).await else { panic!("{tool}") };
        assert!(why.unanswered && why.why.contains("`tiller mcp test adding --approve`"), "{why:?}");
    }
    let server = &later.servers()[0];
    let view = server.view();
    assert_eq!(view.state, McpState::Changed);
    assert!(
        view.error.starts_with("2 tools are held back") && view.tools.unwrap().len() == 1,
        "{}",
        view.error
    );
    let notes = view.notes.join("\n");
    assert!(
        notes.contains("wipe is new: Removes all") && notes.contains("same has another description"),
        "{notes}"
    );
    let found = rig.bench.say(&ToolSearch::new(Arc::clone(&later)), json!({"query": "echo"})).await;
    assert!(
        found.contains("tool: echo") && found.contains("held back until the user approves them"),
        "{found}"
    );
    assert!(found.contains("same, wipe"), "{found}");
    // The user is asked at the call of such a tool, and not before.
    let tool = McpCall::new(Arc::clone(&later));
    let args = |tool: &str| json!({"server": "adding", "tool": tool, "arguments": {}});
    rig.bench.say(&tool, args("echo")).await;
    assert!(lock(&rig.bench.ports.asked).is_empty());
    rig.bench.ports.reply(AskReply::Choice { answers: vec!["Not now".into()] });
    let said = rig.bench.say(&tool, args("wipe")).await;
    assert!(
        said.contains("wipe of the MCP server adding is held back") && said.contains("the user said no"),
        "{said}"
    );
    rig.bench.ports.reply(AskReply::Choice { answers: vec!["Yes".into()] });
    rig.bench.say(&tool, args("wipe")).await;
    let Some(AskBody::Clarify { question, .. }) = lock(&rig.bench.ports.asked).last().cloned() else {
        panic!()
    };
    assert!(question.contains("wipe is new") && question.contains("Now reads ~/.ssh"), "{question}");
    assert!(
        question.lines().nth(1).is_some_and(|first| first.starts_with("wipe")),
        "the called one first: {question}"
    );
    assert!(server.held().is_empty() && server.tools().unwrap().len() == 3);
    later.end().await;
    // A tool that is gone needs no question, and is still approved when it comes back.
    let less = rig.again("adding", &[]);
    assert_eq!(call(&less, "echo").await.unwrap(), "said");
    assert!(matches!(call(&less, "wipe").await, Err(NoResult::NoTool(_))));
    assert_eq!(less.servers()[0].held().len(), 1, "the one that changed back");
    less.end().await;
    let more = rig.again("adding", &[("CHANGED", "1")]);
    assert!(call(&more, "wipe").await.is_ok());
    more.end().await;
}

/// A list or a question that shows eight changes of thirty gets a yes to those eight.
#[tokio::test(flavor = "multi_thread")]
async fn a_yes_covers_the_tools_that_were_shown_and_no_others() {
    let Some(rig) = rig() else { return };
    rig.add("swelling");
    rig.hub.learn_all(None).await;
    rig.hub.end().await;
    let later = rig.again("swelling", &[("CHANGED", "30")]);
    assert_eq!(call(&later, "echo").await.unwrap(), "said");
    let server = &later.servers()[0];
    let held = || server.held().into_iter().map(|tool| tool.name).collect::<Vec<_>>();
    let shows = |text: &str| {
        (0..30)
            .map(|n| format!("new{n:02}"))
            .filter(|name| text.contains(&format!("{name} is new")))
            .collect::<Vec<_>>()
    };
    assert_eq!(held().len(), 30);
    // The list of servers.
    let row = server.view();
    let notes = row.notes.join("\n");
    assert!(notes.contains("22 more tools have changed, which a yes does not cover"), "{notes}");
    let stale = row.shown.clone();
    assert_eq!(later.act("swelling", McpAct::Approve, Some(&stale)).await, Ok(()));
    assert_eq!(held().len(), 22);
    assert!(shows(&notes).iter().all(|name| !held().contains(name)), "{notes}: {:?}", held());
    // A yes at a row that shows something else by now.
    let again = later.act("swelling", McpAct::Approve, Some(&stale)).await;
    assert!(again.unwrap_err().contains("nothing was approved"));
    assert_eq!(held().len(), 22);
    let next = server.view();
    assert!(
        next.state == McpState::Changed
            && shows(&next.notes.join("\n")).iter().all(|name| held().contains(name))
    );
    // A question at a call: the called one, and those that stand beside it.
    let tool = McpCall::new(Arc::clone(&later));
    rig.bench.ports.reply(AskReply::Choice { answers: vec!["Yes".into()] });
    rig.bench.say(&tool, json!({"server": "swelling", "tool": "new29", "arguments": {}})).await;
    let Some(AskBody::Clarify { question, .. }) = lock(&rig.bench.ports.asked).last().cloned() else {
        panic!()
    };
    let shown = shows(&question);
    assert!(shown.len() == 8 && shown.contains(&"new29".to_owned()), "{question}");
    assert_eq!(held().len(), 14, "{question}");
    assert!(shown.iter().all(|name| !held().contains(name)), "{question}: {:?}", held());
    later.end().await;
}

/// The output of a program that fails reaches a model inside the mark for text of others.
#[tokio::test(flavor = "multi_thread")]
async fn the_standard_error_of_a_failed_server_is_marked() {
    let Some(rig) = rig() else { return };
    rig.add("crash");
    let args = json!({"server": "crash", "tool": "echo", "arguments": {}});
    let called = rig.call(args).await;
    let found = rig.search("echo").await;
    for said in [called, found] {
        let (before, printed) = said.split_once("no such option").unwrap_or_else(|| panic!("{said}"));
        assert!(
            before.contains("[untrusted text ")
                && before.contains("the standard error of the MCP server crash"),
            "{said}"
        );
        assert!(printed.contains("[end "), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_with_an_odd_name_is_called_by_its_own() {
    let Some(rig) = rig() else { return };
    rig.add("odd-names");
    rig.hub.learn_all(None).await;
    let tools = rig.hub.servers()[0].tools().unwrap();
    assert_eq!(tools.len(), 8, "{tools:?}");
    for tool in &tools {
        let said = call(&rig.hub, &tool.name).await.unwrap();
        let own = tool.own_name().replace(['\u{1b}', '\u{202e}'], "");
        assert!(said.contains(&own) || own.starts_with("[2J"), "{tool:?}: {said}");
    }
    // A model may say the own name; rules see the safe one, and the user both.
    let tool = McpCall::new(Arc::clone(&rig.hub));
    let args = json!({"server": "odd-names", "tool": "größe lesen", "arguments": {}});
    let access = tool.access(&args, &rig.bench.cx).unwrap();
    let safe = tools.iter().find(|tool| tool.own_name() == "größe lesen").unwrap().name.clone();
    assert!(format!("{access:?}").contains(&format!("tool: \"{safe}\"")), "{access:?}");
    let preview = tool.preview(&args, &rig.bench.cx).await;
    assert_eq!(preview.lines, ["the server calls the tool \"größe lesen\""]);
    assert!(rig.bench.say(&tool, args).await.contains("called größe lesen"));
    let found = rig.search("größe").await;
    assert!(found.contains(&format!("{safe} (\"größe lesen\")")), "{found}");
    let view = rig.hub.servers()[0].view();
    let own: Vec<&str> = view.tools.as_deref().unwrap().iter().map(|tool| tool.own.as_str()).collect();
    assert!(
        own.contains(&"\"天気\"") && own.iter().all(|own| !own.contains(['\u{1b}', '\u{202e}'])),
        "{own:?}"
    );
    let notes = view.notes.join("\n");
    for why in [
        "it has no name",
        "it is null",
        "it is a number",
        "its name is a number",
        "its inputSchema is a text",
        "the same name",
    ] {
        assert!(notes.contains(why), "{why}: {notes}");
    }
    rig.hub.end().await;
}

/// However a request ends without its answer, the server hears of it: Esc drops what waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_not_needed_any_more_is_cancelled_at_the_server() {
    let Some(rig) = rig() else { return };
    let log = rig.bench.scratch.path().join("log");
    for how in ["stopped", "dropped", "resource"] {
        let (begun, log) = (log.with_extension("begun"), log.display().to_string());
        let _ = std::fs::remove_file(&begun);
        let _ = std::fs::remove_file(&log);
        let hub = rig.again("cancels", &[("LOG", &log)]);
        hub.learn_all(None).await;
        let cx = tiller_tool::ToolCx {
            cancel: tokio_util::sync::CancellationToken::new(),
            ..rig.bench.cx.clone()
        };
        let call = {
            let (hub, cx) = (Arc::clone(&hub), cx.clone());
            tokio::spawn(async move {
                match how {
                    "resource" => drop(hub.read("cancels", "note://one").await),
                    _ => drop(McpCall::new(hub).run(json!({"server": "cancels", "tool": "echo"}), &cx).await),
                }
            })
        };
        let until = Instant::now() + Duration::from_secs(90);
        while !begun.exists() {
            assert!(Instant::now() < until, "{how}: the server has no request");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Esc, and the end of a turn.
        if how == "stopped" {
            cx.cancel.cancel()
        } else {
            call.abort()
        }
        let until = Instant::now() + Duration::from_secs(90);
        while std::fs::read_to_string(&log).unwrap_or_default() != "notifications/cancelled\n" {
            assert!(Instant::now() < until, "{how}: the server was told nothing");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        hub.end().await;
    }
}

/// A search answers with what is there, and names who has not answered; they join when they do.
#[tokio::test(flavor = "multi_thread")]
async fn a_mute_server_costs_a_search_nothing_but_its_own_tools() {
    let Some(rig) = rig() else { return };
    rig.add("good");
    rig.hub.find("good").unwrap().check().await.unwrap();
    let mut settings = rig.settings("silent");
    settings.start = Duration::from_secs(3000);
    rig.hub.add(vec![settings]);
    for _ in 0..2 {
        let found = rig.search("says text").await;
        assert!(found.contains("server: good\ntool: echo"), "{found}");
        assert!(found.contains("These servers have not answered yet: silent."), "{found}");
        assert_eq!(rig.hub.find("silent").unwrap().view().state, McpState::Starting, "one start goes on");
    }
    rig.hub.end().await;
}

/// Approves a server of the project as it is.
fn shared_as(rig: &crate::testing::Rig, settings: crate::ServerSettings) {
    let hub = rig.again("other", &[]);
    hub.add(vec![settings]);
    let shared = hub.find("shared").unwrap();
    shared.approve(&shared.differences()).unwrap();
}

/// Each difference to what was approved is said before it is approved again.
#[tokio::test(flavor = "multi_thread")]
async fn what_changed_since_an_approval_is_shown() {
    let Some(rig) = rig() else { return };
    let entry = |args: &[&str], env: &[&str], cwd: &str| {
        let env: Map<_, _> = env.iter().map(|name| ((*name).to_owned(), json!("v"))).collect();
        let file =
            json!({"mcpServers": {"shared": {"command": "python3", "args": args, "env": env, "cwd": cwd}}});
        crate::project_servers(file.to_string().as_bytes(), &|_| None).0.remove(0)
    };
    let changes = |args: &[&str], env: &[&str], cwd: &str| {
        let hub = rig.again("other", &[]);
        hub.add(vec![entry(args, env, cwd)]);
        hub.find("shared").unwrap().differences().lines
    };
    let hub = rig.again("other", &[]);
    hub.add(vec![entry(&["a.py"], &["TOKEN"], ".")]);
    assert!(hub.find("shared").unwrap().differences().lines.is_empty(), "nothing was approved");
    let shared = hub.find("shared").unwrap();
    shared.approve(&shared.differences()).unwrap();
    assert!(changes(&["a.py"], &["TOKEN"], ".").is_empty());
    assert_eq!(
        changes(&["a.py", "--all"], &["TOKEN"], "."),
        ["it was: python3 a.py", "it is now: python3 a.py --all"]
    );
    assert_eq!(changes(&["a.py"], &["KEY"], "."), ["it is also given: KEY", "it is no longer given: TOKEN"]);
    assert_eq!(changes(&["a.py"], &["TOKEN"], "sub"), ["it starts in another folder: sub (before: .)"]);
    // Of long ones the part that differs is shown.
    let long = "x".repeat(400);
    shared_as(&rig, entry(&[&long, "old"], &[], "."));
    let shown = changes(&[&long, "new"], &[], ".").join("\n");
    assert!(shown.contains("old'") && shown.contains("new'") && shown.len() < 200, "{shown}");
    shared_as(&rig, entry(&["a.py"], &["TOKEN"], "."));
    let evil = changes(&["\u{1b}[2J\u{202e}\nx"], &["TOKEN"], ".").join("|");
    assert!(!evil.contains(['\u{1b}', '\n', '\u{202e}']), "{evil:?}");
    // The question says it, too.
    let hub = rig.again("other", &[]);
    hub.add(vec![entry(&["b.py"], &[], ".")]);
    rig.bench.ports.reply(AskReply::Choice { answers: vec!["Not now".into()] });
    let failure = hub.find("shared").unwrap().permitted(Some(&rig.bench.cx)).await.unwrap_err();
    assert!(failure.why.contains("has changed since it was approved"), "{failure:?}");
    let Some(AskBody::Clarify { question, .. }) = lock(&rig.bench.ports.asked).last().cloned() else {
        panic!()
    };
    assert!(question.contains("it was: python3 a.py\nit is now: python3 b.py"), "{question}");
    assert!(question.contains("it is no longer given: TOKEN"), "{question}");
}
