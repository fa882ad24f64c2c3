use proptest::prelude::*;
use serde_json::json;
use tiller_protocol::ToolOutcome;

use super::*;

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: String::new(), name: name.into(), arguments, malformed: None, vendor: None }
}

/// One round with one call, as a turn books it.
fn one(r: &mut Repeats, call: &ToolCall, outcome: ToolOutcome, said: &str) -> Verdict {
    r.call(call, &CallResult::text(outcome, said), !call.name.starts_with("unknown"));
    end_of_round(r)
}

/// Ends a round, whose hint reaches the model.
fn end_of_round(r: &mut Repeats) -> Verdict {
    let verdict = r.round(6);
    if verdict == Verdict::Tell {
        r.told();
    }
    verdict
}

fn round(r: &mut Repeats, command: &str, said: &str) -> Verdict {
    one(r, &call("terminal", json!({"command": command})), ToolOutcome::Ok, said)
}

fn failing(r: &mut Repeats, command: &str, said: &str) -> Verdict {
    one(r, &call("terminal", json!({"command": command})), ToolOutcome::Error, said)
}

/// The rounds at which it told the model, and asked the user.
fn fired(mut round: impl FnMut(&mut Repeats, usize) -> Verdict) -> (Option<usize>, Option<usize>) {
    let mut r = Repeats::default();
    let mut told = None;
    for n in 0..200 {
        match round(&mut r, n) {
            Verdict::GoOn => {}
            Verdict::Tell => told = told.or(Some(n + 1)),
            Verdict::Ask(_) => return (told, Some(n + 1)),
        }
    }
    (told, None)
}

#[test]
fn equal_rounds_are_told_after_three_and_asked_about_after_six() {
    let mut r = Repeats::default();
    use Verdict::{Ask, GoOn, Tell};
    for (n, verdict) in (0..).zip([GoOn, GoOn, Tell, GoOn, GoOn, Ask(6)]) {
        let seen = round(&mut r, "make", &format!("failed in 0.{n}s"));
        assert_eq!(seen, verdict, "the time that it took is no difference");
    }
    assert_eq!(r.take(), "terminal");
    assert_eq!(round(&mut r, "make", "failed in 1s"), GoOn, "a yes counts from the start");
}

/// The notes that the program's own tools add differ each time and are ignored.
#[test]
fn how_long_it_took_and_where_the_whole_is_kept_are_no_difference() {
    let six = (Some(3), Some(6));
    let all = |said: &dyn Fn(usize) -> String| fired(|r, n| round(r, "make", &said(n)));
    assert_eq!(all(&|n| format!("FAILED\n[exit 1]\n[took {}.{n} s]", 5 + n)), six);
    // A build near five seconds gets the line only at times.
    assert_eq!(all(&|n| format!("FAILED\n[exit 1]{}", ["", "\n[took 5.1 s]"][n % 2])), six);
    assert_eq!(all(&|n| format!("Ran 3 tests in {n}.25 seconds, or {n}m{n}s ({n} ms)")), six);
    let whole = |n| format!("read_file can page the whole: /state/spill/c{n}.txt");
    let cut = |n| output::cut_middle(&"a line of it\n".repeat(100), 400, &whole(n)).unwrap();
    assert_eq!(all(&cut), six);
    assert_eq!(all(&|n| format!("a\n[... about 9.0 MB left out; {} ...]\nz", whole(n))), six);
    assert_eq!(all(&|n| format!("[binary output, 9.0 MB, not shown; {}]\n", whole(n))), six);
    assert_eq!(all(&|n| format!("{n} of 50 MB done")), (None, None));
    assert_eq!(all(&|n| format!("[... {n} KB, 7 lines left out; {} ...]", whole(n))), (None, None));
}

