//! Row X23 of the fault matrix, confined: the bombs of `tiller-tool` in each way that this machine has. What asks a supervisor
//! does not outgrow its limit.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiller_tool::shell::{Bounds, CommandWatch, Confiner, ForkLimit, Host, Launch, Sandbox};
use tiller_tool::testing::bombs::{Bomb, Excess, GONE, MEMORY, PROCESSES};
use tokio_util::sync::CancellationToken;

use crate::confine::Confined;
use crate::confinement::Confinement;
use crate::network::Servers;
use crate::policy::Profile;
use crate::testing::{Place, methods};

#[derive(Debug)]
struct Limited(Confined);

impl Confiner for Limited {
    fn confine(&self, launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        self.0.wrap(launch)
    }

    fn confine_limited(
        &self,
        launch: Launch,
        _workspace: &Path,
        _scratch: &Path,
        forks: &ForkLimit,
    ) -> Launch {
        self.0.staying(launch, forks, &Servers::default(), Path::new("/nonexistent"))
    }
}

#[tokio::test]
async fn x23_no_bomb_of_a_confined_program_is_left() {
    let place = Place::new();
    let supervised = Confinement::find().notification;
    if !supervised {
        println!(
            "skipped: this kernel has no user notification: the number of processes is looked at afterwards"
        );
    }
    for method in methods() {
        for bomb in Bomb::all() {
            let launch = Launch { args: vec!["-c".into(), bomb.command.clone()], ..place.launch("") };
            let confiner = Limited(place.confined(Profile::Workspace, method));
            let host = Host::default().confined(Some(Arc::new(confiner)));
            let mut hosted = host.start(launch, Stdio::null(), Stdio::null(), Stdio::null()).unwrap();
            let memory = if bomb.excess == Excess::Memory { MEMORY } else { 0 };
            hosted.bound(Bounds { processes: PROCESSES, memory, whose: "program" });
            let (mut most, end) = (0_u64, Instant::now() + GONE);
            if bomb.excess == Excess::Time {
                bomb.begun().await;
                let left = hosted.end(Duration::from_millis(300), &CancellationToken::new()).await;
                assert_eq!(left, 0, "{method:?} {}", bomb.name);
            } else {
                while hosted.excess().is_none() {
                    most = most.max(bomb.living().len() as u64);
                    let ended = hosted.exited();
                    assert!(Instant::now() < end, "{method:?}: {} is not ended ({ended:?})", bomb.name);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                // Some that were permitted before the last look start after it.
                assert!(!supervised || most <= PROCESSES * 3 / 2, "{method:?}: {} had {most}", bomb.name);
            }
            bomb.has_ended().await;
        }
    }
}

/// One that is refused another process keeps its own, and the start of threads is not asked about.
#[test]
fn x23_threads_and_few_processes_are_permitted() {
    let place = Place::new();
    for method in methods() {
        let confined = place.confined(Profile::Workspace, method);
        let kept = place.top.join("kept");
        let staying = |script: &str| {
            confined.staying(place.launch(script), &ForkLimit::default(), &Servers::default(), &kept)
        };
        let script = "for i in 1 2 3 4 5; do /bin/true || exit 1; done; (echo sub) && echo $(echo whole)";
        let out = place.start(staying(script));
        assert_eq!(String::from_utf8_lossy(&out.stdout).lines().last(), Some("whole"), "{method:?}: {out:?}");
        let out = place.start(staying("unshare -U true || echo refused"));
        assert!(String::from_utf8_lossy(&out.stdout).contains("refused"), "{method:?}: {out:?}");
    }
}

/// The end of one process of a pipeline does not fail the start of the next: each shell that is here makes many.
#[test]
fn the_end_of_a_child_fails_no_start_of_another() {
    if !Confinement::find().notification {
        println!("skipped: there is no supervisor");
        return;
    }
    let place = Place::new();
    let script = "i=0; while [ $i -lt 150 ]; do x=$(: | : | echo $i) || exit 1; [ \"$x\" = $i ] || exit 2; i=$((i+1)); done";
    for method in methods() {
        for shell in [&["dash"][..], &["bash"], &["busybox", "sh"]] {
            let found = std::process::Command::new(shell[0]).args(&shell[1..]).args(["-c", ":"]).output();
            if found.is_err() {
                println!("skipped: there is no {}", shell[0]);
                continue;
            }
            let line = format!("exec {} -c '{script}'", shell.join(" "));
            let confined = place.confined(Profile::Workspace, method);
            let out = place.run_watched(&confined, &line, &CommandWatch::default());
            let errors = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success() && errors.is_empty(), "{method:?} {shell:?}: {out:?}");
        }
    }
}
