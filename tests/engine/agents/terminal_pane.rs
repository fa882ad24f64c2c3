//! A terminal program as an agent: viewing its screen, typing into it, sending it messages, releasing it. A script
//! plays the program.

use std::sync::Arc;

use tiller_external::Adapters;
use tiller_protocol::command::{Query, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{
    Activity, ActivitySource, AgentCommand, AgentState, AgentView, AskBody, AskReply, Block, CommandBody,
    Decision, EntryBody, EventBody, Mods, PaneCommand, PaneKey, Receipt, ScreenView, SendMode, TerminalInput,
};

use crate::agents::delegation::{agent, next_state, state};
use crate::rig::*;
use tiller_engine::crew::Programs;

/// A prompt `> `; it answers each line after a moment of work, rings the bell and sets a title.
const TALKER: &str = r#"stty raw -echo
printf '\033[?2004h\033]2;toy \033]8;;x\033\\works\007\007'
ask() { printf '\r\n> '; }
ask
line=
while :; do
  c=$(dd bs=1 count=1 2>/dev/null; echo x); c=${c%x}
  case $c in
    "$(printf '\r')")
      [ "$line" = bye ] && exit 0
      printf '\r\n* working (esc to stop)'; sleep 1.5
      printf '\r\033[Kanswer: %s\r\n' "$line"; line=; ask ;;
    "$(printf '\033')") dd bs=1 count=5 >/dev/null 2>&1 ;;
    '') exit 0 ;;
    *) line=$line$c; printf %s "$c" ;;
  esac
done"#;

fn toy(place: &Place, script: &str) -> Programs {
    let folder = place.tmp.path().join("adapters");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("toy.sh");
    tiller_testkit::program(&program, &format!("#!/bin/sh\n{script}\n"));
    let adapter = format!(
        "name = \"toy\"\ntitle = \"Toy\"\n[program]\ncommand = \"{}\"\ninstall = \"nothing\"\n[pty]\ncareful = []\n\
         ready = '^> *$'\nworking = 'esc to stop'\nanswer = '^answer: (.*)$'\nsettle = 0.2\nquiet = 0.4\n",
        program.display()
    );
    std::fs::write(folder.join("toy.toml"), adapter).unwrap();
    let adapters = Adapters::new(&[folder]);
    assert!(adapters.get("toy").is_some(), "the adapter is right");
    Programs {
        adapters,
        host: tiller_tool::shell::Host::default(),
        lookup: Arc::new(|_| None),
        trust: Arc::new(|_, _, _| None),
    }
}

/// Asks on its screen, in words that no rule understands.
const SHIPPER: &str = r#"stty raw -echo
printf '\r\nShip it?\r\n  deploys the site\r\n  to production\r\nGo on (y/n)'
while :; do
  case $(dd bs=1 count=1 2>/dev/null) in
    y) printf '\033[2J\033[Hanswer: shipped\r\n> ' ;;
    n) printf '\033[2J\033[Hanswer: kept\r\n> ' ;;
  esac
done"#;

const SHIPS: &str = r#"
[[pty.dialog]]
name = "permission"
permission = true
all = ['Go on \(y/n\)']
option = [
  { id = "yes", name = "Yes", kind = "allow-once", keys = "y" },
  { id = "no", name = "No", kind = "reject-once", keys = "n" },
]
"#;

