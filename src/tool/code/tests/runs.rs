//! What scripts can do.

use std::io::{BufRead, BufReader, Write};

use serde_json::json;
use tiller_protocol::ToolOutcome;
use tiller_protocol::tool::Display;

use super::{bench, output, run, said};
use crate::code::ExecuteCode;
use crate::testing::text_of;

#[tokio::test]
async fn a_script_calls_tools_and_only_what_it_prints_comes_back() {
    let Some(b) = bench() else { return };
    for n in 0..5 {
        b.file(&format!("f{n}.txt"), format!("line one\nsecret number {n}\n"));
    }
    let code = "# Sum of all numbers\nfrom tiller_tools import read_file, search, terminal, write_file\n\
                total = 0\nfor n in range(5):\n    text = read_file(f'f{n}.txt')\n    total += int(text.splitlines()[1].split()[-1])\n\
                write_file('sum.txt', str(total))\nr = terminal('echo out; exit 3')\n\
                print(total, r.exit_code, len(search('secret').splitlines()) >= 5)\n";
    let out = run(&b, code).await;
    let text = text_of(&out.content);
    assert_eq!(out.outcome, ToolOutcome::Ok, "{text}");
    assert_eq!(output(&text).trim(), "10 3 True", "{text}");
    assert!(text.starts_with("status: success\ntool_calls_made: 8\nduration_seconds: "), "{text}");
    assert_eq!(std::fs::read_to_string(b.root.join("sum.txt")).unwrap(), "10");
    let Some(Display::Calls { calls, most: 50, .. }) = out.display else { panic!("{:?}", out.display) };
    let rows: Vec<String> = calls.iter().map(|c| format!("{} {} {}", c.number, c.verb, c.target)).collect();
    assert_eq!(rows[..2], ["1 read f0.txt", "2 read f1.txt"]);
    assert_eq!(rows[5], "6 write sum.txt");
    assert_eq!(crate::Tool::target(&ExecuteCode, &json!({"code": code})), "Sum of all numbers");
}

/// The names that direct calls are understood by are understood in scripts.
#[tokio::test]
async fn other_names_of_tools_and_parameters_are_understood() {
    let Some(b) = bench() else { return };
    b.file("f.txt", "line\n");
    let code = "import tiller_tools\nfrom tiller_tools import read, Read, cat, ReadFile, read_file, write, Bash, grep, apply_patch\n\
                for f in (read, Read, cat, ReadFile, tiller_tools.READ_FILE, read_file):\n    assert f('f.txt') == 'line\\n', f\n    assert f(file_path='f.txt') == 'line\\n', f\n\
                assert read_file(path='f.txt', offset=1) == 'line\\n'\n\
                write(file_path='o.txt', contents='x')\nassert read('o.txt').strip() == 'x'\n\
                assert Bash('exit 3').exit_code == 3\nassert 'f.txt' in grep('line')\n\
                try:\n    read_file(paht='f.txt')\nexcept tiller_tools.ToolError as error:\n    print('paht' in str(error))\n\
                try:\n    tiller_tools.edit('x')\nexcept tiller_tools.ToolError as error:\n    print(error)\n";
    let (outcome, text) = said(&b, code).await;
    assert_eq!(outcome, ToolOutcome::Ok, "{text}");
    let lines: Vec<&str> = output(&text).lines().collect();
    assert_eq!(lines[0], "True", "{text}");
    assert!(lines[1].starts_with("scripts have no tool 'edit'"), "{text}");
}

#[tokio::test]
async fn threads_share_the_connection() {
    let Some(b) = bench() else { return };
    for n in 0..40 {
        b.file(&format!("f{n}.txt"), format!("{n}\n"));
    }
    let code = "from concurrent.futures import ThreadPoolExecutor\nfrom tiller_tools import read_file\n\
                with ThreadPoolExecutor(12) as pool:\n    print(sum(pool.map(lambda n: int(read_file(f'f{n}.txt')), range(40))))\n";
    let (outcome, text) = said(&b, code).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "780"), "{text}");
}

