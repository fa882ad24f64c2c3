//! `tiller sandbox`, and commands of a session that run without a question.

use serde_json::json;
use tiller_testkit::ScriptServer;

use crate::common::{Place, TIMEOUT, calls, poll, says};

/// The ways to confine that this machine has, by their names on the command line.
fn methods(place: &Place) -> Vec<&'static str> {
    let all = place.run(&["sandbox", "test", "--json"]).stdout;
    let present: Vec<_> = [("landlock", "\"Landlock and seccomp\""), ("bubblewrap", "\"bubblewrap, ")]
        .into_iter()
        .filter_map(|(name, words)| all.contains(words).then_some(name))
        .collect();
    if present.len() < 2 {
        eprintln!("skipped: this machine confines only with {present:?}");
    }
    present
}

fn empty() -> Place {
    Place::anthropic(&ScriptServer::start([]))
}

#[test]
fn a_command_writes_in_its_folder_and_nowhere_else() {
    let place = empty();
    for method in methods(&place) {
        let run = |profile: &str, script: &str| {
            place.run(&["sandbox", "run", "--method", method, "--profile", profile, "--", "sh", "-c", script])
        };
        assert_eq!(run("workspace", "echo x > made && cat made").stdout, "x\n", "{method}");
        assert_eq!(run("workspace", "exit 7").code, Some(7), "{method}");
        assert_eq!(run("workspace", "kill -9 $$").code, Some(137), "{method}");
        assert_eq!(run("read", "cat made; echo y > made || exit 2").code, Some(2), "{method}");
        assert_eq!(std::fs::read_to_string(place.work.join("made")).unwrap(), "x\n", "{method}");
        let outside = place.work.parent().unwrap().join("outside");
        run("workspace", &format!("echo x > '{}'", outside.display()));
        assert!(!outside.exists(), "{method}");
        std::fs::remove_file(place.work.join("made")).unwrap();
    }
}

/// Whether the kernel protects it or it is restored afterwards: the hook is not there.
#[test]
fn a_git_hook_does_not_stay() {
    let place = empty();
    for method in methods(&place) {
        let hooks = place.work.join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        let write = "echo evil > .git/hooks/pre-commit; echo [core] > .git/config; true";
        let out = place.run(&["sandbox", "run", "--method", method, "--", "sh", "-c", write]);
        assert_eq!(std::fs::read_dir(&hooks).unwrap().count(), 0, "{method}: {out:?}");
        assert!(!place.work.join(".git/config").exists(), "{method}: {out:?}");
        // Restored, or refused at once where the system calls are supervised.
        let restored = out.code == Some(3) && out.stderr.contains("is protected");
        let refused = out.code == Some(0) && out.stderr.contains("ermission denied");
        assert!(restored || refused, "{method}: {out:?}");
    }
}

#[test]
fn nothing_runs_on_after_the_command() {
    let place = empty();
    for method in methods(&place) {
        // A name that no other process on this machine has.
        let name = format!("left-{}-{method}", std::process::id());
        let script = format!(
            "(setsid sh -c 'touch started; while :; do sleep 0.05; done' {name} &); \
                              until [ -e started ]; do sleep 0.01; done"
        );
        let out = place.run(&["sandbox", "run", "--method", method, "--", "sh", "-c", &script]);
        assert_eq!(out.code, Some(0), "{method}: {out:?}");
        assert!(place.work.join("started").exists(), "{method}");
        let left = || {
            let lines = std::fs::read_dir("/proc").unwrap().flatten();
            let mut lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
            lines.any(|line| String::from_utf8_lossy(&line).contains(&name))
        };
        // One that was killed is still listed until the system has removed it.
        let gone = poll(TIMEOUT, || (!left()).then_some(()));
        assert!(gone.is_some(), "{method}: it lives on");
        std::fs::remove_file(place.work.join("started")).unwrap();
    }
}

/// A command of the table of harmless ones reads what a person may read, but no secrets.
#[test]
fn a_command_that_runs_without_a_question_is_confined() {
    let server = ScriptServer::start([
        calls("c1", "terminal", json!({"command": "cat walnut.txt; echo $TMPDIR"})),
        says("Done."),
    ]);
    let place = Place::anthropic(&server);
    if methods(&place).is_empty() {
        return;
    }
    place.file("walnut.txt", "brown\n");
    place.ok(&["exec", "look"]);
    let list = place.lines(&["sessions", "list", "--exec", "--json"]);
    let shown = place.ok(&["sessions", "show", list[0]["id"].as_str().unwrap()]);
    assert!(shown.contains("brown"), "{shown}");
    // The folder for temporary files of a confined shell.
    assert!(shown.contains("/tiller-sh-"), "{shown}");
}

