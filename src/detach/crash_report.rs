//! The report about a crashed host: its last output on standard error, and the signal as text.
//!
//! The client writes it, since no code should run in a process that accessed invalid memory.

use std::fs::File;
use std::io::{self, IsTerminal, Write as _};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::process::Signal;
use tiller_text::clean;

/// Maximum bytes of output that are kept, from its end.
const KEPT: usize = 16 << 10;

/// Signals that a faulty program gets, with their meanings.
const BROKEN: [(Signal, &str, &str); 7] = [
    (Signal::SEGV, "SIGSEGV", "invalid memory access"),
    (Signal::BUS, "SIGBUS", "memory or a mapped file is no longer available"),
    (Signal::ABORT, "SIGABRT", "aborted: out of memory, stack overflow, or a panic within a panic"),
    (Signal::ILL, "SIGILL", "invalid instruction"),
    (Signal::FPE, "SIGFPE", "arithmetic error"),
    (Signal::TRAP, "SIGTRAP", "trap without a debugger"),
    (Signal::SYS, "SIGSYS", "forbidden system call"),
];

/// The file that receives the host's standard error, which would otherwise be drawn over its screen, and the folder for
/// reports.
#[derive(Default)]
pub(super) struct CrashReport {
    stderr: Option<File>,
    reports: Option<PathBuf>,
}

impl CrashReport {
    /// Must be created before the fork. A redirected standard error is left alone.
    pub(super) fn new(reports: PathBuf) -> Self {
        let stderr = io::stderr().is_terminal().then(|| tempfile::tempfile().ok()).flatten();
        Self { stderr, reports: Some(reports) }
    }

    /// In the host: redirects standard error to the file.
    pub(super) fn keep(self) {
        if let Some(stderr) = self.stderr
            && let Err(e) = rustix::stdio::dup2_stderr(stderr)
        {
            tracing::debug!(error = %e, "standard error stays on the terminal");
        }
    }

    /// In the client: the last output of the host, without control characters.
    fn output(&self) -> String {
        let read = |file: &File| -> io::Result<Vec<u8>> {
            let len = file.metadata()?.len();
            let from = len.saturating_sub(KEPT as u64);
            let mut bytes = vec![0; usize::try_from(len - from).unwrap_or(KEPT)];
            file.read_exact_at(&mut bytes, from)?;
            Ok(bytes)
        };
        let bytes = self.stderr.as_ref().and_then(|file| read(file).ok()).unwrap_or_default();
        clean::plain_lines(&String::from_utf8_lossy(&bytes))
    }

    /// Prints the output on standard error, once the shell has the terminal again.
    pub(super) fn tell(&self) {
        let said = self.output();
        if !said.is_empty() {
            // Standard error may be closed.
            let _ = writeln!(io::stderr().lock(), "{said}");
        }
    }

    /// The end of the host by `signal` as text, with the path of the report if it was a fault of the host.
    pub(super) fn words(&self, pid: i32, signal: i32) -> String {
        let Some((_, name, what)) = BROKEN.iter().find(|(s, ..)| s.as_raw() == signal) else {
            return format!("was killed (signal {signal})");
        };
        let text = format!(
            "tiller {} was ended by an internal error\nsignal: {name} ({signal}): {what}\nprocess: \
            {pid}\nsystem: {} {}\n\nLast output on standard error:\n{}\nThe stack is in the core \
            dump of that process, if this system keeps one.\n",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH,
            match self.output() {
                said if said.is_empty() => "(nothing)\n".to_owned(),
                said => said + "\n",
            },
        );
        let saved = self.reports.as_deref().and_then(|folder| tiller_tui::terminal::save(folder, &text));
        let place = saved.map_or_else(String::new, |p| format!("; the report is in {}", p.display()));
        format!("was ended by an internal error ({name}: {what}){place}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u5_a_report_holds_the_signal_and_what_was_said_last_without_controls() {
        let dir = tempfile::tempdir().unwrap();
        let mut said = tempfile::tempfile().unwrap();
        said.write_all(&b"x".repeat(3 * KEPT)).unwrap();
        said.write_all(b"\nthread 'main' has \x1b[31moverflowed its stack").unwrap();
        let last = CrashReport { stderr: Some(said), reports: Some(dir.path().join("state")) };
        let words = last.words(7, Signal::ABORT.as_raw());
        let report = words.rsplit_once("the report is in ").unwrap().1;
        let text = std::fs::read_to_string(report).unwrap();
        assert!(words.contains("SIGABRT") && text.contains("SIGABRT (6)") && text.contains("process: 7"));
        assert!(text.contains("overflowed its stack") && !text.contains('\x1b'), "{text}");
        assert!(text.len() < KEPT + 1000, "{} bytes", text.len());
        // A killed process made no error.
        assert_eq!(last.words(7, 9), "was killed (signal 9)");
        assert_eq!(std::fs::read_dir(dir.path().join("state")).unwrap().count(), 1);
    }
}
