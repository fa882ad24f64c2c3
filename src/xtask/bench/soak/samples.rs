//! What the program uses, from time to time, and whether it grows.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use super::work::Work;
use crate::bench::rig::place::Place;
use crate::bench::rig::process;

/// Cycles that are needed for an answer. The first ones fill caches and pools, and do not count.
pub(super) const FEWEST: usize = 8;
/// Share of the cycles that does not count.
const WARM: f64 = 0.35;

/// Use at one moment.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    minutes: f64,
    cycle: usize,
    units: usize,
    /// MiB, of the program and its children.
    pss: f64,
    /// MiB, of the process that holds the engine.
    rss: f64,
    files: f64,
    threads: f64,
    children: f64,
    /// MiB of Tiller's folders.
    disk: f64,
    /// Milliseconds from a key to the screen.
    key: f64,
}

impl Sample {
    pub(super) fn take(work: &Work<'_>, place: &Place, cycle: usize, began: Instant) -> Self {
        let host = work.host();
        Self {
            minutes: began.elapsed().as_secs_f64() / 60.0,
            cycle,
            units: work.done,
            pss: process::pss(work.pid()),
            rss: process::resident(host),
            files: count(&format!("/proc/{host}/fd")),
            threads: count(&format!("/proc/{host}/task")),
            children: process::children(work.pid()) as f64,
            disk: place.home().map_or(0.0, |home| size(&home)),
            key: work.key,
        }
    }

    fn row(&self) -> String {
        format!(
            "{:>6.1} {:>5} {:>6} {:>8.1} {:>8.1} {:>6.0} {:>7.0} {:>8.0} {:>8.1} {:>7.1}",
            self.minutes,
            self.cycle,
            self.units,
            self.pss,
            self.rss,
            self.files,
            self.threads,
            self.children,
            self.disk,
            self.key
        )
    }
}

fn count(folder: &str) -> f64 {
    std::fs::read_dir(folder).map_or(0, Iterator::count) as f64
}

/// MiB of all files below a folder.
fn size(folder: &Path) -> f64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes += (size(&entry.path()) * f64::from(1 << 20)) as u64,
            Ok(meta) => bytes += meta.len(),
            Err(_) => {}
        }
    }
    bytes as f64 / f64::from(1 << 20)
}

/// All samples of a run.
#[derive(Debug, Default)]
pub(super) struct Samples {
    between: Vec<Sample>,
    cycles: Vec<Sample>,
}

