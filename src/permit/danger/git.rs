//! Dangerous uses of git.

use super::args::{Args, broad};

/// What `git` would overwrite, delete or run.
pub(super) fn git(a: &Args<'_>) -> Option<String> {
    let yes = |cond: bool, why: &str| cond.then(|| why.to_owned());
    let mut words = a.words.iter().map(|w| w.text.as_str());
    let mut sub = "";
    while let Some(w) = words.next() {
        if matches!(
            w,
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" | "--config-env"
        ) {
            if w == "-c" || w == "--config-env" {
                let set = words.next().unwrap_or_default();
                if git_key_runs(set.split('=').next().unwrap_or_default()) {
                    return Some("git is told to run another program".into());
                }
                continue;
            }
            words.next();
        } else if !w.starts_with('-') {
            sub = w;
            break;
        }
    }
    let rest = Args {
        words: &a.words[a.words.iter().position(|w| w.text == sub).map_or(0, |i| i + 1).min(a.words.len())..],
    };
    match sub {
        "push" => yes(
            rest.has('f', "force")
                || rest.any(|t| {
                    t.starts_with("--force")
                        || t.starts_with('+')
                        || t.starts_with(':')
                        || t == "--mirror"
                        || t == "--prune"
                        || t == "--delete"
                })
                || rest.has('d', "delete"),
            "it overwrites or deletes what others have",
        ),
        "reset" => yes(
            rest.any(|t| matches!(t, "--hard" | "--merge" | "--keep") || t.starts_with("--har")),
            "it throws away changes that are not committed",
        ),
        "clean" => yes(rest.has('f', "force"), "it deletes files that git does not know"),
        "checkout" | "restore" | "switch" => yes(
            rest.has('f', "force")
                || rest.text("--discard-changes")
                || rest.text(".")
                || (sub == "checkout" && rest.text("--"))
                || (sub == "restore" && !rest.text("--staged")),
            "it throws away changes that are not committed",
        ),
        "stash" => yes(rest.text("drop") || rest.text("clear"), "it throws away stashed changes"),
        "branch" => yes(
            rest.has('D', "")
                || rest.has('f', "force")
                || (rest.has('d', "delete") && rest.has('f', "force")),
            "it deletes a branch",
        ),
        "tag" => yes(rest.has('d', "delete") || rest.has('f', "force"), "it deletes or moves a tag"),
        "update-ref" | "reflog" | "gc" | "prune" | "filter-branch" | "filter-repo" | "replace"
        | "symbolic-ref" => yes(
            match sub {
                "reflog" => rest.text("expire") || rest.text("delete"),
                "gc" => rest.any(|t| t.starts_with("--prune")) || rest.text("--aggressive"),
                "symbolic-ref" => rest.operands().count() > 1,
                _ => true,
            },
            "it rewrites history",
        ),
        "rebase" => {
            yes(rest.any(|t| t.starts_with("-x") || t.starts_with("--exec")), "git runs another program")
        }
        "submodule" => yes(rest.text("foreach"), "git runs another program"),
        "bisect" => yes(rest.text("run"), "git runs another program"),
        "difftool" | "mergetool" | "daemon" | "instaweb" | "send-email" | "hook" | "credential"
        | "fast-import" => Some("git runs another program, or handles passwords".into()),
        "worktree" => yes(rest.text("remove") && rest.has('f', "force"), "it deletes a work tree"),
        "rm" => yes(rest.has('r', "") && rest.operands().any(broad), "it deletes a whole tree"),
        "config" => yes(
            rest.any(git_key_runs)
                && !rest.any(|t| matches!(t, "--get" | "--get-all" | "--list" | "-l" | "get" | "list")),
            "git is told to run another program",
        ),
        "remote" => yes(
            rest.text("set-url") || rest.text("remove") || rest.text("rm"),
            "it changes where git sends to",
        ),
        _ => None,
    }
}

/// Keys of git's configuration whose value git runs, or that lead to other configuration.
pub(crate) fn git_key_runs(key: &str) -> bool {
    let key = key.to_lowercase();
    let starts = [
        "alias.",
        "filter.",
        "diff.external",
        "difftool.",
        "mergetool.",
        "credential.",
        "include.",
        "includeif.",
        "hook.",
        "gpg.",
        "pager.",
        "url.",
        "protocol.",
        "browser.",
        "man.",
        "web.",
        "instaweb.",
        "sendemail.",
        "remote.",
        "submodule.",
        "http.proxy",
        "https.proxy",
        "uploadpack.",
        "receive.",
        "tar.",
        "guitool.",
        "imap.",
        "ssh.",
        "trailer.",
        "interactive.difffilter",
        "core.pager",
        "core.editor",
        "core.sshcommand",
        "core.fsmonitor",
        "core.hookspath",
        "core.askpass",
        "core.gitproxy",
        "core.worktree",
        "core.attributesfile",
        "core.alternaterefscommand",
        "sequence.editor",
        "merge.",
        "init.templatedir",
        "commit.template",
        "safe.",
        "extensions.",
        "diff.tool",
        "fsmonitor.",
        "maintenance.",
        "user.signingkey",
    ];
    starts.iter().any(|s| key.starts_with(s))
        || (key.starts_with("diff.") && (key.ends_with(".command") || key.ends_with(".textconv")))
}
