//! X8: secrets are in no file, and no child sees them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use tiller_testkit::{Reply, Script, ScriptServer, Wire, seeded};

use crate::common::{KEY, Place, let_paste_pass};
use crate::scenario::Model;
use crate::screen::{idle, say};

/// Every file and folder below.
pub(crate) fn walk(dir: &Path, each: &mut impl FnMut(&Path, bool)) {
    each(dir, true);
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            walk(&path, each);
        } else {
            each(&path, false);
        }
    }
}

pub(crate) fn holds(bytes: &[u8], what: &str) -> bool {
    tiller_testkit::holds(bytes, what)
}

/// Keys in the vendors' forms, in their variables.
pub(crate) fn keys() -> Vec<(&'static str, String)> {
    let names = [
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
        "XAI_API_KEY",
        "GROQ_API_KEY",
        "DEEPSEEK_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "NPM_TOKEN",
        "DATABASE_PASSWORD",
        "MY_SECRET",
        "HF_TOKEN",
    ];
    names.iter().enumerate().map(|(n, name)| (*name, format!("zq{n:02}Kx81hfNw27RtbVm59LpQ"))).collect()
}

#[test]
fn x8_secrets_are_in_no_file_and_in_no_childs_environment() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let keys = keys();
    for (name, value) in &keys {
        place.set(name, value);
    }
    // Vendors' keys, as a person pastes them and as a tool prints them.
    let vendors: Vec<&str> = keys[..6].iter().map(|(_, v)| v.as_str()).chain([KEY]).collect();
    place.file("leak.txt", &format!("token: {}\nkey: {KEY}\n", vendors[0]));
    model.push(
        Script::new()
            .text(&format!("Your key is {KEY}."))
            .call("c1", "terminal", json!({"command": "env > seen.txt; cat leak.txt"}))
            .call("c2", "read_file", json!({"path": "leak.txt"})),
    );
    model.push(Script::new().text(&format!("It says {}.", vendors[1])));
    let mut term = place.term(&["--profile", "full"], 100, 30);
    term.wait_text("Type what you want done");
    say(&mut term, &format!("use {} and {KEY} please", vendors[2]));
    term.wait_text("It says");
    idle(&term);
    // A draft is stored, too.
    term.keys(&format!("draft {}", vendors[3]));
    term.wait_text(vendors[3]);
    term.keys("\x03");
    term.wait_gone(vendors[3]);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);

    let env = place.read("seen.txt");
    assert!(env.contains("PATH="), "{env}");
    for (name, value) in keys.iter().map(|(n, v)| (*n, v.as_str())).chain([("ANTHROPIC_API_KEY", KEY)]) {
        assert!(!env.contains(name) && !env.contains(value), "{name} reached a child:\n{env}");
    }
    let mut wrong = Vec::new();
    walk(&place.home, &mut |path, folder| {
        let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        if path != place.home && mode != if folder { 0o700 } else { 0o600 } {
            wrong.push(format!("{}: mode {mode:o}", path.display()));
        }
        // Snapshots contain the person's own files, which must be restored byte for byte.
        if folder || path.starts_with(place.home.join("data/snapshots")) {
            return;
        }
        let bytes = std::fs::read(path).unwrap();
        for key in &vendors {
            if holds(&bytes, key) {
                wrong.push(format!("{} holds {key}", path.display()));
            }
        }
    });
    let exported = place.ok(&["sessions", "export", "last"]);
    wrong.extend(vendors.iter().filter(|k| exported.contains(**k)).map(|k| format!("the export holds {k}")));
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The output of tools is masked for the model as well.
    let last = model.asked()[1]["messages"].to_string();
    assert!(!last.contains(vendors[0]), "{last}");
}

/// The number in row X8.
const SEEDED: usize = 200;

/// Number of ways in which secrets enter.
const WAYS: usize = 8;

