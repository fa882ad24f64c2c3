use tiller_protocol::{FailureKind, LearningSource, RulePromotion, RuleReceipts, Taint, Time};

use super::*;
use crate::testing::Robot;

const HOOK: &str = "[[hooks.before-tool-call]]\nmatch = \"terminal(git push* main*)\"\ncommand = \"printf '%s' 'Nothing is pushed.' >&2; exit 2\"\nblocking = true";

fn page(now: i64) -> LearningsReply {
    let kind = FailureKind { error_type: "error failed to push some refs".into(), ..FailureKind::default() };
    let source = LearningSource {
        session: None,
        entry: None,
        agent: "main".into(),
        branch: "main".into(),
        taint: Taint::ToolOutput,
    };
    let new = Learning::proposed(kind, source, Time(now - 90_000));
    let learning = |id: i64, pattern: &str, fix: &str, state: LearningState, times_used| Learning {
        id,
        pattern: pattern.into(),
        error: "error: failed to push some refs to 'github.com:a/b.git' (1.2.3)".into(),
        fix: fix.into(),
        context: "added: --rebase".into(),
        tags: vec!["git".into()],
        state,
        times_used,
        ..new.clone()
    };
    LearningsReply {
        learnings: vec![
            learning(4, "`git push`", "`git pull --rebase`, then `git push`", LearningState::Active, 3),
            learning(7, "`npm install`", "`npm install --legacy-peer-deps`", LearningState::Proposed, 0),
        ],
        rules: vec![RuleView {
            text: "Nothing is pushed to main, the bot does that.".into(),
            when: vec!["terminal(git push*)".into()],
            never: vec!["terminal(git push* main*)".into()],
            origin: "MEMORY.md".into(),
            receipts: RuleReceipts { shown: 4, followed: 1, violated: 2 },
            offers: vec![
                RulePromotion {
                    kind: PromotionKind::Permission,
                    file: "/home/ada/.config/tiller/permissions.yaml".into(),
                    text: "terminal(git push* main*)".into(),
                },
                RulePromotion {
                    kind: PromotionKind::Hook,
                    file: "/home/ada/.config/tiller/config.toml".into(),
                    text: HOOK.into(),
                },
            ],
            promoted: None,
        }],
    }
}

#[test]
fn only_what_a_row_can_do_is_offered_and_an_empty_list_is_read_to_its_end() {
    let mut r = Robot::new(80, 24);
    assert!(r.app.act(Action("learnings.open")));
    r.run("wait 1");
    let mut reply = page(r.app.model.now.millis());
    for l in &mut reply.learnings {
        l.source.session = Some(SessionId(Default::default()));
        l.source.entry = Some(EntryId(Default::default()));
    }
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Learnings { .. })));
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::LearningsReply { reply })));
    r.run("wait 1000");
    let footer = r.footer();
    assert!(["source", "accept", "decline", "edit"].iter().all(|w| footer.contains(w)), "{footer}");
    r.run("ctrl-x; wait 1000");
    assert!(!r.screen().contains("forbid") && !r.screen().contains("h hook"), "{}", r.screen());
    r.run("esc; down; wait 1000");
    let footer = r.footer();
    assert!(["it was wrong", "edit", "undo"].iter().all(|w| footer.contains(w)), "{footer}");

    let mut r = Robot::new(80, 24);
    assert!(r.app.act(Action("learnings.open")));
    r.run("wait 1");
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Learnings { .. })));
    let reply = LearningsReply::default();
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::LearningsReply { reply })));
    r.run("wait 1");
    assert!(r.words().contains("what worked later, appear here"), "{}", r.screen());
}

#[test]
fn learnings_and_rules_are_listed_and_decided() {
    for (width, height) in [(118, 25), (80, 24)] {
        let mut r = Robot::new(width, height);
        assert!(r.app.act(Action("learnings.open")));
        r.run("wait 1");
        let reply = page(r.app.model.now.millis());
        let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Learnings { .. })));
        r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::LearningsReply { reply })));
        r.run("wait 1");
        insta::assert_snapshot!(format!("learnings_at_{width}x{height}"), r.screen());
        // The proposal stands first.
        r.run("wait 1000; ctrl-x a");
        let sent = |r: &mut Robot| -> Vec<LearningCommand> {
            let learning = |c: &CommandBody| match c {
                CommandBody::Learning(l) => Some(l.clone()),
                _ => None,
            };
            r.commands().into_iter().filter_map(learning).collect()
        };
        let accept = LearningCommand::Decide { id: 7, state: LearningState::Active };
        assert!(sent(&mut r).contains(&accept));
        // The rule shows the exact line, and where it is written.
        r.run("down; down; wait 1000");
        let screen = r.screen();
        assert!(screen.contains("deny terminal(git push* main*)"), "{screen}");
        assert!(screen.contains("permissions.yaml") && screen.contains("config.toml"), "{screen}");
        assert!(HOOK.lines().all(|line| screen.contains(line)), "{screen}");
        let promote = |kind, text: &str| {
            let rule = "Nothing is pushed to main, the bot does that.".into();
            LearningCommand::Promote { rule, kind, text: text.into() }
        };
        r.run("ctrl-x p");
        assert!(sent(&mut r).contains(&promote(PromotionKind::Permission, "terminal(git push* main*)")));
        r.run("ctrl-x h");
        assert!(sent(&mut r).contains(&promote(PromotionKind::Hook, HOOK)));
    }
}