/// Nothing is known of the call: all that the program shows is shown, and no rule is offered that would open more than that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dialog_on_a_programs_screen_is_shown_whole_and_offers_no_rule() {
    for (yes, said) in [(true, "shipped"), (false, "kept")] {
        let place = Place::new();
        let toy = toy(&place, SHIPPER);
        let file = place.tmp.path().join("adapters/toy.toml");
        let adapter = std::fs::read_to_string(&file).unwrap() + SHIPS;
        std::fs::write(&file, adapter).unwrap();
        let adapters = Adapters::new(&[place.tmp.path().join("adapters")]);
        assert!(adapters.get("toy").is_some_and(|a| a.pty.as_ref().is_some_and(|p| p.dialog.len() == 1)));
        let change = |p: &mut tiller_engine::EngineConfig| {
            p.crew.programs = Some(Programs { adapters, ..toy });
            p.session.profile = Some(tiller_protocol::Profile::Ask);
        };
        let mut rig = place.start_with(&Fake::new([]), change).await;
        rig.send(CommandBody::Agent(AgentCommand::Spawn {
            goal: "ship".into(),
            role: None,
            model: None,
            cli: Some("toy:pty".into()),
            isolated: false,
        }));
        let ask = rig.asked().await;
        let AskBody::Permission(p) = &ask.body else { panic!("{ask:?}") };
        for part in ["Ship it?", "deploys the site", "to production", "Go on (y/n)"] {
            assert!(p.shown.contains(part), "{part}: {p:?}");
        }
        assert_eq!((p.tool.as_str(), &p.always), ("toy:permission", &None), "{p:?}");
        let decision = if yes { Decision::Once } else { Decision::Deny { comment: None } };
        rig.answer(&ask, AskReply::Permission { decision, hash: p.hash.clone() });
        shows(&mut rig, &format!("answer: {said}")).await;
        rig.kill().await;
    }
}

async fn started(place: &Place) -> Rig {
    started_with(place, TALKER).await
}

async fn started_with(place: &Place, script: &str) -> Rig {
    let toy = toy(place, script);
    let fake = Fake::new([]);
    let mut rig = place
        .start_with(&fake, |p| {
            p.crew.programs = Some(toy);
            p.config.agents.typing_pause = 1;
        })
        .await;
    rig.send(CommandBody::Agent(AgentCommand::Spawn {
        goal: "hello there".into(),
        role: None,
        model: None,
        cli: Some("toy:pty".into()),
        isolated: false,
    }));
    state(&mut rig, "main/a1", AgentState::Running).await;
    rig
}

fn pane(rig: &mut Rig, command: PaneCommand) {
    rig.send_to("main/a1", CommandBody::Pane(command));
}

fn keys(rig: &mut Rig, text: &str) {
    let key = |c| TerminalInput::Key {
        key: if c == '\n' { PaneKey::Enter } else { PaneKey::Char(c) },
        mods: Mods::default(),
    };
    pane(rig, PaneCommand::Type { typed: text.chars().map(key).collect() });
}

/// The next screen after `since`.
async fn look(rig: &mut Rig, since: u64) -> ScreenView {
    let cause = rig.send_to("main/a1", CommandBody::Query(Query::Screen { since }));
    rig.until_of("a picture", |e| match &e.body {
        EventBody::Reply(r) if e.cause == Some(cause) => match r.as_ref() {
            ReplyEvent::ScreenReply { screen } => Some(screen.clone()),
            other => panic!("{other:?}"),
        },
        _ => None,
    })
    .await
}

/// Waits until the screen shows `text`; returns its lines.
async fn shows(rig: &mut Rig, text: &str) -> String {
    let mut rows: Vec<String> = Vec::new();
    let mut since = 0;
    loop {
        let view = look(rig, since).await;
        since = view.rev;
        rows.resize(view.height.into(), String::new());
        for (at, row) in view.rows {
            rows[usize::from(at)] = row.iter().map(|r| r.text.as_str()).collect();
        }
        let screen = rows.join("\n");
        if screen.contains(text) {
            return screen;
        }
        assert!(!view.ended, "{screen}");
    }
}

