//! Pastes without marks at the speeds at which terminals, ssh and dictation send them; and typing, which stays typing.

use tiller_protocol::command::{AskCommand, QueueCommand, SessionCommand, TurnCommand};
use tiller_protocol::event::AskEvent;
use tiller_protocol::{AgentCommand, Ask, AskBody, AskId, CommandBody, EventBody, SeqIds};

use super::*;
use crate::app::effect::Task;
use crate::app::msg::Msg;
use crate::app::state::Owner;
use crate::input::Decoder;
use crate::panel::View;
use crate::testing::{Random, Robot};

/// A robot whose keys come as bytes, by the way of the loop.
struct Desk {
    r: Robot,
    decoder: Decoder,
    bursts: Bursts,
}

impl Desk {
    fn new(keymap: &str) -> Self {
        let ui = tiller_config::schema::Ui { keymap: keymap.into(), ..tiller_config::schema::Ui::default() };
        Self { r: Robot::with(80, 24, ui), decoder: Decoder::default(), bursts: Bursts::default() }
    }

    fn now(&self) -> Duration {
        use tiller_protocol::Clock;
        self.r.clock.mono()
    }

    /// Bytes come, and are read at once.
    fn bytes(&mut self, bytes: &[u8]) {
        self.late(bytes, Duration::ZERO);
    }

    /// Bytes are read that came while the program was busy for so long.
    fn late(&mut self, bytes: &[u8], busy: Duration) {
        let mut inputs = Vec::new();
        self.decoder.feed(bytes, &mut inputs);
        let now = self.now();
        let arrivals = arrivals(&inputs, now - busy, now);
        for (input, arrival) in inputs.into_iter().zip(arrivals) {
            let ended = self.bursts.before(&input, &arrival);
            self.update(ended);
            let inputs = self.bursts.take(input, &arrival, |key| self.r.app.key_use(key));
            self.update(inputs);
        }
    }

    fn update(&mut self, inputs: Vec<Input>) {
        inputs.into_iter().for_each(|input| self.r.app.update(Msg::Input(input)));
    }

    /// Time passes, with the timers of the loop.
    fn pass(&mut self, milliseconds: u64) {
        let end = self.now() + Duration::from_millis(milliseconds);
        loop {
            let letter = self.r.app.keys.held.as_ref().map(|held| held.until);
            let next = self.bursts.due().into_iter().chain(letter).chain([end]).min().unwrap().min(end);
            self.r.clock.advance(next.saturating_sub(self.now()));
            if self.bursts.due().is_some_and(|due| due <= next) {
                let ended = self.bursts.end();
                self.update(ended);
            }
            if self.r.app.has_due_letter() {
                self.r.app.update(Msg::Tick);
            }
            if next == end {
                return;
            }
        }
    }

    fn draft(&self) -> String {
        let panel: &dyn std::any::Any = self.r.app.panel(Owner::View(View::Composer)).unwrap();
        panel.downcast_ref::<crate::panel::composer::Composer>().unwrap().draft_text()
    }

    /// Returns what was sent, run, answered or ended.
    fn done(&mut self) -> Vec<String> {
        self.r.wait(Duration::from_millis(1));
        let acts = |c: &&CommandBody| {
            matches!(
                c,
                CommandBody::Turn(TurnCommand::Submit { .. } | TurnCommand::Shell { .. })
                    | CommandBody::Ask(AskCommand::Answer { .. })
                    | CommandBody::Agent(AgentCommand::Spawn { .. })
                    | CommandBody::Queue(QueueCommand::Mode { .. })
                    | CommandBody::Session(SessionCommand::Open { .. } | SessionCommand::Fork { .. })
            )
        };
        let mut done: Vec<String> =
            self.r.commands().into_iter().filter(acts).map(|c| format!("{c:?}")).collect();
        let ends = |t: &&Task| matches!(t, Task::Quit | Task::Leave | Task::Suspend(_));
        done.extend(self.r.tasks.iter().filter(ends).map(|_| "it ends".to_owned()));
        done
    }
}

