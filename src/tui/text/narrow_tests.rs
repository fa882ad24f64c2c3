use std::time::Duration;

use syntect::parsing::syntax_definition::Pattern;

use super::highlight::{CLASSES, Syntaxes};
use super::narrow::narrow;

#[test]
fn classes_of_unicode_become_ranges_wherever_they_stand() {
    for (from, to) in [
        (r"\w+", r"[0-9_A-Za-z\x{80}-\x{10FFFF}]+"),
        (r"[\w.-]", r"[0-9_A-Za-z\x{80}-\x{10FFFF}.-]"),
        (r"[[:alpha:]\d]", r"[[:alpha:]0-9]"),
        (r"[\p{L}_]\p{Lu}", r"[A-Za-z\x{80}-\x{10FFFF}_][A-Z]"),
        // A bracket that opens or closes nothing.
        (r"[]\w]\d", r"[]0-9_A-Za-z\x{80}-\x{10FFFF}][0-9]"),
        (r"[^]\d]\[\d\]", r"[^]0-9]\[[0-9]\]"),
        (r"\\w\S\D", r"\\w[^ \t-\r][^0-9]"),
        // Within a class there is no short form of what is excluded.
        (r"[\W\S]\b", r"[\W\S]\b"),
        (r"\p{Greek}\P{L}", r"\p{Greek}\P{L}"),
        ("(?x) a # it's [\n \\d", "(?x) a # it's [\n [0-9]"),
    ] {
        assert_eq!(narrow(from), to, "{from}");
    }
}

#[test]
fn no_table_has_a_class_that_takes_much_memory() {
    let set = Syntaxes::shared().to_set();
    let mut patterns = 0;
    for syntax in set.into_builder().syntaxes() {
        for context in syntax.contexts.values() {
            for pattern in &context.patterns {
                if let Pattern::Match(pattern) = pattern {
                    patterns += 1;
                    let text = pattern.regex.regex_str();
                    assert!(!text.contains(r"\p{L}") && narrow(text) == text, "{}: {text}", syntax.name);
                }
            }
        }
    }
    assert!(patterns > 20_000, "{patterns}");
}

#[test]
fn the_colours_are_those_of_the_tables_as_published() {
    let published = Syntaxes::of(two_face::syntax::extra_newlines());
    let ours = Syntaxes::shared();
    for (language, code) in [
        (
            "rust",
            "/// Größe\npub fn größe<T: Into<u8>>(x: &'a T) -> Vec<u8> { let é = \"é{x}\\n\"; 0x1F_u8 as _ }\n#[test]",
        ),
        (
            "python",
            "@wraps(f)\nclass Über(Base):\n    def naïve(self, *a: int) -> str:\n        return f\"{a!r} é\" if a else 1_000.5",
        ),
        (
            "go",
            "package main\nfunc (s *Sörvér) Do(n int) error { for i := range 10 { fmt.Println(\"ü\", i) }; return nil }",
        ),
        (
            "javascript",
            "const naïve = async ({a, b = 1}) => `x${a + 2}` + /[a-z]+/g.test(b); // ok\nclass Ä extends B { #p = 1 }",
        ),
        (
            "c",
            "#include <stdio.h>\nstatic int grün(const char *s) { return s[0] == 'x' ? 0x10 : -1; } /* é */",
        ),
        ("toml", "[a.\"b\"]\nkey = \"é\" # note\nn = 1_000\nd = 2024-01-01"),
        ("yaml", "a: &x\n  - \"é\"\n  - 1.5 # note\nb: *x"),
        ("bash", "for i in $(seq 3); do echo \"${i%é}\" | grep -v '^x$' >> out; done # ok"),
        ("html", "<p class=\"é\">Größe &amp; <!-- c --></p><script>let a = 1;</script>"),
        ("json", "{\"é\": [1, true, null, \"x\\n\"]}"),
        ("sql", "SELECT a.größe, count(*) FROM t AS a WHERE b LIKE 'é%' -- ok"),
    ] {
        let lines: Vec<String> = code.lines().map(str::to_owned).collect();
        let [a, b] = [&published, &*ours].map(|tables| tables.colour_within(Duration::MAX, language, &lines));
        assert!(
            b.as_ref().is_some_and(|b| b.iter().flatten().any(|r| r.look.class > 0)),
            "{language}: {CLASSES:?}"
        );
        assert_eq!(a, b, "{language}");
    }
}
