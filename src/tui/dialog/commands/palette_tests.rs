use tiller_protocol::command::TurnCommand;

use super::*;
use crate::panel::{Panel as _, PanelEvent};
use crate::scene::{ask, running};
use crate::testing::Robot;

#[test]
fn commands_settings_and_questions_are_in_it_each_once() {
    let mut r = Robot::new(80, 24);
    ask(&mut r, 1);
    r.run("esc").run("ctrl-p");
    let screen = r.screen();
    assert!(screen.contains("Answer:") && screen.contains("waiting"), "{screen}");
    let mut all = open(&r.app);
    all.handle(PanelEvent::Opened, &r.app.model);
    let all = all.rows();
    for c in slash::COMMANDS.0 {
        let name = format!("/{}", c.name());
        let usage =
            if c.usage().is_empty() { &name } else { c.usage().split('[').next().unwrap_or_default().trim() };
        let id = c.action().map_or(format!("slash {}", c.name()), |a| format!("action {}", a.0));
        let found: Vec<&Item> = all.iter().filter(|i| i.id == id).collect();
        assert_eq!(found.len(), 1, "{usage} is there {} times", found.len());
        assert!(found[0].more.contains(&name), "{name} cannot be searched for");
        // A row without a key shows how the command is written.
        let way = found[0].cells.last().map_or("", |c| c.text.as_str());
        assert!(!way.is_empty() && (c.action().is_some() || way == usage), "{usage}: {way:?}");
    }
    for s in screen::rows(&r.app.model.ui) {
        assert!(all.contains(&s), "{} is missing", s.id);
    }
}

#[test]
fn no_two_rows_say_the_same() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-p");
    let mut source = open(&r.app);
    source.handle(PanelEvent::Opened, &r.app.model);
    let mut texts: Vec<String> = source.rows().iter().map(|i| i.text.clone()).collect();
    texts.sort();
    assert!(texts.len() > 100, "{texts:?}");
    for pair in texts.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
}

#[test]
fn a_command_that_needs_words_waits_in_the_composer() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-p").run("type /budget").run("enter").run("type 2.5").clear();
    r.run("enter");
    assert!(
        matches!(r.commands()[..], [CommandBody::Session(SessionCommand::SetBudget { usd })] if *usd == 2.5),
        "{}",
        r.screen()
    );
}

#[test]
fn a_command_without_words_is_done() {
    let mut r = Robot::new(80, 24);
    running(&mut r);
    r.clear().run("ctrl-p").run("type /stop").run("enter");
    let stops = |c: &&CommandBody| matches!(c, CommandBody::Turn(TurnCommand::Interrupt { .. }));
    assert_eq!(r.commands().into_iter().filter(stops).count(), 1);
}

#[test]
fn a_question_is_opened_by_its_row() {
    let mut r = Robot::new(80, 24);
    ask(&mut r, 1);
    ask(&mut r, 2);
    r.run("esc").run("esc");
    assert!(r.app.layers.is_empty());
    r.run("ctrl-p").run("type answer wants").run("down").run("enter");
    let open = r.app.layers.last().and_then(|l| l.question(&r.app.model));
    assert_eq!(open, r.app.model.questions.open.get(1).map(|a| a.id), "{}", r.screen());
}

#[test]
fn a_colon_opens_it_from_every_pane() {
    for view in ["alt-1", "alt-2", "alt-3", "alt-4", "alt-5", "alt-6"] {
        let mut r = Robot::new(80, 24);
        r.run(view).run(":");
        assert!(r.screen().contains("Palette"), "{view}\n{}", r.screen());
    }
}

#[test]
fn a_setting_shows_its_value_and_changes() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-p").run("type ui.ascii");
    assert!(r.screen().contains("off"), "{}", r.screen());
    r.run("enter");
    assert!(r.app.model.ui.ascii);
}

#[test]
fn agents_are_in_it_and_choosing_one_goes_to_it() {
    let mut r = Robot::new(118, 40);
    crate::scene::play(&mut r);
    r.run("ctrl-p; type Agent: tests; enter");
    assert_eq!(r.app.screen.focus, View::Agents, "{}", r.screen());
    let row = r.cursor().map(|c| usize::from(c.y)).and_then(|y| r.screen().lines().nth(y).map(str::to_owned));
    assert!(row.as_ref().is_some_and(|l| l.contains("a1 tes")), "{row:?}\n{}", r.screen());
}

