//! The calls that one answer is for: a list, and each of them exactly as it would be made.

use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::ask::AskedCall;

use super::content;
use crate::app::effect::{Effect, Task};
use crate::dialog::picker::{Item, ListSpec, Outcome, Picker, Source};
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelInput, PanelStatus, Placement, Refresh, Reply};
use crate::text::clean;
use crate::theme::Role;
use crate::widget::diff::DiffColours;
use crate::widget::draw;
use crate::widget::scroll::Scroll;
use crate::widget::table::{Cell, Column};

const COLUMNS: &[Column] =
    &[Column::path("Call").grows(), Column::number("Changes"), Column::text("Allowed by").rank(1)];

/// The calls of a question.
pub(super) struct AskedCalls(pub(super) Vec<AskedCall>);

impl AskedCalls {
    pub(super) fn list(calls: &[AskedCall]) -> Box<dyn Panel> {
        Box::new(Picker::new(Self(calls.to_vec())))
    }
}

impl Source for AskedCalls {
    fn title(&self) -> String {
        "Calls that the answer is for".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec { verb: "open", columns: COLUMNS, table: Some(0), ..ListSpec::default() }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let item = |(n, call): (usize, &AskedCall)| {
            let counts = content::counts(&call.detail).filter(|_| call.diff);
            let changes = counts.map_or(String::new(), |(added, removed)| format!("+{added} -{removed}"));
            let by = if call.allowed { "a rule" } else { "your answer" };
            Item::new(n.to_string(), format!("{}. {}", n + 1, clean::plain(&call.title)))
                .detail(changes)
                .cell(Cell::new(by, Role::Dim))
        };
        self.0.iter().enumerate().map(item).collect()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if action.0 != "picker.choose" {
            return None;
        }
        let call = self.0.get(item?.id.parse::<usize>().ok()?)?;
        let open = Effect::Push(Box::new(AskedText::of(call)));
        Some(Outcome::Stay { effects: vec![open], reload: false })
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }
}

/// One of them: its text or its difference, as the approval shows it.
struct AskedText {
    title: String,
    call: AskedCall,
    columns: u16,
    scroll: Scroll,
    colours: DiffColours,
}

impl AskedText {
    fn of(call: &AskedCall) -> Self {
        Self {
            title: clean::plain(&call.title).into_owned(),
            call: call.clone(),
            columns: 0,
            scroll: Scroll::default(),
            colours: DiffColours::default(),
        }
    }
}

impl Panel for AskedText {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new("text")
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
        match action.0 {
            "list.copy" => {
                Reply::with(Effect::Task(Task::Copy { text: self.call.detail.clone(), what: "text" }))
            }
            "list.back" => Reply::with(Effect::Pop),
            id if self.scroll.act(id) => Reply::done(),
            _ => Reply::Ignored,
        }
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Mouse(event, _) => self.on_mouse(event),
            PanelInput::Escape(EscapeStep::Layer) => Reply::with(Effect::Pop),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        vec![Hint::of("list.page_down"), Hint::of("list.copy")]
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) -> Refresh {
        if self.colours.again() || area.width != self.columns {
            self.columns = area.width;
            let first = self.scroll.first();
            self.colours.begin();
            let text = content::asked_call(&self.call, draw::ascii(), &mut self.colours);
            self.colours.note(&text);
            self.scroll.set(text.lines);
            self.scroll.measure(usize::from(area.width), usize::from(area.height.saturating_sub(1)), true);
            self.scroll.go(first);
        }
        self.scroll.measure(usize::from(area.width), usize::from(area.height.saturating_sub(1)), true);
        Refresh::after(self.colours.wake())
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.scroll.draw(Rect { height: area.height.saturating_sub(1), ..area }, buf, cx.theme);
        let below = self.scroll.below();
        if below > 0 {
            let last = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
            draw::text(buf, last, &draw::below(below), cx.theme.style(Role::Dim));
        }
    }
}

impl AskedText {
    fn on_mouse(&mut self, event: &MouseEvent) -> Reply {
        if self.scroll.mouse(event) { Reply::done() } else { Reply::Ignored }
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::ask::Risk;
    use tiller_protocol::command::AskCommand;
    use tiller_protocol::{AskReply, CommandBody, Decision, SeqIds};

    use super::super::tests::{ask, asked, permission};
    use super::*;
    use crate::testing::Robot;

    fn script(r: &mut Robot) {
        let call = |title: &str, detail: &str, diff| AskedCall {
            title: title.into(),
            detail: detail.into(),
            diff,
            allowed: !diff,
        };
        let diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1,2 @@\n-old line\n+new line\n+another\n";
        let mut p = permission("1. write src/a.py\n2. run make", Risk::Low);
        p.verb = "script".into();
        p.editable = false;
        p.always = Some("write_file(src/**)".into());
        p.calls = vec![call("write src/a.py", diff, true), call("run make", "make\n\u{202e}all", false)];
        asked(r, &ask(&SeqIds::default(), p));
        r.run("wait 401").clear();
    }

    #[test]
    fn each_call_opens_with_its_exact_text_and_escape_leads_back() {
        for (width, height) in [(118, 25), (80, 24)] {
            let mut r = Robot::new(width, height);
            script(&mut r);
            assert!(r.screen().contains("each call"), "{}", r.screen());
            r.run("v");
            let list = r.screen();
            assert!(list.contains("1. write src/a.py") && list.contains("+2 -1"), "{list}");
            assert!(list.contains("a rule") && list.contains("your answer"), "{list}");
            r.run("enter");
            let one = r.screen();
            assert!(one.contains("new line") && one.contains("old line"), "{one}");
            r.run("esc; down; enter");
            let two = r.screen();
            assert!(two.contains("make") && !two.contains('\u{202e}'), "{two}");
            assert!(two.contains("invisible or misleading"), "{two}");
            r.run("esc; esc; wait 401");
            assert!(r.screen().contains("each call"), "the question is there: {}", r.screen());
            assert!(r.commands().is_empty(), "nothing was answered: {:?}", r.commands());
            r.run("y");
            let [CommandBody::Ask(AskCommand::Answer { reply, .. })] = r.commands()[..] else {
                panic!("{:?}", r.commands())
            };
            assert!(matches!(reply, AskReply::Permission { decision: Decision::Once, .. }));
        }
    }

    /// The yes holds for a pattern that the person edits, for this session too.
    #[test]
    fn a_pattern_that_was_edited_holds_for_the_session() {
        let mut r = Robot::new(118, 25);
        script(&mut r);
        r.run("A; ctrl-u; type write_file(src/a*); enter; wait 401; s");
        let [CommandBody::Ask(AskCommand::Answer { reply, .. })] = r.commands()[..] else {
            panic!("{:?}", r.commands())
        };
        let AskReply::Permission { decision: Decision::Session { pattern }, .. } = reply else {
            panic!("{reply:?}")
        };
        assert_eq!(pattern, "write_file(src/a*)");
    }
}
