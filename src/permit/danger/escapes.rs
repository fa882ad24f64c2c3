//! Programs whose own language has a way out to the shell: a calculator, an editor, a database. Only these ways are
//! looked for; all else that they do is their work.

use tiller_shell::{Part, Word};

/// Why what `part` is given runs another program.
pub(super) fn escapes(part: &Part) -> Option<String> {
    let base = part.base();
    let args = part.args();
    let mut texts = args.iter().chain(&part.stdin).map(|w| w.text.as_str());
    let mut any = |signs: &[&str]| texts.any(|t| signs.iter().any(|s| t.contains(s)));
    let out = match base.as_str() {
        // A line that begins with `!`.
        "dc" => args.iter().chain(&part.stdin).any(|w| w.text.contains('!') && !comparison(&w.text)),
        "ed" | "red" | "ex" => part.stdin.as_ref().is_some_and(|w| {
            w.text.lines().any(|l| {
                let l = l.trim_start_matches(|c: char| c.is_ascii_digit() || ",$.% ".contains(c));
                l.starts_with('!')
                    || ["r !", "r!", "w !", "w!!", "e !", "e!"].iter().any(|s| l.starts_with(s))
            })
        }),
        "m4" => any(&["syscmd"]),
        "mlr" => any(&["system", "exec(", "| \"", "|\"", "tee -p", "prepipe"]),
        "gnuplot" => any(&["system", "!", "\"<", "'<", "popen"]),
        "maxima" => any(&["system", ":lisp"]),
        "lldb" | "gdb" | "cgdb" => {
            any(&["shell", "script", "python", "!", "target create", "process launch", "run"])
        }
        "sqlite3" | "duckdb" => any(&[
            "load_extension",
            ".load",
            "'|",
            "\"|",
            " |",
            "edit(",
            ".shell",
            ".system",
            "LOAD ",
            "load ",
        ]),
        "swift" => given(args, &["-e"]),
        "crystal" => args.first().is_some_and(|w| w.text == "eval"),
        "nim" => args.iter().any(|w| w.text.starts_with("--eval")),
        _ => false,
    };
    out.then(|| format!("{base} runs another program, or code"))
}

/// `!=r`, `!<r`, `!>r`: comparisons of dc.
fn comparison(text: &str) -> bool {
    text.match_indices('!').all(|(at, _)| text[at + 1..].starts_with(['=', '<', '>']))
}

fn given(args: &[Word], options: &[&str]) -> bool {
    args.iter().any(|w| options.contains(&w.text.as_str()))
}
