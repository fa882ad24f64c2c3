//! Runs cases of one target in this process.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};

use tiller_testkit::thread_cpu_time;

use crate::Target;
use crate::make::{LONGEST, Maker};

/// Longest processor time of one case: the clock on the wall would measure what else the machine does.
pub const SLOW: Duration = Duration::from_secs(1);

/// Why a case fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Place and message of the panic.
    Panic { place: String, message: String },
    /// Took so much processor time.
    Slow(Duration),
}

impl Failure {
    /// What two failures of one fault have in common.
    pub fn key(&self) -> String {
        match self {
            Self::Panic { place, .. } => place.clone(),
            Self::Slow(_) => "slow".into(),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Panic { place, message } => write!(f, "panic at {place}: {message}"),
            Self::Slow(time) => write!(f, "took {time:?}"),
        }
    }
}

thread_local! {
    /// Place and message of the last panic of this thread; `None`: the hook of others prints it.
    static PANIC: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Records panics of threads that expect one, and leaves the others as they are.
fn record_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let expected = PANIC.with_borrow_mut(|panic| {
                let Some(panic) = panic else { return false };
                let place = info.location().map_or_else(String::new, ToString::to_string);
                *panic = (place, info.payload_as_str().unwrap_or_default().to_owned());
                true
            });
            if !expected {
                before(info);
            }
        }));
    });
}

/// Runs one case. The outline, or why it fails.
///
/// # Errors
/// A panic, or more processor time than [`SLOW`] for an input of usual length.
pub fn run(target: &Target, data: &[u8]) -> Result<u64, Failure> {
    record_panics();
    PANIC.set(Some(Default::default()));
    let started = thread_cpu_time();
    let done = catch_unwind(AssertUnwindSafe(|| (target.run)(data)));
    let took = thread_cpu_time().saturating_sub(started);
    let panic = PANIC.take().unwrap_or_default();
    match done {
        Err(_) => Err(Failure::Panic { place: panic.0, message: panic.1 }),
        Ok(_) if took > SLOW && data.len() <= LONGEST => Err(Failure::Slow(took)),
        Ok(outline) => Ok(outline),
    }
}

/// A smaller input that fails in the same way, as small as is found in this time.
pub fn smaller(target: &Target, data: &[u8], failure: &Failure, time: Duration) -> Vec<u8> {
    let key = failure.key();
    let until = Instant::now() + time;
    let fails = |data: &[u8]| run(target, data).is_err_and(|f| f.key() == key);
    let mut best = data.to_vec();
    let mut step = (best.len() / 2).max(1);
    while Instant::now() < until {
        let mut at = 0;
        let before = best.len();
        while at < best.len() && Instant::now() < until {
            let mut less = best.clone();
            less.drain(at..(at + step).min(best.len()));
            if fails(&less) {
                best = less;
            } else {
                at += step;
            }
        }
        if step == 1 && best.len() == before {
            break;
        }
        step = (step / 2).max(1);
    }
    best
}

/// What a run is.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub cases: u64,
    pub seed: u64,
    /// Stop after so many different failures.
    pub failures: usize,
    /// Time for making each failure smaller.
    pub smaller: Duration,
    /// After this time no new inputs are made.
    pub time: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Done {
    pub cases: u64,
    /// Each different failure once, with an input as small as could be found.
    pub failures: Vec<(Vec<u8>, Failure)>,
    /// The shortest input of each outline that the beginning did not have.
    pub new: HashMap<u64, Vec<u8>>,
}

/// Runs the inputs to begin with, and then new ones. `case` hears the number and the input of each case before it runs.
pub fn drive(target: &Target, begin: Vec<Vec<u8>>, plan: Plan, mut case: impl FnMut(u64, &[u8])) -> Done {
    let mut done = Done::default();
    let (mut seen, mut keys) = (HashSet::new(), HashSet::new());
    let mut maker = Maker::new(target.words, Vec::new(), plan.seed);
    let mut begin = begin.into_iter();
    let started = Instant::now();
    while done.cases < plan.cases && done.failures.len() < plan.failures {
        let old = begin.next();
        let known = old.is_some();
        if !known && started.elapsed() > plan.time {
            break;
        }
        let input = old.unwrap_or_else(|| maker.next_input());
        case(done.cases, &input);
        done.cases += 1;
        match run(target, &input) {
            Ok(outline) => {
                if seen.insert(outline) {
                    if !known {
                        done.new.insert(outline, input.clone());
                    }
                    maker.keep(input);
                } else if let Some(kept) = done.new.get_mut(&outline)
                    && input.len() < kept.len()
                {
                    *kept = input;
                }
            }
            Err(failure) => {
                if keys.insert(failure.key()) {
                    let small = smaller(target, &input, &failure, plan.smaller);
                    let failure = run(target, &small).err().unwrap_or(failure);
                    done.failures.push((small, failure));
                }
            }
        }
    }
    done
}
