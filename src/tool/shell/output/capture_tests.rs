use super::*;
use crate::testing::Bench;

fn feed(bench: &Bench, bytes: &[u8], piece: usize) -> Text {
    let mut capture = Capture::default();
    for piece in bytes.chunks(piece) {
        capture.push(piece, &bench.cx);
        assert!(capture.head.len() + capture.tail.len() <= WHOLE + 3 * END);
    }
    assert_eq!(capture.total, bytes.len() as u64);
    capture.finish(&bench.cx)
}

#[test]
fn short_output_stays_whole_and_makes_no_file() {
    let bench = Bench::new();
    let text = feed(&bench, b"one\ntwo\n", 3);
    assert_eq!(text, Text { model: "one\ntwo\n".into(), tail: "one\ntwo\n".into(), full: None });
    assert!(!bench.cx.folders.spill.exists());
}

#[test]
fn long_output_keeps_both_ends_and_points_to_the_file() {
    let bench = Bench::new();
    let lines: String = (0..200_000).map(|n| format!("line {n}\n")).collect();
    for piece in [1000, 65_536, 1_000_000] {
        let text = feed(&bench, lines.as_bytes(), piece);
        assert!(text.model.starts_with("line 0\n"));
        assert!(text.model.ends_with("line 199999\n"));
        assert!(text.model.len() <= bench.cx.limits.output_bytes + 300, "{}", text.model.len());
        let full = text.full.unwrap();
        assert!(text.model.contains(&full));
        assert_eq!(std::fs::read_to_string(full).unwrap(), lines);
    }
}

#[test]
fn middle_output_is_cut_with_a_pointer_too() {
    let bench = Bench::new();
    let lines: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
    assert!(lines.len() < WHOLE);
    let text = feed(&bench, lines.as_bytes(), 4096);
    assert!(text.model.len() <= bench.cx.limits.output_bytes + 300);
    assert_eq!(std::fs::read_to_string(text.full.unwrap()).unwrap(), lines);
}

/// T4: no control byte in what model and screen get; the raw bytes are on disk, readable by us alone.
#[test]
fn t4_raw_on_disk_clean_in_sight() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let every: Vec<u8> = (0..=255u8).cycle().take(4096).collect();
    let cases: [&[u8]; 5] = [
        b"a\x1b[31mred\x1b[0m\x07\n",
        b"\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07ok\n",
        b"bad \xff\xfe utf\n",
        b"split \xe2\x82",
        &every,
    ];
    for raw in cases {
        let text = feed(&bench, raw, 1);
        for seen in [&text.model, &text.tail] {
            assert!(!seen.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{seen:?}");
        }
        let full = text.full.unwrap();
        assert_eq!(std::fs::read(&full).unwrap(), raw);
        assert_eq!(std::fs::metadata(&full).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn the_file_is_capped_and_says_so() {
    let bench = Bench::new().limits(|l| l.spill_bytes = 300_000);
    let text = feed(&bench, &b"0123456789abcde\n".repeat(100_000), 65_536);
    assert_eq!(std::fs::metadata(text.full.unwrap()).unwrap().len(), 300_000);
    assert!(text.model.contains("without its last"), "{}", text.model);
}

/// W20: output that names separate with zeros is shown, and what the result points to can be read.
#[tokio::test]
async fn w20_zeros_and_legacy_encodings_are_shown() {
    let bench = Bench::new();
    let text = feed(&bench, b"src/a.rs\0b\0c.md\0", 5);
    assert_eq!(text.model, "src/a.rs\u{2400}b\u{2400}c.md\u{2400}");
    let page = bench.say(&crate::files::ReadFile, serde_json::json!({"path": text.full.unwrap()})).await;
    assert!(page.contains(&text.model), "{page}");
    let text = feed(&bench, b"\x93Gr\xfc\xdfe\x94 aus \xd6sterreich\n", 7);
    assert_eq!(text.model, "“Grüße” aus Österreich\n");
    // UTF-16 with and without its mark, and names of one letter.
    for (bytes, shown) in [
        (&b"\xff\xfeh\0i\0\n\0"[..], "hi\n"),
        (b"h\0i\0 \0y\0o\0u\0\r\0\n\0", "hi you\n"),
        (b"a\0b\0c\0", "a\u{2400}b\u{2400}c\u{2400}"),
    ] {
        assert_eq!(feed(&bench, bytes, 3).model, shown);
    }
    // Binary output: the result says how its bytes are seen, and they are.
    let bytes: Vec<u8> = (0..=255u8).cycle().take(5_000).collect();
    let text = feed(&bench, &bytes, 999);
    let path = text.full.unwrap();
    let wanted =
        format!("[binary output, 5.0 KB, not shown; read_file with byte=0 shows its bytes: {path}]\n");
    assert_eq!(text.model, wanted);
    assert!(output::without_pointer(&wanted).ends_with("not shown; "));
    let (mut byte, mut seen) = (0, 0);
    loop {
        let args = serde_json::json!({"path": path, "byte": byte});
        let page = bench.say(&crate::files::ReadFile, args).await;
        seen += page.lines().filter(|l| l.contains("  ")).count();
        let Some((_, next)) = page.split_once("next page: byte=") else { break };
        byte = next.trim_end_matches("]\n").parse().unwrap();
    }
    assert_eq!(seen, 5_000_usize.div_ceil(16));
}
