use super::*;

#[test]
fn most_words_are_shown_as_they_grow_and_what_may_be_a_secret_waits() {
    let r = Redactor::new(["hunter2-but-longer".to_owned()]);
    for text in [
        "",
        "I look ",
        "## Secti",
        "1:",
        "src/main.rs",
        "the pap",
        "a paper",
        "easy",
        "secretly ",
        "люди",
        "- **bold",
        "`bu",
        "foo(bu",
        "let x_1",
        "https:",
        "Cargo.toml",
        "123456789012",
        "Makefile,",
        "task",
    ] {
        assert!(!r.may_grow(text), "{text:?} waits");
    }
    for text in [
        "h",
        "hunt",
        "x=hunter2-but-longer",
        "sk",
        "sk-ant-api03-ab",
        "(ghp_",
        "AKI",
        "eyJhbGci",
        "hf_a",
        "pa",
        "--",
        "https://me:pw",
        "12345",
        "123456789:A",
        "MTk4NjIyNDgzNDcx",
        "password: ab",
        "password:\nab",
        "X-Api-Key: 12",
        "the key is 4",
        "+npm_",
        "/api/web",
        "?si",
        "cookie: sid=1",
    ] {
        assert!(r.may_grow(text), "{text:?} is shown");
    }
    assert!(r.may_grow(&"a".repeat(LONGEST + 1)), "what is no word of a language");
}
