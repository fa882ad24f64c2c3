//! When pieces of a reply are handed over. That they arrive is shown by the stories.

use tiller_protocol::{StopReason, Usage};

use super::*;

fn text(text: &str) -> Chunk {
    Chunk::Text { index: 0, text: text.into() }
}

#[test]
fn the_first_words_go_at_once_and_later_ones_together() {
    let (start, mut pace) = (Instant::now(), Pacing::default());
    assert_eq!(pace.due(), None);
    for _ in 0..EARLY {
        Chunk::join(&mut pace.waiting, text("a "));
        assert!(pace.may_go(start));
        assert_eq!(pace.take(start), [text("a ")]);
    }
    for (n, t) in (1..).zip(["d", "e "]) {
        Chunk::join(&mut pace.waiting, text(t));
        assert!(!pace.may_go(start + PACE / 4 * n));
    }
    assert_eq!(pace.due(), Some(start + PACE));
    assert!(pace.may_go(start + PACE));
    assert_eq!(pace.take(start + PACE), [text("de ")], "as one piece");
    assert_eq!(pace.due(), None, "nothing waits");
    // Blanks show nothing, so that what follows does not wait for its turn once more.
    Chunk::join(&mut pace.waiting, text("\n\n"));
    assert!(pace.may_go(start + PACE * 2));
    pace.take(start + PACE * 2);
    Chunk::join(&mut pace.waiting, text("g "));
    assert!(pace.may_go(start + PACE * 2));
    pace.take(start);
    // After a pause the next is a first one again.
    Chunk::join(&mut pace.waiting, text("f "));
    assert!(pace.may_go(start + PACE * 2));
}

#[test]
fn what_is_no_word_goes_at_once_with_what_waits_and_holds_nothing_up() {
    let (start, mut pace) = (Instant::now(), Pacing::default());
    pace.waiting.push_back(Chunk::Usage(Usage::default()));
    assert!(pace.may_go(start));
    pace.take(start);
    for _ in 0..EARLY {
        pace.waiting.push_back(text("the first words "));
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

#[tokio::test]
async fn a_connection_that_hands_over_one_piece_at_a_time_is_emptied_in_one_go() {
    for turns in [0, TURNS] {
        let (tx, rx) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            for n in 0..20 {
                tx.send(n).await.unwrap();
            }
            // Nothing more for now.
            std::future::pending::<()>().await;
            drop(tx);
        });
        let mut chunks =
            Box::pin(futures_util::stream::unfold(rx, async |mut rx| Some((rx.recv().await?, rx))).fuse());
        let mut batch = vec![chunks.next().await.unwrap()];
        gather(&mut chunks, &mut batch, turns).await;
        assert_eq!(batch.len() == 20, turns > 0, "{batch:?}");
        assert!(batch.iter().copied().eq(0..batch.len()), "in order: {batch:?}");
        task.abort();
        // The end is no piece, and comes once more.
        let _ = task.await;
        gather(&mut chunks, &mut batch, TURNS).await;
        gather(&mut chunks, &mut batch, TURNS).await;
        assert_eq!(chunks.next().await, None);
    }
}

#[test]
fn between_two_frames_nothing_is_read_but_of_a_flood() {
    let (start, mut pace) = (Instant::now(), Pacing::default());
    let say = |pace: &mut Pacing, pieces: usize, words: &str| {
        pace.heard += pieces;
        Chunk::join(&mut pace.waiting, text(words));
        pace.take(start);
    };
    for _ in 0..EARLY {
        assert_eq!(pace.rest(start), None, "the first words are waited for");
        say(&mut pace, 1, "word ");
    }
    assert_eq!(pace.rest(start), Some(start + PACE));
    assert_eq!(pace.rest(start + PACE), None, "it is over");
    say(&mut pace, FLOOD, "word ");
    assert_eq!(pace.rest(start), None, "more than a screen can show");
    say(&mut pace, 1, "word ");
    assert_eq!(pace.rest(start), Some(start + PACE), "counted anew for each frame");
    Chunk::join(&mut pace.waiting, text("more"));
    assert_eq!(pace.rest(start), None, "something waits to go");
}
