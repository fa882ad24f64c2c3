//! Scripts that call tools, in the real sandbox of the whole program.

use std::process::Stdio;

use serde_json::json;
use tiller_testkit::{Recorded, ScriptServer};

use crate::common::{KEY, Place, at_work, calls, says, wait};

/// Whether scripts can be run here and are confined; else the test says why not.
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
