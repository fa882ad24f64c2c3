//! Walking back through earlier prompts with Up and Down. The text being written is kept at the near end.

use tiller_protocol::Message;

/// Prompts, newest last, and where the walk stands.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The prompts of earlier processes were requested.
    pub(super) asked: bool,
    prompts: Vec<Message>,
    /// Index into `prompts` while walking.
    at: Option<usize>,
    /// What was being written when the walk began.
    draft: Message,
}

impl History {
    /// Adds the prompts of earlier processes, oldest first, before those of this process.
    pub(crate) fn fill(&mut self, earlier: Vec<String>) {
        let own = std::mem::take(&mut self.prompts);
        self.prompts = earlier.into_iter().map(Message::text).collect();
        for m in own {
            self.push(m);
        }
    }

    /// Adds what was sent or cleared.
    pub(crate) fn push(&mut self, message: Message) {
        if message.text.trim().is_empty() {
            return;
        }
        self.prompts.retain(|m| *m != message);
        self.prompts.push(message);
        self.at = None;
    }

    /// One step back. `now` is what stands in the composer. `None` at the far end.
    pub(crate) fn older(&mut self, now: Message) -> Option<Message> {
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

    /// One step forward; the last one is what was being written. `None` when not walking.
    pub(crate) fn newer(&mut self) -> Option<Message> {
        let at = self.at?;
        if at + 1 < self.prompts.len() {
            self.at = Some(at + 1);
            return self.prompts.get(at + 1).cloned();
        }
        self.at = None;
        Some(std::mem::take(&mut self.draft))
    }

    /// Whether Up may go on: nothing was changed since the last step.
    pub(crate) fn walking(&self, now: &Message) -> bool {
        self.at.is_some_and(|i| self.prompts.get(i) == Some(now))
    }

    /// The text was edited: the walk is over.
    pub(crate) fn stop(&mut self) {
        self.at = None;
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
        assert_eq!((h.newer(), h.newer(), h.newer(), h.newer()), (m("c"), m("a"), m("draft"), None));
    }
}
