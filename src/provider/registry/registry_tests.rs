use std::time::Duration;

use tiller_protocol::Part;

use super::*;
use crate::codec::request::{ChatMessage, Request};

fn made(toml: &str, env: &[(&str, &str)]) -> Providers {
    let config: Config = toml::from_str(toml).unwrap();
    let env: BTreeMap<String, String> = env.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    build(&config, &ApiFormats::built_in(), &|name| env.get(name).cloned(), None, &crate::Redact::default())
}

fn names(p: &Providers) -> Vec<&str> {
    p.names().collect()
}

#[test]
fn the_environment_makes_built_in_names_ready() {
    let table = [
        ("ANTHROPIC_API_KEY", vec!["anthropic"]),
        ("OPENAI_API_KEY", vec!["openai", "openai-responses"]),
        ("GEMINI_API_KEY", vec!["gemini"]),
        ("OPENROUTER_API_KEY", vec!["openrouter"]),
        ("XAI_API_KEY", vec!["xai"]),
        ("GROQ_API_KEY", vec!["groq"]),
        ("DEEPSEEK_API_KEY", vec!["deepseek"]),
        ("OLLAMA_HOST", vec!["ollama"]),
    ];
    for (variable, want) in table {
        let p = made("", &[(variable, "x")]);
        let got: Vec<&str> = names(&p).into_iter().filter(|n| *n != "demo").collect();
        assert_eq!(got, want);
        let default = p.default_model().unwrap();
        assert!(want.contains(&default.provider()), "{default}");
    }
    let none = made("", &[("ANTHROPIC_API_KEY", " ")]);
    assert_eq!(none.default_model(), None);
    let listed = none.list().iter().find(|l| l.name == "anthropic").unwrap();
    assert_eq!(listed.unavailable.as_deref(), Some("needs ANTHROPIC_API_KEY"));
    let error = none.get("anthropic").err().unwrap();
    assert!(matches!(error, ProviderError::Auth(t) if t.contains("ANTHROPIC_API_KEY")));
    assert!(
        matches!(none.get("nope").err().unwrap(), ProviderError::Rejected(t) if t.contains("[providers.nope]"))
    );
}

