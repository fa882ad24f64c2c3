use super::*;

fn of(output: &str) -> Cause {
    let lines: Vec<&str> = output.lines().filter(|l| !l.trim().is_empty()).collect();
    cause(&lines).unwrap_or_else(|| panic!("no cause in\n{output}"))
}

/// Outputs of the programs themselves, with what a reader looks for in them.
#[test]
fn the_cause_is_found_in_the_outputs_of_test_runners_and_compilers() {
    for (name, output, text, origin) in [
        (
            "unittest",
            include_str!("data/unittest.txt"),
            "AssertionError: 900.0 != 30.0",
            Some("test_client.py:7"),
        ),
        ("pytest", include_str!("data/pytest.txt"), "assert 900.0 == 30.0", Some("test_plain.py:8")),
        (
            "cargo test",
            include_str!("data/cargo_test.txt"),
            "assertion `left == right` failed  left: 900  right: 30",
            Some("src/lib.rs:11"),
        ),
        ("rustc", include_str!("data/rustc.txt"), "error[E0308]: mismatched types", Some("src/lib.rs:2")),
        ("go test", include_str!("data/go_test.txt"), "Wait(0) = 900, want 30", Some("client_test.go:9")),
        (
            "go panic",
            include_str!("data/go_panic.txt"),
            "panic: runtime error: index out of range [5] with length 3 [recovered]",
            Some("client.go:6"),
        ),
        ("jest", include_str!("data/jest.txt"), "Expected: 30  Received: 900", Some("sum.test.js:4")),
        (
            "node --test",
            include_str!("data/node_test.txt"),
            "Expected values to be strictly equal:  900 !== 30",
            Some("a.test.mjs:3"),
        ),
        (
            "node",
            include_str!("data/node.txt"),
            "TypeError: Cannot read properties of undefined (reading 'retryAfter')",
            Some("e.js:1"),
        ),
        ("npm", include_str!("data/npm.txt"), "npm error Missing script: \"tst\"", None),
        ("gcc", include_str!("data/gcc.txt"), "error: expected ‘,’ or ‘;’ before ‘return’", Some("m.c:4")),
        ("ld", include_str!("data/ld.txt"), "l.c:(.text+0x5): undefined reference to `f'", None),
        ("make", include_str!("data/make.txt"), "error: expected ‘,’ or ‘;’ before ‘return’", Some("m.c:4")),
        (
            "cargo test with an error that a test returned",
            include_str!("data/cargo_message.txt"),
            "Error: ParseIntError { kind: InvalidDigit }",
            None,
        ),
        (
            "cargo test with a message",
            include_str!("data/cargo_message.txt").split_once("---- tests::caps").unwrap().1,
            "waits 900 s, and at most 30 are allowed",
            Some("src/lib.rs:16"),
        ),
        (
            "go test with parts",
            include_str!("data/go_subtest.txt"),
            "Wait(1) = 900, want 30",
            Some("client_test.go:7"),
        ),
        (
            "pytest that cannot import",
            include_str!("data/pytest_collect.txt"),
            "ModuleNotFoundError: No module named 'httpxx'",
            Some("client.py:1"),
        ),
        (
            "tsc",
            include_str!("data/tsc.txt"),
            "error TS2322: Type 'string | undefined' is not assignable to type 'number'.",
            Some("client.ts:3"),
        ),
        (
            "tsc for people",
            "client.ts:3:9 - error TS2322: Type 'string' is not assignable to type 'number'.\n\n3   const n\n",
            "error TS2322: Type 'string' is not assignable to type 'number'.",
            Some("client.ts:3"),
        ),
        (
            "make without a rule",
            include_str!("data/make_rule.txt"),
            "make: *** No rule to make target 'src/main.o', needed by 'build'.  Stop.",
            None,
        ),
        ("shell", include_str!("data/shell.txt"), "bash: line 1: cargoo: command not found", None),
        (
            "cat",
            "cat: nope.txt: No such file or directory\n",
            "cat: nope.txt: No such file or directory",
            None,
        ),
        (
            "git",
            "fatal: not a git repository (or any of the parent directories): .git\n",
            "fatal: not a git repository (or any of the parent directories): .git",
            None,
        ),
    ] {
        let found = of(output);
        assert_eq!((found.text.as_str(), found.origin.as_deref()), (text, origin), "{name}");
    }
}

#[test]
fn an_output_without_a_known_form_has_no_cause() {
    for output in ["", "done\n", "12 passed\n", "a b c\nline two\n"] {
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(cause(&lines), None, "{output}");
    }
}

#[test]
fn a_summary_counts_only_where_nothing_says_more() {
    assert_eq!(of("make: *** [Makefile:2: all] Error 1\n").text, "make: *** [Makefile:2: all] Error 1");
    assert_eq!(of("error: test failed, to rerun pass `--lib`\nx.c:3:1: error: no\n").text, "error: no");
}

#[test]
fn data_of_any_size_and_kind_is_read() {
    let long = "error: x".repeat(10_000);
    let odd = [
        long.as_str(),
        ":",
        "::",
        "a.b:1",
        "a.b:1:",
        "a.b:1:2",
        "/:9:9: é",
        "thread 'x' panicked at ",
        "E  ",
        "é.é:1:é",
        "a.b(1,2): ",
        "(1,2): x",
        "é.é(1,é): x",
        "a.b:1:2 - ",
    ];
    let _ = cause(&odd);
    for one in odd {
        let _ = cause(&[one]);
    }
}
