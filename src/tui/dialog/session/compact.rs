//! The dialog before a compaction: what is summarised and what stays.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::command::ContextCommand;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::notice::sentence;
use tiller_protocol::view::{CompactPreview, RoleTokens};
use tiller_protocol::{CommandBody, Event, EventBody};

use crate::app::effect::{ComposerInput, Effect, Token};
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelStatus, Placement, Reply};
use crate::registry::{Dialog, Opener};
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::paint;
use crate::text::sheet::Sheet;
use crate::theme::Role;
use crate::view::words::short;
use crate::widget::activity_table::push_figure;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("compact.open", "compact", "Compact the conversation to free context", |app| {
        if app.model.agent.turn.running {
            Err("A turn is running; stop it first".into())
        } else {
            Ok(Box::new(Compact::default()))
        }
    })
    .menu(Menu::Session)
    .keys(&["leader c"])],
    groups: &[("Compaction", ACTIONS)],
    scopes: &[
        Scope::new("compact", None, "Compaction", false).keys(&[("c", "compact.go"), ("w", "compact.focus")])
    ],
    ..Dialog::NONE
};

/// Its actions.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("compact.go", "compact", "Compact the conversation").deciding(),
    ActionSpec::key_only("compact.focus", "say what to keep", "Write what the summary must keep"),
];

/// The dialog.
#[derive(Default)]
pub(crate) struct Compact {
    preview: Option<CompactPreview>,
    failed: Option<String>,
}

/// Columns of the labels.
const LABEL: usize = 12;

/// A labelled line in pieces; numbers are in the text's look, words around them are dim.
fn fact(label: &str, text: &str) -> Line {
    let mut line = Line::new(Wrap::Word);
    for (n, word) in text.split(' ').enumerate() {
        let gap = if n > 0 { " " } else { "" };
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        line.push_strict(gap, Look::of(Role::Dim));
        push_figure(&mut line, word, Look::of(if number { Role::Text } else { Role::Dim }));
    }
    line.gutter(Gutter::new(format!("{label:<LABEL$}"), Role::Dim))
}

fn entries(n: u64) -> String {
    format!("{n} {}", if n == 1 { "entry" } else { "entries" })
}

impl Compact {
    fn lines(&self) -> Vec<Line> {
        let plain = |text: &str, role| Line::strict(text, Look::of(role), Wrap::Word);
        if let Some(why) = &self.failed {
            return vec![plain(why, Role::Error)];
        }
        let Some(p) = &self.preview else { return vec![plain("Counting...", Role::Dim)] };
        let mut lines = vec![
            fact(
                "Tokens",
                &format!("about {} become about {}", short(p.tokens_before), short(p.tokens_after)),
            ),
            fact("Summarized", &entries(p.summarised)),
            fact("Kept", &entries(p.kept)),
            Line::new(Wrap::Word),
            plain("Nothing is deleted: the old path stays in the session.", Role::Text),
        ];
        if !p.by_role.is_empty() {
            lines.push(Line::new(Wrap::Word));
            let of = |r: &RoleTokens| {
                fact(
                    &r.role.to_string(),
                    &format!("{}, about {} tokens", entries(r.entries), short(r.tokens)),
                )
            };
            lines.extend(p.by_role.iter().map(of));
        }
        if !p.goes.is_empty() {
            lines.push(Line::new(Wrap::Word));
            lines.push(plain("What is summarized", Role::Strong));
            lines.extend(p.goes.iter().map(|g| plain(g, Role::Text)));
        }
        lines
    }
}

impl Panel for Compact {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new("compact")
    }

    fn title(&self, _model: &Model) -> String {
        "Compact the conversation?".into()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Center { width: 84, height: 20 }
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        match action.0 {
            "compact.go" if self.preview.is_some() => {
                let go = CommandBody::Context(ContextCommand::Compact { focus: None });
                Reply::Done(vec![Effect::Pop, Effect::send(go)])
            }
            "compact.focus" => Reply::Done(vec![
                Effect::Pop,
                Effect::Compose(ComposerInput::Text { text: "/compact ".into(), replace: true }),
            ]),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open()),
            PanelEvent::Answer(_, event) => self.on_answer(event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.preview.is_some() {
            vec![Hint::of("compact.go"), Hint::of("compact.focus")]
        } else {
            Vec::new()
        }
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let sheet = Sheet::new(self.lines(), usize::from(area.width).max(1));
        paint::sheet(buf, area, &sheet, cx.theme);
    }
}

impl Compact {
    fn on_open(&mut self) -> Vec<Effect> {
        vec![Effect::ask(CommandBody::Context(ContextCommand::CompactPreview), Token(1))]
    }

    fn on_answer(&mut self, event: &Event) -> Reply {
        if let EventBody::Reply(reply) = &event.body {
            match reply.as_ref() {
                ReplyEvent::CompactPreviewReply { preview } => self.preview = Some(preview.clone()),
                ReplyEvent::ErrorReply { notice } => self.failed = Some(sentence(&notice.message)),
                _ => {}
            }
        }
        Reply::done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Robot;

    #[test]
    fn what_goes_is_told_by_role() {
        let mut r = Robot::new(118, 25);
        r.run("ctrl-x c");
        let role = |role: &str, entries, tokens| RoleTokens { role: role.into(), entries, tokens };
        let preview = CompactPreview {
            tokens_before: 9_000,
            tokens_after: 1_200,
            summarised: 7,
            kept: 3,
            goes: vec!["you: mend the tests".into()],
            by_role: vec![role("you", 1, 40), role("result", 6, 8_000)],
        };
        r.reply(ReplyEvent::CompactPreviewReply { preview });
        let screen = r.screen();
        for (who, what) in [("you", "1 entry, about 40 tokens"), ("result", "6 entries, about 8.0k tokens")] {
            let row = screen.lines().any(|l| l.split_once(who).is_some_and(|(_, rest)| rest.contains(what)));
            assert!(row, "{who}: {screen}");
        }
    }
}
