//! Variables of loops: which words stand for one, and whether something else sets it.

/// The variable that a word consists of: `"$f"` or `"${f}"`. Without quotes the shell would split what it stands for.
pub(super) fn quoted_variable(raw: &str) -> Option<&str> {
    let inner = raw.strip_prefix("\"$")?.strip_suffix('"')?;
    let name = inner.strip_prefix('{').map_or(Some(inner), |t| t.strip_suffix('}'))?;
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (plain && name.starts_with(|c: char| c.is_ascii_lowercase())).then_some(name)
}

/// Whether in `text` the name `variable` stands behind one `for`, and apart from that only as `$variable` or
/// `${variable}`. What sets it in another way (`read f`, `f=x`, `printf -v f`, `${f:=x}`) names it in another way.
pub(super) fn set_by_loop_only(text: &str, variable: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut declared = 0;
    for (at, _) in text.match_indices(variable) {
        let (before, after) = (&text[..at], &text[at + variable.len()..]);
        if before.ends_with(part) || after.starts_with(part) {
            continue;
        }
        if before.ends_with("${") && after.starts_with('}') || before.ends_with('$') {
            continue;
        }
        // `[ -f "$f" ]`: an option.
        if before.strip_suffix('-').is_some_and(|b| b.ends_with(char::is_whitespace)) {
            continue;
        }
        if before.trim_end().ends_with("for") && before.ends_with(char::is_whitespace) {
            declared += 1;
            continue;
        }
        return false;
    }
    declared == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;

    #[test]
    fn a_variable_that_only_its_loop_sets_is_known() {
        for good in [
            r#"for f in *.rs; do wc -l "$f"; done"#,
            r#"for f in a b; do echo "$f"; head "${f}"; done; ls"#,
            r#"for f in a; do [ -f "$f" ] && cat "$f"; done"#,
            r#"for f in a; do if grep -q x "$f"; then cat "$f"; fi; done"#,
        ] {
            assert!(set_by_loop_only(good, "f"), "{good}");
        }
        for bad in [
            r#"for f in a; do f=/etc/passwd; cat "$f"; done"#,
            r#"for f in a; do read f; cat "$f"; done"#,
            r#"for f in a; do read -r "f"; cat "$f"; done"#,
            r#"for f in a; do printf -v f /etc/passwd; cat "$f"; done"#,
            r#"for f in a; do : "${f:=x}"; cat "$f"; done"#,
            r#"for f in a; do for f in /etc/passwd; do :; done; cat "$f"; done"#,
            r#"for f in a; do ((f=1)); cat "$f"; done"#,
            r#"for f in a; do unset f; cat "$f"; done"#,
            r#"for f in a; do x=f; cat "$f"; done"#,
        ] {
            assert!(!set_by_loop_only(bad, "f"), "{bad}");
        }
    }

    #[test]
    fn words_of_a_loop_are_found_where_the_variable_stands() {
        let each = |text: &str| {
            let analysis = analyse(text);
            let words: Vec<_> = analysis.parts.iter().flat_map(|p| p.args().to_vec()).collect();
            words.iter().filter_map(|w| w.each).map(|(a, b)| b - a).collect::<Vec<_>>()
        };
        assert_eq!(each(r#"for f in a b *.rs; do wc -l "$f" "${f}"; done"#), [3, 3]);
        assert_eq!(each(r#"for f in a b; do for g in c; do diff "$f" "$g"; done; done"#), [2, 1]);
        // Not a whole word, not quoted, after the loop, in another shell.
        assert_eq!(each(r#"for f in a b; do wc x"$f" $f "$f.rs" "$g"; done; cat "$f""#), [0; 0]);
        assert_eq!(each(r#"for f in a; do sh -c 'cat "$f"'; done"#), [0; 0]);
        assert_eq!(each(r#"for f in a; do echo $(cat "$f"); done"#), [0; 0]);
    }
}
