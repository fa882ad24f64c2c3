use super::*;
use crate::app::effect::{SettingEdit, Task};
use crate::app::msg::Msg;
use crate::model::kinds::FoundKey;
use crate::testing::Robot;

fn opened() -> Robot {
    let mut r = Robot::new(80, 24);
    r.run("type my first prompt").push(Box::new(FirstRun::default()));
    r
}

#[test]
fn a_key_is_masked_kept_and_the_prompt_stays() {
    let mut r = opened();
    insta::assert_snapshot!("first_run_at_80x24", r.screen());
    r.run("enter; 1; paste sk-secret");
    assert!(!r.screen().contains("secret") && r.screen().contains("*********"), "{}", r.screen());
    r.run("enter");
    let task = r.tasks.iter().find_map(|t| match t {
        Task::Connect(Connect::Key { provider, key }, token) => Some((provider.clone(), key.clone(), *token)),
        _ => None,
    });
    let (provider, key, token) = task.expect("it was handed over");
    assert_eq!((provider.as_str(), key.reveal()), ("anthropic", "sk-secret"));
    let refused: Result<Connected, String> = Err("the provider refuses this key".into());
    r.msg(Msg::Job(token, Box::new(refused)));
    assert!(r.screen().contains("refuses this key"), "{}", r.screen());
    r.run("esc");
    assert!(r.screen().contains("my first prompt"), "{}", r.screen());
}

#[test]
fn a_server_needs_a_url_and_the_demo_model_nothing() {
    let mut r = opened();
    r.run("2; enter");
    assert!(!r.tasks.iter().any(|t| matches!(t, Task::Connect(..))), "The message is empty");
    r.run("type localhost:11434/v1; enter");
    let server = |t: &Task| matches!(t, Task::Connect(Connect::Server { url }, _) if url == "http://localhost:11434/v1");
    assert!(r.tasks.iter().any(server));
    // What was typed is there again to be mended.
    let to = token(&r);
    let refused: Result<Connected, String> = Err("connection refused".into());
    r.msg(Msg::Job(to, Box::new(refused)));
    assert!(r.screen().contains("> localhost:11434/v1"), "{}", r.screen());
    assert!(r.screen().contains("connection refused"), "{}", r.screen());
    let mut r = opened();
    r.clear().run("3");
    let set = SessionCommand::SetModel { model: ModelRef("demo/demo".into()) };
    assert_eq!(r.commands(), [&CommandBody::Session(set)]);
}

#[test]
fn it_is_offered_once_and_never_over_typing() {
    let mut r = Robot::new(80, 24);
    r.app.questions.first_run = true;
    r.run("type hello");
    r.app.model.engine.ready = true;
    r.run("wait 1500");
    assert!(!r.screen().contains("Set up a model"), "{}", r.screen());
    r.run("wait 501");
    assert!(r.screen().contains("Set up a model"), "{}", r.screen());
    r.run("esc; wait 2000");
    assert!(!r.screen().contains("Set up a model") && r.screen().contains("hello"), "{}", r.screen());
}

#[test]
fn the_key_is_not_in_any_debug_text() {
    let c = Connect::Key { provider: "x".into(), key: Secret::from("sk-secret".to_owned()) };
    assert!(!format!("{c:?}").contains("sk-"));
}

fn found(r: &mut Robot, source: &str, model: &str) {
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Models)));
    let choice = ModelChoice {
        model: ModelRef(model.into()),
        window: None,
        price: None,
        long: Vec::new(),
        source: source.into(),
        unavailable: None,
    };
    r.cause(id, EventBody::Reply(Box::new(ReplyEvent::ModelsReply { models: vec![choice] })));
}

fn token(r: &Robot) -> Token {
    let connect = |t: &Task| if let Task::Connect(_, token) = t { Some(*token) } else { None };
    r.tasks.iter().rev().find_map(connect).expect("it was handed over")
}

