//! Skills and commands that the user has not agreed to, skills of packs, and parameters that are not given.

use std::path::Path;
use std::sync::Arc;

use tiller_config::agents::Origin;
use tiller_config::schema::SkillApproval;
use tiller_protocol::CommandBody;
use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::skill::{SkillCommand, SkillQuery, SkillReply, SkillRow, SkillUse};
use tiller_skills::change::{Editor, EditorSettings};
use tiller_skills::{Library, PackSource, Skills, Sources, Withheld, WithheldFiles};

use crate::rig::*;

fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A library with the skill `deploy` of the pack `team`, and with the skill `gone` and the command `ship` of the pack `old`, which
/// is not as the user agreed to it.
fn library(place: &Place) -> Library {
    let home = place.tmp.path().to_owned();
    let skill = |name: &str, more: &str| {
        format!("---\nname: {name}\ndescription: About {name}\n{more}---\nTo {{{{stage}}}}.\n")
    };
    put(&home, "team/skills/deploy/SKILL.md", &skill("deploy", "metadata:\n  params: stage\n"));
    put(&home, "old/skills/gone/SKILL.md", &skill("gone", ""));
    put(&home, "old/commands/ship.md", "Ship it.\n");
    let from = home.clone();
    let read = move || {
        let old = Withheld {
            pack: Some("old".into()),
            from: Origin::Plugin,
            files: WithheldFiles::Folder(from.join("old")),
            why: "run.sh changed since you agreed to it".into(),
            remedy: "`tiller skills trust old` shows it".into(),
        };
        let sources = Sources {
            packs: vec![PackSource { name: Some("team".into()), ..PackSource::unpinned(&from.join("team")) }],
            config: Some(from.join("own")),
            withheld: vec![old],
            ..Sources::default()
        };
        Skills::load(&sources).0
    };
    let library = Library::new(read());
    library.reload_with(Arc::new(read));
    library.edit_with(Editor::new(EditorSettings {
        user: home.join("own/skills"),
        project: None,
        versions: home.join("versions"),
        drafts: None,
        approve: SkillApproval::Ask,
        screen: Arc::new(|_| None),
        clock: Arc::new(tiller_protocol::SystemClock::default()),
        step: None,
    }));
    library
}

/// An engine with this library.
async fn start(place: &Place, fake: &Arc<Fake>) -> Rig {
    let library = library(place);
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.roles = tiller_engine::Roles::with_skills(p.crew.roles.now(), library);
    };
    place.start_with(fake, change).await
}

async fn rows(rig: &mut Rig) -> Vec<SkillRow> {
    match rig.query(Query::Skills { query: SkillQuery::Skills }).await {
        ReplyEvent::SkillsReply { reply: SkillReply::Skills { rows } } => rows,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_trusted_is_listed_and_a_skill_of_a_pack_is_copied_to_be_edited() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("done"));
    let mut rig = start(&place, &fake).await;
    let all = rows(&mut rig).await;
    let gone = all.iter().find(|row| row.name == "gone").unwrap();
    assert_eq!(
        (gone.state, gone.source.as_str(), gone.pack.as_str()),
        (SkillUse::Untrusted, "pack old", "old")
    );
    assert!(gone.problems.concat().contains("`tiller skills trust old`"), "{gone:?}");
    let deploy = all.iter().find(|row| row.name == "deploy").unwrap();
    assert!(deploy.fixed && deploy.source == "pack team", "{deploy:?}");
    let file = place.tmp.path().join("team/skills/deploy/SKILL.md");
    let before = std::fs::read(&file).unwrap();

    rig.send(CommandBody::Skill(SkillCommand::Copy { name: "deploy".into() }));
    let ReplyEvent::DoneReply { said } = rig.reply().await else { panic!() };
    assert!(said.contains("own/skills/deploy, and the copy is used"), "{said}");
    let all = rows(&mut rig).await;
    let used = all.iter().find(|row| row.name == "deploy" && row.state == SkillUse::Used).unwrap();
    assert!(!used.fixed && used.source == "yours", "{used:?}");
    assert_eq!(std::fs::read(&file).unwrap(), before, "the pack stays as it was");
    rig.send(CommandBody::Skill(SkillCommand::Copy { name: "deploy".into() }));
    assert!(matches!(rig.reply().await, ReplyEvent::ErrorReply { .. }), "it is copied once");

    // A command that is made while the session runs.
    put(place.tmp.path(), "own/commands/fresh.md", "Do it.\n");
    let reply = rig.query(Query::Skills { query: SkillQuery::Commands }).await;
    let ReplyEvent::SkillsReply { reply: SkillReply::Commands { rows } } = reply else { panic!() };
    let told: Vec<(&str, bool)> = rows.iter().map(|row| (row.name.as_str(), row.unused.is_empty())).collect();
    assert_eq!(told, [("fresh", true), ("ship", false)]);
    put(place.tmp.path(), "own/styles/pirate.md", "Arr.\n");
    rig.send(CommandBody::Skill(SkillCommand::Style { name: Some("pirate".into()) }));
    let ReplyEvent::DoneReply { said } = rig.reply().await else { panic!() };
    assert!(said.contains("in the style pirate"), "{said}");
    rig.send(CommandBody::Skill(SkillCommand::Style { name: Some("none".into()) }));
    assert!(matches!(rig.reply().await, ReplyEvent::ErrorReply { .. }));
    rig.turn("/fresh").await;
    let request = fake.request(0);
    assert!(message_text(&request, request.messages.len() - 1).contains("Do it."));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_told_of_parameters_that_are_not_given_and_of_skills_that_are_not_trusted() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("done"));
    let mut rig = start(&place, &fake).await;
    rig.submit("$deploy");
    let said = rig.notice("has no value for stage").await;
    assert!(said.message.contains("begin the message with $deploy stage=VALUE"), "{said:?}");
    rig.finished().await;
    let request = fake.request(0);
    let text = message_text(&request, request.messages.len() - 1);
    assert!(text.contains("Not given, so they stand in the text below: {{stage}}."), "{text}");
    rig.submit("$gone it is");
    let said = rig.notice("`gone` of the pack old is not used").await;
    assert!(said.message.contains("`tiller skills trust old`"), "{said:?}");
    rig.finished().await;
    rig.quit().await;
}
