//! A process is killed at each step of a change of memory: the next start finds the state before it or the one after it,
//! whole, and the record of changes is that of the same state.

use super::*;
use crate::files::{Imported, ImportedEntry};

/// State, removed, added, archived and origin of a recorded change.
type Row = (ChangeState, Option<String>, Option<String>, Option<bool>, Provenance);

/// All that a start finds of one memory file.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    file: String,
    /// State, text, origin and what it replaces of each row of the list.
    rows: Vec<(String, String, Option<Provenance>, String)>,
    /// State, removed line, added line, move and origin of each recorded change that counts.
    history: Vec<Row>,
}

fn found(memory: &Memory, dir: &Path) -> Found {
    let page = page(memory);
    let row = |e: tiller_protocol::MemoryEntry| (format!("{:?}", e.state), e.text, e.from, e.replaces);
    let mut rows: Vec<_> = page.entries.into_iter().map(row).collect();
    rows.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    let path = name(&dir.join("data/MEMORY.md"));
    let changes = memory.store.get().unwrap().memory_changes().of_files(&[path]).unwrap();
    let counts = |c: &MemoryChange| !matches!(c.state, ChangeState::Declined | ChangeState::Outside);
    let change = |c: MemoryChange| (c.state, c.removed, c.added, c.archived, c.from);
    let history = changes.into_iter().filter(counts).map(change).collect();
    Found { file: text(dir), rows, history }
}

/// A folder in which `prepare` was done and looked at.
fn prepared(prepare: fn(&Arc<Memory>, &Path)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    prepare(&memory, dir.path());
    page(&memory);
    dir
}

fn untouched(_: &Path) {}

/// Kills a process at each step of `change`, which is done after `prepare`. `editor`: what another program has done to the file
/// before the first step.
fn killed_at_each_step(
    test: &str,
    prepare: fn(&Arc<Memory>, &Path),
    change: fn(&Arc<Memory>, &Path),
    editor: fn(&Path),
) {
    if let Ok(job) = std::env::var("TILLER_MEMORY_CHILD") {
        let dir = PathBuf::from(std::env::var_os("TILLER_MEMORY_DIR").unwrap());
        let memory = memory(&dir);
        page(&memory);
        crate::files::disk::die_at(job.parse().unwrap());
        change(&memory, &dir);
        return;
    }
    let old = prepared(prepare);
    editor(old.path());
    let old = found(&memory(old.path()), old.path());
    let new = prepared(prepare);
    change(&memory(new.path()), new.path());
    let new = found(&memory(new.path()), new.path());
    assert_ne!(old, new);
    for step in 1.. {
        let dir = prepared(prepare);
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("files::seen::tests::kills::{test}"), "--nocapture"])
            .env("TILLER_MEMORY_CHILD", step.to_string())
            .env("TILLER_MEMORY_DIR", dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let memory = memory(dir.path());
        let now = found(&memory, dir.path());
        assert!(now == old || now == new, "at step {step}: {now:#?}\nbefore: {old:#?}\nafter: {new:#?}");
        assert_eq!(now, found(&memory, dir.path()), "at step {step}: a second look finds the same");
        // The next change works, and nothing is left of the killed process.
        memory.write(MINE, &Edit::Append("afterwards".into()), agent()).unwrap();
        memory.undo(false).unwrap();
        assert_eq!(now.rows, found(&memory, dir.path()).rows, "at step {step}");
        let left = std::fs::read_dir(dir.path().join("data")).unwrap();
        let left = left.map(|e| e.unwrap().file_name().into_string().unwrap());
        let left: Vec<_> = left.filter(|n| n.contains("MEMORY.md") && n != "MEMORY.md").collect();
        assert!(left.is_empty(), "at step {step}: {left:?}");
        if status.success() {
            assert_eq!(now, new, "it ended");
            assert!(step > 5, "{step} steps");
            return;
        }
        assert!(step < 60, "a change has fewer steps");
    }
}

/// An agent that has read nothing of others.
fn agent() -> Provenance {
    Provenance { taint: Taint::Agent, ..from(1) }
}

fn person() -> Provenance {
    Provenance { taint: Taint::Person, ..Provenance::default() }
}

fn by_agent(memory: &Memory, edit: Edit) {
    memory.write(MINE, &edit, agent()).unwrap();
}

