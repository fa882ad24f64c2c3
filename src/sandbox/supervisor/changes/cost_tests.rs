//! Measures the cost of the witness: the same work, in a confined command whose changes are noted and in one whose are not.

use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime};

use tiller_tool::shell::{CommandWatch, Witness};

use crate::confinement::Confinement;
use crate::policy::Profile;
use crate::testing::{Place, methods};

/// Rounds, of which the fastest counts: other programs only make one slower.
const ROUNDS: usize = 4;
/// Files of the C program that is built.
const UNITS: usize = 40;

/// A kind of work: its name, and a script that leaves the folder as it was for the next round.
type Work = (&'static str, String);

fn work(place: &Place) -> Vec<Work> {
    let folder = place.top.join("work");
    let mut makefile = String::from("all: program\n");
    let (mut objects, mut calls) = (String::new(), String::new());
    for n in 0..UNITS {
        let _ = write!(objects, " u{n}.o");
        let _ = write!(calls, "int u{n}(int); ");
        let unit = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint u{n}(int a) {{ return a * {n}; }}\n"
        );
        std::fs::write(folder.join(format!("u{n}.c")), unit).unwrap();
    }
    let main = format!("{calls} int main(void) {{ return u1(0); }}\n");
    std::fs::write(folder.join("main.c"), main).unwrap();
    let _ = write!(
        makefile,
        "program: main.o{objects}\n\tcc -o $@ $^\n%.o: %.c\n\tcc -O1 -c -o $@ $<\nclean:\n\trm -f *.o program\n"
    );
    std::fs::write(folder.join("Makefile"), makefile).unwrap();
    let file = "n=0; while [ $n -lt 3000 ]; do printf content > made/$n; n=$((n+1)); done";
    vec![
        ("make of 40 files of C", "make -s -j2 && make -s clean".into()),
        ("3,000 files written by a shell", format!("mkdir made; {file}; rm -r made")),
        (
            "git: 3,000 files committed and checked out",
            format!(
                "git init -q g && cd g && mkdir made && {file} && git add -A && \
             git -c user.name=a -c user.email=a@b commit -q -m x && rm -r made && git checkout -q . && cd .. && rm -rf g"
            ),
        ),
    ]
}

/// Cost of a run: its time, and that of all processors for this process and its children.
#[derive(Clone, Copy)]
struct Cost {
    wall: Duration,
    /// In ticks of 10 ms.
    processors: u64,
}

impl Cost {
    const MOST: Self = Self { wall: Duration::MAX, processors: u64::MAX };

    fn of(work: impl FnOnce()) -> Self {
        let (begun, before) = (Instant::now(), processors());
        work();
        Self { wall: begun.elapsed(), processors: processors() - before }
    }

    fn least(self, other: Self) -> Self {
        Self { wall: self.wall.min(other.wall), processors: self.processors.min(other.processors) }
    }

    /// The excess over another one, in percent: wall time, and processors.
    fn above(self, other: Self) -> (f64, f64) {
        let ticks = |of: Self| f64::from(u32::try_from(of.processors).unwrap());
        let more = |one: f64, other: f64| (one / other - 1.0) * 100.0;
        (more(self.wall.as_secs_f64(), other.wall.as_secs_f64()), more(ticks(self), ticks(other)))
    }
}

/// Ticks of this process and of children that have ended.
fn processors() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().unwrap()).sum()
}

/// Prints what each kind of work costs: without a supervisor, with one, and with one that notes all changes for a call. Run no other
/// test beside it.
#[test]
#[ignore = "prints figures"]
fn figures_of_the_cost_of_the_witness() {
    if !Confinement::find().notification {
        return println!("skipped: this kernel has no user notification");
    }
    for method in methods() {
        let place = Place::new();
        let confined = place.confined(Profile::Workspace, method);
        for (name, script) in work(&place) {
            let mut least = [Cost::MOST; 3];
            for round in 0..=ROUNDS {
                for (at, least) in least.iter_mut().enumerate() {
                    let (watch, witness) = (CommandWatch::default(), Witness::default());
                    if at == 2 {
                        witness.begin(SystemTime::now());
                        watch.attend(&witness);
                    }
                    let cost = Cost::of(|| {
                        let done = match at {
                            0 => place.start(place.launch(&script)),
                            _ => place.run_watched(&confined, &script, &watch),
                        };
                        assert!(done.status.success(), "{name}: {done:?}");
                    });
                    assert_eq!(witness.is_complete(), at == 2, "{name}");
                    // The first round fills caches.
                    if round > 0 {
                        *least = least.least(cost);
                    }
                }
            }
            let [bare, confined, seen] = least;
            let ((wall, cpu), (more_wall, more_cpu)) = (confined.above(bare), seen.above(confined));
            println!(
                "{method:?}: {name}: {:.0?} bare, confined {wall:+.1} % (processors {cpu:+.1} %), and with a witness {more_wall:+.1} % (processors {more_cpu:+.1} %)",
                bare.wall
            );
        }
    }
}