/// One of each kind of question.
fn questions() -> Vec<Ask> {
    let mut all = crate::dialog::question::program::samples();
    all.extend([
        crate::dialog::question::clarify::granting_sample(),
        crate::dialog::question::approval::sample_ask(),
    ]);
    let ids = SeqIds::default();
    all.iter_mut().for_each(|ask| ask.id = AskId::fresh(&ids, crate::testing::START));
    all
}

fn ask(d: &mut Desk, ask: &Ask) {
    let body = match &ask.body {
        AskBody::Permission(_) => AskEvent::PermissionAsked { ask: ask.clone() },
        _ => AskEvent::QuestionAsked { ask: ask.clone() },
    };
    d.r.event(EventBody::Ask(body));
}

fn quit() -> Box<crate::dialog::confirm::Confirm> {
    Box::new(crate::dialog::confirm::Confirm::new("Quit?", "", "quit", Vec::new()))
}

const LINES: &[&str] = &[
    "!touch x",
    "!!touch x",
    "/quit",
    "/clear",
    "y",
    "yes, once",
    "n",
    "1",
    "A",
    "s",
    "some words of a sentence",
    "?",
    "@src/a.rs:10-40",
    "# a heading",
    "",
    "    indented",
    "q",
    "dd",
    "ä and 漢",
    "jk",
    ":q!",
];

/// A text of several lines, as it is pasted, and as it is kept.
fn content(random: &mut Random) -> (String, String) {
    loop {
        let ending = ["\r", "\n", "\r\n"][random.below(3) as usize];
        let most = if random.below(8) == 0 { 30 } else { 4 };
        let count = 2 + random.below(most);
        let mut lines: Vec<&str> =
            (0..count).map(|_| LINES[random.below(LINES.len() as u64) as usize]).collect();
        lines[0] = lines[0].trim_start();
        if random.below(2) == 0 {
            lines.push("");
        }
        let text = lines.join(ending);
        // The first line end behind a pause is a key of its own, and the only one behind a line may be.
        let inside = lines.len() > 2 || !lines[1].is_empty();
        if !lines[0].is_empty() && text.chars().count() > 3 && inside {
            return (text, lines.join("\n"));
        }
    }
}

/// The pieces in which it comes, each with the milliseconds before it.
fn pieces(random: &mut Random, text: &str, most: u64) -> Vec<(u64, Vec<u8>)> {
    let pace = 1 + random.below(20);
    if random.below(4) == 0 {
        return vec![(0, text.as_bytes().to_vec())];
    }
    let most = if random.below(2) == 0 { 1 } else { most };
    let mut left: Vec<char> = text.chars().collect();
    let mut all = Vec::new();
    while !left.is_empty() {
        let count = (1 + random.below(most)).min(left.len() as u64);
        let piece: String = left.drain(..count as usize).collect();
        // A line end and its second byte may be parted, letters are not.
        all.push((pace * count, piece.into_bytes()));
    }
    all
}

fn paste(d: &mut Desk, random: &mut Random, text: &str, most: u64) {
    for (pause, bytes) in pieces(random, text, most) {
        d.pass(pause);
        d.bytes(&bytes);
    }
    d.pass(400);
}

/// The text of a draft with its blocks put out.
fn whole(d: &mut Desk) -> String {
    for _ in 0..3 {
        if d.draft().contains("[paste ") || d.draft().chars().any(|c| u32::from(c) >= 0xF_0000) {
            d.r.app.act(crate::keymap::action::Action("composer.unfold"));
        }
    }
    d.draft()
}

