use tiller_protocol::command::{Query, QueueCommand, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent};
use tiller_protocol::mcp::{McpArgumentView, McpPromptView};
use tiller_protocol::view::Mention;
use tiller_protocol::{
    AgentCommand, Attachment, CommandBody, EventBody, IdSource, Message, Notice, NoticeKind, QueueId, Queued,
    QueuedState, SendMode, SeqIds, WorkflowFile,
};

use crate::testing::{Robot, START};

fn submitted(robot: &mut Robot) -> Vec<(Message, SendMode)> {
    robot
        .commands()
        .into_iter()
        .cloned()
        .filter_map(|c| match c {
            CommandBody::Turn(TurnCommand::Submit { message, mode }) => Some((message, mode)),
            _ => None,
        })
        .collect()
}

/// A screen whose drafts are kept in this folder.
fn kept_in(folder: &std::path::Path) -> Robot {
    let mut robot = Robot::new(80, 24);
    robot.app.model.environment.folders.draft = Some(folder.to_owned());
    robot.app.start();
    robot.size(80, 24);
    robot
}

fn running(robot: &mut Robot) {
    robot.event(EventBody::Turn(TurnEvent::TurnStarted {}));
}

#[test]
fn enter_sends_and_while_a_turn_runs_enter_steers_and_tab_queues() {
    let mut r = Robot::new(80, 24);
    r.run("type hello; enter");
    assert_eq!(submitted(&mut r), [(Message::text("hello"), SendMode::Steer)]);
    running(&mut r);
    r.run("type more; enter; type later; tab; type now; ctrl-x i");
    let sent = submitted(&mut r);
    let last: Vec<_> = sent.iter().rev().take(3).map(|(m, mode)| (m.text.as_str(), *mode)).collect();
    assert_eq!(last, [("now", SendMode::Now), ("later", SendMode::Queue), ("more", SendMode::Steer)]);
}

#[test]
fn text_after_a_hash_goes_to_memory_and_to_no_model() {
    use tiller_protocol::{MemoryCommand, MemoryFile, MemoryScope, MemoryTarget};
    let kept = |r: &Robot| -> Vec<MemoryCommand> {
        let of = |c: &CommandBody| match c {
            CommandBody::Memory(command) => Some(command.clone()),
            _ => None,
        };
        r.commands().into_iter().filter_map(of).collect()
    };
    for size in [(80, 24), (118, 25)] {
        let mut r = Robot::new(size.0, size.1);
        r.run("type # use tabs");
        assert!(
            r.words().contains("Kept in MEMORY.md: models see it from the next session on"),
            "{}",
            r.screen()
        );
        r.run("tab");
        assert!(r.words().contains("Kept in USER.md"), "{}", r.screen());
        r.run("enter");
        let target = MemoryTarget { file: MemoryFile::User, scope: MemoryScope::User };
        assert_eq!(kept(&r), [MemoryCommand::Add { target, text: "use tabs".into() }]);
        assert_eq!(submitted(&mut r), []);
        // It is refused: the text comes back with the reason.
        let why = "the entry contains a secret (api key)";
        r.reply(ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, why) });
        assert!(r.screen().contains("# use tabs"), "{}", r.screen());
        assert_eq!(r.words().to_lowercase().matches("contains a secret").count(), 1, "{}", r.screen());
        r.run("ctrl-u; type #; enter");
        assert!(r.words().contains("Write what to keep"), "{}", r.screen());
        // With a blank before it, and as a heading of a longer text, it is a message.
        r.run("ctrl-u; space; type # use tabs; enter");
        assert_eq!(submitted(&mut r).len(), 1, "{}", r.screen());
        r.run("type # Task; ctrl-j; type mend it; enter");
        assert_eq!(submitted(&mut r).len(), 2, "{}", r.screen());
    }
}

/// The composer knows no tools: whether a matcher is right is in the answer.
#[test]
fn a_rule_is_promised_only_if_its_matcher_is_right_and_the_answer_says_what_is_wrong() {
    let mut r = Robot::new(80, 24);
    r.run("type #[never: terminl x] no rm");
    let hint = "Kept in MEMORY.md: a rule from now on if its matcher is right";
    assert!(r.words().contains(hint), "{}", r.screen());
    r.run("enter");
    let said = "kept in MEMORY.md, but it is no rule: there is no tool 'terminl'";
    r.reply(ReplyEvent::DoneReply { said: said.into() });
    assert!(r.words().contains("it is no rule: there is no tool 'terminl'"), "{}", r.screen());
    assert_eq!(r.app.model.notices.len(), 1, "it stands in the error log");
}

