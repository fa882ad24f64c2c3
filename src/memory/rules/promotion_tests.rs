use std::sync::Mutex;

use tiller_tool::Registry;

use super::*;
use crate::rules::matcher::parse;

/// Files that keep what is written to them, and refuse texts with `refused` in one of them.
fn promotions() -> (Promotions, Arc<Mutex<Vec<String>>>) {
    let written = Arc::new(Mutex::new(Vec::new()));
    let file = |name: &str| {
        let (name, kept) = (name.to_owned(), Arc::clone(&written));
        let prefix = format!("{name}: ");
        let write: WriteTexts = Arc::new(move |texts: &[&str], add| {
            let mut kept = kept.lock().unwrap();
            if texts.iter().any(|text| text.contains("refused")) {
                return Err("no".into());
            }
            for text in texts {
                let line = format!("{prefix}{text}");
                kept.retain(|known| *known != line);
                kept.extend(add.then_some(line));
            }
            Ok(())
        });
        RuleFile { file: name, write }
    };
    let (permissions, hooks) = (file("permissions.yaml"), file("config.toml"));
    (Promotions { permissions, hooks }, written)
}

fn offers(entry: &str) -> Vec<RulePromotion> {
    let tools = Registry::built_in().catalog();
    promotions().0.offers(&parse(entry, &tools).unwrap().unwrap(), &tools)
}

#[test]
fn a_rule_that_forbids_is_a_permission_rule_first_and_a_hook_with_its_reason_second() {
    let all = offers("The bot's job: no pushes to \"main\". [never: terminal \"git push* main*\"]");
    assert_eq!(
        all.iter().map(|o| o.kind).collect::<Vec<_>>(),
        [PromotionKind::Permission, PromotionKind::Hook]
    );
    assert_eq!(
        (all[0].text.as_str(), all[0].file.as_str()),
        ("terminal(git push* main*)", "permissions.yaml")
    );
    assert_eq!(all[1].file, "config.toml");
    let wanted = r#"[[hooks.before-tool-call]]
match = "terminal(git push* main*)"
command = "printf '%s' 'The bot'\\''s job: no pushes to \"main\".' >&2; exit 2"
blocking = true"#;
    assert_eq!(all[1].text, wanted);
}

#[test]
fn a_rule_that_asks_for_a_command_becomes_a_hook_alone() {
    let all = offers("Run `cargo fmt` after an edit. [when: edit *.rs]");
    assert_eq!(all.iter().map(|o| o.kind).collect::<Vec<_>>(), [PromotionKind::Hook]);
    let (head, rest) = all[0].text.split_once("match = \"").unwrap();
    assert_eq!(head, "[[hooks.after-tool-call]]\n");
    assert!(rest.ends_with("(*.rs)\"\ncommand = \"cargo fmt\""), "{rest}");
    assert_eq!(all[0].text.matches("[[").count(), 1, "one pattern is for all tools that change files");
    // Without a command, or with two, nothing says what to run.
    for entry in ["Be careful. [when: edit *.rs]", "`a` or `b` [when: edit *.rs]", "a ` b [when: edit *.rs]"]
    {
        assert_eq!(offers(entry), [], "{entry}");
    }
}

#[test]
fn hooks_are_valid_toml_whatever_the_text_of_the_rule() {
    for text in
        ["a \\ b \"c\" 'd' $(e) `f` %s", "naïve 日本語 ✓", "x ]] [[hooks.user-prompt]] command = \"y\""]
    {
        let all = offers(&format!("{text} [never: terminal \"a*\"]"));
        let table: toml::Table = all[1].text.parse().unwrap();
        let hooks = table["hooks"].as_table().unwrap();
        assert_eq!(hooks.keys().collect::<Vec<_>>(), ["before-tool-call"], "{text}");
        let command = hooks["before-tool-call"][0]["command"].as_str().unwrap();
        let out = std::process::Command::new("/bin/sh").args(["-c", command]).output().unwrap();
        assert_eq!((out.status.code(), String::from_utf8(out.stderr).unwrap()), (Some(2), text.to_owned()));
    }
}

#[test]
fn all_of_an_offer_is_written_or_nothing() {
    let (promotions, written) = promotions();
    let text = "terminal(a*) && terminal(b*)";
    promotions.write(PromotionKind::Permission, text, &[]).unwrap();
    assert_eq!(written.lock().unwrap().len(), 2);
    promotions.take_out(PromotionKind::Permission, text, &[]).unwrap();
    assert_eq!(*written.lock().unwrap(), [""; 0]);
    assert!(promotions.write(PromotionKind::Permission, "terminal(a*) && terminal(refused)", &[]).is_err());
    assert_eq!(*written.lock().unwrap(), [""; 0]);
    promotions.write(PromotionKind::Hook, "[[x]] && y", &[]).unwrap();
    assert_eq!(*written.lock().unwrap(), ["config.toml: [[x]] && y"]);
}

/// Two rules can become the same pattern, which has one line: it stays while one of them is a permission rule.
#[test]
fn what_another_rule_became_stays_in_the_file() {
    let (promotions, written) = promotions();
    let (both, one) = ("terminal(a*)\nterminal(b*)", "terminal(b*)");
    promotions.write(PromotionKind::Permission, both, &[]).unwrap();
    promotions.write(PromotionKind::Permission, one, &[both]).unwrap();
    promotions.take_out(PromotionKind::Permission, both, &[one]).unwrap();
    assert_eq!(*written.lock().unwrap(), ["permissions.yaml: terminal(b*)"]);
    promotions.take_out(PromotionKind::Permission, one, &[both]).unwrap();
    assert_eq!(*written.lock().unwrap(), ["permissions.yaml: terminal(b*)"]);
    promotions.take_out(PromotionKind::Permission, one, &[]).unwrap();
    assert_eq!(*written.lock().unwrap(), [""; 0]);
}

/// A pattern may contain what earlier versions wrote between patterns.
#[test]
fn patterns_are_kept_apart_whatever_is_in_them() {
    let (promotions, written) = promotions();
    let all = offers("x [never: terminal \"cd a && git push*\"] [never: terminal \"git push*\"]");
    promotions.write(PromotionKind::Permission, &all[0].text, &[]).unwrap();
    let lines = || written.lock().unwrap().clone();
    let one = "permissions.yaml: terminal(cd a && git push*)";
    assert_eq!(lines(), [one, "permissions.yaml: terminal(git push*)"]);
    promotions.take_out(PromotionKind::Permission, &all[0].text, &[]).unwrap();
    assert_eq!(lines(), Vec::<String>::new());
    let all = offers("x [never: terminal \"cd a && git push*\"]");
    promotions.write(PromotionKind::Permission, &all[0].text, &[]).unwrap();
    assert_eq!(lines(), [one]);
    // A text that an earlier version stored.
    for pattern in ["terminal(a)", "terminal"] {
        promotions.write(PromotionKind::Permission, pattern, &[]).unwrap();
    }
    promotions.take_out(PromotionKind::Permission, "terminal(a) && terminal", &[]).unwrap();
    assert_eq!(lines(), [one]);
}
