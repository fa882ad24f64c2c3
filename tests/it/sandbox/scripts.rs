//! Scripts that call tools, in the real sandbox of the whole program.

use std::process::Stdio;

use serde_json::json;
use tiller_testkit::{MCP_SERVER, Recorded, ScriptServer, Term};
use tiller_tool::shell::find_program;

use crate::common::{KEY, Place, TIMEOUT, at_work, calls, let_deafness_pass, poll, says, wait};

/// True when scripts can be run here and are confined; else the test says why not.
fn able(place: &Place) -> bool {
    let python = place.program("python3", &["-c", "pass"]).status().is_ok_and(|status| status.success());
    let confined = !place.run(&["doctor"]).stdout.contains("no sandbox");
    if !python || !confined {
        eprintln!("skipped: python3 {python}, sandbox {confined}");
    }
    python && confined
}

/// A server whose model runs this script once, and repeats what came of it.
fn server(code: &'static str) -> ScriptServer {
    ScriptServer::with(move |request: &Recorded, _| {
        let body = request.json();
        let all = body["messages"].as_array().cloned().unwrap_or_default();
        let result = all.iter().rev().find_map(|m| {
            m["content"].as_array()?.iter().find(|block| block["type"] == "tool_result").cloned()
        });
        match result {
            _ if body["tools"].as_array().is_none_or(Vec::is_empty) => says("Title"),
            Some(result) => says(&result["content"].to_string()),
            None => calls("c1", "execute_code", json!({"code": code})),
        }
    })
}

/// In ASK a script reads by itself, and writes by nothing but its calls. It knows no key and has no network.
#[test]
fn a_script_that_was_not_approved_only_reads() {
    let code = "import os, socket, urllib.request\nprint(open('a.txt').read().strip())\nprint('KEY' in str(os.environ))\n\
                try:\n    socket.create_connection(('127.0.0.1', 1), 5)\n    print('network')\nexcept OSError as error:\n    print('no network')\n\
                for name in ('x.txt', '.git/hooks/post-commit', '.tiller/x', '/var/tmp/tiller-x'):\n\
                \x20   try:\n        os.makedirs(os.path.dirname(os.path.abspath(name)), exist_ok=True)\n        open(name, 'w').write('x')\n        print('wrote', name)\n    except OSError:\n        print('kept', name)\n";
    let server = server(code);
    let place = Place::anthropic(&server);
    if !able(&place) {
        return;
    }
    place.file("a.txt", "the content\n");
    let out = place.run(&["exec", "go"]);
    for want in
        ["the content", "False", "no network", "kept x.txt", "kept .git/hooks/post-commit", "kept .tiller/x"]
    {
        assert!(out.stdout.contains(want), "{want}: {out:?}");
    }
    assert!(!out.stdout.contains("wrote") && !out.stdout.contains(KEY), "{out:?}");
    assert!(!place.work.join("x.txt").exists());
}

/// The files that a script sees in each mode: unasked the workspace alone, in AUTO the home folder too; never Tiller's database.
#[test]
fn a_script_sees_no_more_than_its_mode_shows() {
    let code = "import os\nhome = os.environ['HOME']\n\
                for name in ('a.txt', home + '/notes', home + '/.ssh/id', home + '/.gitconfig', '../tiller/data/tiller.db'):\n\
                \x20   try:\n        open(name, 'rb').read()\n        print('read', name)\n    except OSError:\n        print('kept', name)\n";
    let server = server(code);
    let bubblewrap = std::env::var("TILLER_TEST_BUBBLEWRAP").ok();
    for way in [bubblewrap, Some("none".to_owned())] {
        let mut place = Place::anthropic(&server);
        if !able(&place) {
            return;
        }
        if let Some(way) = way {
            place.set("TILLER_TEST_BUBBLEWRAP", &way);
        }
        place.file("a.txt", "the content\n");
        std::fs::create_dir(place.user.join(".ssh")).unwrap();
        for name in ["notes", ".ssh/id", ".gitconfig"] {
            std::fs::write(place.user.join(name), "").unwrap();
        }
        for (mode, notes) in [
            ("read-only", None),
            ("plan", None),
            ("ask", Some(false)),
            ("auto-edit", Some(false)),
            ("full", Some(true)),
        ] {
            let out = place.run(&["exec", "--profile", mode, "go"]);
            let said = format!("{}{}", out.stdout, out.stderr);
            assert!(place.home.join("data/tiller.db").exists());
            let read = |name: &str| {
                let (yes, no) =
                    (said.contains(&format!("read {name}")), said.contains(&format!("kept {name}")));
                assert!(yes != no || notes.is_none() && !yes, "{mode}: {name}: {said}");
                (yes || no).then_some(yes)
            };
            let notes_file = place.user.join("notes").display().to_string();
            assert_eq!(read(&notes_file), notes, "{mode}: {said}");
            let ran = notes.is_some();
            for (name, seen) in [
                ("a.txt".to_owned(), true),
                (place.user.join(".gitconfig").display().to_string(), true),
                (place.user.join(".ssh/id").display().to_string(), false),
                ("../tiller/data/tiller.db".to_owned(), false),
            ] {
                assert_eq!(read(&name), ran.then_some(seen), "{mode}: {said}");
            }
        }
    }
}

