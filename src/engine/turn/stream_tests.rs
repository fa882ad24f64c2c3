//! When pieces of a reply are handed over. That they arrive is shown by the stories.

use tiller_protocol::{StopReason, Usage};

use super::*;

fn text(text: &str) -> Chunk {
    Chunk::Text { index: 0, text: text.into() }
}

#[test]
fn the_first_words_go_at_once_and_later_ones_together() {
    let (start, mut pace) = (Instant::now(), Pace::default());
    assert_eq!(pace.due(), None);
    for _ in 0..EARLY {
        Chunk::join(&mut pace.waiting, text("a"));
        assert!(pace.may_go(start));
        assert_eq!(pace.take(start), [text("a")]);
    }
    for (n, t) in (1..).zip(["d", "e"]) {
        Chunk::join(&mut pace.waiting, text(t));
        assert!(!pace.may_go(start + PACE / 4 * n));
    }
    assert_eq!(pace.due(), Some(start + PACE));
    assert!(pace.may_go(start + PACE));
    assert_eq!(pace.take(start + PACE), [text("de")], "as one piece");
    assert_eq!(pace.due(), None, "nothing waits");
    // Blanks show nothing, so that what follows does not wait for its turn once more.
    Chunk::join(&mut pace.waiting, text("\n\n"));
    assert!(pace.may_go(start + PACE * 2));
    pace.take(start + PACE * 2);
    Chunk::join(&mut pace.waiting, text("g"));
    assert!(pace.may_go(start + PACE * 2));
    pace.take(start);
    // After a pause the next is a first one again.
    Chunk::join(&mut pace.waiting, text("f"));
    assert!(pace.may_go(start + PACE * 2));
}

#[test]
fn what_is_no_word_goes_at_once_with_what_waits_and_holds_nothing_up() {
    let (start, mut pace) = (Instant::now(), Pace::default());
    pace.waiting.push_back(Chunk::Usage(Usage::default()));
    assert!(pace.may_go(start));
    pace.take(start);
    for _ in 0..EARLY {
        pace.waiting.push_back(text("the first words"));
        assert!(pace.may_go(start), "counts do not delay them");
        pace.take(start);
    }
    pace.waiting.push_back(text("b"));
    assert!(!pace.may_go(start));
    pace.waiting.push_back(Chunk::Stop(StopReason::EndTurn));
    assert!(pace.may_go(start));
    assert_eq!(pace.take(start).len(), 2);
    pace.waiting = vec![text("x"); BATCH].into();
    assert!(pace.may_go(start), "a flood is not gathered without end");
}
