use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A project in which each way to run `tools/guard.sh` and its kin is there.
fn project() -> (tempfile::TempDir, PathBuf) {
    let tmp = tempfile::tempdir().unwrap();
    let top = tmp.path().canonicalize().unwrap();
    let root = top.join("work");
    write(&root, "tools/guard.sh", "exit 2\n");
    write(&root, "tools/lib.sh", "deny() { exit 2; }\n");
    write(&root, "tools/sources.sh", ". \"$(dirname \"$0\")/lib.sh\"\ndeny\n");
    write(&root, "tools/here.sh", "HERE=$(cd \"$(dirname \"$0\")\" && pwd)\nsource \"$HERE/lib.sh\"\n");
    write(&root, "tools/runs.sh", "if grep -q push; then tools/guard.sh; fi\n");
    write(&root, "guards/__init__.py", "");
    write(&root, "guards/check.py", "import sys\nsys.exit(2)\n");
    write(&root, "py/guard.py", "import json, rules\n");
    write(&root, "py/rules.py", "LIST = []\n");
    write(&root, "js/guard.js", "const rules = require('./rules');\n");
    write(&root, "js/rules.js", "module.exports = [];\n");
    write(&root, "Makefile", "include rules.mk\nguard:\n\tsh tools/guard.sh\n");
    write(&root, "rules.mk", "X = 1\n");
    write(&root, "package.json", r#"{"scripts":{"guard":"sh tools/guard.sh"}}"#);
    write(&root, "env.sh", "cd tools\n");
    write(&root, "tools/env.sh", "cd tools\n");
    write(&root, "G.env", "G=tools/guard.sh\n");
    write(&root, "guard.sh", "exit 0\n");
    write(&root, "tools/guard.js", "process.exit(2);\n");
    write(&root, "tools/guard.awk", "BEGIN { exit 2 }\n");
    write(&root, "tools/awk.sh", "awk -f tools/guard.awk\n");
    write(&root, "tools/sed.sh", "sed -nf tools/guard.awk\n");
    write(&root, ".venv/pyvenv.cfg", "home = /usr/bin\n");
    write(&root, ".venv/bin/pytest", "#!/bin/sh\nexit 2\n");
    write(&root, ".venv/bin/guard", "#!.venv/bin/python\nimport guard\n");
    write(&root, ".venv/lib/guard.py", "1\n");
    write(&top, "homebrew/bin/make", "\0\n");
    for source in ["src/main.rs", "build.rs", "cmd/main.go", "cmd/guard.c", "guards/json.pyc"] {
        write(&root, source, "1\n");
        fs::set_permissions(root.join(source), fs::Permissions::from_mode(0o644)).unwrap();
    }
    for folder in ["fake", "target"] {
        write(&root, &format!("{folder}/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n");
        write(&root, &format!("{folder}/rules.mk"), "X = 1\n");
        write(&root, &format!("{folder}/plugin.py"), "X = 1\n");
    }
    write(&root, "README.md", "Read me.\n");
    fs::set_permissions(root.join("README.md"), fs::Permissions::from_mode(0o644)).unwrap();
    write(&top, "elsewhere/outer.sh", "exit 2\n");
    symlink("../../elsewhere/outer.sh", root.join("tools/linked.sh")).unwrap();
    symlink("tools", root.join("scripts")).unwrap();
    (tmp, root)
}

/// Command, the file that is changed, and true where all that could run stands for what is not named.
const SPELLINGS: &[(&str, &str, bool)] = &[
    ("sh tools/guard.sh", "tools/guard.sh", false),
    ("./tools/guard.sh --strict", "tools/guard.sh", false),
    ("cd tools && sh guard.sh", "tools/guard.sh", false),
    ("cd tools; ./guard.sh", "tools/guard.sh", false),
    ("(cd ./tools && exec bash ./guard.sh)", "tools/guard.sh", false),
    ("sh $PWD/tools/guard.sh", "tools/guard.sh", false),
    ("cd tools && sh \"$PWD/guard.sh\"", "tools/guard.sh", false),
    ("\"$TILLER_PROJECT_DIR\"/tools/guard.sh", "tools/guard.sh", false),
    ("sh \"${CLAUDE_PROJECT_DIR}/tools/guard.sh\"", "tools/guard.sh", false),
    ("sh `pwd`/tools/guard.sh", "tools/guard.sh", false),
    ("sh ABSOLUTE/tools/guard.sh", "tools/guard.sh", false),
    ("ABSOLUTE/tools/../tools/guard.sh", "tools/guard.sh", false),
    ("sh tools/gu*.sh", "tools/guard.sh", true),
    ("for g in tools/gu*.sh; do sh \"$g\"; done", "tools/guard.sh", true),
    (". tools/guard.sh", "tools/guard.sh", false),
    ("source ./tools/guard.sh", "tools/guard.sh", false),
    ("bash -c 'sh tools/guard.sh'", "tools/guard.sh", false),
    ("bash -c \"cd tools && . ./guard.sh\"", "tools/guard.sh", false),
    ("sh < tools/guard.sh", "tools/guard.sh", true),
    ("cat tools/guard.sh | sh", "tools/guard.sh", true),
    ("eval \"$(cat tools/guard.sh)\"", "tools/guard.sh", true),
    ("env -S 'sh tools/guard.sh'", "tools/guard.sh", false),
    ("env A=1 sh tools/guard.sh", "tools/guard.sh", false),
    ("echo x | xargs sh tools/guard.sh", "tools/guard.sh", true),
    ("echo tools/guard.sh | xargs sh", "tools/guard.sh", true),
    ("nohup timeout 5 nice sh tools/guard.sh", "tools/guard.sh", false),
    ("find tools -name guard.sh -exec sh {} ';'", "tools/guard.sh", true),
    ("G=tools/guard.sh; sh $G", "tools/guard.sh", false),
    ("G=$(ls tools/gu*.sh); sh $G", "tools/guard.sh", true),
    ("sh \"$(git rev-parse --show-toplevel)/tools/guard.sh\"", "tools/guard.sh", false),
    ("sh scripts/guard.sh", "tools/guard.sh", false),
    ("sh tools/linked.sh", "../elsewhere/outer.sh", false),
    ("sh tools/sources.sh", "tools/lib.sh", false),
    ("sh tools/here.sh", "tools/lib.sh", false),
    ("cd tools && ./sources.sh", "tools/lib.sh", false),
    ("sh tools/runs.sh", "tools/guard.sh", false),
    ("python3 py/guard.py", "py/guard.py", true),
    ("python3 -u py/guard.py", "py/rules.py", true),
    ("cd py && python3 guard.py", "py/rules.py", true),
    ("python3 -m guards.check", "guards/check.py", true),
    ("python3 -c 'import guards.check'", "guards/check.py", true),
    ("python3 < py/guard.py", "py/guard.py", true),
    ("PYTHONPATH=py python3 -m guard", "py/guard.py", true),
    ("node js/guard.js", "js/rules.js", true),
    ("node -r ./js/rules.js js/guard.js", "js/rules.js", true),
    ("make guard", "Makefile", true),
    ("make -s guard", "rules.mk", true),
    ("make guard", "tools/guard.sh", true),
    ("npm run -s guard", "package.json", true),
    ("npm run guard", "tools/guard.sh", true),
    ("just guard", "tools/guard.sh", true),
    ("some-program-of-others", "tools/guard.sh", true),
    ("PATH=tools:$PATH guard.sh", "tools/guard.sh", true),
    ("bun run guard", "package.json", true),
    ("bun run guard", "tools/guard.sh", true),
    ("deno task guard", "package.json", true),
    ("node --run guard", "tools/guard.sh", true),
    ("node tools/guard", "tools/guard.js", true),
    ("node tools/guard js/rules.js", "tools/guard.js", true),
    ("sh tools/guard", "tools/guard.sh", true),
    ("tools/guard", "tools/guard.sh", true),
    ("sh tools/sources.sh --check", "tools/lib.sh", false),
    ("bash -euo pipefail tools/sources.sh", "tools/lib.sh", false),
    ("for g in tools/guard tools/lib.sh; do sh \"$g\"; done", "tools/guard.sh", true),
    (". tools/env.sh && sh guard.sh", "tools/guard.sh", true),
    ("G=guard.sh; . ./G.env; sh $G", "tools/guard.sh", true),
    ("G=guard.sh\nsource ./G.env && sh ${G}", "tools/guard.sh", true),
    ("G=tools; . $G/lib.sh", "tools/lib.sh", false),
    ("npx eslint .", "tools/guard.js", true),
    ("npx -y vitest@2 run", "tools/guard.js", true),
    ("npx -p a-tool guard", "tools/guard.sh", true),
    ("npx ./tools", "tools/guard.js", true),
    ("uvx pytest -q", "py/guard.py", true),
    ("uvx --from ./py guard", "py/guard.py", true),
    ("pipx run py/guard.py", "py/rules.py", true),
    ("TOP/homebrew/bin/make guard", "rules.mk", true),
    (".venv/bin/pytest -q", "py/guard.py", true),
    (".venv/bin/guard", ".venv/lib/guard.py", true),
    ("awk -f tools/guard.awk", "tools/guard.awk", true),
    ("sh tools/awk.sh", "tools/guard.awk", true),
    ("sh tools/sed.sh", "tools/guard.awk", true),
    ("docker compose run guard", "tools/guard.sh", true),
    ("docker run --rm -v .:/w image sh /w/tools/guard.sh", "tools/guard.sh", true),
    ("podman run --mount type=bind,source=.,target=/w image", "tools/guard.sh", true),
    ("uvicorn guards.check:app", "guards/check.py", true),
    ("cargo run -q --bin guard", "src/main.rs", true),
    ("go run ./cmd", "cmd/main.go", true),
    ("make guard", "cmd/guard.c", true),
    ("cargo clippy", "build.rs", true),
    ("python3 -m guards.check", "guards/json.pyc", true),
    ("make guard", "fake/rules.mk", true),
    ("python3 -m guards.check", "fake/plugin.py", true),
];

/// Each spelling of what a hook runs: a change of the file that it runs is a change of its pins, and nothing else is.
#[test]
fn each_spelling_is_pinned() {
    let mut wrong = Vec::new();
    for (command, file, open) in SPELLINGS {
        let (_tmp, root) = project();
        let command = command.replace("ABSOLUTE", &root.display().to_string());
        let command = command.replace("TOP", &root.parent().unwrap().display().to_string());
        let before = Pins::of(&root, &command);
        let trusted = before.items(&TrustKind::Hook);
        if before.open.is_some() != *open {
            wrong.push(format!("{command}: {:?}", before.open.as_ref().map(|open| &open.why)));
        }
        let now = || Pins::of(&root, &command).changed(&before, &trusted);
        assert_eq!(now(), None, "{command}");
        fs::write(root.join("README.md"), "Read it all.\n").unwrap();
        assert_eq!(now(), None, "{command}: a file that is not run");
        write(&root, file, "touch ran\n");
        let said = now().unwrap_or_default();
        if !said.contains(file.rsplit('/').next().unwrap()) {
            wrong.push(format!("{command}: {file} changed, and it says {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A file that is added is a change, too: it would be run, or loaded in the place of another.
#[test]
fn a_file_that_comes_or_goes_is_a_change() {
    for (command, file) in [
        ("for g in tools/gu*.sh; do sh \"$g\"; done", "tools/guard2.sh"),
        ("python3 py/guard.py", "py/json.py"),
        ("node js/guard.js", "js/other.js"),
        ("make guard", "GNUmakefile"),
        ("[ -f tools/more.sh ] && . tools/more.sh", "tools/more.sh"),
        ("cd tools && sh guard.sh; sh tools/missing.sh", "tools/missing.sh"),
    ] {
        let (_tmp, root) = project();
        let before = Pins::of(&root, command);
        let trusted = before.items(&TrustKind::Hook);
        write(&root, file, "exit 0\n");
        let with = Pins::of(&root, command);
        assert!(with.changed(&before, &trusted).unwrap().contains(file), "{command}");
        let trusted = with.items(&TrustKind::Hook);
        fs::remove_file(root.join(file)).unwrap();
        assert!(Pins::of(&root, command).changed(&with, &trusted).unwrap().contains(file), "{command}");
    }
}

/// A file that a hook writes, or that a known program reads, is no part of it.
#[test]
fn what_is_written_is_not_pinned() {
    for command in [
        "sh tools/guard.sh >> tools/hook.log",
        "sh tools/guard.sh | tee -a out.txt",
        "rustfmt src/*.rs",
        "jq -r .tool_input.command | grep -q push && exit 2",
        "input=$(cat); case \"$input\" in *push*) echo no >&2; exit 2;; esac",
        "git status --short && cargo fmt",
        "echo done; notify-send 'Tiller'",
        "sed -n -e 's/f/g/' | awk -F: '{ print $1 }'",
        "docker run --rm image",
    ] {
        let (_tmp, root) = project();
        for file in ["tools/hook.log", "out.txt", "src/a.rs"] {
            write(&root, file, "1\n");
            fs::set_permissions(root.join(file), fs::Permissions::from_mode(0o644)).unwrap();
        }
        let before = Pins::of(&root, command);
        assert_eq!(before.open, None, "{command}");
        for file in ["tools/hook.log", "out.txt", "src/a.rs", "README.md", "Makefile"] {
            write(&root, file, "2\n");
        }
        assert_eq!(
            Pins::of(&root, command).changed(&before, &before.items(&TrustKind::Hook)),
            None,
            "{command}"
        );
    }
}

/// A check of sources stays as it was trusted while they are edited, and so does what a build leaves.
#[test]
fn what_a_check_does_not_run_is_not_pinned() {
    for (command, file) in [
        ("cargo clippy -q", "src/main.rs"),
        ("cargo +nightly check", "src/main.rs"),
        ("go vet ./...", "cmd/main.go"),
        ("make guard", "target/rules.mk"),
        ("cargo test", "target/plugin.py"),
    ] {
        let (_tmp, root) = project();
        fs::remove_file(root.join("build.rs")).unwrap();
        let before = Pins::of(&root, command);
        assert!(before.open.is_some(), "{command}");
        fs::write(root.join(file), "2\n").unwrap();
        let trusted = before.items(&TrustKind::Hook);
        assert_eq!(Pins::of(&root, command).changed(&before, &trusted), None, "{command}: {file}");
    }
}

/// A compiler runs build scripts and macros, and these are built from sources.
#[test]
fn sources_are_pinned_where_a_compiler_runs_code_of_the_folder() {
    for (file, text, counts) in [
        ("part/build.rs", "", true),
        ("macros/Cargo.toml", "[lib]\nproc-macro = true\n", true),
        ("part/Cargo.toml", "[package]\nbuild = \"made.rs\"\n", true),
        ("part/Cargo.toml", "[dependencies]\nproc-macro2 = \"1\"\n", false),
    ] {
        let (_tmp, root) = project();
        fs::remove_file(root.join("build.rs")).unwrap();
        write(&root, file, text);
        for command in ["cargo check", "cargo clippy -q", "cargo +nightly build", "cargo doc"] {
            let before = Pins::of(&root, command);
            fs::write(root.join("src/main.rs"), format!("// {command}\n")).unwrap();
            let trusted = before.items(&TrustKind::Hook);
            let changed = Pins::of(&root, command).changed(&before, &trusted);
            assert_eq!(changed.is_some(), counts, "{command}, {file}: {changed:?}");
        }
    }
}

/// Programs and what a hook builds are not copied: a mount would keep it from writing them.
#[test]
fn scripts_are_copied_and_what_is_built_is_not() {
    let (tmp, root) = project();
    write(&root, "tools/program", "\u{7f}ELF\0\0\n");
    let place = tmp.path().join("copies");
    fs::create_dir(&place).unwrap();
    for (command, copied) in
        [("sh tools/guard.sh", true), ("tools/program", false), ("make && sh tools/guard.sh", false)]
    {
        let held = Pins::of(&root, command).held(&root);
        assert!(!held.0.is_empty(), "{command}");
        assert_eq!(!held.copies(&place).unwrap().is_empty(), copied, "{command}");
    }
    let pins = Pins::of(&root, "sh tools/guard.sh");
    let held = pins.held(&root);
    assert!(held.copies(&tmp.path().join("no folder")).unwrap().is_empty(), "it runs without a copy");
    write(&root, "tools/guard.sh", "exit 3\n");
    assert_eq!(held.copies(&place), Err("tools/guard.sh".into()));
    fs::remove_file(root.join("tools/guard.sh")).unwrap();
    assert!(held.copies(&place).unwrap().iter().all(|(_, path)| !path.ends_with("guard.sh")));
    assert_eq!(held.changed(), Some("tools/guard.sh"));
}

/// Servers start without a shell; a program that is not known runs what its words name.
#[test]
fn a_server_is_pinned_by_its_words() {
    for (words, file, open) in [
        (&["node", "js/guard.js"][..], "js/rules.js", true),
        (&["./tools/guard.sh"], "tools/guard.sh", false),
        (&["tools/linked.sh"], "../elsewhere/outer.sh", false),
        (&["sh", "-c", "cd tools && . ./lib.sh"], "tools/lib.sh", false),
        (&["python3", "-m", "guards.check"], "guards/check.py", true),
        (&["some-server", "--rules=tools/lib.sh"], "tools/lib.sh", false),
        (&["npx", "-y", "@a/server@1.0"], "node_modules/@a/server/index.js", true),
        (&["uvx", "a-server"], "", false),
        (&["uvx", "a-server", "./README.md"], "", false),
        (&["npx", "-y", "@a/linked"], "node_modules/.store/linked/index.js", true),
        (&["sh", "tools/${NAME}.sh"], "tools/guard.sh", true),
        (&["python3", "tools/${NAME}"], "tools/guard.sh", true),
        (&["uv", "tool", "run", "mcp", "run", "py/guard.py"], "py/rules.py", true),
        (&["tools/guard"], "tools/guard.sh", true),
    ] {
        let (_tmp, root) = project();
        write(&root, "node_modules/@a/server/index.js", "1\n");
        write(&root, "node_modules/.store/linked/index.js", "1\n");
        symlink("../.store/linked", root.join("node_modules/@a/linked")).unwrap();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let pins = || Pins::of_program(&root, "", &words, &[]);
        let before = pins();
        let trusted = before.items(&TrustKind::McpServers);
        assert_eq!(before.open.is_some(), open, "{words:?}: {:?}", before.open);
        assert_eq!(pins().changed(&before, &trusted), None, "{words:?}");
        if !file.is_empty() {
            write(&root, file, "2\n");
            assert!(pins().changed(&before, &trusted).is_some(), "{words:?}: {file}");
        }
    }
    let (_tmp, root) = project();
    let of = |below: &str, env: &[(&str, &str)]| {
        let env: Vec<_> = env.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        Pins::of_program(&root, below, &["./guard.sh".to_owned()], &env)
    };
    assert!(of("tools", &[]).files["tools/guard.sh"].runs);
    assert!(of("tools", &[("NODE_OPTIONS", "--require=./lib.sh")]).open.is_some());
    assert!(of("tools", &[("RULES", "lib.sh")]).files.contains_key("tools/lib.sh"));
    // The same words in two folders are two servers.
    let open = |below: &str| {
        let pins = Pins::of_program(&root, below, &["make".to_owned(), "x".to_owned()], &[]);
        pins.items(&TrustKind::McpServers).iter().map(|item| item.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!([open(""), open("py"), open("js")].concat(), ["`make x`", "`make x` in py", "`make x` in js"]);
}

/// Above the limit the user is asked in each session, and it is said.
#[test]
fn too_many_files_are_asked_about_in_each_session() {
    let (_tmp, root) = project();
    for i in 0..=scope::MOST_FILES {
        fs::create_dir_all(root.join("many")).unwrap();
        fs::write(root.join(format!("many/{i}.py")), "").unwrap();
    }
    let pins = Pins::of(&root, "make guard");
    let items = pins.items(&TrustKind::Hook);
    let item = items.iter().find(|item| item.kind == TrustKind::Unpinned).unwrap();
    assert_eq!(item.path, "`make guard`");
    assert!(item.detail.contains("asked about in each session"), "{}", item.detail);
    let open = pins.open.unwrap();
    assert!(open.could_run.too_much);
    let mut elsewhere = open.could_run.clone();
    elsewhere.too_much = false;
    assert_ne!(elsewhere.hash(), open.could_run.hash());
    // Each file counts, listed or not.
    let now = || Pins::of(&root, "make guard");
    assert_eq!(now().changed(&now(), &items), None);
    for file in ["many/0.py", "many/2000.py", "many/4000.py", "zz/last.sh", "tools/guard.sh"] {
        let (before, trusted) = (now(), now().items(&TrustKind::Hook));
        write(&root, file, "changed\n");
        assert!(now().changed(&before, &trusted).is_some(), "{file}");
    }
}

/// Text of a file stands in the question as far as it can be read at a glance.
#[test]
fn the_question_has_no_long_text_of_files() {
    let (_tmp, root) = project();
    write(&root, "js/long.js", &format!("require('{}\u{202e}');\n", "x\n".repeat(40 << 10)));
    let command = format!("node js/long.js {}", "a".repeat(9_000));
    for item in Pins::of(&root, &command).items(&TrustKind::Hook) {
        assert!(item.detail.chars().count() < 250, "{}", item.detail.len());
        assert!(!item.detail.contains(['\n', '\u{202e}']), "{}", item.detail);
    }
}
