//! What the program seems to be doing: one claim for each source, the highest source counts.

use std::collections::BTreeMap;

use crate::event::{Activity, ActivityClaim, Source};

/// What each source claims now.
#[derive(Debug, Default)]
pub(crate) struct Claims(BTreeMap<Source, Activity>);

impl Claims {
    /// `source` claims `what`, or nothing any more.
    pub(crate) fn set(&mut self, source: Source, what: Option<Activity>) {
        match what {
            Some(what) => _ = self.0.insert(source, what),
            None => _ = self.0.remove(&source),
        }
    }

    /// What `source` claims.
    pub(crate) fn of(&self, source: Source) -> Option<Activity> {
        self.0.get(&source).copied()
    }

    /// The claim of the highest source; but a prompt that is seen to block counts more than any claim, which must be
    /// stale then. Without a claim: unknown.
    pub(crate) fn best(&self) -> ActivityClaim {
        if self.0.get(&Source::Screen) == Some(&Activity::Blocked) {
            return ActivityClaim { what: Activity::Blocked, source: Source::Screen };
        }
        let best = self.0.iter().next_back();
        best.map_or(ActivityClaim { what: Activity::Unknown, source: Source::Process }, |(source, what)| {
            ActivityClaim { what: *what, source: *source }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_source_never_overwrites_a_higher_one_but_for_a_visible_prompt() {
        let mut claims = Claims::default();
        assert_eq!(claims.best().what, Activity::Unknown);
        claims.set(Source::Escape, Some(Activity::Working));
        claims.set(Source::Screen, Some(Activity::Idle));
        claims.set(Source::Silence, Some(Activity::Idle));
        assert_eq!(claims.best(), ActivityClaim { what: Activity::Working, source: Source::Escape });
        claims.set(Source::Screen, Some(Activity::Blocked));
        assert_eq!(claims.best(), ActivityClaim { what: Activity::Blocked, source: Source::Screen });
        claims.set(Source::Screen, None);
        assert_eq!(claims.best().what, Activity::Working);
        claims.set(Source::Escape, None);
        assert_eq!(claims.best(), ActivityClaim { what: Activity::Idle, source: Source::Silence });
    }
}
