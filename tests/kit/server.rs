//! The server: threads, sockets, HTTP/1.1 by hand.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::reply::{Framing, Reply, Step};

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    /// With the query, for instance `/v1/messages`.
    pub path: String,
    /// In order, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Since the server started.
    pub at: Duration,
}

impl Recorded {
    /// The first header of this name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The body as JSON; `Null` when it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

type Handler = Box<dyn FnMut(&Recorded, usize) -> Reply + Send>;

enum Plan {
    Script(VecDeque<Reply>),
    Handler(Handler),
}

struct State {
    plan: Plan,
    requests: Vec<Recorded>,
    overrun: usize,
    /// Answers that were sent to their last step.
    finished: usize,
    /// Clones of live sockets, so that a drop can close them.
    live: Vec<TcpStream>,
    connections: usize,
    stop: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    start: Instant,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `time` or until the server is stopped. False: stopped.
    fn pause(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut state = self.lock();
        while !state.stop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }
}

/// A scripted HTTP/1.1 server on loopback. See the crate's front page.
pub struct ScriptServer {
    shared: Arc<Shared>,
    addr: SocketAddr,
    accept: Option<JoinHandle<()>>,
}

impl ScriptServer {
    /// Answers requests with `replies`, in order of arrival. More can be added with [`Self::push`].
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::run(Plan::Script(replies.into_iter().collect()))
    }

    /// Answers each request with the result of `handler`, which gets the request and its number from 0. For servers
    /// whose answer depends on the request.
    pub fn with(handler: impl FnMut(&Recorded, usize) -> Reply + Send + 'static) -> Self {
        Self::run(Plan::Handler(Box::new(handler)))
    }

    fn run(plan: Plan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let addr = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                plan,
                requests: Vec::new(),
                overrun: 0,
                finished: 0,
                live: Vec::new(),
                connections: 0,
                stop: false,
            }),
            changed: Condvar::new(),
            start: Instant::now(),
        });
        let of_thread = Arc::clone(&shared);
        let accept = std::thread::spawn(move || {
            let shared = of_thread;
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let mut state = shared.lock();
                if state.stop {
                    return;
                }
                state.connections += 1;
                if let Ok(copy) = stream.try_clone() {
                    state.live.push(copy);
                }
                drop(state);
                let shared = Arc::clone(&shared);
                // Ends when the client disconnects, or when drop shuts the socket down.
                std::thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let _ = serve(&shared, &stream);
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        Self { shared, addr, accept: Some(accept) }
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Adds an answer to the end of the script. Panics on a server made by [`Self::with`].
    pub fn push(&self, reply: Reply) {
        match &mut self.shared.lock().plan {
            Plan::Script(replies) => replies.push_back(reply),
            Plan::Handler(_) => panic!("this server has a handler, not a script"),
        }
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// The JSON bodies of every request so far.
    pub fn bodies(&self) -> Vec<Value> {
        self.requests().iter().map(Recorded::json).collect()
    }

    /// Drops the bodies of the requests so far, for runs that last: each request holds the whole conversation.
    pub fn forget(&self) {
        for request in &mut self.shared.lock().requests {
            request.body = Vec::new();
        }
    }

    /// Number of requests so far.
    pub fn count(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// Number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// Number of requests after the end of the script.
    pub fn overrun(&self) -> usize {
        self.shared.lock().overrun
    }

    /// Number of scripted answers that were not used yet.
    pub fn left(&self) -> usize {
        match &self.shared.lock().plan {
            Plan::Script(replies) => replies.len(),
            Plan::Handler(_) => 0,
        }
    }

    /// Waits until `n` requests have arrived, and returns them. Panics after `limit`.
    pub fn wait_for(&self, n: usize, limit: Duration) -> Vec<Recorded> {
        self.wait(limit, |s| s.requests.len() >= n, &format!("{n} requests"));
        self.requests()
    }

    /// Waits until `n` answers were sent completely, or their clients were gone. Panics after `limit`.
    pub fn wait_finished(&self, n: usize, limit: Duration) {
        self.wait(limit, |s| s.finished >= n, &format!("{n} finished answers"));
    }

    fn wait(&self, limit: Duration, done: impl Fn(&State) -> bool, what: &str) {
        let end = Instant::now() + limit;
        let mut state = self.shared.lock();
        while !done(&state) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "waited {limit:?} for {what}; {} requests came, {} finished",
                state.requests.len(),
                state.finished
            );
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for ScriptServer {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.stop = true;
            for stream in state.live.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.shared.changed.notify_all();
        // Wakes the accepting thread, which then notices the stop.
        let _ = TcpStream::connect(self.addr);
        if let Some(thread) = self.accept.take() {
            let _ = thread.join();
        }
    }
}

/// Answers the requests of one connection until it closes.
fn serve(shared: &Shared, stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let Some(mut request) = read_request(&mut reader, stream)? else { return Ok(()) };
        request.at = shared.start.elapsed();
        let reply = {
            let mut state = shared.lock();
            let n = state.requests.len();
            state.requests.push(request.clone());
            let reply = match &mut state.plan {
                Plan::Script(replies) => replies.pop_front(),
                Plan::Handler(handler) => Some(handler(&request, n)),
            };
            if reply.is_none() {
                state.overrun += 1;
            }
            reply.unwrap_or_else(|| Reply::status(500).bytes("script is over"))
        };
        shared.changed.notify_all();
        let again = answer(shared, stream, &reply);
        shared.lock().finished += 1;
        shared.changed.notify_all();
        if !again? {
            return Ok(());
        }
    }
}

fn bad(text: &str) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, text)
}