#[tokio::test]
async fn a_failed_call_raises_and_what_there_is_not_is_named() {
    let Some(b) = bench() else { return };
    let code = "import tiller_tools\nfrom tiller_tools import read_file, ToolError, edit_file, terminal\n\
                for act in (lambda: read_file('none.txt'), lambda: edit_file('x'), lambda: tiller_tools._call('web_fetch', {}),\n\
                \x20           lambda: tiller_tools._call('terminal', {'command': 'true', 'background': True})):\n\
                \x20   try:\n        act()\n    except ToolError as error:\n        print(error)\n\
                print(hasattr(tiller_tools, 'mcp'))\n";
    let (outcome, text) = said(&b, code).await;
    assert_eq!(outcome, ToolOutcome::Ok, "{text}");
    let lines: Vec<&str> = output(&text).lines().collect();
    assert!(lines[0].contains("none.txt does not exist"), "{text}");
    assert!(
        lines[1].starts_with("scripts have no tool 'edit_file'. There is: read_file, write_file"),
        "{text}"
    );
    assert!(lines[2].contains("scripts have no tool 'web_fetch'"), "{text}");
    assert!(lines[3].contains("not 'background'"), "{text}");
}

#[tokio::test]
async fn an_error_shows_the_line_of_the_script_and_nothing_of_the_driver() {
    let Some(b) = bench() else { return };
    let (outcome, text) = said(&b, "def f():\n    return 1 / 0\n\nprint('so far')\nf()\n").await;
    assert_eq!(outcome, ToolOutcome::Error);
    assert!(text.starts_with("status: error\n"), "{text}");
    assert_eq!(output(&text).trim(), "so far");
    assert!(text.contains("File \"script.py\", line 2, in f\n    return 1 / 0"), "{text}");
    assert!(!text.contains("driver.py"), "{text}");
    let (outcome, text) = said(&b, "import sys\nsys.exit('no good')\n").await;
    assert_eq!(outcome, ToolOutcome::Error);
    assert!(text.contains("exit: no good"), "{text}");
    assert_eq!(said(&b, "raise SystemExit\n").await.0, ToolOutcome::Ok);
    let (_, text) = said(&b, "def f(:\n").await;
    assert!(text.contains("script.py") && text.contains("SyntaxError"), "{text}");
}

#[tokio::test]
async fn a_session_keeps_variables_and_each_other_run_is_fresh() {
    let Some(b) = bench() else { return };
    b.file("a.txt", "x\n");
    let go = async |code: &str, session: &str| {
        let out = b.call(&ExecuteCode, json!({"code": code, "session": session})).await.unwrap();
        text_of(&out.content)
    };
    let first = go(
        "from tiller_tools import read_file\nn = len(read_file('a.txt'))\ndef twice(x):\n    return 2 * x\n",
        "s",
    )
    .await;
    assert!(first.contains("session s is new"), "{first}");
    let second = go("n += 1\nprint(twice(n), read_file('a.txt').strip())\n", "s").await;
    assert_eq!(output(&second).trim(), "6 x", "{second}");
    assert!(!second.contains("[session"), "{second}");
    let third = go("n += 1\nprint(n)\nraise ValueError\n", "s").await;
    assert!(third.contains("status: error"), "{third}");
    assert_eq!(output(&go("print(n)\n", "s").await).trim(), "4");
    assert!(go("print(n)\n", "other").await.contains("NameError"));
    assert!(said(&b, "print(n)\n").await.1.contains("NameError"));
    let left = b.cx.state.shells.survivors();
    assert!(!left.is_empty(), "the sessions wait");
    assert_eq!(b.cx.state.shells.shutdown().await, 0);
    assert!(b.cx.state.shells.survivors().is_empty());
}

