//! Rules and learnings in the program itself: a rule that is violated twice becomes a hook by one key.

use serde_json::{Value, json};
use tiller_testkit::{Script, Wire};

use crate::common::{Place, json_lines, run};
use crate::scenario::Model;
use crate::screen::{decide, idle, press_until, quit, say};

fn becomes_a_hook(cols: u16, rows: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    place.config("[browser]\nenabled = false\n");
    std::fs::create_dir_all(place.home.join("data")).unwrap();
    let memory = "- No deploys on Fridays. [never: terminal \"true deploy*\"]\n";
    std::fs::write(place.home.join("data/MEMORY.md"), memory).unwrap();
    let settings = || std::fs::read_to_string(place.home.join("config/config.toml")).unwrap_or_default();
    let before = settings();
    let mut term = place.term(&["--profile", "full"], cols, rows);
    term.wait_text("Type what you want done");
    let deploy = |term: &mut tiller_testkit::Term, n: usize| {
        model.push(Script::new().call("c1", "terminal", json!({"command": "true deploy now"})));
        model.push(Script::new().text(&format!("Answer {n}.")));
        say(term, "deploy it");
        term.wait_text(&format!("Answer {n}."));
        // Sent while the turn still runs, the next message would belong to it.
        idle(term);
        model.last()
    };
    // It is shown with the first call, and violated by the next two.
    for n in 1..=3 {
        assert!(deploy(&mut term, n).contains("forbids this call: No deploys on Fridays."));
    }
    say(&mut term, "/learnings");
    term.wait("the rule, and both of what it can become", |s| {
        s.contains("violated") && s.contains("deny terminal(true deploy*)") && s.contains("exit 2")
    });
    decide(&mut term, "\x18h", |_| settings() != before);
    let hook = "[[hooks.before-tool-call]]\nmatch = \"terminal(true deploy*)\"\ncommand = \"printf '%s' 'No deploys on Fridays.' >&2; exit 2\"\nblocking = true\n";
    assert_eq!(settings(), format!("{}\n\n{hook}", before.trim_end()));
    let closed = |s: &str| s.lines().last().is_some_and(|l| l.trim_start().starts_with("Shift-Tab mode"));
    press_until(&mut term, "\x1b", closed);
    // It is in force at once, and says why.
    let told = deploy(&mut term, 4);
    assert!(told.contains("Denied by the hook") && told.contains("No deploys on Fridays."), "{told}");
    say(&mut term, "/learnings");
    term.wait("the hook", |s| s.contains("hook") && s.contains("exit 2"));
    decide(&mut term, "\x18z", |_| settings() == before);
    press_until(&mut term, "\x1b", closed);
    deploy(&mut term, 5);
    assert!(!model.last().rsplit("deploy it").next().unwrap().contains("Denied by the hook"));
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn a_rule_that_was_violated_twice_becomes_a_hook_by_one_key_at_118x25() {
    becomes_a_hook(118, 25);
}

#[test]
fn a_rule_that_was_violated_twice_becomes_a_hook_by_one_key_at_80x24() {
    becomes_a_hook(80, 24);
}

#[test]
fn accepting_a_learning_says_why_its_matcher_is_no_rule() {
    let place = Place::new();
    for (number, tool, said) in
        [("1", "terminl", "It is no rule: there is no tool 'terminl'"), ("2", "terminal", "")]
    {
        let row = json!({"pattern": "make x", "fix": format!("make {tool} [never: {tool} \"make x*\"]")});
        let file = place.home.join("learnings.jsonl");
        std::fs::create_dir_all(&place.home).unwrap();
        std::fs::write(&file, format!("{row}\n")).unwrap();
        place.ok(&["learnings", "import", file.to_str().unwrap()]);
        let out = place.run(&["learnings", "accept", number]);
        assert!(out.stdout.contains("active"), "{out:?}");
        assert!(out.stderr.contains(said) && out.stderr.contains("no rule") != said.is_empty(), "{out:?}");
    }
}

/// The user's learnings move to another machine with their state, uses, times and origin, and those of others wait.
#[test]
fn learnings_move_to_another_home_as_they_are() {
    let row = |fix: &str, state: &str, taint: &str, uses: u32| {
        json!({
            "pattern": "git push", "error_type": "error: rejected", "error": "error: rejected", "fix": fix,
            "state": state, "times_used": uses, "created_at": "2025-03-01T10:00:00Z",
            "last_used_at": "2025-05-01T10:00:00Z", "tool": "terminal", "subject": "git push",
            "source": {"agent": "main", "branch": "main", "taint": taint},
        })
    };
    let rows = [
        row("pull before", "active", "person", 7),
        row("ask Ada", "retired", "agent", 0),
        row("wait", "proposed", "web", 0),
    ];
    let file: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let exported = |place: &Place| -> Vec<Value> {
        let mut rows = json_lines(&place.ok(&["learnings", "export"]));
        rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("id")));
        rows
    };
    let (here, there, of_another) = (Place::new(), Place::new(), Place::new());
    let said = "3 new, 0 known, 0 left out. Those that are proposed wait for you in /learnings.\n";
    let out = run(here.tiller(&["learnings", "import", "--mine", "-"]), file.as_bytes());
    assert_eq!(out.stdout, said, "{out:?}");
    let before = exported(&here);
    let of = |fix: &str| before.iter().find(|row| row["fix"] == fix).unwrap();
    for row in &rows {
        let kept = of(row["fix"].as_str().unwrap());
        assert_eq!((&kept["state"], &kept["source"]), (&row["state"], &row["source"]));
        assert_eq!(kept["times_used"], row["times_used"]);
        assert!(kept["last_used_at"].as_str().unwrap().starts_with("2025-05-01T10:00:00"), "{kept}");
    }
    let text: String = before.iter().map(|row| format!("{row}\n")).collect();
    let out = run(there.tiller(&["learnings", "import", "--mine", "-"]), text.as_bytes());
    assert_eq!(out.stdout, said, "{out:?}");
    assert_eq!(exported(&there), before);
    let out = run(of_another.tiller(&["learnings", "import", "-"]), text.as_bytes());
    assert_eq!(out.stdout, "3 new, 0 known, 0 left out. They wait for you in /learnings.\n", "{out:?}");
    for row in exported(&of_another) {
        assert_eq!((&row["state"], &row["source"]["taint"]), (&json!("proposed"), &json!("web")), "{row}");
        assert_eq!((&row["times_used"], &row["last_used_at"]), (&json!(0), &Value::Null), "{row}");
    }
    // They say later that the file is theirs.
    let out = run(of_another.tiller(&["learnings", "import", "--mine", "-"]), text.as_bytes());
    assert_eq!(out.stdout, "0 new, 3 taken over as yours, 0 known, 0 left out.\n", "{out:?}");
    let (mut own, mut wanted) = (exported(&of_another), before);
    for rows in [&mut own, &mut wanted] {
        rows.sort_by_key(|row| row["fix"].to_string());
    }
    assert_eq!(own, wanted);
}
