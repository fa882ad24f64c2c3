use tiller_config::Sources;
use tiller_testkit::{Reply, ScriptServer};

use super::*;

fn connector(config: &str) -> (tempfile::TempDir, Connector) {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("config.toml");
    std::fs::write(&file, config).unwrap();
    let sources = Sources {
        user: Some(file.clone()),
        kinds: tiller_provider::ApiFormats::built_in().kinds(),
        ..Sources::default()
    };
    let env = |name: &str| (name == "MISTRAL_API_KEY").then(|| "a-key-of-mine".to_owned());
    let shared = SharedSettings::of(Arc::new(env), tmp.path().join("credentials.toml"), sources);
    (tmp, Connector { shared, link: Arc::default(), file })
}

#[test]
fn a_server_gets_its_usual_name_or_a_free_one() {
    let (_tmp, c) = connector("[providers.server]\nkind = \"openai-chat\"\nbase_url = \"http://box:1/v1\"\n");
    for (url, name) in [
        ("http://localhost:11434", "ollama"),
        ("http://127.0.0.1:1234/v1/", "lmstudio"),
        ("http://localhost:114345/v1", "server2"),
        ("http://box:1/v1", "server"),
        ("http://box:2/v1", "server2"),
    ] {
        assert_eq!(c.place(url).0, name, "{url}");
    }
    assert_eq!(c.place("http://box:2/v1/").1, "http://box:2/v1");
}

#[test]
fn what_does_not_answer_is_told_and_not_kept() {
    let (_tmp, c) = connector("");
    // Nothing listens at the port of a client, and no other test gets it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let closed = client.local_addr().unwrap();
    let why = c.connect(Connect::Server { url: format!("http://{closed}/v1") }).unwrap_err();
    assert!(why.contains("Is the server running?"), "{why}");
    let empty = ScriptServer::start([Reply::status(200).json(&serde_json::json!({"data": []}))]);
    let why = c.connect(Connect::Server { url: format!("{}/v1", empty.url()) }).unwrap_err();
    assert!(why.contains("has no model yet"), "{why}");
    let why = c.connect(Connect::Variable { variable: "PATH".into() }).unwrap_err();
    assert!(why.contains("not a known key variable"), "{why}");
    assert_eq!(std::fs::read_to_string(&c.file).unwrap(), "");
}

#[test]
fn only_the_name_of_a_variable_is_written() {
    let (_tmp, c) = connector("");
    let offered = OFFERED.into_iter().find(|o| o.variable == "MISTRAL_API_KEY").unwrap();
    assert_eq!(c.shared.found_keys()[0].variable, offered.variable);
    let values = [("kind", offered.kind), ("base_url", offered.base), ("api_key_env", offered.variable)];
    write_provider(&c.file, &c.shared.kinds(), offered.name, &values).unwrap();
    let fresh = c.shared.fresh().unwrap_or_else(|n| panic!("{}", n.message));
    assert!(fresh.providers.get("mistral").is_ok());
    let text = std::fs::read_to_string(&c.file).unwrap();
    assert!(text.contains("MISTRAL_API_KEY") && !text.contains("a-key-of-mine"), "{text}");
    // It is set up now, so it is not offered any more.
    assert_eq!(c.shared.found_keys(), []);
}
