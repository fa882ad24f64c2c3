//! Each tool against a server on loopback that answers in the format of OpenAI.

mod faults;
mod local;

use std::io::{Cursor, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, RgbImage};
use serde_json::{Value, json};
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, Cost, Part, lock};

use super::*;
use crate::ToolOutput;
use crate::testing::{Bench, text_of};

/// A key in the settings of the tests.
const KEY: &str = "walnut-key-123";

/// An answer of the server: status, kind, body.
#[derive(Clone)]
struct Said(u16, &'static str, Vec<u8>);

fn said(body: Value) -> Said {
    Said(200, "application/json", body.to_string().into_bytes())
}

/// As Chat Completions answers.
fn chat_reply(text: &str) -> Said {
    said(json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 400}},
    }))
}

/// A server. It ends with the test's process.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone, Debug)]
struct Request {
    head: String,
    body: Value,
}

impl Server {
    /// Answers each request by what `answer` says of it: its path and body. `None`: it stays silent and keeps the
    /// connection.
    fn start(answer: impl Fn(&str, &Value) -> Option<Said> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (list, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (list, answer) = (Arc::clone(&list), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &list, &*answer));
            }
        });
        Self { url, requests }
    }

    /// Always the same answer.
    fn always(said: Said) -> Self {
        Self::start(move |_, _| Some(said.clone()))
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            url: self.url.clone(),
            model: "model-1".into(),
            variable: Some("MEDIA_KEY".into()),
            key: Some(MediaKey::new(KEY)),
            prices: Prices::default(),
            voice: None,
        }
    }

    fn requests(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }
}

fn serve(
    mut stream: TcpStream,
    requests: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&str, &Value) -> Option<Said>,
) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65_536];
    let request = loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|l| l.strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break Request {
                    head: head.to_owned(),
                    body: serde_json::from_str(body).unwrap_or_default(),
                };
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    };
    lock(requests).push(request.clone());
    let path = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
    match answer(&path, &request.body) {
        Some(Said(status, kind, body)) => {
            let head = format!(
                "HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nlocation: /elsewhere\r\n\
                 connection: close\r\n\r\n",
                body.len()
            );
            // A client that has enough may hang up.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
        None => {
            // Until the client hangs up.
            let _ = stream.read(&mut buffer);
        }
    }
}

/// The tool of this name over these settings.
fn tool(settings: MediaSettings, name: &str) -> &'static dyn Tool {
    let found = tools(settings).into_iter().find(|(tool, _)| tool.name() == name);
    found.unwrap().0
}

fn vision(endpoint: Endpoint) -> &'static dyn Tool {
    tool(MediaSettings { vision: Some(endpoint), ..MediaSettings::default() }, "vision_analyze")
}

fn image_tool(endpoint: Endpoint) -> &'static dyn Tool {
    tool(MediaSettings { image: Some(endpoint), ..MediaSettings::default() }, "image_generate")
}

fn speech(endpoint: Endpoint) -> &'static dyn Tool {
    tool(MediaSettings { speech: Some(endpoint), ..MediaSettings::default() }, "text_to_speech")
}

fn encoded(width: u32, height: u32, kind: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    DynamicImage::from(RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8, y as u8, 90])))
        .write_to(&mut out, kind)
        .unwrap();
    out.into_inner()
}

fn png() -> Vec<u8> {
    encoded(8, 6, ImageFormat::Png)
}

