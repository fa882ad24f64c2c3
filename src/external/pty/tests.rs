use std::time::{Duration, Instant};

use tiller_tool::shell::Host;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::fake::{Fake, TIMEOUT, all};
use crate::{
    Activity, AgentEvent, Answer, Ask, ChoiceKind, Control, Job, Question, Receipt, Status, Transport, start,
};

/// A program with a composer `> ` that works a moment and then answers each line with `answer: LINE`.
const TALKER: &str = r#"stty raw -echo
printf '\033[?2004h'
ask() { printf '\r\n> '; }
ask
line=
while :; do
  c=$(dd bs=1 count=1 2>/dev/null; echo x); c=${c%x}
  case $c in
    "$(printf '\r')")
      [ "$line" = bye ] && exit 0
      [ "$line" = die ] && kill -SEGV $$
      printf '\r\n* working (esc to stop)'; sleep 0.4
      printf '\r\033[Kanswer: %s\r\n' "$line"; line=; ask ;;
    "$(printf '\033')") dd bs=1 count=5 >/dev/null 2>&1 ;;
    '') exit 0 ;;
    *) line=$line$c; printf %s "$c" ;;
  esac
done"#;

const PTY: &str = r#"[pty]
ready = '^> *$'
working = 'esc to stop'
answer = '^answer: (.*)$'
settle = 0.3
quiet = 0.5
careful = []
"#;

fn job(fake: &Fake, prompt: &str) -> Job {
    let mut job = fake.job(prompt);
    job.transport = Some(Transport::Pty);
    job.limits.coalesce = Duration::from_millis(200);
    job
}

async fn next(said: &mut mpsc::Receiver<AgentEvent>) -> AgentEvent {
    timeout(TIMEOUT, said.recv()).await.expect("the stream is stuck").expect("no ending")
}

async fn until<T>(
    said: &mut mpsc::Receiver<AgentEvent>,
    mut wanted: impl FnMut(AgentEvent) -> Option<T>,
) -> T {
    loop {
        let s = next(said).await;
        if let AgentEvent::Ended(e) = &s {
            panic!("it ended: {e:?}");
        }
        if let Some(t) = wanted(s) {
            return t;
        }
    }
}

