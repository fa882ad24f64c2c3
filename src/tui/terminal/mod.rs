//! The terminal's modes: entered for the screen, left for the shell, an editor, a stop, a panic. Whatever
//! was changed is put back, exactly and once.

pub mod clipboard;
pub(crate) mod detached;
pub mod notify;
pub mod observer;
pub(crate) mod observers;
pub(crate) mod outside;
pub(crate) mod signals;
pub(crate) mod suspend;
pub(crate) mod terminal_io;
pub mod terminal_owner;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// The modes to switch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Draw on the alternate screen.
    pub alternate: bool,
    pub wheel: bool,
    pub click: bool,
    pub motion: bool,
}

impl Modes {
    /// As the settings say. `no_mouse` and `inline` come from the command line.
    pub fn of(ui: &tiller_config::schema::Ui, no_mouse: bool, inline: bool) -> Self {
        Self {
            alternate: !inline,
            wheel: !no_mouse && ui.mouse_wheel,
            click: !no_mouse && ui.mouse_click,
            motion: !no_mouse && ui.mouse_motion,
        }
    }
}

/// The modes that have to be put back; here so that a panic on any thread can do it.
static SAVED: Mutex<Option<SavedModes>> = Mutex::new(None);

struct SavedModes {
    tty: File,
    termios: Termios,
    leave: String,
    ui: ThreadId,
}

/// The terminal in our modes. Dropping it leaves them.
pub struct Terminal {
    input: OwnedFd,
    output: OwnedFd,
    modes: Modes,
}

impl Terminal {
    /// Opens the terminal; nothing is changed before [`Terminal::enter`].
    ///
    /// # Errors
    /// When standard input or output is no terminal.
    pub fn open(modes: Modes) -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        tcgetattr(&input)?;
        tcgetwinsize(&output)?;
        Ok(Self { input, output, modes })
    }

    /// A handle to read from. It does not block where the system permits that: another program that reads the same
    /// terminal may have taken the bytes.
    ///
    /// # Errors
    /// When the descriptor cannot be copied.
    pub fn input(&self) -> io::Result<OwnedFd> {
        anew(&self.input, OFlags::RDONLY).map_or_else(|| self.input.try_clone(), Ok)
    }

    /// A handle to write to. After a panic has given the terminal back it swallows everything: what still
    /// waits to be written, the switches first of all, must not take the terminal again.
    ///
    /// # Errors
    /// When the descriptor cannot be copied.
    pub fn output(&self) -> io::Result<impl Write + Send + use<>> {
        Ok(TtyOutput(File::from(self.output.try_clone()?)))
    }

    /// A second way to the same terminal that never blocks. Opened anew: switched on the descriptor that
    /// we were given, it would hold for the shell and every program on this terminal, too.
    pub fn direct(&self) -> Option<File> {
        anew(&self.output, OFlags::WRONLY).map(File::from)
    }

    /// Columns and rows. Terminals that do not know say 80 by 24.
    pub fn size(&self) -> (u16, u16) {
        match tcgetwinsize(&self.output) {
            Ok(w) if w.ws_col > 0 && w.ws_row > 0 => (w.ws_col, w.ws_row),
            _ => (80, 24),
        }
    }

    /// Pixels of a cell, where the terminal told the system.
    pub fn cell(&self) -> Option<(u16, u16)> {
        let size = tcgetwinsize(&self.output).ok()?;
        let of = |pixels: u16, cells: u16| pixels.checked_div(cells).filter(|n| (2..=128).contains(n));
        of(size.ws_xpixel, size.ws_col).zip(of(size.ws_ypixel, size.ws_row))
    }

    /// Raw mode; the bytes that switch our modes on are to be written with the first frame.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub fn enter(&self) -> io::Result<String> {
        let termios = tcgetattr(&self.input)?;
        let mut raw = termios.clone();
        raw.make_raw();
        let saved = SavedModes {
            tty: File::from(self.output.try_clone()?),
            termios,
            leave: leave(self.modes),
            ui: std::thread::current().id(),
        };
        *SAVED.lock().unwrap_or_else(PoisonError::into_inner) = Some(saved);
        tcsetattr(&self.input, OptionalActions::Now, &raw)?;
        Ok(enter(self.modes, self.size().1))
    }

    /// Sets all modes again, after another program (the shell, while this process was stopped) has used the terminal
    /// without the screen having left it. The bytes are to be written before the next frame.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub fn again(&self) -> io::Result<String> {
        let now = tcgetattr(&self.input)?;
        let mut raw = now.clone();
        raw.make_raw();
        // Line by line is how a shell leaves it; then this is what has to be put back in the end.
        if now.local_modes.contains(LocalModes::ICANON)
            && let Some(s) = SAVED.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            s.termios = now;
        }
        tcsetattr(&self.input, OptionalActions::Now, &raw)?;
        // Off first: title and keyboard modes lie on stacks of the terminal.
        Ok(leave(self.modes) + &enter(self.modes, self.size().1))
    }

    /// Bytes that switch the mouse to what the settings say; none when nothing differs.
    pub fn mouse(&mut self, ui: &tiller_config::schema::Ui, none: bool) -> String {
        let m = Modes::of(ui, none, !self.modes.alternate);
        let before = std::mem::replace(&mut self.modes, m);
        if before == m {
            return String::new();
        }
        if let Some(s) = SAVED.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            s.leave = leave(m);
        }
        format!("{MOUSE_OFF}{}", mouse_on(m))
    }

    /// True when the alternate screen is drawn on.
    pub fn alternate(&self) -> bool {
        self.modes.alternate
    }

    /// It was hung up: nothing can be asked of it any more.
    pub fn gone(&self) -> bool {
        tcgetattr(&self.input).is_err()
    }

    /// Puts everything back. Call it when nothing is being written any more.
    pub fn leave(&self) {
        restore();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The same terminal, opened once more so that it never blocks.
#[cfg(target_os = "linux")]
fn anew(terminal: &OwnedFd, how: OFlags) -> Option<OwnedFd> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{Mode, fstat, open};
    let path = format!("/proc/self/fd/{}", terminal.as_raw_fd());
    let anew = open(path, how | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let same = fstat(&anew).ok()?.st_rdev == fstat(terminal).ok()?.st_rdev;
    same.then_some(anew)
}

/// Elsewhere a descriptor cannot be opened anew.
#[cfg(not(target_os = "linux"))]
fn anew(_terminal: &OwnedFd, _how: OFlags) -> Option<OwnedFd> {
    None
}

/// Switches on, in the order in which [`leave`] switches off again backwards.
fn enter(m: Modes, rows: u16) -> String {
    let mut s = String::new();
    if m.alternate {
        s.push_str("\x1b[?1049h");
    } else {
        // From wherever the cursor is this scrolls exactly what is above it, and its line, out of sight:
        // into the scrollback, where it can be found again.
        s.extend(std::iter::repeat_n('\n', usize::from(rows)));
    }
    // The title is kept on the terminal's own stack.
    s.push_str("\x1b[22;0t\x1b[?2004h\x1b[?1004h");
    // Disambiguate keys, and tell the shifted form.
    s.push_str("\x1b[>5u");
    s.push_str(mouse_on(m));
    s.push_str("\x1b[?2031h");
    s
}

fn mouse_on(m: Modes) -> &'static str {
    match (m.wheel || m.click, m.motion) {
        (false, false) => "",
        (_, false) => "\x1b[?1000h\x1b[?1006h",
        (_, true) => "\x1b[?1000h\x1b[?1002h\x1b[?1006h",
    }
}

