//! A question that is longer than its place is read to both ends by keys, in each dialog and with each of its fields.

use std::collections::BTreeSet;

use tiller_protocol::event::AskEvent;
use tiller_protocol::{Ask, AskBody, EventBody, TrustItem, TrustKind};

use super::approval;
use crate::testing::Robot;

const ROWS: usize = 60;

fn row(n: usize) -> String {
    format!("row-{n:02}")
}

fn rows() -> String {
    (1..=ROWS).map(row).collect::<Vec<_>>().join("\n")
}

fn clarify(choices: &[&str], (free, multiple): (bool, bool), decides: &[usize]) -> AskBody {
    AskBody::Clarify {
        question: rows(),
        choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
        allow_freetext: free,
        multiple,
        default: None,
        decides: decides.to_vec(),
    }
}

fn command() -> AskBody {
    let AskBody::Permission(mut ask) = approval::sample_ask().body else { panic!("no approval") };
    ask.shown = rows();
    AskBody::Permission(ask)
}

fn trust() -> AskBody {
    let item = |n| TrustItem {
        kind: TrustKind::Hook,
        change: None,
        path: row(n),
        detail: "runs".into(),
        hash: "0".into(),
    };
    AskBody::Trust { folder: "/x".into(), brings: (1..=ROWS).map(item).collect(), changed: false }
}

fn shown(r: &Robot) -> BTreeSet<usize> {
    let screen = r.screen();
    (1..=ROWS).filter(|n| screen.contains(&row(*n))).collect()
}

#[test]
fn each_long_question_is_read_to_both_ends_on_a_small_screen() {
    let two = ["Yes", "No"];
    let many: Vec<String> = (1..=9).map(|n| format!("choice {n} of nine")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let plan = || AskBody::Plan { file: "plan.md".into(), plan: rows().replace('\n', "\n\n") };
    let all: Vec<(&str, AskBody, &str)> = vec![
        ("choices", clarify(&two, (false, false), &[]), ""),
        ("many choices", clarify(&many, (true, false), &[]), ""),
        ("several choices", clarify(&two, (false, true), &[]), ""),
        ("a choice that grants", clarify(&two, (false, false), &[0]), ""),
        ("words beside choices", clarify(&two, (true, false), &[]), "tab"),
        ("words alone", clarify(&[], (true, false), &[]), ""),
        ("command", command(), ""),
        ("command, with a comment", command(), "c"),
        ("trust", trust(), ""),
        ("plan", plan(), ""),
        ("plan, with a change", plan(), "c"),
    ];
    for (width, height) in [(80, 24), (60, 16)] {
        for (name, body, keys) in &all {
            let name = format!("{name} at {width}x{height}");
            let mut r = Robot::new(width, height);
            let ask = Ask { body: body.clone(), ..approval::sample_ask() };
            r.event(EventBody::Ask(match &ask.body {
                AskBody::Permission(_) => AskEvent::PermissionAsked { ask },
                _ => AskEvent::QuestionAsked { ask },
            }));
            r.run("wait 401").run(keys).run("wait 401");
            let mut seen = shown(&r);
            assert!(seen.contains(&1) && !seen.contains(&ROWS), "{name}:\n{}", r.screen());
            for _ in 0..2 * ROWS {
                r.run("pagedown");
                seen.extend(shown(&r));
            }
            let missing: Vec<usize> = (1..=ROWS).filter(|n| !seen.contains(n)).collect();
            assert!(missing.is_empty(), "{name}: {missing:?} were never shown\n{}", r.screen());
            for _ in 0..2 * ROWS {
                r.run("pageup");
            }
            assert!(shown(&r).contains(&1), "{name}: back at the beginning\n{}", r.screen());
            r.run("end");
            assert!(shown(&r).contains(&ROWS), "{name}: End\n{}", r.screen());
            r.run("home");
            assert!(shown(&r).contains(&1), "{name}: Home\n{}", r.screen());
            assert!(r.commands().is_empty(), "{name}: nothing was answered: {:?}", r.commands());
        }
    }
}

/// A field with text keeps Home and End.
#[test]
fn home_and_end_are_those_of_a_field_with_words() {
    let mut r = Robot::new(80, 24);
    let ask = Ask { body: clarify(&[], (true, false), &[]), ..approval::sample_ask() };
    r.event(EventBody::Ask(AskEvent::QuestionAsked { ask }));
    r.run("wait 401; pagedown; type bc; home; type a; end; type d");
    assert!(r.screen().contains("> abcd") && !shown(&r).contains(&1), "{}", r.screen());
}