/// Waits until the driver's screen contains `text`.
async fn shows(control: &Control, text: &str) {
    let end = Instant::now() + TIMEOUT;
    while !control.screen().unwrap().text().contains(text) {
        assert!(Instant::now() < end, "no {text}: {}", control.screen().unwrap().text());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_prompt_is_typed_and_its_answer_is_read_from_the_screen() {
    // It works until it was seen working.
    let script = TALKER.replace("sleep 0.4", "while [ ! -e seen ]; do sleep 0.02; done");
    let fake = Fake::new(PTY, &script);
    let (_control, mut said) = start(job(&fake, "hello there"), &Host::default()).unwrap();
    until(&mut said, |s| matches!(s, AgentEvent::State(g) if g.what == Activity::Working).then_some(()))
        .await;
    std::fs::write(fake.tmp.path().join("seen"), "").unwrap();
    let (_, ending) = all(said).await;
    assert_eq!((ending.status, ending.text.as_str()), (Status::Done, "hello there"), "{ending:?}");
}

#[tokio::test]
async fn messages_are_coalesced_wait_for_the_turn_and_for_the_persons_hands() {
    let fake = Fake::new(PTY, TALKER);
    let mut job = Job { stay: true, ..job(&fake, "one") };
    job.limits.typing = Duration::from_millis(1500);
    let (control, mut said) = start(job, &Host::default()).unwrap();
    let turn = |s| if let AgentEvent::TurnDone { text } = s { Some(text) } else { None };
    assert_eq!(until(&mut said, turn).await, "one");
    // A person types half a word: nothing else is typed before the pause is over.
    assert!(control.keys(b"ab".to_vec()));
    let begun = Instant::now();
    let Receipt::Queued { id: first } = control.say("two") else { panic!() };
    let Receipt::Queued { id: second } = control.say("three") else { panic!() };
    // The composer is not empty, so the program is not ready: the person clears it.
    assert!(control.keys(b"\r".to_vec()));
    let mut delivered = Vec::new();
    until(&mut said, |s| match s {
        AgentEvent::Delivered { id } => {
            delivered.push(id);
            None
        }
        AgentEvent::TurnDone { .. } => Some(()),
        _ => None,
    })
    .await;
    assert!(begun.elapsed() >= Duration::from_millis(1500), "{:?}", begun.elapsed());
    assert_eq!(delivered, [first, second]);
    let lines = control.scrollback(1000).unwrap();
    for answer in ["answer: ab", "answer: two"] {
        assert_eq!(lines.iter().filter(|l| l.starts_with(answer)).count(), 1, "{lines:?}");
    }
    control.stop(false);
    while !matches!(next(&mut said).await, AgentEvent::Ended(_)) {}
}

/// Shows a dialog first, then continues as the talker.
fn with_dialog(first: &str) -> String {
    format!(
        "stty raw -echo\nprintf 'May I look?\\r\\n 1. Yes\\r\\n 2. No\\r\\n'\nc=$(dd bs=1 count=1 2>/dev/null)\nprintf '%s' \"$c\" >chosen\nprintf '\\033[2J\\033[H'\n{first}{TALKER}"
    )
}

const DIALOG: &str = r#"
[[pty.dialog]]
name = "look"
permission = true
all = ['May I look\?', '1\. Yes']
option = [
  { id = "yes", name = "Yes", kind = "allow-once", keys = "1" },
  { id = "no", name = "No", kind = "reject-once", keys = "2" },
]
"#;

#[tokio::test]
async fn dialogs_are_asked_or_answered_by_rule_and_typed_once() {
    let script = with_dialog("");
    for (auto, answer, key) in [
        // Also where everything is allowed: rules answer.
        (true, Some(Answer::Kind(ChoiceKind::AllowOnce)), "1"),
        (false, Some(Answer::Kind(ChoiceKind::AllowOnce)), "1"),
        (false, Some(Answer::Kind(ChoiceKind::RejectAlways)), "2"),
        (false, None, "2"),
    ] {
        let fake = Fake::new(&format!("{PTY}{DIALOG}"), &script);
        let job = Job { auto_approve: auto, ..job(&fake, "hi") };
        let (_control, mut said) = start(job, &Host::default()).unwrap();
        let mut asked = 0;
        let ending = loop {
            match next(&mut said).await {
                AgentEvent::Ask(Ask { what, reply, .. }) => {
                    asked += 1;
                    let Question::Permission { shown, options, .. } = what else { panic!() };
                    assert!(shown.contains("May I look?") && shown.contains("2. No"), "{shown}");
                    assert_eq!(options.len(), 2);
                    match answer.clone() {
                        Some(answer) => reply.send(answer).unwrap(),
                        None => drop(reply),
                    }
                }
                AgentEvent::Ended(e) => break e,
                _ => {}
            }
        };
        assert_eq!((ending.status, asked), (Status::Done, 1), "{ending:?}");
        assert_eq!(std::fs::read_to_string(fake.tmp.path().join("chosen")).unwrap(), key);
    }
}

#[tokio::test]
async fn one_dialog_after_another_is_answered_by_rule_too() {
    let second = "printf 'Sure?\\r\\n 1. Yes\\r\\n'\nc=$(dd bs=1 count=1 2>/dev/null)\nprintf '%s' \"$c\" >>chosen\nprintf '\\033[2J\\033[H'\n";
    let more = "[[pty.dialog]]\nname = \"sure\"\nall = ['Sure\\?']\nrule = \"y\"\noption = [{ id = \"y\", name = \"Yes\", keys = \"y\" }]\n";
    let dialog = DIALOG.replace("permission = true", "auto = \"yes\"");
    let fake = Fake::new(&format!("{PTY}{dialog}{more}"), &with_dialog(second));
    let (_control, said) = start(job(&fake, "hi"), &Host::default()).unwrap();
    let (said, ending) = all(said).await;
    assert_eq!(ending.status, Status::Done, "{ending:?}");
    assert!(!said.iter().any(|s| matches!(s, AgentEvent::Ask(_))));
    assert_eq!(std::fs::read_to_string(fake.tmp.path().join("chosen")).unwrap(), "1y");
}

#[tokio::test]
async fn a_question_is_withdrawn_when_a_person_answers_it_on_the_screen() {
    let fake = Fake::new(&format!("{PTY}{DIALOG}"), &with_dialog(""));
    let job = Job { auto_approve: false, ..job(&fake, "hi") };
    let (control, mut said) = start(job, &Host::default()).unwrap();
    let mut ask = until(&mut said, |s| if let AgentEvent::Ask(a) = s { Some(a) } else { None }).await;
    control.attach(true);
    assert!(control.keys(b"2".to_vec()));
    timeout(TIMEOUT, ask.reply.closed()).await.expect("it waits on");
    // It stays while a person watches, and ends when they leave.
    until(&mut said, |s| matches!(s, AgentEvent::TurnDone { .. }).then_some(())).await;
    control.attach(false);
    let (_, ending) = all(said).await;
    assert_eq!(ending.status, Status::Done, "{ending:?}");
}

#[tokio::test]
async fn what_goes_wrong_in_a_terminal_is_an_ending() {
    for (script, prompt, status, word) in [
        ("exit 3", "x", Status::Failed, "code 3"),
        ("echo Not logged in; exit 1", "x", Status::Failed, "log in"),
        (TALKER, "die", Status::Crashed, "signal 11"),
        (TALKER, "bye", Status::Failed, "before its turn"),
        ("echo starting; sleep 3000", "x", Status::TimedOut, "did not show its prompt"),
        // It shows a prompt and accepts no input.
        ("stty -echo; printf '> '; sleep 3000", "x", Status::Failed, "did not show the typed text"),
    ] {
        // Short only where it must run out; an unknown screen is not asked about before.
        let wait = if status == Status::TimedOut { 2.0 } else { 60.0 };
        let fake = Fake::new(&format!("{PTY}unknown = 600.0\nstart = {wait:?}\n"), script);
        let ending = fake.ending(job(&fake, prompt)).await;
        assert_eq!(ending.status, status, "{script}: {ending:?}");
        assert!(ending.why.contains(word), "{script}: {ending:?}");
    }
}

#[tokio::test]
async fn u7_a_flood_keeps_the_latest_screen_and_costs_the_channel_next_to_nothing() {
    let fake = Fake::new(PTY, "yes 'a line that says the same again and again, without an end in sight'");
    let (control, mut said) = start(job(&fake, "x"), &Host::default()).unwrap();
    let begun = Instant::now();
    let (mut screens, mut slowest) = (0u32, Duration::ZERO);
    while begun.elapsed() < Duration::from_secs(3) || screens < 5 {
        assert!(begun.elapsed() < TIMEOUT, "{screens} screens");
        if let Ok(Some(AgentEvent::Screen)) = timeout(Duration::from_millis(100), said.recv()).await {
            screens += 1;
        }
        let look = Instant::now();
        let grid = control.screen().unwrap();
        slowest = slowest.max(look.elapsed());
        assert!(grid.rows.len() == 24);
    }
    println!("{screens} screens told, slowest look {slowest:?}");
    // At most one in 50 ms, however much was drawn.
    let most = begun.elapsed().as_millis() / 50 + 20;
    assert!(u128::from(screens) <= most, "{screens} of {most}");
    // The flood never ends: a look that waited for its end would not come back.
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    control.stop(true);
    let (_, ending) = all(said).await;
    assert_eq!(ending.status, Status::Cancelled);
}

#[tokio::test]
async fn its_size_follows() {
    let fake = Fake::new(PTY, "printf '> '; while :; do stty size; sleep 0.1; done");
    let (control, _said) = start(Job { prompt: String::new(), ..job(&fake, "") }, &Host::default()).unwrap();
    assert!(control.resize(91, 31));
    shows(&control, "31 91").await;
    assert_eq!(control.screen().unwrap().rows.len(), 31);
}

/// A list without numbers, with a selection moved by arrow keys; `chosen` gets the line that Enter confirmed.
const LIST: &str = r#"stty raw -echo
at=0
draw() {
  printf '\033[2J\033[HWhat shall I trust?\r\n\r\n'
  n=0
  for name in 'No, exit' 'Perhaps' 'Yes, I trust it'; do
    if [ $n = $at ]; then printf ' \342\235\257 %s\r\n' "$name"; else printf '   %s\r\n' "$name"; fi
    n=$((n+1))
  done
  printf '\r\nEnter to confirm\r\n'
}
draw
while :; do
  c=$(dd bs=1 count=1 2>/dev/null; echo x); c=${c%x}
  case $c in
    "$(printf '\r')") printf '%s' $at >chosen; break ;;
    "$(printf '\033')") k=$(dd bs=1 count=2 2>/dev/null)
      [ "$k" = '[B' ] && [ $at -lt 2 ] && at=$((at+1))
      [ "$k" = '[A' ] && [ $at -gt 0 ] && at=$((at-1))
      draw ;;
  esac
