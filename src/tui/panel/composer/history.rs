//! Walking back through earlier prompts with Up and Down. The text being written is kept at the near end. The draft
//! of a walk that ends elsewhere is returned.

use tiller_protocol::Message;

use super::content::Content;

/// Texts that were neither sent nor cleared and are kept; beyond these the oldest go.
const UNSENT: usize = 100;

/// Prompts, newest last, and where the walk stands.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The prompts of earlier processes were requested.
    pub(super) asked: bool,
    prompts: Vec<Message>,
    /// Those of `prompts` that were neither sent nor cleared, oldest first: nothing else has them.
    unsent: Vec<Message>,
    /// Index into `prompts` while walking.
    at: Option<usize>,
    /// The text that was being written when the walk began.
    draft: Message,
    /// Drafts of walks that ended before their near end.
    parked: Vec<Message>,
}

/// The message as it is in the composer after a recall: a prompt of another process may end with a new line.
fn recalled(message: &Message) -> Message {
    Content::of(message).message()
}

/// True when there is nothing to keep in it.
fn is_blank(message: &Message) -> bool {
    message.text.trim().is_empty() && message.attachments.is_empty()
}

impl History {
    /// Adds the prompts of earlier processes, oldest first, before those of this process.
    pub(crate) fn fill(&mut self, earlier: Vec<String>) {
        self.stop();
        let own = std::mem::take(&mut self.prompts);
        let earlier = earlier.into_iter().map(|text| recalled(&Message::text(text)));
        self.prompts = earlier.filter(|m| !is_blank(m)).collect();
        own.into_iter().for_each(|message| self.add(message));
    }

    /// Adds a message that [`recalled`] has made.
    fn add(&mut self, message: Message) {
        self.stop();
        if !is_blank(&message) {
            self.prompts.retain(|m| *m != message);
            self.prompts.push(message);
        }
    }

    /// Adds what was sent.
    pub(crate) fn push(&mut self, message: Message) {
        let message = recalled(&message);
        self.unsent.retain(|m| *m != message);
        self.add(message);
    }

    /// Adds what was cleared. It is not on disk any more, unless it was there as an earlier prompt.
    pub(crate) fn cleared(&mut self, message: &Message) {
        self.add(recalled(message));
    }

    /// Adds what was written and neither sent nor cleared.
    pub(crate) fn keep(&mut self, message: Message) {
        let message = recalled(&message);
        if !is_blank(&message) {
            self.unsent.retain(|m| *m != message);
            self.unsent.push(message.clone());
            let over = self.unsent.len().saturating_sub(UNSENT);
            self.unsent.drain(..over);
        }
        self.add(message);
    }

    /// Texts that were neither sent nor cleared, oldest first.
    pub(crate) fn unsent(&self) -> &[Message] {
        &self.unsent
    }

    /// Returns what was being written when the walk began, while it lasts.
    pub(crate) fn draft(&self) -> Option<&Message> {
        self.at.map(|_| &self.draft).filter(|draft| !is_blank(draft))
    }

    /// The draft of the last walk that ended elsewhere; `None`: all of them were taken.
    pub(crate) fn take_parked(&mut self) -> Option<Message> {
        self.parked.pop()
    }

    /// One step back. `now` is what stands in the composer. `None` at the far end.
    pub(crate) fn older(&mut self, now: Message) -> Option<Message> {
        if !self.walking(&now) {
            self.stop();
        }
        let to = match self.at {
            None => self.prompts.len().checked_sub(1)?,
            Some(i) => i.checked_sub(1)?,
        };
        if self.at.is_none() {
            self.draft = now;
        }
        self.at = Some(to);
        self.prompts.get(to).cloned()
    }

    /// One step forward; the last one is what was being written. `None` when not walking: `now` is another text.
    pub(crate) fn newer(&mut self, now: &Message) -> Option<Message> {
        if !self.walking(now) {
            self.stop();
        }
        let at = self.at?;
        if at + 1 < self.prompts.len() {
            self.at = Some(at + 1);
            return self.prompts.get(at + 1).cloned();
        }
        self.at = None;
        Some(std::mem::take(&mut self.draft))
    }

    /// True while a walk has begun and not ended.
    pub(crate) fn is_begun(&self) -> bool {
        self.at.is_some()
    }

    /// True when Up may go on: nothing was changed since the last step.
    pub(crate) fn walking(&self, now: &Message) -> bool {
        self.at.is_some_and(|i| self.prompts.get(i) == Some(now))
    }

    /// Ends the walk: another text than the one that it came to stands in the composer.
    pub(crate) fn stop(&mut self) {
        if self.at.take().is_some() {
            let draft = std::mem::take(&mut self.draft);
            self.parked.extend(Some(draft).filter(|draft| !is_blank(draft)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_back_and_comes_home_to_the_draft() {
        let mut h = History::default();
        h.fill(vec!["a".into(), "b".into()]);
        h.push(Message::text("c"));
        h.push(Message::text("a"));
        let m = |t: &str| Some(Message::text(t));
        assert_eq!(h.older(Message::text("draft")), m("a"));
        assert_eq!(h.older(Message::text("a")), m("c"));
        assert_eq!(h.older(Message::text("c")), m("b"));
        assert_eq!(h.older(Message::text("b")), None);
        let mut newer = |now: &str| h.newer(&Message::text(now));
        assert_eq!((newer("b"), newer("c"), newer("a"), newer("draft")), (m("c"), m("a"), m("draft"), None));
        assert_eq!(h.take_parked(), None);
    }
    #[test]
    fn each_end_of_a_walk_hands_the_draft_back() {
        type End = fn(&mut History);
        let ends: [(&str, End); 7] = [
            ("an edit", History::stop),
            ("what is sent", |h| h.push(Message::text("sent"))),
            ("what is kept", |h| h.keep(Message::text("kept"))),
            ("what is cleared", |h| h.cleared(&Message::text("cleared"))),
            ("Up from another text", |h| drop(h.older(Message::text("other")))),
            ("Down from another text", |h| drop(h.newer(&Message::text("other")))),
            ("prompts that come late", |h| h.fill(vec!["late".into()])),
        ];
        for (what, end) in ends {
            let mut h = History::default();
            h.fill(vec!["a".into(), "b".into()]);
            h.older(Message::text("draft"));
            assert_eq!(h.draft(), Some(&Message::text("draft")));
            end(&mut h);
            assert_eq!((h.take_parked(), h.take_parked()), (Some(Message::text("draft")), None), "{what}");
        }
    }
    #[test]
    fn a_prompt_that_ends_with_a_new_line_does_not_end_the_walk() {
        let mut h = History::default();
        h.fill(vec!["oldest".into(), "  \n".into(), "piped\n".into()]);
        let first = h.older(Message::text("draft")).unwrap();
        assert_eq!(first, Message::text("piped"));
        assert_eq!(h.older(Content::of(&first).message()), Some(Message::text("oldest")));
        assert_eq!(h.take_parked(), None);
    }

    #[test]
    fn what_was_taken_back_is_unsent_again_and_what_is_cleared_is_not_on_disk() {
        let mut h = History::default();
        h.push(Message::text("words"));
        assert!(h.unsent().is_empty());
        h.keep(Message::text("words"));
        h.keep(Message::text("words"));
        assert_eq!(h.unsent(), [Message::text("words")]);
        h.push(Message::text("words"));
        h.cleared(&Message::text("secret"));
        assert!(h.unsent().is_empty());
        assert_eq!(h.older(Message::default()), Some(Message::text("secret")));
    }
}
