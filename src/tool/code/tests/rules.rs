//! One approval for a whole script.

use serde_json::json;
use tiller_protocol::{ToolOutcome, lock};

use super::{bench, output};
use crate::code::{CallConsent, ExecuteCode};
use crate::testing::{Bench, text_of};

async fn go(b: &Bench, args: serde_json::Value) -> (ToolOutcome, String) {
    let out = b.call(&ExecuteCode, args).await.unwrap();
    (out.outcome, text_of(&out.content))
}

#[tokio::test]
async fn writes_are_recorded_shown_together_and_made_in_a_second_run() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    b.file("in.txt", "v1\n");
    let code = "from tiller_tools import read_file, write_file, terminal\nfor n in range(3):\n    write_file(f'o{n}.txt', read_file('in.txt'))\n\
                print(terminal('echo x > t.txt').exit_code)\n";
    go(&b, json!({"code": code})).await;
    let approval = std::sync::Arc::clone(&b.cx.run.script);
    assert!(approval.waits());
    assert!(!b.root.join("o0.txt").exists() && !b.root.join("t.txt").exists(), "nothing is done yet");
    let shown: Vec<(String, bool)> =
        approval.waiting().into_iter().map(|(ask, allowed)| (ask.shown, allowed)).collect();
    let of = |name: &str| (name.to_owned(), false);
    assert_eq!(shown, [of("o0.txt"), of("o1.txt"), of("o2.txt"), ("echo x > t.txt".into(), true)]);
    approval.approve();
    let (outcome, text) = go(&b, json!({"code": code})).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "0"), "{text}");
    assert_eq!(std::fs::read_to_string(b.root.join("o2.txt")).unwrap(), "v1\n");
    assert!(b.root.join("t.txt").exists());
    assert!(!approval.waits());
}

#[tokio::test]
async fn what_was_done_before_the_first_question_is_not_done_again() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    let code = "from tiller_tools import terminal, write_file\nprint(terminal('echo once >> log.txt; cat log.txt').strip())\nwrite_file('o.txt', 'x')\n";
    go(&b, json!({"code": code})).await;
    b.cx.run.script.approve();
    let (outcome, text) = go(&b, json!({"code": code})).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "once"), "{text}");
    assert_eq!(std::fs::read_to_string(b.root.join("log.txt")).unwrap(), "once\n");
}

#[tokio::test]
async fn a_real_run_that_differs_asks_again_from_the_first_call_that_was_not_shown() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    b.file("in.txt", "1\n");
    let code = "from tiller_tools import read_file, write_file\nwrite_file('a.txt', 'x')\n\
                write_file('b.txt' if read_file('in.txt').strip() == '1' else 'c.txt', 'x')\nwrite_file('d.txt', 'x')\n";
    go(&b, json!({"code": code})).await;
    b.cx.run.script.approve();
    b.file("in.txt", "2\n");
    go(&b, json!({"code": code})).await;
    let there = || ["a.txt", "b.txt", "c.txt", "d.txt"].map(|name| b.root.join(name).exists());
    // What was shown up to there is done; the rest waits for another question, together.
    assert_eq!(there(), [true, false, false, false]);
    let approval = std::sync::Arc::clone(&b.cx.run.script);
    assert!(approval.waits() && approval.was_approved());
    let shown: Vec<String> = approval.waiting().into_iter().map(|(ask, _)| ask.shown).collect();
    assert_eq!(shown, ["c.txt", "d.txt"]);
    approval.approve();
    let (outcome, text) = go(&b, json!({"code": code})).await;
    assert_eq!((outcome, there()), (ToolOutcome::Ok, [true, false, true, true]), "{text}");
    let made = |name: &str| {
        let given = |call: &&crate::code::CallForScript| matches!(call.consent, CallConsent::Given(_));
        lock(&b.ports.calls).iter().filter(|c| c.args["path"] == name).filter(given).count()
    };
    assert_eq!((made("a.txt"), made("c.txt"), made("d.txt")), (1, 1, 1), "each is made once");
}

/// A script that makes other calls in each run is not asked about for ever.
#[tokio::test]
async fn the_questions_about_one_script_are_bounded() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    let code = "import os\nfrom tiller_tools import write_file\nwrite_file(os.urandom(8).hex(), 'x')\n";
    let mut questions = 0;
    let (outcome, text) = loop {
        let done = go(&b, json!({"code": code})).await;
        if !b.cx.run.script.waits() {
            break done;
        }
        questions += 1;
        b.cx.run.script.approve();
    };
    assert_eq!((questions, outcome), (8, ToolOutcome::Denied), "{text}");
    assert!(text.contains("stopped at `write "), "{text}");
}

