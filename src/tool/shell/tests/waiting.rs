//! Row T5: programs that wait for a person.

use super::*;

/// Each would ask on a terminal. Those that are not installed fail at once, which is fine too.
const ASKERS: [&str; 16] = [
    "read -p 'Password: ' x || echo eof",
    "cat",
    "less /etc/passwd",
    "more /etc/passwd",
    "vi /tmp/none",
    "nano /tmp/none",
    "sudo -k true",
    "su root -c true",
    "passwd",
    "ssh -o ConnectTimeout=1 nobody@127.0.0.1 -p 9",
    "git -c credential.helper= ls-remote http://127.0.0.1:9/x.git",
    "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit --allow-empty",
    "python3 -c 'input(\"name? \")'",
    "sh -c 'read x </dev/tty'",
    "man ls",
    "bash -i",
];

const LIMIT: f64 = 15.0;
/// The programs would wait for ever.
const SLACK: Duration = Duration::from_secs(300);

#[tokio::test]
async fn t5_nothing_that_asks_hangs_beyond_its_limit() {
    let asked = ASKERS.map(|asker| async move {
        let b = bench();
        let begun = Instant::now();
        let out = output(&b, json!({ "command": asker, "timeout": LIMIT })).await;
        let text = text_of(&out.content);
        // Limit, grace, and the slowness of a loaded machine.
        assert!(begun.elapsed() < SLACK, "{asker}: {text}");
        if out.outcome == ToolOutcome::TimedOut {
            assert!(text.contains("input"), "{asker}: {text}");
        }
        assert_eq!(b.cx.state.shells.shutdown().await, 0, "{asker}");
    });
    futures_util::future::join_all(asked).await;
}

#[tokio::test]
async fn t5_it_is_said_where_it_can_be_seen() {
    let b = bench();
    for asker in [
        "sh -c 'read x </dev/tty'",
        "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit --allow-empty",
        "python3 -c 'input(\"name? \")'",
        "echo 'fatal: could not read Username: terminal prompts disabled' >&2; false",
    ] {
        let text = sh(&b, asker).await;
        assert!(text.contains("waited for input"), "{asker}: {text}");
    }
    // A command that waits all the same: it made itself an input that never ends.
    let args =
        json!({ "command": "mkfifo f; exec 3<>f; printf 'Continue? [y/N] '; read x <&3", "timeout": 3 });
    let text = text_of(&output(&b, args).await.content);
    assert!(text.contains("waiting for input"), "{text}");
}

/// No controlling terminal, whatever the terminal of these tests is.
#[tokio::test]
async fn t5_there_is_no_terminal_to_ask_on() {
    let b = bench();
    let said =
        sh(&b, "ps -o tty= -p $$; test -t 0 || echo no-input; (: </dev/tty) 2>/dev/null || echo no-tty")
            .await;
    assert_eq!(said, "?\nno-input\nno-tty");
}
