use std::time::Duration;

use tiller_testkit::thread_cpu_time;

use super::*;
use crate::drive::{Failure, Plan, drive, run, smaller};
use crate::make::Maker;

/// New cases of each target in a quick run.
const CASES: u64 = 400;
/// Time in which they are made.
const TIME: Duration = Duration::from_secs(3);
/// Whole inputs of each target in a quick run.
const SEEDS: usize = 40;
/// Time for making each failure smaller.
const SMALLER: Duration = Duration::from_secs(2);
/// Time of a search whose result is compared: on a busy machine too it ends before.
const ENOUGH: Duration = Duration::from_secs(120);
/// Most bytes of the kept inputs.
const KEPT: usize = 1 << 20;

#[test]
fn every_target_holds_for_its_kept_inputs_and_for_some_new_ones() {
    let mut wrong = Vec::new();
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has nothing to begin with", target.name);
        let step = seeds.len().div_ceil(SEEDS);
        let kept = kept::read(target).unwrap().into_iter().map(|(_, input)| input);
        let begin: Vec<Vec<u8>> = kept.chain(seeds.into_iter().step_by(step)).collect();
        let cases = begin.len() as u64 + CASES;
        let done = drive(
            target,
            begin,
            Plan { cases, seed: 7, failures: 5, smaller: SMALLER, time: TIME },
            |_, _| {},
        );
        // Without optimisation, beside other tests, time says little.
        let failures = done.failures.iter().filter(|(_, f)| !matches!(f, Failure::Slow(_)));
        wrong.extend(
            failures
                .map(|(input, f)| format!("{}: {f}\n    {:?}", target.name, String::from_utf8_lossy(input))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_kept_inputs_are_few() {
    let bytes: usize =
        TARGETS.iter().flat_map(|t| kept::read(t).unwrap()).map(|(_, input)| input.len()).sum();
    assert!(bytes <= KEPT, "{bytes}");
    let folders = std::fs::read_dir(kept::folder()).unwrap();
    for folder in folders {
        let name = folder.unwrap().file_name().into_string().unwrap();
        assert!(target(&name).is_some(), "there is no target {name}");
    }
}

fn planted(data: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(data);
    assert!(!(text.contains("left") && text.contains("right")), "both");
    if text.contains("slow") {
        let started = thread_cpu_time();
        while thread_cpu_time() - started <= drive::SLOW {
            std::hint::black_box(&text);
        }
    }
    u64::from(text.contains("left")) + 2 * u64::from(text.contains("right"))
}

const PLANTED: Target =
    Target { name: "planted", words: &[&["left", "right", "other", "words"]], seeds: Vec::new, run: planted };

#[test]
fn a_planted_fault_is_found_and_made_small() {
    let plan = Plan { cases: 2_000, seed: 3, failures: 2, smaller: ENOUGH, time: ENOUGH };
    let done = drive(&PLANTED, vec![], plan, |_, _| {});
    let (input, failure) = done.failures.first().expect("the fault");
    assert!(matches!(failure, Failure::Panic { message, .. } if message == "both"), "{failure}");
    assert_eq!(input.len(), "leftright".len(), "{:?}", String::from_utf8_lossy(input));
    assert!(done.new.len() >= 2, "outlines of the cases before it");
}

#[test]
fn what_takes_long_fails() {
    let failure = run(&PLANTED, b"so slow").unwrap_err();
    assert!(matches!(failure, Failure::Slow(_)));
    assert_eq!(run(&PLANTED, b"left"), Ok(1));
    let both = run(&PLANTED, b"  left  right  ").unwrap_err();
    assert_eq!(smaller(&PLANTED, b"  left  right  ", &both, ENOUGH), b"leftright");
}

#[test]
fn a_seed_makes_the_same_inputs_again() {
    let inputs = |seed| {
        let mut maker = Maker::new(PLANTED.words, vec![b"begin 1".to_vec()], seed);
        (0..500).map(|_| maker.next_input()).collect::<Vec<_>>()
    };
    assert_eq!(inputs(1), inputs(1));
    assert_ne!(inputs(1), inputs(2));
    assert!(inputs(1).iter().all(|i| i.len() <= make::LONGEST));
}