const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l";

fn leave(m: Modes) -> String {
    let mut s = format!("\x1b[?2026l\x1b[0m\x1b[?2031l{MOUSE_OFF}\x1b[<1u");
    s.push_str("\x1b[?1004l\x1b[?2004l\x1b]9;4;0;\x1b\\\x1b[23;0t\x1b[0 q\x1b[?25h");
    // Inline the last frame stays in view; what comes next goes below it.
    s.push_str(if m.alternate { "\x1b[?1049l" } else { "\x1b[9999;1H\r\n" });
    s
}

/// Turns every mode off, to restore the terminal after the screen ended abnormally.
pub fn off(inline: bool) -> String {
    leave(Modes { alternate: !inline, wheel: true, click: true, motion: true })
}

/// Nothing more is to be written: a panic has given the terminal back. Held while something is written.
static SHUT: Mutex<bool> = Mutex::new(false);

struct TtyOutput(File);

impl Write for TtyOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shut = SHUT.lock().unwrap_or_else(PoisonError::into_inner);
        if *shut { Ok(bytes.len()) } else { self.0.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Lets nothing more out. Waits a moment for what is being written; a terminal that has stalled is not
/// waited for.
fn shut() {
    for _ in 0..60 {
        match SHUT.try_lock() {
            Ok(mut shut) => {
                *shut = true;
                return;
            }
            Err(std::sync::TryLockError::Poisoned(p)) => {
                *p.into_inner() = true;
                return;
            }
            // The thread is never unparked: this is the pause between two checks.
            Err(std::sync::TryLockError::WouldBlock) => {
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
        }
    }
}

/// Red, green and blue of the background that [`ASK_COLOURS`] sets: nearly black, and no colour of a palette.
pub(crate) const ASKED_COLOUR: [&str; 3] = ["1", "2", "3"];

/// Sets a background and asks which one is in force (DECRQSS): a terminal with direct colours gives it back. Written
/// before the first frame, which begins with a reset and clears the screen: so nothing of it is ever seen.
pub(crate) const ASK_COLOURS: &str = "\x1b[48;2;1;2;3m\x1bP$qm\x1b\\\x1b[0m";

/// Asks the terminal about itself; the answers come as messages, if at all. Device attributes last:
/// every terminal answers those.
pub const QUERIES: &str = "\x1b]11;?\x1b\\\x1b[?996n\x1b[?2026$p\x1b[?69$p\x1b[?u\x1b[c";

/// Puts back what was saved, once. Never waits for a lock that a dead thread may hold.
fn restore() -> bool {
    let saved = match SAVED.try_lock() {
        Ok(mut s) => s.take(),
        Err(std::sync::TryLockError::Poisoned(p)) => p.into_inner().take(),
        Err(std::sync::TryLockError::WouldBlock) => None,
    };
    let Some(mut s) = saved else { return false };
    // A terminal that has stalled must not keep us from ending.
    let wait = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
    let room = poll(&mut [PollFd::new(&s.tty, PollFlags::OUT)], Some(&wait));
    if room.is_ok_and(|n| n > 0) {
        let _ = s.tty.write_all(s.leave.as_bytes());
    }
    let _ = tcsetattr(&s.tty, OptionalActions::Now, &s.termios);
    true
}

/// From now on a panic of the interface (or of the main thread) gives the terminal back first. Every
/// panic is saved as a file in `folder`; `report` hears of those that did not end the interface.
pub fn install_panic_hook(
    folder: Option<std::path::PathBuf>,
    report: impl Fn(String) + Send + Sync + 'static,
) {
    std::panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        let mine = SAVED.try_lock().is_ok_and(|s| s.as_ref().is_some_and(|s| s.ui == thread.id()));
        let fatal = mine || thread.name() == Some("main");
        if fatal {
            shut();
        }
        let restored = fatal && restore();
        let trace = std::backtrace::Backtrace::force_capture();
        let text = format!(
            "tiller {} stopped because of an internal error\nthread: {}\n{info}\n\n{trace}\n",
            env!("CARGO_PKG_VERSION"),
            thread.name().unwrap_or("without a name"),
        );
        let saved = folder.as_deref().and_then(|f| save(f, &text));
        let place = saved.map_or_else(String::new, |p| format!("; the report is in {}", p.display()));
        let line = format!("tiller: an internal error{place}");
        if restored || fatal {
            let _ = writeln!(io::stderr(), "{line}");
        } else {
            report(line);
        }
    }));
}

