//! `tiller batch`: many cases without a screen, each in a process of its own, some at the same time.
//!
//! A batch can be interrupted at any moment and run again. A case with a result is not repeated; a case that still runs is
//! found again; all others are run. What tells this stands on the disk only: the file of the results, and the folder
//! beside it with a folder for each case (`launch` lists what lies there).
//!
//! | module | holds |
//! | --- | --- |
//! | `cases` | the cases, and the arguments of Tiller for one of them |
//! | `results` | the file of the results |
//! | `launch` | the kinds of places where cases run |
//! | `budget` | the money of all cases |

mod budget;
mod cases;
mod launch;
pub(in crate::commands) mod results;

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{FlockOperation, flock};
use tiller_protocol::{Cost, Notice, NoticeKind, Profile};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::app::Setup;
use crate::commands::args::{Batch, Common};
use crate::commands::exec::stop::Stop;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, say, say_beside};
use budget::Budget;
use cases::Case;
use launch::{CaseEnd, CaseRun, Launcher};
use results::{CaseResult, Results};

/// Runs all cases that have no result.
pub(super) fn run(setup: impl Fn(&Common) -> Result<Setup, Notice>, batch: &Batch) -> Result<Exit, Notice> {
    let cases = read(&batch.file)?;
    let launcher = Launcher::of(batch)?;
    // The folder and the settings of another machine mean nothing here: there, any profile may be a wider one.
    let (base, profile) = match launcher.is_here() {
        true => {
            let setup = setup(&batch.common)?;
            (setup.project, setup.config.config.profile)
        }
        false => (
            batch.common.dir.clone().unwrap_or_else(|| PathBuf::from(".")),
            batch.common.profile.map_or(Profile::ReadOnly, Profile::from),
        ),
    };
    if !batch.trust {
        untrusted(&cases, batch, profile, launcher.is_here().then_some(&*base))?;
    }
    let out = batch.out.clone().unwrap_or_else(|| batch.file.with_extension("results.jsonl"));
    let (results, folder, _lock) = open(&out)?;
    let todo = todo(&cases, &results, batch)?;
    if launcher.is_here() {
        missing_folder(&todo, &base)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Notice::new(NoticeKind::Internal, format!("The batch cannot be started: {e}.")))?;
    let total = cases.len();
    // Attempts that were interrupted have cost something, too.
    let open = todo.iter().filter(|case| !results.all.contains_key(&case.id));
    let counted: HashMap<String, Cost> =
        open.map(|case| (case.id.clone(), launch::cost_so_far(&folder.join(&case.id)))).collect();
    let spent = counted.values().fold(results.spent, |sum, cost| sum.plus(*cost));
    let run = Run {
        batch,
        base,
        launcher: Arc::new(launcher),
        budget: Budget::new(batch.max_cost.map(Cost::from_usd), spent),
        counted,
        too_small: HashMap::new(),
        done: total - todo.len(),
        total,
        todo: todo.into_iter().cloned().enumerate().collect(),
        results,
        folder,
        running: JoinSet::new(),
        stop: CancellationToken::new(),
        error: None,
    };
    runtime.block_on(run.all(&cases))
}

fn read(file: &Path) -> Result<Vec<Case>, Notice> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        Notice::new(NoticeKind::User, format!("{} cannot be read: {e}.", file.display()))
            .hint("Each line is a JSON object, for example {\"id\": \"a\", \"prompt\": \"Fix the test\"}.")
    })?;
    Case::read(&text).map_err(|wrong| {
        let notice = Notice::new(NoticeKind::User, format!("{} has invalid lines.", file.display()));
        wrong.into_iter().fold(notice, Notice::hint)
    })
}

