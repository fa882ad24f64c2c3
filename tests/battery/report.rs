//! Every escape and every job in several sandboxes, as a table.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::escape::Escape;
use crate::job::Job;
use crate::run::{Outcome, attempt, work};
use crate::sandbox::Sandbox;

/// Runs at one time.
const THREADS: usize = 3;

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub about: String,
    /// Why it cannot be tried on this machine; there are no cells then.
    pub skipped: Option<String>,
    /// For each sandbox; `None`: it could not be observed.
    pub cells: Vec<Option<Outcome>>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Report {
    pub sandboxes: Vec<Sandbox>,
    pub rows: Vec<Row>,
    /// Words for a cell's yes and no.
    words: (&'static str, &'static str),
}

impl Report {
    /// Names of the rows whose cell in the column of this number is `yes`, each with what it said.
    pub fn with(&self, column: usize, yes: bool) -> Vec<String> {
        let tried = self.rows.iter().filter_map(|r| Some((r, r.cells.get(column)?.as_ref()?)));
        tried.filter(|(_, o)| o.yes == yes).map(|(r, o)| format!("{}: {}", r.name, o.said)).collect()
    }

    /// Names of the rows that were tried and could not be observed in the column of this number.
    pub fn unobserved(&self, column: usize) -> Vec<&str> {
        let unseen = |r: &&Row| r.cells.get(column).is_some_and(Option::is_none);
        self.rows.iter().filter(unseen).map(|r| r.name.as_str()).collect()
    }

    /// Number of rows that were tried.
    pub fn tried(&self) -> usize {
        self.rows.iter().filter(|r| r.skipped.is_none()).count()
    }

    /// Rows that cannot be tried here, each with its reason.
    pub fn skipped(&self) -> Vec<String> {
        let reason = |r: &Row| Some(format!("{}: {}", r.name, r.skipped.as_ref()?));
        self.rows.iter().filter_map(reason).collect()
    }
}

/// Runs all escapes: without a sandbox, then in each of `sandboxes`. `progress` gets each row when it is known.
///
/// # Errors
/// When a scene cannot be made.
pub fn compare_escapes(
    escapes: &[Escape],
    sandboxes: &[Sandbox],
    root: &Path,
    progress: &(dyn Fn(&Row) + Sync),
) -> Result<Report> {
    let rows = each(escapes, &|escape| {
        let mut row =
            Row { name: escape.name.clone(), about: escape.tries.clone(), skipped: None, cells: Vec::new() };
        let bare = attempt(escape, &Sandbox::None, root)?;
        if bare.yes {
            row.cells = sandboxes.iter().map(|s| attempt(escape, s, root).ok()).collect();
        } else {
            row.skipped = Some(reason(&bare));
        }
        progress(&row);
        Ok(row)
    })?;
    Ok(Report { sandboxes: sandboxes.to_vec(), rows, words: ("ESCAPED", "held") })
}

/// Runs all jobs in the same way.
///
/// # Errors
/// When a scene cannot be made.
pub fn compare_jobs(
    jobs: &[Job],
    sandboxes: &[Sandbox],
    root: &Path,
    progress: &(dyn Fn(&Row) + Sync),
) -> Result<Report> {
    let rows = each(jobs, &|job| {
        let mut row = Row { name: job.name.clone(), about: String::new(), skipped: None, cells: Vec::new() };
        let missing = job.needs.iter().find(|p| !on_path(p));
        if let Some(program) = missing {
            row.skipped = Some(format!("{program} is not installed"));
        } else {
            let bare = work(job, &Sandbox::None, root)?;
            if bare.yes {
                row.cells = sandboxes.iter().map(|s| work(job, s, root).ok()).collect();
            } else {
                row.skipped = Some(reason(&bare));
            }
        }
        progress(&row);
        Ok(row)
    })?;
    Ok(Report { sandboxes: sandboxes.to_vec(), rows, words: ("runs", "FAILS") })
}

/// Rows of all items, in their order, made by a few threads: most of the time a run waits.
fn each<T: Sync>(items: &[T], row: &(dyn Fn(&T) -> Result<Row> + Sync)) -> Result<Vec<Row>> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = items.iter().position(|i| std::ptr::eq(i, item));
                    let row = row(item);
                    made.lock().unwrap_or_else(PoisonError::into_inner).push((at, row));
                }
            });
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, row)| row).collect()
}

fn reason(bare: &Outcome) -> String {
    let said = if bare.said.is_empty() { "nothing was observed" } else { &bare.said };
    format!("it does not work without a sandbox either ({said})")
}

fn on_path(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|f| f.join(program).is_file())
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:24}", self.name)?;
        match &self.skipped {
            Some(why) => write!(f, "cannot be tried here: {why}"),
            None => {
                for cell in &self.cells {
                    let word = cell.as_ref().map_or("?", |o| if o.yes { "yes" } else { "no" });
                    write!(f, "{word:14}")?;
                }
                Ok(())
            }
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:24}", "")?;
        for sandbox in &self.sandboxes {
            write!(f, "{:14}", sandbox.name())?;
        }
        writeln!(f)?;
        for row in &self.rows {
            write!(f, "{:24}", row.name)?;
            if let Some(why) = &row.skipped {
                writeln!(f, "cannot be tried here: {why}")?;
                continue;
            }
            for cell in &row.cells {
                let word = match cell {
                    Some(outcome) if outcome.yes => self.words.0,
                    Some(_) => self.words.1,
                    None => "?",
                };
                write!(f, "{word:14}")?;
            }
            writeln!(f, "{}", row.about)?;
        }
        write!(f, "{:24}", format!("{} of {}", self.words.0, self.tried()))?;
        for column in 0..self.sandboxes.len() {
            write!(f, "{:<14}", self.with(column, true).len())?;
        }
        writeln!(f)?;
        write!(f, "{:24}", "milliseconds, median")?;
        for column in 0..self.sandboxes.len() {
            let cells = self.rows.iter().filter_map(|r| r.cells.get(column)?.as_ref());
            let mut times: Vec<u128> = cells.map(|o| o.time.as_millis()).collect();
            times.sort_unstable();
            write!(f, "{:<14}", times.get(times.len() / 2).copied().unwrap_or_default())?;
        }
        writeln!(f)
    }
}
