//! Delays from a message or a call to the next request.

use std::time::{Duration, Instant};

use crate::rig::*;
use crate::scripted_model::lock;

/// Turns that are timed.
const TIMED: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_enter_to_request_and_from_call_to_request_is_short() {
    let place = Place::new();
    place.file("a.txt", "hello\n");
    let fake = Fake::with(|n, _| {
        if n % 2 == 0 { calls(&[(&format!("c{n}"), "read_file", read_args("a.txt"))]) } else { says("ok") }
    });
    let mut rig = place.start(&fake).await;
    let (mut enter, mut call) = (Vec::new(), Vec::new());
    for n in 0..TIMED {
        let began = Instant::now();
        rig.turn("go").await;
        let times = lock(&fake.times);
        enter.push(times[2 * n] - began);
        call.push(times[2 * n + 1] - times[2 * n]);
    }
    enter.sort();
    call.sort();
    println!("enter to request p50 {:?}, call to request p50 {:?}", enter[TIMED / 2], call[TIMED / 2]);
    // Unoptimised, beside builds: a bound on the order of magnitude only. The bench has the budgets.
    assert!(enter[TIMED / 2].max(call[TIMED / 2]) < Duration::from_secs(10));
}