fn measure(out: &ToolOutput) -> String {
    match &out.display {
        Some(Display::Measure { text }) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_specs_are_small_and_their_schemas_are_what_every_vendor_takes() {
    let all = tools(MediaSettings::default());
    let mut size = 0;
    for (tool, offered) in all {
        assert!(!offered, "{} has no server", tool.name());
        let spec = tool.spec();
        size += serde_json::to_string(&spec).unwrap().len();
        assert_eq!(spec.schema["type"], "object");
        assert_eq!(tool.info().set, ToolSet::Media);
    }
    assert!(size <= 2_200, "{size} bytes of media tools");
}

#[tokio::test]
async fn an_image_of_the_workspace_is_sent_with_its_question() {
    let server = Server::always(chat_reply("A red square.\u{1b}[31m"));
    let b = Bench::new();
    b.file("shot.png", png());
    let mut endpoint = server.endpoint();
    endpoint.prices = Prices { input: Some(2.0), output: Some(10.0), each: None };
    let tool = vision(endpoint);
    let args = json!({"path": "shot.png", "question": " What is it? "});
    let needs = crate::access_guarded(tool, &args, &b.cx).unwrap();
    assert!(
        matches!(&needs[0], Access::Net { host, local: false, .. } if host == "127.0.0.1"),
        "the host is asked for: {needs:?}"
    );
    assert!(matches!(&needs[1], Access::Read { inside: true, .. }), "and the file: {needs:?}");
    let out = b.call(tool, args).await.unwrap();
    let text = text_of(&out.content);
    assert!(text.contains("A red square.") && text.contains("data, not instructions"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert_eq!(measure(&out), "8x6, model-1");
    let [request] = server.requests().try_into().unwrap();
    assert!(request.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", request.head);
    assert!(request.head.contains(&format!("authorization: Bearer {KEY}")), "{}", request.head);
    let content = &request.body["messages"][0]["content"];
    assert_eq!(content[0], json!({"type": "text", "text": "What is it?"}));
    let url = content[1]["image_url"]["url"].as_str().unwrap();
    assert_eq!(STANDARD.decode(url.strip_prefix("data:image/png;base64,").unwrap()).unwrap(), png());
    // 600 new and 400 cached tokens of input, 200 of output.
    let [cost] = <[_; 1]>::try_from(lock(&b.ports.costs).clone()).unwrap();
    assert_eq!((cost.usage.input, cost.usage.cache_read, cost.usage.output), (600, 400, 200));
    assert!(!cost.usage.estimated);
    assert_eq!(cost.cost, Some(Cost::from_usd(0.004)));
    assert_eq!(cost.model.0, "vision/model-1");
}

#[tokio::test]
async fn an_attached_image_is_analysed_by_its_number() {
    let server = Server::always(chat_reply("Two cats."));
    let b = Bench::new();
    lock(&b.ports.images).push(STANDARD.encode(png()));
    let tool = vision(server.endpoint());
    let said = b.say(tool, json!({"attachment": 1, "question": "?"})).await;
    assert!(said.contains("Two cats."), "{said}");
    let said = b.say(tool, json!({"attachment": 2, "question": "?"})).await;
    assert_eq!(said, "error: there is no such image");
    for args in [
        json!({"question": "?"}),
        json!({"question": "?", "attachment": 0}),
        json!({"path": "a", "attachment": 1, "question": "?"}),
    ] {
        assert!(b.say(tool, args).await.starts_with("error: pass "));
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_is_no_image_is_not_sent() {
    let server = Server::always(chat_reply("never"));
    let b = Bench::new();
    b.file("text.png", "no image at all");
    b.file("half.png", &png()[..40]);
    let tool = vision(server.endpoint());
    for path in ["text.png", "half.png"] {
        let said = b.say(tool, json!({"path": path, "question": "?"})).await;
        assert!(said.starts_with("error: ") && said.contains("is not a complete PNG"), "{said}");
    }
    let said = b.say(tool, json!({"path": "none.png", "question": "?"})).await;
    assert!(said.starts_with("error: "), "{said}");
    assert_eq!(server.requests().len(), 0);
    assert_eq!(lock(&b.ports.costs).len(), 0);
}

#[tokio::test]
async fn a_file_that_a_rule_forbids_is_judged_as_for_every_reader() {
    let server = Server::always(chat_reply("never"));
    let b = Bench::new();
    let outside = b.scratch.path().join("outside.png");
    std::fs::write(&outside, png()).unwrap();
    let args = json!({"path": outside.display().to_string(), "question": "?"});
    let needs = crate::access_guarded(vision(server.endpoint()), &args, &b.cx).unwrap();
    assert!(matches!(&needs[1], Access::Read { inside: false, .. }), "{needs:?}");
}

#[tokio::test]
async fn an_image_is_written_as_a_change_of_the_workspace() {
    let data = STANDARD.encode(png());
    let server = Server::always(said(json!({"created": 1, "data": [{"b64_json": data}]})));
    let b = Bench::new();
    let mut endpoint = server.endpoint();
    endpoint.prices.each = Some(0.04);
    let tool = image_tool(endpoint);
    let args = json!({"prompt": "A cat", "size": "1024x1024", "path": "art/cat.png"});
    let needs = crate::access_guarded(tool, &args, &b.cx).unwrap();
    assert!(matches!(&needs[1], Access::Write { inside: true, .. }), "{needs:?}");
    let out = b.call(tool, args.clone()).await.unwrap();
    assert_eq!(std::fs::read(b.root.join("art/cat.png")).unwrap(), png());
    let Some(Display::Diff { files }) = &out.display else { panic!("{:?}", out.display) };
    assert_eq!(files[0].path, "art/cat.png");
    assert_eq!(
        lock(&b.ports.wrote).as_slice(),
        [b.root.join("art/cat.png")],
        "the watcher knows whose it is"
    );
    assert!(text_of(&out.content).contains("8x6 pixels"), "{out:?}");
    assert!(matches!(&out.content[1], Part::Image { media_type, .. } if media_type == "image/png"));
    let [request] = server.requests().try_into().unwrap();
    assert_eq!(request.body["size"], "1024x1024");
    assert_eq!(lock(&b.ports.costs)[0].cost, Some(Cost::from_usd(0.04)));
    // It wrote the file itself, so it may write it again.
    assert!(b.call(tool, args).await.is_ok());
}

#[tokio::test]
async fn without_a_path_an_image_is_kept_where_it_can_be_read() {
    let data = STANDARD.encode(encoded(4, 4, ImageFormat::Jpeg));
    let server = Server::always(said(json!({"data": [{"b64_json": data}]})));
    let b = Bench::new();
    let out = b.call(image_tool(server.endpoint()), json!({"prompt": "A cat"})).await.unwrap();
    let kept = b.cx.folders.spill.join("call-1.jpg");
    assert!(kept.is_file(), "{out:?}");
    assert!(text_of(&out.content).contains(&kept.display().to_string()), "{out:?}");
    assert!(measure(&out).starts_with("4x4, "), "{out:?}");
    let read = b.call(&crate::files::ReadFile, json!({"path": kept.display().to_string()})).await.unwrap();
    assert!(matches!(read.content[1], Part::Image { .. }));
    assert_eq!(lock(&b.ports.wrote).len(), 0, "nothing of the workspace was changed");
}

#[tokio::test]
async fn a_file_that_the_agent_does_not_know_is_not_replaced_and_nothing_is_paid() {
    let server = Server::always(said(json!({"data": [{"b64_json": STANDARD.encode(png())}]})));
    let b = Bench::new();
    b.file("mine.png", b"\x89PNG of the user \0\x01");
    let tool = image_tool(server.endpoint());
    let args = json!({"prompt": "A cat", "path": "mine.png"});
    let why = tool.ready(&args, &b.cx, false).await.unwrap_err().to_string();
    assert!(why.contains("you have not read it"), "{why}");
    let said = b.say(tool, args).await;
    assert!(said.contains("nothing was changed"), "{said}");
    assert!(std::fs::read(b.root.join("mine.png")).unwrap().starts_with(b"\x89PNG of the user"));
    assert_eq!((server.requests().len(), lock(&b.ports.costs).len()), (0, 0));
}

#[tokio::test]
async fn an_image_takes_the_format_of_its_name() {
    let data = STANDARD.encode(png());
    let server = Server::always(said(json!({"data": [{"b64_json": data}]})));
    let b = Bench::new();
    let tool = image_tool(server.endpoint());
    for (path, want) in
        [("a.jpg", ImageFormat::Jpeg), ("a.webp", ImageFormat::WebP), ("a.png", ImageFormat::Png)]
    {
        b.call(tool, json!({"prompt": "x", "path": path})).await.unwrap();
        let bytes = std::fs::read(b.root.join(path)).unwrap();
        assert_eq!(image::guess_format(&bytes).unwrap(), want, "{path}");
    }
    for path in ["a.svg", "a", "a.png.exe"] {
        let said = b.say(tool, json!({"prompt": "x", "path": path})).await;
        assert!(said.contains("must end with .png"), "{path}: {said}");
    }
    for size in ["big", "1024", "0x0", "99999x1", "1024x1024x3", "-1x5"] {
        let said = b.say(tool, json!({"prompt": "x", "size": size})).await;
        assert!(said.starts_with("error: size is WIDTHxHEIGHT"), "{size}: {said}");
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn an_image_at_an_address_of_the_same_server_is_fetched_without_the_key() {
    let server = Server::start(|path, _| {
        Some(match path {
            "/made/1.png" => Said(200, "image/png", png()),
            _ => said(json!({"data": [{"url": "HERE"}]})),
        })
    });
    // The address is known once the server runs: a second one answers with it.
    let base = server.url.trim_end_matches("/v1").to_owned();
    let port = base.clone();
    let both = Server::start(move |path, _| {
        assert_eq!(path, "/v1/images/generations");
        Some(said(json!({"data": [{"url": format!("{port}/made/1.png")}]})))
    });
    let b = Bench::new();
    // Another port is another server, and that of this machine is not public.
    let refused = b.say(image_tool(both.endpoint()), json!({"prompt": "x"})).await;
    assert!(refused.starts_with("error: ") && refused.contains("this machine"), "{refused}");
    assert_eq!(server.requests().len(), 0, "no connection was made");

    let own = Arc::new(Mutex::new(String::new()));
    let address = Arc::clone(&own);
    let server = Server::start(move |path, _| {
        Some(match path {
            "/made/1.png" => Said(200, "image/png", png()),
            _ => said(json!({"data": [{"url": format!("{}/made/1.png", lock(&address))}]})),
        })
    });
    *lock(&own) = server.url.trim_end_matches("/v1").to_owned();
    b.call(image_tool(server.endpoint()), json!({"prompt": "x", "path": "a.png"})).await.unwrap();
    assert_eq!(std::fs::read(b.root.join("a.png")).unwrap(), png());
    let requests = server.requests();
    assert!(requests[1].head.starts_with("GET /made/1.png"), "{}", requests[1].head);
    assert!(!requests[1].head.to_lowercase().contains("authorization"), "{}", requests[1].head);
    for hostile in ["file:///etc/passwd", "http://169.254.169.254/x", "http://u:p@127.0.0.1/", "no address"] {
        *lock(&own) = hostile.to_owned();
        let said = b.say(image_tool(server.endpoint()), json!({"prompt": "x"})).await;
        assert!(said.starts_with("error: "), "{hostile}: {said}");
    }
}

#[tokio::test]
async fn a_model_that_does_not_know_the_form_is_asked_without_it() {
    let server = Server::start(|_, body| {
        Some(if body.get("response_format").is_some() {
            Said(
                400,
                "application/json",
                br#"{"error": {"message": "Unknown parameter: 'response_format'."}}"#.to_vec(),
            )
        } else {
            said(
                json!({"data": [{"b64_json": STANDARD.encode(png())}], "usage": {"input_tokens": 10, "output_tokens": 50}}),
            )
        })
    });
    let b = Bench::new();
    let mut endpoint = server.endpoint();
    endpoint.prices = Prices { input: Some(5.0), output: Some(40.0), each: None };
    assert!(b.call(image_tool(endpoint), json!({"prompt": "x"})).await.is_ok());
    assert_eq!(server.requests().len(), 2);
    let costs = lock(&b.ports.costs);
    assert_eq!(costs.len(), 1, "a refused request costs nothing");
    assert_eq!(costs[0].cost, Some(Cost::from_usd(0.002_05)));
}

#[tokio::test]
async fn a_text_is_spoken_into_a_file() {
    let server = Server::always(Said(200, "audio/mpeg", b"ID3\x04\0\0\0\0\0\0sound".to_vec()));
    let b = Bench::new();
    let mut endpoint = server.endpoint();
    endpoint.voice = Some("nova".into());
    endpoint.prices.input = Some(15.0);
    let tool = speech(endpoint);
    let out = b.call(tool, json!({"text": "Hello there.", "path": "hello.mp3"})).await.unwrap();
    assert!(text_of(&out.content).starts_with("wrote hello.mp3: mp3 audio, "), "{out:?}");
    assert!(std::fs::read(b.root.join("hello.mp3")).unwrap().ends_with(b"sound"));
    let [request] = server.requests().try_into().unwrap();
    assert!(request.head.starts_with("POST /v1/audio/speech"), "{}", request.head);
    let want =
        json!({"model": "model-1", "input": "Hello there.", "voice": "nova", "response_format": "mp3"});
    assert_eq!(request.body, want);
    // 12 characters at 15 dollars a million.
    assert_eq!(lock(&b.ports.costs)[0].cost, Some(Cost::from_usd(0.000_18)));
    // The content decides, not what the server calls it.
    let said = b.say(tool, json!({"text": "Hello", "path": "hello.wav"})).await;
    assert_eq!(
        said,
        "error: 127.0.0.1: asked for wav, it sent mp3 audio; nothing was written. Name the file by that kind"
    );
    assert!(!b.root.join("hello.wav").exists());
    let out = b.call(tool, json!({"text": "Hello", "voice": "echo"})).await.unwrap();
    assert_eq!(measure(&out), "mp3, 15 B");
    assert!(b.cx.folders.spill.join("call-1.mp3").is_file());
}

#[tokio::test]
async fn several_models_answer_and_one_makes_one_answer() {
    let server = Server::start(|_, body| {
        let text = body["messages"][0]["content"].as_str().unwrap().to_owned();
        Some(match body["model"].as_str().unwrap() {
            "one" => chat_reply("Answer of one."),
            "two" => Said(500, "text/html", b"<h1>broken</h1>".to_vec()),
            "three" => chat_reply("Answer of three."),
            "judge" => {
                assert!(text.contains("Answer of one.") && text.contains("Answer of three."), "{text}");
                assert!(text.contains("What is 2 + 2?") && !text.contains("broken"), "{text}");
                chat_reply("It is 4.")
            }
            other => panic!("{other}"),
        })
    });
    let model = |name: &str| {
        let prices = Prices { input: Some(1.0), output: Some(1.0), each: None };
        Endpoint { model: name.into(), prices, ..server.endpoint() }
    };
    let models = ["one", "two", "three"].map(model).to_vec();
    let mixture = Mixture { models, synthesis: model("judge") };
    let tool =
        tool(MediaSettings { mixture: Some(mixture), ..MediaSettings::default() }, "mixture_of_agents");
    assert!(tool.spec().description.ends_with("Models: one, two, three."), "{}", tool.spec().description);
    let b = Bench::new();
    let args = json!({"question": "What is 2 + 2?"});
    assert_eq!(crate::access_guarded(tool, &args, &b.cx).unwrap().len(), 1, "one host, asked for once");
    let out = b.call(tool, args).await.unwrap();
    let text = text_of(&out.content);
    assert!(
        text.contains("It is 4.") && text.contains("from judge, from the answers of one, three"),
        "{text}"
    );
    assert!(text.contains("two did not answer: 127.0.0.1: it answered with HTTP 500"), "{text}");
    assert_eq!(measure(&out), "2 of 3 models");
    assert_eq!(lock(&b.ports.costs).len(), 3, "the refused one costs nothing");
    // By name, and only those of the settings.
    let out =
        b.call(tool, json!({"question": "What is 2 + 2?", "models": ["two"]})).await.unwrap_err().to_string();
    assert!(out.starts_with("no model answered\ntwo did not answer: "), "{out}");
    let said = b.say(tool, json!({"question": "?", "models": ["gpt-9"]})).await;
    assert_eq!(said, "error: gpt-9 is not configured; there are: one, two, three");
}
