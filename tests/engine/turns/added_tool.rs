//! A tool that is added by one line is complete: rules and agent definitions may name it, models call it, the user is
//! asked about it, and its call is described.

use async_trait::async_trait;
use serde_json::{Value, json};
use tiller_config::agents::{DefinitionContext, Definitions};
use tiller_permit::{Effect, Rule, Source};
use tiller_protocol::event::{ToolEvent, TurnStatus};
use tiller_protocol::{
    Access, AskReply, Decision, Event, EventBody, Profile, RuleArgument, ToolGrant, ToolInfo, ToolSet,
    ToolSpec, ToolVerb, Touch,
};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput};

use super::questions::permission;
use crate::rig::*;
use crate::scripted_model::lock;

/// Greets.
struct Greet;

#[async_trait]
impl Tool for Greet {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "greet",
            set: ToolSet::Plan,
            grant: ToolGrant::All,
            starts_agents: false,
            touch: Touch::Execute,
            rule: RuleArgument::Text,
            aliases: &["hello"],
            verb: ToolVerb::from("greet"),
            target: |args| args["who"].as_str().unwrap_or_default().to_owned(),
        }
    }

    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {"who": {"type": "string"}}});
        ToolSpec { name: self.name().into(), description: "Greets.".into(), schema }
    }

    fn access(&self, args: &Value, _: &ToolCx) -> Result<Vec<Access>, ToolError> {
        Ok(vec![Access::Process { what: format!("greet {}", self.target(args)) }])
    }

    async fn run(&self, args: Value, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(format!("Hello, {}.", self.target(&args))))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_added_by_one_line() {
    let mut place = Place::new();
    place.tools.push(&Greet);

    // Rules may name it, and a wrong name leads to it.
    let tools = place.tools.catalog();
    let rule = |text: &str| Rule::written(Effect::Deny, Source::User, text, &tools);
    let deny = rule("greet(*Bob*)").unwrap();
    assert_eq!(rule("hello").unwrap_err(), "there is no tool 'hello'; did you mean 'greet'?");

    // An agent definition may list it, by its name and by its set.
    let folder = place.tmp.path().join("roles");
    std::fs::create_dir_all(folder.join("agents")).unwrap();
    let text = "---\ndescription: greets\ntools: [greet, web]\npermissions: { ask: [greet] }\n---\nGreet.\n";
    std::fs::write(folder.join("agents/host.md"), text).unwrap();
    let rule = |text: &str| rule(text).map(drop);
    let known = DefinitionContext { tools: &tools, clis: DefinitionContext::CLIS, rule: &rule };
    let (roles, wrong) = Definitions::load(&folder, &[], &known);
    assert_eq!(wrong, []);
    let host = roles.get("host").unwrap();
    let architect = roles.get("architect").unwrap();
    assert_eq!((host.tools.grants("greet"), architect.tools.grants("greet")), (Some(true), Some(true)));

    // The model is told about it and calls it; the rule holds, and the user is asked.
    let fake = Fake::new([
        calls(&[("c1", "greet", json!({"who": "Bob"}))]),
        calls(&[("c2", "greet", json!({"who": "Ada"}))]),
        says("Done."),
    ]);
    let file = std::sync::Mutex::new(Some(vec![deny]));
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.profile = Some(Profile::Ask);
            p.session.role = Some(host.clone());
            let read = move || lock(&file).take().map(|rules| (Some(rules), Vec::new()));
            p.permit = p.permit.clone().live(std::sync::Arc::new(read));
        })
        .await;
    rig.submit("greet them");
    assert!(rig.tool_finished().await.1.contains("denied by"));
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert_eq!((p.tool.as_str(), p.verb.word()), ("greet", "greet"));
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    assert_eq!(rig.tool_finished().await.1, "Hello, Ada.");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    let row = |e: &Event| match &e.body {
        EventBody::Tool(ToolEvent::ToolStarted { verb, target, .. }) => Some(format!("{verb} {target}")),
        _ => None,
    };
    let rows: Vec<String> = rig.seen.iter().filter_map(|e| row(e)).collect();
    assert_eq!(rows.last().map(String::as_str), Some("greet Ada"));
    let names: Vec<String> = fake.request(0).tools.iter().map(|t| t.name.clone()).collect();
    assert_eq!(names, ["greet", "web_extract", "web_fetch", "web_search"]);
    rig.quit().await;
}