#[test]
fn what_was_used_last_comes_first() {
    let mut r = Robot::new(118, 25);
    r.run("ctrl-p; type draw the whole; enter; ctrl-p");
    let first = |r: &Robot| r.screen().lines().find(|l| l.contains("Ctrl-L")).map(str::to_owned);
    assert!(first(&r).is_some_and(|l| l.contains("Redraw the whole screen")), "{}", r.screen());
    let mut all = open(&r.app);
    all.handle(PanelEvent::Opened, &r.app.model);
    assert_eq!(all.rows()[0].id, "action global.redraw");
}

#[test]
fn nothing_that_ends_something_is_selected_by_itself() {
    let chosen = |r: &Robot| {
        let mut all = open(&r.app);
        all.handle(PanelEvent::Opened, &r.app.model);
        all.chosen().cloned()
    };
    let mut r = Robot::new(118, 25);
    assert!(chosen(&r).is_some_and(|i| !i.decides && i.disabled.is_none()), "{:?}", chosen(&r));
    // Also when it was used last.
    r.app.keys.recent = vec!["action session.new".into(), "action global.quit".into()];
    assert!(chosen(&r).is_some_and(|i| !i.decides), "{:?}", chosen(&r));
    r.app.keys.recent.push("action global.redraw".into());
    assert_eq!(chosen(&r).map(|i| i.id).as_deref(), Some("action global.redraw"));
    for (_, s) in r.app.registry.words().actions() {
        let by_name = ["quit", "detach", "stop", "clear", "undo"].contains(&s.label);
        assert!(!by_name || !s.palette || s.ends, "{} ends something", s.action.0);
    }
}