#[test]
fn skills_are_completed_with_whole_names_and_unknown_ones_are_named() {
    use tiller_protocol::skill::{SkillQuery, SkillReply, SkillRow};
    let rows: Vec<SkillRow> = (0..15)
        .map(|n| SkillRow {
            name: format!("compare-the-branches-of-{n:02}"),
            description:
                "Compares two branches: what each has alone, which of both to merge, and what to test then"
                    .into(),
            ..SkillRow::default()
        })
        .collect();
    for (width, height) in [(80, 24), (118, 25)] {
        let mut r = Robot::new(width, height);
        r.run("type $comp");
        let asked =
            |c: &CommandBody| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Skills }));
        let id = r.asked(asked);
        let reply = SkillReply::Skills { rows: rows.clone() };
        r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
        r.run("wait 1");
        let screen = r.screen();
        assert!(screen.contains("compare-the-branches-of-00"), "{screen}");
        let last = screen.lines().find(|l| l.contains("1 of 15")).unwrap();
        assert!(last.contains("compare-the-branches-of-0") && last.contains('…'), "{screen}");
        r.run("ctrl-u; type use $compare-the-branches-of-03 and $nope please");
        assert!(r.words().contains("There is no skill $nope: it is sent as plain text"), "{}", r.screen());
        r.run("ctrl-u; type use $compare-the-branches-of-03 please");
        assert!(r.words().contains("with the skill compare-the-branches-of-03"), "{}", r.screen());
        r.run("ctrl-u; type it costs $5 in $HOME/x");
        assert!(!r.words().contains("There is no skill"), "{}", r.screen());
    }
}

#[test]
fn a_backslash_or_ctrl_j_makes_a_new_line() {
    let mut r = Robot::new(80, 24);
    r.run("type a\\; enter; type b; ctrl-j; type c; enter");
    assert_eq!(submitted(&mut r), [(Message::text("a\nb\nc"), SendMode::Steer)]);
}

#[test]
fn a_refused_message_comes_back_with_the_reason() {
    let mut r = Robot::new(80, 24);
    r.run("type see @nothing; enter");
    r.reply(ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, "There is no file nothing.") });
    let screen = r.screen();
    assert!(screen.contains("see @nothing") && screen.contains("There is no file nothing."), "{screen}");
    r.run("type x; enter");
    assert_eq!(submitted(&mut r).last().unwrap().0.text, "see @nothingx");
}

#[test]
fn up_pulls_a_waiting_message_back_and_then_walks_through_history() {
    let mut r = Robot::new(80, 24);
    running(&mut r);
    let id = QueueId(SeqIds::default().next(START));
    let q =
        Queued { state: QueuedState::Accepted, ..Queued::new(id, Message::text("wait"), SendMode::Queue) };
    r.event(EventBody::State(StateEvent::QueueChanged { queue: vec![q] }));
    r.run("up");
    assert!(r.commands().contains(&&CommandBody::Queue(QueueCommand::Remove { id })));
    assert!(r.screen().contains("wait"));
    r.event(EventBody::State(StateEvent::QueueChanged { queue: vec![] }));
    r.run("ctrl-u; up");
    assert!(matches!(r.commands().last(), Some(CommandBody::Query(Query::History { .. }))));
    r.reply(ReplyEvent::HistoryReply { prompts: vec!["newest".into(), "oldest".into()] });
    assert!(r.screen().contains("newest"));
    r.run("up");
    assert!(r.screen().contains("oldest"));
    r.run("down; down");
    assert!(!r.screen().contains("newest"));
}

#[test]
fn slash_lists_commands_completes_and_runs_them() {
    let mut r = Robot::new(80, 24);
    r.run("type /");
    let screen = r.screen();
    assert!(screen.contains("compact") && screen.contains("Compact the conversation"), "{screen}");
    r.run("type to; tab; type buy milk; enter");
    assert!(
        r.commands().iter().any(|c| matches!(c, CommandBody::Todo(tiller_protocol::command::TodoCommand::Add { content }) if content == "buy milk"))
    );
    r.run("type /nonsens; enter");
    assert!(r.screen().contains("There is no command /nonsens"));
    assert!(submitted(&mut r).is_empty());
}

fn prompt(name: &str, summary: &str) -> McpPromptView {
    let argument =
        |name: &str, required| McpArgumentView { name: name.into(), required, ..McpArgumentView::default() };
    McpPromptView {
        server: "notes".into(),
        name: name.into(),
        summary: summary.into(),
        arguments: vec![argument("file", true), argument("depth", false)],
        ..McpPromptView::default()
    }
}

#[test]
fn prompts_of_servers_are_commands_with_their_arguments() {
    let mut r = Robot::new(118, 25);
    r.run("type /no");
    assert!(matches!(
        r.commands()[..],
        [CommandBody::Query(Query::Mcp), CommandBody::Query(Query::Skills { .. })]
    ));
    let prompts = vec![prompt("review", "Reviews\u{1b}[2J a\u{202e} file"), prompt("plan", "")];
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Mcp)));
    r.cause(id, EventBody::Reply(Box::new(ReplyEvent::McpReply { servers: Vec::new(), prompts })));
    let screen = r.screen();
    assert!(screen.contains("notes:review") && screen.contains("prompt of notes"), "{screen}");
    assert!(
        screen.contains("Reviews\\x1b[2J a<U+202E>") && !screen.contains(['\u{1b}', '\u{202e}']),
        "{screen:?}"
    );
    r.run("type tes:re");
    assert!(r.screen().contains("/notes:review FILE ["), "{}", r.screen());
    r.run("enter; type a.rs; enter");
    // The engine asks the server for the text.
    assert_eq!(submitted(&mut r), [(Message::text("/notes:review a.rs"), SendMode::Steer)]);
    // Typed out it is sent at once.
    r.run("type /notes:plan; enter");
    assert_eq!(submitted(&mut r).len(), 2, "{}", r.screen());
}

