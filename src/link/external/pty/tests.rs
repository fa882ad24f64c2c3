use std::time::{Duration, Instant};

use tiller_tool::shell::Host;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::external::fake::{Fake, all};
use crate::external::{
    Answer, Ask, ChoiceKind, Doing, Job, Question, Receipt, Said, Status, Transport, start,
};

/// A program with a composer `> `, that answers each line with `answer: LINE` after it has worked a moment.
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
"#;

fn job(fake: &Fake, prompt: &str) -> Job {
    let mut job = fake.job(prompt);
    job.transport = Some(Transport::Pty);
    job.limits.coalesce = Duration::from_millis(200);
    job
}

async fn next(said: &mut mpsc::Receiver<Said>) -> Said {
    timeout(Duration::from_secs(25), said.recv()).await.expect("the stream is stuck").expect("no ending")
}

async fn until<T>(said: &mut mpsc::Receiver<Said>, mut wanted: impl FnMut(Said) -> Option<T>) -> T {
    loop {
        let s = next(said).await;
        if let Said::Ended(e) = &s {
            panic!("it ended: {e:?}");
        }
        if let Some(t) = wanted(s) {
            return t;
        }
    }
}

#[tokio::test]
async fn a_prompt_is_typed_and_its_answer_is_read_from_the_screen() {
    let fake = Fake::new(PTY, TALKER);
    let (_control, said) = start(job(&fake, "hello there"), &Host::default()).unwrap();
    let (said, ending) = all(said).await;
    assert_eq!((ending.status, ending.text.as_str()), (Status::Done, "hello there"), "{ending:?}");
    let states: Vec<Doing> =
        said.iter().filter_map(|s| if let Said::State(g) = s { Some(g.what) } else { None }).collect();
    assert!(states.contains(&Doing::Working), "{states:?}");
}

#[tokio::test]
async fn messages_are_coalesced_wait_for_the_turn_and_for_the_persons_hands() {
    let fake = Fake::new(PTY, TALKER);
    let mut job = Job { stay: true, ..job(&fake, "one") };
    job.limits.typing = Duration::from_millis(1500);
    let (control, mut said) = start(job, &Host::default()).unwrap();
    let turn = |s| if let Said::TurnDone { text } = s { Some(text) } else { None };
    assert_eq!(until(&mut said, turn).await, "one");
    // A person types half a word: nothing is typed into it before the cool-down.
    assert!(control.keys(b"ab".to_vec()));
    let begun = Instant::now();
    let Receipt::Queued { id: first } = control.say("two").await else { panic!() };
    let Receipt::Queued { id: second } = control.say("three").await else { panic!() };
    // The composer is not empty, so it is not ready either: the person takes it back.
    assert!(control.keys(b"\r".to_vec()));
    let mut delivered = Vec::new();
    until(&mut said, |s| match s {
        Said::Delivered { id } => {
            delivered.push(id);
            None
        }
        Said::TurnDone { .. } => Some(()),
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
    while !matches!(next(&mut said).await, Said::Ended(_)) {}
}

/// Shows a dialog first, then goes on as the talker.
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
auto = "yes"
option = [
  { id = "yes", name = "Yes", kind = "allow-once", keys = "1" },
  { id = "no", name = "No", kind = "reject-once", keys = "2" },
]
"#;

#[tokio::test]
async fn dialogs_are_asked_or_answered_by_rule_and_typed_once() {
    let script = with_dialog("");
    for (auto, answer, key) in [
        (true, None, "1"),
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
                Said::Ask(Ask { what, reply, .. }) => {
                    asked += 1;
                    let Question::Permission { shown, options, .. } = what else { panic!() };
                    assert!(shown.contains("May I look?") && shown.contains("2. No"), "{shown}");
                    assert_eq!(options.len(), 2);
                    match answer.clone() {
                        Some(answer) => reply.send(answer).unwrap(),
                        None => drop(reply),
                    }
                }
                Said::Ended(e) => break e,
                _ => {}
            }
        };
        assert_eq!((ending.status, asked), (Status::Done, u32::from(!auto)), "{ending:?}");
        assert_eq!(std::fs::read_to_string(fake.tmp.path().join("chosen")).unwrap(), key);
    }
}

#[tokio::test]
async fn a_question_is_withdrawn_when_a_person_answers_it_on_the_screen() {
    let fake = Fake::new(&format!("{PTY}{DIALOG}"), &with_dialog(""));
    let job = Job { auto_approve: false, ..job(&fake, "hi") };
    let (control, mut said) = start(job, &Host::default()).unwrap();
    let mut ask = until(&mut said, |s| if let Said::Ask(a) = s { Some(a) } else { None }).await;
    control.attach(true);
    assert!(control.keys(b"2".to_vec()));
    timeout(Duration::from_secs(30), ask.reply.closed()).await.expect("it waits on");
    // It stays while a person looks, and ends when they leave.
    until(&mut said, |s| matches!(s, Said::TurnDone { .. }).then_some(())).await;
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
        ("echo starting; sleep 3000", "x", Status::TimedOut, "did not come to its prompt"),
        // It shows a prompt and takes nothing.
        ("stty -echo; printf '> '; sleep 3000", "x", Status::Failed, "did not show what was typed"),
    ] {
        let fake = Fake::new(&format!("{PTY}start = 2.0\n"), script);
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
    while begun.elapsed() < Duration::from_secs(3) {
        if let Ok(Some(Said::Screen)) = timeout(Duration::from_millis(100), said.recv()).await {
            screens += 1;
        }
        let look = Instant::now();
        let grid = control.screen().unwrap();
        slowest = slowest.max(look.elapsed());
        assert!(grid.rows.len() == 24);
    }
    // At most one in 50 ms, however much was drawn.
    assert!((5..=80).contains(&screens), "{screens}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    control.stop(true);
    let (_, ending) = all(said).await;
    assert_eq!(ending.status, Status::Cancelled);
}

#[tokio::test]
async fn its_size_follows() {
    let fake = Fake::new(PTY, "printf '> '; while :; do stty size; sleep 0.1; done");
    let (control, _said) = start(Job { prompt: String::new(), ..job(&fake, "") }, &Host::default()).unwrap();
    assert!(control.resize(91, 31));
    let end = Instant::now() + Duration::from_secs(30);
    while !control.screen().unwrap().text().contains("31 91") {
        assert!(Instant::now() < end, "{}", control.screen().unwrap().text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(control.screen().unwrap().rows.len(), 31);
}