async fn row(rig: &mut Rig, what: &str, wanted: impl Fn(&AgentView) -> bool) -> AgentView {
    let found = |b: &EventBody| match b {
        EventBody::State(StateEvent::AgentChanged { view })
            if view.id == agent("main/a1") && wanted(view) =>
        {
            Some(view.clone())
        }
        _ => None,
    };
    match rig.seen.iter().rev().find_map(|e| found(&e.body)) {
        Some(view) => view,
        None => rig.until_of(what, |e| found(&e.body)).await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_row_has_the_exit_code_once_the_program_has_ended() {
    let place = Place::new();
    let mut rig = started_with(&place, "stty raw -echo; printf 'no licence\\r\\n'; sleep 1; exit 3").await;
    let view = row(&mut rig, "its end", |v| v.child.as_ref().is_some_and(|c| c.exit.is_some())).await;
    let child = view.child.unwrap();
    assert_eq!((view.state, child.exit, child.pane), (AgentState::Failed, Some(3), None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_screen_is_told_as_it_changes_and_a_person_works_in_it() {
    let place = Place::new();
    let mut rig = started(&place).await;
    row(&mut rig, "a terminal", |v| v.child.as_ref().is_some_and(|c| c.pane.is_some())).await;
    pane(&mut rig, PaneCommand::Size { cols: 60, rows: 12 });
    pane(&mut rig, PaneCommand::Enter { on: true });
    let screen = shows(&mut rig, "answer: hello there").await;
    assert_eq!(screen.split('\n').count(), 12, "it has the size of the pane");
    // Bell and title are shown on its row; control characters in a title are removed.
    let told = |v: &AgentView| v.child.as_ref().and_then(|c| c.pane.clone());
    let view =
        row(&mut rig, "title and bell", |v| told(v).is_some_and(|p| p.bells > 0 && !p.title.is_empty()))
            .await;
    let p = told(&view).unwrap();
    assert!(p.title.starts_with("toy") && !p.title.contains('\u{1b}'), "{p:?}");
    // While nothing changes, no event is published.
    let rest = row(&mut rig, "idle", |v| {
        told(v).is_some_and(|p| p.doing == Activity::Idle && p.source == ActivitySource::Screen)
    })
    .await;
    assert_eq!(rest.state, AgentState::Running, "a person is in it: it does not end");
    let now = look(&mut rig, 0).await;
    let asked = rig.send_to("main/a1", CommandBody::Query(Query::Screen { since: now.rev }));
    // The later query is answered, so the query of the screen was handled.
    let later = rig.send_to("main/a1", CommandBody::Query(Query::Scrollback { lines: 1 }));
    rig.until_of("history", |e| (e.cause == Some(later)).then_some(())).await;
    let reply = rig.seen.iter().find(|e| e.cause == Some(asked));
    assert!(reply.is_none(), "{reply:?}");
    // The user types; only the changed row is sent.
    keys(&mut rig, "b");
    let typed = look(&mut rig, now.rev).await;
    assert!(typed.rows.len() <= 2, "{typed:?}");
    keys(&mut rig, "y the hand\n");
    shows(&mut rig, "answer: by the hand").await;
    let cause = rig.send_to("main/a1", CommandBody::Query(Query::Scrollback { lines: 100 }));
    let all = rig
        .until_of("history", |e| match &e.body {
            EventBody::Reply(r) if e.cause == Some(cause) => match r.as_ref() {
                ReplyEvent::ScrollbackReply { rows } => Some(rows.len()),
                _ => None,
            },
            _ => None,
        })
        .await;
    assert!(all >= 12);
    // It stays after the user left it, since the user typed into it, until the user releases it.
    pane(&mut rig, PaneCommand::Enter { on: false });
    row(&mut rig, "left", |v| told(v).is_some_and(|p| !p.entered && p.touched)).await;
    pane(&mut rig, PaneCommand::Finish);
    let done = next_state(&mut rig, "main/a1", AgentState::Done).await;
    let child = done.child.unwrap();
    assert_eq!((child.pane, child.backend.to_string().as_str()), (None, "toy, pty"));
    assert!(look(&mut rig, 0).await.ended, "there is nothing to look at any more");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_typed_when_it_is_ready_and_its_receipt_is_true() {
    let place = Place::new();
    // It works until the message waits for its end.
    let go = place.work.join("go");
    let works_until = format!("while [ ! -e '{}' ]; do sleep 0.05; done", go.display());
    let mut rig = started_with(&place, &TALKER.replace("sleep 1.5", &works_until)).await;
    let say = |rig: &mut Rig, text: &str| {
        let message = tiller_protocol::Message::text(text);
        rig.send_to("main/a1", CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }))
    };
    let works = |v: &AgentView| {
        v.child.as_ref().and_then(|c| c.pane.clone()).is_some_and(|p| p.doing == Activity::Working)
    };
    row(&mut rig, "its work", works).await;
    // The message waits, and is delivered in the same run.
    let cause = say(&mut rig, "and then this");
    let queued = |e: &tiller_protocol::Event| {
        let queued = matches!(&e.body, EventBody::State(StateEvent::Receipt { receipt: Receipt::Queued }));
        (queued && e.cause == Some(cause)).then_some(())
    };
    rig.until_of("its receipt", queued).await;
    place.file("go", "");
    let receipt = |rig: &Rig, cause| -> Vec<Receipt> {
        let all = rig.seen.iter().filter(|e| e.cause == Some(cause));
        all.filter_map(|e| match &e.body {
            EventBody::State(StateEvent::Receipt { receipt }) => Some(receipt.clone()),
            _ => None,
        })
        .collect()
    };
    let done = next_state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "and then this");
    let told = receipt(&rig, cause);
    assert!(matches!(told[..], [Receipt::Queued, Receipt::Delivered { .. }]), "{told:?}");
    let store = place.parts(&Fake::new([])).store;
    let session = rig.seen.iter().rev().find(|e| e.agent == agent("main/a1")).map(|e| e.session).unwrap();
    let said: Vec<String> = store
        .paths()
        .tail(session, "main", 100)
        .unwrap()
        .entries
        .iter()
        .filter_map(|e| match &e.body {
            EntryBody::User { message, .. } => Some(format!("user {}", message.text)),
            EntryBody::Assistant { blocks, .. } => blocks.iter().find_map(|b| match b {
                Block::Text { text } => Some(format!("it {text}")),
                _ => None,
            }),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["user hello there", "it hello there", "user and then this", "it and then this"]);
    drop(store);
    rig.quit().await;
}

/// It waits in a dialog that is no permission question: the confirmation comes first, as with real programs.
const ASKER: &str = r#"stty raw -echo
printf 'Do you trust this folder?\r\n'
cat >/dev/null"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dialog_of_a_program_begins_on_what_grants_nothing() {
    let place = Place::new();
    let mut toy = toy(&place, ASKER);
    let folder = place.tmp.path().join("adapters");
    let mut adapter = std::fs::read_to_string(folder.join("toy.toml")).unwrap();
    adapter.push_str(
        "[[pty.dialog]]\nname = \"trust\"\nall = ['Do you trust']\noption = [\n\
         { id = \"yes\", name = \"Yes, I trust it\", kind = \"allow-once\", keys = \"y\" },\n\
         { id = \"no\", name = \"No, exit\", kind = \"reject-once\", keys = \"n\" },\n]\n",
    );
    std::fs::write(folder.join("toy.toml"), adapter).unwrap();
    toy.adapters = Adapters::new(&[folder]);
    let mut rig = place.start_with(&Fake::new([]), |p| p.crew.programs = Some(toy)).await;
    rig.send(CommandBody::Agent(AgentCommand::Spawn {
        goal: "hello there".into(),
        role: None,
        model: None,
        cli: Some("toy:pty".into()),
        isolated: false,
    }));
    let ask = rig.asked().await;
    let AskBody::Clarify { choices, default, decides, .. } = &ask.body else { panic!("{ask:?}") };
    assert_eq!((choices[0].as_str(), default, decides.as_slice()), ("Yes, I trust it", &Some(1), &[0][..]));
    rig.answer(&ask, AskReply::Choice { answers: vec![choices[1].clone()] });
    rig.quit().await;
}
