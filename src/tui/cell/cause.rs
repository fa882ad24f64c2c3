//! The line of a failed command's output that says why it failed, and where that came from.
//!
//! Test runners and compilers print the cause somewhere in the middle and a summary at the end. Lines are ranked by how
//! specific they are; of the best rank the first one counts. The forms that are known: the tests and compilers of Python,
//! Rust, Go, JavaScript and C, and whatever says `error:`.

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// In one line, not cleaned for a terminal.
    pub text: String,
    /// `file:line`, where the output names it.
    pub origin: Option<String>,
    /// Lines of the output that it stands for.
    pub lines: usize,
}

/// Lines around the cause in which its origin is looked for.
const NEAR: usize = 30;
/// Bytes of a line that is looked at; longer ones are data.
const LONG: usize = 2_000;

/// How specific a line is. The smaller, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// An exception, a failed assertion, an error of a compiler.
    Exact,
    /// It says `error:` or the like.
    Error,
    /// The name of a test that failed, what was expected.
    Failed,
    /// A summary: it says that something failed, not what.
    Summary,
}

/// The cause in the lines of an output, if one of the known forms is there.
pub(super) fn cause(lines: &[&str]) -> Option<Cause> {
    let ranked = lines.iter().enumerate().filter_map(|(n, line)| Some((rank(lines, n, line)?, n)));
    let (_, n) = ranked.min()?;
    Some(read(lines, n))
}

fn rank(lines: &[&str], n: usize, line: &str) -> Option<Rank> {
    let text = line.trim();
    if text.is_empty() || text.len() > LONG {
        return None;
    }
    let small = text.to_lowercase();
    if summary(&small) {
        return Some(Rank::Summary);
    }
    let exact = exception(line)
        || text.starts_with("E  ")
        || text.contains("' panicked at ")
        || text.contains(") panicked at ")
        || text.starts_with("panic: ")
        || small.starts_with("error[")
        || located(text).is_some_and(|(_, rest)| compiler(rest, lines, n))
        || text.contains("undefined reference to ")
        || text.starts_with("expect(");
    if exact {
        return Some(Rank::Exact);
    }
    let says = |words: &[&str]| words.iter().any(|w| small.contains(w));
    let error = [
        "error:",
        "fatal:",
        "command not found",
        "no such file or directory",
        "permission denied",
        "cannot find",
        "not recognized",
        "npm error ",
        "npm err! ",
        "undefined:",
    ];
    if says(&error) {
        return Some(Rank::Error);
    }
    let word = |w: &str| text.split(|c: char| !c.is_alphanumeric()).any(|t| t == w);
    if word("FAIL")
        || word("FAILED")
        || small.starts_with("not ok")
        || says(&["assert", "expected", "panicked"])
    {
        return Some(Rank::Failed);
    }
    None
}

/// Lines that say only that something failed.
fn summary(small: &str) -> bool {
    let begins = [
        "error: test failed",
        "error: could not compile",
        "error: aborting due to",
        "error: process didn't exit",
        "make: ***",
        "make[",
        "collect2: error",
        "failed (",
        "test result:",
        "error: script ",
        "npm error code",
        "npm err! code",
        "warning: ",
        "note: ",
        "0 errors",
        "tests: ",
        "test suites: ",
        "= note",
        "ninja: ",
    ];
    begins.iter().any(|b| small.starts_with(b)) || small == "fail" || small.starts_with("fail\t")
}

/// `AssertionError: 900.0 != 30.0` at the line's start, or a bare `KeyError`-like name behind a traceback.
fn exception(line: &str) -> bool {
    let line = line.strip_prefix("Uncaught ").unwrap_or(line);
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    let kind = last.ends_with("Error") || last.ends_with("Exception");
    let rest = &line[name.len()..];
    kind && last.starts_with(|c: char| c.is_ascii_uppercase())
        && (rest.is_empty() || rest.starts_with(": ") || rest.starts_with(" ["))
}

/// True when an error follows a place in a compiler's or test's line.
fn compiler(rest: &str, lines: &[&str], n: usize) -> bool {
    let rest = rest.trim_start();
    let says = ["error:", "fatal error:", "error TS", "error ["].iter().any(|e| rest.starts_with(e));
    // Go: `    x_test.go:9: got 3, want 4` below `--- FAIL: TestX`, `./x.go:5:2: undefined: y` below `# package`.
    let go = lines[..n].iter().rev().take(NEAR).find(|l| !l.trim().is_empty() && located(l.trim()).is_none());
    let below = go.is_some_and(|l| l.trim_start().starts_with("--- FAIL") || l.starts_with("# "));
    says || (below && located(lines[n].trim()).is_some_and(|(place, _)| place.contains(".go:")))
}

