//! Shared by the tests of this room.

use tiller_protocol::{FailureKind, Learning, LearningSource, LearningState, Taint, Time};

/// 2026-11-21T20:00:00Z.
pub(crate) const NOW: Time = Time(1_795_291_200_000);

/// A learning in use about a command that failed, from the output of a command.
pub(crate) fn learning(subject: &str, error: &str, fix: &str) -> Learning {
    let kind = FailureKind {
        tool: "terminal".into(),
        subject: subject.into(),
        error_type: error.into(),
        details: Vec::new(),
    };
    Learning {
        pattern: subject.into(),
        fix: fix.into(),
        state: LearningState::Active,
        ..Learning::proposed(kind, learning_source(Taint::ToolOutput), NOW)
    }
}

/// The main agent on the main branch, without a session.
pub(crate) fn learning_source(taint: Taint) -> LearningSource {
    LearningSource { session: None, entry: None, agent: "main".into(), branch: "main".into(), taint }
}
