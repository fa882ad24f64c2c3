//! The files that a simple command writes, by its words.

mod code;
mod readers;
mod trees;

use tiller_shell::{Part, Role, Word};

use code::{code_writes, sed_writes};
pub(crate) use code::{named_in_code, names_in_code, quoted};
use readers::READERS;
pub(crate) use trees::trees;

/// The words that name what this command writes, moves, links or deletes; of a program that is not known, all that it may.
pub(crate) fn written(part: &Part) -> Vec<Word> {
    writes(part, true)
}

/// As [`written`], without what a program that is not known may write.
pub(crate) fn surely_written(part: &Part) -> Vec<Word> {
    writes(part, false)
}

fn writes(part: &Part, unknown: bool) -> Vec<Word> {
    if part.argv.is_empty() {
        return vec![];
    }
    let base = part.base();
    let args = part.args();
    let operands: Vec<&Word> = args.iter().filter(|w| !w.text.starts_with('-') || w.text == "-").collect();
    let all = || operands.iter().map(|w| (*w).clone()).collect::<Vec<_>>();
    let last = || operands.last().map(|w| (*w).clone()).into_iter().collect::<Vec<_>>();
    let mut out = match base.as_str() {
        "tee" | "touch" | "mkdir" | "rm" | "rmdir" | "unlink" | "shred" | "truncate" | "mv" | "ln"
        | "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "sponge" | "mkfifo" | "mknod" | "split"
        | "csplit" | "patch" | "ed" | "ex" | "vi" | "vim" | "nvim" | "nano" | "emacs" | "micro" | "hx"
        | "code" | "crudini" | "gio" | "trash" | "trash-put" | "rename" | "mmv" | "dos2unix" | "unix2dos"
        | "gunzip" | "gzip" | "xz" | "bzip2" | "zstd" | "setfattr" | "attr" | "fallocate" | "sqlite3"
        | "visudo" | "sudoedit" => all(),
        // A link is a way to what it names.
        "cp" if args.iter().any(|w| links(&w.text)) => all(),
        "cp" | "install" | "rsync" | "scp" | "gcp" | "ditto" => last(),
        "sort" => valued(args, 'o', "output"),
        "uniq" | "xxd" => operands.get(1).map(|w| (*w).clone()).into_iter().collect(),
        "dd" => args.iter().filter_map(|w| tail(w, "of=")).collect(),
        "sed" | "gsed" | "perl" | "ruby" => {
            let in_place = args.iter().any(|w| {
                w.text.starts_with("--in-place")
                    || (w.text.starts_with('-')
                        && !w.text.starts_with("--")
                        && w.text.contains('i')
                        && base != "ruby")
                    || (base == "ruby" && w.text.starts_with("-i"))
            });
            if in_place { all() } else { sed_writes(args) }
        }
        "gawk" | "awk" if args.iter().any(|w| w.text.contains("inplace")) => all(),
        "awk" | "gawk" | "mawk" | "nawk" => code_writes(args),
        "openssl" => args
            .windows(2)
            .filter(|w| matches!(w[0].text.as_str(), "-out" | "-keyout" | "-sigfile" | "-writerand"))
            .map(|w| w[1].clone())
            .collect(),
        "curl" => {
            let mut out = valued(args, 'o', "output");
            out.extend(valued(args, 'D', "dump-header"));
            out.extend(valued(args, 'c', "cookie-jar"));
            out.extend(valued(args, '\0', "output-dir"));
            out.extend(valued(args, '\0', "trace"));
            out
        }
        "wget" => {
            let mut out = valued(args, 'O', "output-document");
            out.extend(valued(args, 'P', "directory-prefix"));
            out.extend(valued(args, 'o', "output-file"));
            out
        }
        "tar" | "gtar" | "bsdtar" => {
            let mut out = valued(args, 'C', "directory");
            out.extend(valued(args, 'f', "file"));
            out.extend(old_style(args));
            // What is taken out of an archive may be named.
            if args.iter().any(|w| w.text.starts_with("--ext") || w.text.starts_with("--get"))
                || args.first().is_some_and(|w| !w.text.starts_with("--") && w.text.contains('x'))
            {
                out.extend(all());
            }
            out
        }
        "7z" | "7za" | "7zr" => valued(args, 'o', ""),
        "unzip" | "unrar" => valued(args, 'd', ""),
        "tree" | "gcc" | "cc" | "clang" | "ld" | "rustc" | "go" | "base64" | "pandoc" | "ffmpeg" | "gpg"
        | "tsc" | "javac" => valued(args, 'o', "output"),
        "git" => git_writes(args),
        "find" | "gfind" => {
            let mut out = Vec::new();
            for (i, w) in args.iter().enumerate() {
                if matches!(w.text.as_str(), "-fprint" | "-fprintf" | "-fprint0" | "-fls") {
                    out.extend(args.get(i + 1).cloned());
                }
                if w.text == "-delete"
                    || (w.text.starts_with("-exec") || w.text.starts_with("-ok"))
                        && writes_names(part, &args[i + 1..])
                {
                    out.extend(args.iter().take_while(|w| !w.text.starts_with(['-', '(', '!'])).cloned());
                }
            }
            out
        }
        "time" => valued(args, 'o', "output"),
        "script" => all(),
        b if READERS.contains(&b) => vec![],
        // Of a program that is not known every operand may be written.
        _ if unknown && part.role == Role::Command => all(),
        _ => vec![],
    };
    if matches!(base.as_str(), "cp" | "mv" | "install" | "ln") {
        out.extend(valued(args, 't', "target-directory"));
        // Into a folder, under the name of the source. One file to a name with an ending is a copy.
        let folder = |w: &Word| {
            let last = w.text.rsplit('/').next().unwrap_or_default();
            operands.len() != 2 || !last.trim_start_matches('.').contains('.')
        };
        if let Some(folder) = out.last().filter(|w| folder(w)).cloned() {
            for source in operands.iter().take(operands.len().saturating_sub(1)) {
                if let Some(name) = source.text.rsplit('/').find(|n| !n.is_empty())
                    && !name.contains("..")
                {
                    out.push(Word {
                        text: format!("{}/{name}", folder.text),
                        glob: folder.glob || source.glob,
                        ..folder.clone()
                    });
                }
            }
        }
    }
    out
}

