use std::collections::HashSet;

use tiller_protocol::command::Query;
use tiller_protocol::{EventBody, StopReason};

use super::super::script::{Script, answer, call, text};
use super::*;
use crate::testing::Random;

/// Turns of a message, replies and calls with their results, `count` entries in all.
fn path(s: &mut Script, random: &mut Random, count: usize) -> Vec<Entry> {
    let mut all = Vec::with_capacity(count + 4);
    while all.len() < count {
        more(s, random, &mut all);
    }
    all
}

/// Some entries that may come next.
fn more(s: &mut Script, random: &mut Random, all: &mut Vec<Entry>) {
    let n = all.len();
    match random.below(3) {
        0 => all.push(s.user(&format!("message {n}"))),
        1 => all.push(s.assistant(vec![text(&format!("answer {n}"))], StopReason::EndTurn)),
        _ => {
            let (a, b) = (format!("call {n}"), format!("second {n}"));
            let both = random.below(2) == 0;
            let calls = if both { vec![text("two"), call(&a), call(&b)] } else { vec![call(&a)] };
            all.push(s.assistant(calls, StopReason::ToolUse));
            all.push(s.result(&a, "output"));
            if both {
                all.push(s.result(&b, "output"));
            }
        }
    }
}

/// The places on the path of what these cells stand for.
fn places<'c>(all: &[Entry], cells: impl Iterator<Item = &'c Cell>) -> HashSet<usize> {
    let place = |id: EntryId| all.binary_search_by_key(&id, |e| e.id).expect("an entry of the path");
    let ids = cells.flat_map(|c| {
        let result = match &c.body {
            Body::Tool(t) => t.result.as_ref().map(|r| r.id),
            _ => None,
        };
        [c.entry, result].into_iter().flatten()
    });
    ids.map(place).collect()
}

/// From the first to the last place, which hold everything between them.
fn stretch(places: &HashSet<usize>, what: &str) -> (usize, usize) {
    let (from, to) = (*places.iter().min().expect(what), *places.iter().max().expect(what));
    assert_eq!(places.len(), to - from + 1, "{what}: entries are missing between {from} and {to}");
    (from, to)
}

fn check(c: &Conversation, all: &[Entry], what: &str) {
    let end = places(all, c.end());
    let (from, to) = stretch(&end, what);
    assert_eq!(to, all.len() - 1, "{what}: the end");
    near(from, c.earlier(), &format!("{what}: what is before the end"));
    if let Some(gap) = c.gap() {
        let (first, last) = stretch(&places(all, c.cells().range(..gap)), what);
        assert!(last < from, "{what}: the parts overlap");
        near(first, c.above(), &format!("{what}: what is above"));
        assert_eq!(c.part_next(), Some(all[last + 1].id), "{what}: what comes next");
        let Body::NotLoaded { entries } = c.cells()[gap].body else { panic!("{what}: no row for the gap") };
        near(from - last - 1, entries, &format!("{what}: what is between"));
        one_row_for_each_call(c.cells().range(..gap), what);
    } else {
        assert_eq!(c.above(), c.earlier());
    }
    assert!(c.cells().iter().map(|c| c.turn).is_sorted(), "{what}: turns are counted from above");
    let keys: HashSet<u64> = c.cells().iter().map(|c| c.key).collect();
    assert_eq!(keys.len(), c.cells().len(), "{what}: keys");
    one_row_for_each_call(c.end(), what);
}

/// The other half of a call may be on the other side of an edge.
fn near(place: usize, counted: u64, what: &str) {
    assert!((place as u64).abs_diff(counted) <= 2, "{what}: {place}, but {counted} are counted");
}

fn one_row_for_each_call<'c>(cells: impl Iterator<Item = &'c Cell>, what: &str) {
    let mut seen = HashSet::new();
    for cell in cells {
        if let Body::Tool(t) = &cell.body {
            assert!(seen.insert(&t.call_id), "{what}: {} has two rows", t.call_id);
        }
    }
}

fn ask(s: &mut Script, c: &mut Conversation, all: &[Entry], query: Query) {
    if let Some(reply) = answer(all, &query) {
        let e = s.event(EventBody::Reply(Box::new(reply)));
        c.apply(&e);
    }
}

