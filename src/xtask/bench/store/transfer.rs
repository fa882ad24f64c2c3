//! `tiller sessions export` and `import` of a long session, from exec to exit.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::bench::Bench;
use crate::bench::rig::figures::{Figures, Unit, at};
use crate::bench::rig::place::Place;
use crate::bench::rig::sessions;

pub(crate) fn transfer(b: &Bench, out: &mut Figures) -> Result<()> {
    let place = Place::new(&b.binary, &b.model)?;
    let count = b.pick(100_000, 20_000);
    sessions::make(&place.database(), &place.work()?, count)?;
    let dir = place.work()?;
    let run = |args: &[&str]| -> Result<f64> {
        let begun = Instant::now();
        let done = place.run(args).output()?;
        if !done.status.success() {
            bail!("{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        }
        Ok(begun.elapsed().as_secs_f64())
    };
    // The budgets are for 100,000 entries.
    for (name, file, budget) in
        [("JSON lines", "out.jsonl", 2.0), ("Markdown", "out.md", 2.0), ("HTML", "out.html", 2.0)]
    {
        let file = dir.join(file);
        let file = file.to_string_lossy();
        let mut times = Vec::new();
        for _ in 0..3 {
            times.push(run(&["sessions", "export", "last", "-o", &file])?);
        }
        out.add(format!("export of {count} entries, {name}"), at(&times, 0.5), Unit::S, budget);
    }
    let file = dir.join("out.jsonl");
    let took = run(&["sessions", "import", "--copy", &file.to_string_lossy()])?;
    out.add(format!("import of {count} entries"), took, Unit::S, 5.0);
    Ok(())
}
