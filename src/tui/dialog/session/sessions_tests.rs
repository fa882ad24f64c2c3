//! The session picker, driven by the robot.

use tiller_protocol::{ModelRef, SeqIds, SessionId};

use super::*;
use crate::app::msg::Msg;
use crate::input::Input;
use crate::model::conversation::script::Script;
use crate::testing::{Robot, START};

fn rows() -> Vec<SessionSummary> {
    let ids = SeqIds::default();
    ["retry work", "the parser", ""]
        .iter()
        .enumerate()
        .map(|(i, title)| SessionSummary {
            id: SessionId::fresh(&ids, START),
            title: (*title).into(),
            project: "/home/ann/api".into(),
            created: START,
            used: Time(START.0 - 3_600_000 * i as i64),
            entries: 2 - i.min(2) as u64,
            model: ModelRef("vendor/model-x".into()),
            cost: None,
            archived: false,
            exec: false,
            open_in: (i == 1).then(|| "4711".into()),
            interrupted: None,
            preview: format!("preview {i}"),
            git_branch: if i == 1 { "retry-after".into() } else { String::new() },
        })
        .collect()
}

/// The picker with its rows; the commands so far are forgotten.
fn opened(w: u16, h: u16) -> (Robot, Vec<SessionSummary>) {
    let mut r = Robot::new(w, h);
    r.run("ctrl-x s");
    let rows = rows();
    r.reply(ReplyEvent::SessionsReply { sessions: rows.clone() });
    r.clear();
    (r, rows)
}