/// The results, the folder of the cases, and a lock on it.
fn open(out: &Path) -> Result<(Results, PathBuf, std::fs::File), Notice> {
    let failed = |path: &Path, e: std::io::Error| {
        Notice::new(NoticeKind::User, format!("{} cannot be used for results: {e}.", path.display()))
            .hint("Name another file with --out.")
    };
    let mut folder = out.as_os_str().to_owned();
    folder.push(".d");
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
    let folder = folder.canonicalize().map_err(|e| failed(&folder, e))?;
    let lock = folder.join("lock");
    let file = std::fs::File::options().write(true).create(true).truncate(false).open(&lock);
    let file = file.map_err(|e| failed(&lock, e))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Notice::new(
            NoticeKind::User,
            format!("A batch with the results {} runs.", out.display()),
        )
        .hint("Wait for its end, or name another file with --out."));
    }
    let results = Results::open(out).map_err(|e| failed(out, e))?;
    Ok((results, folder, file))
}

/// The cases without a result; with `--retry`, also those that failed.
fn todo<'c>(cases: &'c [Case], results: &Results, batch: &Batch) -> Result<Vec<&'c Case>, Notice> {
    let changed = |case: &&Case| results.all.get(&case.id).is_some_and(|result| result.hash != case.hash);
    if let Some(case) = cases.iter().find(changed) {
        let text = format!("The case {} has changed since its result was written.", case.id);
        return Err(Notice::new(NoticeKind::User, text)
            .hint("Give it another id, remove its line from the results, or name another file with --out."));
    }
    let wanted = |case: &&Case| match results.all.get(&case.id) {
        None => true,
        Some(result) => batch.retry && !result.is_done(),
    };
    Ok(cases.iter().filter(wanted).collect())
}

/// Cases that are named in an error.
const NAMED: usize = 5;

/// Refuses a file whose cases may do more than the command line and the settings say: it may come from others.
fn untrusted(cases: &[Case], batch: &Batch, profile: Profile, base: Option<&Path>) -> Result<(), Notice> {
    let widened = cases.iter().map(|case| (case, case.widens(profile, base)));
    let widened: Vec<_> = widened.filter(|(_, fields)| !fields.is_empty()).collect();
    if widened.is_empty() {
        return Ok(());
    }
    let mut named: Vec<String> = widened
        .iter()
        .take(NAMED)
        .map(|(case, fields)| format!("{} ({})", case.id, fields.join(", ")))
        .collect();
    if widened.len() > NAMED {
        named.push(format!("and {} more", widened.len() - NAMED));
    }
    let text = format!(
        "{} has cases that may do more than this command line and the settings say: {}.",
        batch.file.display(),
        named.join(", ")
    );
    Err(Notice::new(NoticeKind::User, text)
        .hint("Read these cases. If that is what you want, add --trust, or give a wider --profile yourself."))
}

fn missing_folder(cases: &[&Case], base: &Path) -> Result<(), Notice> {
    let missing = cases.iter().find(|case| !case.folder(base).is_dir());
    missing.map_or(Ok(()), |case| {
        let folder = case.folder(base);
        let text = format!("The folder {} of the case {} does not exist.", folder.display(), case.id);
        Err(Notice::new(NoticeKind::User, text))
    })
}

/// A batch at work.
struct Run<'a> {
    batch: &'a Batch,
    /// The folder of cases that name none.
    base: PathBuf,
    launcher: Arc<Launcher>,
    budget: Budget,
    /// The part of the cost of each case that the budget holds as spent from the start.
    counted: HashMap<String, Cost>,
    /// The largest share that did not suffice for each case.
    too_small: HashMap<String, Cost>,
    /// Cases with a result, and all.
    done: usize,
    total: usize,
    /// With their places among those of this run.
    todo: VecDeque<(usize, Case)>,
    results: Results,
    /// With a folder for each case.
    folder: PathBuf,
    /// A task for each case that runs; dropping it stops none of their processes.
    running: JoinSet<Ended>,
    /// Fired at the first signal: no case is started any more, and those that run are ended.
    stop: CancellationToken,
    /// Why no further case is started: the launcher cannot start any.
    error: Option<String>,
}

/// A case that runs no more.
struct Ended {
    case: Case,
    run: CaseRun,
    limit: Option<Cost>,
    seconds: f64,
    end: Result<CaseEnd, String>,
}