fn u14(seed: u64, rounds: u32) {
    let mut random = Random(seed);
    let all = questions();
    for round in 0..rounds {
        let vim = random.below(4) == 0;
        let mut d = Desk::new(if vim { "vim" } else { "default" });
        let (text, kept) = content(&mut random);
        let stage = random.below(8);
        let mut before = String::new();
        let mut most = 4;
        match stage {
            0 => {}
            1 => {
                d.r.run("type begun:");
                before = "begun:".into();
            }
            // A question that takes keys, and one that does not yet.
            2 | 3 => {
                ask(&mut d, &all[random.below(all.len() as u64) as usize]);
                d.r.wait(Duration::from_millis(if stage == 2 { 600 } else { 100 }));
            }
            4 => {
                d.r.push(quit());
                d.r.wait(Duration::from_millis(600));
            }
            // A question that is folded over a draft.
            5 => {
                d.r.run("type begun:");
                before = "begun:".into();
                ask(&mut d, &all[random.below(all.len() as u64) as usize]);
                d.r.wait(Duration::from_millis(600));
            }
            // A pane, and the commands of vim.
            6 => {
                d.r.run("alt-3");
                most = 1;
            }
            _ if vim => {
                d.r.run("type x; esc; wait 5000; backspace");
                before = d.draft();
                most = 1;
            }
            _ => {}
        }
        d.r.clear();
        d.pass(3000);
        let told = format!("seed {seed:#x}, round {round}, stage {stage}, vim {vim}: {text:?}");
        paste(&mut d, &mut random, &text, most);
        assert_eq!(d.done(), [""; 0], "{told}\n{}", d.r.screen());
        let draft = whole(&mut d);
        let field = draft == before && stage == 2;
        // The caret stands before the text, or behind it.
        let wanted = if stage == 7 && vim { kept + &before } else { before.clone() + &kept };
        assert!(field || draft == wanted, "{told}\n{draft:?}\n{}", d.r.screen());
    }
}

#[test]
fn u14_a_paste_without_marks_is_text() {
    u14(0x1414_0001, 200);
}

/// Messages that were sent.
fn sent(d: &mut Desk) -> Vec<String> {
    d.r.wait(Duration::from_millis(1));
    let text = |c: &CommandBody| match c {
        CommandBody::Turn(TurnCommand::Submit { message, .. }) => Some(message.text.clone()),
        _ => None,
    };
    d.r.commands().into_iter().filter_map(text).collect()
}

#[test]
fn a_person_who_types_sends() {
    let mut random = Random(0x5eed);
    for round in 0..40 {
        let mut d = Desk::new("default");
        let text = ["ok", "yes", "look at the tests again, and mend them", "aa bb"][round % 4];
        for c in text.chars() {
            d.pass(30 + random.below(200));
            d.bytes(c.encode_utf8(&mut [0; 4]).as_bytes());
            assert_eq!(d.bursts.due(), None, "a letter is on the screen at once");
        }
        // Also when the last two keys are hit nearly together.
        let roll = random.below(3) == 0;
        d.pass(if roll { 1 + random.below(25) } else { 30 + random.below(200) });
        d.bytes(b"\r");
        assert_eq!(d.bursts.due().is_some(), roll, "only behind a fast key it waits");
        d.pass(100);
        assert_eq!(sent(&mut d), [text], "round {round}, roll {roll}");
    }
}

#[test]
fn a_key_that_is_held_down_repeats() {
    for pace in [16, 33] {
        let mut d = Desk::new("default");
        let hold = |d: &mut Desk, bytes: &[u8]| {
            d.pass(1000);
            d.bytes(bytes);
            d.pass(250);
            for _ in 0..50 {
                d.bytes(bytes);
                d.pass(pace);
                assert_eq!(d.bursts.due(), None, "it acts at once");
            }
        };
        hold(&mut d, b"a");
        assert_eq!(d.draft(), "a".repeat(51));
        hold(&mut d, b"\x7f");
        assert_eq!(d.draft(), "");
        hold(&mut d, b"b");
        d.pass(40);
        d.bytes(b"\r");
        assert_eq!(sent(&mut d), ["b".repeat(51)]);
        // The moves of a list, and its other letters.
        d.r.run("alt-3");
        for key in [b"j", b"o"] {
            let before = d.r.app.keys.log.len();
            hold(&mut d, key);
            let other = usize::from(key == b"j") * 51;
            assert!(d.r.app.keys.log.len() >= before + other, "{pace} {:?}", d.r.app.keys.log);
        }
        assert_eq!(d.draft(), "");
    }
}