#[test]
fn a_vendors_model_that_no_list_has_is_known_as_such() {
    let unlisted =
        |toml: &str, env: &[(&str, &str)], model: &str| made(toml, env).is_unlisted(&ModelRef(model.into()));
    for (model, want) in [
        ("anthropic/claud-opus-5-5", true),
        ("anthropic/claude-opus-5-5", false),
        ("openai/gtp-6-sol", true),
        ("openai/gpt-6-sol", false),
        ("ollama/anything", false),
        ("openrouter/of/anyone", false),
        ("demo/other", false),
        ("nowhere/claud", false),
    ] {
        assert_eq!(unlisted("", &[], model), want, "{model}");
    }
    let wrong = "anthropic/claud-opus-5-5";
    assert!(!unlisted("", &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")], wrong), "a server of one's own");
    let entry = "[providers.anthropic]\nkind = \"anthropic\"\n";
    assert!(unlisted(entry, &[], wrong));
    assert!(!unlisted(&format!("{entry}base_url = \"http://127.0.0.1:1\""), &[], wrong));
    assert!(!unlisted(
        &format!("{entry}[providers.anthropic.models.\"claud-*\"]\nwindow = 1000"),
        &[],
        wrong
    ));
}

#[test]
fn the_default_model_is_the_persons_then_the_first_ready_one() {
    let both = [("OPENAI_API_KEY", "x"), ("ANTHROPIC_API_KEY", "y")];
    assert_eq!(made("model = \"a/b\"", &both).default_model(), Some(ModelRef("a/b".into())));
    assert_eq!(made("[tiers]\nmain = \"c/d\"", &both).default_model(), Some(ModelRef("c/d".into())));
    assert_eq!(made("", &both).default_model().unwrap().provider(), "anthropic");
    assert_eq!(made("", &both[..1]).default_model().unwrap().provider(), "openai-responses");
    let custom = [("OPENAI_API_KEY", "x"), ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")];
    assert_eq!(made("", &custom).default_model().unwrap().provider(), "openai");
}

#[test]
fn the_configuration_overrides_and_adds() {
    let p = made(
        r#"
        [providers.anthropic]
        kind = "anthropic"
        api_key_env = "OTHER"
        [providers.mine]
        kind = "openai-chat"
        base_url = "http://127.0.0.1:5/v1"
        [providers.bad]
        kind = "openai-chat"
        base_url = "ftp://x"
        [providers.keyless]
        kind = "gemini"
        "#,
        &[("ANTHROPIC_API_KEY", "ignored, another variable is named")],
    );
    let why = |name: &str| p.list().iter().find(|l| l.name == name).unwrap().unavailable.clone();
    assert_eq!(why("anthropic").as_deref(), Some("needs OTHER"));
    assert_eq!(why("mine"), None, "a server of one's own needs no key");
    assert!(why("bad").unwrap().contains("http"));
    assert_eq!(why("keyless").as_deref(), Some("needs a key"));
}

#[test]
fn a_key_file_makes_names_ready() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.toml");
    key::save(&path, "openai", &Secret::new("k")).unwrap();
    let p =
        build(&Config::default(), &ApiFormats::built_in(), &|_| None, Some(&path), &crate::Redact::default());
    let got: Vec<&str> = names(&p).into_iter().filter(|n| *n != "demo").collect();
    assert_eq!(got, ["openai", "openai-responses"]);
}

#[test]
fn an_entered_key_is_used_rather_than_a_variable_that_nobody_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.toml");
    let config = |text: &str| -> Config { toml::from_str(text).unwrap() };
    let set =
        |name: &str| matches!(name, "ANTHROPIC_API_KEY" | "MINE").then(|| "from-the-environment".to_owned());
    let key = |text: &str| {
        let (http, table) = (Arc::default(), Arc::default());
        let maker = Maker {
            formats: &ApiFormats::built_in(),
            var: &set,
            key_file: Some(&path),
            http,
            table,
            redact: &crate::Redact::default(),
        };
        let named = config(text).providers.get("anthropic").and_then(|e| e.api_key_env.clone());
        match maker.find_key(
            "anthropic",
            Some(named.as_deref().unwrap_or("ANTHROPIC_API_KEY")),
            named.is_some(),
        ) {
            Ok(Key::Value(_)) => "variable",
            Ok(Key::File { .. }) => "file",
            _ => "none",
        }
    };
    let named = "[providers.anthropic]\nkind = \"anthropic\"\napi_key_env = \"MINE\"\n";
    assert_eq!((key(""), key(named)), ("variable", "variable"));
    key::save(&path, "anthropic", &Secret::new("entered-by-hand")).unwrap();
    assert_eq!(key(""), "file", "what was entered last counts");
    assert_eq!(key(named), "variable", "what the settings name is used");
    let over = |text: &str, name: &str| entered(&config(text), &set, name);
    assert_eq!(over("", "anthropic"), EnteredKey::Over("ANTHROPIC_API_KEY".into()));
    assert_eq!(over("", "openai"), EnteredKey::Used);
    assert!(matches!(over(named, "anthropic"), EnteredKey::Unused(why) if why.contains("MINE")));
    let command = "[providers.anthropic]\nkind = \"anthropic\"\napi_key_command = \"x\"\n";
    assert!(matches!(over(command, "anthropic"), EnteredKey::Unused(why) if why.contains("api_key_command")));
    assert!(matches!(over("", "nobody"), EnteredKey::Unused(_)));
}

#[test]
fn keys_are_found_by_the_names_of_their_variables() {
    let env = |name: &str| {
        matches!(name, "XAI_API_KEY" | "GOOGLE_API_KEY" | "MISTRAL_API_KEY").then(|| "k".to_owned())
    };
    let all = found(&Config::default(), &env);
    let names: Vec<(&str, &str, bool)> =
        all.iter().map(|f| (f.variable.as_str(), f.provider.as_str(), f.model.is_some())).collect();
    let want = [
        ("XAI_API_KEY", "xai", true),
        ("GOOGLE_API_KEY", "gemini", false),
        ("MISTRAL_API_KEY", "mistral", false),
    ];
    assert_eq!(names, want);
    // Nothing of it is used unasked.
    let p = build(&Config::default(), &ApiFormats::built_in(), &env, None, &crate::Redact::default());
    assert!(p.get("mistral").is_err() && p.get("gemini").is_err());
    assert!(found(&Config::default(), &|_| None).is_empty());
}

#[tokio::test]
async fn a_key_is_tried_where_only_a_right_one_may_read() {
    let server = tiller_testkit::ScriptServer::with(|r, _| match r.path.as_str() {
        "/v1/models" => tiller_testkit::Reply::status(200).json(&serde_json::json!({"data": []})),
        _ => tiller_testkit::Reply::status(401).json(&serde_json::json!({"error": {"message": "no"}})),
    });
    let base = format!("{}/v1", server.url());
    let open = |dialect: Dialect| WireProvider {
        name: "p".into(),
        wire: Box::new(OpenAiChat::new(dialect, false)),
        base: base.clone(),
        key: Key::Value(Secret::new("wrong")),
        headers: Vec::new(),
        timeouts: Timeouts::default(),
        table: Arc::default(),
        http: Arc::default(),
        learned: None,
    };
    assert_eq!(open(Dialect::Compatible).check().await, Ok(()));
    assert!(matches!(open(Dialect::OpenRouter).check().await, Err(ProviderError::Auth(_))));
    assert_eq!(server.requests()[1].path, "/v1/key");
}

#[test]
fn ollama_host_in_all_its_forms() {
    for (text, want) in [
        ("localhost", "http://localhost:11434/v1"),
        (":8000", "http://127.0.0.1:8000/v1"),
        ("0.0.0.0:99", "http://127.0.0.1:99/v1"),
        ("http://box:5/", "http://box:5/v1"),
        ("https://box", "https://box:443/v1"),
        ("[::1]:7", "http://[::1]:7/v1"),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
    ] {
        assert_eq!(ollama(text), want, "{text}");
    }
}

#[tokio::test]
async fn probing_only_connects() {
    let server = tiller_testkit::ScriptServer::start([]);
    let open = Local { name: "vllm", title: "vLLM", port: server.addr().port() };
    // Nothing listens at the port of a client, and no other test gets it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let closed = Local { name: "ollama", title: "Ollama", port: client.local_addr().unwrap().port() };
    let found = probe_ports(&[closed, open.clone()], Duration::from_secs(60)).await;
    assert_eq!(found, std::slice::from_ref(&open));
    assert_eq!(server.count(), 0, "nothing is asked before the person's yes");

    let mut p = Providers::default();
    server.push(tiller_testkit::Reply::status(200).json(&serde_json::json!({"data": [{"id": "m"}]})));
    p.accept(&open);
    assert_eq!(p.get("vllm").unwrap().models().await.unwrap(), ["m"]);
    assert_eq!(server.requests()[0].header("authorization"), None);
}

/// The base64 text of a PNG of this many pixels a side and about this many bytes.
fn png(side: u32, bytes: usize) -> String {
    let mut head = vec![0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13];
    head.extend(b"IHDR");
    head.extend(side.to_be_bytes());
    head.extend(side.to_be_bytes());
    head.extend([8, 6, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.truncate(30);
    head.resize(bytes.max(30) / 3 * 3, 0);
    base64(&head)
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(LETTERS[bits >> shift & 63]))
    };
    bytes.chunks(3).flat_map(group).collect()
}

/// Every format, and every server of the chat format, caps the number of images, their total size, and the size of each one; the
/// newest stay, and a text stands in the place of the others.
#[test]
fn images_are_capped_for_every_format_and_server() {
    // kind, address, images, MB of all, MB of one
    let table = [
        ("anthropic", "http://127.0.0.1:9", 100, 24, 5),
        ("openai-responses", "http://127.0.0.1:9/v1", 500, 40, 20),
        ("gemini", "http://127.0.0.1:9", 3_000, 15, 15),
        ("openai-chat", "https://api.openai.com/v1", 500, 40, 20),
        ("openai-chat", "https://openrouter.ai/api/v1", 100, 24, 5),
        ("openai-chat", "https://api.mistral.ai/v1", 8, 40, 10),
        ("openai-chat", "https://api.groq.com/openai/v1", 5, 4, 4),
        ("openai-chat", "http://127.0.0.1:8000/v1", 30, 10, 5),
        ("openai-chat", "https://api.example.com/v1", 30, 10, 5),
    ];
    for (kind, base, count, total, single) in table {
        let toml = format!("[providers.x]\nkind = \"{kind}\"\nbase_url = \"{base}\"\napi_key_env = \"K\"");
        let provider = made(&toml, &[("K", "k")]).get("x").unwrap();
        let body = |images: Vec<String>| {
            let last = images.last().unwrap().clone();
            let part = |data| Part::Image { media_type: "image/png".into(), data };
            let content = images.into_iter().map(part).collect();
            let request = Request {
                model: "m".into(),
                system: "s".into(),
                tools: Vec::new().into(),
                messages: vec![ChatMessage::User { content }].into(),
                max_output: None,
                effort: crate::Effort::Default,
                cache_key: String::new(),
            };
            let text = String::from_utf8(provider.body(&request)).unwrap();
            let (left, kept) = (text.matches("[image left out").count(), text.contains(&last));
            (text.len(), left, kept)
        };
        let small = |n: usize| (0..n).map(|n| png(8, 30 + 3 * (n % 9))).collect::<Vec<_>>();
        let (_, left, kept) = body(small(count + 1));
        assert!((1..=10).contains(&left) && kept, "{base} {kind}: {left} of {} left out", count + 1);
        assert_eq!(body(small(count)).1, 0, "{base} {kind}");
        let megabyte = || png(8, 770_000);
        let (size, left, kept) = body((0..total + 2).map(|_| megabyte()).collect());
        assert!(left > 0 && kept, "{base} {kind}");
        assert!(size <= (total << 20) + 20_000, "{base} {kind}: {size} bytes");
        let (size, left, _) = body(vec![png(8, (single << 20) * 3 / 4 + 999)]);
        assert!(left == 1 && size < 20_000, "{base} {kind}: {size}");
    }
}
