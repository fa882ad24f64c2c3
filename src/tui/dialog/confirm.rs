//! A confirmation with yes, no and an optional third answer. The focus starts on "no".

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_width::UnicodeWidthStr;

use crate::app::effect::Effect;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::{Availability, DrawCx, Hint, Panel, PanelStatus, Placement, Refresh, Reply};
use crate::registry::Dialog;
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::wrap::wrap;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Confirm", ACTIONS)],
    scopes: &[Scope::new("confirm", None, "Confirm", false).keys(KEYS)],
    samples: &[("confirm", || Box::new(sample()))],
    ..Dialog::NONE
};

/// Its actions.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::yes("confirm.yes", "yes", "Confirm"),
    ActionSpec::key_only("confirm.no", "no", "Cancel"),
    ActionSpec::key_only("confirm.other", "other", "The third choice, if there is one").deciding(),
    ActionSpec::key_only("confirm.next", "next", "Next button"),
    ActionSpec::key_only("confirm.press", "press", "Press the focused button; never confirms"),
];

/// Default keys of the section `confirm`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("n", "confirm.no"),
    ("y", "confirm.yes"),
    ("o", "confirm.other"),
    ("tab", "confirm.next"),
    ("left", "confirm.next"),
    ("right", "confirm.next"),
    ("enter", "confirm.press"),
];

/// The dialog.
pub struct Confirm {
    title: String,
    text: String,
    yes: (String, Vec<Effect>),
    other: Option<(&'static str, Vec<Effect>)>,
    /// 0 is "no".
    focus: usize,
}

impl Confirm {
    /// `yes`: label of the confirming button; `then`: effects of it.
    pub fn new(title: &str, text: &str, yes: &str, then: Vec<Effect>) -> Self {
        Self { title: title.into(), text: text.into(), yes: (yes.into(), then), other: None, focus: 0 }
    }

    /// A third way.
    #[must_use]
    pub fn otherwise(mut self, name: &'static str, then: Vec<Effect>) -> Self {
        self.other = Some((name, then));
        self
    }

    fn buttons(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("n", "no".to_owned()), ("y", self.yes.0.clone())];
        all.extend(self.other.as_ref().map(|(name, _)| ("o", (*name).to_owned())));
        all
    }

    fn done(&mut self, then: Vec<Effect>) -> Reply {
        let mut all = vec![Effect::Pop];
        all.extend(then);
        Reply::Done(all)
    }

    /// Rows of the text at this width, then each button as rows and columns: side by side when they
    /// fit, else one below the other.
    fn place_buttons(&self, area: Rect) -> Vec<Rect> {
        let labels = self.buttons();
        let width = |l: &(&str, String)| (l.1.width() + 6) as u16;
        let row: u16 = labels.iter().map(|l| width(l) + 1).sum();
        let stacked = row > area.width;
        let rows = if stacked { labels.len() as u16 } else { 1 };
        let mut y = area.bottom().saturating_sub(rows).max(area.y);
        let mut x = area.x;
        labels
            .iter()
            .map(|l| {
                let r = Rect { x, y, width: width(l).min(area.width), height: u16::from(y < area.bottom()) };
                if stacked {
                    y += 1;
                } else {
                    x += r.width + 1;
                }
                r
            })
            .collect()
    }
}

impl Panel for Confirm {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new("confirm")
    }

    fn title(&self, _model: &Model) -> String {
        self.title.clone()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        let rows = wrap(&self.text, 54).len() as u16;
        Placement::Center { width: 60, height: rows + 4 }
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        match action.0 {
            "confirm.yes" => {
                let then = std::mem::take(&mut self.yes.1);
                self.done(then)
            }
            "confirm.no" => self.done(Vec::new()),
            "confirm.other" => match self.other.take() {
                Some((_, then)) => self.done(then),
                None => Reply::Ignored,
            },
            "confirm.next" => {
                self.focus = (self.focus + 1) % self.buttons().len();
                Reply::done()
            }
            // A yes needs its own key, wherever the focus is.
            "confirm.press" if self.focus == 0 => self.done(Vec::new()),
            "confirm.press" => Reply::done(),
            _ => Reply::Ignored,
        }
    }

    fn availability(&self, action: Action, _model: &Model) -> Availability {
        match (action.0, self.focus) {
            ("confirm.press", 0) => Availability::Presses(Action("confirm.no")),
            ("confirm.press", 1) => Availability::Presses(Action("confirm.yes")),
            ("confirm.press", _) => Availability::Presses(Action("confirm.other")),
            _ => Availability::Available,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        // The buttons name their keys.
        Vec::new()
    }

    fn measure(&mut self, _area: Rect, cx: &DrawCx<'_>) -> Refresh {
        Refresh::after(cx.delay)
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        let buttons = self.place_buttons(area);
        let room = buttons.first().map_or(area.bottom(), |b| b.y).saturating_sub(area.y);
        for (y, row) in wrap(&self.text, usize::from(area.width)).iter().take(usize::from(room)).enumerate() {
            let line = Rect { y: area.y + y as u16, height: 1, ..area };
            draw::text(buf, line, row, cx.theme.style(Role::Text));
        }
        for (i, (r, (key, name))) in buttons.iter().zip(self.buttons()).enumerate() {
            let role = match cx.delay {
                Some(_) => Role::Dim,
                None if i == self.focus => Role::ButtonFocus,
                None => Role::Button,
            };
            draw::text(buf, *r, &format!("[{key}] {name} "), cx.theme.style(role));
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        self.place_buttons(area).get(self.focus).map(|r| Position::new(r.x, r.y))
    }
}

/// For tests.
pub(crate) fn sample() -> Confirm {
    Confirm::new(
        "Quit?",
        "A turn is running. Quitting stops it; what has arrived so far is kept.",
        "quit",
        Vec::new(),
    )
    .otherwise("wait", Vec::new())
}

#[cfg(test)]
mod tests {
    use tiller_protocol::event::StateEvent;
    use tiller_protocol::{EventBody, Profile};

    use crate::testing::Robot;

    /// Shift-Tab goes on to the next mode in the question about AUTO, too.
    #[test]
    fn a_confirmation_is_opened_once_and_closed_by_one_escape() {
        let mut r = Robot::new(80, 24);
        r.event(EventBody::State(StateEvent::ProfileChanged { profile: Profile::AutoEdit }));
        for _ in 0..3 {
            r.run("shift-tab");
            assert!(r.screen().contains("Switch to AUTO mode?"), "{}", r.screen());
        }
        r.run("esc");
        assert!(!r.screen().contains("Switch to AUTO mode?"), "{}", r.screen());
    }
}