/// Enter, and at once the next words.
#[test]
fn words_directly_behind_an_enter_do_not_hold_it_back() {
    for together in [true, false] {
        let mut d = Desk::new("default");
        d.bytes(b"first");
        d.pass(200);
        d.bytes(if together { b"\ra" } else { b"\r" });
        for c in b"nd then more" {
            d.pass(60);
            d.bytes(&[*c]);
        }
        assert_eq!(sent(&mut d), ["first"]);
        let a = if together { "a" } else { "" };
        assert_eq!(d.draft(), format!("{a}nd then more"));
    }
}

/// The program was busy, and reads at once what came one after the other.
#[test]
fn what_was_typed_while_the_program_was_busy_is_typing() {
    for (busy, text, typed) in [
        (400, "ok\r", true),
        (1000, "again please\r", true),
        (70, "k", true),
        (400, "!touch x\r/quit\rand more of it\r", false),
        (120, "!touch x\r", false),
        (120, "one\rtwo\r", false),
    ] {
        let mut d = Desk::new("default");
        d.pass(busy);
        d.late(text.as_bytes(), Duration::from_millis(busy));
        d.pass(400);
        if typed && text.ends_with('\r') {
            assert_eq!(sent(&mut d), [text.trim_end()], "{busy} ms");
        } else {
            assert_eq!(d.done(), [""; 0], "{busy} ms: {text}");
            let line = text.strip_suffix('\r').filter(|line| !line.contains('\r'));
            assert_eq!(d.draft(), line.unwrap_or(text).replace('\r', "\n"), "{busy} ms");
        }
    }
    // A pause in the middle of a paste, because a frame was drawn.
    let mut d = Desk::new("default");
    for piece in ["go", "\r!", "touch", " x\r/q", "uit\r"] {
        d.bytes(piece.as_bytes());
        d.r.clock.advance(Duration::from_millis(45));
        d.late(b"1", Duration::from_millis(45));
    }
    d.pass(400);
    assert_eq!(d.done(), [""; 0]);
    assert_eq!(d.draft(), "go1\n!1touch1 x\n/q1uit\n1");
}

