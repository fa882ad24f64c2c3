use tiller_protocol::Time;
use tiller_protocol::skill::{SkillRecord, SkillTrial, SkillVersionRow, TrialRuns};

use super::*;
use crate::testing::Robot;

fn rows() -> Vec<SkillRow> {
    let row = |name: &str, description: &str, source: &str, state| SkillRow {
        name: name.into(),
        description: description.into(),
        source: source.into(),
        fixed: source == "built in",
        file: if source == "built in" {
            String::new()
        } else {
            format!("/home/u/.config/tiller/skills/{name}/SKILL.md")
        },
        text: format!("# {name}\n\nDo it.\n"),
        state,
        ..SkillRow::default()
    };
    vec![
        row("code-review", "Reviews a change for faults before it is merged", "built in", SkillUse::Used),
        SkillRow {
            arguments: "[stage]".into(),
            record: SkillRecord {
                uses: 3,
                done: 2,
                checked: 2,
                passed: 1,
                cost: Cost(120_000),
                trial: Some(SkillTrial {
                    with: TrialRuns { runs: 2, used: 2, done: 2, cost: Cost(30_000), ..TrialRuns::default() },
                    without: TrialRuns { runs: 2, done: 1, cost: Cost(20_000), ..TrialRuns::default() },
                    ..SkillTrial::default()
                }),
                ..SkillRecord::default()
            },
            ..row("deploy", "How this service is deployed, and what to check first", "yours", SkillUse::Used)
        },
        SkillRow {
            problems: vec!["skills/lint/SKILL.md:3:1: the description is missing".into()],
            text: String::new(),
            ..row("lint", "the description is missing", "", SkillUse::Broken)
        },
        row("notes", "How notes are taken", "project", SkillUse::Off),
    ]
}

#[test]
fn only_what_a_skill_can_do_is_offered_and_a_change_names_it() {
    let mut r = Robot::new(118, 25);
    assert!(r.app.act(Action("skills.open")));
    r.run("wait 1");
    let list = |r: &mut Robot| {
        let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Skills })));
        let reply = SkillReply::Skills { rows: rows() };
        r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
    };
    list(&mut r);
    r.run("ctrl-home; wait 1000");
    assert!(r.footer().contains("try") && !r.footer().contains("edit"), "built in: {}", r.footer());
    r.run("down; wait 1000");
    assert!(r.footer().contains("edit") && r.footer().contains("versions"), "{}", r.footer());
    r.run("ctrl-x; x; wait 1");
    r.reply(ReplyEvent::DoneReply { said: "The skill deploy is turned off".into() });
    list(&mut r);
    r.run("wait 1");
    assert!(r.screen().contains("The skill deploy is turned off"), "{}", r.screen());
    r.run("type zzz; wait 1");
    assert!(r.screen().contains("No skill matches"), "{}", r.screen());
    r.run("ctrl-u; type lint; wait 1000; ctrl-x; x; wait 1");
    assert!(r.words().contains("It has an error, so it is not used anyway"), "{}", r.screen());
}

#[test]
fn a_skill_of_a_pack_is_copied_and_not_edited_and_one_that_is_not_trusted_says_what_to_do() {
    let mut r = Robot::new(118, 25);
    assert!(r.app.act(Action("skills.open")));
    r.run("wait 1");
    let of_pack = |name: &str, state| SkillRow {
        name: name.into(),
        description: format!("About {name}"),
        source: "pack devops".into(),
        pack: "devops".into(),
        fixed: true,
        file: format!("/home/u/packs/devops-1/skills/{name}/SKILL.md"),
        state,
        ..SkillRow::default()
    };
    let gone = SkillRow {
        problems: vec!["Not used: SKILL.md changed".into(), "`tiller skills trust devops` shows it".into()],
        ..of_pack("zeta", SkillUse::Untrusted)
    };
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Skills })));
    let of_plugin = SkillRow {
        pack: String::new(),
        source: "plugin".into(),
        problems: vec![
            "Not used: a.md changed".into(),
            "`tiller plugin trust team` shows it and asks".into(),
        ],
        ..of_pack("zoo", SkillUse::Untrusted)
    };
    let reply = SkillReply::Skills { rows: vec![of_pack("deploy", SkillUse::Used), gone, of_plugin] };
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
    r.run("ctrl-home; wait 1000");
    assert!(r.footer().contains("copy") && !r.footer().contains("edit"), "{}", r.footer());
    r.run("ctrl-x; e; wait 1");
    assert!(!r.tasks.iter().any(|t| matches!(t, Task::Suspend(_))), "a suspended screen");
    assert!(r.words().contains("It belongs to the pack devops"), "{}", r.screen());
    r.run("wait 1000; ctrl-x; c; wait 1");
    let copied =
        |c: &CommandBody| matches!(c, CommandBody::Skill(SkillCommand::Copy { name }) if name == "deploy");
    assert!(r.commands().iter().any(|c| copied(c)), "{:?}", r.commands());

    r.run("down; wait 1000");
    let screen = r.words();
    assert!(
        screen.contains("not trusted") && screen.contains("`tiller skills trust devops` shows it"),
        "{screen}"
    );
    r.run("ctrl-x; r; wait 1");
    let asked =
        |t: &Task| matches!(t, Task::Suspend(External::Trust { pack: Some(pack) }) if pack == "devops");
    assert!(r.tasks.iter().any(asked), "{}", r.screen());
    r.clear().run("wait 1000; down; wait 1000; ctrl-x; r; wait 1");
    assert!(!r.tasks.iter().any(|t| matches!(t, Task::Suspend(External::Trust { .. }))), "{}", r.screen());
    assert!(r.words().contains("It belongs to a plugin: `tiller plugin trust team`"), "{}", r.screen());
}

