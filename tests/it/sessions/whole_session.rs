//! One whole session in a real repository with a real crate, with three wire formats of two vendors: what the person
//! sees, the files, the stored data, and every byte of the requests.

use std::time::Duration;

use serde_json::{Value, json};
use tiller_testkit::{Reply, Script, Term, Wire};

use crate::common::{Place, let_pass};
use crate::scenario::{self, CHECK, FIX, Model, QUESTION, essence};
use crate::screen::{answer, asked, idle, key_lines, say, shell_runs};

#[test]
fn a_whole_session_with_anthropic() {
    whole(Wire::Anthropic);
}

#[test]
fn a_whole_session_with_openai_chat() {
    whole(Wire::OpenaiChat);
}

#[test]
fn a_whole_session_with_openai_responses() {
    whole(Wire::OpenaiResponses);
}

/// The screens of one session, which are the same for every vendor.
struct Seen {
    /// The temporary folder, whose name differs each time.
    root: String,
    text: String,
}

impl Seen {
    fn step(&mut self, what: &str, screen: &str) {
        let lines = key_lines(screen).replace(&self.root, "/TMP");
        self.text.push_str(&format!("== {what}\n{lines}\n"));
    }
}

fn whole(wire: Wire) {
    let model = Model::new(wire);
    let mut place = Place::new();
    place.wire(wire, &model.server);
    if !scenario::lay_out(&mut place) {
        return;
    }
    let root = place.work.parent().unwrap().display().to_string();
    let mut seen = Seen { root, text: String::new() };
    let mut term = place.term(&[], 118, 34);
    term.wait_text("Type what you want done");

    fix(&model, &place, &mut term, &mut seen);
    news(&model, &place, &mut term, &mut seen);
    interrupt(&model, &mut term, &mut seen);
    steer(&model, &place, &mut term, &mut seen);
    leave(&mut term);
    resume(&model, &place, &mut seen);
    go_on(&model, &place);

    assert_eq!(model.left(), 0, "every scripted reply was asked for");
    model.assert_only_grows();
    insta::assert_snapshot!("screens", seen.text);
    files(&place);
    stored(&place, wire);
}

/// The title of the todo list has this count.
fn listed(screen: &str, count: &str) -> bool {
    screen.lines().any(|l| l.contains("│Todo ") && l.contains(count))
}

/// Question, search, edit with approval, failing test, fix, passing test, completing todos.
fn fix(model: &Model, place: &Place, term: &mut Term, seen: &mut Seen) {
    for script in scenario::fix() {
        model.push(script);
    }
    let before = place.read("src/lib.rs");
    say(term, QUESTION);
    asked(term, "fn adds_all");
    let screen = term.wait("the list", |s| listed(s, "0/3"));
    seen.step("a test is to be added", &screen);
    assert_eq!(place.read("src/lib.rs"), before, "the edit waits for the yes");
    answer(term, "fn adds_all", "y");
    let screen = asked(term, "see it fail");
    assert!(screen.contains(CHECK));
    seen.step("the tests are to be run", &screen);
    assert!(place.read("src/lib.rs").contains("fn adds_all"));
    answer(term, "see it fail", "y");
    let screen = asked(term, "numbers.iter().sum()");
    assert!(screen.contains("numbers.iter().skip(1).sum()"), "what goes is shown too:\n{screen}");
    let screen = term.wait("the first item, ticked off", |s| listed(s, "1/3"));
    seen.step("the mistake is to be mended", &screen);
    answer(term, "numbers.iter().sum()", "y");
    let screen = asked(term, "see it pass");
    seen.step("the tests are to be run again", &screen);
    assert_eq!(place.read("src/lib.rs"), scenario::mended());
    answer(term, "see it pass", "y");
    term.wait_text("The sum is right now.");
    idle(term);
    let screen = term.wait("the end of the list, which is done", |s| !listed(s, ""));
    seen.step("all is done", &screen);
    let asked = model.asked();
    assert_eq!(asked.len(), FIX);
    let of = |n: usize| asked[n].to_string();
    assert!(of(1).contains("src/lib.rs\\n4:pub fn sum("), "the search found it: {}", of(1));
    assert!(of(4).contains("test tests::adds_all ... FAILED") && !of(4).contains("adds_all ... ok"));
    assert!(of(6).contains("test tests::adds_all ... ok"), "{}", of(6));
}

