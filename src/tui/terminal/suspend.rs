//! Leaving the screen and coming back: editor, dump, Ctrl-Z, reload, the end.

use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::sync::Arc;

use tiller_protocol::{Notice, NoticeKind, Origin};

use crate::app::effect::External;
use crate::app::msg::{Msg, OutputMsg};
use crate::app::run::Loop;
use crate::app::ui::{Exit, UiError};
use crate::cell::plain::plain_lines;
use crate::model::Model;
use crate::model::conversation::{Body, Cell};
use crate::terminal::clipboard::{self, ClipboardContext, CopyPlan};
use crate::terminal::terminal_io::SETTLE;
use crate::terminal::terminal_owner::Presence;

impl Loop {
    /// Takes the terminal again, and draws everything anew.
    pub(crate) fn back(&mut self) {
        if let Some(s) = &self.io.signals {
            s.away(false);
            self.io.resumed = s.continued();
        }
        match self.io.enter() {
            Ok(bytes) => self.io.writer.write(bytes),
            Err(e) => self.no_terminal(&e),
        }
        self.again();
    }

    /// The shell let us go on. When we did not stop by ourselves it has had the terminal without our
    /// having left it: every mode anew.
    pub(crate) fn resume(&mut self) {
        let count = self.io.signals.as_ref().map_or(0, crate::terminal::signals::Signals::continued);
        if count != self.io.resumed {
            self.io.resumed = count;
            self.io.writer.settle(SETTLE);
            if let Err(e) = self.io.restore_modes() {
                self.no_terminal(&e.into());
            }
        }
        self.again();
    }

    fn no_terminal(&self, e: &UiError) {
        tracing::debug!(error = %e, "the terminal could not be restored");
        let _ = self.tx.try_send(Msg::Output(OutputMsg::Lost));
    }

    /// The size may have changed, and nothing on the screen can be trusted.
    pub(crate) fn again(&mut self) {
        if let Some((w, h)) = self.io.size() {
            let _ = self.tx.try_send(Msg::Resize(w, h));
        }
        self.io.encoder.repaint();
        self.app.redraw();
    }

    pub(crate) fn suspend(&mut self, external: External) {
        match external {
            External::Stop => self.stop(true),
            External::Editor { file, line } => {
                self.io.leave();
                let result = match self.options.as_ref().and_then(|o| o.hooks.editor.as_ref()) {
                    Some(edit) => edit(&file, line),
                    None => Err("No editor is set: set $VISUAL or $EDITOR".into()),
                };
                self.back();
                self.app.edited("Editor", result);
            }
            External::Trial { skill } => {
                self.io.leave();
                let result = match self.options.as_ref().and_then(|o| o.hooks.trial.as_ref()) {
                    Some(run) => run(&skill),
                    None => Err("No skill can be tried here".into()),
                };
                self.back();
                self.app.edited("Trial", result);
            }
            External::Trust { pack } => {
                self.io.leave();
                let result = match self.options.as_ref().and_then(|o| o.hooks.trust.as_ref()) {
                    Some(ask) => ask(pack.as_deref()),
                    None => Err("Nothing can be trusted here: run `tiller trust` in a terminal".into()),
                };
                self.back();
                self.app.edited("Trust", result);
            }
            External::Dump { text } => {
                self.io.leave();
                match self.attached.owner.clone() {
                    Some(seat) => seat.dump(&crate::text::clean::plain_lines(&text)),
                    None => dump(&text),
                }
                self.back();
            }
        }
    }

    /// To the clipboard, by every honest route; the toast says which.
    pub(crate) fn copy(&mut self, text: &str, what: &'static str) {
        let env = self.options.as_ref().map(|o| Arc::clone(&o.env));
        let around = ClipboardContext::read(|k| env.as_ref().and_then(|e| e(k)), cfg!(target_os = "macos"));
        let mut plan = clipboard::plan(text, around);
        if let Some(osc) = plan.osc52.clone().and_then(|b| String::from_utf8(b).ok()) {
            self.io.writer.write(osc);
        }
        let bytes = text.len();
        let told = move |plan: &CopyPlan, display: Option<&Result<(), String>>| {
            let lost = plan.osc52.is_none() && !plan.tmux && !matches!(display, Some(Ok(())));
            let kind = if lost { NoticeKind::User } else { NoticeKind::Info };
            Notice::new(kind, plan.toast_text(what, bytes, display))
        };
        if !plan.display && !plan.tmux {
            self.app.notice(told(&plan, None));
            return;
        }
        // tmux and a desktop may be slow to answer: not on this thread. It ends by itself.
        let variable = env.as_ref().and_then(|e| e("TMUX")).unwrap_or_default();
        let (tx, text) = (self.tx.clone(), text.to_owned());
        let made = std::thread::Builder::new().name("tiller-copy".into()).spawn(move || {
            plan.tmux = plan.tmux && clipboard::to_tmux(&text, &variable).is_ok();
            // A tmux that cannot be asked, from within a container for instance, may still listen.
            if around.tmux && !plan.tmux && plan.osc52.is_some() {
                let bare = clipboard::osc52(&text, false);
                let _ = tx.send(Msg::Output(OutputMsg::Bytes(String::from_utf8_lossy(&bare).into_owned())));
            }
            let done = plan.display.then(|| clipboard::to_display(text));
            let _ = tx.send(Msg::Notice(Box::new(told(&plan, done.as_ref()))));
        });
        if let Err(e) = made {
            self.app.say(format!("cannot start a thread: {e}"));
        }
    }

