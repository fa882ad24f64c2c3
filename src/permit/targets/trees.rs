//! Which folders a simple command reads with all that lies below.

use std::path::Path;

use crate::paths::Roots;
use tiller_shell::{Analysis, Part, Word};

/// A folder that a command reads.
pub(crate) struct Tree {
    pub(crate) folder: Word,
    /// Whether it reads all that [`Tree::takes`] says; else it may.
    pub(crate) certain: bool,
    /// Only what git tracks.
    pub(crate) tracked: bool,
    /// Names that begin with a dot are passed over.
    plain: bool,
    /// Links that lie there are passed over.
    no_links: bool,
    /// Only names that match.
    names: Option<String>,
}

impl Tree {
    fn all(folder: Word) -> Self {
        Self { folder, certain: true, tracked: false, plain: false, no_links: false, names: None }
    }

    fn perhaps(folder: Word) -> Self {
        Self { certain: false, ..Self::all(folder) }
    }

    /// Whether `path` below `folder` is read.
    pub(crate) fn takes(&self, folder: &Path, path: &Path, roots: &Roots) -> bool {
        if self.no_links && roots.real(path) != path {
            return false;
        }
        let below = path.strip_prefix(folder).unwrap_or(path);
        if self.plain && below.components().any(|c| c.as_os_str().to_string_lossy().starts_with('.')) {
            return false;
        }
        self.names.as_deref().is_none_or(|pattern| {
            let glob = globset::GlobBuilder::new(pattern).case_insensitive(true).build();
            glob.is_ok_and(|g| path.file_name().is_some_and(|n| g.compile_matcher().is_match(n)))
        })
    }
}

fn here() -> Word {
    Word::fixed(".")
}

/// The folders that `part` reads.
pub(crate) fn trees(part: &Part, analysis: &Analysis) -> Vec<Tree> {
    let base = part.base();
    let args = part.args();
    let operands = || args.iter().filter(|w| !w.text.starts_with('-') || w.text == "-").cloned();
    let short = |letters: &str| {
        args.iter().any(|w| {
            w.text.starts_with('-')
                && !w.text.starts_with("--")
                && w.text[1..].contains(|c| letters.contains(c))
        })
    };
    let long = |names: &[&str]| args.iter().any(|w| names.iter().any(|n| w.text.starts_with(n)));
    match base.as_str() {
        "grep" | "egrep" | "fgrep" | "zgrep" | "bzgrep" | "xzgrep" | "ugrep" | "ggrep" => {
            if !(short("rR")
                || long(&["--rec", "--deref", "--directories=r"])
                || args.windows(2).any(|w| w[0].text == "-d" && w[1].text.starts_with('r')))
            {
                return vec![];
            }
            let folders: Vec<Word> = operands().skip(1).collect();
            let folders = if folders.is_empty() { vec![here()] } else { folders };
            let no_links = !short("R") && !long(&["--deref"]);
            folders.into_iter().map(|f| Tree { no_links, ..Tree::all(f) }).collect()
        }
        "rg" | "ag" | "ack" | "ack-grep" | "rga" | "ug" | "pt" | "sift" | "ast-grep" | "sg" => {
            let hidden = short("u.aU")
                || long(&["--hid", "--unr", "--no-ig"])
                || !matches!(base.as_str(), "rg" | "ag");
            let mut folders: Vec<Word> = operands().collect();
            if folders.len() <= 1 {
                folders.push(here());
            }
            let no_links = !short("L") && !long(&["--fol"]);
            folders.into_iter().map(|f| Tree { plain: !hidden, no_links, ..Tree::all(f) }).collect()
        }
        "tar" | "gtar" | "bsdtar" | "zip" | "7z" | "7za" | "7zr" | "rar" | "cpio" | "pax" | "rsync"
        | "scp" | "cp" | "mv" | "ln" | "diff" | "colordiff" | "vimdiff" | "sdiff" | "rclone" | "rcp"
        | "ditto" | "install" | "docker" | "podman" | "nerdctl" | "buildah" | "http-server" | "serve"
        | "caddy" | "aws" | "gsutil" | "croc" | "wormhole" | "tokei" | "ctags" | "xxdiff" | "meld"
        | "mount" | "unison" | "borg" | "restic" => {
            let mut folders: Vec<Word> = operands().collect();
            for w in args {
                // `-C dir`, `-Cdir`, `-v dir:/x`, `--directory=dir`
                let value = w.text.split_once('=').map(|(_, v)| v);
                let joined = w.text.strip_prefix("-C").or_else(|| w.text.strip_prefix("-v"));
                for v in value.into_iter().chain(joined) {
                    folders.push(Word { text: v.to_owned(), ..w.clone() });
                }
                if let Some((from, _)) = w.text.trim_start_matches("-v").split_once(':') {
                    folders.push(Word { text: from.to_owned(), ..w.clone() });
                }
            }
            if matches!(base.as_str(), "http-server" | "serve" | "caddy") {
                folders.push(here());
            }
            folders.retain(|w| !w.text.is_empty() && !w.dynamic);
            let compose = operands().next().is_some_and(|w| w.text == "compose");
            let own = compose.then(|| Tree { names: Some(".env".into()), ..Tree::all(here()) });
            folders.into_iter().map(Tree::all).chain(own).collect()
        }
        // `python -m http.server`, `php -S`, `ruby -run -e httpd`
        b if b.starts_with("python")
            && args.iter().any(|w| w.text == "http.server" || w.text == "-mhttp.server") =>
        {
            vec![Tree::all(here())]
        }
        // The environment of a project is read from its file.
        b if b.starts_with("python") && args.iter().any(|w| w.text == "dotenv" || w.text == "-mdotenv") => {
            vec![Tree { names: Some(".env".into()), ..Tree::all(here()) }]
        }
        "dotenv" | "docker-compose" | "podman-compose" => {
            vec![Tree { names: Some(".env".into()), ..Tree::all(here()) }]
        }
        "php" if short("S") => vec![Tree::all(here())],
        "ruby" if args.iter().any(|w| w.text == "-run") => vec![Tree::all(here())],
        "find" | "gfind" | "fd" | "fdfind" => found(part, analysis),
        "git" => git(args),
        _ => vec![],
    }
}