/// Another program changes a file that the model has read: the next message reports it in one line.
fn news(model: &Model, place: &Place, term: &mut Term, seen: &mut Seen) {
    // Changes within 0.3 s after a command are attributed to the command.
    let_pass(Duration::from_secs(1));
    let changed = format!("{}// Kept by hand.\n", place.read("src/lib.rs"));
    place.file("src/lib.rs", &changed);
    place.file("later.txt", "x\n");
    // The header counts changed files by git; the watcher reports files before it examines git.
    term.wait_text("main*2");
    model.push(Script::new().text("I have seen it."));
    say(term, "what changed?");
    term.wait_text("I have seen it.");
    seen.step("somebody else changed a file", &idle(term));
    let asked = model.asked();
    let last = list(asked.last().unwrap()).last().unwrap().to_string();
    assert!(
        last.contains("what changed?") && last.contains("src/lib.rs was changed by someone else: 1 line\\n"),
        "{last}"
    );
    assert!(!last.contains("later.txt"), "only what it has read: {last}");
}

/// The conversation in a request.
fn list(body: &Value) -> &Vec<Value> {
    body.get("messages").or(body.get("input")).unwrap().as_array().unwrap()
}

/// Escape while a reply streams: the part so far is kept.
fn interrupt(model: &Model, term: &mut Term, seen: &mut Seen) {
    let body = Script::new().text("I think aloud and").pieces_of(200).body(model.wire);
    let body = String::from_utf8(body).unwrap();
    let at = body.find("I think aloud and").unwrap();
    let end = at + body[at..].find("\n\n").unwrap() + 2;
    model.reply(Reply::sse(&body[..end]).hang());
    say(term, "tell me a story");
    term.wait_text("I think aloud and");
    term.wait_text("Esc stop");
    term.keys("\x1b");
    idle(term);
    seen.step("stopped", &term.wait_text("You stopped the reply; what had arrived was kept"));
}

/// A message while a tool runs: it is sent to the model after the tool's result, within the same turn.
fn steer(model: &Model, place: &Place, term: &mut Term, seen: &mut Seen) {
    let command = "until [ -e gate ]; do sleep .1; done; echo open gate";
    model.push(Script::new().call("s1", "terminal", json!({"command": command})));
    model.push(Script::new().text("Heard you."));
    say(term, "wait at the gate");
    // It only reads and waits, so it needs no approval.
    term.wait("a running command", |s| shell_runs(s) && s.contains("shell   until [ -e gate ]"));
    say(term, "and greet me");
    term.wait_text("steer 1: and greet me");
    place.file("gate", "");
    term.wait_text("Heard you.");
    term.wait_gone("steer 1:");
    seen.step("steered", &idle(term));
    let text = model.last();
    let (result, steered) = (text.rfind("open gate").unwrap(), text.find("and greet me").unwrap());
    assert!(result < steered, "{text}");
    assert!(text.contains("I think aloud and"), "the reply that was cut is still there: {text}");
}

