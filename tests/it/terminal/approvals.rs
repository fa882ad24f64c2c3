//! Approvals beside the conversation.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, let_deafness_pass, wait};
use crate::scenario::Model;
use crate::screen::{ASKED, answer, idle, quit, say, unfold};

/// A change of more lines than fit beside the conversation: one sentence names the file once, what the agent said last stays in
/// sight, and the rest scrolls above the answers.
#[test]
fn a_long_change_is_one_sentence_below_what_was_said_last() {
    for (columns, rows) in [(80, 24), (118, 32)] {
        let model = Model::new(Wire::Anthropic);
        let mut place = Place::new();
        place.wire(model.wire, &model.server);
        // The model names the file by its absolute path.
        let path = place.work.join("src/client.py");
        let lines: String = (1..=40).map(|n| format!("line_{n} = {n}\n")).collect();
        let call = json!({"path": path.display().to_string(), "content": lines});
        model.push(Script::new().text("Now the client.").call("c1", "write_file", call));
        model.push(Script::new().text("It is written."));
        let mut term = place.term(&[], columns, rows);
        term.wait_text("Type what you want done");
        say(&mut term, "write a client");
        term.wait_text(ASKED);
        unfold(&mut term);
        // Where the buttons have no room for it, the row above them says it.
        let unread =
            |s: &str| s.contains("[y] after reading") || s.contains("read to the end before approving");
        term.wait("that there is more to read", unread);
        let screen = term.screen();
        assert!(screen.contains("Now the client."), "{screen}");
        assert!(screen.contains("main wants to write src/client.py"), "{screen}");
        assert!(screen.contains("[n] no") && screen.contains("more rows"), "{screen}");
        // The button of the rule names what the rule allows.
        let dialog: Vec<&str> =
            screen.lines().skip_while(|l| !l.contains(ASKED)).filter(|l| !l.contains("always")).collect();
        assert_eq!(dialog.join("\n").matches("client.py").count(), 1, "{screen}");
        // A yes before the end does not count.
        let_deafness_pass();
        term.keys("y");
        term.wait_text("Not yet:");
        assert!(!path.exists(), "{}", term.screen());
        answer(&mut term, "src/client.py", "y");
        wait("the file", || path.exists());
        term.wait_text("It is written.");
        idle(&term);
        assert_eq!(quit(&mut term), 0);
    }
}