#[test]
fn keys_of_the_environment_are_offered_by_name() {
    let mut r = Robot::new(80, 24);
    let key = |variable: &str, provider: &str, model: Option<&str>| FoundKey {
        variable: variable.into(),
        provider: provider.into(),
        model: model.map(|m| ModelRef(m.into())),
    };
    r.app.model.environment.found_keys =
        vec![key("XAI_API_KEY", "xai", Some("xai/grok")), key("MISTRAL_API_KEY", "mistral", None)];
    r.push(Box::new(FirstRun::default()));
    let screen = r.screen();
    assert!(screen.contains("1 Use the key in XAI_API_KEY (xai)"), "{screen}");
    assert!(screen.contains("2 Use the key in MISTRAL_API_KEY (mistral)"), "{screen}");
    r.clear().run("1");
    let set = SessionCommand::SetModel { model: ModelRef("xai/grok".into()) };
    assert_eq!(r.commands(), [&CommandBody::Session(set)]);
    r.push(Box::new(FirstRun::default())).clear().run("2");
    let named = |t: &Task| matches!(t, Task::Connect(Connect::Variable { variable }, _) if variable == "MISTRAL_API_KEY");
    assert!(r.tasks.iter().any(named));
}

#[test]
fn a_server_of_this_machine_is_listed_and_asked_only_after_the_yes() {
    let mut r = Robot::new(80, 24);
    r.push(Box::new(FirstRun::default()));
    found(&mut r, "local server on 11434", "ollama/");
    assert!(r.screen().contains("4 Use ollama, a local server on 11434"), "{}", r.screen());
    assert!(r.screen().contains("nothing has been sent to it"), "{}", r.screen());
    assert!(!r.tasks.iter().any(|t| matches!(t, Task::Connect(..))));
    r.run("4");
    let local = |t: &Task| matches!(t, Task::Connect(Connect::Local { provider }, _) if provider == "ollama");
    assert!(r.tasks.iter().any(local) && r.screen().contains("Asking ollama"), "{}", r.screen());
    // Several models: one is chosen here.
    let models = vec![ModelRef("ollama/a".into()), ModelRef("ollama/b".into())];
    let done: Result<Connected, String> = Ok(Connected { said: "ollama is ready".into(), models });
    let to = token(&r);
    r.clear().msg(Msg::Job(to, Box::new(done)));
    assert!(r.screen().contains("1 ollama/a") && r.screen().contains("2 ollama/b"), "{}", r.screen());
    r.run("2");
    let set = SessionCommand::SetModel { model: ModelRef("ollama/b".into()) };
    assert_eq!(r.commands(), [&CommandBody::Session(set)]);
    assert!(!r.screen().contains("Set up a model"), "{}", r.screen());
}

#[test]
fn other_models_in_the_list_are_no_servers() {
    let mut r = Robot::new(80, 24);
    r.push(Box::new(FirstRun::default()));
    found(&mut r, "built in", "demo/demo");
    assert!(!r.screen().contains("4 "), "{}", r.screen());
}