#[test]
fn a_resource_of_a_server_is_listed_and_attached_by_its_address() {
    let mut r = Robot::new(118, 25);
    r.run("type @note");
    let resource = Mention {
        kind: "Shopping\u{1b}[2J".into(),
        name: "notes:note://shop/1.".into(),
        size: Some(40),
        tokens: Some(16),
        preview: "The list".into(),
    };
    let reply = |r: &mut Robot, text: &str| {
        r.reply(ReplyEvent::MentionsReply { text: text.into(), mentions: vec![resource.clone()] });
    };
    reply(&mut r, "note");
    let screen = r.screen();
    assert!(screen.contains("notes:note://shop/1.") && screen.contains("The list"), "{screen}");
    assert!(screen.contains("Shopping") && !screen.contains('\u{1b}'), "{screen}");
    // The list stays while an address is typed behind the colon, and is closed for the lines of a file.
    r.run("type s:note");
    reply(&mut r, "notes:note");
    assert!(r.screen().contains("The list"), "{}", r.screen());
    r.run("enter; type what is left?; enter");
    let (message, _) = submitted(&mut r).pop().unwrap();
    assert_eq!(message.text, "@notes:note://shop/1. what is left?");
    let path = |a: &Attachment| matches!(a, Attachment::File { path, lines: None, .. } if path == "notes:note://shop/1.");
    assert!(path(&message.attachments[0]), "{message:?}");
    r.clear().run("type @src/main.rs:10-");
    let asked = |c: &&CommandBody| matches!(c, CommandBody::Query(Query::Mentions { text, .. }) if text.contains(':'));
    assert_eq!(r.commands().into_iter().filter(asked).count(), 0);
}

#[test]
fn at_lists_files_and_sends_them_along() {
    let mut r = Robot::new(100, 24);
    r.run("type look at @ma");
    assert!(
        matches!(r.commands().last(), Some(CommandBody::Query(Query::Mentions { text, .. })) if text == "ma")
    );
    let file = |name: &str, size| Mention {
        kind: "file".into(),
        name: name.into(),
        size: Some(size),
        tokens: Some(size / 4),
        preview: "fn main() {}".into(),
    };
    r.reply(ReplyEvent::MentionsReply {
        text: "ma".into(),
        mentions: vec![file("src/main.rs", 4096), file("Makefile", 10)],
    });
    let screen = r.screen();
    assert!(
        screen.contains("src/main.rs") && screen.contains("4.0 KB") && screen.contains("fn main"),
        "{screen}"
    );
    r.run("enter; type :1-3 please; enter");
    let (message, _) = submitted(&mut r).pop().unwrap();
    // The blank that came with the name gives way to a range.
    assert!(message.text.starts_with("look at @src/main.rs:1-3 please"), "{}", message.text);
    assert!(
        matches!(&message.attachments[..], [Attachment::File { path, lines: Some((1, 3)), .. }] if path == "src/main.rs")
    );
}

#[test]
fn a_name_that_is_nearly_an_agents_is_said_and_not_sent() {
    let mut r = Robot::new(100, 24);
    let kind = |name: &str| crate::model::kinds::AgentKind { name: name.into(), about: String::new() };
    r.app.model.crew.kinds = vec![kind("coder")];
    r.clear().run("type @cladue mend it; enter");
    assert!(submitted(&mut r).is_empty());
    assert!(r.screen().contains("There is no agent @cladue; did you mean 'claude'?"), "{}", r.screen());
    r.run("ctrl-u").clear().run("type @codr mend it; enter");
    assert!(r.screen().contains("did you mean 'coder'?"), "{}", r.screen());
    r.run("ctrl-u").clear().run("type @codex:pty mend it; enter");
    assert!(
        submitted(&mut r).is_empty() && r.screen().contains("start it with /spawn @codex:pty TASK"),
        "{}",
        r.screen()
    );
    for words in ["@everybody look here", "@Makefile is old", "@src/a.rs is old"] {
        r.run("ctrl-u").clear().run(&format!("type {words}; enter"));
        assert!(!r.screen().contains("There is no agent"), "{words}: {}", r.screen());
    }
}

