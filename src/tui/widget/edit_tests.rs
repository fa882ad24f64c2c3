use proptest::prelude::*;

use unicode_segmentation::UnicodeSegmentation as _;

use super::*;

fn buffer(text: &str) -> Edit {
    // `|` marks the caret.
    let mut b = Edit::default();
    b.set(&text.replace('|', ""));
    b.set_caret(text.find('|').unwrap_or(text.len()));
    b
}

fn shown(b: &Edit) -> String {
    format!("{}|{}", &b.text()[..b.caret()], &b.text()[b.caret()..])
}

fn none(_: char) -> Option<String> {
    None
}

#[test]
fn edits_as_readline_does() {
    type RowRange = (&'static str, fn(&mut Edit), &'static str);
    let cases: &[RowRange] = &[
        ("one two|", Edit::kill_big_word_back, "one |"),
        ("one /a/b-c  |", Edit::kill_big_word_back, "one |"),
        ("one /a/b|", Edit::kill_word_back, "one /a/|"),
        ("|one two", Edit::kill_word, "| two"),
        ("one| two", Edit::kill_to_end, "one|"),
        ("one|\ntwo", Edit::kill_to_end, "one|two"),
        ("one t|wo", Edit::kill_to_start, "|wo"),
        ("one\n|two", Edit::kill_to_start, "one|two"),
        ("a|b", Edit::transpose, "ba|"),
        ("ab|", Edit::transpose, "ba|"),
        ("|", Edit::transpose, "|"),
        ("one tw|o", Edit::home, "|one two"),
        ("a\nb|c", Edit::home, "a\n|bc"),
        ("a|b\nc", Edit::end, "ab|\nc"),
        ("one two|", Edit::word_left, "one |two"),
        ("|one two", Edit::word_right, "one| two"),
        ("e\u{301}|x", Edit::delete_back, "|x"),
        ("|\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}x", Edit::delete_forward, "|x"),
    ];
    for (before, edit, after) in cases {
        let mut b = buffer(before);
        edit(&mut b);
        assert_eq!(&shown(&b), after, "from {before:?}");
    }
}

#[test]
fn kills_in_a_row_come_back_as_one_and_older_ones_by_yank_pop() {
    let mut b = buffer("one two three|");
    b.kill_big_word_back();
    b.kill_big_word_back();
    assert_eq!(shown(&b), "one |");
    b.left();
    b.right();
    b.kill_big_word_back();
    b.yank();
    assert_eq!(shown(&b), "one |");
    b.yank_pop();
    assert_eq!(shown(&b), "two three|");
}

#[test]
fn undo_takes_a_typed_word_back_at_once_and_redo_brings_it_again() {
    let mut b = Edit::default();
    for c in ["a", "b", "c", " ", "d"] {
        b.insert(c);
    }
    b.undo();
    assert_eq!(b.text(), "abc ");
    b.undo();
    b.undo();
    assert_eq!(b.text(), "");
    b.redo();
    assert_eq!(b.text(), "abc");
}

