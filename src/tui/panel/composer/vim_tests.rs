use proptest::prelude::*;

use super::*;

/// `|` marks the caret before and after; keys in between. The mode afterwards is N or I.
const TABLE: &[(&str, &str, &str, char)] = &[
    ("|one two", "w", "one |two", 'N'),
    ("|one.two", "w", "one|.two", 'N'),
    ("|one.two x", "W", "one.two |x", 'N'),
    ("one two|x", "b", "one |twox", 'N'),
    ("|one two", "e", "on|e two", 'N'),
    ("|one two", "ee", "one tw|o", 'N'),
    ("|one two three", "2w", "one two |three", 'N'),
    ("|one two", "$", "one tw|o", 'N'),
    ("one tw|o", "0", "|one two", 'N'),
    ("  one tw|o", "^", "  |one two", 'N'),
    ("|one two three", "dw", "|two three", 'N'),
    ("|one two three", "d2w", "|three", 'N'),
    ("|one two three", "2dw", "|three", 'N'),
    ("one |two", "dw", "one| ", 'N'),
    ("|one two", "cw", "| two", 'I'),
    ("|one two", "de", "| two", 'N'),
    ("one |two", "db", "|two", 'N'),
    ("one |two three", "D", "one| ", 'N'),
    ("one |two three", "C", "one |", 'I'),
    ("|one", "x", "|ne", 'N'),
    ("|one", "2x", "|e", 'N'),
    ("on|e", "x", "o|n", 'N'),
    ("on|e", "X", "o|e", 'N'),
    ("a\n|b\nc", "dd", "a\n|c", 'N'),
    ("a\nb\n|c", "dd", "a\n|b", 'N'),
    ("|a\nb\nc", "2dd", "|c", 'N'),
    ("|a\nb\nc", "dj", "|c", 'N'),
    ("a\n|b\nc", "cc", "a\n|\nc", 'I'),
    ("|a\nb", "yyp", "a\n|a\nb", 'N'),
    ("a\n|b", "yyP", "a\n|b\nb", 'N'),
    ("|one two", "dwp", "tone| wo", 'N'),
    ("|one", "i", "|one", 'I'),
    ("|one", "a", "o|ne", 'I'),
    ("o|ne", "I", "|one", 'I'),
    ("o|ne", "A", "one|", 'I'),
    ("o|ne", "o", "one\n|", 'I'),
    ("o|ne", "O", "|\none", 'I'),
    ("|one", "rx", "|xne", 'N'),
    ("|one two", "fo", "one tw|o", 'N'),
    ("|one two", "to", "one t|wo", 'N'),
    ("one tw|o", "Fn", "o|ne two", 'N'),
    ("|a.b.c", "f.;", "a.b|.c", 'N'),
    ("|one two", "dtt", "|two", 'N'),
    ("|one two", "dft", "|wo", 'N'),
    ("one t|wo three", "diw", "one | three", 'N'),
    ("one t|wo three", "daw", "one |three", 'N'),
    ("say \"he|llo\" x", "ci\"", "say \"|\" x", 'I'),
    ("f(a, |b)", "di(", "f(|)", 'N'),
    ("f(a, |b)", "da(", "|f", 'N'),
    ("|ab", "~", "A|b", 'N'),
    ("|a\nb", "J", "a| b", 'N'),
    ("|a\nb\nc", "G", "a\nb\n|c", 'N'),
    ("a\nb\n|c", "gg", "|a\nb\nc", 'N'),
    ("|a b c d", "dw.", "|c d", 'N'),
    ("|abcd", "x..", "|d", 'N'),
    ("|abc", "xu", "|abc", 'N'),
    ("ab\n|cd", "k", "|ab\ncd", 'N'),
    ("a|b\ncd", "j", "ab\nc|d", 'N'),
    ("|one two", "ved", "| two", 'N'),
    ("|one two", "vwc", "|wo", 'I'),
    ("one t|wo", "vbd", "one |o", 'N'),
    ("a\n|b\nc", "Vd", "a\n|c", 'N'),
    ("|a\nb\nc", "Vjd", "|c", 'N'),
    ("f(a, |b)", "vi(d", "f(|)", 'N'),
    ("|one two", "viwU", "|ONE two", 'N'),
    ("|one two", "veohd", "| two", 'N'),
    ("|one two", "yiwwviwp", "one on|e", 'N'),
    ("|one two", "vev", "on|e two", 'N'),
    ("|one", "Z", "|one", 'N'),
];

