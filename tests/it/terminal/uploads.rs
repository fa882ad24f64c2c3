//! A page gets a file of the workspace when the person has said so, and only then. Needs a Chromium.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, TIMEOUT};
use crate::scenario::Model;
use crate::screen::{answer, asked, idle, quit, say};

const FORM: &str = "<!doctype html><title>Reports</title><form action=/sent method=post enctype=multipart/form-data>\
    <input type=file name=report aria-label=Report><button>Send</button></form>";
const SECRET: &str = "the words of the report";

/// The names by which the program looks for a browser.
const BROWSERS: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "microsoft-edge-stable",
    "brave-browser",
];

/// False, and says so, where there is no browser.
fn browser() -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).any(|folder| BROWSERS.iter().any(|name| folder.join(name).is_file()));
    if !found {
        eprintln!("skipped: no Chromium is installed");
    }
    found
}

/// A server with a form; the receiver gets each body that was sent to it.
fn site() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tell = tell.clone();
            std::thread::spawn(move || serve(&stream, &tell));
        }
    });
    (port, told)
}

/// Answers one request. A browser also connects without one.
fn serve(mut stream: &TcpStream, tell: &Sender<String>) {
    let mut reader = BufReader::new(stream);
    let (mut post, mut length) = (false, 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim().to_ascii_lowercase();
        post |= line.starts_with("post ");
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    if post {
        let _ = tell.send(String::from_utf8_lossy(&body).into_owned());
    }
    let page = if post { "<!doctype html><title>Reports</title><h1>It was sent</h1>" } else { FORM };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        page.len()
    );
    // The browser may be gone.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page.as_bytes()));
}

/// The sentence of a question that begins with this word, without its frame.
fn sentence(screen: &str, first: &str) -> String {
    let from = screen.rfind(first).unwrap_or_else(|| panic!("no {first:?}:\n{screen}"));
    let lines = screen[from..].lines().map(|line| line.trim_matches(['▌', '│', ' ']));
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn upload(key: &str, given: bool) {
    if !browser() {
        return;
    }
    let (port, told) = site();
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    place.file("report.txt", SECRET);
    let url = format!("http://127.0.0.1:{port}/");
    model.push(Script::new().call("c1", "browser_navigate", json!({ "url": url })));
    let upload = json!({"ref": "e1", "paths": ["report.txt"]});
    let upload = json!({"name": "browser_upload", "arguments": upload});
    model.push(Script::new().call("c2", "use_tool", upload));
    model.push(Script::new().call("c3", "browser_click", json!({"ref": "e2"})));
    model.push(Script::new().text("That was all."));
    let mut term = place.term(&[], 118, 32);
    term.wait_text("Type what you want done");
    say(&mut term, "send the report");
    // A rule for the pages of this host does not cover files.
    answer(&mut term, "Fetches", "s");
    let question = sentence(&asked(&mut term, "Sends"), "Sends");
    let path = place.work.join("report.txt");
    assert!(names(&question, &path) && question.contains("to 127.0.0.1"), "{question}");
    assert!(told.try_recv().is_err(), "nothing was sent yet");
    answer(&mut term, "Sends", key);
    let body = told.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(body.contains("filename=\"report.txt\"") && body.contains(SECRET), given, "{body}");
    assert_eq!(body.contains(SECRET), given, "{body}");
    term.wait_text("That was all.");
    assert!(model.last().contains("It was sent"), "{}", model.last());
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

/// True for a question that names a file. A long path is broken into lines.
fn names(question: &str, path: &Path) -> bool {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    bare(question).contains(&bare(&path.display().to_string()))
}

#[test]
fn a_file_goes_to_a_page_when_the_person_says_so() {
    upload("y", true);
}

#[test]
fn a_file_goes_to_no_page_when_the_person_says_no() {
    upload("n", false);
}