/// Every way: pasted, in a file that is read, in a command's output, in search results, in the person's own command
/// line, in the model's text and its title, in its writes, in variables.
#[test]
fn x8_two_hundred_secrets_of_many_kinds_are_in_no_file_and_on_no_screen() {
    let all = seeded(SEEDED, 0x5EED_0008);
    let of = |way: usize| all.iter().enumerate().filter(move |(n, _)| n % WAYS == way).map(|(_, s)| s);
    let lines = |way: usize| of(way).map(|s| format!("{}\n", s.line)).collect::<String>();
    let words = |way: usize| of(way).map(|s| format!("Take this: {}\n\n", s.line)).collect::<String>();
    let title = format!("About {}", all[5].line);
    let replies = std::sync::Mutex::new(std::collections::VecDeque::from([
        Script::new()
            .text(&words(5))
            .call("c1", "read_file", json!({"path": "read.txt"}))
            .call("c2", "terminal", json!({"command": "cat printed.txt; env"}))
            .call("c3", "search", json!({"pattern": "found", "path": "."}))
            .call("c4", "write_file", json!({"path": "written.txt", "content": lines(6)})),
        Script::new().text("All is seen."),
        Script::new().text("The line was heard."),
    ]));
    let server = ScriptServer::with(move |request, _| {
        let tools = request.json()["tools"].as_array().is_some_and(|t| !t.is_empty());
        let script =
            if tools { replies.lock().unwrap().pop_front().unwrap() } else { Script::new().text(&title) };
        Reply::script(Wire::Anthropic, &script)
    });
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &server);
    place.set("TILLER_LOG", "trace");
    for (n, s) in of(7).enumerate() {
        place.set(&format!("VENDOR_{n}_TOKEN"), &s.secret);
    }
    place.file("read.txt", &lines(1));
    place.file("printed.txt", &lines(2));
    let found: String = of(3).map(|s| format!("found {}\n", s.line)).collect();
    place.file("found.txt", &found);
    place.file("mine.txt", &lines(4));
    let mut term = place.term(&["--profile", "full"], 118, 40);
    term.wait_text("Type what you want done");
    term.paste(&lines(0));
    term.wait_text("[paste 1:");
    let_paste_pass(&mut term);
    term.keys("\r");
    term.wait_text("All is seen.");
    idle(&term);
    say(&mut term, "!cat mine.txt");
    term.wait("the line and what it said", |s| s.contains("$ cat mine.txt"));
    idle(&term);
    say(&mut term, "did you see it?");
    term.wait_text("The line was heard.");
    idle(&term);
    // Everything is drawn once, including folded parts.
    for keys in ["\x0f", "\x1b[1;5H", "\x1b[6~", "\x1b[6~", "\x1b[6~", "\x1b[6~", "\x1b[6~", "\x1b[1;5F"] {
        term.keys(keys);
    }
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);

    assert_eq!(place.read("written.txt"), lines(6), "what is written is what was meant");
    let mut wrong = Vec::new();
    let mut look = |what: &str, bytes: &[u8]| {
        for (n, s) in all.iter().enumerate() {
            if holds(bytes, &s.secret) {
                wrong.push(format!("way {}: {what} holds {}", n % WAYS, s.line));
            }
        }
    };
    let mut files = 0;
    walk(&place.home, &mut |path, folder| {
        if !folder {
            files += 1;
            look(&path.display().to_string(), &std::fs::read(path).unwrap());
        }
    });
    assert!(files > 2, "{files} files");
    look("the terminal", &term.raw());
    for args in [
        &["sessions", "export", "last"][..],
        &["sessions", "show", "last"],
        &["sessions", "show", "last", "--json"],
        &["sessions", "list", "--exec"],
        &["sessions", "search", "take"],
        &["audit", "--json"],
        &["costs", "--json"],
        &["doctor"],
        &["config", "--origin"],
    ] {
        look(&args.join(" "), place.run(args).stdout.as_bytes());
    }
    // Results of tools are masked for the model, and no child saw a variable.
    for request in server.requests() {
        let text = request.text();
        for (n, s) in all.iter().enumerate().filter(|(n, _)| [1, 2, 3, 7].contains(&(n % WAYS))) {
            if text.contains(&s.secret) {
                wrong.push(format!("way {}: a request holds {}", n % WAYS, s.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{} finds: {wrong:#?}", wrong.len());
    // Masks are in the places of the secrets.
    let exported = place.ok(&["sessions", "export", "last"]);
    assert!(exported.matches("[redacted ").count() > SEEDED / 2, "{exported}");
}
