//! Ends of a child's own children, which its next entry reports.

use tiller_protocol::AgentId;

use crate::crew::driver::ChildDriver;

impl ChildDriver<'_> {
    /// A child of this agent has ended.
    pub(crate) fn child_ended(&mut self, id: AgentId, text: String) {
        self.core.context.news.must(text.clone());
        if let Some(child) = self.core.identity.child_mut() {
            child.unannounced.push((id, text));
        }
    }

    /// This agent has ended: the ends that it has not reported go to the agent above it.
    pub(crate) fn take_unannounced(&mut self) -> Vec<AgentId> {
        let heard =
            self.core.identity.child_mut().map(|c| std::mem::take(&mut c.unannounced)).unwrap_or_default();
        for (_, text) in &heard {
            self.core.context.news.take_back(text);
        }
        heard.into_iter().map(|(id, _)| id).collect()
    }
}