#[test]
fn a_name_of_no_file_is_not_sent_as_if_it_were_one() {
    let mut r = Robot::new(100, 24);
    let none = |r: &mut Robot, text: &str| {
        r.reply(ReplyEvent::MentionsReply { text: text.into(), mentions: Vec::new() });
    };
    r.run("type mend @src/mian.rs");
    none(&mut r, "src/mian.rs");
    r.clear().run("type , please; enter");
    assert!(submitted(&mut r).is_empty());
    assert!(r.screen().contains("@src/mian.rs was not found"), "{}", r.screen());
    r.run("enter");
    assert_eq!(submitted(&mut r).pop().unwrap().0.text, "mend @src/mian.rs, please");
    // A word that looks like no file is a word.
    r.clear().run("type thank @sam");
    none(&mut r, "sam");
    r.run("enter");
    assert_eq!(submitted(&mut r).len(), 1);
}

#[test]
fn names_of_workflows_are_completed_after_their_command() {
    let mut r = Robot::new(100, 24);
    let asked =
        |r: &Robot| r.commands().iter().filter(|c| matches!(c, CommandBody::Query(Query::Workflows))).count();
    let file = |name: &str, about: &str, wrong: &str| WorkflowFile {
        name: name.into(),
        description: about.into(),
        steps: vec!["look".into(), "mend".into()],
        wrong: wrong.into(),
        ..WorkflowFile::default()
    };
    // The command itself is completed first, and its list opens behind it.
    r.run("type /workf; enter");
    assert_eq!(asked(&r), 1);
    let files = vec![file("big-release", "", "line 3: no id"), file("release", "build and tell", "")];
    r.reply(ReplyEvent::WorkflowsReply { files });
    let screen = r.screen();
    assert!(screen.contains("2 steps  build and tell") && screen.contains("has an error"), "{screen}");
    r.run("type re");
    assert_eq!(asked(&r), 1, "read once for this list");
    let screen = r.screen();
    let at = |word: &str| screen.lines().position(|l| l.contains(word)).unwrap();
    assert!(at("▌ release") < at("  big-release"), "{screen}");
    // Enter finishes the word and sends nothing; the next one starts it.
    r.run("enter");
    assert!(r.screen().contains("/workflow release"), "{}", r.screen());
    let started = |r: &Robot| {
        r.commands()
            .iter()
            .filter_map(|c| match c {
                CommandBody::Agent(AgentCommand::Workflow { name }) => Some(name.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    assert!(started(&r).is_empty(), "{:?}", started(&r));
    r.run("enter");
    assert_eq!(started(&r), ["release"]);
    // Without a word it opens its dialog as ever, and no first row is taken.
    r.run("type /workflow; space; enter");
    assert_eq!(started(&r), ["release"]);
    assert!(r.screen().contains("Start a workflow"), "{}", r.screen());
}

#[test]
fn shell_lines_are_shared_or_private() {
    let mut r = Robot::new(80, 24);
    r.run("type !git status; enter; type !!ls; enter; type !; enter");
    let lines: Vec<_> = r
        .commands()
        .into_iter()
        .cloned()
        .filter_map(|c| match c {
            CommandBody::Turn(TurnCommand::Shell { line, share }) => Some((line, share)),
            _ => None,
        })
        .collect();
    assert_eq!(lines, [("git status".to_owned(), true), ("ls".to_owned(), false)]);
    assert!(r.screen().contains("Type a command after the !"));
}

#[test]
fn u3_a_long_paste_is_a_chip_and_a_hundred_pastes_send_nothing() {
    let mut r = Robot::new(80, 24);
    let text = "line of text\r\n".repeat(750_000);
    let begin = tiller_testkit::thread_cpu_time();
    r.msg(crate::app::msg::Msg::Input(crate::input::Input::Paste(text)));
    assert!(r.screen().contains("[paste 1: 750000 lines]"));
    // Dev builds are slow; the budget itself is measured by the benchmark.
    assert!((tiller_testkit::thread_cpu_time() - begin).as_secs() < 10);
    for i in 0..100 {
        r.msg(crate::app::msg::Msg::Input(crate::input::Input::Paste(format!("p{i}\r\n"))));
    }
    assert!(submitted(&mut r).is_empty());
    r.run("enter");
    let (message, _) = submitted(&mut r).pop().unwrap();
    assert!(message.text.contains("p0\n") && message.text.contains("p99"));
    assert_eq!(message.attachments.len(), 1);
}

#[test]
fn a_draft_is_put_aside_and_comes_back() {
    let mut r = Robot::new(80, 24);
    r.run("type first; ctrl-x p; type second; ctrl-x p");
    assert!(r.screen().contains("first"));
    r.run("ctrl-x p");
    assert!(r.screen().contains("second"));
}

#[test]
fn escape_closes_the_list_first() {
    let mut r = Robot::new(80, 24);
    running(&mut r);
    r.run("type /comp; esc");
    assert!(!r.screen().contains("Compact the conversation"));
    assert!(!r.commands().iter().any(|c| matches!(c, CommandBody::Turn(TurnCommand::Interrupt { .. }))));
    r.run("esc");
    assert!(r.commands().iter().any(|c| matches!(c, CommandBody::Turn(TurnCommand::Interrupt { .. }))));
}

#[test]
fn the_caret_stands_on_the_letter_also_behind_wide_ones() {
    let mut r = Robot::new(80, 24);
    r.run("type ab");
    let plain = r.cursor().unwrap();
    r.run("ctrl-u; type \u{65e5}\u{672c}");
    let wide = r.cursor().unwrap();
    assert_eq!((wide.x, wide.y), (plain.x + 2, plain.y));
}

#[test]
fn drafts_come_back_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("draft.json");
    let make = || kept_in(&path);
    let mut r = make();
    r.run("type half a thought");
    drop(r);
    let r = make();
    assert!(r.screen().contains("half a thought"));
}

/// The draft is on disk at each moment, and comes back, however a walk through the earlier prompts ends.
#[test]
fn a_draft_outlives_each_end_of_a_walk() {
    const ENDS: &[&str] = &[
        "type x",
        "ctrl-u",
        "ctrl-w",
        "backspace",
        "left; type y",
        "alt-enter; type z",
        "enter",
        "ctrl-c",
        "ctrl-c; up",
        "ctrl-x p",
        "ctrl-x p; ctrl-x p",
        "ctrl-x p; up; up",
        "ctrl-r; esc",
        "f1; esc",
        "ctrl-x m; esc",
        "type x; up",
        "type x; down",
        "down",
        "down; down; down; down",
        "wait 3",
    ];
    let mut seed = 11u64;
    let mut pick = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % most
    };
    for window in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        let mut r = kept_in(dir.path());
        r.run("type a; up");
        r.reply(ReplyEvent::HistoryReply { prompts: vec!["newest".into(), "oldest".into()] });
        let mut rounds: Vec<(String, String)> = Vec::new();
        for round in 0..25 {
            // Whatever stands there is sent.
            let steps = ENDS[(window + round + pick(2)) % ENDS.len()];
            let ups = ["up", "up; up", "up; up; up; up"][pick(3)];
            let word = format!("word{window}n{round}n");
            r.run("type a; enter").run(&format!("type {word}"));
            assert!(r.screen().contains(&word), "after {:?}:\n{}", rounds.last(), r.screen());
            r.run(ups).run(steps);
            rounds.push((word, format!("{ups}; {steps}")));
        }
        let sent = submitted(&mut r);
        drop(r);
        let files = std::fs::read_dir(dir.path()).unwrap().flatten();
        let kept: String = files.filter_map(|f| std::fs::read_to_string(f.path()).ok()).collect();
        for (word, steps) in rounds {
            let there = kept.contains(&word) || sent.iter().any(|(message, _)| message.text.contains(&word));
            assert!(there, "{word} is lost after {steps}: {kept}");
        }
    }
}

#[test]
fn a_walk_that_is_cut_off_comes_back_as_the_draft() {
    let dir = tempfile::tempdir().unwrap();
    let make = || kept_in(dir.path());
    let mut r = make();
    r.run("type half a thought; up");
    r.reply(ReplyEvent::HistoryReply { prompts: vec!["earlier".into()] });
    r.run("up");
    assert!(r.screen().contains("earlier") && !r.screen().contains("half a thought"), "{}", r.screen());
    drop(r);
    let mut r = make();
    assert!(r.screen().contains("half a thought"), "{}", r.screen());
    // An edit of the earlier prompt ends the walk: the draft is stashed, and the screen shows that.
    r.run("up");
    r.reply(ReplyEvent::HistoryReply { prompts: vec!["earlier".into()] });
    r.run("up; type !");
    assert!(r.screen().contains("earlier!") && r.screen().contains("draft stashed"), "{}", r.screen());
    r.run("ctrl-x p");
    assert!(r.screen().contains("half a thought"), "{}", r.screen());
}

/// S1: until the engine says that a message is on disk, it is on disk here.
#[test]
fn what_was_sent_is_kept_until_it_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let make = || kept_in(dir.path());
    let asked = |r: &Robot| r.asked(|c| matches!(c, CommandBody::Query(Query::History { .. })));
    let known = |r: &mut Robot, prompts: Vec<String>| {
        let id = asked(r);
        r.cause(id, EventBody::Reply(Box::new(ReplyEvent::HistoryReply { prompts })));
    };
    // Killed before anything was heard: it comes back, and says why.
    let mut r = make();
    r.run("type words that matter; enter");
    assert!(!r.screen().contains("words that matter"));
    drop(r);
    let mut r = make();
    assert!(r.screen().contains("words that matter"), "{}", r.screen());
    known(&mut r, vec!["other words".into()]);
    assert!(r.screen().contains("before this message was confirmed as sent"), "{}", r.screen());
    // Killed again before it said so, but the words are among the stored prompts: they do not go out twice.
    r.run("enter");
    drop(r);
    let mut r = make();
    known(&mut r, vec!["words that matter".into()]);
    assert!(!r.screen().contains("words that matter"), "{}", r.screen());
    drop(r);
    assert!(!make().screen().contains("words that matter"));
    // Stored and told: nothing comes back.
    let mut r = make();
    r.run("type told; enter");
    let id = r.asked(|c| matches!(c, CommandBody::Turn(_)));
    let node = crate::model::conversation::script::Script::new().user("told");
    r.cause(
        id,
        EventBody::Turn(TurnEvent::UserMessage { entry: node.id, text: "told".into(), node: Box::new(node) }),
    );
    drop(r);
    assert!(!make().screen().contains("told"));
    // Waiting in the queue: kept until it waits on disk.
    let mut r = make();
    running(&mut r);
    r.run("type for later; enter");
    let id = r.asked(|c| matches!(c, CommandBody::Turn(_)));
    let queue = |state| {
        let id = QueueId(SeqIds::default().next(START));
        let queue = vec![Queued { state, ..Queued::new(id, Message::text("for later"), SendMode::Steer) }];
        EventBody::State(StateEvent::QueueChanged { queue })
    };
    r.cause(id, queue(QueuedState::Queued));
    let written = || {
        std::fs::read_dir(dir.path())
            .unwrap()
            .flatten()
            .any(|f| std::fs::read_to_string(f.path()).is_ok_and(|t| t.contains("for later")))
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !written() {
        assert!(std::time::Instant::now() < end, "it is kept while it is on its way");
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    r.event(queue(QueuedState::Accepted));
    drop(r);
    assert!(!make().screen().contains("for later"));
}

/// A line that has only text takes no pasted block or image: it would be lost without a word.
#[test]
fn a_note_and_a_shell_command_refuse_what_they_would_lose() {
    for (text, what) in [("# keep ", "a note"), ("!cat ", "a shell command"), ("!!cat ", "a shell command")] {
        let mut r = Robot::new(100, 24);
        r.run(&format!("type {text}"));
        r.msg(crate::app::msg::Msg::Input(crate::input::Input::Paste("a line of it\n".repeat(20))));
        r.run("enter");
        let words = r.words();
        assert!(words.contains(&format!("cannot be part of {what}")), "{text}: {}", r.screen());
        assert!(words.contains("[paste 1: 20 lines]"), "it stays in the field: {}", r.screen());
        let sent = r
            .commands()
            .into_iter()
            .any(|c| matches!(c, CommandBody::Memory(_) | CommandBody::Turn(TurnCommand::Shell { .. })));
        assert!(!sent, "{text}");
    }
}

#[test]
fn what_a_chip_holds_can_be_looked_at() {
    let mut r = Robot::new(100, 24);
    r.msg(crate::app::msg::Msg::Input(crate::input::Input::Paste("a line of it\n".repeat(20))));
    assert!(r.footer().contains("preview"), "{}", r.footer());
    r.run("ctrl-x y");
    assert!(
        r.screen().contains("a line of it") && r.screen().contains("[paste 1: 20 lines]"),
        "{}",
        r.screen()
    );
    r.run("q; ctrl-u; ctrl-x y");
    assert!(r.screen().contains("no pasted block or image"), "{}", r.screen());
}

/// In vim's normal mode Space is the leader and a colon the palette, but never behind a key that waits for
/// a letter.
#[test]
fn vims_own_keys_hold_in_normal_mode_only() {
    let ui = tiller_config::schema::Ui { keymap: "vim".into(), ..Default::default() };
    let mut r = Robot::with(80, 24, ui);
    r.run("type a b:c; space; esc");
    assert!(r.screen().contains("a b:c"), "{}", r.screen());
    r.run("0; f; :; x");
    assert!(r.app.layers.is_empty() && r.screen().contains("a bc"), "{}", r.screen());
    r.run("0; r; space");
    assert!(r.app.keys.pending.is_empty(), "{}", r.screen());
    r.run(":");
    assert!(r.screen().contains("Palette"), "{}", r.screen());
    r.run("esc; space; t");
    assert!(r.screen().contains("gruvbox-dark"), "Space is the leader: {}", r.screen());
}

#[test]
fn in_the_emacs_keys_ctrl_g_cancels_and_ctrl_p_walks() {
    let ui = tiller_config::schema::Ui { keymap: "emacs".into(), ..Default::default() };
    let mut r = Robot::with(80, 24, ui);
    r.run("type /; ctrl-g");
    assert!(!r.screen().contains("Compact the conversation"), "the list is closed: {}", r.screen());
    let editor = |t: &crate::app::effect::Task| matches!(t, crate::app::effect::Task::Suspend(..));
    assert!(!r.tasks.iter().any(editor), "and no editor opened");
    r.run("ctrl-x b");
    assert!(r.screen().contains("Sessions of this project"), "{}", r.screen());
    r.run("ctrl-x k");
    assert!(r.app.layers.is_empty());
}

#[test]
fn an_agent_named_first_gets_the_message_as_its_task() {
    use tiller_protocol::AgentCommand;
    let kind =
        |name: &str| crate::model::kinds::AgentKind { name: name.into(), about: format!("when {name}") };
    let mut r = Robot::new(118, 25);
    r.msg(crate::app::msg::Msg::Config(crate::app::msg::ConfigMsg::Kinds(vec![
        kind("coder"),
        kind("reviewer"),
    ])));
    let mentions = |r: &mut Robot, text: &str| {
        r.reply(ReplyEvent::MentionsReply { text: text.into(), mentions: Vec::new() });
    };
    r.run("type @co");
    mentions(&mut r, "co");
    assert!(r.screen().contains("coder") && r.screen().contains("when coder"), "{}", r.screen());
    assert!(!r.screen().contains("reviewer"), "{}", r.screen());
    r.run("tab; enter");
    assert!(r.screen().contains("Write the task after @coder."), "{}", r.screen());
    r.clear().run("type mend it; enter");
    let spawn = AgentCommand::Spawn {
        goal: "mend it".into(),
        role: Some("coder".into()),
        model: None,
        cli: None,
        isolated: false,
    };
    assert_eq!(r.commands(), [&CommandBody::Agent(spawn)]);
    // A refusal brings it back, an agent that was started does not.
    r.reply(ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, "all places are taken") });
    assert!(
        r.screen().contains("@coder mend it") && r.screen().contains("All places are taken"),
        "{}",
        r.screen()
    );
    r.clear().run("enter").reply(ReplyEvent::DoneReply { said: "a1 coder is at work".into() });
    assert!(
        !r.screen().contains("@coder mend") && r.screen().contains("a1 coder is at work"),
        "{}",
        r.screen()
    );
    // Elsewhere in a message, and by another name, it is text.
    r.clear().run("type ask @coder");
    mentions(&mut r, "coder");
    assert!(!r.screen().contains("when coder"), "{}", r.screen());
    r.run("esc; enter; type @nobody x; enter");
    let texts: Vec<String> = submitted(&mut r).into_iter().map(|(m, _)| m.text).collect();
    assert_eq!(texts, ["ask @coder", "@nobody x"]);
}