/// Writes a report that only the person can read; where it is.
pub fn save(folder: &std::path::Path, text: &str) -> Option<std::path::PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    for n in 0..1000 {
        let path = folder.join(format!("crash-{}-{n}.txt", std::process::id()));
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        if let Ok(mut f) = file {
            f.write_all(text.as_bytes()).ok()?;
            return Some(path);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u5_everything_that_is_switched_on_is_switched_off() {
        for m in [
            Modes { alternate: true, wheel: true, click: true, motion: true },
            Modes { alternate: true, wheel: true, click: true, motion: false },
            Modes { alternate: false, wheel: false, click: false, motion: false },
        ] {
            let off = leave(m);
            let on = enter(m, 24);
            for part in on.split("\x1b[").filter(|p| p.ends_with('h')) {
                let undo = format!("\x1b[{}l", part.trim_end_matches('h'));
                assert!(off.contains(&undo), "{undo:?} is missing");
            }
            assert_eq!(on.contains("\x1b[>5u"), off.contains("\x1b[<1u"));
            assert_eq!(on.contains("\x1b[22;0t"), off.contains("\x1b[23;0t"));
            assert!(off.contains("\x1b[?25h"));
        }
    }

    #[test]
    fn inline_loses_nothing_that_was_on_the_screen() {
        let m = Modes { alternate: false, wheel: true, click: true, motion: true };
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        for lines in [0, 1, 5, 23, 60] {
            let mut vt = vt100::Parser::new(size(24), size(80), 200);
            for i in 0..lines {
                vt.process(format!("old line {i}\r\n").as_bytes());
            }
            vt.process(b"$ tiller --inline");
            vt.process(enter(m, 24).as_bytes());
            assert_eq!(vt.screen().contents().trim(), "", "a free screen after {lines} lines");
            vt.process(b"\x1b[2J\x1b[1;1Hframe\x1b[24;1Hfooter\x1b[3;3H");
            vt.process(leave(m).as_bytes());
            vt.process(b"after");
            assert!(vt.screen().contents().ends_with("footer\nafter"), "{}", vt.screen().contents());
            vt.screen_mut().set_scrollback(200);
            let mut all = String::new();
            for back in (0..=vt.screen().scrollback()).rev() {
                vt.screen_mut().set_scrollback(back);
                all.push_str(vt.screen().contents().lines().next().unwrap_or(""));
                all.push('\n');
            }
            for i in 0..lines {
                assert!(all.contains(&format!("old line {i}\n")), "line {i} of {lines} is gone");
            }
            assert!(all.contains("$ tiller --inline"), "{all}");
        }
    }

    #[test]
    fn u5_reports_are_private_and_never_overwrite() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        let a = save(&folder, "one").unwrap();
        let b = save(&folder, "two").unwrap();
        assert_ne!(a, b);
        assert_eq!(std::fs::read_to_string(a).unwrap(), "one");
        assert_eq!(std::fs::metadata(b).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