fn run(text: &str, keys: &str) -> (Vim, Edit) {
    let mut b = Edit::default();
    b.set(&text.replace('|', ""));
    b.set_caret(text.find('|').unwrap_or(0));
    let mut v = Vim { mode: Mode::Normal, ..Vim::default() };
    for k in keys.chars() {
        v.key(k, &mut b);
    }
    (v, b)
}

#[test]
fn conforms() {
    let mut wrong = Vec::new();
    for (before, keys, after, mode) in TABLE {
        let (v, b) = run(before, keys);
        let got = format!("{}|{}", &b.text()[..b.caret()], &b.text()[b.caret()..]);
        let m = if v.mode == Mode::Insert { 'I' } else { 'N' };
        if got != *after || m != *mode {
            wrong.push(format!("{before:?} {keys:?} gives {got:?} {m}, not {after:?} {mode}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_change_is_repeated_with_what_was_typed() {
    // Keys, what is typed, the text after one more `.` at the next word.
    for (keys, typed, next, after) in [
        ("cw", "x", "w", "x x three"),
        ("ciw", "four", "w", "four four three"),
        ("i", "a", "w", "aone atwo three"),
        ("A", "!", "0", "one two three!!"),
        ("s", "XY", "w", "XYne XYwo three"),
    ] {
        let (mut v, mut b) = run("|one two three", keys);
        b.insert(typed);
        v.escape(&mut b);
        for k in next.chars().chain(['.']) {
            v.key(k, &mut b);
        }
        assert_eq!((b.text(), v.mode), (after, Mode::Normal), "{keys}");
    }
}

#[test]
fn escape_goes_to_normal_then_lets_the_other_steps_have_it() {
    let mut b = Edit::default();
    b.insert("abc");
    let mut v = Vim::default();
    assert!(v.escape(&mut b));
    assert_eq!((v.mode, b.caret()), (Mode::Normal, 2));
    assert!(!v.escape(&mut b));
    v.key('d', &mut b);
    assert!(v.escape(&mut b), "a pending operator is dropped first");
}

proptest! {
    #[test]
    fn no_key_breaks_it(text in "[ab (\"\n\u{e9}\u{65e5}]{0,20}", keys in "[hjklwbeWBE0^$dcyxXDCsSpPJ~uiaIAoOrftFTgGvVU;,.3\"(]{0,30}") {
        let (_, b) = run(&text, &keys);
        prop_assert!(b.text().is_char_boundary(b.caret()));
    }
}

#[test]
fn one_u_undoes_a_change_with_what_was_typed_after_it() {
    for keys in ["ciw", "cw", "A", "o", "S", "x", "2dd"] {
        let (mut v, mut b) = run("|one two\nthree", keys);
        if v.mode == Mode::Insert {
            for c in ["f", "o", " ", "u", "r"] {
                b.insert(c);
            }
            b.delete_back();
            v.escape(&mut b);
        }
        assert_ne!(b.text(), "one two\nthree", "{keys}");
        v.key('u', &mut b);
        assert_eq!(b.text(), "one two\nthree", "{keys}");
        // And each change is one of its own.
        v.key('x', &mut b);
        v.key('x', &mut b);
        v.key('u', &mut b);
        assert_eq!(b.text().len(), "one two\nthree".len() - 1, "{keys}");
    }
}

#[test]
fn the_mode_is_shown_at_every_size() {
    for (w, h, typed, insert, normal) in [
        (118, 25, "hello", " insert", " normal"),
        (80, 24, "hello", " insert", " normal"),
        // Where the text leaves no room for the word, a letter does.
        (40, 12, "a sentence of some words or more", " I", " N"),
    ] {
        let ui = tiller_config::schema::Ui { keymap: "vim".into(), ..Default::default() };
        let mut r = crate::testing::Robot::with(w, h, ui);
        r.run(&format!("type {typed}"));
        assert!(r.screen().contains(insert), "{}", r.screen());
        r.run("esc");
        assert!(r.screen().contains(normal), "{}", r.screen());
    }
}
