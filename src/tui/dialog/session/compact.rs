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
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::wrap::wrap;

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

impl Compact {
    fn lines(&self) -> Vec<String> {
        if let Some(why) = &self.failed {
            return vec![why.clone()];
        }
        let Some(p) = &self.preview else { return vec!["counting...".into()] };
        let mut lines = vec![
            format!("About {} tokens shrink to about {}.", p.tokens_before, p.tokens_after),
            format!(
                "{} entries are summarized, {} stay as they are. Nothing is deleted: the old \
                    path stays in the session.",
                p.summarised, p.kept
            ),
            String::new(),
        ];
        if !p.by_role.is_empty() {
            let of = |r: &RoleTokens| {
                let entries = if r.entries == 1 { "entry" } else { "entries" };
                format!("{} {} {entries}, about {} tokens", r.role, r.entries, r.tokens)
            };
            lines.push(format!("Model: {}.", p.by_role.iter().map(of).collect::<Vec<_>>().join("; ")));
            lines.push(String::new());
        }
        lines.push("Summarized:".into());
        lines.extend(p.goes.iter().map(|g| format!("  {g}")));
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
        let inner = area;
        let keys = format!(
            "[{}] compact   [{}] say what to keep   [{}] cancel",
            cx.key("compact.go"),
            cx.key("compact.focus"),
            cx.key("global.escape")
        );
        let rows: Vec<String> = self.lines().iter().flat_map(|l| wrap(l, usize::from(inner.width))).collect();
        for (i, row) in rows.iter().take(usize::from(inner.height.saturating_sub(2))).enumerate() {
            draw::text(
                buf,
                Rect { y: inner.y + i as u16, height: 1, ..inner },
                row,
                cx.theme.style(Role::Text),
            );
        }
        if inner.height > 0 {
            draw::text(
                buf,
                Rect { y: inner.bottom() - 1, height: 1, ..inner },
                &keys,
                cx.theme.style(Role::Accent),
            );
        }
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
        let words = r.words();
        assert!(words.contains("you 1 entry, about 40 tokens; result 6 entries, about 8000"), "{words}");
    }
}
