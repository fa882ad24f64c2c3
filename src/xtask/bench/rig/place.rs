//! A temporary home and project, and the program in it, used by a simulated person at a terminal of 120 by 40.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tiller_testkit::Term;

use crate::bench::pause;
use crate::bench::rig::model::Model;

/// Columns and rows of the terminal.
pub(crate) const SIZE: (u16, u16) = (120, 40);

/// Text in the footer once the program accepts input.
pub(crate) const READY: &str = "Ctrl-P";

/// Time limit for any step.
const LIMIT: Duration = Duration::from_secs(120);

/// Folders of one case, on the disk of the build folder: commits there are real.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    binary: PathBuf,
    env: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn new(binary: &Path, model: &Model) -> Result<Self> {
        Self::with_server(binary, &model.server.url())
    }

    /// With a model server at this address.
    pub(crate) fn with_server(binary: &Path, url: &str) -> Result<Self> {
        let dir = tempfile::tempdir_in(binary.parent().context("the binary is in a folder")?)?;
        let place = dir.path().canonicalize()?;
        std::fs::create_dir(place.join("work"))?;
        std::fs::create_dir(place.join("home"))?;
        std::fs::write(place.join("work/README.md"), "# Sample\n\nA small project.\n")?;
        let text = |p: PathBuf| p.display().to_string();
        let env = [
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("HOME", text(place.join("home"))),
            ("TILLER_HOME", text(place.join("home/tiller"))),
            ("TILLER_MODEL", "anthropic/mock".into()),
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            ("ANTHROPIC_API_KEY", "k".into()),
            ("TERM", "xterm-256color".into()),
            ("COLORTERM", "truecolor".into()),
            ("LANG", "C.UTF-8".into()),
            ("SHELL", "/bin/sh".into()),
            ("NO_PROXY", "127.0.0.1".into()),
        ];
        let env: Vec<(String, String)> = env.map(|(k, v)| (k.to_owned(), v)).into();
        let new = Self { dir, binary: binary.to_path_buf(), env };
        for args in [
            &["init", "-q"][..],
            &["add", "."],
            &["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "first"],
        ] {
            // Without git the figures are those of a folder without git; nothing else changes.
            let _ = new.command("git", args).output();
        }
        Ok(new)
    }

    /// The project.
    pub(crate) fn work(&self) -> Result<PathBuf> {
        Ok(self.dir.path().join("work").canonicalize()?)
    }

    /// Tiller's own folders.
    pub(crate) fn home(&self) -> Result<PathBuf> {
        Ok(self.dir.path().join("home/tiller").canonicalize()?)
    }

    /// Writes the person's settings.
    pub(crate) fn config(&self, text: &str) -> Result<()> {
        let dir = self.dir.path().join("home/tiller/config");
        std::fs::create_dir_all(&dir)?;
        Ok(std::fs::write(dir.join("config.toml"), text)?)
    }

    /// The path of the database.
    pub(crate) fn database(&self) -> PathBuf {
        self.dir.path().join("home/tiller/data/tiller.db")
    }

    /// The path of the composer's draft, once it was written.
    pub(crate) fn draft(&self) -> Option<PathBuf> {
        let mut folders = vec![self.dir.path().join("home/tiller")];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()) {
                let json = path.extension().is_some_and(|e| e == "json");
                if json && path.components().any(|c| c.as_os_str() == "drafts") {
                    return Some(path);
                }
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        None
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        let mut c = Command::new(program);
        c.args(args).env_clear().envs(self.env.iter().cloned()).current_dir(self.dir.path().join("work"));
        c.stdin(Stdio::null());
        c
    }

    /// Defines a program that runs in a terminal as an agent with this name.
    pub(crate) fn adapter(&self, name: &str, script: &str) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let folder = self.dir.path().join("home/tiller/config/adapters");
        std::fs::create_dir_all(&folder)?;
        let program = folder.join(format!("{name}.sh"));
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n"))?;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
        let text = format!(
            "name = \"{name}\"\ntitle = \"{name}\"\n[program]\ncommand = \"{}\"\ninstall = \"nothing\"\n\
             [pty]\nready = '^NEVER$'\nstart = 3600.0\n",
            program.display()
        );
        Ok(std::fs::write(folder.join(format!("{name}.toml")), text)?)
    }

    /// A turn without a screen.
    pub(crate) fn headless(&self, prompt: &str) -> Command {
        self.run(&["exec", "--profile", "full", prompt])
    }

    /// The program without a screen.
    pub(crate) fn run(&self, args: &[&str]) -> Command {
        let mut c = self.command(&self.binary, args);
        c.stdout(Stdio::piped()).stderr(Stdio::piped());
        c
    }

    /// The program on its screen, from the moment of its start.
    pub(crate) fn open(&self, args: &[&str]) -> Result<Desk> {
        let mut all = vec!["--profile", "full"];
        all.extend(args);
        let at = Instant::now();
        let term = Term::spawn(&self.binary, &all, &self.env, &self.work()?, SIZE.0, SIZE.1);
        let pid = term.pid().context("it has a process id")?;
        Ok(Desk { term, pid, at, place: None })
    }
}