#[test]
fn what_cannot_be_seen_is_spelled_out_and_takes_its_room() {
    let mut r = Robot::new(80, 24);
    r.run("paste x\u{fe0f} \u{202e}evil end");
    assert!(r.screen().contains("x<U+FE0F> <U+202E>evil end"), "{}", r.screen());
    assert!(!r.screen().contains("end>"), "nothing of a mark is left over: {}", r.screen());
    r.run("type !");
    assert!(r.screen().contains("<U+202E>evil end!"), "{}", r.screen());
}

#[test]
fn the_selected_row_of_a_list_is_always_in_view() {
    for (w, h) in [(118, 25), (80, 24)] {
        for text in ["/", "see @"] {
            let mut r = Robot::new(w, h);
            r.run(&format!("type {text}"));
            if text != "/" {
                let mention = |n: usize| Mention {
                    name: format!("src/file{n:02}.rs"),
                    kind: "file".into(),
                    size: None,
                    tokens: None,
                    preview: String::new(),
                };
                let mentions = (0..30).map(mention).collect();
                r.reply(ReplyEvent::MentionsReply { text: String::new(), mentions });
            }
            for n in 0..40 {
                let chosen = r
                    .screen()
                    .lines()
                    .filter_map(|l| l.trim_start().strip_prefix("▌ "))
                    .filter(|l| l.starts_with("▌ "))
                    .count();
                assert!(chosen >= 1, "{w}x{h} {text} after {n}:\n{}", r.screen());
                r.run("down");
            }
        }
    }
}

