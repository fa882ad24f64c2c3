use tiller_protocol::ToolCatalog;
use tiller_tool::Registry;

use super::matcher::{ActionRule, parse};

fn tools() -> ToolCatalog {
    Registry::built_in().catalog()
}

#[test]
fn matchers_become_patterns_of_permission_rules() {
    let rule = |text: &str| parse(text, &tools()).unwrap().unwrap();
    assert_eq!(
        rule(
            "Never push to main by hand. [when: terminal \"git push*\"] [never: terminal \"git push* main*\"]"
        ),
        ActionRule {
            text: "Never push to main by hand.".into(),
            when: vec!["terminal(git push*)".into()],
            never: vec!["terminal(git push* main*)".into()],
        }
    );
    let edit = rule("Generated. [never: edit src/gen/**]");
    assert!(edit.never.contains(&"write_file(src/gen/**)".to_owned()), "{edit:?}");
    assert!(edit.never.contains(&"edit_file(src/gen/**)".to_owned()), "{edit:?}");
    assert_eq!(rule("x [when: web_fetch]").when, ["web_fetch"]);
    // Tools of MCP servers, in the form of permission rules.
    for (written, pattern) in [
        ("mcp__github__*", "mcp:github:*"),
        ("mcp__github__create_issue", "mcp:github:create_issue"),
        ("mcp__github", "mcp:github:*"),
        ("mcp:github:create_issue", "mcp:github:create_issue"),
        ("mcp:github", "mcp:github:*"),
        ("web_*", "web_*"),
        ("*", "*"),
    ] {
        assert_eq!(rule(&format!("x [when: {written}]")).when, [pattern], "{written}");
    }
    // Quotes of an editor are quotes.
    for quoted in ["\"ls *\"", "'ls *'", "`ls *`", "\u{201c}ls *\u{201d}", "\u{2018}ls *\u{2019}", "ls *"] {
        assert_eq!(rule(&format!("x [never: terminal {quoted}]")).never, ["terminal(ls *)"], "{quoted}");
    }
    // A bracket inside quotes is part of the pattern.
    assert_eq!(rule("x [when: terminal \"test [a-z]*\"]").when, ["terminal(test [a-z]*)"]);
}

#[test]
fn text_without_matchers_is_no_rule_and_wrong_ones_say_why() {
    let tools = tools();
    for text in ["Prefers tabs [sic].", "Ask [Whenever: possible].", "a [b] c: never", "[", "[:"] {
        assert_eq!(parse(text, &tools), Ok(None), "{text}");
    }
    let none = ToolCatalog::default();
    assert!(parse("x [when: web]", &none).is_err(), "no tool is for the web");
    for (text, part) in [
        ("x [when: terminal \"a\"", "no ']'"),
        ("x [when: treminal \"a\"]", "no tool 'treminal'"),
        ("x [never: ]", "names a tool"),
        ("x [when: termnal*]", "no tool 'termnal*'"),
        ("x [when: mcp__]", "no tool 'mcp__'"),
        ("x [when: mcp__a(b*]", "no tool 'mcp__a(b*'"),
        ("x [when: terminal \"a\u{200b}b\"]", "invisible character"),
        ("x [Never: terminal \"a\"]", "not '[Never:'"),
        ("x [when: read] [ never : terminal \"a\"]", "not '[ never :'"),
    ] {
        let why = parse(text, &tools).unwrap_err();
        assert!(why.contains(part), "{text}: {why}");
    }
    assert!(parse(&"[when: read]".repeat(99), &tools).is_err());
    assert!(parse(&format!("[when: read {}]", "a".repeat(999)), &tools).is_err());
    // A part of a rule could say the opposite of it.
    let long = |bytes| parse(&format!("{} [when: read]", "a".repeat(bytes)), &tools);
    assert_eq!(long(super::matcher::SHOWN).unwrap().unwrap().text.len(), super::matcher::SHOWN);
    assert!(long(super::matcher::SHOWN + 1).unwrap_err().contains("longer than 1400 bytes"));
}

/// Rules are counted by their text.
#[test]
fn a_matcher_without_a_text_is_no_rule() {
    let why = parse("[never: terminal \"git push*\"]", &tools()).unwrap_err();
    assert!(why.contains("says nothing besides its matcher"), "{why}");
}