/// In the run that collects the calls, what was written is read, found and changed as it would be.
#[tokio::test]
async fn recorded_writes_lie_over_the_files_that_later_calls_read() {
    const HEAD: &str = "from tiller_tools import *\nfrom tiller_tools import ToolError\n\
                        def missing(path):\n    try:\n        read_file(path)\n    except ToolError:\n        return True\n    return False\n\
                        def change(text):\n    return patch('*** Begin Patch\\n' + text + '*** End Patch\\n')\n";
    let writes = [
        ("new", "write_file('n/a.txt', 'one needle\\n')\n", "n/a.txt", "one needle\n"),
        ("over", "read_file('old.txt')\nwrite_file('old.txt', 'two needle\\n')\n", "old.txt", "two needle\n"),
        (
            "append",
            "write_file('log.txt', 'one\\n')\nwrite_file('log.txt', read_file('log.txt') + 'needle\\n')\n",
            "log.txt",
            "one\nneedle\n",
        ),
        (
            "edit",
            "read_file('old.txt')\nchange('*** Update File: old.txt\\n@@\\n-old\\n+a needle\\n')\n",
            "old.txt",
            "a needle\n",
        ),
        (
            "edit of what is new",
            "write_file('x.txt', 'old\\n')\nchange('*** Update File: x.txt\\n@@\\n-old\\n+needle\\n')\n",
            "x.txt",
            "needle\n",
        ),
        (
            "move",
            "read_file('old.txt')\nchange('*** Update File: old.txt\\n*** Move to: m/moved.txt\\n@@\\n-old\\n+needle\\n')\nassert missing('old.txt')\nassert 'old.txt' not in search(glob='**/old*')\n",
            "m/moved.txt",
            "needle\n",
        ),
        (
            "delete, and make again",
            "read_file('old.txt')\nchange('*** Delete File: old.txt\\n')\nassert missing('old.txt')\nassert 'old.txt' not in search(glob='*.txt')\nwrite_file('old.txt', 'needle\\n')\n",
            "old.txt",
            "needle\n",
        ),
    ];
    for (way, write, path, content) in writes {
        let Some(b) = bench() else { return };
        *lock(&b.ports.asking) = vec!["write_file", "patch"];
        b.file("old.txt", "old\n");
        b.file("other.txt", "no such word\n");
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let code = format!(
            "{HEAD}{write}assert read_file('{path}') == {content:?}, read_file('{path}')\n\
             found = search('needle')\nassert '{path}' in found and 'other.txt' not in found, found\n\
             assert 'needle' in search('needle', path='{path}')\nassert '{path}' in search('needle', path='{folder}')\n\
             assert '{path}' in search(glob='**/*.txt')\nprint('read')\n"
        );
        let (_, text) = go(&b, json!({"code": code})).await;
        assert!(b.cx.run.script.waits(), "{way}: {text}");
        assert_eq!(output(&text).trim(), "read", "{way}: {text}");
        assert_eq!(
            std::fs::read_to_string(b.root.join("old.txt")).unwrap(),
            "old\n",
            "{way}: nothing is done"
        );
        b.cx.run.script.approve();
        let (outcome, text) = go(&b, json!({"code": code})).await;
        assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "read"), "{way}: {text}");
        assert!(!b.cx.run.script.waits(), "{way}: it is asked about once");
        assert_eq!(std::fs::read_to_string(b.root.join(path)).unwrap(), content, "{way}");
    }
}

#[tokio::test]
async fn a_script_that_fails_by_itself_is_not_asked_about() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file", "terminal"];
    let (_, text) =
        go(&b, json!({"code": "from tiller_tools import write_file\nwrite_file('a.txt', 'x')\n1 / 0\n"}))
            .await;
    assert!(text.contains("the user was not asked") && text.contains("ZeroDivisionError"), "{text}");
    assert!(!b.cx.run.script.waits());
    // What the command says is not known before it runs: the question comes all the same.
    go(
        &b,
        json!({"code": "import json\nfrom tiller_tools import terminal\njson.loads(terminal('echo [1]'))\n"}),
    )
    .await;
    assert!(b.cx.run.script.waits());
}

/// The run that collects the calls leaves no trace in the variables of a session.
#[tokio::test]
async fn in_a_session_the_collecting_run_changes_no_variable() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    let session = |code: &str| json!({"code": code, "session": "s"});
    go(&b, session("n = 1\n")).await;
    let code = "from tiller_tools import write_file\nn += 1\nwrite_file(f'{n}.txt', 'x')\nprint(n)\n";
    go(&b, session(code)).await;
    b.cx.run.script.approve();
    let (outcome, text) = go(&b, session(code)).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "2"), "{text}");
    assert!(b.root.join("2.txt").exists());
    let (_, text) = go(&b, session("print(n)\n")).await;
    assert_eq!(output(&text).trim(), "2", "{text}");
}
