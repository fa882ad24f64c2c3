//! How a task was done becomes a skill: offered in a line, written, edited, accepted; or declined for good.

use serde_json::json;
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Wire};

use crate::common::{Place, let_deafness_pass};
use crate::screen::{idle, quit, say, words};

/// Reads five times for a task, and writes a skill when it is asked for one.
fn server() -> ScriptServer {
    ScriptServer::with(|request: &Recorded, _| {
        let messages = request.json()["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.last().map(ToString::to_string).unwrap_or_default();
        let reply = match () {
            () if last.contains("tool_result") && last.contains("`reading` is created") => {
                Script::new().text("The skill is saved.")
            }
            () if last.contains("tool_result") => Script::new().text("All is read."),
            () if last.contains("with skill_manage") => Script::new().call(
                "m1",
                "skill_manage",
                json!({"action": "create", "name": "reading",
                    "content": "---\nname: reading\ndescription: How files are read\n---\nRead them once.\n"}),
            ),
            () if last.contains("read it all") => (0..5).fold(Script::new(), |script, n| {
                script.call(&format!("r{n}"), "read_file", json!({"path": format!("{n}.txt")}))
            }),
            () => Script::new().text("Fine."),
        };
        Reply::script(Wire::Anthropic, &reply)
    })
}

fn place(server: &ScriptServer) -> Place {
    let place = Place::anthropic(server);
    for n in 0..5 {
        place.file(&format!("{n}.txt"), "x\n");
    }
    place
}

fn taken(columns: u16, rows: u16) {
    let server = server();
    let mut place = place(&server);
    place.file("editor.sh", "sed -i 's/once/twice/' \"$1\"\n");
    place.set("EDITOR", "sh editor.sh");
    let mut term = place.term(&["--profile", "full"], columns, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "read it all");
    term.wait_text("All is read.");
    term.wait("the offer", |s| {
        words(s).contains("can be saved as a skill") && words(s).contains("/save-skill")
    });
    // The title of the session is asked for at any time, without tools.
    let turns = || server.bodies().iter().filter(|body| body.to_string().contains("\"tools\"")).count();
    let asked = turns();
    say(&mut term, "thanks");
    term.wait_text("Fine.");
    assert_eq!(turns(), asked + 1, "an offer asks no model");
    say(&mut term, "/save-skill");
    term.wait("the question", |s| {
        s.contains("[t] try it") && s.contains("Read them once.") && s.contains("[e] edit")
    });
    crate::screen::unfold(&mut term);
    let_deafness_pass();
    term.keys("e");
    term.wait("the question about the edited text alone", |s| {
        s.contains("Read them twice.") && !s.contains("Read them once.")
    });
    crate::screen::unfold(&mut term);
    let_deafness_pass();
    term.keys("y");
    term.wait_text("The skill is saved.");
    assert_eq!(quit(&mut term), 0);
    let text = std::fs::read_to_string(place.home.join("config/skills/reading/SKILL.md")).unwrap();
    assert!(text.contains("Read them twice."), "{text}");
}

#[test]
fn an_offered_skill_is_written_edited_and_accepted_at_118x25() {
    taken(118, 25);
}

#[test]
fn an_offered_skill_is_written_edited_and_accepted_at_80x24() {
    taken(80, 24);
}

/// What the user wrote stays in the draft: the question comes again, with the fault, and `e` opens the same text.
#[test]
fn an_edit_with_a_mistake_is_asked_about_again_and_nothing_of_it_is_lost() {
    let server = server();
    let mut place = place(&server);
    place.file(
        "editor.sh",
        "if grep -q once \"$1\"; then sed -i '/^description/d; s/once/twice/' \"$1\"\nelse sed -i 's/^name: reading/&\\ndescription: How to read/' \"$1\"; fi\n",
    );
    place.set("EDITOR", "sh editor.sh");
    let mut term = place.term(&["--profile", "full"], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "read it all");
    term.wait("the offer", |s| words(s).contains("can be saved as a skill"));
    say(&mut term, "/save-skill");
    term.wait("the question", |s| s.contains("[t] try it") && s.contains("Read them once."));
    crate::screen::unfold(&mut term);
    let_deafness_pass();
    term.keys("e");
    term.wait("the fault", |s| {
        words(s).contains("your text cannot be used")
            && words(s).contains("description")
            && s.contains("[e] edit")
    });
    crate::screen::unfold(&mut term);
    let_deafness_pass();
    term.keys("e");
    term.wait("the question without a fault", |s| {
        s.contains("Read them twice.") && s.contains("How to read") && !words(s).contains("cannot be used")
    });
    crate::screen::unfold(&mut term);
    let_deafness_pass();
    term.keys("y");
    term.wait_text("The skill is saved.");
    assert_eq!(quit(&mut term), 0);
    let text = std::fs::read_to_string(place.home.join("config/skills/reading/SKILL.md")).unwrap();
    assert!(text.contains("Read them twice.") && text.contains("description: How to read"), "{text}");
}

#[test]
fn a_declined_offer_does_not_come_again_also_not_in_a_new_session() {
    let server = server();
    let place = place(&server);
    let mut term = place.term(&["--profile", "full"], 80, 24);
    term.wait_text("Type what you want done");
    say(&mut term, "read it all");
    term.wait("the offer", |s| words(s).contains("can be saved as a skill"));
    say(&mut term, "/save-skill never");
    term.wait("the answer", |s| words(s).contains("not offered after tasks any more"));
    assert_eq!(quit(&mut term), 0);
    let mut term = place.term(&["--profile", "full"], 80, 24);
    term.wait_text("Type what you want done");
    say(&mut term, "read it all");
    term.wait_text("All is read.");
    say(&mut term, "thanks");
    term.wait_text("Fine.");
    idle(&term);
    assert!(!term.showed(0, |s| words(s).contains("can be saved as a skill")), "{}", term.screen());
    assert_eq!(quit(&mut term), 0);
}
