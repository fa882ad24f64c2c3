//! Background processes and terminals.

use super::*;

#[tokio::test]
async fn a_background_process_is_polled_written_to_and_killed() {
    let b = bench();
    sh(&b, "export NAME=inherited; mkdir d; cd d").await;
    let line = "echo up $NAME ${PWD##*/}; while read -r x; do echo got $x; done; echo end";
    let said = b.say(&Terminal, json!({ "command": line, "background": true })).await;
    assert!(said.starts_with("started as p1"), "{said}");
    let (mut said, end) = (said, Instant::now() + DEADLINE);
    while !said.contains("up inherited d") {
        assert!(Instant::now() < end, "{said}");
        said += &process(&b, json!({ "action": "poll", "id": "p1", "wait": 1 })).await;
    }
    let said = process(&b, json!({ "action": "write", "id": "p1", "input": "one" })).await;
    assert!(said.contains("write needs text"), "{said}");
    assert_eq!(process(&b, json!({ "action": "write", "id": "p1", "text": "one" })).await, "p1: written");
    let said = process(&b, json!({ "action": "poll", "id": "p1", "wait": 60 })).await;
    assert!(said.starts_with("p1: running") && said.contains("got one"), "{said}");
    let said = process(&b, json!({ "action": "poll", "id": "p1" })).await;
    assert!(said.contains("no new output"), "{said}");
    process(&b, json!({ "action": "write", "id": "p1", "text": "two", "close": true })).await;
    let job = b.cx.state.shells.jobs().remove(0);
    until("it ends", || job.exit.borrow().is_some()).await;
    let said = process(&b, json!({ "action": "log", "id": "p1" })).await;
    assert!(said.ends_with("up inherited d\ngot one\ngot two\nend"), "{said}");
    let said = process(&b, json!({ "action": "list" })).await;
    assert!(said.starts_with("p1: ended, exit 0"), "{said}");
    let said = process(&b, json!({ "action": "kill", "id": "p1" })).await;
    assert_eq!(said, "p1: it had already ended");
    assert!(process(&b, json!({ "action": "poll", "id": "p9" })).await.contains("running: p1"));
}

#[tokio::test]
async fn a_background_command_that_fails_at_once_says_so() {
    let end = Instant::now() + DEADLINE;
    loop {
        let b = bench();
        let out = output(&b, json!({ "command": "no-such-program", "background": true })).await;
        let text = text_of(&out.content);
        assert!(text.contains("p1"), "{text}");
        if text.contains("not found") {
            return;
        }
        // On a busy machine it may have failed a moment too late.
        assert!(Instant::now() < end, "{text}");
    }
}

#[tokio::test]
async fn kill_ends_the_whole_tree() {
    let b = bench();
    let line = "sleep 600 & (setsid sleep 601 &); wait";
    output(&b, json!({ "command": line, "background": true })).await;
    until("three run", || b.cx.state.shells.survivors().len() >= 3).await;
    assert_eq!(process(&b, json!({ "action": "kill", "id": "p1" })).await, "p1: killed");
    assert_eq!(b.cx.state.shells.survivors(), Vec::<i32>::new());
}

#[tokio::test]
async fn a_terminal_shows_what_a_person_would_see() {
    let b = bench();
    let line = "test -t 0 && test -t 1 && echo tty; tput cols; printf '10%%\\r100%%\\n'; printf '\\033[31mred\\033[0m\\n'; exit 4";
    let out = output(&b, json!({ "command": line, "pty": true })).await;
    let text = text_of(&out.content);
    assert!(text.starts_with("tty\n120\n100%\nred\n[exit 4]"), "{text}");
    assert_eq!(out.outcome, ToolOutcome::Error);
}