#[test]
fn a_refusal_is_shown_whole_and_the_way_back_is_open() {
    let mut r = opened();
    r.run("1; 1; paste sk-wrong; enter");
    assert!(r.screen().contains("Testing the key"), "{}", r.screen());
    let why = "anthropic does not take this key, so it is not kept: invalid x-api-key. Look whether it was copied whole.";
    let to = token(&r);
    let refused: Result<Connected, String> = Err(why.into());
    r.msg(Msg::Job(to, Box::new(refused)));
    let text = r.screen().replace(['\n', '│'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("copied whole") && text.contains("1 Paste a key"), "{}", r.screen());
}

/// Settings that are to be kept.
fn kept(r: &Robot) -> Vec<(String, serde_json::Value)> {
    let setting = |t: &Task| match t {
        Task::SaveSetting { key, value: SettingEdit::Value(value) } => Some((key.clone(), value.clone())),
        _ => None,
    };
    r.tasks.iter().filter_map(setting).collect()
}

fn taken(r: &mut Robot, model: &str) {
    let model = ModelRef(model.into());
    r.event(EventBody::State(tiller_protocol::event::StateEvent::ModelChanged { model, window: None }));
}

#[test]
fn the_model_is_kept_for_later_sessions_once_it_is_in_use() {
    let mut r = opened();
    r.clear().run("3");
    assert!(kept(&r).is_empty(), "the engine has not taken it yet");
    taken(&mut r, "other/one");
    assert!(kept(&r).is_empty(), "another one was not asked for");
    taken(&mut r, "demo/demo");
    assert_eq!(kept(&r), [("model".to_owned(), "demo/demo".into())]);
    taken(&mut r, "other/one");
    assert_eq!(kept(&r).len(), 1, "what comes later is a choice for one session");
    // With a key the engine takes a model by itself; it may have done so already.
    for before in [true, false] {
        let mut r = opened();
        r.run("1; 1; paste sk-right; enter");
        let to = token(&r);
        if before {
            taken(&mut r, "anthropic/a");
        }
        let done: Result<Connected, String> = Ok(Connected { said: "it works".into(), models: Vec::new() });
        r.clear().msg(Msg::Job(to, Box::new(done)));
        if !before {
            taken(&mut r, "anthropic/a");
        }
        assert_eq!(kept(&r), [("model".to_owned(), "anthropic/a".into())], "{before}");
    }
}

#[test]
fn words_typed_or_pasted_into_it_go_to_the_composer() {
    let mut r = opened();
    r.clear().run("type , jq");
    assert!(!r.screen().contains("Set up a model"), "{}", r.screen());
    assert!(r.screen().contains("my first prompt, jq"), "{}", r.screen());
    let mut r = opened();
    r.run("paste  and two words");
    assert!(r.screen().contains("my first prompt and two words"), "{}", r.screen());
    // One word may be a key: it is not shown.
    let mut r = opened();
    r.run("paste sk-secret");
    assert!(
        r.screen().contains("Choose what it is first") && !r.screen().contains("sk-secret"),
        "{}",
        r.screen()
    );
}

#[test]
fn what_is_typed_just_as_it_comes_is_no_answer() {
    let mut r = Robot::new(80, 24);
    r.app.questions.first_run = true;
    r.app.model.engine.ready = true;
    r.run("wait 0");
    assert!(r.screen().contains("Set up a model"), "{}", r.screen());
    r.clear().run("type 3 files");
    assert!(r.commands().is_empty() && r.screen().contains("3 files"), "{}", r.screen());
    // Seen for a moment, a digit is an answer.
    let mut r = Robot::new(80, 24);
    r.app.questions.first_run = true;
    r.app.model.engine.ready = true;
    r.run("wait 0; wait 401").clear().run("3");
    assert_eq!(r.commands().len(), 1);
}

#[test]
fn an_agent_program_of_this_machine_can_be_given_what_is_typed() {
    let mut r = Robot::new(80, 24);
    r.app.model.environment.found_agents = vec!["claude".into(), "codex".into()];
    r.run("type mend it").push(Box::new(FirstRun::default()));
    assert!(r.screen().contains("4 Use claude"), "{}", r.screen());
    r.clear().run("5");
    assert!(!r.screen().contains("Set up a model"), "{}", r.screen());
    assert!(r.screen().contains("/spawn @codex mend it"), "{}", r.screen());
    assert!(r.commands().is_empty(), "the person sends it");
}

#[test]
fn a_url_without_its_scheme_gets_one() {
    for (typed, url) in [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("models.example.com/v1", "https://models.example.com/v1"),
        ("http://models.example.com", "http://models.example.com"),
    ] {
        assert_eq!(with_scheme(typed), url);
    }
}