impl Run<'_> {
    async fn all(mut self, cases: &[Case]) -> Result<Exit, Notice> {
        let mut stop = Stop::listen()?;
        if self.done > 0 {
            say_beside(&format!("{} of {} cases have a result already", self.done, self.total));
        }
        loop {
            self.start()?;
            if self.running.is_empty() {
                break;
            }
            tokio::select! {
                ended = self.running.join_next() => match ended {
                    Some(Ok(ended)) => self.ended(ended).await?,
                    Some(Err(e)) => self.error = Some(format!("internal error: {e}")),
                    None => {}
                },
                () = stop.next() => {
                    // A second signal, or the cases took too long to end.
                    if stop.times() > 1 {
                        break;
                    }
                    self.stop.cancel();
                    say_beside("stopping: cases without a result are continued when you run this batch again");
                }
            }
        }
        self.summary(cases)
    }

    /// Starts cases while there is room and money for them.
    fn start(&mut self) -> Result<(), Notice> {
        while !self.stop.is_cancelled() && self.error.is_none() {
            let room = usize::from(self.batch.jobs).saturating_sub(self.running.len());
            let starting = room.min(self.todo.len());
            // A case for which too little is left does not hold up the others.
            let affordable =
                self.todo.iter().enumerate().take_while(|_| room > 0).find_map(|(at, (_, case))| {
                    let failed = self.too_small.get(&case.id).copied().unwrap_or_default();
                    Some((at, self.budget.reserve(case.limit(), failed, starting).ok()?))
                });
            let Some((at, limit)) = affordable else { break };
            let Some((number, case)) = self.todo.remove(at) else { break };
            let run = self.prepare(number, &case, limit)?;
            let (launcher, stop) = (Arc::clone(&self.launcher), self.stop.clone());
            let began = Instant::now();
            self.running.spawn(async move {
                let end = launcher.run(&run, &stop).await;
                Ended { case, run, limit, seconds: began.elapsed().as_secs_f64(), end }
            });
        }
        Ok(())
    }

    fn prepare(&self, number: usize, case: &Case, limit: Option<Cost>) -> Result<CaseRun, Notice> {
        let folder = self.folder.join(&case.id);
        let failed = |e: std::io::Error| {
            Notice::new(NoticeKind::User, format!("{} cannot be written: {e}.", folder.display()))
        };
        if self.results.all.contains_key(&case.id) {
            // It is tried again.
            std::fs::remove_dir_all(&folder).or_else(missing_is_fine).map_err(failed)?;
        }
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let mut whole = format!("{}\n{}\n{}", folder.display(), case.hash, self.attempt(case));
        // An attempt that had too little money may have left a job of its name.
        match launch::poor_attempts(&folder) {
            0 => {}
            poor => whole.push_str(&format!("\n{poor}")),
        }
        let name = format!("tiller-{}", &blake3::hash(whole.as_bytes()).to_hex()[..20]);
        let args = case.arguments(&self.batch.common, limit);
        let work = case.folder(&self.base);
        Ok(CaseRun { number, folder, work, args, name, prompt: case.prompt.clone() })
    }

    /// Which attempt at the case this is, from 1.
    fn attempt(&self, case: &Case) -> u32 {
        self.results.all.get(&case.id).map_or(1, |result| result.attempt.saturating_add(1))
    }

    /// Notes what all attempts at a case have cost.
    fn book(&mut self, case: &Case, limit: Option<Cost>, cost: Cost) {
        let counted = self.counted.remove(&case.id).unwrap_or_default();
        self.budget.give_back(limit, Cost(cost.0.saturating_sub(counted.0)));
    }

    /// Leaves a case without a result, since its share of the money did not suffice. It is tried again after all others, with
    /// a larger one if so much is left.
    async fn not_run(
        &mut self,
        case: Case,
        run: CaseRun,
        limit: Option<Cost>,
        result: &CaseResult,
    ) -> Result<(), Notice> {
        let spent = launch::cost_so_far(&run.folder);
        self.book(&case, limit, spent);
        self.counted.insert(case.id.clone(), spent);
        launch::not_run(&run.folder).map_err(|e| {
            Notice::new(NoticeKind::User, format!("{} cannot be written: {e}.", run.folder.display()))
        })?;
        self.launcher.settle(&run).await;
        let why = result.error.as_deref().unwrap_or_default();
        let how = if result.is_unspent() { "not run" } else { "cut off, without a result" };
        say_beside(&format!("{} {how}: {}", case.id, one_line(why)));
        self.too_small.insert(case.id.clone(), limit.unwrap_or_default());
        self.todo.push_back((run.number, case));
        Ok(())
    }

    /// Stores the result of a case.
    async fn ended(&mut self, ended: Ended) -> Result<(), Notice> {
        let Ended { case, run, limit, seconds, end } = ended;
        let mut result = match end {
            Ok(CaseEnd::Result(result)) => *result,
            Ok(CaseEnd::Open) => {
                self.book(&case, limit, launch::cost_so_far(&run.folder));
                return Ok(());
            }
            Err(why) => {
                self.book(&case, limit, launch::cost_so_far(&run.folder));
                self.error = Some(why);
                return Ok(());
            }
        };
        // The money of the batch did not suffice, and not that of the case.
        if result.is_used_up() && limit.is_some() && limit != case.limit() {
            return self.not_run(case, run, limit, &result).await;
        }
        result = result.after(launch::cost_before(&run.folder));
        if result.seconds == 0.0 {
            result.seconds = seconds;
        }
        self.book(&case, limit, result.cost());
        result.attempt = self.attempt(&case);
        let result = result.of(&case.id, &case.hash, self.batch.launcher.word());
        let line = progress(&result, self.done + 1, self.total);
        self.results.add(result).map_err(|e| {
            Notice::new(NoticeKind::Store, format!("The result of {} cannot be written: {e}.", case.id))
                .hint("Run the batch again: the case is not repeated.")
        })?;
        self.done += 1;
        say_beside(&line);
        self.launcher.settle(&run).await;
        Ok(())
    }

    /// The last line, and the exit code.
    fn summary(self, cases: &[Case]) -> Result<Exit, Notice> {
        let of = |case: &Case| self.results.all.get(&case.id);
        let done = cases.iter().filter_map(of).filter(|result| result.is_done()).count();
        let with = cases.iter().filter_map(of).count();
        let (failed, left) = (with - done, cases.len() - with);
        let s = if cases.len() == 1 { "" } else { "s" };
        let mut text = format!("{} case{s}: {done} done, {failed} failed, {left} left", cases.len());
        let spent = self.budget.spent();
        if spent > Cost::default() {
            text.push_str(&format!("; {spent}"));
        }
        say(&format!("{text}\n"))?;
        if let Some(why) = &self.error {
            return Err(Notice::new(NoticeKind::User, format!("The batch stopped: {}.", one_line(why)))
                .hint("Run it again: cases with a result are not repeated."));
        }
        if self.stop.is_cancelled() {
            return Ok(Exit::Interrupted);
        }
        if left > 0 {
            // Standard error may be closed; the exit code still says it.
            let _ = writeln!(
                std::io::stderr().lock(),
                "tiller: What is left of the budget does not suffice for {left} of the cases, which have no result. A larger --max-cost continues the batch."
            );
            return Ok(Exit::Limit);
        }
        Ok(if failed > 0 { Exit::Model } else { Exit::Done })
    }
}

fn missing_is_fine(e: std::io::Error) -> std::io::Result<()> {
    if e.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(e) }
}

/// One line for each case that has ended.
fn progress(result: &CaseResult, done: usize, total: usize) -> String {
    let cost = result.cost_usd.map(|usd| format!(" {}", Cost::from_usd(usd))).unwrap_or_default();
    let why = result.error.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let why = why.lines().last().unwrap_or_default();
    format!("[{done}/{total}] {} {} after {:.0} s{cost}{why}", result.id, result.status, result.seconds)
}