/// Whether what `find -exec` runs writes the names that it is given.
fn writes_names(find: &Part, after: &[Word]) -> bool {
    let argv: Vec<Word> =
        after.iter().take_while(|w| !matches!(w.text.as_str(), ";" | "+")).cloned().collect();
    let inner = Part { argv, ..find.clone() };
    !matches!(inner.base().as_str(), "find" | "gfind")
        && written(&inner).iter().any(|w| w.text.contains("{}"))
}

/// Values of letters in the first word of tar, which needs no dash: `tar xfC a.tar folder`.
fn old_style(args: &[Word]) -> Vec<Word> {
    let Some((first, rest)) = args.split_first().filter(|(w, _)| !w.text.starts_with('-')) else {
        return vec![];
    };
    let valued = first.text.chars().filter(|c| "fCbTXKNVgFIL".contains(*c));
    valued.zip(rest).filter(|(c, _)| matches!(c, 'f' | 'C')).map(|(_, w)| w.clone()).collect()
}

/// `-l`, `-s`, `--link` and `--symbolic-link` of cp.
fn links(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => long.len() > 1 && ("link".starts_with(long) || "symbolic-link".starts_with(long)),
        None => option.starts_with('-') && option.contains(['l', 's']),
    }
}

fn tail(word: &Word, start: &str) -> Option<Word> {
    word.text.strip_prefix(start).map(|t| Word { text: t.to_owned(), ..word.clone() })
}

/// Values of an option: `-o x`, `-ox`, `--output x`, `--output=x` (also shortened).
fn valued(args: &[Word], short: char, long: &str) -> Vec<Word> {
    let mut out = Vec::new();
    for (i, w) in args.iter().enumerate() {
        let t = w.text.as_str();
        if let Some(name) = t.strip_prefix("--") {
            if long.is_empty() {
                continue;
            }
            let (name, value) = name.split_once('=').map_or((name, None), |(n, v)| (n, Some(v)));
            if name.len() >= 3 && long.starts_with(name) {
                match value {
                    Some(v) => out.push(Word { text: v.to_owned(), ..w.clone() }),
                    None => out.extend(args.get(i + 1).cloned()),
                }
            }
        } else if t.starts_with('-')
            && let Some(at) = t.find(short)
        {
            let rest = &t[at + short.len_utf8()..];
            if rest.is_empty() {
                out.extend(args.get(i + 1).cloned());
            } else {
                out.push(Word { text: rest.to_owned(), ..w.clone() });
            }
        }
    }
    out
}

/// Operands of git's own writing commands, and its output options.
fn git_writes(args: &[Word]) -> Vec<Word> {
    let mut out = valued(args, '\0', "output");
    let sub = args.iter().position(|w| !w.text.starts_with('-'));
    let Some(sub) = sub else { return out };
    if matches!(
        args[sub].text.as_str(),
        "checkout"
            | "restore"
            | "mv"
            | "rm"
            | "clone"
            | "init"
            | "worktree"
            | "archive"
            | "bundle"
            | "format-patch"
    ) {
        out.extend(args[sub + 1..].iter().filter(|w| !w.text.starts_with('-')).cloned());
    }
    out.extend(valued(&args[sub..], 'o', "output"));
    out
}

/// Programs that show no more of what they are given than its names or its number.
fn counts_only(base: &str) -> bool {
    matches!(
        base,
        "wc" | "head"
            | "tail"
            | "sort"
            | "uniq"
            | "grep"
            | "cat"
            | "less"
            | "more"
            | "sed"
            | "awk"
            | "tee"
            | "cut"
            | "tr"
            | "nl"
            | "rev"
            | "tac"
            | "column"
            | "basename"
            | "dirname"
            | "echo"
            | "printf"
    )
}
