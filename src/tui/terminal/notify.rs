//! Bytes for what the window shows besides the screen: title, notification, progress. Made from our own
//! words only, and cleaned all the same.

/// How this terminal takes notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationProtocol {
    Osc9,
    Osc99,
    Osc777,
    Bell,
}

/// The facts about the terminal that the environment tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalWindow {
    pub route: NotificationProtocol,
    /// Sequences must be wrapped for tmux to pass them on.
    pub tmux: bool,
    /// Knows OSC 9;4 progress.
    pub progress: bool,
}

impl TerminalWindow {
    /// From `TERM`, `TERM_PROGRAM` and the like.
    pub fn of_env(var: &dyn Fn(&str) -> Option<String>) -> Self {
        let get = |k: &str| var(k).unwrap_or_default();
        let (term, program) = (get("TERM"), get("TERM_PROGRAM"));
        let tmux = !get("TMUX").is_empty();
        let route = if term.contains("kitty") || !get("KITTY_WINDOW_ID").is_empty() {
            NotificationProtocol::Osc99
        } else if ["iTerm.app", "WezTerm", "ghostty", "WarpTerminal"].contains(&program.as_str())
            || term.contains("ghostty")
            || !get("WT_SESSION").is_empty()
            || !get("ConEmuPID").is_empty()
        {
            NotificationProtocol::Osc9
        } else if term.starts_with("foot") || term.starts_with("rxvt") || !get("VTE_VERSION").is_empty() {
            NotificationProtocol::Osc777
        } else {
            NotificationProtocol::Bell
        };
        // Elsewhere the progress codes were shown as messages.
        let progress = program == "ghostty"
            || term.contains("ghostty")
            || !get("WT_SESSION").is_empty()
            || !get("ConEmuPID").is_empty();
        Self { route, tmux, progress }
    }

    /// A notification.
    pub fn notify(&self, text: &str) -> String {
        let text = plain(text);
        let osc = match self.route {
            NotificationProtocol::Osc9 => format!("\x1b]9;tiller: {text}\x1b\\"),
            NotificationProtocol::Osc99 => format!("\x1b]99;i=tiller:d=1;tiller: {text}\x1b\\"),
            NotificationProtocol::Osc777 => format!("\x1b]777;notify;tiller;{text}\x1b\\"),
            NotificationProtocol::Bell => return "\x07".into(),
        };
        self.wrapped(osc)
    }

    /// Busy or not, for the tab or the task bar; nothing where that is not known.
    pub fn busy(&self, busy: bool) -> String {
        if !self.progress {
            return String::new();
        }
        self.wrapped(format!("\x1b]9;4;{};\x1b\\", if busy { 3 } else { 0 }))
    }

    /// The title. tmux takes it itself.
    pub fn title(text: &str) -> String {
        format!("\x1b]0;{}\x1b\\", plain(text))
    }

    fn wrapped(self, osc: String) -> String {
        if self.tmux { format!("\x1bPtmux;{}\x1b\\", osc.replace('\x1b', "\x1b\x1b")) } else { osc }
    }
}

/// Without controls and separators, and short.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && *c != ';').take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> TerminalWindow {
        TerminalWindow::of_env(&|k| vars.iter().find(|(n, _)| *n == k).map(|(_, v)| (*v).into()))
    }

    #[test]
    fn each_terminal_is_told_in_its_way() {
        assert_eq!(of(&[("TERM", "xterm-kitty")]).route, NotificationProtocol::Osc99);
        assert_eq!(of(&[("TERM_PROGRAM", "WezTerm")]).route, NotificationProtocol::Osc9);
        assert_eq!(of(&[("VTE_VERSION", "7600")]).route, NotificationProtocol::Osc777);
        assert_eq!(of(&[("TERM", "xterm")]).notify("done"), "\x07");
        let w = of(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")]).notify("done");
        assert!(w.starts_with("\x1bPtmux;\x1b\x1b]99;") && w.ends_with("\x1b\\"), "{w:?}");
        assert!(!of(&[("TERM_PROGRAM", "iTerm.app")]).progress, "it would show the codes");
    }

    #[test]
    fn u1_titles_hold_no_controls() {
        assert_eq!(TerminalWindow::title("a\x1b]0;evil\x07b"), "\x1b]0;a]0evilb\x1b\\");
    }
}