/// The running program.
pub(crate) struct Desk {
    pub(crate) term: Term,
    pub(crate) pid: u32,
    /// Just before the start.
    pub(crate) at: Instant,
    /// Its folders, when they must live as long.
    place: Option<Place>,
}

impl Desk {
    /// Keeps its folders as long as it runs.
    pub(crate) fn keep(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// Waits until it accepts input and has settled.
    pub(crate) fn ready(self) -> Result<Self> {
        self.until(READY)?;
        self.settle(Duration::from_millis(1500));
        Ok(self)
    }

    /// Waits for text on the screen.
    pub(crate) fn until(&self, text: &str) -> Result<Instant> {
        let end = Instant::now() + LIMIT;
        while !self.term.screen().contains(text) {
            if Instant::now() > end {
                bail!("{text:?} was never seen; the screen was:\n{}", self.term.screen());
            }
            pause(Duration::from_millis(2));
        }
        Ok(Instant::now())
    }

    /// Waits for text on the screen, without blanks and frames.
    pub(crate) fn until_squashed(&self, text: &str) -> Result<()> {
        self.until_so(|screen| squash(screen).contains(text)).with_context(|| format!("waiting for {text:?}"))
    }

    /// Waits until the screen fulfils a condition.
    pub(crate) fn until_so(&self, is: impl Fn(&str) -> bool) -> Result<()> {
        let end = Instant::now() + LIMIT;
        while !is(&self.term.screen()) {
            if Instant::now() > end {
                bail!("it was never seen; the screen was:\n{}", self.term.screen());
            }
            pause(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Waits until nothing was written for `quiet`, at most ten times as long.
    pub(crate) fn settle(&self, quiet: Duration) {
        let end = Instant::now() + quiet * 10;
        let (mut seen, mut since) = (self.term.written(), Instant::now());
        while since.elapsed() < quiet && Instant::now() < end {
            pause(Duration::from_millis(20));
            let now = self.term.written();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }

    /// Types a prompt and Enter; returns the time of Enter.
    pub(crate) fn submit(&mut self, prompt: &str) -> Instant {
        for c in prompt.chars() {
            self.term.keys(&c.to_string());
            pause(Duration::from_millis(4));
        }
        self.settle(Duration::from_millis(200));
        let at = Instant::now();
        self.term.keys("\r");
        at
    }

    /// Replays the output from `from` on: the time of each written piece, and the screen after it. Done afterwards, so
    /// that it costs the program nothing. `see` returns false when it has seen enough.
    pub(crate) fn replay(&self, from: Instant, mut see: impl FnMut(Instant, &vt100::Screen) -> bool) {
        let raw = self.term.raw();
        let cells = |n| std::num::NonZeroU16::new(n).unwrap_or(std::num::NonZeroU16::MIN);
        let mut parser = vt100::Parser::new(cells(SIZE.1), cells(SIZE.0), 0);
        let mut start = 0;
        for (at, end) in self.term.marks() {
            parser.process(&raw[start..end]);
            start = end;
            if at >= from && !see(at, parser.screen()) {
                return;
            }
        }
    }

    /// When `text` was first on the screen after `from`, without blanks and frames.
    pub(crate) fn first(&self, from: Instant, text: &str) -> Option<Instant> {
        let mut found = None;
        self.replay(from, |at, screen| {
            if squash(&screen.contents()).contains(text) {
                found = Some(at);
            }
            found.is_none()
        });
        found
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Ends it regularly, so that its session is closed; the terminal kills what is left.
        self.term.keys("\x03");
        pause(Duration::from_millis(50));
        self.term.keys("\x03");
        let end = Instant::now() + Duration::from_secs(3);
        while std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).is_ok_and(|s| !s.contains(") Z "))
            && Instant::now() < end
        {
            pause(Duration::from_millis(5));
        }
    }
}

/// Screen text without blanks and frames: a wrapped line reads as one word.
pub(crate) fn squash(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !('\u{2500}'..='\u{259f}').contains(c)).collect()
}
