//! A text to read: scrolled, copied, closed. For differences and whatever else needs no choice.

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::effect::{Effect, Task};
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::find::Find;
use crate::panel::{DrawCx, Hint, Panel, PanelInput, PanelStatus, Placement, Refresh, Reply};
use crate::registry::Dialog;
use crate::text::diff::Patch;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::diff::{self, DiffColours, DiffLayout, DiffText};
use crate::widget::draw;
use crate::widget::scroll::Scroll;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog =
    Dialog { scopes: &[Scope::new("text", Some("list"), "Texts", false)], ..Dialog::NONE };

/// The dialog.
pub struct Text {
    title: String,
    source: String,
    diff: bool,
    wrap: Wrap,
    columns: u16,
    scroll: Scroll,
    colours: DiffColours,
    /// The words that are searched for, and the line of the hit.
    find: Option<(Find, usize)>,
}

impl Text {
    /// Foreign text, character by character.
    pub fn plain(title: &str, text: &str) -> Self {
        Self {
            title: title.into(),
            source: text.into(),
            diff: false,
            wrap: Wrap::Hard,
            columns: 0,
            scroll: Scroll::default(),
            colours: DiffColours::default(),
            find: None,
        }
    }

    /// Foreign text in sentences: a long line is broken between words.
    pub fn prose(title: &str, text: &str) -> Self {
        Self { wrap: Wrap::Word, ..Self::plain(title, text) }
    }

    /// A unified difference of one file.
    pub fn diff(title: &str, diff: &str) -> Self {
        Self { diff: true, ..Self::plain(title, diff) }
    }

    fn lines(&mut self, columns: u16) -> Vec<Line> {
        if self.source.trim().is_empty() {
            let words = if self.diff { "No changes" } else { "Empty" };
            return vec![Line::strict(words, Look::of(Role::Dim), Wrap::Word)];
        }
        let wrap = self.wrap;
        let line = |l: &str| Line::strict(l, Look::of(Role::Text), wrap);
        if !self.diff {
            return crate::text::clean::lines(&self.source).map(line).collect();
        }
        let layout = DiffLayout::new(usize::from(columns), draw::ascii());
        let title = self.title.split_whitespace().find(|w| w.contains('.'));
        let mut all = DiffText::default();
        for (name, text) in files(&self.source) {
            if let Some(name) = name {
                all.push(Line::strict(name, Look::of(Role::Strong), Wrap::Word));
            }
            let patch = Patch::read(text);
            if patch.hunks.is_empty() {
                crate::text::clean::lines(text)
                    .filter(|l| !l.trim().is_empty())
                    .map(line)
                    .for_each(|l| all.push(l));
            }
            for (n, h) in patch.hunks.iter().enumerate() {
                if n > 0 {
                    all.push(diff::between(h, layout.ascii));
                }
                all.append(diff::hunk(h, name.or(title).unwrap_or_default(), layout, &mut self.colours));
            }
        }
        self.colours.note(&all);
        all.lines
    }
}

/// The parts of a difference of several files, each below a line `# NAME`. (No line of a difference begins so.)
fn files(text: &str) -> Vec<(Option<&str>, &str)> {
    let mut all = Vec::new();
    let (mut name, mut from, mut at) = (None, 0, 0);
    for line in text.split_inclusive('\n') {
        if let Some(next) = line.strip_prefix("# ") {
            if name.is_some() || !text[from..at].trim().is_empty() {
                all.push((name, &text[from..at]));
            }
            (name, from) = (Some(next.trim_end()), at + line.len());
        }
        at += line.len();
    }
    all.push((name, &text[from..]));
    all
}

impl Text {
    fn search(&mut self, id: &str) -> bool {
        match (id, &mut self.find) {
            (id, Some((find, _))) if find.typing => {
                let done = find.edit.act(id);
                find.look(self.scroll.lines());
                return done;
            }
            ("list.search", _) => self.find = Some((Find::default(), self.scroll.first())),
            ("list.next" | "list.previous", Some((find, at))) => {
                if let Some(hit) = find.step(*at, id == "list.next") {
                    *at = hit;
                    self.scroll.go(hit);
                }
            }
            _ => return false,
        }
        true
    }

