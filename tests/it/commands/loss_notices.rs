//! Losses, and actions that cannot be undone, are reported by plain commands too.

use serde_json::json;
use tiller_testkit::ScriptServer;

use crate::commands::cli::lived_in;
use crate::common::{Place, calls, says, shell};

/// S17: the first plain command after a salvage reports each loss; the next ones report nothing.
#[test]
fn s17_a_salvage_is_told_by_plain_commands() {
    let (_server, place) = lived_in();
    let db = place.home.join("data/tiller.db");
    let conn = rusqlite::Connection::open(&db).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(conn);
    let whole = std::fs::read(&db).unwrap();
    let text = b"what is here?";
    let at = whole.windows(text.len()).position(|bytes| bytes == text).expect("an entry's page");
    let mut damaged = whole;
    damaged[at / 4096 * 4096..(at / 4096 + 1) * 4096].fill(0);
    for first in [&["sessions", "list"][..], &["exec", "--continue", "and now?"]] {
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(place.home.join(format!("data/tiller.db{suffix}")));
        }
        std::fs::write(&db, &damaged).unwrap();
        let out = place.run(first);
        assert!(out.stderr.contains("The database was damaged"), "{first:?}: {out:?}");
        // Each loss on a line of its own.
        let lost = |l: &str| l.ends_with(" entries") || l.starts_with("title and folder of ");
        let named = out.stderr.lines().any(|l| lost(l.trim()));
        assert!(named, "{first:?}: {out:?}");
        let again = place.run(&["sessions", "list"]);
        assert!(!again.stderr.contains("damaged"), "{again:?}");
    }
}

fn writer() -> ScriptServer {
    ScriptServer::start([
        calls("c1", "write_file", json!({"path": "a.txt", "content": "one\n"})),
        shell("c2", "printf two > b.txt"),
        says("Done."),
    ])
}

/// The files before a call cannot be stored: `exec` runs nothing that cannot be undone, unless a setting allows it, and
/// reports that.
#[test]
fn exec_says_what_cannot_be_undone() {
    let server = writer();
    let place = Place::anthropic(&server);
    std::fs::create_dir_all(place.home.join("data")).unwrap();
    std::fs::write(place.home.join("data/snapshots"), "in the way").unwrap();
    let out = place.run(&["exec", "--profile", "full", "write"]);
    assert!(out.stderr.contains("cannot be undone"), "{out:?}");
    assert!(!place.work.join("a.txt").exists() && !place.work.join("b.txt").exists(), "{out:?}");
    let told = server.bodies()[1].to_string();
    assert!(told.contains("no one is available to answer"), "{told}");

    let server = writer();
    let mut place = Place::new();
    place.wire(tiller_testkit::Wire::Anthropic, &server);
    place.config("[snapshots]\non_failure = \"run\"\n");
    std::fs::create_dir_all(place.home.join("data")).unwrap();
    std::fs::write(place.home.join("data/snapshots"), "in the way").unwrap();
    let out = place.run(&["exec", "--profile", "full", "write"]);
    assert!(out.stderr.contains("cannot be undone"), "{out:?}");
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "Done.\n"), "{out:?}");
    assert_eq!((place.read("a.txt").as_str(), place.read("b.txt").as_str()), ("one\n", "two"));
}

/// Each changing call stores two states; a manual collection joins their packs.
#[test]
fn a_collection_by_hand_joins_the_packs() {
    let server = writer();
    let place = Place::anthropic(&server);
    place.ok(&["exec", "--profile", "full", "write"]);
    let store = std::fs::read_dir(place.home.join("data/snapshots")).unwrap().next().unwrap().unwrap().path();
    let packs = || {
        let all = std::fs::read_dir(store.join("repo/objects/pack")).unwrap();
        all.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "pack")).count()
    };
    let before = packs();
    assert!(before > 1, "{before}");
    let out = &place.lines(&["sessions", "gc", "--json"])[0];
    assert_eq!((&out["packs_before"], &out["packs_after"]), (&json!(before), &json!(1)), "{out}");
    assert_eq!(packs(), 1);
    assert!(place.ok(&["sessions", "gc"]).contains("Removed 0 session"));
    // The stored states are there.
    place.file("a.txt", "three\n");
    assert!(place.ok(&["checkpoint", "list"]).contains("write"));
}
