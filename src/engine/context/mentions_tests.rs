use tiller_tool::Workspace;

use super::*;

fn file(label: &str, path: &str, lines: Option<(u32, u32)>) -> Attachment {
    Attachment::File { label: label.into(), path: path.into(), lines }
}

fn send(text: &str, attachments: Vec<Attachment>, root: &Path) -> Result<Vec<Part>, Notice> {
    freeze(&Message { attachments, ..Message::text(text) }, &Workspace::new(root).unwrap())
}

/// A PNG of one pixel.
fn pixel() -> Vec<u8> {
    let text =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

/// What a vendor refuses would be refused with every later request of the session.
#[test]
fn p13_an_image_that_no_vendor_takes_is_not_attached() {
    let tmp = tempfile::tempdir().unwrap();
    let whole = pixel();
    let mut wide = whole.clone();
    wide[16..20].copy_from_slice(&9000_u32.to_be_bytes());
    // Its header has a checksum.
    let crc = crc(&wide[12..29]);
    wide[29..33].copy_from_slice(&crc.to_be_bytes());
    let cut = &whole[..whole.len() - 9];
    for (name, bytes) in [("wide.png", &wide[..]), ("cut.png", cut), ("head.png", &whole[..12])] {
        std::fs::write(tmp.path().join(name), bytes).unwrap();
        let e = send("x", vec![file("l", name, None)], tmp.path()).unwrap_err();
        assert!(e.message.contains("damaged or too large"), "{name}: {}", e.message);
    }
}

/// CRC-32 as PNG has it.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, b| {
        (0..8).fold(crc ^ u32::from(*b), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
    })
}

fn text(parts: &[Part]) -> &str {
    match &parts[0] {
        Part::Text { text } => text,
        Part::Image { .. } => panic!("an image"),
    }
}

#[test]
fn pastes_files_ranges_folders_and_images_are_frozen_in_place() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("a.txt"), "one\ntwo\nthree\nfour\n").unwrap();
    std::fs::create_dir(tmp.path().join("d")).unwrap();
    std::fs::write(tmp.path().join("d/x"), "").unwrap();
    std::fs::write(tmp.path().join("p.png"), pixel()).unwrap();
    let paste = Attachment::Paste { label: "[paste 1]".into(), text: "P1\nP2".into() };
    let got = send(
        "see [paste 1] and @a.txt:2-3, @d, @p.png",
        vec![
            paste,
            file("@a.txt:2-3", "a.txt", Some((2, 3))),
            file("@d", "d", None),
            file("@p.png", "p.png", None),
        ],
        tmp.path(),
    )
    .unwrap();
    assert_eq!(
        text(&got),
        "see P1\nP2 and @a.txt:2-3, @d, @p.png\n\n<file path=\"a.txt\" lines=\"2-3\">\ntwo\nthree\n</file>\n\n\
         <folder path=\"d\">\nx\n</folder>"
    );
    assert!(matches!(&got[1], Part::Image { media_type, .. } if media_type == "image/png"));
}

#[test]
fn a_mention_that_fails_stops_the_send_and_says_why() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("bin"), [0u8; 10]).unwrap();
    std::fs::write(tmp.path().join("short"), "x\n").unwrap();
    for (path, lines, why) in [
        ("gone", None, "No such file"),
        ("bin", None, "binary"),
        ("short", Some((5, 9)), "it has 1 lines"),
        ("/dev/null", None, "not a regular file"),
    ] {
        let e = send("x", vec![file("l", path, lines)], tmp.path()).unwrap_err();
        assert!(e.message.contains(why), "{path}: {}", e.message);
        assert_eq!(e.kind, NoticeKind::User);
    }
}

#[test]
fn w20_files_in_any_encoding_are_attached_as_read_file_shows_them() {
    let tmp = tempfile::tempdir().unwrap();
    let wide: Vec<u8> = "\u{feff}wide\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes, shown) in [
        ("latin", &b"\x93quoted\x94 caf\xe9\n"[..], " encoding=\"windows-1252\">\n“quoted” café\n"),
        ("zeros", b"a\0b\x1b[m\n", ">\na\u{2400}b\u{241b}[m\n"),
        ("wide", &wide, " encoding=\"UTF-16 LE\">\nwide\r\n"),
        ("returns", b"one\rtwo\r", ">\none\ntwo\n"),
    ] {
        std::fs::write(tmp.path().join(name), bytes).unwrap();
        let got = send("x", vec![file("@f", name, None)], tmp.path()).unwrap();
        let wanted = format!("x\n\n<file path=\"{name}\"{}\n</file>", shown.trim_end_matches('\n'));
        assert_eq!(text(&got), wanted);
    }
    let got = send("x", vec![file("@f", "returns", Some((2, 2)))], tmp.path()).unwrap();
    assert!(text(&got).ends_with("<file path=\"returns\" lines=\"2-2\">\ntwo\n</file>"), "{}", text(&got));
}