/// Takes `path:line: `, `path:line:column: ` or `path(line,column): ` off: the place as `path:line`, and the rest.
fn located(text: &str) -> Option<(String, &str)> {
    if let Some((place, rest)) = text.split_once("): ")
        && let Some((path, at)) = place.rsplit_once('(')
        && let Some((line, column)) = at.split_once(',')
    {
        let number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
        if number(line) && number(column) && path.contains('.') && !path.contains(char::is_whitespace) {
            return Some((format!("{}:{line}", short(path)), rest));
        }
    }
    let colon = text.find(':')?;
    let (path, rest) = (&text[..colon], &text[colon + 1..]);
    if path.is_empty() || path.contains(char::is_whitespace) || !path.contains(['.', '/']) {
        return None;
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let after = rest.get(digits..).filter(|_| digits > 0)?.strip_prefix(':')?;
    let column = after.bytes().take_while(u8::is_ascii_digit).count();
    // `client.ts:3:9 - error TS2322: ...` is the form of TypeScript for people.
    let after = match after[column..].strip_prefix(':').or_else(|| after[column..].strip_prefix(" - ")) {
        Some(after) if column > 0 => after,
        _ => after,
    };
    Some((format!("{}:{}", short(path), &rest[..digits]), after))
}

/// A path as it is said: whole when it is relative, else its last name.
fn short(path: &str) -> &str {
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.starts_with('/') || path.contains("://") { path.rsplit('/').next().unwrap_or(path) } else { path }
}

/// The cause at line `n`, in one line, with its origin.
fn read(lines: &[&str], n: usize) -> Cause {
    let text = lines[n].trim();
    let next = |k: usize| lines.get(n + k).map(|l| l.trim()).filter(|l| !l.is_empty());
    if let Some(rest) = text.split_once(" panicked at ").map(|p| p.1) {
        // `panicked at src/lib.rs:11:9:` and the message below it, with both sides of an assertion.
        if let Some((origin, _)) = located(rest) {
            let sides = [next(2), next(3)].into_iter().flatten();
            let sides: Vec<&str> =
                sides.filter(|l| l.starts_with("left:") || l.starts_with("right:")).collect();
            let said = next(1).unwrap_or("panicked");
            let text = [said].iter().chain(&sides).copied().collect::<Vec<_>>().join("  ");
            return Cause { text, origin: Some(origin), lines: 2 + sides.len() };
        }
    }
    if text.starts_with("expect(") {
        let sides: Vec<&str> = lines[n + 1..]
            .iter()
            .take(NEAR)
            .map(|l| l.trim())
            .filter(|l| l.starts_with("Expected") || l.starts_with("Received"))
            .take(2)
            .collect();
        let said = if sides.is_empty() { text.to_owned() } else { sides.join("  ") };
        return Cause { text: said, origin: nearby(lines, n), lines: 1 + sides.len() };
    }
    if text.ends_with("error: |-") {
        // The report of Node's test runner: the words stand below, up to the next key.
        let key = |l: &str| l.split_once(": ").is_some_and(|(k, _)| k.chars().all(char::is_alphanumeric));
        let said = lines[n + 1..].iter().map(|l| l.trim()).take_while(|l| !key(l)).filter(|l| !l.is_empty());
        let said: Vec<&str> = said.take(4).collect();
        return Cause { lines: 1 + said.len(), text: said.join("  "), origin: nearby(lines, n) };
    }
    if let Some(rest) = text.strip_prefix("E  ") {
        return Cause { text: rest.trim().to_owned(), origin: nearby(lines, n), lines: 1 };
    }
    if let Some((origin, rest)) = located(text) {
        let rest = rest.trim();
        // Of `/usr/bin/ld: main.o: ...` and the like the whole line is kept.
        return Cause { text: rest.to_owned(), origin: Some(origin), lines: 1 };
    }
    Cause { text: text.to_owned(), origin: nearby(lines, n), lines: 1 }
}

/// The place that lines below or above the cause name.
fn nearby(lines: &[&str], n: usize) -> Option<String> {
    // What follows `---- name stdout ----` is about another test.
    let below = lines[n + 1..].iter().take(NEAR).take_while(|l| !l.starts_with("---- ")).find_map(|l| {
        let text = l.trim();
        if let Some(place) = text.strip_prefix("--> ") {
            return located(&format!("{place}:")).map(|p| p.0);
        }
        if let Some(rest) = text.strip_prefix("at ") {
            let place = rest.rsplit_once('(').map_or(rest, |p| p.1).trim_end_matches(')');
            let own =
                !["node:", "/rustc/"].iter().any(|f| place.starts_with(f)) && !place.contains("node_modules");
            return located(&format!("{place}:")).map(|p| p.0).filter(|_| own);
        }
        // Go: `/home/ann/client.go:6`, with or without an offset, below the frames of the runtime.
        if text.starts_with('/') && text.contains(".go:") {
            let place = text.split(" +0x").next().unwrap_or(text);
            let own = !["/src/testing/", "/src/runtime/"].iter().any(|f| place.contains(f));
            return located(&format!("{place}:")).map(|p| p.0).filter(|_| own);
        }
        // Node's test runner: `TestContext.<anonymous> (file:///home/ann/a.test.mjs:3:38)`.
        if let Some((_, place)) = text.strip_suffix(')').and_then(|t| t.rsplit_once("(file://")) {
            return located(&format!("{place}:")).map(|p| p.0);
        }
        // pytest: `test_plain.py:8: AssertionError`.
        located(text).filter(|(_, rest)| exception(rest.trim())).map(|p| p.0)
    });
    let python = || {
        lines[..n].iter().rev().take(NEAR).find_map(|l| {
            // pytest: `client.py:1: in <module>`, of files of the project.
            if let Some((place, rest)) = located(l.trim())
                && rest.starts_with(" in ")
                && !l.starts_with('/')
            {
                return Some(place);
            }
            let rest = l.trim().strip_prefix("File \"")?;
            let (path, rest) = rest.split_once("\", line ")?;
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            Some(format!("{}:{}", short(path), &rest[..digits]))
        })
    };
    // A traceback of Python stands above its exception, so what is below belongs to something else.
    python().or(below)
}

#[cfg(test)]
#[path = "cause_tests.rs"]
mod tests;
