//! A web server of this machine for one test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use tiller_protocol::lock;

/// What a path answers.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Html(String),
    /// Whole answer, with its head.
    Raw(Vec<u8>),
    /// The beginning of an answer that does not go on.
    Slow(String),
}

pub(super) struct Site {
    port: u16,
    /// Request lines, in order.
    pub(super) seen: Arc<Mutex<Vec<String>>>,
    /// Bodies of requests, in order.
    pub(super) bodies: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Serves pages by path; the first one that the requested path begins with.
    pub(super) fn new(pages: &[(&str, Answer)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let pages: Vec<(String, Answer)> = pages.iter().map(|(p, a)| ((*p).to_owned(), a.clone())).collect();
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (pages, log, sent) = (Arc::new(pages), Arc::clone(&seen), Arc::clone(&bodies));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), pages, log, sent) =
                    (stream, Arc::clone(&pages), Arc::clone(&log), Arc::clone(&sent))
                else {
                    break;
                };
                std::thread::spawn(move || serve(&stream, &pages, &log, &sent));
            }
        });
        Self { port, seen, bodies }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

/// A page with this body.
pub(super) fn html(body: &str) -> Answer {
    Answer::Html(format!("<!doctype html><title>Test page</title><body>{body}"))
}

fn serve(
    mut stream: &TcpStream,
    pages: &[(String, Answer)],
    log: &Mutex<Vec<String>>,
    sent: &Mutex<Vec<String>>,
) {
    let mut reader = BufReader::new(stream);
    if reader.fill_buf().is_ok_and(|bytes| bytes.first() == Some(&0x16)) {
        lock(log).push("TLS".into());
        return;
    }
    let mut first = Vec::new();
    if reader.read_until(b'\n', &mut first).is_err() {
        return;
    }
    let first = String::from_utf8_lossy(&first);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    if length > 0 {
        lock(sent).push(String::from_utf8_lossy(&body).into_owned());
    }
    let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
    lock(log).push(first.trim().to_owned());
    let answer = pages.iter().find(|(p, _)| path == *p || p != "/" && path.starts_with(p.as_str()));
    let _ = match answer.map(|(_, a)| a) {
        None => stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\nconnection: close\r\n\r\nnot there"),
        Some(Answer::Raw(bytes)) => stream.write_all(bytes),
        Some(Answer::Slow(text)) => {
            let _ = stream.write_all(text.as_bytes());
            // Until the browser closes the connection.
            let _ = stream.read(&mut [0; 1]);
            Ok(())
        }
        Some(Answer::Html(text)) => stream.write_all(
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                text.len()
            )
            .as_bytes(),
        ),
    };
}
