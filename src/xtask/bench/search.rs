//! `tiller sessions search`, from exec to exit: the first one makes the index, the others use it.

use std::time::Instant;

use anyhow::{Result, bail};

use super::figures::{Figures, Unit, at};
use super::place::Place;
use super::{Bench, sessions};

/// Common, rare, several, a phrase, unfinished.
const WORDS: [&str; 6] =
    ["parser", "7777", "parser empty buffer", "\"empty buffer\"", "quest", "answer -question"];

pub(crate) fn search(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    let count = b.pick(200_000, 20_000);
    sessions::make(&place.database(), &place.work()?, count)?;
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
    // The budget is for a million entries, without the start of the program.
    out.add(format!("search in {count} entries, from exec, p95"), at(&times, 0.95), Unit::Ms, 50.0);
    Ok(())
}