fn sent(r: &Robot) -> Vec<SessionCommand> {
    r.commands()
        .into_iter()
        .filter_map(|c| match c {
            CommandBody::Session(s) => Some(s.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn looks_well() {
    for (w, h) in [(118, 25), (80, 24)] {
        let (r, _) = opened(w, h);
        insta::assert_snapshot!(format!("sessions_at_{w}x{h}"), r.screen());
    }
}

#[test]
fn enter_opens_and_typing_filters() {
    let (mut r, rows) = opened(80, 24);
    r.run("type parser; enter");
    assert_eq!(sent(&r), [SessionCommand::Open { id: rows[1].id }]);
    assert!(r.app.layers.is_empty());
    let (mut r, rows) = opened(80, 24);
    r.run("type preview 2; enter");
    assert_eq!(sent(&r), [SessionCommand::Open { id: rows[2].id }], "the preview is searched too");
}

#[test]
fn rename_names_the_chosen_session_and_no_other() {
    let (mut r, rows) = opened(80, 24);
    r.run("down; ctrl-x r");
    assert!(r.screen().contains("title: the parser"), "{}", r.screen());
    r.run("ctrl-u; type a better name; enter");
    assert_eq!(sent(&r), [SessionCommand::Rename { id: rows[1].id, title: "a better name".into() }]);
    assert!(r.screen().contains("a better name"), "{}", r.screen());
    r.clear().run("ctrl-x r; type  x; esc; ctrl-x r; ctrl-u; enter");
    assert!(sent(&r).is_empty(), "Escape and an empty title change nothing");
    assert_eq!(r.app.layers.len(), 1, "it is still open");
}

#[test]
fn archive_puts_away_and_the_same_key_brings_back() {
    let (mut r, rows) = opened(80, 24);
    let archive = |archived| SessionCommand::Archive { id: rows[1].id, archived };
    r.run("down; ctrl-x x");
    assert_eq!(sent(&r), [archive(true)]);
    assert!(r.screen().contains("archived"), "{}", r.screen());
    r.run("ctrl-x x");
    assert_eq!(sent(&r), [archive(true), archive(false)]);
    r.clear().run("ctrl-x v");
    assert!(matches!(r.commands()[..], [CommandBody::Query(Query::Sessions { archived: true, .. })]));
    r.clear().run("ctrl-t");
    assert!(matches!(
        r.commands()[..],
        [CommandBody::Query(Query::Sessions { archived: true, everywhere: true, .. })]
    ));
}

#[test]
fn the_trash_can_be_seen_and_gives_back() {
    let (mut r, rows) = opened(118, 25);
    let trash = |trashed| SessionCommand::Trash { id: rows[1].id, trashed };
    r.run("down; ctrl-x d");
    assert_eq!(sent(&r), [trash(true)]);
    assert!(r.screen().contains("in the trash"), "{}", r.screen());
    r.run("ctrl-x d");
    assert_eq!(sent(&r), [trash(true), trash(false)], "the same key restores it");
    r.clear().run("ctrl-x v; ctrl-x v");
    assert!(matches!(r.commands().last(), Some(CommandBody::Query(Query::Sessions { trashed: true, .. }))));
    r.reply(ReplyEvent::SessionsReply { sessions: vec![rows[1].clone()] });
    assert!(r.screen().contains("Trash of this project") && r.screen().contains("restore"), "{}", r.screen());
    r.clear().run("ctrl-x d");
    assert_eq!(sent(&r), [trash(false)]);
}

/// A row whose change the engine refuses is shown as it was.
#[test]
fn a_refused_change_is_taken_back_on_the_screen() {
    for (keys, shown) in [
        ("ctrl-x r; ctrl-u; type wrong; enter", "wrong"),
        ("ctrl-x x", "archived  "),
        ("ctrl-x d", "in the trash"),
    ] {
        let (mut r, _) = opened(118, 25);
        r.run("down").run(keys);
        assert!(r.screen().contains(shown), "{keys}\n{}", r.screen());
        r.reply(ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, "no") });
        assert!(!r.screen().contains(shown) && r.screen().contains("the parser"), "{keys}\n{}", r.screen());
    }
}

#[test]
fn fork_opens_it_and_goes_on_on_a_branch() {
    let (mut r, rows) = opened(80, 24);
    r.run("down; ctrl-x f");
    assert_eq!(sent(&r), [SessionCommand::Open { id: rows[1].id }]);
    r.clear();
    let mut script = Script::new();
    let said = script.user("hello");
    let head = said.id;
    let mut event = script.snapshot(vec![said], 0, false);
    if let EventBody::Reply(reply) = &mut event.body
        && let ReplyEvent::SnapshotReply { snapshot } = reply.as_mut()
    {
        snapshot.session.id = rows[1].id;
        snapshot.head = Some(head);
    }
    r.msg(Msg::Engine(Box::new(event.clone())));
    assert_eq!(sent(&r), [SessionCommand::Fork { entry: head }]);
    r.clear().msg(Msg::Engine(Box::new(event)));
    assert!(sent(&r).is_empty(), "once only");
    // Nothing to branch in a session without words.
    let (mut r, _) = opened(80, 24);
    r.run("down; down; ctrl-x f");
    assert!(sent(&r).is_empty() && r.screen().contains("no messages yet"), "{}", r.screen());
}

mod models {
    use tiller_protocol::view::ModelChoice;

    use super::*;

    fn opened() -> Robot {
        let mut r = Robot::new(80, 24);
        r.run("ctrl-x m");
        let choice = |name: &str, why: Option<&str>| ModelChoice {
            model: ModelRef(name.into()),
            window: Some(200_000),
            price: why.is_none().then_some((3.0, 15.0)),
            long: Vec::new(),
            source: "config".into(),
            unavailable: why.map(Into::into),
        };
        let models = vec![
            choice("vendor/big", None),
            choice("vendor/small", None),
            choice("other/one", Some("no key")),
        ];
        r.reply(ReplyEvent::ModelsReply { models });
        r.clear();
        r
    }

    #[test]
    fn a_model_is_chosen_by_name() {
        let mut r = opened();
        let screen = r.screen();
        assert!(screen.contains("$3.00      $15.00") && screen.contains("Source   config"), "{screen}");
        assert_eq!(screen.matches("vendor/big").count(), 1, "the preview repeats no column: {screen}");
        assert!(!screen.contains("per million"), "{screen}");
        r.run("type small; enter");
        assert_eq!(sent(&r), [SessionCommand::SetModel { model: ModelRef("vendor/small".into()) }]);
    }

    #[test]
    fn one_that_cannot_be_used_says_why_and_stays() {
        let mut r = opened();
        assert!(r.screen().lines().any(|l| l.ends_with("  no key")), "{}", r.screen());
        r.run("type other; enter");
        assert!(sent(&r).is_empty());
        assert_eq!(r.app.layers.len(), 1);
        r.run("esc");
        assert!(sent(&r).is_empty() && r.app.layers.is_empty());
    }
}

#[test]
fn what_takes_a_session_away_waits_until_the_list_was_in_sight() {
    let (mut r, rows) = opened(80, 24);
    for key in ["ctrl-x", "d"] {
        r.msg(crate::app::msg::Msg::Input(Input::Key(crate::keymap::Chord::parse(key).unwrap().event())));
    }
    assert_eq!(sent(&r), [], "{}", r.screen());
    r.run("wait 401; ctrl-x d");
    assert_eq!(sent(&r), [SessionCommand::Trash { id: rows[0].id, trashed: true }]);
}