fn append(text: &str) -> Edit {
    Edit::Append(text.into())
}

fn replace(old: &str, text: &str) -> Edit {
    Edit::Replace { old: old.into(), text: text.into() }
}

/// A file with an entry of the user's and one of an agent's.
fn two_entries(memory: &Arc<Memory>, dir: &Path) {
    write(dir, "# Mine\n\n- one\n");
    page(memory);
    by_agent(memory, append("two"));
}

fn pending(memory: &Memory, edit: &Edit) {
    let planned = memory.plan(MINE, edit, from(1)).unwrap();
    memory.pend(&planned).unwrap();
}

/// The change of the only row in this state that can be decided about.
fn decided(memory: &Memory, state: MemoryState, text: Option<&str>) {
    let page = page(memory);
    let change = page.entries.iter().find(|e| e.state == state && e.change.is_some()).unwrap().change;
    memory.decide(change.unwrap(), true, text).unwrap();
}

#[test]
fn of_an_entry_that_an_agent_adds() {
    let name = "of_an_entry_that_an_agent_adds";
    killed_at_each_step(name, two_entries, |memory, _| by_agent(memory, append("three")), untouched);
}

#[test]
fn of_the_first_entry_of_a_new_file() {
    let name = "of_the_first_entry_of_a_new_file";
    killed_at_each_step(name, |_, _| (), |memory, _| by_agent(memory, append("one")), untouched);
}

#[test]
fn of_an_entry_that_an_agent_replaces() {
    let name = "of_an_entry_that_an_agent_replaces";
    killed_at_each_step(name, two_entries, |memory, _| by_agent(memory, replace("one", "better")), untouched);
}

#[test]
fn of_an_entry_that_is_removed() {
    let name = "of_an_entry_that_is_removed";
    let change = |memory: &Arc<Memory>, _: &Path| by_agent(memory, Edit::Remove { old: "one".into() });
    killed_at_each_step(name, two_entries, change, untouched);
}

#[test]
fn of_an_entry_that_moves_into_the_archive() {
    let name = "of_an_entry_that_moves_into_the_archive";
    let change = |memory: &Arc<Memory>, _: &Path| {
        memory.archive(MINE, "one", true, &person()).unwrap();
    };
    killed_at_each_step(name, two_entries, change, untouched);
}

#[test]
fn of_a_pending_entry_that_the_user_accepts() {
    let name = "of_a_pending_entry_that_the_user_accepts";
    let prepare = |memory: &Arc<Memory>, dir: &Path| {
        two_entries(memory, dir);
        pending(memory, &append("the port is 8080"));
    };
    killed_at_each_step(name, prepare, |memory, _| decided(memory, MemoryState::Pending, None), untouched);
}

#[test]
fn of_a_pending_replacement_that_the_user_accepts() {
    let name = "of_a_pending_replacement_that_the_user_accepts";
    let prepare = |memory: &Arc<Memory>, dir: &Path| {
        two_entries(memory, dir);
        pending(memory, &replace("one", "the port is 8080"));
    };
    killed_at_each_step(name, prepare, |memory, _| decided(memory, MemoryState::Pending, None), untouched);
}

#[test]
fn of_a_pending_entry_that_the_user_accepts_in_other_words() {
    let name = "of_a_pending_entry_that_the_user_accepts_in_other_words";
    let prepare = |memory: &Arc<Memory>, dir: &Path| {
        two_entries(memory, dir);
        pending(memory, &append("the port is 8080"));
    };
    let change =
        |memory: &Arc<Memory>, _: &Path| decided(memory, MemoryState::Pending, Some("the port is 9090"));
    killed_at_each_step(name, prepare, change, untouched);
}

/// Text of others that is in the file is the user's only when the whole acceptance is stored.
#[test]
fn of_an_entry_of_others_in_the_file_that_the_user_accepts() {
    let name = "of_an_entry_of_others_in_the_file_that_the_user_accepts";
    let prepare = |memory: &Arc<Memory>, dir: &Path| {
        write(dir, "- one\n");
        page(memory);
        memory.write(MINE, &append("the port is 8080"), from(1)).unwrap();
    };
    killed_at_each_step(name, prepare, |memory, _| decided(memory, MemoryState::Kept, None), untouched);
}