/// `tiller_tools.py` outside of the sandbox: over a socket in the file system.
#[test]
fn the_stub_speaks_to_a_socket_too() {
    let Some(b) = bench() else { return };
    let specs = [crate::Tool::spec(&crate::files::ReadFile)];
    b.file("tiller_tools.py", super::super::stub::source(&specs, &[]));
    let socket = b.root.join("s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let child =
        std::process::Command::new(crate::code::find_python("python3", &b.cx.child_env, &b.root).unwrap())
            .args([
                "-c",
                "from tiller_tools import read_file\nr = read_file('x', end=3)\nprint(repr(r), r.notes)",
            ])
            .env("TILLER_TOOLS_SOCKET", &socket)
            .current_dir(&b.root)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut line = String::new();
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), r#"{"id": 1, "tool": "read_file", "args": {"path": "x", "end": 3}}"#);
    stream.write_all(b"{\"id\":1,\"ok\":true,\"text\":\"1\\tone\\n2\\ttwo\\n[more]\"}\n").unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "'one\\ntwo\\n' ('[more]',)\n");
}

/// What is printed comes while the script runs, line by line, without the mark at its end.
#[tokio::test]
async fn what_a_script_prints_is_shown_while_it_runs() {
    let Some(mut b) = bench() else { return };
    let code = "import os, time\nprint('first', flush=False)\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nprint('last')\n";
    let (cx, root) = (b.cx.clone(), b.root.clone());
    let args = json!({"code": code});
    let mut shown = String::new();
    let mut running = std::pin::pin!(crate::Tool::run(&ExecuteCode, args, &cx));
    let out = loop {
        tokio::select! {
            out = &mut running => break out.unwrap(),
            piece = b.progress.recv() => {
                shown.push_str(&piece.unwrap());
                if shown.contains("first") && !root.join("go").exists() {
                    assert!(!shown.contains("last"), "it waits for the file");
                    std::fs::write(root.join("go"), "").unwrap();
                }
            }
        }
    };
    assert!(shown.starts_with("first"), "it was shown before the end: {shown:?}");
    assert!(!shown.contains('\u{1}'), "{shown:?}");
    assert_eq!(output(&text_of(&out.content)).trim(), "first\nlast");
}

/// A script gets text of strangers as it is, and what it prints of it is in a frame.
#[tokio::test]
async fn what_a_script_prints_of_text_of_strangers_is_framed() {
    let Some(b) = bench() else { return };
    let code = "import json\nfrom tiller_tools import terminal\n\
                out = terminal('curl() { echo [1, 2]; }; curl x')\nprint(json.loads(out)[1])\n";
    let (outcome, text) = said(&b, code).await;
    assert_eq!(outcome, ToolOutcome::Ok, "{text}");
    let framed = crate::foreign::unframed(output(&text));
    assert_eq!(framed, Some(("2".into(), "a script that read the network (curl)")), "{text}");
    let (_, text) = said(&b, "from tiller_tools import terminal\nprint(terminal('echo 3'))\n").await;
    assert_eq!(output(&text).trim(), "3", "{text}");
}

/// The output of a script from a file of variables is masked by the names in it, as that of a command is: at once, and by later scripts
/// of its session, which may hold the text.
#[tokio::test]
async fn values_of_a_file_of_variables_are_masked_in_what_scripts_print() {
    use tiller_protocol::mask::{READS_VARIABLES, Secret};
    let secrets: crate::Secrets = std::sync::Arc::new(|text: &str| {
        let at = text.find("HOST=").filter(|_| text.starts_with(READS_VARIABLES));
        at.map(|at| Secret { range: at + 5..at + 7, name: "variable" }).into_iter().collect()
    });
    let Some(b) = bench().map(|b| b.mask(secrets)) else { return };
    b.file(".env", "HOST=db\n");
    for code in [
        "print(open('.env').read())",
        "import sys, pathlib; sys.stderr.write(pathlib.Path('./.env').read_text())",
        "import subprocess; print(subprocess.run('cat .e*', shell=True, capture_output=True, text=True).stdout)",
    ] {
        let said = said(&b, code).await.1;
        assert!(said.contains("HOST=[redacted variable]"), "{code}: {said}");
    }
    let in_session = async |code: &str| b.say(&ExecuteCode, json!({"code": code, "session": "s"})).await;
    in_session("text = open('.env').read()").await;
    assert!(in_session("print(text)").await.contains("HOST=[redacted variable]"));
    let said = said(&b, "print('HOST=db')").await.1;
    assert!(said.contains("HOST=db"), "another script names no such file: {said}");
}
