//! Search in a million entries: `tiller sessions search` from exec to exit (the first run builds the index), and the
//! first page alone, as the workbench requests it.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, bail};
use tiller_protocol::SearchQuery;
use tiller_store::{Options, Store};

use crate::bench::Bench;
use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::Place;
use crate::bench::rig::sessions;

/// Lines of an answer: a million of them must fit on the disk.
const LINES: usize = 8;
const PAGE: u32 = 20;

/// Common, rare, several, a phrase, unfinished.
const WORDS: [&str; 6] =
    ["parser", "7777", "parser empty buffer", "\"empty buffer\"", "quest", "answer -question"];

pub(crate) fn search(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    let count = b.pick(1_000_000, 20_000);
    sessions::make_of(&place.database(), &place.work()?, count, LINES)?;
    let mut times = Vec::new();
    for n in 0..=b.pick(60, 12) {
        let begun = Instant::now();
        let done = place.run(&["sessions", "search", WORDS[n % WORDS.len()], "--json"]).output()?;
        let took = begun.elapsed().as_secs_f64();
        if !done.status.success() || done.stdout.is_empty() {
            bail!("nothing was found: {}", String::from_utf8_lossy(&done.stderr));
        }
        if n == 0 {
            out.note(format!("search: index of {count} entries"), took, Unit::S);
        } else {
            times.push(took * 1e3);
        }
    }
    out.note(format!("search in {count} entries, from exec, p50"), at(&times, 0.5), Unit::Ms);
    out.note(format!("search in {count} entries, from exec, p95"), at(&times, 0.95), Unit::Ms);
    let store = Store::open(&place.database(), Options::default())?;
    let mut pages = Vec::new();
    // By kind of query, to show which ones are expensive.
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for n in 0..b.pick(300, 60) {
        // Each with a different number, so that no page was just read.
        let kind = match n % 3 {
            0 => WORDS[n / 3 % WORDS.len()],
            1 => "a word and a number",
            _ => "a word, a number, an unfinished word",
        };
        let text = match n % 3 {
            0 => kind.to_owned(),
            1 => format!("question {}", (n * 3331 % count) | 1),
            _ => format!("answer {} buf", (n * 7177 % count) & !1),
        };
        let query = SearchQuery { text, limit: PAGE, ..SearchQuery::default() };
        let begun = Instant::now();
        store.search().find(&query, u64::MAX)?;
        let took = begun.elapsed().as_secs_f64() * 1e3;
        pages.push(took);
        kinds.entry(kind).or_default().push(took);
    }
    for (kind, times) in kinds {
        out.note(format!("search: {kind}: p95"), at(&times, 0.95), Unit::Ms);
    }
    out.note(format!("search in {count} entries, first page p50"), at(&pages, 0.5), Unit::Ms);
    out.add(format!("search in {count} entries, first page p95"), at(&pages, 0.95), Unit::Ms, 50.0);
    Ok(())
}