#[test]
fn of_an_undo_of_an_added_entry() {
    let name = "of_an_undo_of_an_added_entry";
    let change = |memory: &Arc<Memory>, _: &Path| {
        memory.undo(false).unwrap();
    };
    killed_at_each_step(name, two_entries, change, untouched);
}

#[test]
fn of_an_undo_of_a_replacement() {
    let name = "of_an_undo_of_a_replacement";
    let prepare = |memory: &Arc<Memory>, dir: &Path| {
        two_entries(memory, dir);
        by_agent(memory, replace("one", "better"));
    };
    let change = |memory: &Arc<Memory>, _: &Path| {
        memory.undo(false).unwrap();
    };
    killed_at_each_step(name, prepare, change, untouched);
}

#[test]
fn of_a_redo() {
    let name = "of_a_redo";
    let prepare = |memory: &Arc<Memory>, dir: &Path| {
        two_entries(memory, dir);
        memory.undo(false).unwrap();
    };
    let change = |memory: &Arc<Memory>, _: &Path| {
        memory.undo(true).unwrap();
    };
    // The change that follows gives the undone one up, which is then not redone twice.
    killed_at_each_step(name, prepare, change, untouched);
}

#[test]
fn of_an_entry_that_is_set_aside_with_its_branch() {
    let name = "of_an_entry_that_is_set_aside_with_its_branch";
    let change = |memory: &Arc<Memory>, _: &Path| {
        memory.head_moved(session(), None).unwrap();
    };
    killed_at_each_step(name, two_entries, change, untouched);
}

#[test]
fn of_an_entry_that_vanished_and_is_brought_back() {
    let name = "of_an_entry_that_vanished_and_is_brought_back";
    let prepare = |memory: &Arc<Memory>, dir: &Path| {
        two_entries(memory, dir);
        let without = text(dir).replace("- one\n", "");
        write(dir, &without);
    };
    let change = |memory: &Arc<Memory>, _: &Path| {
        memory.restore(id_of(memory, "one"), false).unwrap();
    };
    killed_at_each_step(name, prepare, change, untouched);
}

/// What moves into the archive is listed once, and what sums it up is not the user's.
#[test]
fn of_a_file_over_its_budget_that_is_condensed() {
    let name = "of_a_file_over_its_budget_that_is_condensed";
    let prepare = |memory: &Arc<Memory>, dir: &Path| {
        let lines: String = (0..9).map(|n| format!("- 2026-01-0{}: fact {n} of many\n", n + 1)).collect();
        write(dir, &lines);
        page(memory);
    };
    let change = |memory: &Arc<Memory>, _: &Path| {
        memory.set_settings(MemorySettings { memory: 150, ..memory.settings() });
        let surplus = memory.over_budget().remove(0);
        let from = Provenance { agent: AgentId::main(), ..Provenance::default() };
        let summary = ["the first facts in short".to_owned(), "and some more".to_owned()];
        assert!(memory.condense(&surplus, &summary, &from).unwrap() > 2);
    };
    killed_at_each_step(name, prepare, change, untouched);
}

#[test]
fn of_an_entry_of_an_export_that_is_imported() {
    let name = "of_an_entry_of_an_export_that_is_imported";
    let change = |memory: &Arc<Memory>, _: &Path| {
        let entry = ImportedEntry {
            target: MINE,
            date: "2026-01-01".into(),
            text: "from elsewhere".into(),
            state: MemoryState::Kept,
            taint: None,
            replaces: String::new(),
        };
        assert_eq!(memory.import(&entry, false, "/x/export.jsonl").unwrap(), Imported::Added);
    };
    killed_at_each_step(name, two_entries, change, untouched);
}

/// What an editor saves after the file was read for a change and before it is written: another title, and one entry more.
fn edited(dir: &Path) {
    let text = text(dir).replace("# Mine\n", "# Mine, better\n");
    write(dir, &format!("{text}- by hand\n"));
}

#[test]
fn of_a_merge_with_what_an_editor_saved_meanwhile() {
    let name = "of_a_merge_with_what_an_editor_saved_meanwhile";
    let change = |memory: &Arc<Memory>, dir: &Path| {
        let planned = memory.plan(MINE, &replace("one", "better"), agent()).unwrap();
        edited(dir);
        memory.carry_out(&planned).unwrap();
    };
    killed_at_each_step(name, two_entries, change, edited);
}