#[test]
fn huge_files_are_cut_with_a_mark() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("big"), "line of text\n".repeat(100_000)).unwrap();
    let got = send("x", vec![file("@big", "big", None)], tmp.path()).unwrap();
    assert!(text(&got).len() < 110 << 10 && text(&got).contains("of 1300000 bytes"));
}

#[test]
fn what_is_written_by_hand_works_like_what_was_chosen() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir(tmp.path().join("src")).unwrap();
    std::fs::write(tmp.path().join("src/a.rs"), "one\ntwo\nthree\n").unwrap();
    let said =
        send("look at @src/a.rs:2-3, (@src) and ann@src or @nobody. @src/a.rs:2-3!", vec![], tmp.path());
    let said = said.unwrap();
    assert_eq!(
        text(&said).matches("<file path=\"src/a.rs\" lines=\"2-3\">\ntwo\nthree").count(),
        1,
        "{said:?}"
    );
    assert_eq!(text(&said).matches("<folder path=\"src\">").count(), 1, "{said:?}");
    // Chosen from the list it is there already; nothing outside is taken.
    let chosen = send("see @src/a.rs", vec![file("@src/a.rs", "src/a.rs", None)], tmp.path()).unwrap();
    assert_eq!(text(&chosen).matches("<file").count(), 1);
    let outside = send("see @../x @/etc/hostname @src/../src/a.rs", vec![], tmp.path()).unwrap();
    assert!(!text(&outside).contains('<'), "{outside:?}");
    // An image that cannot be attached blocks the message, as a chosen one does.
    assert!(send("see @src/a.rs:90-99", vec![], tmp.path()).is_err());
}

/// X17: a rule that forbids to read a path holds for mentions, chosen or written by hand.
#[test]
fn x17_what_may_not_be_read_cannot_be_attached() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join(".env"), "TOKEN=word\n").unwrap();
    let rule: tiller_tool::Unreadable =
        std::sync::Arc::new(|p: &Path| p.ends_with(".env").then(|| "yours: deny read_file(.env)".into()));
    let workspace = Workspace::new(tmp.path()).unwrap().forbid(rule);
    let attempt = |text: &str, attachments| {
        freeze(&Message { attachments, ..Message::text(text) }, &workspace).unwrap_err().message
    };
    for said in [attempt("look at @.env", vec![]), attempt("see", vec![file("@.env", ".env", Some((1, 1)))])]
    {
        assert!(said.contains("read_file(.env)"), "{said}");
    }
}

/// A link that the project brings leads to a secret path.
#[test]
fn a_link_to_a_secret_path_cannot_be_attached() {
    let tmp = tempfile::tempdir().unwrap();
    let top = tmp.path().canonicalize().unwrap();
    for folder in ["work", "home/.ssh"] {
        std::fs::create_dir_all(top.join(folder)).unwrap();
    }
    std::fs::write(top.join("home/.ssh/id"), "the key").unwrap();
    for (target, link) in [("../home/.ssh/id", "notes.txt"), ("../home/.ssh", "keys"), ("../home", "all")] {
        std::os::unix::fs::symlink(target, top.join("work").join(link)).unwrap();
    }
    let hidden = top.join("home/.ssh");
    let secret: tiller_tool::Unreadable = std::sync::Arc::new(move |p: &Path| {
        p.starts_with(&hidden).then(|| "built in: ask before ~/.ssh is read".into())
    });
    let workspace = Workspace::new(&top.join("work")).unwrap().hide(secret);
    for path in ["notes.txt", "keys/id", "all/.ssh/id"] {
        for message in [
            Message::text(format!("see @{path}")),
            Message { attachments: vec![file("l", path, None)], ..Message::text("see") },
        ] {
            let said = freeze(&message, &workspace).unwrap_err().message;
            assert!(said.contains("~/.ssh") && !said.contains("the key"), "{path}: {said}");
        }
    }
}

#[test]
fn names_that_are_not_utf_8_are_attached_and_listed_as_tools_read_them() {
    use std::os::unix::ffi::OsStrExt;
    let tmp = tempfile::tempdir().unwrap();
    let name = Path::new(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(tmp.path().join("d")).unwrap();
    std::fs::write(tmp.path().join("d").join(name), "in it\n").unwrap();
    let written = names::written(name);
    let path = format!("d/{written}");
    let content = format!("<file path=\"{path}\">\nin it\n</file>");
    for attachments in [vec![file("l", &path, None)], Vec::new()] {
        let got = send(&format!("see @{path} in @d"), attachments, tmp.path()).unwrap();
        assert!(text(&got).contains(&content), "{}", text(&got));
        assert!(text(&got).contains(&format!("<folder path=\"d\">\n{written}\n</folder>")), "{}", text(&got));
    }
}

#[test]
fn values_are_masked_by_the_whole_file_and_the_masks_are_explained() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("k"), "one\n<secret\nin lines\n>\nfive\n").unwrap();
    std::fs::write(tmp.path().join("plain"), "one\n").unwrap();
    // What is between the brackets, which may be many lines.
    let secrets = std::sync::Arc::new(|text: &str| {
        let range = text.find('<').zip(text.find('>')).map(|(a, b)| a..b + 1);
        let secret = |range| tiller_protocol::mask::Secret { range, name: "secret" };
        range.map(secret).into_iter().collect()
    });
    let workspace = Workspace::new(tmp.path()).unwrap().mask(secrets);
    let send = |text: &str| freeze(&Message::text(text), &workspace).unwrap();
    let cut = send("@k:3-5");
    let want = "<file path=\"k\" lines=\"3-5\">\n[redacted secret]\nfive\n</file>\n\n[Values masked";
    assert!(text(&cut).contains(want), "{}", text(&cut));
    let whole = send("@k");
    assert!(text(&whole).contains("\none\n[redacted secret]\nfive\n</file>"), "{}", text(&whole));
    assert_eq!(text(&send("@plain")), "@plain\n\n<file path=\"plain\">\none\n</file>");
}