done
printf '\033[2J\033[H'
"#;

const TRUST: &str = r#"
[[pty.dialog]]
name = "trust"
all = ['What shall I trust', 'Yes, I trust it']
auto = "yes"
option = [
  { id = "yes", name = "Yes", kind = "allow-once", line = 'Yes, I trust it' },
  { id = "no", name = "No", kind = "reject-once", line = 'No, exit' },
]
"#;

#[tokio::test]
async fn a_list_without_numbers_is_answered_by_the_words_of_its_lines() {
    for (auto, answer, line) in [
        (true, None, "2"),
        (false, Some(Answer::Kind(ChoiceKind::AllowOnce)), "2"),
        (false, Some(Answer::Kind(ChoiceKind::RejectOnce)), "0"),
    ] {
        let fake = Fake::new(&format!("{PTY}{TRUST}"), &format!("{LIST}{TALKER}"));
        let job = Job { auto_approve: auto, ..job(&fake, "hi") };
        let (_control, mut said) = start(job, &Host::default()).unwrap();
        let ending = loop {
            match next(&mut said).await {
                AgentEvent::Ask(Ask { reply, .. }) => reply.send(answer.clone().unwrap()).unwrap(),
                AgentEvent::Ended(e) => break e,
                _ => {}
            }
        };
        assert_eq!(ending.status, Status::Done, "{ending:?}");
        assert_eq!(std::fs::read_to_string(fake.tmp.path().join("chosen")).unwrap(), line);
    }
}