/// In AUTO it writes in the workspace, where the protected names stay as they are.
#[test]
fn in_auto_a_script_writes_in_the_workspace_and_no_protected_name() {
    let code = "import os\nopen('x.txt', 'w').write('x')\n\
                for name in ('.git/hooks/post-commit', '.tiller/config.toml'):\n\
                \x20   try:\n        os.makedirs(os.path.dirname(name), exist_ok=True)\n        open(name, 'w').write('evil')\n    except OSError:\n        pass\n";
    let server = server(code);
    let place = Place::anthropic(&server);
    if !able(&place) {
        return;
    }
    place.git(&["init", "-q"]);
    place.run(&["exec", "--profile", "full", "go"]);
    assert_eq!(place.read("x.txt"), "x");
    for name in [".git/hooks/post-commit", ".tiller/config.toml"] {
        let content = std::fs::read_to_string(place.work.join(name)).unwrap_or_default();
        assert!(!content.contains("evil"), "{name}");
    }
}

/// The script and what it started end with Tiller, however that ends.
#[test]
fn a_script_ends_with_tiller() {
    let code = "import subprocess, time\nsubprocess.Popen(['sleep', '3000'], start_new_session=True)\nopen('begun', 'w').close()\n\
                while True:\n    time.sleep(0.1)\n";
    let server = server(code);
    let place = Place::anthropic(&server);
    if !able(&place) {
        return;
    }
    let mut child = place
        .tiller(&["exec", "--profile", "full", "go"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait("the script", || place.work.join("begun").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    wait("its end", || at_work(&place).is_empty());
}

/// Without Python the tool is not in the list, and `doctor` says so.
#[test]
fn without_python_there_is_no_such_tool() {
    let server = ScriptServer::with(|request: &Recorded, _| {
        says(if request.json()["tools"].to_string().contains("execute_code") { "there" } else { "absent" })
    });
    let mut place = Place::anthropic(&server);
    assert_eq!(place.ok(&["exec", "go"]), "there\n");
    place.set("TILLER_TEST_PYTHON", "none");
    assert_eq!(place.ok(&["exec", "go"]), "absent\n");
    let said = place.run(&["doctor"]).stdout;
    assert!(said.contains("python3 was not found: agents have no execute_code"), "{said}");
}

/// A place whose settings name a scripted MCP server; `None`, with words, where scripts cannot be run.
fn with_server(server: &ScriptServer) -> Option<Place> {
    let place = Place::anthropic(server);
    if !able(&place) {
        return None;
    }
    let python = find_program("python3", &place.env)?.display().to_string();
    // Programs in the sandbox see the workspace, not the temporary folders of others.
    place.file("server.py", MCP_SERVER);
    let script = place.work.join("server.py").display().to_string();
    place.config(&format!("[mcp.good]\ncommand = \"{python}\"\nargs = [\"{script}\", \"good\"]\n"));
    Some(place)
}

/// The messages of the last request that holds a result; requests for a title may come after it.
fn told(server: &ScriptServer) -> String {
    let mut all = server.bodies().into_iter().map(|body| body["messages"].to_string());
    all.rfind(|messages| messages.contains("tool_result")).unwrap_or_default()
}

const ASKS_SERVER: &str = "from tiller_tools import mcp\nfor n in range(3):\n    print('said', mcp['good'].echo(text='word %d' % n))\n";

/// Tools of a real MCP server inside a script: freely where a rule allows them.
#[test]
fn a_script_calls_an_mcp_server_as_the_rule_says() {
    let server = server(ASKS_SERVER);
    let Some(place) = with_server(&server) else { return };
    let out = place.run(&["exec", "--allow", "mcp:good:echo", "go"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    for n in 0..3 {
        assert!(out.stdout.contains(&format!("word {n}")), "{out:?}");
    }
    assert!(out.stdout.contains("tool_calls_made: 3"), "{out:?}");
    assert!(!out.stderr.contains("/50"), "no line for each call: {out:?}");
    // The model got one result, which holds what was printed.
    let last = told(&server);
    assert_eq!(last.matches("tool_result").count(), 1, "{last}");
    // Without the rule nobody can be asked, and what would allow it is named.
    server.forget();
    let out = place.run(&["exec", "go"]);
    assert_eq!(out.code, Some(3), "{out:?}");
    let last = told(&server);
    assert!(last.contains("needs an approval") && last.contains("mcp:good:echo"), "{last}");
}

/// Without a rule the calls stand in one dialog, where each opens with its exact arguments.
#[test]
fn calls_of_an_mcp_server_are_asked_about_together() {
    let server = server(ASKS_SERVER);
    let Some(place) = with_server(&server) else { return };
    for (columns, rows) in [(118, 25), (80, 24)] {
        let mut term: Term = place.term(&[], columns, rows);
        term.wait_text("ASK");
        term.keys("go\r");
        term.wait("the question", |screen| {
            screen.contains("wants to make the calls of a script") && screen.contains("each call")
        });
        crate::screen::unfold(&mut term);
        let_deafness_pass();
        let listed = |screen: &str| screen.contains("Calls that the answer is for");
        term.keys("v");
        term.wait("the list", listed);
        term.keys("\x1b[B\r");
        term.wait("its arguments", |screen| screen.contains("word 1") && !screen.contains("word 2"));
        term.keys("\x1b");
        term.wait("the list", listed);
        term.keys("\x1b");
        term.wait("the question", |screen| screen.contains("each call") && !listed(screen));
        let_deafness_pass();
        // The rest that does not fit is read first.
        term.keys("\x1b[6~\x1b[6~");
        term.wait("their sum", |screen| screen.contains("3 calls: 3 x"));
        crate::common::let_pass(std::time::Duration::from_millis(300));
        term.keys("y");
        term.wait("the result", |screen| screen.contains("said word 2"));
        // The screen shows the result before the model has it.
        let last = poll(TIMEOUT, || Some(told(&server)).filter(|last| last.contains("said word 2")));
        assert!(last.is_some(), "{}", told(&server));
    }
}

/// In ASK a script that reads what it wrote is asked about once, with the writes as they will be; after the yes its reads have
/// them, and before it no file has changed.
#[test]
fn a_script_that_reads_what_it_wrote_is_asked_about_once() {
    let code = "from tiller_tools import *\nwrite_file(path='made.txt', content='first line\\n')\n\
                text = read_file(path='made.txt')\nwrite_file(path='copy.txt', content=text.upper())\n\
                print('read', read_file(path='copy.txt').strip())\n";
    let server = server(code);
    let Some(place) = with_server(&server) else { return };
    for (columns, rows) in [(118, 30), (80, 24)] {
        for name in ["made.txt", "copy.txt"] {
            let _ = std::fs::remove_file(place.work.join(name));
        }
        server.forget();
        let mut term: Term = place.term(&[], columns, rows);
        term.wait_text("ASK");
        term.keys("go\r");
        term.wait("the question", |screen| screen.contains("2 calls") && screen.contains("each call"));
        crate::screen::unfold(&mut term);
        assert!(!place.work.join("made.txt").exists() && !place.work.join("copy.txt").exists());
        let_deafness_pass();
        // The rest that does not fit is read first.
        term.keys("\x1b[6~\x1b[6~");
        crate::common::let_pass(std::time::Duration::from_millis(300));
        term.keys("y");
        let last = poll(TIMEOUT, || Some(told(&server)).filter(|last| last.contains("read FIRST LINE")));
        assert!(last.is_some(), "{}\n{}", told(&server), term.screen());
        assert_eq!(
            (place.read("made.txt"), place.read("copy.txt")),
            ("first line\n".into(), "FIRST LINE\n".into())
        );
        assert_eq!(told(&server).matches("tool_result").count(), 1, "asked once");
    }
}