/// Everything that is accepted or written was on the screen: all that was tried, and all of a hook.
#[test]
fn a_long_learning_and_a_long_hook_are_shown_whole_before_they_are_decided() {
    let decided = |r: &mut Robot| r.commands().iter().any(|c| matches!(c, CommandBody::Learning(_)));
    for key in ["ctrl-x a", "ctrl-x h"] {
        let mut r = Robot::new(80, 24);
        assert!(r.app.act(Action("learnings.open")));
        r.run("wait 1");
        let mut reply = page(r.app.model.now.millis());
        let words: Vec<String> = (1..=150).map(|n| format!("word{n}")).collect();
        reply.learnings[1].pattern = words.join(" ");
        reply.rules[0].offers[1].text = format!("{HOOK}\n{}", "# more\n".repeat(30));
        let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Learnings { .. })));
        r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::LearningsReply { reply })));
        r.run(if key == "ctrl-x a" { "wait 1000" } else { "down; down; wait 1000" });
        r.run(&format!("{key}; wait 1000"));
        assert!(!decided(&mut r) && r.screen().contains("The whole text"), "{key}: {}", r.screen());
        r.run("pagedown; wait 1000; pagedown; wait 1000; pagedown; wait 1000");
        assert!(key == "ctrl-x h" || r.screen().contains("word150"), "{key}: {}", r.screen());
        r.run(key);
        assert!(decided(&mut r), "{key}: {}", r.screen());
    }
}

/// Each pattern that a rule forbids stands in a line of its own, as it is written; what cannot be made is said.
#[test]
fn every_pattern_of_a_rule_is_shown_as_a_deny_rule() {
    let mut r = Robot::new(118, 25);
    assert!(r.app.act(Action("learnings.open")));
    r.run("wait 1");
    let mut reply = page(r.app.model.now.millis());
    reply.learnings.clear();
    reply.rules[0].offers.truncate(1);
    reply.rules[0].offers[0].text = "terminal(git push* main*)\nterminal(git push* prod*)".into();
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Learnings { .. })));
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::LearningsReply { reply })));
    r.run("wait 1000");
    let screen = r.screen();
    for line in ["deny terminal(git push* main*)", "deny terminal(git push* prod*)"] {
        assert!(screen.contains(line), "{screen}");
    }
}

/// A learning that is proposed while the list is open appears in it.
#[test]
fn a_learning_that_is_proposed_meanwhile_appears() {
    let mut r = Robot::new(80, 24);
    assert!(r.app.act(Action("learnings.open")));
    r.run("wait 1");
    let mut reply = page(r.app.model.now.millis());
    let late = reply.learnings.pop().unwrap();
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Learnings { .. })));
    let first = ReplyEvent::LearningsReply { reply: reply.clone() };
    r.clear().cause(id, EventBody::Reply(Box::new(first)));
    r.run("wait 1");
    assert!(!r.screen().contains("npm install"), "{}", r.screen());
    let news =
        tiller_protocol::LearningNews { used: Vec::new(), call_id: None, rules: Vec::new(), pending: 1 };
    r.event(EventBody::State(StateEvent::LearningNews { news: Box::new(news) }));
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Learnings { .. })));
    reply.learnings.push(late);
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::LearningsReply { reply })));
    r.run("wait 1");
    assert!(r.screen().contains("npm install"), "{}", r.screen());
}

/// The box after the leader key has the words of the footer.
#[test]
fn the_key_box_calls_an_action_as_the_footer_does() {
    let mut r = Robot::new(80, 24);
    assert!(r.app.act(Action("learnings.open")));
    r.run("wait 1");
    let reply = page(r.app.model.now.millis());
    r.reply(ReplyEvent::LearningsReply { reply });
    r.run("ctrl-home; wait 1000; ctrl-x; wait 1000");
    assert!(r.screen().contains("x decline") && !r.screen().contains("it was wrong"), "{}", r.screen());
}