#[test]
fn wraps_behind_spaces_and_counts_wide_letters_as_two() {
    let rows = |t: &str, w| {
        buffer(t).rows(w, &none).iter().cloned().map(|r| t.replace('|', "")[r].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rows("hello wide world", 8), ["hello ", "wide ", "world"]);
    assert_eq!(rows("abcdefghij", 4), ["abcd", "efgh", "ij"]);
    assert_eq!(rows("\u{65e5}\u{672c}\u{8a9e}", 4), ["\u{65e5}\u{672c}", "\u{8a9e}"]);
    assert_eq!(rows("a\n\nb", 4), ["a", "", "b"]);
    assert_eq!(rows("", 4), [""]);
}

#[test]
fn up_and_down_keep_the_column() {
    let mut b = buffer("long line\nx\nanother|");
    assert!(b.vertical(false, 40, &none));
    assert_eq!(shown(&b), "long line\nx|\nanother");
    assert!(b.vertical(false, 40, &none));
    assert_eq!(shown(&b), "long li|ne\nx\nanother");
    assert!(!b.vertical(false, 40, &none));
}

#[test]
fn a_chip_is_one_letter_and_cannot_be_typed() {
    let mut b = buffer("see |");
    b.insert_chip(0);
    b.insert("\u{F0000}!");
    assert_eq!(b.text(), "see \u{F0000}!");
    b.left();
    b.delete_back();
    assert_eq!(shown(&b), "see |!");
}

proptest! {
    /// Whatever is done, the caret stays on a boundary and the rows hold the whole text.
    #[test]
    fn never_leaves_a_boundary(text in "\\PC{0,20}", steps in prop::collection::vec((0u8..22, "\\PC{0,3}"), 0..40), width in 1usize..12) {
        let mut b = Edit::default();
        b.insert(&text);
        for (step, typed) in steps {
            match step {
                0 => b.left(), 1 => b.right(), 2 => b.word_left(), 3 => b.word_right(), 4 => b.home(), 5 => b.end(),
                6 => b.delete_back(), 7 => b.delete_forward(), 8 => b.kill_to_end(), 9 => b.kill_to_start(),
                10 => b.kill_big_word_back(), 11 => b.kill_word_back(), 12 => b.kill_word(), 13 => b.yank(), 14 => b.yank_pop(),
                15 => b.transpose(), 16 => b.undo(), 17 => b.redo(), 18 => { b.vertical(true, width, &none); }
                19 => { b.vertical(false, width, &none); } 20 => b.change_case(LetterCase::Capital), _ => b.insert(&typed),
            }
            prop_assert!(b.text().is_char_boundary(b.caret()));
            let rows = b.rows(width, &none);
            let joined: usize = rows.iter().map(|r| r.len()).sum::<usize>() + b.text().matches('\n').count();
            prop_assert_eq!(joined, b.text().len());
            let (row, col) = b.position(&rows, &none);
            // A tab, or the mark for what cannot be seen, may be wider than the row.
            let widest = b.text().graphemes(true).map(|g| cell_width(g, &none)).max().unwrap_or(0);
            prop_assert!(row < rows.len() && col <= width + widest);
        }
    }
}

/// A key in a large text wraps the lines that it changes, and the rows are as if all of it had been wrapped.
#[test]
fn a_key_in_a_large_text_wraps_what_it_changes() {
    use crate::widget::edit::rows::WRAPPED;
    let line = "a line of words that is wrapped at this width, with \u{e9} and \u{6f22}\u{5b57} in it\n";
    let mut e = Edit::with(&line.repeat(15_000));
    assert!(e.text().len() > 1_000_000);
    let label = |c: char| chip_number(c).map(|n| format!("[chip {n}]"));
    let _ = e.rows(40, &label);
    let before = WRAPPED.get();
    e.set_caret(line.len() * 7_000 + 10);
    e.insert("x");
    for _ in 0..3 {
        let _ = e.rows(40, &label);
    }
    assert!(WRAPPED.get() - before < 1_000, "{}", WRAPPED.get() - before);
    // Whatever is done, and wherever.
    let whole = |e: &Edit| Edit::with(e.text()).rows(40, &label);
    let act = |e: &mut Edit, n: usize| match n % 8 {
        0 => e.insert("word "),
        1 => e.insert("\n"),
        2 => e.delete_back(),
        3 => e.insert_chip(u32::try_from(n % 3).unwrap()),
        4 => e.delete_forward(),
        5 => e.kill_to_end(),
        6 => e.undo(),
        _ => e.insert("\u{6f22}\n\n\u{5b57}"),
    };
    let mut e = Edit::with(&line.repeat(300));
    for n in 0..200 {
        let len = e.text().len();
        e.set_caret([0, len, len / 2, n * 97 % (len + 1), n * 7919 % (len + 1)][n % 5]);
        act(&mut e, n * 31 + n / 7);
        assert_eq!(e.rows(40, &label), whole(&e), "step {n}");
    }
    let wider = Edit::with(e.text()).rows(61, &label);
    assert_eq!(e.rows(61, &label), wider, "at another width");
    let longer = |c: char| chip_number(c).map(|n| format!("[a chip with a longer label {n}]"));
    let relabelled = Edit::with(e.text()).rows(61, &longer);
    assert_eq!(e.rows(61, &longer), relabelled, "with other labels");
}

#[test]
fn undo_keeps_so_much_text_and_no_more() {
    let mut e = Edit::with(&"0123456789".repeat(300_000));
    for _ in 0..40 {
        e.insert("\n\n");
    }
    let kept: usize = e.undo.iter().map(|(text, _)| text.len()).sum();
    assert!(kept <= 32 << 20 && e.undo.len() > 5, "{kept} {}", e.undo.len());
    e.undo();
    assert!(e.text().len() < 3_000_080);
}
