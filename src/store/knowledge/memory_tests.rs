use super::*;
use crate::knowledge::memory_unfinished::{RecordStep, UnfinishedChange};
use crate::testing::*;

fn change(path: &str, added: &str, state: ChangeState) -> MemoryChange {
    MemoryChange {
        id: 0,
        time: Time(0),
        path: path.into(),
        removed: None,
        added: Some(added.into()),
        archived: None,
        state,
        from: Provenance {
            session: Some(session_id(1)),
            branch: "main".into(),
            agent: AgentId::main(),
            taint: Taint::Web,
            ..Provenance::default()
        },
        details: ChangeDetails::default(),
    }
}

#[test]
fn who_wrote_an_accepted_entry_stays_recorded() {
    let (_dir, store) = scratch();
    let changes = store.memory_changes();
    let details = ChangeDetails { imported: "/x/export.jsonl".into(), ..ChangeDetails::default() };
    let waits = MemoryChange { details, ..change("/a", "x", ChangeState::Pending) };
    let id = changes.add(waits.clone()).wait().unwrap();
    let steps = vec![RecordStep::Accept { id, added: Some("y".into()), own: true }];
    changes.record("/a", UnfinishedChange { steps, ..UnfinishedChange::default() }).unwrap().wait().unwrap();
    let all = changes.of_files(&["/a".into()]).unwrap();
    let accepted = all[0].details.accepted.clone().unwrap();
    assert_eq!((all[0].from.taint, &accepted.from), (Taint::Person, &waits.from));
    assert_eq!(all[0].details.imported, "/x/export.jsonl");
}

#[test]
fn changes_come_back_as_they_were_stored() {
    let (_dir, store) = scratch();
    let changes = store.memory_changes();
    let one = changes.add(change("/a", "x", ChangeState::Done)).wait().unwrap();
    let two = changes.add(change("/b", "y", ChangeState::Pending)).wait().unwrap();
    assert!(two > one);
    let read = changes.get(two).unwrap().unwrap();
    assert_eq!(MemoryChange { id: 0, time: Time(0), ..read }, change("/b", "y", ChangeState::Pending));
    assert_eq!(changes.of_files(&["/a".into()]).unwrap().len(), 1);
    let moved = MemoryChange { archived: Some(true), ..change("/c", "x", ChangeState::Done) };
    changes.add(moved).wait().unwrap();
    assert_eq!(changes.of_files(&["/c".into()]).unwrap()[0].archived, Some(true));
    changes.set(two, ChangeState::Done).wait().unwrap();
    let all = changes.of_session(session_id(1)).unwrap();
    assert_eq!((all.len(), all[1].added.as_deref(), all[1].state), (3, Some("y"), ChangeState::Done));
    assert_eq!(changes.get(99).unwrap(), None);
    let entry = EntryId(uuid::Uuid::from_u128(7));
    assert_eq!(changes.off_path(None, &[entry]).unwrap(), [entry]);
}

/// A read, and how many rows it finds.
type CountedRead = Box<dyn Fn(&crate::Store) -> usize>;

/// Steps of SQLite that a read takes. Readers are kept, so that it runs on the one whose steps are counted.
fn steps(store: &crate::Store, read: impl Fn()) -> u64 {
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&count);
    let step = move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        false
    };
    read();
    let mut reader = store.inner.readers.lock().unwrap().pop().unwrap();
    reader.progress_handler(1, Some(step)).unwrap();
    store.inner.readers.lock().unwrap().push(reader);
    read();
    let mut reader = store.inner.readers.lock().unwrap().pop().unwrap();
    reader.progress_handler(0, None::<fn() -> bool>).unwrap();
    store.inner.readers.lock().unwrap().push(reader);
    count.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_look_up_takes_as_many_steps_among_many_rows_as_among_few() {
    let (_dir, store) = scratch();
    store.memory_changes().add(change("/m", "x", ChangeState::Done)).wait().unwrap();
    let all: [(&str, CountedRead); 8] = [
        ("revision", Box::new(|s| s.memory_changes().revision().map(|_| 1).unwrap())),
        ("added", Box::new(|s| s.memory_changes().added_lines(&["/m".into()]).unwrap().len())),
        (
            "done",
            Box::new(|s| s.memory_changes().in_states(&["/m".into()], &[ChangeState::Done]).unwrap().len()),
        ),
        ("lines", Box::new(|s| s.memory_changes().of_lines("/m", &["x".into()]).unwrap().len())),
        ("rules", Box::new(|s| s.learnings().matchers_revision().map(|_| 1).unwrap())),
        ("matchers", Box::new(|s| 1 + s.learnings().with_matchers().unwrap().len())),
        ("pending", Box::new(|s| 1 + s.learnings().pending().unwrap() as usize)),
        ("subjects", Box::new(|s| 1 + s.learnings().subjects("terminal").unwrap().len())),
    ];
    let count = |store: &crate::Store| -> Vec<u64> {
        let counted =
            |(name, read): &(&str, CountedRead)| steps(store, || assert_eq!(read(store), 1, "{name}"));
        all.iter().map(counted).collect()
    };
    let few = count(&store);
    let many = store.write(|conn| {
        conn.execute_batch(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
             INSERT INTO memory_changes(time, path, removed, state, taint)
               SELECT n, '/m', 'gone ' || n, 'declined', 'agent' FROM n;
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
             INSERT INTO learnings(tool, subject, error_type, details, pattern, fix, context, tags, state, created, times, source)
               SELECT 'terminal', 's', 'e' || n, '{}', '', 'fix', '', '[]', iif(n % 2, 'retired', 'active'), n, 0, '{}' FROM n;
             UPDATE learnings SET subject = '' WHERE state = 'active';",
        )?;
        Ok(())
    });
    many.wait().unwrap();
    for ((few, many), (name, _)) in few.iter().zip(&count(&store)).zip(&all) {
        assert!(*many <= few + 200, "{name}: {few} steps among few rows, {many} among many");
    }
}

#[test]
fn the_revision_changes_with_each_change_of_an_origin_and_with_nothing_else() {
    let (_dir, store) = scratch();
    let changes = store.memory_changes();
    let mut last = changes.revision().unwrap();
    let mut changed = || {
        let before = std::mem::replace(&mut last, changes.revision().unwrap());
        before != changes.revision().unwrap()
    };
    let one = changes.add(change("/a", "x", ChangeState::Pending)).wait().unwrap();
    assert!(changed());
    changes.set(one, ChangeState::Done).wait().unwrap();
    assert!(changed(), "a state");
    let removal =
        MemoryChange { removed: Some("x".into()), added: None, ..change("/a", "", ChangeState::Outside) };
    let gone = changes.add(removal).wait().unwrap();
    changes.set(gone, ChangeState::Declined).wait().unwrap();
    assert!(!changed(), "a removal has no origin");
    store
        .write(move |conn| Ok(conn.execute("DELETE FROM memory_changes WHERE id = ?1", [one]).map(drop)?))
        .wait()
        .unwrap();
    assert!(changed());
}