#[test]
fn what_the_focused_panel_offers_comes_first_and_each_row_stands_once() {
    let mut r = Robot::new(118, 25);
    crate::scene::play(&mut r);
    r.run("alt-2");
    let mut all = open(&r.app);
    all.handle(PanelEvent::Opened, &r.app.model);
    let asked = r.app.model.questions.open.len();
    let first = &all.rows()[asked];
    assert!(first.group.starts_with("Todo") && first.id.starts_with("action todo."), "{first:?}");
    let mut ids: Vec<&str> = all.rows().iter().map(|i| i.id.as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn a_match_in_what_is_seen_comes_before_one_in_hidden_words() {
    let mut r = Robot::new(118, 25);
    r.run("ctrl-p; type quit");
    let mut all = open(&r.app).filtered("quit");
    all.handle(PanelEvent::Opened, &r.app.model);
    assert!(all.chosen().is_some_and(|i| i.text.to_lowercase().contains("quit")), "{:?}", all.chosen());
}

#[test]
fn keys_of_other_places_are_named_in_help_and_not_offered() {
    let mut r = Robot::new(118, 40);
    r.run("f1; type next hunk");
    assert!(r.screen().contains("in Diff review"), "{}", r.screen());
    r.run("enter");
    assert!(r.screen().contains("in Diff review"), "it has no function here: {}", r.screen());
}

#[test]
fn a_wait_for_the_next_try_can_be_skipped_and_the_layout_changed_by_key() {
    use tiller_protocol::event::TurnEvent;
    let mut r = Robot::new(118, 25);
    running(&mut r);
    r.clear().run("ctrl-x R");
    assert!(r.commands().is_empty(), "No message is waiting");
    crate::scene::play(&mut r);
    r.clear();
    let why = "the server is busy".into();
    r.event(EventBody::Turn(TurnEvent::Retrying { attempt: 2, of: 5, seconds: 30.0, why, discard: false }));
    assert!(r.screen().contains("Ctrl-X R now"), "{}", r.screen());
    r.run("ctrl-x R");
    assert_eq!(r.commands(), [&CommandBody::Turn(TurnCommand::SkipWait)]);
    r.run("ctrl-x L");
    assert!(r.screen().contains("Layout: half and half"), "{}", r.screen());
    r.run("ctrl-x L");
    assert!(
        r.screen().contains("conversation only") && !r.screen().contains("Session tree"),
        "{}",
        r.screen()
    );
    r.run("ctrl-x L");
    assert!(r.screen().contains("Session tree"), "{}", r.screen());
    r.run("size 80x24; ctrl-x L");
    assert!(r.screen().contains("one view at a time"), "{}", r.screen());
}

#[test]
fn a_word_that_stands_there_comes_before_letters_found_here_and_there() {
    for (word, first) in [
        ("context", "▌ What takes up the model's context"),
        ("diff", "▌ Go to the diff review"),
        ("quit", "▌ Save and quit"),
        ("rename", "▌ Rename this session"),
    ] {
        let mut r = Robot::new(100, 24);
        r.run(&format!("ctrl-p; type {word}"));
        assert!(r.screen().contains(first), "{word}: {}", r.screen());
    }
}

/// The changes of the last turn are offered for review at once, whichever panels were used.
#[test]
fn changes_of_the_last_turn_are_suggested_for_review() {
    use crate::app::msg::Msg;
    use crate::model::conversation::script::Script;
    use tiller_protocol::tool::{Display, FileDiff};

    let review = |r: &Robot| {
        let mut all = open(&r.app);
        all.handle(PanelEvent::Opened, &r.app.model);
        all.rows().iter().find(|i| i.id == "action review.open").map(|i| i.group.clone())
    };
    let mut r = Robot::new(100, 30);
    let mut s = Script::new();
    let said = s.user("go");
    let event = s.snapshot(vec![said], 0, false);
    r.msg(Msg::Engine(Box::new(event)));
    assert_ne!(review(&r).as_deref(), Some(SUGGESTED));
    let (path, diff) = ("a.rs".into(), "@@ -0,0 +1 @@\n+a\n".into());
    let file = FileDiff { path, kind: tiller_protocol::ChangeKind::Added, added: 1, removed: 0, diff };
    let call = s.tool("c1", "edit_file", "edit", "a.rs", "", Some(Display::Diff { files: vec![file] }));
    for event in call {
        r.msg(Msg::Engine(Box::new(event)));
    }
    assert_eq!(review(&r).as_deref(), Some(SUGGESTED));
}

#[test]
fn commands_from_files_are_listed_as_they_are_now() {
    let row = |name: &str, hint: &str, unused: &str| CommandRow {
        name: name.into(),
        description: format!("About {name}"),
        hint: hint.into(),
        unused: unused.into(),
    };
    let answer = |r: &mut Robot, rows: Vec<CommandRow>| {
        // The newest question is the palette's.
        let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Commands })));
        let reply = SkillReply::Commands { rows };
        r.cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
    };
    let sent = |r: &Robot| {
        let text = |c: &CommandBody| match c {
            CommandBody::Turn(TurnCommand::Submit { message, .. }) => Some(message.text.clone()),
            _ => None,
        };
        r.commands().into_iter().find_map(text)
    };
    let mut r = Robot::new(118, 25);
    r.run("ctrl-p");
    answer(
        &mut r,
        vec![
            row("fresh", "[when]", ""),
            row("kept", "", "the command /kept is not used"),
            row("quit", "", ""),
        ],
    );
    r.run("type about kept");
    assert!(r.screen().contains("The command /kept is not used"), "{}", r.screen());
    r.run("ctrl-u; type about quit");
    assert!(!r.screen().contains("About quit"), "{}", r.screen());
    r.run("ctrl-u; type about fresh; enter");
    assert_eq!(sent(&r).as_deref(), Some("/fresh"), "{}", r.screen());
    // It takes words now, and is gone later.
    r.clear().run("ctrl-p");
    answer(&mut r, vec![row("fresh", "WHEN", "")]);
    r.run("type about fresh; enter");
    assert!(sent(&r).is_none() && r.screen().contains("▌ /fresh"), "{}", r.screen());
    r.clear().run("ctrl-u; ctrl-p");
    answer(&mut r, Vec::new());
    r.run("type about fresh");
    assert!(!r.screen().contains("About fresh"), "{}", r.screen());
}
