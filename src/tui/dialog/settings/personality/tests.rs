//! `/personality` on a screen.

use std::time::Duration;

use super::*;
use crate::app::effect::{External, Task};
use crate::app::msg::Msg;
use crate::keymap::action::Action;
use crate::testing::Robot;

fn opened(config: &Path, width: u16, height: u16) -> Robot {
    let mut r = Robot::new(width, height);
    r.app.model.environment.folders.config = Some(config.to_owned());
    assert!(r.app.act(Action("personality.open")));
    r.run("wait 1");
    work(&mut r);
    r.wait(Duration::from_secs(5));
    r
}

/// Chooses a text: its file is read, then its change is shown.
fn choose(r: &mut Robot, keys: &str) {
    r.run(keys);
    work(r);
    r.wait(Duration::from_secs(5));
}

/// Runs the job that was requested.
fn work(r: &mut Robot) {
    let at = r.tasks.iter().position(|t| matches!(t, Task::Job(..))).expect("a job");
    let Task::Job(job, token) = r.tasks.remove(at) else { panic!() };
    r.msg(Msg::Job(token, job()));
}

#[test]
fn a_character_is_shown_then_its_change_and_then_written_and_can_be_undone() {
    for (width, height) in [(118, 25), (80, 24)] {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("SOUL.md"), "Speak like a sailor.\n").unwrap();
        let mut r = opened(tmp.path(), width, height);
        assert!(r.screen().contains("Yours") && r.screen().contains("Speak like a sailor"), "{}", r.screen());
        r.run("type teacher");
        assert!(r.screen().contains("You are a patient teacher"), "{}", r.screen());
        choose(&mut r, "enter");
        let screen = r.screen();
        assert!(
            screen.contains("Speak like a sailor.") && screen.contains("You are a patient teacher"),
            "{screen}"
        );
        assert!(r.footer().contains("write"), "{}", r.footer());
        // Nothing is written before the answer, and nothing by no.
        let now = || std::fs::read_to_string(tmp.path().join("SOUL.md")).unwrap();
        r.run("n");
        work(&mut r);
        assert!(now().contains("sailor") && r.screen().contains("Patient teacher"), "{}", r.screen());
        choose(&mut r, "type teacher; enter");
        r.run("esc; wait 1");
        work(&mut r);
        assert!(r.screen().contains("Patient teacher") && r.app.layers.len() == 1, "{}", r.screen());
        // What is in force already leaves the list open.
        r.run("type Yours; enter");
        work(&mut r);
        r.run("wait 1");
        assert!(r.screen().contains("in force already") && r.app.layers.len() == 1, "{}", r.screen());
        let mut r = opened(tmp.path(), width, height);
        choose(&mut r, "type teacher; enter");
        r.run("y");
        work(&mut r);
        assert!(now().contains("patient teacher"));
        assert!(r.screen().contains("takes effect in the next session"), "{}", r.screen());
        // Undone by choosing the earlier one.
        let mut r = opened(tmp.path(), width, height);
        choose(&mut r, "type Earlier; enter");
        r.run("y");
        work(&mut r);
        assert_eq!(now(), "Speak like a sailor.\n");
    }
}

#[test]
fn none_removes_the_file_and_a_change_from_outside_is_not_overwritten() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("SOUL.md");
    std::fs::write(&file, "one\n").unwrap();
    let mut r = opened(tmp.path(), 118, 25);
    choose(&mut r, "type None; enter");
    r.run("y");
    std::fs::write(&file, "two\n").unwrap();
    work(&mut r);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
    assert!(r.screen().contains("has changed meanwhile"), "{}", r.screen());
    let mut r = opened(tmp.path(), 118, 25);
    choose(&mut r, "type None; enter");
    r.run("y");
    work(&mut r);
    assert!(!file.exists());
    assert_eq!(CharacterFile::soul(tmp.path()).earlier(), [(1, "two\n".to_owned())]);
}

/// A proposal for this file; `None`: SOUL.md.
fn propose(config: &Path, id: &str, text: &str, file: Option<PathBuf>) {
    let from = proposals::ProposalSource {
        file,
        why: "you asked for short answers".into(),
        agent: tiller_protocol::AgentId::main(),
        session: tiller_protocol::SessionId(Default::default()),
        taint: Taint::Web,
        time: tiller_protocol::Time(1),
    };
    proposals::propose(config, id, text, &from).unwrap();
}