/// Whatever is asked for, and whenever it comes: what is loaded are two stretches of the path, with all of their entries,
/// and their number is bounded.
#[test]
fn loaded_are_the_end_and_one_part_without_a_hole_and_bounded() {
    for seed in 1..=3 {
        let mut random = Random(seed * 7919);
        let (mut s, mut c) = (Script::new(), Conversation::default());
        let mut all = path(&mut s, &mut random, 14_000);
        let from = all.len() - 200;
        let e = s.snapshot(all[from..].to_vec(), from as u64, true);
        c.apply(&e);
        check(&c, &all, "at first");
        let mut late = Vec::new();
        for step in 0..150 {
            let count = [40, 200, 900][random.below(3) as usize];
            let any = all[random.below(all.len() as u64) as usize].id;
            let part = |at| c.page_before().map(|before| Query::PathPart { before, at, count });
            let (kind, queries) = match random.below(9) {
                0 => ("start", vec![part(PathPlace::Start {})]),
                1 => ("around", vec![part(PathPlace::Around { entry: any })]),
                2 | 3 => ("from", vec![c.part_next().and_then(|entry| part(PathPlace::From { entry }))]),
                4 => ("before", vec![c.part_first().and_then(|entry| part(PathPlace::Before { entry }))]),
                5 => ("page", vec![c.page_before().and_then(|entry| part(PathPlace::Before { entry }))]),
                6 => ("search", vec![part(PathPlace::Search { entry: any })]),
                7 => ("late", std::mem::take(&mut late)),
                _ => ("new", Vec::new()),
            };
            // Some answers come when other things have come already.
            if random.below(4) == 0 {
                late.extend(queries);
                continue;
            }
            queries.into_iter().flatten().for_each(|query| ask(&mut s, &mut c, &all, query));
            // The person reads somewhere, or the end.
            let at = random.below(2 * c.cells().len() as u64) as usize;
            c.reading.hold.set(c.cells().get(at).map(|c| c.key));
            if kind == "new" {
                for _ in 0..random.below(900) {
                    let n = all.len();
                    more(&mut s, &mut random, &mut all);
                    for node in all[n..].iter().cloned() {
                        let e = s.added(node);
                        c.apply(&e);
                    }
                }
            }
            c.trim();
            check(&c, &all, &format!("seed {seed}, step {step}, {kind}"));
            assert!(c.cells().len() <= KEEP + 4 * SLACK, "{} cells, step {step}, {kind}", c.cells().len());
            if let Some(key) = c.reading.hold.get() {
                assert!(c.find(key).is_some(), "what is read is there: step {step}, {kind}");
            }
        }
    }
}

/// From the start on, page by page, to the end: each entry comes once, and the row between is gone in the end.
#[test]
fn a_part_grows_until_it_meets_the_end() {
    let mut random = Random(5);
    let (mut s, mut c) = (Script::new(), Conversation::default());
    let all = path(&mut s, &mut random, 2_000);
    let e = s.snapshot(all[1_801..].to_vec(), 1_801, false);
    c.apply(&e);
    let Some(before) = c.page_before() else { panic!("nothing is above") };
    ask(&mut s, &mut c, &all, Query::PathPart { before, at: PathPlace::Start {}, count: 150 });
    let mut parts = 1;
    while let Some(entry) = c.part_next() {
        ask(&mut s, &mut c, &all, Query::PathPart { before, at: PathPlace::From { entry }, count: 150 });
        check(&c, &all, "on the way");
        parts += 1;
    }
    assert_eq!((parts, c.above(), c.gap(), c.page_before()), (13, 0, None, None));
    let mut whole = Conversation::default();
    let e = s.snapshot(all.clone(), 0, false);
    whole.apply(&e);
    let calls = |c: &Conversation| {
        let done = c.cells().iter().filter(
            |c| matches!(&c.body, Body::Tool(t) if matches!(t.state, ToolState::Done(_)) && !t.arguments.is_null()),
        );
        done.count()
    };
    assert_eq!(calls(&c), calls(&whole), "each result has found its call");
    let entries = |c: &Conversation| c.cells().iter().map(|c| u64::from(c.entries)).sum::<u64>();
    assert_eq!(entries(&c), all.len() as u64);
}