/// A step of a cycle: a command, what it says, and how it ends.
fn step(n: usize) -> (String, &'static str, ToolOutcome) {
    use ToolOutcome::{Denied, Error, Ok, TimedOut};
    let rows = [
        ("git status --short", " M src/lib.rs", Ok),
        ("cargo test --lib parser", "error[E0425]: cannot find value `x` in this scope\n[exit 101]", Error),
        ("ls -la target", "(no output)", Ok),
        ("python3 run.py --seed 1", "run.py: No such file or directory\n[exit 2]", Error),
        ("make all", "make: *** No rule to make target 'all'.  Stop.\n[exit 2]", Error),
        ("cat notes", "one\ntwo 2\n", Ok),
        ("curl http://localhost:80/", "the command was refused by the user's rule", Denied),
        ("sleep 100", "[timed out after 30 s and was terminated]", TimedOut),
    ];
    let (command, said, outcome) = rows[n % rows.len()];
    (command.to_owned(), said, outcome)
}

/// The same command, written differently.
fn noisy(command: &str, comment: u32, style: u32) -> String {
    let words: Vec<String> = command
        .split(' ')
        .map(|word| match (style % 4, word.contains(['*', '=', '/'])) {
            (1, false) => format!("'{word}'"),
            (2, false) => format!("\"{word}\""),
            _ => word.to_owned(),
        })
        .collect();
    let gap = if style.is_multiple_of(3) { "  " } else { " " };
    match comment % 4 {
        0 => words.join(gap),
        1 => format!("{}  # attempt {style}", words.join(gap)),
        2 => format!("# it's try {style}: \"again\n{}", words.join(gap)),
        _ => format!(" {}\n\n", words.join(gap)),
    }
}

proptest! {
    /// A cycle of any period is found, whatever its comments, white space and quotes, and whatever stood before it.
    #[test]
    fn cycles_are_found_through_noise(
        period in 1_usize..=CYCLE,
        first in 0_usize..8,
        before in 0_usize..5,
        noise in prop::collection::vec((any::<u32>(), any::<u32>()), 60),
    ) {
        let mut r = Repeats::default();
        for n in 0..before {
            prop_assert_eq!(round(&mut r, &format!("head -n {n} x"), &format!("line {n}")), Verdict::GoOn);
        }
        let mut told = None;
        let mut asked = None;
        for (n, (comment, style)) in noise.into_iter().enumerate() {
            let (command, said, outcome) = step(first + n % period);
            let call = call("terminal", json!({"command": noisy(&command, comment, style)}));
            match one(&mut r, &call, outcome, said) {
                Verdict::GoOn => {}
                Verdict::Tell => told = told.or(Some(n + 1)),
                Verdict::Ask(laps) => {
                    prop_assert_eq!(laps, 6);
                    asked = Some(n + 1);
                    break;
                }
            }
        }
        prop_assert_eq!((told, asked), (Some(3 * period), Some(6 * period)));
    }
}