#[test]
fn a_proposal_is_edited_and_accepted_or_declined_or_left() {
    for (width, height) in [(118, 25), (80, 24)] {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("SOUL.md");
        std::fs::write(&file, "Be kind.\nSpeak like a sailor.\n").unwrap();
        propose(tmp.path(), "a", "Be kind.\nBe dry.\n", None);
        let now = || std::fs::read_to_string(&file).unwrap();
        let review = || {
            let mut r = opened(tmp.path(), width, height);
            choose(&mut r, "type Proposal; enter");
            r
        };
        let mut r = opened(tmp.path(), width, height);
        r.run("type Proposal");
        let screen = r.screen();
        assert!(screen.contains("Proposal 1: SOUL.md") && screen.contains("read pages"), "{screen}");
        let mut r = review();
        let screen = r.screen();
        assert!(screen.contains("Proposal for SOUL.md") && screen.contains("Be dry."), "{screen}");
        assert!(r.footer().contains("accept") && r.footer().contains("decline"), "{}", r.footer());
        // Left for later: it still waits.
        r.run("n");
        assert!(now().contains("sailor") && proposals::waiting(tmp.path()).len() == 1);
        // An editor changes the text; what is accepted is what is shown after it.
        let mut r = review();
        r.run("e");
        let at = r.tasks.iter().position(|t| matches!(t, Task::Suspend(External::Editor { .. })));
        let Task::Suspend(External::Editor { file: text, .. }) = r.tasks.remove(at.unwrap()) else {
            panic!()
        };
        std::fs::write(&text, "Be kind.\nBe very dry.\n").unwrap();
        r.app.edited("Editor", Ok(()));
        r.run("wait 1");
        work(&mut r);
        assert!(r.screen().contains("Be very dry."), "{}", r.screen());
        r.wait(Duration::from_secs(5)).run("y");
        work(&mut r);
        assert_eq!(now(), "Be kind.\nBe very dry.\n");
        assert!(proposals::waiting(tmp.path()).is_empty());
        // Undone by the earlier text.
        let mut r = opened(tmp.path(), width, height);
        choose(&mut r, "type Earlier; enter");
        r.run("y");
        work(&mut r);
        assert!(now().contains("sailor"));
        // Declined: nothing changes, and nothing waits.
        propose(tmp.path(), "b", "Be dry.\n", None);
        let mut r = review();
        r.run("d");
        work(&mut r);
        assert!(now().contains("sailor") && proposals::waiting(tmp.path()).is_empty());
        assert!(r.screen().contains("nothing has changed"), "{}", r.screen());
    }
}

#[test]
fn a_proposal_for_a_definition_changes_that_file_and_can_be_undone() {
    let tmp = tempfile::tempdir().unwrap();
    let coder = tmp.path().join("agents/coder.md");
    std::fs::create_dir_all(coder.parent().unwrap()).unwrap();
    std::fs::write(&coder, "---\nname: coder\n---\nYou code.\n").unwrap();
    propose(tmp.path(), "a", "---\nname: coder\n---\nYou test.\n", Some(coder.clone()));
    let mut r = opened(tmp.path(), 118, 25);
    choose(&mut r, "type coder; enter");
    assert!(r.screen().contains("agents/coder.md") && r.screen().contains("You test."), "{}", r.screen());
    r.run("y");
    work(&mut r);
    assert!(std::fs::read_to_string(&coder).unwrap().contains("You test."));
    assert!(!tmp.path().join("SOUL.md").exists());
    let mut r = opened(tmp.path(), 118, 25);
    choose(&mut r, "type Earlier coder; enter");
    r.run("y");
    work(&mut r);
    assert!(std::fs::read_to_string(&coder).unwrap().contains("You code."));
}

/// A proposal that cannot be put away is in force all the same, and this is said.
#[test]
fn what_is_in_force_is_not_called_unchanged() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempfile::tempdir().unwrap();
    propose(tmp.path(), "a", "Be dry.\n", None);
    let folder = proposals::waiting(tmp.path())[0].file(tmp.path()).parent().unwrap().to_owned();
    let mut r = opened(tmp.path(), 118, 25);
    choose(&mut r, "type Proposal; enter");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    // Root may remove all files.
    let confined = std::fs::write(folder.join("probe"), "").is_err();
    r.run("y");
    work(&mut r);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(std::fs::read_to_string(tmp.path().join("SOUL.md")).unwrap(), "Be dry.\n");
    assert!(!r.screen().contains("Nothing was changed"), "{}", r.screen());
    if confined {
        assert!(r.screen().contains("The proposal still waits"), "{}", r.screen());
    } else {
        eprintln!("skipped: nothing keeps this user from removing a file");
    }
}