#[test]
fn the_preview_of_a_version_leaves_out_file_names_and_no_lines_of_the_text() {
    let mut r = Robot::new(118, 25);
    assert!(r.app.act(Action("skills.open")));
    r.run("wait 1");
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Skills })));
    let reply = SkillReply::Skills { rows: rows() };
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
    r.run("down; wait 1000; ctrl-x; v; wait 1");
    let versions = |c: &CommandBody| {
        matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Versions { .. } }))
    };
    let id = r.asked(versions);
    let version = SkillVersionRow {
        version: 1,
        time: Time(r.app.model.now.millis()),
        action: "create".into(),
        by: "main".into(),
        diff: "--- a/deploy/SKILL.md\n+++ /dev/null\n@@ -1,3 +0,0 @@\n----\n-name: deploy\n----\n".into(),
    };
    let reply = SkillReply::Versions { name: "deploy".into(), rows: vec![version] };
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
    r.run("wait 1");
    let screen = r.screen();
    assert_eq!(screen.lines().filter(|l| l.contains(" ---- ")).count(), 2, "{screen}");
    assert!(!screen.contains("/dev/null") && !screen.contains("a/deploy"), "{screen}");
}

#[test]
fn skills_are_listed_read_switched_and_their_versions_restored() {
    for (width, height) in [(118, 25), (80, 24)] {
        let mut r = Robot::new(width, height);
        assert!(r.app.act(Action("skills.open")));
        r.run("wait 1");
        let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Skills })));
        let reply = SkillReply::Skills { rows: rows() };
        r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
        r.run("down; wait 1");
        insta::assert_snapshot!(format!("skills_at_{width}x{height}"), r.screen());
        r.run("enter; wait 1");
        assert!(r.screen().contains("Skill deploy") && r.screen().contains("Do it."), "{}", r.screen());
        r.run("esc; wait 1000");
        r.run("ctrl-x; x; wait 1");
        let off = |c: &CommandBody| matches!(c, CommandBody::Skill(SkillCommand::Switch { name, on: false }) if name == "deploy");
        assert!(r.commands().iter().any(|c| off(c)), "{:?}", r.commands());
        let kept = r.tasks.iter().find_map(|t| match t {
            Task::SaveSetting { key, value } => Some((key.as_str(), value.clone())),
            _ => None,
        });
        let member = SettingEdit::Member { name: "deploy".into(), present: true };
        assert_eq!(kept, Some(("skills.disabled", member)), "names of other folders stay in the file");

        r.run("ctrl-x; v; wait 1");
        let id = r
            .asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Versions { .. } })));
        let version = |version, action: &str, by: &str| {
            SkillVersionRow {
            version,
            time: Time(r.app.model.now.millis() - 90_000),
            action: action.into(),
            by: by.into(),
            diff: "--- a/skills/deploy/SKILL.md\n+++ b/skills/deploy/SKILL.md\n@@ -1,1 +1,1 @@\n-Deploy at night.\n+Deploy by day.\n".into(),
        }
        };
        let reply = SkillReply::Versions {
            name: "deploy".into(),
            rows: vec![version(2, "edit", "main in session 4"), version(1, "create", "main in session 4")],
        };
        r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
        r.run("wait 1");
        insta::assert_snapshot!(format!("skill_versions_at_{width}x{height}"), r.screen());
        r.run("wait 1000; ctrl-x; r; wait 1");
        let restore = |c: &CommandBody| matches!(c, CommandBody::Skill(SkillCommand::Restore { name, version: 2, project: false }) if name == "deploy");
        assert!(r.commands().iter().any(|c| restore(c)), "{:?}", r.commands());
    }
}

/// The uses of a turn are counted at its end: an open list is read again then, and the cursor stays.
#[test]
fn the_end_of_a_turn_reads_the_list_again() {
    let mut r = Robot::new(118, 25);
    assert!(r.app.act(Action("skills.open")));
    r.run("wait 1");
    let asked =
        |r: &Robot| r.asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Skills })));
    let reply =
        |rows| EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply: SkillReply::Skills { rows } }));
    let mut all = rows();
    all[1].record = SkillRecord::default();
    let id = asked(&r);
    r.clear().cause(id, reply(all));
    r.run("type deploy; wait 1000");
    assert!(r.screen().contains("Not used yet"), "{}", r.screen());
    r.turn_done();
    let id = asked(&r);
    assert!(id.is_some(), "{:?}", r.commands());
    r.cause(id, reply(rows()));
    r.run("wait 1000");
    let screen = r.screen();
    assert!(screen.contains("Used 3 times") && !screen.contains("Not used yet"), "{screen}");
}
