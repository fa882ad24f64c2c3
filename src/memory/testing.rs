//! Shared by the tests of this room.

use tiller_protocol::{FailureKind, Learning, LearningSource, LearningState, Taint, Time};

/// 2026-11-21T20:00:00Z.
pub(crate) const NOW: Time = Time(1_795_291_200_000);

/// A learning in use about a command that failed, from the output of a command.
pub(crate) fn learning(subject: &str, error: &str, fix: &str) -> Learning {
    Learning {
        id: 0,
        kind: FailureKind {
            tool: "terminal".into(),
            subject: subject.into(),
            error_type: error.into(),
            details: Vec::new(),
        },
        pattern: subject.into(),
        error: String::new(),
        fix: fix.into(),
        context: String::new(),
        tags: Vec::new(),
        state: LearningState::Active,
        created_at: NOW,
        last_used_at: None,
        times_used: 0,
        source: learning_source(Taint::ToolOutput),
    }
}

/// The main agent on the main branch, without a session.
pub(crate) fn learning_source(taint: Taint) -> LearningSource {
    LearningSource { session: None, entry: None, agent: "main".into(), branch: "main".into(), taint }
}