#[tokio::test]
async fn a_terminal_answers_queries_and_takes_keys() {
    let b = bench();
    // Asks where the cursor is, and waits for the answer as full-screen programs do.
    let line = "stty -echo -icanon; printf '\\033[6n'; answer=$(dd bs=1 count=6 2>/dev/null); \
                stty echo icanon; printf '%s' \"$answer\" | od -c | head -1; read -r x; echo got-$x; sleep 60";
    output(&b, json!({ "command": line, "background": true, "pty": true })).await;
    let screen = b.cx.state.shells.jobs()[0].screen().unwrap();
    until("the answer", || screen.lock().unwrap().visible().contains("033   [   1   ;   1   R")).await;
    assert_eq!(process(&b, json!({ "action": "write", "id": "p1", "text": "yes" })).await, "p1: sent");
    until("the echo", || screen.lock().unwrap().visible().contains("got-yes")).await;
    let said = process(&b, json!({ "action": "poll", "id": "p1" })).await;
    assert!(said.contains("(screen)") && said.contains("got-yes"), "{said}");
    process(&b, json!({ "action": "write", "id": "p1", "text": "\u{3}", "enter": false })).await;
    let job = b.cx.state.shells.jobs().remove(0);
    until("Ctrl-C ends it", || job.exit.borrow().is_some()).await;
}

#[tokio::test]
async fn a_terminal_that_hangs_is_ended() {
    let b = bench();
    let args = json!({ "command": "echo prompt; read x", "pty": true, "timeout": 3 });
    let out = output(&b, args).await;
    let text = text_of(&out.content);
    assert_eq!(out.outcome, ToolOutcome::TimedOut);
    assert!(text.starts_with("prompt\n") && text.contains("waiting for input"), "{text}");
    assert_eq!(b.cx.state.shells.survivors(), Vec::<i32>::new());
}

/// X16: a line that is written in pieces is declared as the line that it becomes, with what was typed before; and
/// nothing is written but what was judged.
#[tokio::test]
async fn x16_what_is_typed_into_a_process_is_declared_with_what_was_typed_before() {
    use tiller_protocol::Access;
    let mut b = bench();
    output(&b, json!({ "command": "cd /tmp && exec bash", "background": true })).await;
    let job = b.cx.state.shells.jobs().remove(0);
    until("the shell works in its folder", || {
        job.folder().is_some_and(|f| f == std::path::Path::new("/tmp"))
    })
    .await;
    let piece = |text: &str, enter| json!({ "action": "write", "id": "p1", "text": text, "enter": enter });
    let declared = |b: &Bench, args: &serde_json::Value| {
        let access = crate::guard::access_guarded(&Process, args, &b.cx).unwrap();
        let [Access::Input { before, text, command, folder, .. }] = &access[..] else { panic!("{access:?}") };
        assert!(command.ends_with("exec bash") && folder == "/tmp", "{command} in {folder}");
        (before.clone(), text.clone())
    };
    b.cx.call_id = "a".into();
    assert_eq!(declared(&b, &piece("echo o", false)), (String::new(), "echo o".into()));
    assert_eq!(process(&b, piece("echo o", false)).await, "p1: written");
    b.cx.call_id = "b".into();
    assert_eq!(declared(&b, &piece("ne", true)), ("echo o".into(), "ne\n".into()));
    // Another call was judged at the same moment and writes first: this one was judged for another line.
    let mut other = b.cx.clone();
    other.call_id = "c".into();
    crate::guard::access_guarded(&Process, &piece("ther", true), &other).unwrap();
    crate::guard::run_guarded(&Process, piece("ther", true), &other).await.unwrap();
    let late = crate::guard::run_guarded(&Process, piece("ne", true), &b.cx).await;
    assert!(matches!(&late, Err(ToolError::Tell(why)) if why.contains("other input was written")), "late");
    until("what was written first ran", || tiller_protocol::lock(&job.output.log).source().is_ok()).await;
    assert_eq!(declared(&b, &piece("x", true)).0, "echo other\n");
    process(&b, json!({ "action": "kill", "id": "p1" })).await;
}