/// Make runs what the Makefile says even when it only prints: without a question it does so where nothing can be written.
#[test]
fn a_command_that_is_harmless_only_in_the_sandbox_asks_where_there_is_none() {
    for sandbox in ["auto", "off"] {
        let server =
            ScriptServer::start([calls("c1", "terminal", json!({"command": "make -n"})), says("Done.")]);
        let place = Place::anthropic(&server);
        let confined = !methods(&place).is_empty() && sandbox == "auto";
        place.config(&format!("sandbox = \"{sandbox}\"\n"));
        place.file("Makefile", "X := $(shell touch canary)\nall:\n\techo walnut\n");
        let out = place.run(&["exec", "look"]);
        if !std::path::Path::new("/usr/bin/make").exists() {
            println!("skipped: there is no make");
            return;
        }
        let results = server.bodies().last().unwrap()["messages"].to_string();
        assert!(!place.work.join("canary").exists(), "{sandbox}: {results}");
        assert_eq!(results.contains("walnut"), confined, "{sandbox}: {results}");
        assert_eq!(results.contains("needs an approval"), !confined, "{sandbox}: {results}");
        assert_eq!(out.code, Some(if confined { 0 } else { 3 }), "{sandbox}: {out:?}");
    }
    // The Makefile does write where nothing confines it; otherwise the test would show nothing.
    let place = empty();
    place.file("Makefile", "X := $(shell touch canary)\nall:\n\techo walnut\n");
    let _ = place.program("make", &["-n"]).output();
    assert!(place.work.join("canary").exists() || !std::path::Path::new("/usr/bin/make").exists());
}

/// What runs without a question reads no secrets, whichever commands the setting confines besides.
#[test]
fn a_command_that_runs_without_a_question_reads_no_secrets() {
    if !std::path::Path::new("/usr/bin/make").exists() {
        println!("skipped: there is no make");
        return;
    }
    let session = || [calls("c1", "terminal", json!({"command": "make -n"})), says("Done.")];
    for setting in ["read", "auto"] {
        let server = ScriptServer::start([session(), session()].concat());
        for place in both(&server) {
            if methods(&place).is_empty() {
                return;
            }
            place.config(&format!("sandbox = \"{setting}\"\n"));
            for file in [".ssh/id", ".aws/credentials"] {
                let path = place.user.join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "walnut-secret").unwrap();
            }
            let home = place.user.display();
            let read = format!("$(shell cat plain '{home}/.ssh/id' '{home}/.aws/credentials')");
            place.file("Makefile", &format!("X := {read}\nall:\n\techo $(X)\n"));
            place.file("plain", "walnut-plain\n");
            place.ok(&["exec", "look"]);
            let results = server.bodies().last().unwrap()["messages"].to_string();
            assert!(results.contains("walnut-plain"), "{setting}: {results}");
            assert!(!results.contains("walnut-secret"), "{setting}: {results}");
        }
    }
}

/// Places that run with Landlock alone, and with what the machine has.
fn both(server: &ScriptServer) -> [Place; 2] {
    let (mut alone, usual) = (Place::anthropic(server), Place::anthropic(server));
    alone.set("TILLER_TEST_BUBBLEWRAP", "none");
    [alone, usual]
}

/// Writes what it must not, and says whether it could.
const EVIL: &str = "echo evil > .git/hooks/pre-commit; echo evil > .envrc; \
                    touch ../user/outside/new && echo written";

/// The exit code of a run after [`EVIL`]: 3 where its file was held back, since no one could answer whether it stays; 0 where
/// it was refused at once.
fn ended(results: &str) -> i32 {
    if results.contains(".envrc is protected") { 3 } else { 0 }
}

