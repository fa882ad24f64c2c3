//! Questions of external programs in the profile `full`, and the cost of a session over several processes.

use tiller_protocol::{AgentState, AskBody, AskReply, Profile};

use crate::agents::delegation::state;
use crate::agents::external::{ACP, TOUCH, TOUCH_ASKS, full_with_denied, spawn, toy, with_toy};
use crate::rig::*;

/// X18: even where everything is allowed, dangerous commands are asked about, however they are worded, and commands
/// that a rule forbids are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x18_in_full_danger_is_asked_about_in_whatever_field_it_stands() {
    for about in [
        r#""title":"rm -rf /srv/data","kind":"execute","rawInput":{"command":"rm -rf /srv/data"}"#,
        r#""title":"rm -rf /srv/data [in the folder] (Clean up)","kind":"execute""#,
        r#""title":"Run `rm -rf /srv/data`","kind":"other","rawInput":{}"#,
        r#""title":"Shell","rawInput":{"script":"rm -rf /srv/data"}"#,
        r#""title":"Shell","kind":"other","rawInput":{"argv":["rm","-rf","/srv/data"]}"#,
        r#""title":"look","kind":"read","locations":[{"path":"a.txt"}],"rawInput":{"command":"cat a.txt; rm -rf /srv/data"}"#,
    ] {
        let place = Place::new();
        place.file("a.txt", "a");
        let mut rig = with_toy(&place, &ACP.replace(TOUCH, about), Profile::Full).await;
        rig.send(spawn("toy:acp", "run it"));
        let ask = rig.asked().await;
        let AskBody::Permission(p) = &ask.body else { panic!("{ask:?}") };
        assert!(p.rule.text().contains("danger"), "{about}: {p:?}");
        rig.answer(&ask, AskReply::Declined);
        let done = state(&mut rig, "main/a1", AgentState::Done).await;
        assert_eq!(done.child.unwrap().result, "it said refused", "{about}");
        rig.quit().await;
    }
    for about in [
        r#""title":"Read .env","kind":"read""#,
        // Paths that are protected in every profile.
        r#""title":"clean","kind":"execute","rawInput":{"command":"rm -rf ~"}"#,
        r#""title":"clean","kind":"read","locations":[{"path":"a.txt"}],"rawInput":{"command":"rm -rf ~"}"#,
        r#""title":"cat .env","kind":"execute""#,
        r#""title":"look","kind":"read","locations":[{"path":"a.txt"}],"rawInput":{"command":"cat a.txt .env"}"#,
    ] {
        let place = Place::new();
        place.file(".env", "TOKEN=hunter2");
        place.file("a.txt", "a");
        let toy = toy(&place, &ACP.replace(TOUCH, about));
        let mut rig = full_with_denied(&place, toy, "read_file(.env)").await;
        rig.send(spawn("toy:acp", "run it"));
        let done = state(&mut rig, "main/a1", AgentState::Done).await;
        assert_eq!(done.child.unwrap().result, "it said refused", "{about}");
        rig.quit().await;
    }
}

/// It reports the total cost of its session: the next process, after a restart, adds only the difference.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_costs_of_a_session_that_is_loaded_are_not_counted_again() {
    let place = Place::new();
    let script = ACP
        .replace(r#""agentCapabilities":{}"#, r#""agentCapabilities":{"loadSession":true}"#)
        .replace(
            "    *'\"method\":\"session/prompt\"'*)",
            "    *'\"method\":\"session/load\"'*) echo '{\"jsonrpc\":\"2.0\",\"id\":'$id',\"result\":{}}';;\n    *'\"method\":\"session/prompt\"'*)",
        )
        .replace(
            &format!("{TOUCH_ASKS};;"),
            r#"echo x >>prompts
      n=$(wc -l <prompts | tr -d ' ')
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"usage_update","used":5,"size":100,"cost":{"amount":'$n'.5,"currency":"USD"}}}}'
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"answer '$n'"}}}}'
      echo '{"jsonrpc":"2.0","id":'$prompt',"result":{"stopReason":"end_turn"}}';;"#,
        );
    let mut rig = with_toy(&place, &script, Profile::Full).await;
    let session = rig.session();
    rig.send(spawn("toy:acp", "build it"));
    let answered = |n: u32| {
        move |e: &tiller_protocol::Event| {
            let view = crate::agents::delegation::row(e).filter(|v| v.state == AgentState::Done)?;
            let result = view.child.as_ref().map(|c| c.result.clone()).unwrap_or_default();
            (result == format!("answer {n}")).then_some(view.cost)
        }
    };
    assert_eq!(rig.until_of("its first", answered(1)).await.map(|c| c.0), Some(1_500_000));
    rig.send_to("main/a1", crate::agents::user_commands::say("and test it"));
    assert_eq!(rig.until_of("its second", answered(2)).await.map(|c| c.0), Some(2_500_000));
    rig.quit().await;
    let toy = toy(&place, &script);
    let open = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.open = tiller_engine::Open::Session(session);
    };
    let mut rig = place.start_with(&Fake::new([]), open).await;
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.send_to("main/a1", crate::agents::user_commands::say("and once more"));
    assert_eq!(rig.until_of("its third", answered(3)).await.map(|c| c.0), Some(3_500_000));
    rig.quit().await;
}