/// Ctrl-D on an empty line quits; the terminal gets its screen back.
fn leave(term: &mut Term) {
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

/// The session continues: once selected from the list, once as the last one.
fn resume(model: &Model, place: &Place, seen: &mut Seen) {
    let mut term = place.term(&["resume"], 118, 34);
    term.wait_text("and greet me");
    // The list of sessions covers it.
    term.wait("the list of sessions", |s| s.contains("Mend the sum") && s.contains("Esc "));
    term.keys("\x1b");
    let screen = idle(&term);
    assert!(!listed(&screen, ""), "the list is done\n{screen}");
    seen.step("resumed", &screen);
    model.push(Script::new().text("Here we are again."));
    say(&mut term, "go on, please");
    term.wait_text("Here we are again.");
    idle(&term);
    assert!(!term.showed(0, |s| s.contains("was interrupted")), "nothing was under way");
    leave(&mut term);

    let mut term = place.term(&["-c"], 118, 34);
    term.wait_text("Here we are again.");
    model.push(Script::new().text("And again."));
    say(&mut term, "once more");
    term.wait_text("And again.");
    seen.step("continued", &idle(&term));
    leave(&mut term);
    let list = place.lines(&["sessions", "list", "--exec", "--json"]);
    assert_eq!(list.len(), 1, "it is the same session: {list:?}");
    assert_eq!(list[0]["title"], "Mend the sum");
}

/// A script continues the same session.
fn go_on(model: &Model, place: &Place) {
    model.push(Script::new().text("Without a screen, too."));
    assert_eq!(place.ok(&["exec", "--continue", "and now?"]), "Without a screen, too.\n");
}

/// Only approved changes are in the folder.
fn files(place: &Place) {
    assert_eq!(place.read("src/lib.rs"), format!("{}// Kept by hand.\n", scenario::mended()));
    let out = place.program("git", &["status", "--porcelain"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), " M src/lib.rs\n?? gate\n?? later.txt\n");
}

/// The tree as it is stored, and as it is exported.
fn stored(place: &Place, wire: Wire) {
    insta::assert_snapshot!(format!("entries_{wire:?}"), scenario::entries(place).join("\n"));
    let entries = place.lines(&["sessions", "show", "last", "--json"]);
    for pair in entries.windows(2) {
        assert_eq!(pair[1]["parent"], pair[0]["id"], "one path, in order");
    }
    let ids: std::collections::BTreeSet<String> = entries.iter().map(|e| e["id"].to_string()).collect();
    assert_eq!(ids.len(), entries.len());
    let exported = place.lines(&["sessions", "export", "last"]);
    for e in &entries {
        let told = exported.iter().filter_map(|line| line.get("entry")).find(|x| x["id"] == e["id"]);
        let told = told.unwrap_or_else(|| panic!("{} is not exported", e["id"]));
        assert_eq!((&told["parent"], &told["body"]), (&e["parent"], &e["body"]));
    }
    // Commands and writes are in the audit, with the person's approval.
    let audit = place.lines(&["audit", "--json"]);
    let of = |tool: &str| audit.iter().filter(|r| r["tool"] == tool).count();
    assert_eq!((of("edit_file"), of("terminal")), (2, 3), "{audit:?}");
}

/// The same turn without a screen stores and prints the same entries.
#[test]
fn exec_stores_what_the_workbench_stores() {
    for wire in [Wire::Anthropic, Wire::OpenaiChat, Wire::OpenaiResponses] {
        let model = Model::new(wire);
        let mut place = Place::new();
        place.wire(wire, &model.server);
        if !scenario::lay_out(&mut place) {
            return;
        }
        for script in scenario::fix() {
            model.push(script);
        }
        let rule = format!("terminal({CHECK})");
        let lines =
            place.lines(&["exec", "--json", "--allow", &rule, "--allow", "edit_file(src/*)", QUESTION]);
        assert_eq!(place.read("src/lib.rs"), scenario::mended());
        let told: Vec<String> = lines
            .iter()
            .filter_map(|e| e.get("node"))
            .filter_map(|e| essence(e, &place))
            .map(|e| e.to_string())
            .collect();
        let kept = scenario::entries(&place);
        assert_eq!(told, kept);
        // The entries that the workbench stored are in the other test's snapshot.
        let seen = snapshot(wire);
        assert!(kept.len() > 2 * FIX, "{kept:#?}");
        for (n, entry) in kept.iter().enumerate() {
            assert_eq!(Some(entry), seen.get(n), "entry {n}");
        }
        model.assert_only_grows();
    }
}

/// The entries that a whole session in the workbench stores.
fn snapshot(wire: Wire) -> Vec<String> {
    let name = format!("tests/it/sessions/snapshots/it__sessions__whole_session__entries_{wire:?}.snap");
    let text = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    text.splitn(3, "---\n").nth(2).unwrap().lines().map(str::to_owned).collect()
}
