//! The grammar of the shell: a command line, taken apart.

use tiller_shell::{Analysis, MAX_CHARS, MAX_PARTS, Role, analyse, analyse_with_input, invisibles};

use crate::{Outline, Target};

pub(super) const TARGET: Target = Target { name: "shell", words: &[super::words::SHELL, WORDS], seeds, run };

/// Pieces of command lines, for all targets that read some.
pub(super) const WORDS: &[&str] = &[
    ";",
    " |& ",
    " & ",
    "! ",
    "(",
    "{ ",
    "; }",
    "$'",
    "$\"",
    "\\\n",
    "#",
    " # ",
    "$((",
    "))",
    "((",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "; else ",
    "for f in *; do ",
    "for i in a b c; do ",
    "until ",
    "case $a in ",
    "a) ",
    ";; ",
    "esac",
    "select ",
    "function f ",
    "f() { ",
    "coproc ",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<-E\n",
    "<<< ",
    "<(",
    ">(",
    " > ",
    " >> ",
    " 2>&1",
    " &> ",
    " >| ",
    " < ",
    " <> ",
    " 3>&1 ",
    "A=1 ",
    "A=$B ",
    "${A:-",
    "${A//a/b}",
    "${!A}",
    "${#A}",
    "${A@P}",
    "$A",
    "\"$A\"",
    "\"$@\"",
    "$*",
    "$1",
    "$?",
    "$$",
    "{a,b}",
    "{1..9}",
    "?",
    "[a-z]",
    "**",
    "~root",
    "../",
    "/etc/passwd",
    "./x",
    "src/main.rs",
    "-rf",
    "-n",
    "-e",
    "-c",
    "=",
    "cat",
    "echo",
    "printf '%s\\n'",
    "grep -rn",
    "rg",
    "find . -name",
    "-exec",
    "\\;",
    "{} +",
    "xargs",
    "-I{}",
    "sort",
    "-o",
    "head",
    "tail -n 3",
    "wc -l",
    "sed -n",
    "sed -i",
    "s/a/b/e",
    "awk '{print $1}'",
    "jq .",
    "git",
    "status",
    "log",
    "diff",
    "show",
    "-c core.pager=x",
    "--output=x",
    "push",
    "commit -m",
    "rm",
    "rm -rf",
    "mv",
    "cp",
    "touch",
    "mkdir",
    "chmod",
    "tee",
    "dd of=x",
    "ln -s",
    "sh -c",
    "bash -c",
    "eval",
    "exec",
    "command",
    "builtin",
    "nice",
    "timeout 3",
    "sudo",
    "nohup",
    "source",
    ".",
    "trap",
    "alias",
    "export",
    "declare",
    "local",
    "read -r",
    "cd",
    "test",
    "false",
    ":",
    "python3 -c",
    "perl -e",
    "node -e",
    "curl",
    "ssh",
    "tar xf",
    "unzip",
    "cargo",
    "make",
    "npm",
    "HEAD",
    "main",
    "x",
    "f.txt",
    "'a b'",
    "\"a b\"",
    "LD_PRELOAD=",
    "PATH=",
    "IFS=",
    "GIT_DIR=",
    "\t",
    "é",
    "[[:alpha:]]",
    "@(a|b)",
    "+(a)",
];

/// The command lines of the permission corpus.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let corpus = include_str!("../../../src/permit/corpus.tsv");
    let rows = corpus.lines().filter(|l| !l.starts_with('#')).map(|l| l.split('\t').collect::<Vec<_>>());
    let commands = rows.filter(|r| r.get(2) == Some(&"terminal")).filter_map(|r| r.get(3).copied());
    let everyday = include_str!("../../../src/permit/read_only/everyday.txt").lines();
    let rows = include_str!("../../../src/permit/read_only/rows.txt").lines();
    let more = everyday.chain(rows).filter(|l| !l.starts_with('#') && !l.is_empty());
    commands.chain(more).map(|c| c.replace('⏎', "\n").replace('⇥', "\t").into_bytes()).collect()
}

fn run(data: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(data);
    let analysis = analyse(&text);
    assert_eq!(analysis, analyse(&text), "the same text is taken apart in the same way");
    let _ = analyse_with_input("sh", &text);
    check(&text, &analysis);
    let mut outline = Outline::default();
    outline.message(analysis.unclear.as_deref().unwrap_or_default());
    outline.message(analysis.loose.as_deref().unwrap_or_default());
    outline.add((analysis.multiplies, analysis.folders.len().min(3), analysis.loops.len().min(2)));
    outline.size(analysis.parts.len());
    for part in analysis.parts.iter().take(3) {
        outline.add((
            part.role as u8,
            part.base().len() < 8,
            part.redirects.len().min(2),
            part.stdin.is_some(),
            part.wrappers.len().min(2),
        ));
        outline.add(
            part.argv.iter().take(4).map(|w| (w.dynamic, w.splits, w.glob, w.tilde)).collect::<Vec<_>>(),
        );
    }
    outline.end()
}

fn check(text: &str, analysis: &Analysis) {
    assert_eq!(analysis.raw, text);
    if analysis.unclear.is_none() {
        assert!(invisibles(text).is_empty(), "invisible characters are never clear");
        assert!(
            text.chars().count() <= MAX_CHARS && analysis.parts.len() <= MAX_PARTS,
            "too long is never clear"
        );
    }
    for part in &analysis.parts {
        let _ = part.spellings();
        if let Some((from, to)) = part.piped_from {
            assert!(from <= to && to <= analysis.parts.len(), "a pipe comes from parts that there are");
        }
        for each in part.argv.iter().filter_map(|w| w.each) {
            assert!(
                each.0 <= each.1 && each.1 <= analysis.loops.len(),
                "a loop goes over words that there are"
            );
        }
    }
    if !analysis.is_plain() {
        return;
    }
    // The canonical text of a simple command is that command again: rules compare this text.
    for part in analysis.parts.iter().filter(|p| p.role == Role::Command) {
        if part.argv.is_empty()
            || !part.argv.iter().all(|w| w.plain() && w.each.is_none())
            || !part.env.is_empty()
        {
            continue;
        }
        let again = analyse(&part.text());
        let words = |p: &tiller_shell::Part| p.argv.iter().map(|w| w.text.clone()).collect::<Vec<_>>();
        let found = again.parts.iter().any(|p| words(p) == words(part));
        assert!(found || again.unclear.is_some(), "{:?} is read again as {again:?}", part.text());
    }
}