/// A script sends its message and the Enter behind it in one: that is a message. A command needs a person's Enter.
#[test]
fn a_single_line_with_its_end_is_sent_unless_it_would_run() {
    let long = "words of a message that is longer than what is typed at once ".repeat(3);
    let longer = "w".repeat(9000);
    for pace in [0, 1, 20] {
        for text in ["look at the tests", "ok then", &long, &longer] {
            if pace > 0 && text.len() > 999 {
                continue;
            }
            let mut d = Desk::new("default");
            for chunk in (text.to_owned() + "\r").as_bytes().chunks(if pace == 0 { 16 << 10 } else { 1 }) {
                assert_eq!(sent(&mut d), [""; 0]);
                d.bytes(chunk);
                d.pass(pace);
            }
            d.pass(200);
            assert_eq!(sent(&mut d).len(), 1, "{pace} ms: {text}\n{}", d.r.screen());
            assert_eq!(d.draft(), "");
        }
        for text in ["!touch x", "/quit", "/clear", "!!touch x", "  !touch x", "# to memory"] {
            let mut d = Desk::new("default");
            for c in (text.to_owned() + "\r").as_bytes() {
                d.bytes(&[*c]);
                d.pass(pace);
            }
            d.pass(200);
            assert_eq!(d.done(), [""; 0], "{pace} ms: {text}");
            assert_eq!(d.draft(), text);
            assert!(d.r.screen().contains("Enter sends it"), "{}", d.r.screen());
            d.bytes(b"\r");
            assert_eq!(d.draft(), "", "{pace} ms: {text}");
        }
        // What a person has begun is a command as well.
        let mut d = Desk::new("default");
        d.r.run("type !");
        d.pass(500);
        d.bytes(b"touch x\r");
        d.pass(200);
        assert_eq!((d.done(), d.draft().as_str()), (Vec::new(), "!touch x"));
        // A fast typist runs it.
        d.r.clear();
        d.bytes(b"y");
        d.pass(20);
        d.bytes(b"\r");
        d.pass(200);
        assert_eq!(d.done().len(), 1);
    }
    // A carriage return with a line feed is one line end.
    let mut d = Desk::new("default");
    d.bytes(b"look again\r\n");
    d.pass(200);
    assert_eq!((sent(&mut d), d.draft().as_str()), (vec!["look again".to_owned()], ""));
    d.r.clear();
    // The rest of a paste that a slow connection parts is no message.
    d.bytes(b"one\rtwo\r");
    d.pass(400);
    d.bytes(b"three and four\r");
    d.pass(80);
    d.bytes(b"f");
    d.pass(200);
    assert_eq!((d.done(), d.draft().as_str()), (Vec::new(), "one\ntwo\nthree and four\nf"));
    d.bytes(b"\r");
    assert_eq!(sent(&mut d).len(), 1);
    // At a question it answers nothing: it is a message.
    let mut d = Desk::new("default");
    let approval = crate::dialog::question::approval::sample_ask();
    ask(&mut d, &approval);
    d.r.wait(Duration::from_millis(600));
    d.r.clear();
    d.bytes(b"yes please\r");
    d.pass(400);
    let done = d.done();
    assert!(done.len() == 1 && done[0].contains("yes please") && done[0].contains("Submit"), "{done:?}");
}

/// Text of one line is typing: it acts when the person presses Enter behind it.
#[test]
fn a_line_without_its_end_acts_by_the_enter_of_the_person() {
    for pace in [0, 5, 20] {
        let mut d = Desk::new("default");
        for c in "!touch x".chars() {
            d.bytes(&[c as u8]);
            d.pass(pace);
        }
        d.pass(200);
        assert_eq!(d.done(), [""; 0]);
        assert_eq!(d.draft(), "!touch x");
        d.bytes(b"\r");
        assert_eq!(d.done().len(), 1, "{pace} ms: {:?}", d.r.commands());
    }
}

#[test]
fn after_a_marked_paste_keys_act_at_once() {
    let mut d = Desk::new("default");
    d.bytes(b"\x1b[200~hello\x1b[201~");
    let mut rest = Vec::new();
    d.decoder.flush(&mut rest);
    d.bytes(b" you\r");
    assert_eq!(d.bursts.due(), None);
    assert_eq!(sent(&mut d), ["hello you"]);
}

#[test]
fn a_long_paste_is_one_block_with_its_begin() {
    for pace in [0, 1, 20] {
        for text in ["line\r".repeat(60), "w".repeat(3) + &"ord ".repeat(300)] {
            let mut d = Desk::new("default");
            d.r.run("type look:");
            d.pass(1000);
            for chunk in text.as_bytes().chunks(if pace == 0 { 16 << 10 } else { 1 }) {
                d.bytes(chunk);
                d.pass(pace);
            }
            d.pass(400);
            let draft = d.draft();
            assert!(draft.starts_with("look:") && draft.chars().count() == 6, "{pace}: {draft:?}");
            assert_eq!(whole(&mut d), format!("look:{}", text.replace('\r', "\n")));
        }
    }
}

