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

/// Images are left out in steps of this size, or of half the limit where that is less, so that the beginning of a request seldom
/// changes.
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
        (0..all)
            .step_by(STEP.min(self.count / 2).max(1))
            .chain(0..=all)
            .find(|from| fits(*from))
            .unwrap_or(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under each limit, about as many images are sent as may be, and the beginning of the request seldom changes.
    #[test]
    fn images_are_left_out_in_steps_that_fit_the_limit() {
        for count in [1, 2, 5, 8, 10, 20, 30, 100] {
            let limits = ImageLimits { count, bytes: usize::MAX, many: (usize::MAX, 0) };
            let step = STEP.min(count / 2).max(1);
            let left_out: Vec<usize> = (0..=4 * count).map(|n| limits.too_many(&vec!["x"; n])).collect();
            for (n, out) in left_out.iter().enumerate() {
                let sent = n - out;
                assert!(sent <= count && (*out == 0 || sent + step > count), "{count}: {sent} of {n}");
                assert!(n > count || *out == 0, "{count}: {out} of {n}");
            }
            let changes = left_out.windows(2).filter(|two| two[0] != two[1]).count();
            assert!(changes <= (3 * count).div_ceil(step), "{count}: {changes}");
        }
    }
}
