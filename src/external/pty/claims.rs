//! The estimated activity of the program: one claim for each source, the highest source counts.

use std::collections::BTreeMap;

use crate::event::ActivityClaim;
use tiller_protocol::{Activity, ActivitySource};

/// The present claims by source.
#[derive(Debug, Default)]
pub(crate) struct Claims(BTreeMap<ActivitySource, Activity>);

impl Claims {
    /// Sets the claim of `source`; `None` removes it.
    pub(crate) fn set(&mut self, source: ActivitySource, what: Option<Activity>) {
        match what {
            Some(what) => _ = self.0.insert(source, what),
            None => _ = self.0.remove(&source),
        }
    }

    /// The claim of `source`.
    pub(crate) fn of(&self, source: ActivitySource) -> Option<Activity> {
        self.0.get(&source).copied()
    }

    /// The claim of the highest source; but a visible blocking prompt overrides any claim, which must be stale then.
    /// Without a claim: unknown.
    pub(crate) fn best(&self) -> ActivityClaim {
        if self.0.get(&ActivitySource::Screen) == Some(&Activity::Blocked) {
            return ActivityClaim { what: Activity::Blocked, source: ActivitySource::Screen };
        }
        let best = self.0.iter().next_back();
        best.map_or(
            ActivityClaim { what: Activity::Unknown, source: ActivitySource::Process },
            |(source, what)| ActivityClaim { what: *what, source: *source },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_source_never_overwrites_a_higher_one_but_for_a_visible_prompt() {
        let mut claims = Claims::default();
        assert_eq!(claims.best().what, Activity::Unknown);
        claims.set(ActivitySource::Escape, Some(Activity::Working));
        claims.set(ActivitySource::Screen, Some(Activity::Idle));
        claims.set(ActivitySource::Silence, Some(Activity::Idle));
        assert_eq!(claims.best(), ActivityClaim { what: Activity::Working, source: ActivitySource::Escape });
        claims.set(ActivitySource::Screen, Some(Activity::Blocked));
        assert_eq!(claims.best(), ActivityClaim { what: Activity::Blocked, source: ActivitySource::Screen });
        claims.set(ActivitySource::Screen, None);
        assert_eq!(claims.best().what, Activity::Working);
        claims.set(ActivitySource::Escape, None);
        assert_eq!(claims.best(), ActivityClaim { what: Activity::Idle, source: ActivitySource::Silence });
    }
}
