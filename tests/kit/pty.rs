//! Simulates a person at a terminal: runs a program on a real PTY, types keys, and reads the screen through an
//! independent VT emulator. Waits for output, never for a fixed time.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Longest wait before the test fails. Generous: CI machines are slow and busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

/// Time of a person between two keys, at least, and between the last letter and Enter.
const PACE: Duration = Duration::from_millis(40);
const MOMENT: Duration = Duration::from_millis(130);
/// Time after an Escape in which the next key would be an Alt key, and more.
const ESCAPE: Duration = Duration::from_millis(300);

struct Seen {
    parser: vt100::Parser,
    raw: Vec<u8>,
    /// Bytes of `raw` that the emulator has got: those of whole frames.
    drawn: usize,
    /// When each piece of `raw` was read, and the length of `raw` then.
    marks: Vec<(Instant, usize)>,
    closed: bool,
}

impl Seen {
    /// Gives the emulator what has come, without a frame that has only begun: a person sees no half of it either.
    fn draw(&mut self) {
        let new = &self.raw[self.drawn..];
        let length = if self.closed { new.len() } else { whole(new) };
        self.parser.process(&new[..length]);
        self.drawn += length;
    }
}

/// Length of the bytes before a synchronised update (mode 2026) that has not ended.
fn whole(bytes: &[u8]) -> usize {
    let last = |what: &[u8]| memchr::memmem::rfind(bytes, what);
    match (last(b"\x1b[?2026h"), last(b"\x1b[?2026l")) {
        (Some(begun), ended) if ended.is_none_or(|ended| ended < begun) => begun,
        _ => bytes.len(),
    }
}

/// Limits of waiting: for typed bytes to be read, for the screen's thread to sleep, for anything to happen. The first two waits
/// end by themselves; a program that is stopped or replaced reads nothing.
const UNREAD: Duration = Duration::from_secs(10);
const BUSY: Duration = Duration::from_secs(5);
const SILENT: Duration = Duration::from_millis(500);
/// Time between two looks at it.
const LOOK: Duration = Duration::from_millis(5);

/// Progress of the program.
struct Progress {
    /// Bytes that it has written.
    written: usize,
    /// It has closed the terminal.
    closed: bool,
    /// `None`: it cannot be seen.
    thread: Option<MainThread>,
    /// Typed bytes that it has not read.
    unread: u64,
}

/// The thread with which a process began: in the workbench that of the screen.
struct MainThread {
    /// It runs, or waits for a processor or a disk.
    works: bool,
    /// Count of the times that it has begun to wait.
    switches: u64,
}

impl MainThread {
    fn of(process: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{process}/task/{process}/status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let works = field("State:")?.starts_with(['R', 'D']);
        Some(Self { works, switches: field("voluntary_ctxt_switches:")?.parse().ok()? })
    }
}

/// Pixels of a cell, as the terminal tells the system.
const CELL: (u16, u16) = (8, 16);

/// A program on a PTY.
pub struct Term {
    child: Box<dyn Child + Send + Sync>,
    /// When what was typed last had been taken by the program.
    typed: Option<Instant>,
    /// It ended with a lone Escape.
    escaped: bool,
    /// The program's end of the terminal.
    path: Option<PathBuf>,
    /// `None`: the terminal was closed.
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Box<dyn Write + Send>,
    /// Ends with the program, or after [`Self::hang_up`].
    reader: Option<JoinHandle<()>>,
    hung_up: Arc<AtomicBool>,
    /// The terminal's settings before the program started.
    before: String,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    /// Locked by the reader between two reads, and by a guard of [`Self::stall`].
    gate: Arc<Mutex<()>>,
}