/// Trying the same under another name, with another number or under an unknown name is no progress.
#[test]
fn the_same_failure_is_a_repetition_whatever_the_names_and_numbers() {
    let six = (Some(3), Some(6));
    let failure = |command: &dyn Fn(usize) -> String, said: &dyn Fn(usize) -> String| {
        fired(|r, n| failing(r, &command(n), &said(n)))
    };
    let none = |_| "ModuleNotFoundError: No module named 'foo'\n[exit 1]".to_owned();
    assert_eq!(failure(&|n| format!("python3 -c 'import foo' # try {n}"), &none), six);
    assert_eq!(failure(&|n| format!("python3 try_{n}.py"), &none), six);
    assert_eq!(failure(&|n| format!("python3 /tmp/x{n}/a.py --seed {n}"), &none), six);
    assert_eq!(failure(&|n| format!("python3 \"{n}.py\""), &|n| format!("{n}.py:{n}: bad syntax here")), six);
    let missing = |n| format!("cat: a{n}.txt: No such file or directory\n[exit 1]");
    assert_eq!(failure(&|n| format!("cat a{n}.txt"), &missing), six);
    let command = |n| format!("bash: line 1: frob{n}: command not found\n[exit 127]");
    assert_eq!(failure(&|n| format!("frob{n} --x {n}"), &command), six);
    let file = |n: usize| call("read_file", json!({"path": format!("src/m{n}.rs"), "offset": n}));
    let gone = |n: usize| format!("src/m{n}.rs does not exist");
    assert_eq!(fired(|r, n| one(r, &file(n), ToolOutcome::Error, &gone(n))), six);
    let odd = |n: usize| call(&format!("unknown_{n}"), json!({"x": n}));
    assert_eq!(fired(|r, n| one(r, &odd(n), ToolOutcome::Error, &format!("no tool unknown_{n}"))), six);
    let cut =
        |n: usize| ToolCall { malformed: Some(format!("{{\"a{n}\": ")), ..call("write_file", json!({})) };
    let said = "Not run: the arguments of 'write_file' could not be read. They began: {";
    assert_eq!(fired(|r, n| one(r, &cut(n), ToolOutcome::Error, said)), six);
    let same = |n| {
        format!(
            "12:{n:02}:07 seed {n}: a.py line {n}, at 0x{n:04x}: loss 3.2 after {n}.5 s is above the limit"
        )
    };
    assert_eq!(failure(&|n| format!("fit --seed {n}"), &same), six);
    let gone = |n| format!("curl: (7) Failed to connect to host{n} port 80: Connection refused");
    assert_eq!(failure(&|n| format!("curl http://host{n}:80/"), &gone), six);
    // In a cycle, too.
    let (told, asked) = fired(|r, n| match n % 4 {
        0 => failing(r, &format!("python3 try{n}.py"), &format!("try{n}.py: permission was denied")),
        1 => one(r, &odd(n), ToolOutcome::Error, "There is no such tool."),
        2 => round(r, &format!("git status # {n}"), "clean"),
        _ => round(r, "ls", "a b"),
    });
    assert_eq!((told, asked), (Some(12), Some(24)));
}

/// The calls of a reply may come in another order.
#[test]
fn the_order_of_calls_side_by_side_is_no_difference() {
    let seen = fired(|r, n| {
        for command in if n % 2 == 0 { ["a", "b"] } else { ["b", "a"] } {
            let result = CallResult::text(ToolOutcome::Ok, format!("of {command}"));
            r.call(&call("terminal", json!({"command": command})), &result, true);
        }
        end_of_round(r)
    });
    assert_eq!(seen, (Some(3), Some(6)));
}

/// A hint of the program behind a result does not hide a repetition.
#[test]
fn what_the_program_adds_is_no_difference() {
    let seen = fired(|r, n| {
        let mut result = CallResult::text(ToolOutcome::Ok, "as ever");
        if n % 2 == 0 {
            result.put_before(format!("a learning: {n}"));
        }
        r.call(&call("terminal", json!({"command": "make"})), &result, true);
        end_of_round(r)
    });
    assert_eq!(seen, (Some(3), Some(6)));
}