/// What a rule or the mode allows runs in the workspace: it writes there, not elsewhere, and not the protected files.
#[test]
fn an_allowed_command_writes_in_the_workspace_and_nowhere_else() {
    let terminal = |id: &str, command: &str| calls(id, "terminal", json!({ "command": command }));
    let session = || {
        [
            terminal("c1", "sh evil.sh; echo 1 > made; cd sub; export MARK=m; f() { echo f; }"),
            terminal("c2", "f; echo $MARK; pwd; cat ../made"),
            calls("c3", "terminal", json!({"command": "echo job; cd ..; sh evil.sh", "background": true})),
            calls("c4", "process", json!({"action": "poll", "id": "p1", "wait": 20})),
            says("Done."),
        ]
    };
    let server = ScriptServer::start([session(), session()].concat());
    for place in both(&server) {
        if methods(&place).is_empty() {
            return;
        }
        for folder in [place.work.join(".git/hooks"), place.work.join("sub"), place.user.join("outside")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        place.file(".git/config", "[core]\n");
        place.file("evil.sh", EVIL);
        let out = place.run(&["exec", "--profile", "full", "work"]);
        let results = server.bodies().last().unwrap()["messages"].to_string();
        let kept = format!("f\\nm\\n{}\\n1", place.work.join("sub").display());
        assert!(results.contains(&kept), "the shell keeps folder, variables and functions: {results}");
        assert!(results.contains("job"), "{results}");
        assert!(!results.contains("written"), "{results}");
        assert!(!place.user.join("outside/new").exists(), "{results}");
        assert_eq!(std::fs::read_dir(place.work.join(".git/hooks")).unwrap().count(), 0, "{results}");
        assert!(!place.work.join(".envrc").exists(), "{results}");
        // Put back afterwards, or refused at once where the system calls are supervised.
        let told = [".envrc is protected", ".envrc: Permission denied"];
        assert!(told.iter().any(|told| results.contains(told)), "the model is told: {results}");
        assert_eq!(out.code, Some(ended(&results)), "{out:?} {results}");
    }
}

/// AUTO does not leave the sandbox by itself; the person's rule does, and then the floor holds.
#[test]
fn only_a_rule_of_the_person_lets_auto_leave_the_sandbox() {
    for (rules, out) in [("", false), ("outside:\n  - terminal(sh evil.sh)\n", true)] {
        let session = || [calls("c1", "terminal", json!({"command": "sh evil.sh"})), says("Done.")];
        let server = ScriptServer::start([session(), session()].concat());
        for place in both(&server) {
            if methods(&place).is_empty() {
                return;
            }
            std::fs::create_dir_all(place.home.join("config")).unwrap();
            std::fs::write(place.home.join("config/permissions.yaml"), rules).unwrap();
            std::fs::create_dir_all(place.user.join("outside")).unwrap();
            std::fs::create_dir_all(place.work.join(".git/hooks")).unwrap();
            place.file("evil.sh", EVIL);
            let ran = place.run(&["exec", "--profile", "full", "work"]);
            let results = server.bodies().last().unwrap()["messages"].to_string();
            assert_eq!(ran.code, Some(ended(&results)), "{ran:?} {results}");
            assert_eq!(place.user.join("outside/new").exists(), out, "{results}");
            assert_eq!(results.contains("Only the user can let it run outside"), !out, "{results}");
            let audit = place.ok(&["audit"]);
            assert_eq!(audit.contains("outside terminal(sh evil.sh)"), out, "{audit}");
            assert_eq!(std::fs::read_dir(place.work.join(".git/hooks")).unwrap().count(), 0, "{results}");
            assert!(!place.work.join(".envrc").exists(), "{results}");
        }
    }
}

/// Git writes its configuration in a command that the person lets run outside; what makes it run a program is undone.
#[test]
fn git_adds_remotes_outside_but_no_programs() {
    let terminal = |id: &str, command: &str| calls(id, "terminal", json!({ "command": command }));
    let session = || [terminal("c1", "sh work.sh"), terminal("c2", "sh evil.sh"), says("Done.")];
    let server = ScriptServer::start([session(), session()].concat());
    for place in both(&server) {
        if methods(&place).is_empty() {
            return;
        }
        let bare = place.user.join("bare");
        for args in [
            &["init", "-q", "-b", "main"][..],
            &["-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "--allow-empty", "-m", "one"],
            &["init", "-q", "--bare", bare.to_str().unwrap()],
        ] {
            let done = place.program("git", args).status();
            if !done.is_ok_and(|status| status.success()) {
                println!("skipped: there is no git");
                return;
            }
        }
        std::fs::create_dir_all(place.home.join("config")).unwrap();
        let rules = "outside:\n  - terminal(sh work.sh)\n  - terminal(sh evil.sh)\n";
        std::fs::write(place.home.join("config/permissions.yaml"), rules).unwrap();
        let work = format!(
            "git remote add origin '{}' && git push -q -u origin main && echo pushed",
            bare.display()
        );
        place.file("work.sh", &work);
        place.file("evil.sh", "git config core.fsmonitor ./evil && echo configured");
        place.ok(&["exec", "--profile", "full", "work"]);
        let results = server.bodies().last().unwrap()["messages"].to_string();
        let config = place.read(".git/config");
        assert!(results.contains("pushed") && results.contains("configured"), "{results}");
        assert!(
            config.contains("[remote \"origin\"]") && config.contains("merge = refs/heads/main"),
            "{config}"
        );
        assert!(!config.contains("fsmonitor"), "{config}");
        let (_, kept) =
            results.split_once("(core.fsmonitor was set); the changed one is in ").expect(&results);
        let kept = kept.split(['\\', ']', '"']).next().unwrap();
        assert!(std::fs::read_to_string(kept).is_ok_and(|text| text.contains("fsmonitor")), "{kept}");
        assert_eq!(results.matches("its former state was restored").count(), 1, "{results}");
    }
}

/// What the supervisor saw: the path and the program, not the words of an output that says nothing.
#[test]
fn what_the_sandbox_refused_is_named_in_the_result_and_in_the_audit() {
    let actions = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    if !actions.contains("user_notif") {
        println!("skipped: this kernel has no user notification");
        return;
    }
    // Not in /tmp, which is another one in the sandbox.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let outside = folder.path().canonicalize().unwrap();
    let terminal = |id: &str, name: &str, mut args: serde_json::Value| {
        args["command"] = format!("touch {}/{name} 2>/dev/null", outside.display()).into();
        calls(id, "terminal", args)
    };
    let session = || {
        [
            terminal("c1", "new", json!({})),
            terminal("c2", "pty", json!({"pty": true})),
            terminal("c3", "job", json!({"background": true})),
            calls("c4", "process", json!({"action": "poll", "id": "p1", "wait": 60})),
            calls("c5", "terminal", json!({"command": "echo 'x: Permission denied'; false"})),
            says("Done."),
        ]
    };
    let server = ScriptServer::start([session(), session()].concat());
    for place in both(&server) {
        if methods(&place).is_empty() {
            return;
        }
        place.ok(&["exec", "--profile", "full", "work"]);
        let results = server.bodies().last().unwrap()["messages"].to_string();
        let refused = |name: &str| format!("creating {}/{name} (touch)", outside.display());
        for name in ["new", "pty"] {
            assert!(results.contains(&format!("[The sandbox blocked {}]", refused(name))), "{results}");
        }
        assert!(results.contains(&format!("the sandbox blocked {}", refused("job"))), "{results}");
        assert!(results.contains("Only the user can let it run outside"), "{results}");
        assert!(!results.contains("The sandbox may be why"), "what was refused is known: {results}");
        let audit = place.ok(&["audit"]);
        assert!(audit.contains(&refused("new")), "{audit}");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{results}");
    }
}

/// Without a person the answer is no: what is left stays, and the model is told.
#[test]
fn nobody_lets_a_command_remove_many_files() {
    let session = || [calls("c1", "terminal", json!({"command": "rm -rf d"})), says("Done.")];
    let server = ScriptServer::start([session(), session()].concat());
    for place in both(&server) {
        let held = place.run(&["sandbox", "test", "--json"]).stdout;
        let held = held.lines().any(|line| line.contains("\"deletions\"") && line.contains("\"yes\""));
        if !held {
            println!("skipped: deletions are not counted here: {held}");
            continue;
        }
        for n in 0..80 {
            place.file(&format!("d/f{n}"), "mine");
        }
        place.ok(&["exec", "--profile", "full", "work"]);
        let results = server.bodies().last().unwrap()["messages"].to_string();
        // Those of the last moment before the command may be taken for its own.
        let left = std::fs::read_dir(place.work.join("d")).unwrap().count();
        assert!((1..=30).contains(&left), "{left}: {results}");
        assert!(results.contains("The sandbox blocked removing more than 50 files (rm)"), "{results}");
        let audit = place.ok(&["audit"]);
        assert!(audit.contains("removal of 51 files and more stopped"), "{audit}");
    }
}

/// Off is the person's own word. Protected files are put back all the same.
#[test]
fn off_confines_nothing() {
    let server =
        ScriptServer::start([calls("c1", "terminal", json!({"command": "sh evil.sh"})), says("Done.")]);
    let place = Place::anthropic(&server);
    place.config("sandbox = \"off\"\n");
    std::fs::create_dir_all(place.user.join("outside")).unwrap();
    place.file("evil.sh", EVIL);
    let out = place.run(&["exec", "--profile", "full", "work"]);
    // Outside too: the file is held back, and no one could answer whether it stays.
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(place.user.join("outside/new").exists() && !place.work.join(".envrc").exists());
    let results = server.bodies().last().unwrap()["messages"].to_string();
    assert!(results.contains(".envrc is protected"), "{results}");
}

/// A secret file with a second name in the workspace: told at the start, and read by no tool and no command.
#[test]
fn a_hard_link_to_a_secret_is_told_at_the_start_and_not_read() {
    let terminal = |id: &str, command: &str| calls(id, "terminal", json!({ "command": command }));
    let session = || {
        [
            calls("c1", "read_file", json!({"path": "d/notes"})),
            calls("c2", "search", json!({"pattern": "walnut"})),
            terminal("c3", "cat d/notes"),
            terminal("c4", "cp d/notes d/copy; cat d/copy; true | cat d/notes; touch d/.new && echo written"),
            says("Done."),
        ]
    };
    let server = ScriptServer::start([session(), session()].concat());
    for place in both(&server) {
        if methods(&place).is_empty() {
            return;
        }
        std::fs::create_dir_all(place.user.join(".ssh")).unwrap();
        std::fs::write(place.user.join(".ssh/id"), "walnut-secret").unwrap();
        place.file("d/plain", "walnut-plain\n");
        std::fs::hard_link(place.user.join(".ssh/id"), place.work.join("d/notes")).unwrap();
        let out = place.run(&["exec", "--profile", "full", "x"]);
        assert!(out.stderr.contains("is the same file as"), "{out:?}");
        let bodies = server.bodies().iter().map(ToString::to_string).collect::<String>();
        assert!(bodies.contains("walnut-plain"), "{bodies}");
        assert!(!bodies.contains("walnut-secret"), "{bodies}");
    }
}

/// A server in the background answers the shell, in the sandbox's own network.
#[test]
fn a_server_in_the_background_answers_other_commands_of_the_session() {
    let ask = "until [ -e port ]; do sleep 0.05; done; python3 ask.py";
    let server = ScriptServer::start([
        calls("c1", "terminal", json!({"command": "python3 serve.py", "background": true})),
        calls("c2", "terminal", json!({"command": ask, "timeout": 60})),
        says("Done."),
    ]);
    let place = Place::anthropic(&server);
    if methods(&place).is_empty() || !has("python3") {
        println!("skipped: it needs a sandbox and python3");
        return;
    }
    let serve = "import socket, os\ns = socket.socket()\ns.bind((\"127.0.0.1\", 0))\ns.listen()\n\
                 open(\"new\", \"w\").write(str(s.getsockname()[1]))\nos.rename(\"new\", \"port\")\n\
                 c, _ = s.accept()\nc.sendall(b\"walnut\")\n";
    place.file("serve.py", serve);
    let ask = "import socket\nport = int(open(\"port\").read())\n\
               print(socket.create_connection((\"127.0.0.1\", port)).recv(9))\n";
    place.file("ask.py", ask);
    place.ok(&["exec", "--profile", "full", "serve"]);
    let results = server.bodies().last().unwrap()["messages"].to_string();
    assert!(results.contains("b'walnut'"), "{results}");
    let port: u16 = place.read("port").parse().unwrap();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

/// The proxy tells the user what it refused; the command sees it too.
#[test]
fn a_connection_to_a_domain_that_is_not_listed_is_refused() {
    let place = empty();
    let curl = "curl -sS -m 20 http://evil.example/";
    let run = |method: &str| {
        let domain =
            ["sandbox", "run", "--method", method, "--domain", "*.walnut.example", "--", "sh", "-c", curl];
        place.run(&domain)
    };
    if !has("curl") {
        println!("skipped: this needs curl");
        return;
    }
    for method in methods(&place) {
        let out = run(method);
        if method == "landlock" && !tiller_sandbox::Confinement::find().notification {
            assert!(out.stderr.contains("seccomp user notification"), "{out:?}");
            continue;
        }
        assert!(out.stdout.contains("evil.example: it is not listed"), "{out:?}");
        assert!(out.stderr.contains("refused a connection to evil.example"), "{out:?}");
    }
}

/// Whether the system has this program.
fn has(program: &str) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}