/// Control characters in a paste do nothing, as in a marked one; a program that dictates corrects itself.
#[test]
fn control_characters_in_a_paste_do_not_act() {
    let mut d = Desk::new("default");
    d.bytes(b"one\r\x03two\x04\x18q\x1b\r\x1b[<65;5;5Mt\x1bhree\x15\x10");
    d.pass(400);
    assert_eq!(d.done(), [""; 0]);
    assert_eq!((d.draft().as_str(), d.r.app.layers.len()), ("one\ntwoq\nthree", 0));
    let mut d = Desk::new("default");
    d.bytes(b"one\rtwp\x7fo and mpre\x7f\x7f\x7fore\r");
    d.pass(400);
    assert_eq!(d.done(), [""; 0]);
    assert_eq!(d.draft(), "one\ntwo and more\n");
    // Behind it a person presses what they like.
    d.pass(100);
    d.bytes(b"\x1b\r");
    assert_eq!(d.draft(), "one\ntwo and more\n\n");
    d.bytes(b"\r");
    assert_eq!(sent(&mut d), ["one\ntwo and more"]);
}

/// A dialog that has no use for a paste hands it to the draft, and nothing in it is answered.
#[test]
fn a_dialog_keeps_what_is_pasted_over_it() {
    for text in ["yo", "yes\rplease\r", "no"] {
        for pace in [0, 20] {
            let mut d = Desk::new("default");
            d.r.push(quit());
            d.r.wait(Duration::from_millis(600));
            for chunk in text.as_bytes().chunks(if pace == 0 { 99 } else { 1 }) {
                d.bytes(chunk);
                d.pass(pace);
            }
            d.pass(400);
            assert_eq!((d.done().len(), d.r.app.layers.len()), (0, 1), "{text:?}\n{}", d.r.screen());
            assert_eq!(d.draft(), text.replace('\r', "\n"));
            d.bytes(b"y");
            d.pass(100);
            assert_eq!(d.r.app.layers.len(), 0, "one key answers");
        }
    }
}

/// Keys that a person types where they decide act alike at each speed.
#[test]
fn what_is_typed_by_hand_where_keys_decide_acts() {
    let mut random = Random(0xdec1);
    let typed = |confirm: bool, keys: &str, paces: &mut dyn FnMut() -> u64| {
        let mut d = Desk::new("default");
        if confirm {
            d.r.push(quit());
            d.r.wait(Duration::from_millis(600));
        }
        d.r.clear();
        for key in keys.bytes() {
            d.bytes(&[key]);
            d.pass(paces());
        }
        d.pass(400);
        let log: Vec<&str> = d.r.app.keys.log.iter().map(|action| action.0).collect();
        (sent(&mut d), d.draft(), d.r.app.layers.len(), log)
    };
    for (confirm, keys) in [
        (true, "\t\r"),
        (true, "y\r"),
        (true, "n\r"),
        (true, "\t\t\r"),
        (true, "\t\t\t\r"),
        (false, "?why\r"),
        (false, "ok then\r"),
        (false, "\tx\r"),
    ] {
        let slow = typed(confirm, keys, &mut || 300);
        assert!(!slow.3.is_empty(), "{keys:?}: {slow:?}");
        assert!(!confirm || slow.2 == 0 || slow.3.contains(&"confirm.press"), "{keys:?}: {slow:?}");
        for _ in 0..6 {
            let fast = typed(confirm, keys, &mut || 30 + random.below(71));
            assert_eq!(fast, slow, "{keys:?}");
        }
        assert_eq!(typed(confirm, keys, &mut || 80), slow, "{keys:?}");
    }
}

/// Returns what is carried out of keys that follow each other by `pace` milliseconds where all is text.
fn carried_out(keys: &[KeyEvent], pace: u64) -> Vec<Input> {
    let (mut bursts, mut out) = (Bursts::default(), Vec::new());
    for (n, key) in keys.iter().enumerate() {
        let at = Duration::from_millis(1000 + n as u64 * pace);
        let arrival = Arrival { since: at, at, together: 1 };
        out.extend(bursts.before(&Input::Key(*key), &arrival));
        out.extend(bursts.take(Input::Key(*key), &arrival, |_| KeyUse::Text));
    }
    out.extend(bursts.end());
    out
}

fn keys_of(text: &str) -> Vec<KeyEvent> {
    let key = |c| KeyEvent::from(if c == '\r' { KeyCode::Enter } else { KeyCode::Char(c) });
    text.chars().map(key).collect()
}

