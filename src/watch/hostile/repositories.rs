//! Repositories whose files make programs run other programs, or read files elsewhere.

/// A hostile repository.
pub(super) struct Hostile {
    pub(super) name: &'static str,
    /// Shell commands that set it up, run in the repository. `$C`: the folder for canaries; `$EVIL`: a program that
    /// writes a canary and then behaves like `cat`; `$OUT`: a folder outside of the workspace.
    pub(super) setup: &'static str,
    /// A command that triggers the canary when it runs without protection. Empty: that cannot be shown on every
    /// machine.
    pub(super) shown_by: &'static str,
    pub(super) needs: &'static str,
    /// Folders in front of the search path; relative ones are in the repository.
    pub(super) path: &'static str,
}

const fn git(name: &'static str, setup: &'static str, shown_by: &'static str) -> Hostile {
    Hostile { name, setup, shown_by, needs: "git", path: "" }
}

const fn other(
    name: &'static str,
    setup: &'static str,
    shown_by: &'static str,
    needs: &'static str,
) -> Hostile {
    Hostile { name, setup, shown_by, needs, path: "" }
}

const fn path(name: &'static str, setup: &'static str, path: &'static str) -> Hostile {
    Hostile { name, setup, shown_by: "ls", needs: "ls", path }
}

pub(super) const HOSTILE: &[Hostile] = &[
    git("fsmonitor", "git config core.fsmonitor \"$EVIL\"", "git status"),
    git(
        "fsmonitor by an include",
        "printf '[core]\\n\\tfsmonitor = %s\\n' \"$EVIL\" >conf; git config include.path ../conf",
        "git status",
    ),
    git(
        "fsmonitor by a conditional include",
        "printf '[core]\\n\\tfsmonitor = %s\\n' \"$EVIL\" >conf; git config \"includeIf.gitdir:**.path\" ../conf",
        "git status",
    ),
    git(
        "fsmonitor of the work tree's configuration",
        "git config extensions.worktreeConfig true; printf '[core]\\n\\tfsmonitor = %s\\n' \"$EVIL\" >.git/config.worktree",
        "git status",
    ),
    git(
        "fsmonitor as a hook",
        "git config core.fsmonitor .git/hooks/fsmonitor-watchman; cp \"$EVIL\" .git/hooks/fsmonitor-watchman",
        "git status",
    ),
    git("external diff", "git config diff.external \"$EVIL\"", "git diff"),
    git(
        "command of a diff driver",
        "git config diff.evil.command \"$EVIL\"; echo '*.txt diff=evil' >.gitattributes",
        "git diff",
    ),
    git(
        "text conversion",
        "git config diff.evil.textconv \"$EVIL\"; echo '*.txt diff=evil' >.gitattributes",
        "git log -p",
    ),
    git(
        "text conversion by info/attributes",
        "git config diff.evil.textconv \"$EVIL\"; echo '* diff=evil' >.git/info/attributes",
        "git show",
    ),
    git(
        "text conversion by core.attributesFile",
        "git config diff.evil.textconv \"$EVIL\"; git config core.attributesFile attrs; echo '* diff=evil' >attrs",
        "git blame f.txt",
    ),
    git(
        "text conversion that is kept",
        "git config diff.evil.textconv \"$EVIL\"; git config diff.evil.cachetextconv true; echo '*.txt diff=evil' >.gitattributes",
        "git diff",
    ),
    git(
        "clean filter",
        "git config filter.evil.clean \"$EVIL\"; echo '*.json filter=evil' >.gitattributes; touch -d 2001-01-01 data.json",
        "git status",
    ),
    git(
        "clean filter by info/attributes",
        "git config filter.evil.clean \"$EVIL\"; echo '* filter=evil' >.git/info/attributes; touch -d 2001-01-01 f.txt",
        "git diff --no-ext-diff",
    ),
    git(
        "filter process",
        "git config filter.evil.process \"$EVIL\"; git config filter.evil.required true; echo '*.json filter=evil' >.gitattributes; touch -d 2001-01-01 data.json",
        "git status",
    ),
    git(
        "filter with an odd name",
        "git config \"filter.a=b'c.clean\" \"$EVIL\"; echo \"*.json filter=a=b'c\" >.gitattributes; touch -d 2001-01-01 data.json",
        "git status",
    ),
    git(
        "smudge filter",
        "git config filter.evil.smudge \"$EVIL\"; echo '*.txt filter=evil' >.gitattributes",
        "git cat-file --filters HEAD:f.txt",
    ),
    git(
        "filter under the name of git-lfs",
        "git config filter.lfs.clean \"$EVIL\"; echo '*.json filter=lfs' >.gitattributes; touch -d 2001-01-01 data.json",
        "git status",
    ),
    git(
        "hook after the index is written",
        "cp \"$EVIL\" .git/hooks/post-index-change; touch -d 2001-01-01 data.json",
        "git status",
    ),
    git(
        "folder of hooks in the work tree",
        "mkdir h; cp \"$EVIL\" h/post-index-change; git config core.hooksPath h; touch -d 2001-01-01 data.json",
        "git status",
    ),
    other(
        "pagers",
        "git config core.pager \"$EVIL\"; for c in status log diff show branch grep; do git config pager.$c \"$EVIL\"; done",
        // Only a terminal shows it.
        "env -u GIT_PAGER -u PAGER TERM=xterm script -qec 'git log' /dev/null </dev/null",
        "script",
    ),
    git(
        "signatures",
        "git config log.showSignature true; git config gpg.program \"$EVIL\"; git config gpg.ssh.program \"$EVIL\"; t=$(git rev-parse HEAD^{tree}); c=$(printf 'tree %s\\nauthor a <a> 1 +0000\\ncommitter a <a> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----\\n\\nx\\n' $t | git hash-object -t commit -w --stdin); git update-ref HEAD $c",
        "git log",
    ),
    git(
        "signatures by a format of the configuration",
        "git config format.pretty '%G? %h'; git config gpg.program \"$EVIL\"; t=$(git rev-parse HEAD^{tree}); c=$(printf 'tree %s\\nauthor a <a> 1 +0000\\ncommitter a <a> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----\\n\\nx\\n' $t | git hash-object -t commit -w --stdin); git update-ref HEAD $c",
        "git log -1",
    ),
    git("aliases", "for a in status diff log show sts; do git config alias.$a \"!$EVIL\"; done", "git sts"),
    git(
        "submodule with a filter",
        "git init -q mod; (cd mod; git config user.name t; git config user.email t@t; echo a >m.txt; echo '*.txt filter=evil' >.gitattributes; git add .; git commit -qm m; git config filter.evil.clean \"$EVIL\"; touch -d 2001-01-01 m.txt); git add mod 2>/dev/null",
        "git status",
    ),
    git(
        "submodule with a monitor",
        "git init -q mod; (cd mod; git config user.name t; git config user.email t@t; echo a >m.txt; git add .; git commit -qm m; git config core.fsmonitor \"$EVIL\"); git add mod 2>/dev/null",
        "git status",
    ),
    git(
        "submodule with text conversion",
        "git init -q mod; (cd mod; git config user.name t; git config user.email t@t; echo a >m.txt; echo '*.txt diff=evil' >.gitattributes; git add .; git commit -qm m; git config diff.evil.textconv \"$EVIL\"; echo b >m.txt); git add mod 2>/dev/null; git config diff.submodule diff",
        "git diff",
    ),
    git(
        "repository without a work tree in a folder",
        "rm -r sub; git init -q --bare sub; git -C sub config core.bare false; git -C sub config core.worktree ..; git -C sub config core.fsmonitor \"$EVIL\"",
        "git -C sub status",
    ),
    git(
        "repository without a work tree around",
        "mv .git/* . 2>/dev/null; rm -rf .git; git --git-dir=. config core.bare false; git --git-dir=. config core.worktree src; git --git-dir=. config core.fsmonitor \"$EVIL\"",
        "git status",
    ),
    git(
        "a work tree elsewhere",
        "git config core.worktree \"$OUT\"; git config core.fsmonitor \"$EVIL\"",
        "git status",
    ),
    git(
        "a .git file",
        "mv .git evilgit; echo 'gitdir: evilgit' >.git; git config core.fsmonitor \"$EVIL\"",
        "git status",
    ),
    git(
        "a common folder elsewhere",
        "mv .git c; mkdir .git; cp c/HEAD c/index .git/; echo ../c >.git/commondir; git --git-dir=c config core.fsmonitor \"$EVIL\"",
        "git status",
    ),
    git(
        "an object that is loaded by a helper",
        "b=$(git rev-parse HEAD:f.txt); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-); git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url \"ext::$EVIL\"; git config protocol.ext.allow always",
        "git show",
    ),
    git(
        "an object that is loaded over ssh",
        "b=$(git rev-parse HEAD:f.txt); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-); git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url ssh://127.0.0.1/x; git config core.sshCommand \"$EVIL\"",
        "git show",
    ),
    git(
        "an object that is loaded by upload-pack",
        "b=$(git rev-parse HEAD:f.txt); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-); git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url .; git config remote.origin.uploadpack \"$EVIL\"",
        "git show",
    ),
    git(
        "programs for the network and for passwords",
        "for k in core.sshCommand core.gitProxy core.askPass core.alternateRefsCommand credential.helper core.editor sequence.editor remote.origin.uploadpack remote.origin.vcs; do git config $k \"$EVIL\"; done",
        "git ls-remote ssh://127.0.0.1/x",
    ),
    git(
        "names in the index that are options",
        "o=$(echo a | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$o,\"x $OUT/secret\"",
        "git ls-files | xargs cat",
    ),
    git("names that are options", "echo b >./-oCANARY", "sort *"),
    git(
        "names with blanks",
        "mkdir -p \"n/x $OUT\"; echo b >\"n/x $OUT/secret\"",
        "find n -type f | xargs cat",
    ),
    git(
        "names with line ends",
        "mkdir -p \"n/x\n$OUT\"; echo b >\"n/x\n$OUT/secret\"",
        "find n -type f | xargs cat",
    ),
    git(
        "links that lead out",
        "ln -s \"$OUT/secret\" out.txt; ln -s \"$OUT\" src/out; ln -s \"$OUT/secret\" src/z.rs",
        "cat src/*.rs",
    ),
    // Files of the git folder, or of its configuration, that lead out: git prints their lines.
    git(
        "revisions to pass over, from a file elsewhere",
        "git config blame.ignoreRevsFile \"$OUT/secret\"",
        "git blame f.txt",
    ),
    git(
        "an include of configuration from elsewhere",
        "printf '[a]\\n\\tk = canary-5b1f\\n' >\"$OUT/conf\"; git config include.path \"$OUT/conf\"",
        "git config --list",
    ),
    git(
        "configuration that is a link",
        "mv .git/config \"$OUT/conf\"; printf '[a]\\n\\tk = canary-5b1f\\n' >>\"$OUT/conf\"; ln -s \"$OUT/conf\" .git/config",
        "git config --list",
    ),
    git("packed references that are a link", "ln -s \"$OUT/secret\" .git/packed-refs", "git for-each-ref"),
    git("boundaries of history that are a link", "ln -s \"$OUT/secret\" .git/shallow", "git log"),
    git("grafts that are a link", "mkdir -p .git/info; ln -s \"$OUT/secret\" .git/info/grafts", "git log"),
    git("alternates that are a link", "ln -s \"$OUT/secret\" .git/objects/info/alternates", "git log"),
    git(
        "steps of a rebase that are a link",
        "mkdir .git/rebase-merge; : >.git/rebase-merge/interactive; git rev-parse HEAD >.git/rebase-merge/onto; echo refs/heads/main >.git/rebase-merge/head-name; ln -s \"$OUT/secret\" .git/rebase-merge/done; : >.git/rebase-merge/git-rebase-todo",
        "git status",
    ),
    git(
        "the start of a bisection that is a link",
        "ln -s \"$OUT/secret\" .git/BISECT_START; : >.git/BISECT_LOG",
        "git status",
    ),
    git(
        "the place of a work tree that is a link",
        "mkdir -p .git/worktrees/w; git rev-parse HEAD >.git/worktrees/w/HEAD; echo ../.. >.git/worktrees/w/commondir; ln -s \"$OUT/secret\" .git/worktrees/w/gitdir",
        "git worktree list",
    ),
    git(
        "a .git file that leads to a repository elsewhere",
        "(cd \"$OUT\"; git init -q r; cd r; git config user.name t; git config user.email t@t; cp ../secret s; git add s; git commit -qm s); rm -rf .git; echo \"gitdir: $OUT/r/.git\" >.git",
        "git log -p",
    ),
    git(
        "a .git folder that is a link",
        "(cd \"$OUT\"; git init -q r; cd r; git config user.name t; git config user.email t@t; cp ../secret s; git add s; git commit -qm s); rm -rf .git; ln -s \"$OUT/r/.git\" .git",
        "git log -p",
    ),
    git(
        "a common folder that is another repository's",
        "(cd \"$OUT\"; git init -q -b main r; cd r; git config user.name t; git config user.email t@t; cp ../secret s; git add s; git commit -qm s); mv .git g; mkdir .git; cp g/HEAD .git/HEAD; echo \"$OUT/r/.git\" >.git/commondir",
        "git log -p",
    ),
    git(
        "objects of another repository",
        "(cd \"$OUT\"; git init -q -b main r; cd r; git config user.name t; git config user.email t@t; cp ../secret s; git add s; git commit -qm s); echo \"$OUT/r/.git/objects\" >.git/objects/info/alternates; git -C \"$OUT/r\" rev-parse HEAD >.git/refs/heads/main",
        "git log -p",
    ),
    git(
        "names of authors from elsewhere",
        "echo 'canary-5b1f <t@t>' >\"$OUT/names\"; git config mailmap.file \"$OUT/names\"",
        "git log",
    ),
    git(
        "a formatter of trailers",
        "git config trailer.x.command \"$EVIL\"; git config trailer.x.cmd \"$EVIL\"; git commit -q --allow-empty -m 'a\n\nx: y'; git config format.pretty '%(trailers) %h'",
        "echo a | git interpret-trailers --trailer x=1",
    ),
    other(
        "a toolchain of the folder",
        "mkdir -p tool/bin; cp \"$EVIL\" tool/bin/cargo; cp \"$EVIL\" tool/bin/rustc; printf '[toolchain]\\npath = \"%s/tool\"\\n' \"$PWD\" >rust-toolchain.toml",
        "cargo --version",
        "rustup",
    ),
    other(
        "a toolchain of the folder, in the old file",
        "mkdir -p tool/bin; cp \"$EVIL\" tool/bin/cargo; cp \"$EVIL\" tool/bin/rustc; printf '[toolchain]\\npath = \"%s/tool\"\\n' \"$PWD\" >rust-toolchain",
        "rustc --version",
        "rustup",
    ),
    other(
        "configuration of cargo",
        "mkdir .cargo; printf '[build]\\nrustc = \"%s\"\\nrustc-wrapper = \"%s\"\\n[alias]\\nversion = \"run\"\\n' \"$EVIL\" \"$EVIL\" >.cargo/config.toml; cp .cargo/config.toml .cargo/config; printf '[package]\\nname = \"x\"\\nversion = \"0.0.0\"\\n' >Cargo.toml; touch src/lib.rs",
        "cargo check --offline",
        "cargo",
    ),
    other(
        "modules of python",
        "printf 'import os\\nos.system(\"%s\")\\n' \"$EVIL\" | tee sitecustomize.py usercustomize.py json.py site.py >/dev/null; echo 'import sitecustomize' >x.pth; printf 'home = .\\n' >pyvenv.cfg",
        "python3 -c 'import sitecustomize'",
        "python3",
    ),
    other(
        "configuration of npm",
        "printf 'node-options=--require=%s/x.js\\nscript-shell=%s\\nonload-script=%s/x.js\\nprefix=.\\n' \"$PWD\" \"$EVIL\" \"$PWD\" >.npmrc; printf 'require(\"child_process\").execSync(\"%s\")\\n' \"$EVIL\" >x.js; printf '{\"name\":\"x\",\"scripts\":{\"version\":\"%s\",\"x\":\"%s\"}}' \"$EVIL\" \"$EVIL\" >package.json",
        "npm run x",
        "npm",
    ),
    other(
        "files of make",
        "printf 'X := $(shell %s)\\nall:\\n\\t%s\\n' \"$EVIL\" \"$EVIL\" | tee Makefile GNUmakefile makefile >/dev/null",
        "make",
        "make",
    ),
    other(
        "configuration of searchers",
        "printf -- '--pre=%s\\n' \"$EVIL\" | tee .ripgreprc ripgreprc .rgrc >/dev/null",
        "RIPGREP_CONFIG_PATH=.ripgreprc rg a",
        "rg",
    ),
    path("programs in the folder itself", "for p in $ALL; do cp \"$EVIL\" \"$p\"; done", "."),
    path("programs by an empty entry", "for p in $ALL; do cp \"$EVIL\" \"$p\"; done", ""),
    path("programs in a folder below", "mkdir bin; for p in $ALL; do cp \"$EVIL\" \"bin/$p\"; done", "bin"),
    path(
        "programs in the absolute folder below",
        "mkdir bin; for p in $ALL; do cp \"$EVIL\" \"bin/$p\"; done",
        "$WORK/bin",
    ),
    path(
        "programs by a link from outside",
        "mkdir bin; for p in $ALL; do cp \"$EVIL\" \"bin/$p\"; ln -sf \"$WORK/bin/$p\" \"$OUT/$p\"; done",
        "$OUT",
    ),
    Hostile {
        name: "a launcher that the folder steers",
        setup: "mkdir -p \"$OUT/shims\"; printf '#!/bin/sh\\nexec ./$(cut -d: -f2 .tool-versions)\\n' >\"$OUT/shims/jq\"; chmod +x \"$OUT/shims/jq\"; cp \"$EVIL\" evil; echo 'jq path:evil' >.tool-versions",
        shown_by: "jq . data.json",
        needs: "sh",
        path: "$OUT/shims",
    },
    Hostile {
        name: "a version of python",
        setup: "mkdir -p \"$OUT/shims\" v/bin; printf '#!/bin/sh\\nexec $(cat .python-version)/bin/python3 \"$@\"\\n' >\"$OUT/shims/python3\"; chmod +x \"$OUT/shims/python3\"; cp \"$EVIL\" v/bin/python3; echo \"$PWD/v\" >.python-version",
        shown_by: "python3 --version",
        needs: "sh",
        path: "$OUT/shims",
    },
];