impl Term {
    /// Starts `program` with exactly this environment (nothing is inherited).
    ///
    /// # Panics
    /// When there is no PTY or the program cannot be started.
    pub fn spawn(
        program: &Path,
        args: &[&str],
        env: &[(String, String)],
        dir: &Path,
        cols: u16,
        rows: u16,
    ) -> Self {
        let size = PtySize { rows, cols, pixel_width: cols * CELL.0, pixel_height: rows * CELL.1 };
        let pair = native_pty_system().openpty(size).expect("a PTY");
        let mut cmd = CommandBuilder::new(program);
        cmd.env_clear();
        for (k, v) in env {
            cmd.env(k, v);
        }
        cmd.args(args);
        cmd.cwd(dir);
        let before = settings(&*pair.master);
        let child = pair.slave.spawn_command(cmd).expect("the program starts");
        drop(pair.slave);
        let writer = pair.master.take_writer().expect("a writer");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let seen = Arc::new((
            Mutex::new(Seen {
                parser: vt100::Parser::new(cells(rows), cells(cols), 0),
                raw: Vec::new(),
                drawn: 0,
                marks: Vec::new(),
                closed: false,
            }),
            Condvar::new(),
        ));
        let theirs = Arc::clone(&seen);
        let gate = Arc::new(Mutex::new(()));
        let their_gate = Arc::clone(&gate);
        let hung_up = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&hung_up);
        let reader = std::thread::spawn(move || {
            let mut buf = vec![0; 64 * 1024];
            loop {
                drop(their_gate.lock().unwrap_or_else(PoisonError::into_inner));
                let n = reader.read(&mut buf).unwrap_or(0);
                let n = if over.load(Ordering::SeqCst) { 0 } else { n };
                let at = Instant::now();
                let mut s = theirs.0.lock().unwrap_or_else(PoisonError::into_inner);
                if n == 0 {
                    s.closed = true;
                } else {
                    s.raw.extend_from_slice(&buf[..n]);
                    let length = s.raw.len();
                    s.marks.push((at, length));
                }
                s.draw();
                theirs.1.notify_all();
                if n == 0 {
                    return;
                }
            }
        });
        Self {
            child,
            typed: None,
            escaped: false,
            path: pair.master.tty_name(),
            master: Some(pair.master),
            writer,
            reader: Some(reader),
            hung_up,
            before,
            seen,
            gate,
        }
    }

    /// Types. `\r` is Enter, `\x1b` Escape, `\x03` Ctrl-C. As a person does: each key comes a moment after the program has
    /// taken the one before it, and so does an Enter or Tab at the end. Directly behind the text it would belong to a paste,
    /// and a key directly behind an Escape would be an Alt key. Returns when the program has taken all of it, which does not
    /// mean that its answer is drawn.
    pub fn keys(&mut self, keys: &str) {
        let last = keys.len() - usize::from(keys.ends_with(['\r', '\t']));
        let (words, last) = keys.split_at(last);
        for (part, pause) in [(words, PACE), (last, MOMENT)] {
            if !part.is_empty() {
                self.hold(if self.escaped { ESCAPE } else { pause });
                let screen = self.host();
                let before = self.progress(screen);
                self.bytes(part.as_bytes());
                self.taken(&before, screen);
                self.typed = Some(Instant::now());
                self.escaped = part.ends_with('\x1b');
            }
        }
    }

    /// Waits until so much time has passed since something was typed last.
    fn hold(&self, pause: Duration) {
        let until = self.typed.map(|at| at + pause);
        // Parking may end early.
        while let Some(rest) = until.and_then(|until| until.checked_duration_since(Instant::now())) {
            std::thread::park_timeout(rest);
        }
    }

    /// `screen`: the process whose first thread draws.
    fn progress(&self, screen: Option<u32>) -> Progress {
        let s = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (written, closed) = (s.raw.len(), s.closed);
        drop(s);
        Progress { written, closed, thread: screen.and_then(MainThread::of), unread: self.unread() }
    }

    /// Bytes that were typed and that the program has not read.
    fn unread(&self) -> u64 {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |path: &PathBuf| rustix::fs::open(path, flags, Mode::empty()).ok();
        // It is opened for each look: held open, the terminal would not end with the program.
        let end = self.path.as_ref().filter(|_| self.master.is_some()).and_then(open);
        end.and_then(|end| rustix::io::ioctl_fionread(end).ok()).unwrap_or(0)
    }

    /// Waits until the program has read what was typed and has nothing left to do with it: its first thread, that of the
    /// screen, has worked since `before` and sleeps. Where that cannot be seen (another process draws, nothing happens), for a
    /// moment only.
    fn taken(&self, before: &Progress, screen: Option<u32>) {
        let begun = Instant::now();
        // Seen twice: another wake-up may come between the key and its delivery.
        let mut quiet = 0;
        while quiet < 2 {
            let now = self.progress(screen);
            let works = now.thread.as_ref().is_some_and(|thread| thread.works);
            let switches = |p: &Progress| p.thread.as_ref().map(|thread| thread.switches);
            let reacts = now.written != before.written || switches(&now) != switches(before);
            quiet = if now.unread == 0 && !works && reacts { quiet + 1 } else { 0 };
            let limit = match now {
                Progress { closed: true, .. } => return,
                Progress { unread: 1.., .. } => UNREAD,
                _ if works => BUSY,
                _ => SILENT,
            };
            if begun.elapsed() > limit {
                return;
            }
            std::thread::park_timeout(LOOK);
        }
    }

    /// Types bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // A program that has just ended closes the PTY; the next wait reports it.
        let _ = self.writer.write_all(bytes);
        let _ = self.writer.flush();
        (self.typed, self.escaped) = (Some(Instant::now()), false);
    }

    /// Pastes text in bracketed mode.
    pub fn paste(&mut self, text: &str) {
        self.keys(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// The present screen, rows joined by newlines, trailing blanks removed.
    pub fn screen(&self) -> String {
        trimmed(&self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).parser.screen().contents())
    }

    /// The screen with its colours and attributes, in a comparable form.
    pub fn face(&self) -> String {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).parser.screen().contents_formatted()
    }

    /// Row and column of the cursor, from 0.
    pub fn cursor(&self) -> (u16, u16) {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).parser.screen().cursor_position()
    }

    /// All bytes that the program has written.
    pub fn raw(&self) -> Vec<u8> {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).raw.clone()
    }

    /// Whether any screen after byte `since` of [`Self::raw`] satisfied `what`, in a terminal of the present size. For
    /// text that must not appear: the last screen does not show a text that came and went.
    pub fn showed(&self, since: usize, what: impl Fn(&str) -> bool) -> bool {
        let s = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, columns) = s.parser.screen().size();
        let mut parser = vt100::Parser::new(rows, columns, 0);
        let mut begin = 0;
        s.marks.iter().any(|(_, end)| {
            // Half a frame is no screen: what it moves would stand in it twice.
            let new = &s.raw[begin..*end];
            let length = whole(new);
            parser.process(&new[..length]);
            begin += length;
            length > 0 && *end > since && what(&trimmed(&parser.screen().contents()))
        })
    }

    /// The screen of a terminal of the present size that shows nothing, after the bytes of [`Self::raw`] from `since` on.
    pub fn drawn_since(&self, since: usize) -> String {
        let s = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, columns) = s.parser.screen().size();
        let mut parser = vt100::Parser::new(rows, columns, 0);
        parser.process(s.raw.get(since..).unwrap_or_default());
        trimmed(&parser.screen().contents())
    }

    /// When each piece of [`Self::raw`] was read, and the length of `raw` then, for measurements.
    pub fn marks(&self) -> Vec<(Instant, usize)> {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).marks.clone()
    }

    /// Number of bytes that the program has written.
    pub fn written(&self) -> usize {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).raw.len()
    }

    /// Waits until the screen satisfies `until`.
    ///
    /// # Panics
    /// After [`TIMEOUT`], with the screen.
    pub fn wait(&self, what: &str, until: impl Fn(&str) -> bool) -> String {
        self.wait_within(TIMEOUT, what, until)
    }

    /// As [`Self::wait`], for what may take this long.
    ///
    /// # Panics
    /// After `limit`, with the screen.
    pub fn wait_within(&self, limit: Duration, what: &str, until: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + limit;
        let mut s = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let screen = trimmed(&s.parser.screen().contents());
            if until(&screen) {
                return screen;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && !s.closed,
                "waited for {what}; closed: {}; the screen was:\n{screen}",
                s.closed
            );
            s = self.seen.1.wait_timeout(s, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until the emulator's screen, including colours, satisfies `until`.
    ///
    /// # Panics
    /// After [`TIMEOUT`], with the screen.
    pub fn wait_cells(&self, what: &str, until: impl Fn(&vt100::Screen) -> bool) {
        let end = Instant::now() + TIMEOUT;
        let mut s = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !until(s.parser.screen()) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && !s.closed,
                "waited for {what}; closed: {}; the screen was:\n{}",
                s.closed,
                trimmed(&s.parser.screen().contents())
            );
            s = self.seen.1.wait_timeout(s, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The result of `read` for the emulator's present screen, including colours.
    pub fn looks<T>(&self, read: impl Fn(&vt100::Screen) -> T) -> T {
        read(self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).parser.screen())
    }

    /// Waits until `text` is on the screen.
    pub fn wait_text(&self, text: &str) -> String {
        self.wait(&format!("{text:?}"), |s| s.contains(text))
    }

    /// Waits until `text` is not on the screen.
    pub fn wait_gone(&self, text: &str) -> String {
        self.wait(&format!("{text:?} to go"), |s| !s.contains(text))
    }

    /// Stops reading the program's output (after the present read), until the guard is dropped.
    pub fn stall(&self) -> impl Drop + use<> {
        struct Stalled(Option<std::sync::mpsc::Sender<()>>, Option<std::thread::JoinHandle<()>>);
        impl Drop for Stalled {
            fn drop(&mut self) {
                self.0 = None;
                if let Some(t) = self.1.take() {
                    let _ = t.join();
                }
            }
        }
        let (over, wait) = std::sync::mpsc::channel::<()>();
        let (held, told) = std::sync::mpsc::channel::<()>();
        let gate = Arc::clone(&self.gate);
        // It holds the lock until the guard drops its sender.
        let thread = std::thread::spawn(move || {
            let _gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = held.send(());
            let _ = wait.recv();
        });
        let _ = told.recv();
        Stalled(Some(over), Some(thread))
    }

    /// Resizes the terminal, as a window manager does.
    ///
    /// # Panics
    /// When the PTY refuses.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.seen
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .parser
            .screen_mut()
            .set_size(cells(rows), cells(cols));
        let master = self.master.as_ref().expect("the terminal is there");
        master
            .resize(PtySize {
                rows: rows.max(1),
                cols: cols.max(1),
                pixel_width: cols * CELL.0,
                pixel_height: rows * CELL.1,
            })
            .expect("the PTY takes the size");
    }

    /// Closes the terminal, as closing its window does: every descriptor of this end is closed.
    ///
    /// # Panics
    /// When the program neither writes nor ends.
    pub fn hang_up(&mut self) {
        self.hung_up.store(true, Ordering::SeqCst);
        self.writer = Box::new(std::io::sink());
        // A resize makes the program draw, which wakes the reading thread.
        let end = Instant::now() + TIMEOUT;
        let mut columns = 90;
        while self.reader.as_ref().is_some_and(|r| !r.is_finished()) {
            assert!(Instant::now() < end, "it draws nothing");
            columns += 1;
            self.resize(columns, 24);
            let s = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = self.seen.1.wait_timeout(s, Duration::from_millis(20));
        }
        if let Some(r) = self.reader.take() {
            let _ = r.join();
        }
        self.master = None;
    }

    /// Modes of the terminal that the program has not restored; empty when everything is restored.
    pub fn kept(&self) -> Vec<&'static str> {
        let mut kept = Vec::new();
        if self.master.as_ref().is_some_and(|m| settings(&**m) != self.before) {
            kept.push("raw mode");
        }
        let s = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        let screen = s.parser.screen();
        if screen.alternate_screen() {
            kept.push("the other screen");
        }
        if screen.hide_cursor() {
            kept.push("a hidden cursor");
        }
        if screen.bracketed_paste() {
            kept.push("marked pastes");
        }
        if screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None {
            kept.push("the mouse");
        }
        // The emulator does not know these.
        let raw = String::from_utf8_lossy(&s.raw);
        for (on, off, what) in [
            ("\x1b[?1004h", "\x1b[?1004l", "focus reports"),
            ("\x1b[?2031h", "\x1b[?2031l", "colour reports"),
            ("\x1b[>5u", "\x1b[<1u", "the keyboard mode"),
            ("\x1b[22;0t", "\x1b[23;0t", "the title"),
        ] {
            if raw.rfind(on).is_some_and(|on| raw.rfind(off).is_none_or(|off| off < on)) {
                kept.push(what);
            }
        }
        kept
    }

    /// Process id.
    pub fn pid(&self) -> Option<u32> {
        self.child.process_id()
    }

    /// The process that owns engine and screen: the host of the workbench, or the program itself where it has none.
    pub fn host(&self) -> Option<u32> {
        let pid = self.pid()?;
        Some(hosts(pid).first().copied().unwrap_or(pid))
    }

    /// Waits until it has ended; returns its exit code (128 + n for a signal n comes from the program itself).
    ///
    /// # Panics
    /// After [`TIMEOUT`], with the screen.
    pub fn wait_exit(&mut self) -> u32 {
        let end = Instant::now() + TIMEOUT;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.exit_code();
            }
            assert!(Instant::now() < end, "it did not end; the screen was:\n{}", self.screen());
            let s = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
            // The PTY reports the end to the reader; this only limits the time between two checks.
            let _ = self.seen.1.wait_timeout(s, Duration::from_millis(20));
        }
    }

    /// Kills everything, as `kill -9` does: the process with the screen first.
    pub fn kill(&mut self) {
        // The id may belong to another process by now.
        let runs = matches!(self.child.try_wait(), Ok(None));
        for host in self.pid().filter(|_| runs).map(hosts).unwrap_or_default() {
            if let Some(host) = i32::try_from(host).ok().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(host, rustix::process::Signal::KILL);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Children of `pid` that are the same program in a session of their own.
fn hosts(pid: u32) -> Vec<u32> {
    let program = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own_session = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        // State, parent, group, session.
        rest.split_whitespace().nth(3).and_then(|s| s.parse().ok()) == Some(pid)
    };
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|c| c.parse().ok());
    children.filter(|c| program(*c) == program(pid) && own_session(*c)).collect()
}

