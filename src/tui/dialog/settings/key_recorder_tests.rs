use super::*;
use crate::app::effect::Task;
use crate::app::msg::Msg;
use crate::testing::Robot;

/// A robot with a configuration folder; the file that it writes.
fn robot() -> (Robot, tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keys.toml");
    let mut r = Robot::new(80, 24);
    r.app.model.environment.folders.config = Some(dir.path().to_owned());
    (r, dir, file)
}

/// Does the jobs that wait; true when the keys are to be read again.
fn jobs(r: &mut Robot) -> bool {
    for task in std::mem::take(&mut r.tasks) {
        if let Task::Job(job, token) = task {
            r.msg(Msg::Job(token, job()));
        }
    }
    r.tasks.iter().any(|t| matches!(t, Task::Reload))
}

/// Picks the action whose help says this.
fn pick(r: &mut Robot, help: &str) {
    r.run("ctrl-x K");
    r.run(&format!("type {help}; enter"));
    assert!(r.screen().contains("Press the key"), "{}", r.screen());
}

#[test]
fn a_key_is_recorded_kept_in_the_persons_file_and_then_works() {
    let (mut r, dir, file) = robot();
    std::fs::write(&file, "# mine\n[global]\nf5 = \"todo.add\" # keep this\n").unwrap();
    pick(&mut r, "Redraw the whole screen");
    // Also a key that means something here is only recorded.
    r.run("ctrl-p");
    assert!(r.screen().contains("replaces: Find and run any action"), "{}", r.screen());
    r.run("o; f9");
    assert!(r.screen().contains("This key is free"), "{}", r.screen());
    r.run("y");
    assert!(!jobs(&mut r), "too early");
    r.run("wait 401; y");
    assert!(jobs(&mut r), "{}", r.screen());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("f9 = \"global.redraw\"") && text.contains("# keep this"), "{text}");
    assert!(r.app.layers.is_empty());
    let ui = tiller_config::schema::Ui::default();
    r.app.keys.map = Arc::new(crate::app::ui::load_keys(&ui, Some(dir.path()), &[]).unwrap());
    r.tasks.clear();
    r.run("f9");
    assert!(r.tasks.iter().any(|t| matches!(t, Task::Repaint)));
}

#[test]
fn a_sequence_with_the_leader_is_written_by_its_name() {
    let (mut r, _dir, file) = robot();
    pick(&mut r, "Redraw the whole screen");
    r.run("ctrl-x");
    assert!(r.screen().contains("Press the next key"), "{}", r.screen());
    r.run("F");
    assert!(r.screen().contains("Ctrl-X F"), "{}", r.screen());
    r.run("wait 401; enter");
    assert!(!jobs(&mut r) && r.screen().contains("To keep it, press"), "{}", r.screen());
    r.run("y");
    assert!(jobs(&mut r), "{}", r.screen());
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"leader F\" = \"global.redraw\""));
}

#[test]
fn what_cannot_be_is_refused_and_writes_nothing() {
    let (mut r, _dir, file) = robot();
    // A letter in the composer.
    pick(&mut r, "Insert a new line");
    r.run("x");
    assert!(r.screen().contains("types a letter"), "{}", r.screen());
    r.run("y");
    assert!(!jobs(&mut r) && !file.exists());
    r.run("n");
    // Enter for a yes to an approval.
    pick(&mut r, "Approve this call only");
    r.run("enter; wait 401; y");
    assert!(!jobs(&mut r));
    assert!(r.screen().contains("cannot be bound to Enter"), "{}", r.screen());
    assert!(!file.exists());
    r.run("n");
    // The leader itself, as a key of its own.
    pick(&mut r, "Redraw the whole screen");
    r.run("ctrl-x; esc");
    assert!(r.app.layers.is_empty() && !file.exists());
}

#[test]
fn a_file_that_is_wrong_is_left_alone() {
    let (mut r, _dir, file) = robot();
    std::fs::write(&file, "[global]\nf5 = \"no.such\"\n").unwrap();
    pick(&mut r, "Redraw the whole screen");
    r.run("f9; wait 401; y");
    assert!(!jobs(&mut r));
    assert!(r.screen().contains("has an error"), "{}", r.screen());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[global]\nf5 = \"no.such\"\n");
}

#[test]
fn looks_well() {
    let (mut r, _dir, _) = robot();
    pick(&mut r, "Redraw the whole screen");
    r.run("ctrl-t");
    insta::assert_snapshot!("recorder_at_80x24", r.screen());
}
