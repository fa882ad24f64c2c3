use super::*;

#[test]
fn a_copy_is_saved_in_our_folder_and_links_are_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().join("work");
    let backup = tmp.path().join("state");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.txt"), "as it was\n").unwrap();
    std::os::unix::fs::symlink(root.join("a.txt"), root.join("link.txt")).unwrap();
    for name in ["link.txt", "gone.txt"] {
        save_copy(&backup, &root, name).unwrap();
    }
    assert!(!backup.exists());
    save_copy(&backup, &root, "a.txt").unwrap();
    save_copy(&backup, &root, "a.txt").unwrap();
    let copies: Vec<_> = std::fs::read_dir(&backup).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(copies.len(), 1);
    assert_eq!(std::fs::read_to_string(&copies[0]).unwrap(), "as it was\n");
    assert_eq!(std::fs::metadata(&copies[0]).unwrap().permissions().mode() & 0o777, 0o600);
}

fn turn(n: u128) -> EntryId {
    EntryId(uuid::Uuid::from_u128(n))
}

fn changed(s: Since) -> FileDiff {
    match s {
        Since::Changed(diff) => diff,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_state_before_a_turn_is_kept_once() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    let reviews = Mutex::new(Reviews::default());
    std::fs::write(root.join("a"), "first\n").unwrap();
    keep(&reviews, turn(1), root, &root.join("a"));
    keep(&reviews, turn(1), root, &root.join("new"));
    std::fs::write(root.join("a"), "second\n").unwrap();
    std::fs::write(root.join("new"), "n\n").unwrap();
    keep(&reviews, turn(1), root, &root.join("a"));
    let kept = lock(&reviews).kept(turn(1));
    let diff = changed(since(root, "a", kept["a"].as_deref()));
    assert!(diff.diff.contains("-first") && diff.diff.contains("+second"), "{}", diff.diff);
    assert_eq!(changed(since(root, "new", kept["new"].as_deref())).kind, ChangeKind::Added);
    std::fs::write(root.join("a"), "first\n").unwrap();
    assert!(matches!(since(root, "a", kept["a"].as_deref()), Since::Same), "as it was");
}

#[test]
fn older_turns_are_pushed_out_and_it_is_known() {
    let mut reviews = Reviews::default();
    let bytes = |n: usize| Some(Arc::from(vec![b'x'; n]));
    reviews.put(turn(1), "a".into(), bytes(60), 100);
    reviews.put(turn(2), "a".into(), bytes(30), 100);
    reviews.put(turn(2), "b".into(), bytes(60), 100);
    assert_eq!((reviews.kept(turn(1)).len(), reviews.kept(turn(2)).len(), reviews.bytes), (0, 2, 90));
    assert!(reviews.forgot(turn(1)) && !reviews.forgot(turn(2)));
    // A turn that is over it alone keeps what fits.
    reviews.put(turn(2), "c".into(), bytes(60), 100);
    assert_eq!((reviews.kept(turn(2)).len(), reviews.bytes), (2, 90));
    assert!(reviews.forgot(turn(2)));
}

#[test]
fn large_files_pipes_and_large_differences_are_not_compared() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    let large = std::fs::File::create(root.join("large")).unwrap();
    large.set_len(8 << 30).unwrap();
    assert!(matches!(since(root, "large", Some(b"x")), Since::TooLarge(_)));
    std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    assert!(matches!(since(root, "socket", Some(b"x")), Since::TooLarge(_)));
    let lines: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    std::fs::write(root.join("long"), lines).unwrap();
    let begun = std::time::Instant::now();
    assert!(matches!(since(root, "long", Some(b"x\n")), Since::TooLarge(_)));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn masks_are_text_only_in_what_was_made_from_the_bytes() {
    let hunk = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n k=[redacted secret]\n-old [redacted secret]\n+new\n";
    let bytes = |t: &str| Some(Arc::<[u8]>::from(t.as_bytes()));
    assert_eq!(masks(None, hunk), Masks::Value);
    assert_eq!(masks(Some(&bytes("k=1\nold 2\n")), hunk), Masks::Value);
    assert_eq!(masks(Some(&bytes("k=[redacted secret]\nold [redacted secret]\n")), hunk), Masks::Text);
}

#[test]
fn a_copy_is_saved_of_names_that_are_not_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let tmp = tempfile::tempdir().unwrap();
    let (root, folder) = (tmp.path().join("work"), tmp.path().join("kept"));
    std::fs::create_dir(&root).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::write(root.join(name), "theirs").unwrap();
    save_copy(&folder, &root, &tiller_protocol::names::written(Path::new(name))).unwrap();
    let copies: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|c| c.unwrap().path()).collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert_eq!(std::fs::read_to_string(&copies[0]).unwrap(), "theirs");
}

/// W20: a file in a legacy encoding has lines.
#[test]
fn w20_a_file_in_a_legacy_encoding_is_compared() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), b"\x93one\x94\nd\xe9j\xe0 lu\n\x80 5\n").unwrap();
    let diff = changed(since(dir.path(), "f", Some(b"\x93one\x94\nd\xe9j\xe0 vu\n\x80 5\n")));
    assert!(diff.diff.contains(" “one”\n-déjà vu\n+déjà lu\n € 5\n"), "{}", diff.diff);
    // What its text alone does not give again has no hunks: it is taken back as a whole.
    for bytes in [&b"d\xe9j\xe0\n"[..], b"\xef\xbb\xbfa\n", b"a\rb\r", b"\xff\xfea\0\n\0"] {
        assert_eq!(changed(since(dir.path(), "gone", Some(bytes))).diff, "", "{bytes:?}");
        std::fs::write(dir.path().join("new"), bytes).unwrap();
        assert_eq!(changed(since(dir.path(), "new", None)).diff, "", "{bytes:?}");
        assert_eq!(changed(since(dir.path(), "new", Some(b"a\n\xe2\x82\xac\n"))).diff, "", "{bytes:?}");
    }
    assert!(changed(since(dir.path(), "gone", Some("déjà\n".as_bytes()))).diff.contains("-déjà"));
}