/// An unknown dialog waits for the person, with or without a spinner; and nothing is typed into it.
#[tokio::test]
async fn an_unknown_dialog_needs_the_person() {
    let wheel = "while :; do printf '\\r| (3s)'; sleep 0.1; printf '\\r/ (4s)'; sleep 0.1; done & ";
    for spins in ["", wheel] {
        let script = format!(
            "stty raw -echo\nprintf 'Strange new question (y/n)\\r\\n'\n{spins}c=$(dd bs=1 count=1 2>/dev/null)\nprintf '%s' \"$c\" >chosen\n[ -n \"$!\" ] && kill $!\nprintf '\\033[2J\\033[H'\n{TALKER}"
        );
        let fake = Fake::new(&format!("{PTY}unknown = 0.7\nstart = 4.0\n"), &script);
        let (control, mut said) = start(job(&fake, "hi"), &Host::default()).unwrap();
        let mut noted = false;
        until(&mut said, |s| match s {
            AgentEvent::Note(n) => {
                noted |= n.contains("unknown state");
                None
            }
            AgentEvent::State(g) => (g.what == Activity::Blocked).then_some(()),
            _ => None,
        })
        .await;
        // Longer than the start limit: it waits for a person now.
        tokio::time::sleep(Duration::from_millis(4500)).await;
        assert!(!fake.tmp.path().join("chosen").exists(), "something was typed into it");
        assert!(control.keys(b"y".to_vec()));
        let (rest, ending) = all(said).await;
        noted |= rest.iter().any(|s| matches!(s, AgentEvent::Note(n) if n.contains("unknown state")));
        assert!(noted, "the person is told");
        assert_eq!(ending.status, Status::Done, "{ending:?}");
        assert_eq!(std::fs::read_to_string(fake.tmp.path().join("chosen")).unwrap(), "y");
    }
}

