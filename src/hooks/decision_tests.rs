use std::time::Duration;

use serde_json::json;

use super::*;

const BEFORE: OutputForm = OutputForm { claude: false, before: true };
const AFTER: OutputForm = OutputForm { claude: false, before: false };

fn ran(end: CommandEnd, stdout: &str, stderr: &str) -> CommandRun {
    CommandRun { end, stdout: stdout.into(), stderr: stderr.into(), took: Duration::ZERO }
}

fn said(stdout: &str) -> Result<Decision, String> {
    decide(&ran(CommandEnd::Exit(0), stdout, ""), BEFORE).map_err(|failure| {
        assert!(failure.asks, "{stdout}");
        failure.why
    })
}

#[test]
fn exit_code_two_denies_with_the_reason_on_standard_error() {
    let deny = |stdout: &str, stderr: &str| {
        decide(&ran(CommandEnd::Exit(2), stdout, stderr), BEFORE).unwrap().deny.unwrap()
    };
    for stdout in ["", "{\"decision\":\"allow\"}", "{", "\u{feff}x\u{1b}[", &"y\n".repeat(HOOK_OUTPUT)] {
        assert_eq!(deny(stdout, "not on \u{1b}[31mFriday\n"), "not on Friday");
        assert_eq!(deny(stdout, ""), "it gave no reason");
    }
    assert_eq!(deny(r#"{"decision":"deny","reason":"no"}"#, ""), "no");
    assert!(deny("", &"x".repeat(100_000)).len() < REASON + 10);
}

#[test]
fn json_denies_changes_and_adds() {
    assert_eq!(said("").unwrap(), Decision::default());
    assert_eq!(said("formatted 3 files\n").unwrap(), Decision::default());
    let deny = said(r#"{"decision":"deny","reason":"no"}"#).unwrap();
    assert_eq!(deny.deny.unwrap(), "no");
    let changed = said(r#"{"arguments":{"command":"ls"},"add":"see docs","result":"r"}"#).unwrap();
    assert_eq!(changed.arguments, Some(json!({"command": "ls"})));
    assert_eq!((changed.add.as_deref(), changed.result.as_deref()), (Some("see docs"), Some("r")));
    assert!(changed.deny.is_none());
}

/// Texts that may stand before a decision.
const BEFORE_IT: &[&str] = &[
    "",
    "Shell ready\n",
    "Shell {name} is ready\n",
    "\u{feff}",
    "\u{fffd}\u{fffd}",
    "\u{1b}[0m",
    "\u{1b}[1;31mred\u{1b}[m ",
    "\u{1b}(B\u{1b}[m",
    "\u{1b}]0;a title\u{7}",
    // Sequences that do not end.
    "\u{1b}]0;a title",
    "\u{1b}[",
    "\u{1b}[31",
    "\u{9b}1m",
    "\u{1b}P",
    "\u{1b}",
    "\0",
    "\r\n\r\n",
    "{}\n",
    "{\"level\":\"info\",\"message\":\"began\"}\n",
    "{\"decision\":\"allow\"}\n",
    "[",
    "decision: ",
];

/// Texts that may stand behind it.
const BEHIND_IT: &[&str] = &[
    "",
    "\n",
    "\u{1b}[0m",
    " trailing",
    "]",
    "\n{\"level\":\"info\"}",
    "\n{\"decision\":\"allow\"}",
    "\nDone {here}",
    "{",
];

/// A denial counts wherever it stands, in each form, whatever the exit code.
#[test]
fn a_denial_counts_with_anything_around_it() {
    let plain = r#"{"decision":"deny","reason":"no"}"#;
    let lines = "{\n  \"decision\": \"deny\",\n  \"reason\": \"no\"\n}";
    let colours = "\u{1b}[1;39m{\n  \u{1b}[0m\u{1b}[34;1m\"decision\"\u{1b}[0m\u{1b}[1;39m: \u{1b}[0;32m\"deny\"\u{1b}[0m,\n \"reason\": \u{1b}(B\u{1b}[m\"no\"}";
    let wide: String = plain.chars().flat_map(|c| [c, '\0']).collect();
    let more = r#"{"decision":"deny","reason":"no","code":7,"arguments":7}"#;
    for denial in [plain, lines, colours, &wide, more] {
        for before in BEFORE_IT {
            for behind in BEHIND_IT {
                let text = format!("{before}{denial}{behind}");
                assert_eq!(said(&text).unwrap().deny.as_deref(), Some("no"), "{text:?}");
                for end in
                    [CommandEnd::Exit(1), CommandEnd::Exit(143), CommandEnd::TimedOut, CommandEnd::TooMuch]
                {
                    let decided = decide(&ran(end.clone(), &text, ""), AFTER).unwrap();
                    assert_eq!(decided.deny.as_deref(), Some("no"), "{end:?} {text:?}");
                }
            }
        }
    }
    let theirs = "Shell ready\n{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\"}}";
    let form = OutputForm { claude: true, before: true };
    assert!(decide(&ran(CommandEnd::Exit(0), theirs, ""), form).unwrap().deny.is_some());
}

/// Changes count with text around them, too; of several objects the last.
#[test]
fn changes_count_with_text_around_them() {
    for before in BEFORE_IT.iter().filter(|text| !text.contains('{') || text.ends_with('\n')) {
        let text = format!("{before}{{\"arguments\":{{\"command\":\"ls\"}}}}\n");
        assert_eq!(said(&text).unwrap().arguments, Some(json!({"command": "ls"})), "{text:?}");
    }
    let two = said("{\"add\":\"a\",\"tell\":\"t\"}\n{\"add\":\"b\"}").unwrap();
    assert_eq!((two.add.as_deref(), two.tell.as_deref()), (Some("b"), Some("t")));
}

/// An output that cannot be understood is a failure: a blocking hook then denies, and a call asks after another one.
#[test]
fn what_cannot_be_understood_is_a_failure() {
    for bad in [
        "{",
        "{\"decision\":",
        "text {",
        "text\n{ \"decision\": \"deny\"",
        "{'decision': 'deny'}",
        "{decision: deny}",
        "hook: {'decision': 'deny'}",
        "\"{\\\"decision\\\":\\\"deny\\\"}\"",
        "{\"log\": {\"decision\":\"allow\"}",
        "{\"log\":\n{\"decision\":\"allow\"}",
        r#"{"decision":"deny","decision":"allow"}"#,
        r#"{"decision":"block"}"#,
        r#"{"decision":false}"#,
        r#"{"descision":"deny"}"#,
        "{}\n{\"descision\":\"deny\"}",
        "{\"tell\":\"hello\"}\n{\"Decision\":\"deny\"}",
        "{\"tell\":\"hello\"}\n{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\"}}",
        "{\"tell\":\"hello\"}\n{\"permission_decision\":\"deny\"}",
        r#"{"continue":false}"#,
        r#"{"deny":true}"#,
        r#"{"arguments":"rm -rf /"}"#,
        r#"{"add":7}"#,
    ] {
        assert!(said(bad).is_err(), "{bad}");
        let broken = format!("Shell ready\n{bad}");
        assert!(said(&broken).is_err(), "{broken}");
    }
    let allow = r#"{"decision":"allow"}"#;
    for (end, asks) in [
        (CommandEnd::Exit(1), false),
        (CommandEnd::Exit(3), false),
        (CommandEnd::Exit(126), true),
        (CommandEnd::Exit(127), true),
        (CommandEnd::Exit(129), true),
        (CommandEnd::Exit(137), true),
        (CommandEnd::TimedOut, true),
        (CommandEnd::TooMuch, true),
        (CommandEnd::NotStarted("no memory".into()), true),
        (CommandEnd::Cancelled, true),
    ] {
        assert_eq!(decide(&ran(end.clone(), allow, ""), BEFORE).unwrap_err().asks, asks, "{end:?}");
    }
    let failed = decide(&ran(CommandEnd::Exit(127), "", "sh: x: not\nfound"), BEFORE).unwrap_err();
    assert_eq!(failed.why, "it failed with exit code 127: sh: x: not found");
}

/// Programs that run after something print code.
#[test]
fn code_in_the_output_of_later_hooks_is_ignored() {
    let later = |stdout: &str| decide(&ran(CommandEnd::Exit(0), stdout, ""), AFTER);
    for code in ["-fn main() {\n", "x = { a: 1 }\nfine", "struct A;\nimpl A {\n    fn b() {}\n}\n"] {
        assert_eq!(later(code).unwrap(), Decision::default(), "{code}");
    }
    for bad in ["{ a: 1 }", "text\n{\"decision\":\"deny\"", "text {\"decision\""] {
        assert!(later(bad).is_err(), "{bad}");
    }
}

/// Reading ends soon, whatever is printed.
#[test]
fn long_output_is_read_in_time() {
    for text in ["{", "{\"a\":", "{\"a\":\"", "[{\"a\":[1,", "\u{1b}[", "{\"a\":\"\\\"", "\n{"] {
        let text =
            format!("{}{}", " \n".repeat(HOOK_OUTPUT / 32), text.repeat(HOOK_OUTPUT / 32 / text.len()));
        // What it comes to is shown by the other tests.
        let _ = said(&text);
    }
}