/// Runs the job that the composer wants.
fn run_job(r: &mut Robot) {
    let at = r.tasks.iter().position(|t| matches!(t, crate::app::effect::Task::Job(..))).expect("a job");
    let crate::app::effect::Task::Job(job, token) = r.tasks.remove(at) else { unreachable!() };
    r.msg(crate::app::msg::Msg::Job(token, job()));
}

#[test]
fn dropped_pictures_are_attached_and_what_cannot_be_stays_text_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let picture = image::RgbaImage::new(6, 4);
    picture.save(at("a b.png")).unwrap();
    picture.save(at("c.png")).unwrap();
    std::fs::write(at("broken.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    for text in [
        format!("'{}' {}", at("a b.png"), at("c.png")),
        format!("{} {}", at("a b.png").replace(' ', "\\ "), at("c.png")),
        format!("file://{}\nfile://{}", at("a b.png").replace(' ', "%20"), at("c.png")),
    ] {
        let mut r = Robot::new(118, 25);
        r.run("type look at; space");
        r.msg(crate::app::msg::Msg::Input(crate::input::Input::Paste(text)));
        r.run("enter");
        assert!(submitted(&mut r).is_empty() && r.screen().contains("still being read"), "{}", r.screen());
        run_job(&mut r);
        assert!(r.screen().contains("[image 1: 6x4 0 KB] [image 2: 6x4 0 KB]"), "{}", r.screen());
        r.run("enter");
        let (message, _) = submitted(&mut r).pop().expect("it is sent");
        let image = |a: &Attachment| matches!(a, Attachment::Image { media_type, width: 6, height: 4, .. } if media_type == "image/png");
        assert!(message.attachments.len() == 2 && message.attachments.iter().all(image), "{message:?}");
    }
    // A terminal without bracketed paste types the path.
    let mut r = Robot::new(118, 25);
    let path = at("c.png");
    r.run(&format!("type {}", &path[..3]));
    let burst = crate::input::Input::Burst { typed: path[..3].into(), text: path[3..].into(), enter: None };
    r.msg(crate::app::msg::Msg::Input(burst));
    run_job(&mut r);
    assert!(r.screen().contains("▌ [image 1: 6x4 0 KB]"), "{}", r.screen());
    // It stays in its place, whatever the field holds meanwhile.
    let mut r = Robot::new(118, 25);
    r.run("type one; space");
    r.msg(crate::app::msg::Msg::Input(crate::input::Input::Paste(at("c.png"))));
    r.run("space; type two; ctrl-c; type other");
    run_job(&mut r);
    assert!(!r.screen().contains("[image"), "not into another text: {}", r.screen());
    let mut r = Robot::new(118, 25);
    r.run("type one; space");
    r.msg(crate::app::msg::Msg::Input(crate::input::Input::Paste(at("c.png"))));
    r.run("space; type two");
    assert!(r.screen().contains("one [reading picture 1] two"), "{}", r.screen());
    r.run("ctrl-c; up");
    r.reply(ReplyEvent::HistoryReply { prompts: Vec::new() });
    assert!(r.screen().contains("one [reading picture 1] two"), "{}", r.screen());
    run_job(&mut r);
    r.run("type !; enter");
    let (message, _) = submitted(&mut r).pop().expect("it is sent");
    assert_eq!((message.text.as_str(), message.attachments.len()), ("one [image 1: 6x4 0 KB] two!", 1));
    // Text where it is none, or where the words are for a shell.
    for (before, path, why) in [
        ("", at("broken.png"), "Not attached as a picture"),
        ("", at("none.png"), ""),
        ("!ls", at("c.png"), ""),
        ("see @", at("c.png"), ""),
    ] {
        let mut r = Robot::new(118, 25);
        if !before.is_empty() {
            r.run(&format!("type {before}"));
        }
        r.msg(crate::app::msg::Msg::Input(crate::input::Input::Paste(path.clone())));
        if before.is_empty() {
            run_job(&mut r);
        }
        let end = path.rsplit('/').next().unwrap();
        assert!(r.screen().contains(end) && r.screen().contains(why), "{path}: {}", r.screen());
        assert!(!r.screen().contains("[image"), "{}", r.screen());
    }
}