/// A message that came with an imported file may name any file of this machine.
#[test]
fn text_of_others_attaches_no_file() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("a.txt"), "inside").unwrap();
    let paste = Attachment::Paste { label: "[paste 1]".into(), text: "pasted".into() };
    let outside = tmp.path().join("a.txt").to_string_lossy().into_owned();
    let attachments = vec![file("@a", "a.txt", None), file("@b", &outside, None), paste];
    let message = Message { attachments, ..Message::text("see @a.txt and [paste 1]") };
    let workspace = Workspace::new(tmp.path()).unwrap();
    let text = |parts: Vec<Part>| match &parts[..] {
        [Part::Text { text }] => text.clone(),
        other => panic!("{other:?}"),
    };
    assert!(text(freeze(&message, &workspace).unwrap()).contains("inside"));
    assert_eq!(text(freeze_unnamed(&message, &workspace).unwrap()), "see @a.txt and pasted");
}

/// Paths below `/tmp` are those that commands see, also where the machine has a file of that name, and no link leads out.
#[test]
fn a_path_below_tmp_is_that_of_the_session_and_an_absolute_one_that_of_the_project() {
    use tiller_tool::shell::{SessionTmp, TmpFolder};
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    std::fs::write(root.join("in.txt"), "in the project\n").unwrap();
    let machine = tempfile::Builder::new().prefix("mention-").tempfile_in("/tmp").unwrap();
    std::fs::write(machine.path(), "of the machine\n").unwrap();
    let both = machine.path().display().to_string();
    let name = both.trim_start_matches("/tmp/").to_owned();
    let folder = TmpFolder::default();
    let own = folder.path().unwrap().to_owned();
    let shown = root.clone();
    let tmp = SessionTmp { folder, shown: std::sync::Arc::new(move |_, _| Some(vec![shown.clone()])) };
    let workspace = Workspace::new(&root).unwrap().tmp(Some(tmp));
    let sent = |text: &str, attachments: Vec<Attachment>| {
        freeze(&Message { attachments, ..Message::text(text) }, &workspace)
    };
    let typed = |path: &str| text(&sent(&format!("see @{path}."), Vec::new()).unwrap()).to_owned();
    assert_eq!(typed(&both), format!("see @{both}."), "the machine's is not attached");
    assert!(sent("see", vec![file("@x", &both, None)]).is_err(), "nor one that was chosen and is gone");
    std::fs::write(own.join(&name), "of the session\n").unwrap();
    let whole = format!("<file path=\"{both}\">\nof the session\n</file>");
    assert!(typed(&both).ends_with(&whole), "{}", typed(&both));
    assert!(typed(&format!("{both}:1-1")).contains("of the session"));
    let chosen = sent("see", vec![file("@x", &both, None)]).unwrap();
    assert!(text(&chosen).ends_with(&whole));
    let near = root.join("in.txt").display().to_string();
    assert!(typed(&near).contains("in the project"), "{}", typed(&near));
    // Links and dots of a command's lead nowhere else.
    std::os::unix::fs::symlink("/etc/passwd", own.join("link")).unwrap();
    std::os::unix::fs::symlink(machine.path(), own.join("round")).unwrap();
    for path in ["/tmp/link", "/tmp/round", "/tmp/../etc/passwd", "/tmp/nothing-there", "/etc/passwd"] {
        assert_eq!(typed(path), format!("see @{path}."), "{path}");
        if path.starts_with("/tmp/") {
            assert!(sent("see", vec![file("@x", path, None)]).is_err(), "{path}");
        }
    }
    let mut found = crate::prompts::finder::tmp::temporary(&workspace, "/tmp/", 9);
    found.extend(crate::prompts::finder::tmp::temporary(&workspace, "/tmp/none", 9));
    let names: Vec<&str> = found.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, [both.as_str()], "links that lead out are not offered");
    assert_eq!((found[0].size, found[0].preview.as_str()), (Some(15), "of the session\n"));
}