    fn typing(&self) -> bool {
        self.find.as_ref().is_some_and(|(f, _)| f.typing)
    }
}

impl Panel for Text {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if self.typing() { "input" } else { "text" })
            .escape(self.find.as_ref().map(|_| EscapeStep::Search))
    }

    fn title(&self, _model: &Model) -> String {
        self.title.clone()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        &[]
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Full
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        if self.search(action.0) {
            return Reply::done();
        }
        match action.0 {
            "list.copy" => Reply::with(Effect::Task(Task::Copy { text: self.source.clone(), what: "text" })),
            "list.back" => Reply::with(Effect::Pop),
            id if self.scroll.act(id) => Reply::done(),
            _ => Reply::Ignored,
        }
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Mouse(event, _) => {
                if self.scroll.mouse(event) {
                    Reply::done()
                } else {
                    Reply::Ignored
                }
            }
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        match &self.find {
            Some((find, _)) if find.typing => vec![Hint::as_("input.done", "find")],
            Some(_) => vec![Hint::of("list.next"), Hint::of("list.previous")],
            None => vec![Hint::of("list.page_down"), Hint::of("list.copy"), Hint::of("list.search")],
        }
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) -> Refresh {
        let again = self.colours.again();
        if again || area.width != self.columns {
            self.columns = area.width;
            let (first, lines) = (self.scroll.first(), self.lines(area.width));
            self.scroll.set(lines);
            if again {
                self.scroll.measure(
                    usize::from(area.width),
                    usize::from(area.height.saturating_sub(1)),
                    true,
                );
                self.scroll.go(first);
            }
        }
        let page = usize::from(area.height.saturating_sub(1));
        self.scroll.measure(usize::from(area.width), page, true);
        Refresh::after(self.colours.wake())
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let text = Rect { height: area.height.saturating_sub(1), ..area };
        self.scroll.draw(text, buf, cx.theme);
        let below = self.scroll.below();
        let last = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
        if let Some((find, at)) = &self.find {
            find.draw(cx, last, *at, buf);
        } else if below > 0 {
            draw::text(buf, last, &draw::below(below), cx.theme.style(Role::Dim));
        }
    }
}

impl Text {
    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        let Some((find, at)) = self.find.as_mut().filter(|(f, _)| f.typing) else { return Reply::Ignored };
        if find.key(key) {
            find.look(self.scroll.lines());
            if let Some(hit) = find.from(*at) {
                *at = hit;
                self.scroll.go(hit);
            }
        }
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        if escape_step == EscapeStep::Layer {
            return Reply::with(Effect::Pop);
        }
        self.find = None;
        Reply::done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Robot;

    #[test]
    fn text_is_broken_between_words_and_what_is_no_prose_keeps_its_blanks() {
        let text = "0123456789 a sentence that is longer      than the screen is wide";
        for (dialog, next) in [(Text::prose("x", text), "than"), (Text::plain("x", text), "    than")] {
            let mut r = Robot::new(40, 10);
            r.push(Box::new(dialog));
            let screen = r.screen();
            let mut rows = screen.lines().skip_while(|l| !l.trim_end().ends_with("sentence that is longer"));
            assert!(rows.nth(1).is_some_and(|l| l[1..].starts_with(next)), "{screen}");
        }
    }

    #[test]
    fn a_text_is_searched_like_every_list() {
        let text: String = (0..200).map(|n| format!("row {n} of it\n")).collect();
        let mut r = Robot::new(60, 20);
        r.push(Box::new(Text::plain("long", &text)));
        r.run("/; type row 15");
        assert!(r.screen().contains("/row 15") && r.screen().contains("1/11"), "{}", r.screen());
        assert!(r.screen().contains("row 15 of it"), "{}", r.screen());
        r.run("enter; n; n");
        assert!(r.screen().contains("3/11") && r.screen().contains("row 151 of it"), "{}", r.screen());
        r.run("N; esc");
        assert!(!r.screen().contains("/row 15") && r.screen().contains("row 150 of it"), "{}", r.screen());
        r.run("esc");
        assert!(r.app.layers.is_empty());
    }
}
