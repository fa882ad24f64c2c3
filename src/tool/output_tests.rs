use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::testing::Bench;

#[test]
fn short_text_stays_whole() {
    assert_eq!(cut_middle("abc", 3, "p"), None);
}

#[test]
fn the_middle_goes_and_both_ends_stay() {
    let text: String = (1..=2000).map(|n| format!("line {n}\n")).collect();
    let cut = cut_middle(&text, 3000, "see X").unwrap();
    assert!(cut.len() < 3300, "{}", cut.len());
    assert!(cut.starts_with("line 1\n"));
    assert!(cut.ends_with("line 2000\n"));
    assert!(cut.contains("lines left out; see X ...]\n"));
    // Cut at line ends: every line is a whole one.
    assert!(cut.lines().all(|l| l.starts_with("line ") || l.starts_with("[...")));
}

#[test]
fn characters_are_never_split() {
    for n in 90..130 {
        let text = "ä".repeat(n);
        if let Some(cut) = cut_middle(&text, 100, "p") {
            assert!(cut.starts_with('ä') && cut.ends_with('ä'));
        }
    }
}

#[tokio::test]
async fn long_output_is_spilled_privately() {
    let bench = Bench::new();
    let text = "word ".repeat(20_000);
    let got = bound(text.clone(), &bench.cx);
    assert!(got.len() < bench.cx.limits.output_bytes + 400);
    let path = got.split("the whole: ").nth(1).unwrap().split(" ...]").next().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    assert_eq!(got.lines().find_map(pointed_at), Some(path));
    assert_eq!(pointed_at("[... 1 KB, 2 lines left out; the full output could not be kept: no ...]"), None);
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(&bench.cx.folders.spill).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn the_spill_file_is_capped_and_says_so() {
    let bench = Bench::new().limits(|l| l.spill_bytes = 10);
    let mut a = Spill::create(&bench.cx).unwrap();
    a.write(b"0123456789abc").unwrap();
    a.write(b"def").unwrap();
    assert_eq!(a.dropped(), 6);
    assert!(a.pointer().contains("without its last 6 B"));
    assert_eq!(std::fs::read(a.path()).unwrap(), b"0123456789");
    let b = Spill::create(&bench.cx).unwrap();
    assert_ne!(a.path(), b.path());
}

#[test]
fn sizes_for_people() {
    for (n, want) in
        [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (12_000_000, "12 MB"), (999_999, "1.0 MB")]
    {
        assert_eq!(human(n), want);
    }
}

#[test]
fn a_duration_note_is_recognized_and_nothing_else() {
    assert!(is_duration_note(&duration_note("5.1")) && is_duration_note(&duration_note("62")));
    for other in ["[took a while s]", "[took 5 s] x", "x [took 5 s]", "took 5 s", ""] {
        assert!(!is_duration_note(other), "{other}");
    }
}
