//! Reasoning: one row, unless unfolded.

use super::{CellCx, CellLayout, INDENT, seconds};
use crate::text::clean::{self, lines};
use crate::text::line::{Line, Look, Wrap};
use crate::text::shorten::shorten_end;
use crate::theme::Role;

pub(super) fn lay(text: &str, took: Option<f64>, open: bool, cx: &CellCx<'_>) -> CellLayout {
    let look = Look::of(Role::Thinking);
    let mut head = String::from(if open { "thinking" } else { "thought" });
    if let Some(s) = took.filter(|s| *s >= 0.1) {
        head.push_str(&format!(" {}", seconds(s)));
    }
    let mut all = Vec::new();
    if text.is_empty() {
        head.push_str(" (not disclosed by the provider)");
        all.push(Line::strict(&head, look, Wrap::Word));
    } else if cx.unfolded {
        all.push(Line::strict(&head, look, Wrap::Word));
        for l in lines(text) {
            let mut line = Line::default();
            line.push(l, look.italic());
            all.push(line);
        }
    } else {
        // The last words while it streams, the first ones afterwards. Only what fits is looked at.
        let room = cx.prose().saturating_sub(INDENT + head.len() + 2);
        let words = |s: &str| clean::plain(&s.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
        let part = if open {
            let from = text.floor_char_boundary(text.len().saturating_sub(4 * room.max(1)));
            let tail = words(&text[from..]);
            let over = crate::text::width(&tail).saturating_sub(room);
            tail.chars().skip(over).collect()
        } else {
            words(&text[..text.floor_char_boundary(4 * room.max(1))])
        };
        if room > 8 {
            head.push_str(": ");
            head.push_str(&shorten_end(&part, room, cx.ascii));
        }
        all.push(Line::strict(&head, look, Wrap::Cut));
    }
    let mut laid = CellLayout::of(all, cx, INDENT);
    laid.mark = Some((if open { "~ " } else { ". " }, Role::Thinking));
    laid
}