/// The line settings of a terminal, in a comparable form.
fn settings(master: &dyn MasterPty) -> String {
    master.get_termios().map_or_else(String::new, |t| format!("{t:?}"))
}

fn cells(n: u16) -> std::num::NonZeroU16 {
    std::num::NonZeroU16::new(n).unwrap_or(std::num::NonZeroU16::MIN)
}

fn trimmed(screen: &str) -> String {
    screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Term, whole};

    /// Reads nothing for a while after its start, and prints the length of each piece that it reads.
    const SLOW: &str =
        "stty raw -echo; (for i in $(seq 500); do printf .; sleep 0.02; done) & printf ready; sleep 0.4
        while :; do n=$(dd bs=64 count=1 2>/dev/null | wc -c); [ $n = 0 ] && exit; printf \"<$n>\"; done";

    /// A program that is busy draws, and has not read the text: Enter waits for that.
    #[test]
    fn enter_comes_when_the_text_was_read() {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
        let dir = std::path::Path::new("/");
        let env = [("PATH".to_owned(), path)];
        let mut term = Term::spawn(std::path::Path::new("/bin/sh"), &["-c", SLOW], &env, dir, 250, 40);
        term.wait_text("ready");
        term.keys("hello\r");
        term.wait("text and Enter", |s| s.contains("<5>") && s.contains("<1>") || s.contains("<6>"));
        assert!(!term.screen().contains("<6>"), "Enter came with the text:\n{}", term.screen());
    }

    #[test]
    fn a_frame_is_drawn_when_it_has_ended() {
        assert_eq!(whole(b"plain"), 5);
        assert_eq!(whole(b"ab\x1b[?2026hcd"), 2);
        assert_eq!(whole(b"\x1b[?2026hcd\x1b[?2026l"), 18);
        assert_eq!(whole(b"\x1b[?2026hcd\x1b[?2026le\x1b[?2026hf"), 19);
    }
}