/// What `find` hands to a program: by `-exec`, or through a pipe to `xargs`.
fn found(part: &Part, analysis: &Analysis) -> Vec<Tree> {
    let args = part.args();
    let fd = part.base().starts_with("fd");
    let runs = args.iter().any(|w| {
        w.text.starts_with("-exec")
            || w.text.starts_with("-ok")
            || fd && (w.text.starts_with("-x") || w.text.starts_with("-X") || w.text.starts_with("--exec"))
    });
    let at = analysis.parts.iter().position(|p| std::ptr::eq(p, part));
    let piped = at.is_some_and(|at| {
        analysis.parts.iter().any(|p| {
            p.piped_from.is_some_and(|(from, to)| (from..to).contains(&at)) && !super::counts_only(&p.base())
        })
    });
    if !runs && !piped {
        return vec![];
    }
    let mut folders: Vec<Word> = if fd {
        let runs =
            |w: &&Word| w.text.starts_with("-x") || w.text.starts_with("-X") || w.text.starts_with("--exec");
        let own = args.iter().take_while(|w| !runs(w));
        own.filter(|w| !w.text.starts_with('-')).skip(1).cloned().collect()
    } else {
        args.iter().take_while(|w| !w.text.starts_with(['-', '(', '!'])).cloned().collect()
    };
    if folders.is_empty() {
        folders.push(here());
    }
    let plain_tests = !args.iter().any(|w| matches!(w.text.as_str(), "!" | "-not" | "-o" | "-or" | ","));
    let name = args
        .windows(2)
        .find(|w| matches!(w[0].text.as_str(), "-name" | "-iname") && !w[1].dynamic)
        .map(|w| w[1].text.clone())
        .filter(|_| plain_tests && !fd);
    folders.into_iter().map(|f| Tree { names: name.clone(), ..Tree::all(f) }).collect()
}

/// Uses of git that show what files hold.
fn git(args: &[Word]) -> Vec<Tree> {
    let Some(at) = crate::danger::git_subcommand(args) else { return vec![] };
    let (sub, rest) = (args[at].text.as_str(), &args[at + 1..]);
    let has = |list: &[&str]| rest.iter().any(|w| list.contains(&w.text.as_str()));
    let paths: Vec<Word> = rest
        .iter()
        .skip_while(|w| w.text != "--")
        .skip(1)
        .filter(|w| !w.text.starts_with(':'))
        .cloned()
        .collect();
    let folders = if paths.is_empty() { vec![here()] } else { paths };
    let shows = match sub {
        "grep" | "archive" | "diff-files" | "diff-index" | "difftool" | "add" | "stash" | "bundle"
        | "format-patch" | "whatchanged" | "range-diff" | "fast-export" | "diff-tree" => true,
        "diff" | "show" => {
            !has(&["--stat", "--name-only", "--name-status", "--shortstat", "--numstat", "-s", "--no-patch"])
        }
        "log" | "reflog" => rest.iter().any(|w| {
            matches!(
                w.text.as_str(),
                "-p" | "-u" | "--patch" | "-c" | "--cc" | "-m" | "--full-diff" | "--ext-diff"
            ) || w.text.starts_with("-U")
                || w.text.starts_with("--unified")
                || w.text.starts_with("-L")
        }),
        "cat-file" => rest.iter().any(|w| w.text.starts_with("--batch")),
        // Of this repository, or of another that lies here.
        "clone" => rest.iter().any(|w| !w.text.starts_with('-') && !w.text.contains(':')),
        _ => false,
    };
    // `add` and a list of stashes show nothing.
    let quiet = sub == "add" && !has(&["-p", "--patch", "-i", "--interactive"])
        || sub == "stash" && has(&["list", "push", "drop", "clear", "pop", "apply"])
        || sub == "stash" && rest.is_empty();
    if !shows || quiet {
        return vec![];
    }
    // Files that git does not track, or only their old states, are shown; which, only git knows.
    let surely =
        sub == "grep" && has(&["--no-index", "--untracked"]) || sub == "diff" && has(&["--no-index"]);
    // Old states are unknown; the present one is in the index.
    let past = matches!(
        sub,
        "show"
            | "log"
            | "reflog"
            | "whatchanged"
            | "format-patch"
            | "range-diff"
            | "fast-export"
            | "bundle"
            | "diff-tree"
            | "cat-file"
            | "clone"
    ) || matches!(sub, "diff" | "archive" | "diff-index" | "stash" | "grep")
        && rest.iter().take_while(|w| w.text != "--").any(|w| {
            !w.text.starts_with('-') && !matches!(w.text.as_str(), "HEAD" | "show") && sub != "grep"
        });
    let one = |f| match (surely, past) {
        (true, _) => Tree::all(f),
        (false, true) => Tree::perhaps(f),
        (false, false) => Tree { tracked: true, ..Tree::all(f) },
    };
    folders.into_iter().map(one).collect()
}