fn read_request(
    reader: &mut BufReader<&TcpStream>,
    mut stream: &TcpStream,
) -> std::io::Result<Option<Recorded>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(bad("request line"));
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(bad("headers"));
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let find = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.to_ascii_lowercase());
    if find("expect").is_some_and(|v| v == "100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut body = Vec::new();
    if find("transfer-encoding").is_some_and(|v| v.contains("chunked")) {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(|_| bad("chunk size"))?;
            let mut piece = vec![0; size + 2];
            reader.read_exact(&mut piece)?;
            if size == 0 {
                break;
            }
            piece.truncate(size);
            body.extend(piece);
        }
    } else if let Some(length) = find("content-length").and_then(|v| v.parse::<usize>().ok()) {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    }
    Ok(Some(Recorded { method, path, headers, body, at: Duration::ZERO }))
}

/// Plays one answer. True: the connection can take another request.
fn answer(shared: &Shared, mut stream: &TcpStream, reply: &Reply) -> std::io::Result<bool> {
    if !reply.silent {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&match reply.framing {
            Framing::Chunked => "transfer-encoding: chunked\r\n\r\n".to_owned(),
            Framing::UntilClose => "connection: close\r\n\r\n".to_owned(),
            Framing::Length(n) => format!("content-length: {n}\r\n\r\n"),
        });
        stream.write_all(head.as_bytes())?;
    }
    let mut send = |bytes: &[u8]| -> std::io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if reply.framing == Framing::Chunked {
            let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
            framed.extend_from_slice(bytes);
            framed.extend_from_slice(b"\r\n");
            stream.write_all(&framed)
        } else {
            stream.write_all(bytes)
        }
    };
    for step in &reply.steps {
        match step {
            Step::Bytes(bytes) => send(bytes)?,
            Step::Hold(hold) => {
                while !hold.is_released() {
                    // Polls, since a hold does not know its servers.
                    if !shared.pause(Duration::from_millis(5)) {
                        return Ok(false);
                    }
                }
            }
            Step::Pause(time) => {
                if !shared.pause(*time) {
                    return Ok(false);
                }
            }
            Step::Repeat(bytes, time) => {
                while shared.pause(*time) {
                    send(bytes)?;
                }
                return Ok(false);
            }
            Step::Cut => return Ok(false),
            Step::Hang => {
                // A read returns when the client disconnects or drop shuts the socket down.
                let mut sink = [0; 64];
                while stream.read(&mut sink)? > 0 {}
                return Ok(false);
            }
        }
    }
    match reply.framing {
        Framing::Chunked => {
            stream.write_all(b"0\r\n\r\n")?;
            Ok(true)
        }
        Framing::UntilClose => Ok(false),
        Framing::Length(_) => Ok(true),
    }
}
