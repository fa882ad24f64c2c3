use std::sync::Arc;

use proptest::prelude::*;
use tiller_permit::Redactor;

use super::*;

const KEY: &str = "sk-ant-api03-abcdEFGH1234ijklMNOP5678qrst";
const KNOWN: &str = "hunter2-but-longer-99";

fn redact() -> Redact {
    let r = Redactor::new([KNOWN.to_owned()]);
    Arc::new(move |t: &str| r.redact(t).into_owned())
}

fn redaction() -> Redaction {
    let r = Redactor::new([KNOWN.to_owned()]);
    Redaction { redact: redact(), incomplete: Arc::new(move |t: &str| r.may_grow(t)) }
}

fn streamed(text: &str, cuts: &[usize]) -> String {
    let mut s = Stream::new(&redaction());
    let mut out = String::new();
    let mut at = 0;
    for cut in cuts {
        let to = text.ceil_char_boundary((at + cut).min(text.len()));
        out.push_str(&s.push(&text[at..to]));
        at = to;
    }
    out.push_str(&s.push(&text[at..]));
    out + &s.finish()
}

proptest! {
    #[test]
    fn a_stream_is_masked_like_the_whole_however_it_is_cut(cuts in prop::collection::vec(1usize..9, 0..60)) {
        let text = format!(
            "The key is {KEY}, said she.\nExport it:\nAPI_TOKEN={KNOWN}\n日本語の文{KNOWN}です。\n\
             -----BEGIN RSA PRIVATE KEY-----\nMIIEabcdefgh0123\nzzzz9999\n-----END RSA PRIVATE KEY-----\nend"
        );
        let out = streamed(&text, &cuts);
        prop_assert_eq!(&out, &redact()(&text));
        prop_assert!(!out.contains(KNOWN) && !out.contains("MIIE") && !out.contains("abcdEFGH"));
    }

    #[test]
    fn plain_text_comes_through_whole(text in "[a-z \n.é日]{0,200}", cuts in prop::collection::vec(1usize..9, 0..40)) {
        prop_assert_eq!(streamed(&text, &cuts), text);
    }
}

#[test]
fn a_growing_word_that_may_be_a_secret_is_held_back() {
    let mut s = Stream::new(&redaction());
    assert_eq!(s.push("I look at sr"), "I look at sr", "no secret begins so");
    assert_eq!(s.push("c/main.rs and 日本 hun"), "c/main.rs and 日本 ");
    assert_eq!(s.push("gry"), "hungry", "it is none after all");
    assert_eq!(s.push("\nPassword: ab"), "\nPassword: ");
    assert_eq!(s.pause(), "ab");
    assert_eq!(s.push("cd "), "cd ");
    assert_eq!(s.finish(), "");
}

#[test]
fn signed_thinking_and_the_names_of_fields_stay() {
    let r = redact();
    let mut b = vec![
        Block::Thinking { text: KNOWN.into(), signature: Some("s".into()) },
        Block::Thinking { text: KNOWN.into(), signature: None },
        Block::Text { text: KNOWN.into() },
    ];
    blocks(&r, &mut b);
    let texts: Vec<bool> = b
        .iter()
        .map(|b| matches!(b, Block::Thinking { text, .. } | Block::Text { text } if text.contains(KNOWN)))
        .collect();
    assert_eq!(texts, [true, false, false]);
    let mut v = serde_json::json!({ "command": [format!("echo {KNOWN}"), 1], "cwd": "src" });
    value(&r, &mut v);
    assert!(!v.to_string().contains(KNOWN) && v["cwd"] == "src" && v["command"][1] == 1, "{v}");
}

/// `{"password": "..."}`: neither half is a secret by itself.
#[test]
fn a_name_makes_a_secret_of_its_value() {
    let redactor = tiller_permit::Redactor::new([]);
    let r: Redact = std::sync::Arc::new(move |t: &str| redactor.redact(t).into_owned());
    let mut v = serde_json::json!({"db": [{"password": "tr0ub4dor&3", "user": "me"}], "path": "a.rs"});
    value(&r, &mut v);
    assert!(!v.to_string().contains("tr0ub4dor"), "{v}");
    assert_eq!((&v["db"][0]["user"], &v["path"]), (&"me".into(), &"a.rs".into()));
}