#[test]
fn what_exists_is_never_said_to_name_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("target")).unwrap();
    std::fs::write(dir.path().join("target/made.txt"), "x").unwrap();
    let mut r = Robot::new(100, 24);
    let mut script = crate::model::conversation::script::Script::new();
    let EventBody::Reply(mut reply) = script.snapshot(Vec::new(), 0, false).body else { unreachable!() };
    if let ReplyEvent::SnapshotReply { snapshot } = reply.as_mut() {
        snapshot.session.project = dir.path().display().to_string();
    }
    r.event(EventBody::Reply(reply));
    let none = |r: &mut Robot, text: &str| {
        r.reply(ReplyEvent::MentionsReply { text: text.into(), mentions: Vec::new() });
    };
    // Ignored by git: the finder does not list it.
    r.clear().run("type read @target/made.txt");
    none(&mut r, "target/made.txt");
    r.clear().run("type , please; enter");
    let (message, _) = submitted(&mut r).pop().expect("it is sent");
    assert!(
        matches!(&message.attachments[..], [Attachment::File { path, .. }] if path == "target/made.txt"),
        "and goes with it: {message:?}"
    );
    // Made after it was typed.
    r.clear().run("type and @new.rs");
    none(&mut r, "new.rs");
    std::fs::write(dir.path().join("new.rs"), "x").unwrap();
    r.clear().run("type !; enter");
    assert_eq!(submitted(&mut r).len(), 1, "{}", r.screen());
    r.clear().run("type and @gone.rs");
    none(&mut r, "gone.rs");
    r.clear().run("type !; enter");
    assert!(r.screen().contains("@gone.rs was not found"), "{}", r.screen());
    // A file elsewhere is not attached, and that is said; it goes as text at the second Enter. One of the project is,
    // by its whole path too.
    let outside = tempfile::NamedTempFile::new().unwrap();
    let far = outside.path().display().to_string();
    r.run("ctrl-u");
    r.clear().run(&format!("type @{far} says; enter"));
    assert!(r.words().contains("is outside this folder, so nothing is attached"), "{}", r.screen());
    assert!(submitted(&mut r).is_empty());
    r.clear().run("enter");
    assert!(submitted(&mut r).pop().expect("it is sent").0.attachments.is_empty());
    let near = dir.path().join("new.rs").display().to_string();
    r.clear().run(&format!("type @{near} says; enter"));
    let (message, _) = submitted(&mut r).pop().expect("it is sent");
    assert!(
        matches!(&message.attachments[..], [Attachment::File { path, .. }] if *path == near),
        "{message:?}"
    );
}
