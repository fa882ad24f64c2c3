//! What the program seems to be doing: one claim for each source, the highest source counts.

use std::collections::BTreeMap;

use crate::said::{Doing, Guess, Source};

/// What each source claims now.
#[derive(Debug, Default)]
pub(crate) struct Claims(BTreeMap<Source, Doing>);

impl Claims {
    /// `source` claims `what`, or nothing any more.
    pub(crate) fn set(&mut self, source: Source, what: Option<Doing>) {
        match what {
            Some(what) => _ = self.0.insert(source, what),
            None => _ = self.0.remove(&source),
        }
    }

    /// What `source` claims.
    pub(crate) fn of(&self, source: Source) -> Option<Doing> {
        self.0.get(&source).copied()
    }

    /// The claim of the highest source; but a prompt that is seen to block counts more than any claim, which must be
    /// stale then. Without a claim: unknown.
    pub(crate) fn best(&self) -> Guess {
        if self.0.get(&Source::Screen) == Some(&Doing::Blocked) {
            return Guess { what: Doing::Blocked, source: Source::Screen };
        }
        let best = self.0.iter().next_back();
        best.map_or(Guess { what: Doing::Unknown, source: Source::Process }, |(source, what)| Guess {
            what: *what,
            source: *source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_source_never_overwrites_a_higher_one_but_for_a_visible_prompt() {
        let mut claims = Claims::default();
        assert_eq!(claims.best().what, Doing::Unknown);
        claims.set(Source::Escape, Some(Doing::Working));
        claims.set(Source::Screen, Some(Doing::Idle));
        claims.set(Source::Silence, Some(Doing::Idle));
        assert_eq!(claims.best(), Guess { what: Doing::Working, source: Source::Escape });
        claims.set(Source::Screen, Some(Doing::Blocked));
        assert_eq!(claims.best(), Guess { what: Doing::Blocked, source: Source::Screen });
        claims.set(Source::Screen, None);
        assert_eq!(claims.best().what, Doing::Working);
        claims.set(Source::Escape, None);
        assert_eq!(claims.best(), Guess { what: Doing::Idle, source: Source::Silence });
    }
}