/// What must not grow: its name, its value, and by how much it may grow over the counted cycles, as a share and at least.
type Measure = (&'static str, fn(&Sample) -> f64, f64, f64);

const FLAT: &[Measure] = &[
    ("memory (PSS)", |s| s.pss, 0.10, 6.0),
    ("memory of the engine (RSS)", |s| s.rss, 0.10, 6.0),
    ("descriptors", |s| s.files, 0.05, 2.0),
    ("threads", |s| s.threads, 0.05, 2.0),
    ("child processes", |s| s.children, 0.0, 1.0),
    ("milliseconds from a key to the screen", |s| s.key, 0.5, 15.0),
];

impl Samples {
    pub(super) fn between(&mut self, sample: Sample) {
        eprintln!("{}", sample.row());
        self.between.push(sample);
    }

    pub(super) fn cycle(&mut self, sample: Sample) {
        eprintln!("{}  end of cycle", sample.row());
        self.cycles.push(sample);
    }

    /// The end of each cycle, and the most within one.
    pub(super) fn table(&self) -> String {
        let mut out =
            String::from("   min cycle  units  PSS MiB  RSS MiB  files threads children disk MiB  key ms\n");
        self.cycles.iter().for_each(|s| _ = writeln!(out, "{}", s.row()));
        let most = |of: fn(&Sample) -> f64| self.between.iter().map(of).fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "most within a cycle: {:.1} MiB PSS, {:.0} files, {:.0} threads, {:.0} children, {:.1} ms for a key",
            most(|s| s.pss),
            most(|s| s.files),
            most(|s| s.threads),
            most(|s| s.children),
            most(|s| s.key)
        );
        for (name, of, share, least) in FLAT {
            let (grown, limit) = self.grown(*of, *share, *least);
            let flat = if grown <= limit { "flat" } else { "GROWS" };
            let _ = writeln!(out, "{name}: {grown:+.2} over the counted cycles, at most {limit:.2}: {flat}");
        }
        let (first, last) = self.disk();
        let _ = writeln!(
            out,
            "disk of one unit of work: {:.1} KiB first, {:.1} KiB last",
            first * 1024.0,
            last * 1024.0
        );
        out
    }

    /// The cycles that count.
    fn counted(&self) -> &[Sample] {
        let warm = (self.cycles.len() as f64 * WARM).ceil() as usize;
        self.cycles.get(warm..).unwrap_or_default()
    }

    /// By how much the fitted line grows from the first to the last counted cycle, and by how much it may.
    fn grown(&self, of: fn(&Sample) -> f64, share: f64, least: f64) -> (f64, f64) {
        let values: Vec<f64> = self.counted().iter().map(of).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        (slope(&values) * values.len().saturating_sub(1) as f64, (mean * share).max(least))
    }

    /// MiB of disk for each unit of work, in the first half of the counted cycles and in the second.
    fn disk(&self) -> (f64, f64) {
        let counted = self.counted();
        let half = counted.len() / 2;
        let of = |part: &[Sample]| match (part.first(), part.last()) {
            (Some(a), Some(b)) if b.units > a.units => (b.disk - a.disk) / (b.units - a.units) as f64,
            _ => 0.0,
        };
        (of(&counted[..=half.min(counted.len().saturating_sub(1))]), of(&counted[half..]))
    }

    /// What grows.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, of, share, least) in FLAT {
            let (grown, limit) = self.grown(*of, *share, *least);
            if grown > limit {
                problems.push(format!("{name} grows: {grown:+.2} over {} cycles", self.counted().len()));
            }
        }
        let (first, last) = self.disk();
        // Packs and logs come in steps.
        if last > first.max(0.01) * 2.0 {
            problems.push(format!("disk of one unit of work grows: from {first:.3} to {last:.3} MiB"));
        }
        problems
    }
}

/// Slope of the line with the least squares, for values at 0, 1, 2 ...
fn slope(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean_at = (n - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    let (mut over, mut under) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        over += (at as f64 - mean_at) * (value - mean);
        under += (at as f64 - mean_at) * (at as f64 - mean_at);
    }
    if under > 0.0 { over / under } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(pss: impl Fn(usize) -> f64, disk: impl Fn(usize) -> f64) -> Samples {
        let sample = |n: usize| Sample {
            minutes: n as f64,
            cycle: n,
            units: n * 10,
            pss: pss(n),
            rss: 50.0,
            files: 30.0,
            threads: 12.0,
            children: 1.0,
            disk: disk(n),
            key: 4.0 + (n % 3) as f64,
        };
        Samples { between: Vec::new(), cycles: (1..=20).map(sample).collect() }
    }

    #[test]
    fn what_grows_is_named_and_what_only_swings_is_not() {
        let even = |n: usize| n as f64 * 0.5;
        let flat = samples(|n| 60.0 + (n % 2) as f64, even);
        assert!(flat.problems().is_empty(), "{:?}", flat.problems());
        // A cache that fills at first.
        assert!(samples(|n| 60.0 + 10.0 * n.min(6) as f64, even).problems().is_empty());
        let leak = samples(|n| 60.0 + n as f64, even).problems();
        assert!(leak.len() == 1 && leak[0].starts_with("memory (PSS) grows: +12.00"), "{leak:?}");
        let disk = samples(|_| 60.0, |n| (n * n) as f64).problems();
        assert!(disk.is_empty(), "twice as much is the limit: {disk:?}");
        let disk = samples(|_| 60.0, |n| f64::powi(n as f64, 4)).problems();
        assert!(disk.len() == 1 && disk[0].contains("disk"), "{disk:?}");
        assert!((slope(&[1.0, 3.0, 5.0]) - 2.0).abs() < 1e-9);
    }
}