/// A script sends a line and presses a key behind it: neither is lost.
#[test]
fn a_key_directly_behind_a_text_acts_after_it() {
    let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
    let alt = |code| KeyEvent::new(code, KeyModifiers::ALT);
    let up = KeyEvent::new(KeyCode::Up, KeyModifiers::SHIFT);
    let plain = [KeyCode::Esc, KeyCode::Up, KeyCode::F(1), KeyCode::BackTab, KeyCode::Backspace];
    let mut all: Vec<KeyEvent> = plain.into_iter().map(KeyEvent::from).collect();
    all.extend([
        up,
        control('c'),
        control('x'),
        alt(KeyCode::Char('x')),
        alt(KeyCode::Enter),
        alt(KeyCode::Up),
    ]);
    let long = "words of a long line ".repeat(3) + "\r";
    for key in all {
        for pace in [0, 1, 20] {
            for line in ["look at it\r", "ok\r", &long] {
                let mut keys = keys_of(line);
                // Two of them act both.
                keys.extend([key, key]);
                let out = carried_out(&keys, pace);
                let told = format!("{key:?} {pace} {line:?}: {out:?}");
                let last = [Input::Key(key), Input::Key(key)];
                let (text, acts) = out.split_at(out.len() - 2);
                assert_eq!(acts, last, "{told}");
                let enter = matches!(text.last(), Some(Input::Burst { enter: Some(_), .. }));
                assert!(enter, "{told}");
            }
            // A control character at the end of several lines is one of them.
            let of_text =
                key == control('c') || key == control('x') || character(&super::plain(&key)).is_some();
            let mut keys = keys_of("one\rtwo\r");
            keys.push(key);
            let acts = |out: &[Input]| out.contains(&Input::Key(key));
            let out = carried_out(&keys, pace);
            assert_eq!(acts(&out), !of_text, "{key:?} {pace}: {out:?}");
            // In the middle of them none acts, but for those that correct.
            keys.extend(keys_of("three\r"));
            let out = carried_out(&keys, pace);
            assert_eq!(acts(&out), edits(&key), "{key:?} {pace}: {out:?}");
            assert!(!out.iter().any(|i| matches!(i, Input::Burst { enter: Some(_), .. })), "{out:?}");
        }
    }
    let mut d = Desk::new("default");
    d.bytes(b"look at it\r\x03");
    d.pass(400);
    assert_eq!((sent(&mut d), d.draft().as_str()), (vec!["look at it".to_owned()], ""));
}

/// Nothing noted when the keys came: several lines are a paste, however long the program was busy.
#[test]
fn lines_that_were_read_late_are_a_paste() {
    for text in ["y\r!ls\r", "ok\r\r/quit\r", "\ty\rn\ry", "1\ny\n"] {
        for busy in [300, 500, 9000] {
            for confirm in [false, true] {
                let mut d = Desk::new("default");
                if confirm {
                    d.r.push(quit());
                    d.r.wait(Duration::from_millis(600));
                }
                d.r.clear();
                d.pass(busy);
                d.late(text.as_bytes(), Duration::from_millis(busy));
                d.pass(400);
                assert_eq!(d.done(), [""; 0], "{busy} ms: {text:?}");
                let kept = text.replace('\r', "\n");
                assert!(d.draft() == kept, "{busy} ms, {confirm}: {text:?} {:?}", d.draft());
            }
        }
    }
}

/// A line behind a paste may be the rest of it; those that follow steadily are messages.
#[test]
fn lines_behind_a_paste_are_sent() {
    let mut d = Desk::new("default");
    d.bytes(b"one\rtwo\r");
    d.pass(900);
    for line in ["three and", "four of it", "five of it"] {
        d.bytes(format!("{line}\r").as_bytes());
        d.pass(900);
    }
    assert_eq!(sent(&mut d), ["one\ntwo\nthree and\nfour of it", "five of it"]);
}
