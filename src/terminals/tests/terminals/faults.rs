//! Connections that break, shells that are gone, and a Tiller that was killed.

use super::*;

/// Nothing of the output is missing or there twice, however often the connection breaks.
#[tokio::test]
async fn a_command_is_found_again_over_a_new_connection() {
    let there = There::pod(60);
    assert_eq!(there.run("echo 1").await, "1");
    let command =
        "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo line $i; : >~/at$i; sleep 0.05; done; export DONE=yes";
    let cut = async {
        until("lines come", || there.home.join("at15").exists()).await;
        let before = there.relays();
        there.cut();
        until("it is connected again", || there.relays() > before).await;
        until("more lines come", || there.home.join("at35").exists()).await;
        there.cut();
    };
    let (said, ()) = tokio::join!(there.run(command), cut);
    let lines: Vec<String> = (1..=60).map(|n| format!("line {n}")).collect();
    assert!(
        said.starts_with(&format!("{}\n[the connection to build (kubernetes) broke", lines.join("\n"))),
        "{said}"
    );
    assert!(said.contains("nothing was lost"), "{said}");
    assert_eq!(there.run("echo $DONE").await, "yes", "it is the same shell");
    there.end().await;
}

/// The connection is not watched between two commands: the next command finds it broken.
#[tokio::test]
async fn a_connection_that_broke_at_rest_is_made_again() {
    let there = There::pod(60);
    there.run("A=kept; mkdir -p x; cd x").await;
    assert!(there.cut() > 0);
    let said = there.run("echo $A").await;
    assert!(said.starts_with("kept"), "{said}");
    there.end().await;
}

#[tokio::test]
async fn what_is_gone_there_is_told_to_be_lost() {
    let there = There::pod(60);
    there.run("export A=kept").await;
    let shells = there.kept();
    let lose = async {
        until("the command runs", || lives("sleep 4331")).await;
        std::fs::write(there.bench.scratch.path().join("down"), "").unwrap();
        there.cut();
        for shell in &shells {
            let pid = std::fs::read_to_string(shell.join("pid")).unwrap();
            Command::new("kill").args(["-9", "--", &format!("-{}", pid.trim())]).output().unwrap();
            std::fs::remove_dir_all(shell).unwrap();
        }
        std::fs::remove_file(there.bench.scratch.path().join("down")).unwrap();
    };
    let (said, ()) = tokio::join!(there.run("sleep 4331"), lose);
    assert!(said.contains("is lost") && said.contains("The shell ended"), "{said}");
    assert_eq!(there.run("echo $A").await, "kept", "a new shell has the exported variables");
    there.end().await;
}

/// The shell alone is killed: its connection stays.
#[tokio::test]
async fn a_shell_that_dies_ends_its_command() {
    let there = There::pod(60);
    let said = there.run("kill -9 $$").await;
    assert!(said.contains("The shell ended"), "{said}");
    assert_eq!(there.run("echo again").await, "again");
    there.end().await;
}

#[tokio::test]
async fn a_terminal_that_cannot_be_reached_is_said_and_a_stop_ends_the_trying() {
    let there = There::pod(60);
    std::fs::write(there.bench.scratch.path().join("down"), "").unwrap();
    let said = there.run("echo never").await;
    assert!(said.contains("build (kubernetes): no route"), "{said}");
    std::fs::remove_file(there.bench.scratch.path().join("down")).unwrap();
    assert_eq!(there.run("echo 1").await, "1");
    let cancel = there.bench.cx.cancel.clone();
    let stop = async {
        until("the command runs", || lives("sleep 4332")).await;
        std::fs::write(there.bench.scratch.path().join("down"), "").unwrap();
        let before = there.relays();
        there.cut();
        until("it tries to connect", || there.relays() > before).await;
        cancel.cancel();
        Instant::now()
    };
    let (said, began) = tokio::join!(there.run("sleep 4332"), stop);
    assert!(said.contains("[stopped by the user]") && said.contains("It is not known how far"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(30));
    Command::new("kill").arg("-9").args(processes("sleep 4332")).output().unwrap();
}

/// As after a kill of Tiller: its connections close without a word.
#[tokio::test]
async fn what_a_killed_tiller_left_there_ends_by_itself() {
    let there = There::pod(2);
    there.run("setsid sleep 4333 & sleep 4334 & true").await;
    there.terminal(json!({"command": "sleep 4335", "background": true})).await;
    until("all of it runs", || ["sleep 4333", "sleep 4334", "sleep 4335"].into_iter().all(lives)).await;
    assert!(there.cut() >= 2);
    // It does not come back: this test's own Tiller would connect again.
    std::fs::write(there.bench.scratch.path().join("down"), "").unwrap();
    until("nothing of it runs", || !["sleep 4333", "sleep 4334", "sleep 4335"].into_iter().any(lives)).await;
    until("nothing is kept", || there.kept().is_empty()).await;
}

/// Its folder is removed while there is no connection: nothing can find the shell again.
#[tokio::test]
async fn what_lost_its_folder_there_ends_by_itself() {
    let there = There::pod(3_000);
    there.run("sleep 4336 & true").await;
    until("it runs", || lives("sleep 4336")).await;
    std::fs::write(there.bench.scratch.path().join("down"), "").unwrap();
    assert!(there.cut() >= 1);
    for folder in there.kept() {
        std::fs::remove_dir_all(folder).unwrap();
    }
    until("nothing of it runs", || !lives("sleep 4336")).await;
}
