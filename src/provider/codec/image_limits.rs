//! Limits for all images of a conversation: vendors limit their number and their total size in one request.

use std::borrow::Cow;

use tiller_protocol::Part;

use crate::codec::picture;
use crate::codec::request::ChatMessage;

/// Limits for all images of a request.
#[derive(Clone, Copy)]
pub(crate) struct ImageLimits {
    pub(crate) count: usize,
    /// Total bytes in base64.
    pub(crate) bytes: usize,
    /// With more images than the first number, none may have a side longer than the second, in pixels.
    pub(crate) many: (usize, u32),
}

/// Images are left out in steps of this size, so that the beginning of a request seldom changes.
const STEP: usize = 10;

/// The parts of a message other than a reply.
pub(crate) fn parts(message: &ChatMessage) -> &[Part] {
    match message {
        ChatMessage::User { content } | ChatMessage::ToolResult { content, .. } => content,
        ChatMessage::Assistant { .. } => &[],
    }
}

impl ImageLimits {
    /// Replaces the oldest images by text, as far as there are too many or one of them was refused.
    pub(crate) fn leave_out(&self, messages: &mut [Cow<'_, ChatMessage>], refused: usize) {
        let found: Vec<&str> = messages
            .iter()
            .flat_map(|m| parts(m))
            .filter_map(|p| if let Part::Image { data, .. } = p { Some(data.as_str()) } else { None })
            .collect();
        let many = self.too_many(&found);
        let mut n = 0;
        for message in messages {
            let before = n;
            n += parts(message).iter().filter(|p| matches!(p, Part::Image { .. })).count();
            if before == n || before >= many.max(refused) {
                continue;
            }
            let (ChatMessage::User { content } | ChatMessage::ToolResult { content, .. }) = message.to_mut()
            else {
                continue;
            };
            let images = content.iter_mut().filter(|p| matches!(p, Part::Image { .. }));
            for (at, part) in (before..).zip(images) {
                let text = match at {
                    at if at < many => "[image left out: there are too many in this conversation]",
                    at if at < refused => "[image left out: the server refused it, or one beside it]",
                    _ => break,
                };
                *part = Part::Text { text: text.into() };
            }
        }
    }

    /// How many of the oldest `images` (base64) must be left out.
    pub(crate) fn too_many(&self, images: &[&str]) -> usize {
        let (count, side) = self.many;
        let large: Vec<bool> = match images.len() {
            n if n > count => {
                images.iter().map(|i| picture::side(i).is_some_and(|pixels| pixels > side)).collect()
            }
            n => vec![false; n],
        };
        let fits = |from: usize| {
            let rest = images.len() - from;
            rest <= self.count
                && images[from..].iter().map(|i| i.len()).sum::<usize>() <= self.bytes
                && (rest <= count || !large[from..].contains(&true))
        };
        let all = images.len();
        (0..all).step_by(STEP).chain(0..=all).find(|from| fits(*from)).unwrap_or(all)
    }
}