/// Work is never taken for a repetition: something new succeeds, or fails in another way, in each lap.
#[test]
fn progress_is_no_repetition() {
    let never = (None, None);
    let edit = |r: &mut Repeats, n: usize| {
        let change = json!({"path": "src/lib.rs", "old": format!("let a = {n};"), "new": "let a = 0;"});
        one(r, &call("edit_file", change), ToolOutcome::Ok, "edited src/lib.rs")
    };
    let fails = "test parser::reads ... FAILED\n1 test failed of 12\n[exit 101]";
    // Tests and a look between edits.
    assert_eq!(fired(|r, n| if n % 2 == 0 { edit(r, n) } else { failing(r, "cargo test", fails) }), never);
    assert_eq!(
        fired(|r, n| if n % 2 == 0 { edit(r, n) } else { round(r, "git status", " M src/lib.rs") }),
        never
    );
    let three = |r: &mut Repeats, n: usize| match n % 3 {
        0 => edit(r, n),
        1 => failing(r, "cargo test", fails),
        _ => round(r, "git diff --stat", " src/lib.rs | 2 +-"),
    };
    assert_eq!(fired(three), never);
    // Paging, searching file after file, writing part after part.
    let page = |n: usize| call("read_file", json!({"path": "log.txt", "offset": n * 100}));
    assert_eq!(fired(|r, n| one(r, &page(n), ToolOutcome::Ok, &format!("line {}", n * 100))), never);
    assert_eq!(fired(|r, n| failing(r, &format!("grep -n foo src/m{n}.rs"), "[exit 1]")), never);
    assert_eq!(fired(|r, n| failing(r, &format!("test -f part{n}.txt"), "[exit 1]")), never);
    assert_eq!(fired(|r, n| round(r, &format!("touch part{n}"), "(no output)")), never);
    assert_eq!(fired(|r, n| round(r, &format!("cat >> x <<E\n# part {n}\nE"), "(no output)")), never);
    let write = |n: usize| call("write_file", json!({"path": "x.md", "content": format!("# Part {n}\n")}));
    assert_eq!(fired(|r, n| one(r, &write(n), ToolOutcome::Ok, "wrote x.md")), never);
    // Waiting for something that moves.
    assert_eq!(fired(|r, n| round(r, "cat progress", &format!("{n} of 5000 done"))), never);
    // Another failure each time.
    let error = |n: usize| format!("error[E{n:04}]: this is wrong\n --> src/lib.rs:{n}:5\n[exit 101]");
    assert_eq!(fired(|r, n| failing(r, "cargo check", &error(n))), never);
    // Servers that fail in different ways, and an experiment whose result changes.
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"];
    let named = |n: usize| format!("curl -fsS https://{}.example/{}.tar.gz", words[n % 9], words[n / 9 % 9]);
    let said = |n: usize| format!("curl: (22) The requested URL returned error: {}", [404, 403, 500][n % 3]);
    assert_eq!(fired(|r, n| if n < 80 { failing(r, &named(n), &said(n)) } else { Verdict::GoOn }), never);
    let numbered = |n: usize| format!("curl -fsS https://host{n}/x");
    let said = |n: usize| format!("curl: (22) The requested URL returned error: {}", 400 + n);
    assert_eq!(fired(|r, n| failing(r, &numbered(n), &said(n))), never);
    let loss = |n: usize| format!("loss {}.{} is above the limit\n[exit 1]", 90 - n / 10, 9 - n % 10);
    assert_eq!(fired(|r, n| failing(r, &format!("fit --lr 0.{n}"), &loss(n))), never);
    let test = |n: usize| format!("test reads_the_{n}_case ... FAILED and more\n[exit 101]");
    assert_eq!(fired(|r, n| failing(r, "cargo test", &test(n))), never);
    let tried = |n: usize| format!("{}-{}", words[n % 9], words[n / 9 % 9]);
    let absent = |n: usize| format!("bash: line 1: {}: command not found\n[exit 127]", tried(n));
    assert_eq!(fired(|r, n| if n < 80 { failing(r, &tried(n), &absent(n)) } else { Verdict::GoOn }), never);
}

#[test]
fn a_note_that_could_not_be_given_is_given_a_round_later() {
    let mut r = Repeats::default();
    let make = call("terminal", json!({"command": "make"}));
    let mut next = || {
        r.call(&make, &CallResult::text(ToolOutcome::Ok, "no"), true);
        r.round(6)
    };
    let seen: Vec<Verdict> = (0..4).map(|_| next()).collect();
    assert_eq!(seen[2..], [Verdict::Tell, Verdict::Tell], "a message was on its way");
    r.told();
    assert_eq!(round(&mut r, "make", "no"), Verdict::GoOn);
}

#[test]
fn without_a_limit_no_one_is_asked() {
    let mut r = Repeats::default();
    assert_eq!((0..20).map(|_| r.round(0)).filter(|v| matches!(v, Verdict::Ask(_))).count(), 0);
}
