//! An earlier result is used again for the same task, or one that is alike, while the files that it comes from are unchanged.

use serde_json::{Value, json};
use tiller_config::schema::Reuse;

use crate::agents::delegation::{delegate, first, result};
use crate::rig::*;

const TASK: &str = "Count the public functions in a.txt and list the names of all of them";
const ALIKE: &str = "Count the public functions of a.txt, and list the names of all of them, please";

/// How the first agent works: the calls that it makes before it answers.
type Work = &'static [(&'static str, &'static str, fn() -> Value)];

const READS: Work = &[("r1", "read_file", || json!({"path": "a.txt"}))];
const LOOKS: Work = &[("s1", "search", || json!({"pattern": "fn"}))];
const NOTHING: Work = &[];

/// Two turns delegate `TASK`, then `second`; `between` happens between them. Returns how often an agent was asked for each, and
/// what the main agent got for the second.
async fn twice(
    reuse: Reuse,
    work: Work,
    second: Value,
    between: impl FnOnce(&Place),
) -> (usize, String, String) {
    let place = Place::new();
    place.file("a.txt", "fn one\n");
    let later = second.clone();
    let fake = Fake::with(move |_, r| match (first(r).as_str(), r.messages.len()) {
        ("go", 1) => delegate(json!([{"goal": TASK}])),
        ("go", 3) => says("Counted."),
        ("go", 5) => delegate(json!([later])),
        ("go", _) => says(&result(r).unwrap()),
        (_, 1) if !work.is_empty() => {
            let all: Vec<(&str, &str, Value)> =
                work.iter().map(|(id, tool, args)| (*id, *tool, args())).collect();
            calls(&all)
        }
        _ => says("one, and no other"),
    });
    let mut rig = place.start_with(&fake, |p| p.config.agents.reuse = reuse).await;
    rig.turn("go").await;
    between(&place);
    let (_, text) = rig.turn("again").await;
    let goal = second["goal"].as_str().unwrap().to_owned();
    let of = |wanted: &str| {
        fake.requests
            .lock()
            .unwrap()
            .iter()
            .filter(|r| {
                let words = first(r);
                (words == wanted || words.starts_with(&format!("{wanted}\n"))) && r.messages.len() == 1
            })
            .count()
    };
    let runs = if goal == TASK { of(TASK) } else { of(TASK) + of(&goal) };
    let row = rig.seen.iter().rev().find_map(|e| {
        let text = serde_json::to_string(&e.body).unwrap();
        text.contains("reused from").then_some(text)
    });
    rig.quit().await;
    (runs, text, row.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_result_of_a_task_that_is_alike_is_used_again_and_shown() {
    for work in [NOTHING, READS, LOOKS] {
        let (runs, text, row) = twice(Reuse::Alike, work, json!({"goal": ALIKE}), |_| ()).await;
        assert_eq!(runs, 1, "{text}");
        assert!(text.contains("\"reused\":true") && text.contains("one, and no other"), "{text}");
        assert!(row.contains("1 of 1 done; reused from a1"), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_used_again_unless_it_is_switched_on_alike_enough_and_not_refused() {
    for (reuse, second, runs) in [
        (Reuse::Off, json!({"goal": TASK}), 2),
        (Reuse::Off, json!({"goal": TASK, "reuse": true}), 1),
        (Reuse::Off, json!({"goal": ALIKE, "reuse": true}), 2),
        (Reuse::Same, json!({"goal": TASK}), 1),
        (Reuse::Same, json!({"goal": ALIKE}), 2),
        (Reuse::Alike, json!({"goal": ALIKE, "reuse": false}), 2),
        (Reuse::Alike, json!({"goal": ALIKE.replace("a.txt", "b.txt")}), 2),
        (Reuse::Alike, json!({"goal": ALIKE.replace("all of them", "none of them")}), 2),
        (
            Reuse::Alike,
            json!({"goal": ALIKE, "context": "The names are in Greek, and each letter of the alphabet has a count of its own."}),
            2,
        ),
        (Reuse::Alike, json!({"goal": ALIKE, "tools": ["read"]}), 2),
        (Reuse::Alike, json!({"goal": ALIKE, "isolated": true}), 1),
    ] {
        let (asked, text, _) = twice(reuse, NOTHING, second.clone(), |_| ()).await;
        // Here agents cannot have folders of their own, so that the last one is not started at all.
        assert_eq!(asked, runs, "{reuse:?} {second}: {text}");
        assert_eq!(
            text.contains("\"reused\":true"),
            runs == 1 && second["isolated"] != true,
            "{second}: {text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_not_used_again_when_a_file_that_it_comes_from_has_changed() {
    let changed: fn(&Place) = |place| place.file("a.txt", "fn two\n");
    let other: fn(&Place) = |place| place.file("b.txt", "new\n");
    for (work, between, runs) in [
        (READS, changed, 2),
        (READS, other, 1),
        (LOOKS, changed, 2),
        (LOOKS, other, 2),
        (NOTHING, changed, 1),
    ] {
        let (asked, text, _) = twice(Reuse::Alike, work, json!({"goal": ALIKE}), between).await;
        assert_eq!(asked, runs, "{text}");
    }
}