/// Between the paste and its Enter another program covers the screen: Enter is not pressed.
#[tokio::test]
async fn enter_is_not_pressed_when_something_unknown_took_the_screen() {
    // It echoes the paste, then covers its composer, and logs later input. On a slow machine the cover may be on the
    // driver's screen only after the Enter, which is then right: such a try does not count.
    let script = r"stty raw -echo
printf '> '
dd bs=1 count=5 >/dev/null 2>&1
date +%s%N >echoes
printf 'hello'
sleep 0.1
printf '\033[2J\033[Hhello: delete everything?\r\n  Sure\r\n'
dd bs=1 count=1 of=taken 2>/dev/null
sleep 3000";
    let (fake, control, mut said) = loop {
        let fake = Fake::new(&format!("{PTY}unknown = 600.0\n"), script);
        let (control, mut said) = start(job(&fake, "hello"), &Host::default()).unwrap();
        shows(&control, "delete everything").await;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let echoed: u64 =
            std::fs::read_to_string(fake.tmp.path().join("echoes")).unwrap().trim().parse().unwrap();
        if now.saturating_sub(Duration::from_nanos(echoed)) < super::driver::BEFORE_ENTER {
            break (fake, control, said);
        }
        control.stop(true);
        while !matches!(next(&mut said).await, AgentEvent::Ended(_)) {}
    };
    let ending = loop {
        if let AgentEvent::Ended(e) = next(&mut said).await {
            break e;
        }
    };
    assert_eq!(ending.status, Status::Failed, "{ending:?}");
    assert!(ending.why.contains("is unknown") && ending.why.contains("not sent"), "{ending:?}");
    let taken = std::fs::read(fake.tmp.path().join("taken")).unwrap_or_default();
    assert_ne!(taken, b"\r", "Enter went to an unknown screen");
    drop(control);
}

/// The dialog shows another file when the answer comes: nothing is typed, and it is asked again.
#[tokio::test]
async fn an_answer_is_not_typed_into_a_dialog_that_changed_by_one_digit() {
    let script = r"stty raw -echo
printf 'May I look? at file 1
 1. Yes
 2. No
'
while [ ! -e changed ]; do sleep 0.05; done
printf '[HMay I look? at file 2'
c=$(dd bs=1 count=1 2>/dev/null)
printf '%s' $c >chosen
printf '[2J[H'
";
    let fake = Fake::new(&format!("{PTY}{DIALOG}"), &format!("{script}{TALKER}"));
    let job = Job { auto_approve: false, ..job(&fake, "hi") };
    let (control, mut said) = start(job, &Host::default()).unwrap();
    let shown = |s| match s {
        AgentEvent::Ask(Ask { what: Question::Permission { shown, .. }, reply, .. }) => Some((shown, reply)),
        _ => None,
    };
    let (first, reply) = until(&mut said, shown).await;
    assert!(first.contains("file 1"), "{first}");
    std::fs::write(fake.tmp.path().join("changed"), "").unwrap();
    shows(&control, "file 2").await;
    // It may have been withdrawn already.
    let _ = reply.send(Answer::Kind(ChoiceKind::AllowOnce));
    let (second, reply) = until(&mut said, shown).await;
    assert!(second.contains("file 2"), "{second}");
    assert!(!fake.tmp.path().join("chosen").exists(), "the answer to the first was typed into the second");
    reply.send(Answer::Kind(ChoiceKind::RejectOnce)).unwrap();
    let (_, ending) = all(said).await;
    assert_eq!(ending.status, Status::Done, "{ending:?}");
    assert_eq!(std::fs::read_to_string(fake.tmp.path().join("chosen")).unwrap(), "2");
}

