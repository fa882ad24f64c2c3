use super::*;
use proptest::prelude::*;
use serde_json::json;
use tiller_protocol::Risk;
use tiller_shell::invisibles;

fn call<'a>(shown: &'a str, arguments: &'a Value) -> Call<'a> {
    Call {
        tool: "terminal",
        verb: &tiller_protocol::ToolVerb::Shell,
        shown,
        arguments,
        folder: "/w",
        diff: None,
        why: "",
        editable: true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn x7_the_answer_is_bound_to_what_runs(shown in any::<String>(), other in any::<String>(), timeout in 0_u32..9, other_timeout in 0_u32..9) {
        let arguments = json!({ "command": shown, "timeout": timeout });
        let verdict = Verdict::Ask { rule: "no permission rule matches".into(), risk: Risk::High, effects: vec![], always: None };
        let ask = call(&shown, &arguments).ask(&verdict).unwrap();
        // What is shown is what was given, to the last byte.
        prop_assert_eq!(&ask.shown, &shown);
        // The hash of what is shown is the hash of what runs.
        prop_assert!(call(&shown, &arguments).is_answered_by(&ask.hash));
        // Nothing else is answered by it.
        let changed = json!({ "command": other, "timeout": other_timeout });
        let same = shown == other && timeout == other_timeout;
        prop_assert_eq!(call(&other, &changed).is_answered_by(&ask.hash), same);
        prop_assert_eq!(call(&shown, &changed).is_answered_by(&ask.hash), same);
    }

    #[test]
    fn x7_every_character_is_visible_or_listed(text in any::<String>()) {
        let hidden = invisibles(&text);
        for (i, c) in text.char_indices() {
            let listed = hidden.iter().any(|(at, _)| *at == i);
            if c.is_control() && c != '\n' && c != '\t' {
                prop_assert!(listed, "{:?} is not listed", c);
            }
            if c.is_ascii_graphic() || c == ' ' {
                prop_assert!(!listed, "{:?} is listed", c);
            }
        }
    }
}

#[test]
fn the_order_of_keys_is_no_difference_and_everything_else_is() {
    let a: Value = serde_json::from_str(r#"{"a":1,"b":[1,{"c":2,"d":3}]}"#).unwrap();
    let b: Value = serde_json::from_str(r#"{"b":[1,{"d":3,"c":2}],"a":1}"#).unwrap();
    assert_eq!(call("x", &a).hash(), call("x", &b).hash());
    let base = call("ab", &a).hash();
    assert_ne!(base, Call { folder: "/w2", ..call("ab", &a) }.hash());
    assert_ne!(base, Call { tool: "terminal2", ..call("ab", &a) }.hash());
    assert_ne!(Call { tool: "terminala", ..call("b", &a) }.hash(), base);
    assert!(!call("ab", &a).is_answered_by(""));
    assert!(!call("ab", &a).is_answered_by(&base[..10]));
}

#[test]
fn only_a_question_is_asked() {
    let arguments = json!({});
    assert!(call("x", &arguments).ask(&Verdict::Allow { rule: String::new(), unasked: None }).is_none());
    assert!(
        call("x", &arguments).ask(&Verdict::Deny { rule: String::new(), reason: String::new() }).is_none()
    );
}

#[test]
fn hidden_characters_have_names() {
    let text = "ls\u{202e} -la\u{200b}\u{1b}[2K";
    let names: Vec<String> = invisibles(text).into_iter().map(|(i, n)| format!("{i} {n}")).collect();
    assert_eq!(names, ["2 direction mark U+202E", "9 zero-width space U+200B", "12 escape U+001B"]);
    assert!(invisibles("naïve 日本語 ✓ a\tb\nc").is_empty());
}
