//! Changes that commands make of repositories, for tests.

/// Commands that make or change a repository so that git runs `$E` in it, each line one command of an agent. `f FOLDER`: the
/// folder's repository gets a monitor of files.
pub(super) const HOSTILE: &[(&str, &[&str])] = &[
    ("init", &["git init -q n; f n; echo a > n/a; git -C n add a; git -C n commit -qm a; git add n"]),
    ("init, no commit", &["git init -q n; f n"]),
    ("init in a deep folder", &["mkdir -p a/b/c/d; git init -q a/b/c/d; f a/b/c/d"]),
    (
        "another name for the branch, by hand",
        &["mkdir -p n/.git/objects n/.git/refs; echo 'ref: refs/heads/x' > n/.git/HEAD; f n"],
    ),
    ("clone", &["git clone -q . n; f n"]),
    ("clone, changed later", &["git clone -q . n", "f n"]),
    ("known", &["f known"]),
    ("known, in place", &["printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" >> known/.git/config"]),
    (
        "bare in a folder",
        &["git init -q --bare n; g n config core.bare false; g n config core.worktree ..; f n"],
    ),
    (
        "bare by hand",
        &[
            "mkdir -p n/objects n/refs; echo 'ref: refs/heads/x' > n/HEAD; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = %s\\n' \"$E\" > n/config",
        ],
    ),
    (
        "bare in steps",
        &[
            "mkdir -p n/objects; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = %s\\n' \"$E\" > n/config",
            "echo 'ref: refs/heads/x' > n/HEAD",
            "mkdir n/refs",
        ],
    ),
    (
        "a folder that gets the name",
        &[
            "git init -q m; f m; mv m/.git/HEAD m/.git/H; mv m/.git n0; true",
            "mkdir -p n; mv n0 n/.git",
            "mv n/.git/H n/.git/HEAD; f n",
        ],
    ),
    ("folder elsewhere", &["git init -q --separate-git-dir store n; f n"]),
    (
        "pointer made later",
        &[
            "git init -q m; mv m/.git store",
            "mkdir n; echo 'gitdir: ../store' > n/.git",
            "printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" >> store/config",
        ],
    ),
    ("module", &["mkdir -p .git/modules; git init -q --separate-git-dir .git/modules/n n; f n"]),
    (
        "module of a module",
        &["mkdir -p .git/modules/a/modules; git init -q --separate-git-dir .git/modules/a/modules/n n; f n"],
    ),
    ("folder for temporary files", &["git init -q --separate-git-dir \"$TMPDIR/store\" n; f n"]),
    ("link to a folder", &["git init -q m; f m; mkdir n; mv m/.git store; ln -s ../store n/.git"]),
    (
        "link to a folder outside",
        &["git init -q \"$TMPDIR/m\"; f \"$TMPDIR/m\"; mkdir n; ln -s \"$TMPDIR/m/.git\" n/.git"],
    ),
    (
        "pointer through a link that is turned",
        &[
            "git init -q m; mkdir one; mv m/.git one/store; ln -s one way; mkdir n; echo 'gitdir: ../way/store' > n/.git",
            "git init -q \"$TMPDIR/m\"; f \"$TMPDIR/m\"; mv \"$TMPDIR/m/.git\" \"$TMPDIR/store\"; rm way; ln -s \"$TMPDIR\" way",
        ],
    ),
    (
        "pointer to a folder that becomes a link",
        &[
            "git init -q m; mkdir one; mv m/.git one/store; mkdir n; echo 'gitdir: ../one/store' > n/.git",
            "git init -q \"$TMPDIR/m\"; f \"$TMPDIR/m\"; mv \"$TMPDIR/m/.git\" \"$TMPDIR/store\"; rm -rf one; ln -s \"$TMPDIR\" one",
        ],
    ),
    (
        "work tree with settings of its own",
        &[
            "git worktree add -q n; git -C n config --worktree core.fsmonitor \"$E\" || printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" > .git/worktrees/n/config.worktree",
        ],
    ),
    (
        "common folder elsewhere",
        &[
            "git init -q n; f n; mkdir c; mv n/.git/objects n/.git/refs n/.git/config c/; echo ../../c > n/.git/commondir",
        ],
    ),
    (
        "common folder outside",
        &[
            "git init -q n; f n; mkdir \"$TMPDIR/c\"; mv n/.git/objects n/.git/refs n/.git/config \"$TMPDIR/c/\"; echo \"$TMPDIR/c\" > n/.git/commondir",
        ],
    ),
    (
        "include",
        &[
            "git init -q n; printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" > conf; git -C n config include.path ../../conf",
        ],
    ),
    (
        "conditional include",
        &[
            "git init -q n; printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" > conf; git -C n config 'includeIf.gitdir:**.path' ../../conf",
        ],
    ),
    (
        "configuration that is a link",
        &["git init -q n; f n; mv n/.git/config conf; ln -s ../../conf n/.git/config"],
    ),
    (
        "hook",
        &[
            "git init -q n; cp \"$E\" n/.git/hooks/post-index-change; echo a > n/a; git add n 2>/dev/null; true",
        ],
    ),
    ("hook of a known one", &["cp \"$E\" known/.git/hooks/pre-commit"]),
    (
        "hook that becomes executable",
        &["git init -q n; cat \"$E\" > n/.git/hooks/pre-commit", "chmod +x n/.git/hooks/pre-commit"],
    ),
    ("hook that is a link", &["git init -q n; ln -s \"$E\" n/.git/hooks/pre-commit"]),
    (
        "hooks that are a link",
        &["git init -q n; mkdir h; cp \"$E\" h/pre-commit; rm -r n/.git/hooks; ln -s ../../h n/.git/hooks"],
    ),
    (
        "folder of hooks",
        &["git init -q n; mkdir h; cp \"$E\" h/pre-commit; git -C n config core.hooksPath ../h"],
    ),
    (
        "hook of a module",
        &[
            "mkdir -p .git/modules; git init -q --separate-git-dir .git/modules/n n; cp \"$E\" .git/modules/n/hooks/pre-commit",
        ],
    ),
    ("alias", &["git init -q n; git -C n config alias.sts \"!$E\""]),
    ("external diff", &["git clone -q . n; git -C n config diff.external \"$E\"; echo b >> n/file"]),
    (
        "command of a diff driver",
        &[
            "git clone -q . n; git -C n config diff.x.command \"$E\"; echo '* diff=x' > n/.gitattributes; echo b >> n/file",
        ],
    ),
    (
        "text conversion",
        &[
            "git clone -q . n; git -C n config diff.x.textconv \"$E\"; echo '* diff=x' > n/.git/info/attributes",
        ],
    ),
    (
        "attributes elsewhere",
        &[
            "git clone -q . n; git -C n config diff.x.textconv \"$E\"; git -C n config core.attributesFile ../attrs; echo '* diff=x' > attrs",
        ],
    ),
    (
        "clean filter",
        &[
            "git clone -q . n; git -C n config filter.x.clean \"$E\"; echo '* filter=x' > n/.gitattributes; echo b >> n/file",
        ],
    ),
    (
        "filter process",
        &[
            "git clone -q . n; git -C n config filter.x.process \"$E\"; echo '* filter=x' > n/.git/info/attributes; echo b >> n/file",
        ],
    ),
    (
        "smudge filter",
        &[
            "git clone -q . n; git -C n config filter.x.smudge \"$E\"; echo '* filter=x' > n/.git/info/attributes; rm n/file",
        ],
    ),
    ("editor", &["git clone -q . n; git -C n config core.editor \"$E\""]),
    ("upload-pack", &["git clone -q . n; git -C n config remote.origin.uploadpack \"$E\""]),
    (
        "remote for a program",
        &[
            "git clone -q . n; git -C n config remote.origin.url \"ext::$E\"; git -C n config protocol.ext.allow always",
        ],
    ),
    (
        "ssh",
        &[
            "git clone -q . n; git -C n config core.sshCommand \"$E\"; git -C n config remote.origin.url ssh://127.0.0.1/x",
        ],
    ),
    ("passwords", &["git clone -q . n; git -C n config credential.helper \"!$E\""]),
    (
        "locked folders",
        &[
            "git init -q n; f n; cp \"$E\" n/.git/hooks/pre-commit; chmod 555 n/.git n/.git/hooks; chmod 311 n",
        ],
    ),
    (
        "not readable twice",
        &["mkdir -p a/n; git init -q a/n; f a/n; git init -q n; f n; chmod 111 a n; chmod 311 n/.git"],
    ),
    (
        "one in another",
        &[
            "git init -q n; git init -q n/.git/n; f n/.git/n; mkdir -p .git/objects/n; git init -q .git/objects/n; f .git/objects/n",
        ],
    ),
];

/// Changes by everyday commands, which stay as they are.
pub(super) const HARMLESS: &[(&str, &str)] = &[
    (
        "init and commit",
        "git init -q n; echo a > n/a; git -C n add a; git -C n commit -qm a; git -C n config user.name x; git add n",
    ),
    (
        "clone",
        "git clone -q . n && git -C n checkout -q -b x && git -C n fetch -q && git -C n pull -q origin main",
    ),
    ("bare clone", "git clone -q --bare . n.git; git -C n.git branch x"),
    ("mirror", "git clone -q --mirror . n.git"),
    (
        "clone that shares objects",
        "git clone -q --shared . n; git -C n status --short; git -C n log -1 --oneline",
    ),
    (
        "folder elsewhere",
        "mkdir -p .git/modules && git init -q --separate-git-dir .git/modules/n n && git -C n status --short",
    ),
    (
        "submodule in a nested one",
        "git init -q n && cd n && git -c protocol.file.allow=always submodule --quiet add \"$W/known\" lib && git commit -qm x && git submodule --quiet update --init && git -C lib status --short",
    ),
    (
        "recursive clone",
        "git init -q n && (cd n && git -c protocol.file.allow=always submodule --quiet add \"$W/known\" lib && git commit -qm x) && git -c protocol.file.allow=always clone -q --recurse-submodules n m && test -f m/lib/k",
    ),
    (
        "work tree",
        "git worktree add -q n && git -C n commit -q --allow-empty -m x && git worktree list | grep -q n",
    ),
    (
        "part of the files",
        "git clone -q . n && git -C n sparse-checkout set --no-cone file && git -C n status --short",
    ),
    (
        "remotes and branches",
        "git clone -q . n && cd n && git remote add other https://example.org/x && git config branch.main.rebase true && git gc -q && git stash -q; true",
    ),
    (
        "known one",
        "cd known && git config user.name x && git remote add o https://example.org && echo b >> k && git commit -qam b --no-verify",
    ),
    ("known one moved", "mv known known2 && git -C known2 config user.name y"),
    ("known one removed", "rm -rf known"),
    (
        "plain folders with such names",
        "mkdir -p hooks config refs/x objects; echo x > hooks/pre-commit; chmod +x hooks/pre-commit; echo '[core]' > HEAD; rm HEAD",
    ),
];

/// Settings of a person's repository that name files: the set-up, and the command of an agent that fills these.
pub(super) const NAMED: &[(&str, &str, &str)] = &[
    (
        "included file",
        "printf '[core]\\n\\tpager = cat\\n' > known/own.inc; git -C known config include.path ../own.inc",
        "printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" >> known/own.inc",
    ),
    (
        "included file that is not there yet",
        "git -C known config include.path ../own.inc",
        "printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" > known/own.inc",
    ),
    (
        "folder of hooks",
        "mkdir known/h; git -C known config core.hooksPath h",
        "cp \"$E\" known/h/pre-commit",
    ),
    (
        "folder of hooks that is not there yet",
        "git -C known config core.hooksPath h",
        "mkdir known/h; cp \"$E\" known/h/pre-commit",
    ),
    (
        "folder of hooks for a repository elsewhere",
        "git init -q --separate-git-dir store n; git --git-dir=store config core.hooksPath h",
        "mkdir n/h; cp \"$E\" n/h/pre-commit",
    ),
    (
        "folder of hooks of a module",
        "mkdir -p .git/modules; git init -q --separate-git-dir .git/modules/n n; \
         git -C n config core.worktree ../../../n; git -C n config core.hooksPath h",
        "mkdir n/h; cp \"$E\" n/h/pre-commit",
    ),
    (
        "folder of hooks for a work tree",
        "git -C known worktree add -q ../t; git -C known config core.hooksPath h",
        "mkdir t/h; cp \"$E\" t/h/pre-commit",
    ),
];