    /// Stops the process as the shell expects it; goes on here after `fg`. `all`: with those that were
    /// started together with it, as Ctrl-Z does.
    pub(crate) fn stop(&mut self, all: bool) {
        self.io.leave();
        if let Some(seat) = self.attached.owner.clone() {
            // Work continues, and the loop receives its events; nothing is drawn until the process is continued.
            self.attached.presence = Presence::Stopped;
            return seat.stop(all);
        }
        let stopped = self.io.signals.as_ref().is_some_and(|s| s.stop(all));
        self.back();
        if !stopped {
            self.app.say("Cannot suspend: Tiller was not started from a shell with job control");
        }
    }

    /// Reads settings, keys and theme again. What is wrong changes nothing and is reported.
    pub(crate) fn reload(&mut self) {
        let Some(o) = &self.options else { return };
        let mut wrong = Vec::new();
        let before = (Arc::clone(&self.app.model.ui), self.app.keys.map.table());
        let theme = self.app.themes.current().clone();
        match o.hooks.settings.as_ref().map(|read| read()) {
            Some(Ok(ui)) => *self.app.model.ui = Arc::new(ui),
            Some(Err(n)) => wrong.push(n),
            None => {}
        }
        self.app.model.environment.restricted = o.restricted.load(std::sync::atomic::Ordering::Acquire);
        crate::view::statusline::refresh(&mut self.app);
        if let Err(e) = self.app.themes.reload(&self.app.model.ui) {
            wrong.push(Notice::new(NoticeKind::Config, format!("theme: {e}")));
        }
        wrong.extend(self.carry_out().err());
        self.app.settings_changed();
        self.app.redraw();
        // The engine reports changes that concern only itself.
        let same = before.0 == *self.app.model.ui
            && before.1 == self.app.keys.map.table()
            && theme == *self.app.themes.current();
        if wrong.is_empty() && !same {
            self.app.say("Settings reloaded");
        }
        for n in wrong {
            self.app.notice(n);
        }
    }

    /// Applies the settings of keys and the terminal.
    pub(crate) fn carry_out(&mut self) -> Result<(), Notice> {
        let ui = Arc::clone(&self.app.model.ui);
        // A property of the process: the app itself never sets it, since tests run many apps in one process.
        crate::text::width::set_ambiguous_wide(ui.ambiguous_wide);
        let Some(o) = &self.options else { return Ok(()) };
        if let Some(t) = &mut self.io.terminal {
            self.io.writer.write(t.mouse(&ui, o.mode.no_mouse));
        }
        let keys = crate::app::ui::load_keys(&ui, o.folders.config.as_deref(), &o.folders.plugins)?;
        self.app.keys.map = Arc::new(keys);
        Ok(())
    }

    /// The end: stop reading, let the last bytes out, give the terminal back.
    pub(crate) fn close(&mut self) {
        if self.attached.presence == Presence::Away {
            return;
        }
        self.io.leave();
        let Some(t) = self.io.terminal.as_ref().filter(|t| t.alternate()) else { return };
        let mut text = String::new();
        if self.app.model.ui.leave_last {
            text = last_exchange(self.app.model.agent.conversation.cells(), t.size().0);
        }
        if self.exit == Some(Exit::Quit) {
            let env = self.options.as_ref().map(|o| Arc::clone(&o.env));
            let here = env.and_then(|e| e("PWD")).unwrap_or_default();
            text.push_str(&way_back(&self.app.model, &here));
        }
        // Not standard output: by now the terminal may be another one than at the start.
        self.io.writer.write(text);
        self.io.writer.settle(SETTLE);
    }
}

/// How to go on with what was said here, for a shell in the folder `here`; empty when nothing was.
fn way_back(model: &Model, here: &str) -> String {
    let said = model.agent.conversation.cells().iter().any(asked);
    let Some(session) = model.agent.session.summary.as_ref().filter(|_| said) else { return String::new() };
    let plain = |c: char| c.is_alphanumeric() || "/._-+@".contains(c);
    let folder = match session.project.as_str() {
        project if project == here => String::new(),
        project if project.chars().all(plain) => format!("-C {project} "),
        project => format!("-C '{}' ", project.replace('\'', "'\\''")),
    };
    format!("To continue: tiller {}-c\n", crate::text::clean::plain(&folder))
}

/// The person's own words.
fn asked(c: &Cell) -> bool {
    matches!(c.body, Body::User { origin: Origin::Prompt | Origin::Task | Origin::Shell, .. })
}

/// The last message of the person and everything after it, as plain lines; empty when there is none.
fn last_exchange(cells: &VecDeque<Cell>, columns: u16) -> String {
    let not_loaded = |c: &Cell| matches!(c.body, Body::NotLoaded { .. });
    let start = cells.iter().rposition(not_loaded).map_or(0, |n| n + 1);
    let Some(from) = cells.range(start..).rposition(asked).map(|n| start + n) else { return String::new() };
    let mut out = String::new();
    for cell in cells.range(from..) {
        for line in plain_lines(cell, usize::from(columns)) {
            // A terminal in cooked mode, but the words were a model's: cleaned once more, whole.
            out.push_str(&crate::text::clean::plain_lines(&line));
            out.push('\n');
        }
    }
    out
}

/// Writes text into the terminal's own scrollback and waits for Enter. The text is cleaned: it stays
/// there, and a terminal must not act on it.
fn dump(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", crate::text::clean::plain_lines(text));
    let _ = write!(out, "\n-- Press Enter to return to Tiller --");
    let _ = out.flush();
    let _ = std::io::stdin().lock().read_line(&mut String::new());
}

#[cfg(test)]
#[path = "suspend_tests.rs"]
mod tests;