/// Keys that a person types while the program does not read are delivered when it does.
#[tokio::test]
async fn keys_and_pastes_reach_a_program_that_reads_late() {
    let script = "stty raw -echo; printf '> '; while [ ! -e read ]; do sleep 0.05; done; dd bs=1 count=3000 of=got 2>/dev/null; sleep 3000";
    let fake = Fake::new(PTY, script);
    let (control, mut said) =
        start(Job { prompt: String::new(), ..job(&fake, "") }, &Host::default()).unwrap();
    until(&mut said, |s| matches!(s, AgentEvent::State(g) if g.what == Activity::Idle).then_some(())).await;
    let keys: Vec<u8> = (0..3000_u32).map(|n| b'a' + u8::try_from(n % 26).unwrap()).collect();
    for key in &keys {
        assert!(control.keys(vec![*key]), "a key was refused");
    }
    std::fs::write(fake.tmp.path().join("read"), "").unwrap();
    let got = fake.tmp.path().join("got");
    let end = Instant::now() + TIMEOUT;
    while std::fs::read(&got).unwrap_or_default().len() < keys.len() {
        assert!(Instant::now() < end, "{} of {}", std::fs::read(&got).unwrap_or_default().len(), keys.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(std::fs::read(&got).unwrap(), keys);
    control.stop(true);
}

/// A still screen in the middle of a turn is scanned when it was drawn, not continuously.
#[tokio::test]
async fn a_still_screen_is_not_scanned_again_and_again() {
    let fake = Fake::new(
        PTY,
        "stty raw -echo; printf '> '; dd bs=1 count=2 >/dev/null 2>&1; printf 'hi'; dd bs=1 count=1 >/dev/null 2>&1; printf '\\r\\n* working (esc to stop)'; sleep 3000",
    );
    let host = Host::default();
    let (control, ends) = crate::Control::new();
    let (tx, mut said) = mpsc::channel(256);
    let job = job(&fake, "hi");
    let launch = tiller_tool::shell::Launch {
        program: fake.adapter.program.command.clone().into(),
        args: Vec::new(),
        env: job.env.clone(),
        folder: job.cwd.clone(),
    };
    let out = crate::out::Out::new(tx, ends.hard.clone());
    let run = crate::run::Run { job, launch, host, out, control: ends, missed: Vec::new() };
    let (drive, screen) = super::start(run).unwrap();
    let driver = tokio::spawn(drive);
    until(&mut said, |s| matches!(s, AgentEvent::State(g) if g.what == Activity::Working).then_some(()))
        .await;
    // The screen comes to rest; then its looks are counted while time passes.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = screen.scans.load(std::sync::atomic::Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let more = screen.scans.load(std::sync::atomic::Ordering::Relaxed) - before;
    assert!(more <= 2, "{more} looks in two seconds in which nothing was drawn");
    control.stop(true);
    driver.await.unwrap();
}

/// When a screen names a variable that is set and was not passed on, the ending names it, too.
#[tokio::test]
async fn a_variable_that_the_screen_misses_is_named_at_the_end() {
    let fake = Fake::new(PTY, "echo 'Not logged in. Missing environment variable: `MY_MODEL_KEY`.'; exit 1");
    let mut job = job(&fake, "hi");
    job.lookup = std::sync::Arc::new(|name| (name == "MY_MODEL_KEY").then(|| "secret-value".to_owned()));
    let ending = fake.ending(job).await;
    assert_eq!(ending.status, Status::Failed, "{ending:?}");
    for part in ["it is not logged in", "log in", "MY_MODEL_KEY is set here but was not passed"] {
        assert!(ending.why.contains(part), "{part}: {}", ending.why);
    }
    assert!(!ending.why.contains("secret-value"));
}
