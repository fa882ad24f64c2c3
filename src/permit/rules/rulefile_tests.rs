use super::*;

fn one(text: &str) -> RuleFile {
    load(text, Source::User, &crate::testing::tools()).unwrap()
}

#[test]
fn a_file_with_both_forms() {
    let loaded = one("\
# mine
allow:
  - terminal(git status*)
  - rule: terminal(cargo test*)
    match: [cargo test, cargo test --workspace -q]
    not: [cargo test; rm x, cargo test > out, sudo cargo test]
    why: tests are harmless
ask:
  - 'terminal(git push*)'
deny:
  - rule: read_file(.env)
    match: [.env, sub/.env]
    not: [env]
  - web_fetch(domain:*.internal)
");
    assert_eq!(loaded.problems, vec![]);
    let words: Vec<String> = loaded.rules.iter().map(Rule::words).collect();
    assert_eq!(
        words,
        [
            "yours: allow terminal(git status*)",
            "yours: allow terminal(cargo test*)",
            "yours: ask terminal(git push*)",
            "yours: deny read_file(.env)",
            "yours: deny web_fetch(domain:*.internal)"
        ]
    );
}

#[test]
fn an_empty_file_is_no_rules() {
    assert!(one("").rules.is_empty());
    assert!(one("# only a remark\n\n").rules.is_empty());
}

#[test]
fn an_unknown_key_names_its_line() {
    let problem =
        load("allow:\n  - terminal(ls)\nalow:\n  - x\n", Source::User, &crate::testing::tools()).unwrap_err();
    assert_eq!(problem.line, 3, "{problem}");
    let problem =
        load("allow:\n  - rule: terminal(ls)\n    matches: [ls]\n", Source::User, &crate::testing::tools())
            .unwrap_err();
    assert_eq!(problem.line, 3, "{problem}");
    let problem = load("allow: terminal(ls)\n", Source::User, &crate::testing::tools()).unwrap_err();
    assert_eq!(problem.line, 1, "{problem}");
}

#[test]
fn a_rule_that_fails_its_examples_does_not_load() {
    let loaded = one("\
allow:
  - rule: terminal(git st*)
    match: [git diff]
  - rule: terminal(git *)
    not: [git push]
deny:
  - rule: terminal(rm -rf*)
    match: [rm -r x]
");
    let lines: Vec<u64> = loaded.problems.iter().map(|p| p.line).collect();
    assert_eq!(lines, [2, 4, 7]);
    // No allow is left; the broken deny asks for the whole tool.
    let words: Vec<String> = loaded.rules.iter().map(Rule::words).collect();
    assert_eq!(words, ["yours: ask terminal"]);
}

#[test]
fn a_rule_that_cannot_be_read_is_a_problem_with_its_line() {
    let loaded = one("deny:\n  - terminal(ls\n  - 'a b(c)'\n");
    assert_eq!(loaded.problems.iter().map(|p| p.line).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(
        loaded.rules.iter().map(Rule::words).collect::<Vec<_>>(),
        ["yours: ask terminal", "yours: ask *"]
    );
}

#[test]
fn the_examples_are_judged_as_the_judge_would() {
    for (rule, example, want) in [
        ("terminal(git status*)", "git status -s", true),
        ("terminal(git status*)", "git status; rm x", false),
        ("terminal(git status*)", "git status > f", false),
        ("terminal(git push origin <branch>)", "git push origin feature/x", true),
        ("terminal(git push origin <branch>)", "git push origin +x", false),
        ("terminal(git push origin <branch>)", "git push origin -f", false),
        ("terminal(git push origin <branch>)", "git push origin :x", false),
        ("terminal(git push origin <branch>)", "git push origin a b", false),
        ("edit_file(src/**)", "src/a/b.rs", true),
        ("edit_file(src/**)", "src/../Cargo.toml", false),
        ("web_fetch(domain:*.rs)", "https://docs.rs/serde", true),
        ("web_fetch(domain:*.rs)", "https://evil.com/docs.rs", false),
        ("web_search(*rust*)", "how to rust", true),
        ("mcp:github:*", "mcp:github:create_issue", true),
        ("mcp:github:*", "mcp:gitlab:create_issue", false),
    ] {
        let rule = Rule::parse(Effect::Allow, Source::User, rule, &crate::testing::tools()).unwrap();
        assert_eq!(
            matches_example(&rule, example, Certainty::Sure, &crate::testing::tools()),
            want,
            "{} / {example}",
            rule.text()
        );
    }
}

#[test]
fn always_adds_one_line_and_keeps_the_rest() {
    let before = "# mine\nallow:\n  - terminal(ls)  # looks\ndeny:\n  - read_file(.env)\n";
    let after = with_allow(before, "terminal(git push origin <branch>)", &crate::testing::tools()).unwrap();
    assert_eq!(
        after,
        "# mine\nallow:\n  - 'terminal(git push origin <branch>)'\n  - terminal(ls)  # looks\ndeny:\n  - read_file(.env)\n"
    );
    assert_eq!(
        with_allow("", "terminal(it's)", &crate::testing::tools()).unwrap(),
        "allow:\n  - 'terminal(it''s)'\n"
    );
    // A form that cannot be added to safely is left alone.
    assert!(with_allow("allow: [terminal(ls)]\n", "terminal(x)", &crate::testing::tools()).is_err());
    assert!(with_allow("allow: nonsense", "terminal(x)", &crate::testing::tools()).is_err());
}

#[test]
fn a_bomb_is_an_error() {
    let mut text = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
    for (i, c) in ('b'..='j').enumerate() {
        let before = char::from(b'a' + i as u8);
        text.push_str(&format!("{c}: &{c} [{}]\n", vec![format!("*{before}"); 9].join(",")));
    }
    assert!(load(&text, Source::User, &crate::testing::tools()).is_err());
    assert!(load(&"x".repeat(MAX_BYTES + 1), Source::User, &crate::testing::tools()).is_err());
}

#[test]
fn only_the_persons_own_file_leads_out_of_the_sandbox() {
    let text = "outside:\n  - rule: terminal(git push*)\n    match: [git push origin x]\n    not: [git push; make]\n";
    let tools = crate::testing::tools();
    let mine = load(text, Source::User, &tools).unwrap();
    assert!(mine.problems.is_empty(), "{:?}", mine.problems);
    assert_eq!(mine.rules[0].words(), "yours: outside terminal(git push*)");
    let theirs = load(text, Source::Project, &tools).unwrap();
    assert!(theirs.rules.is_empty(), "{:?}", theirs.rules);
    assert!(theirs.problems[0].text.contains("only your own file"), "{:?}", theirs.problems);
    for rule in ["'*'", "read_file(src/**)", "web_fetch(domain:x.rs)"] {
        let loaded = load(&format!("outside:\n  - {rule}\n"), Source::User, &tools).unwrap();
        assert!(loaded.rules.is_empty(), "{rule}: {:?}", loaded.rules);
        assert_eq!(loaded.problems.len(), 1, "{rule}");
    }
}

/// A rule about an address holds for every tool that goes there; an allowing one for tools that do the same.
#[test]
fn a_rule_about_an_address_holds_for_every_tool_that_goes_there() {
    let tools = crate::testing::tools();
    let roots = crate::Roots::new(std::path::Path::new("/w"), None, Vec::new());
    let page = Subject::Net { url: "https://docs.rs/serde", host: "docs.rs" };
    for (effect, tool, want) in [
        (Effect::Allow, "web_fetch", true),
        (Effect::Allow, "web_extract", true),
        (Effect::Allow, "browse", false),
        (Effect::Allow, "web_search", false),
        (Effect::Deny, "web_extract", true),
        (Effect::Ask, "browse", true),
        (Effect::Deny, "web_search", false),
        (Effect::Deny, "terminal", false),
    ] {
        let rule = Rule::parse(effect, Source::User, "web_fetch(domain:*.rs)", &tools).unwrap();
        assert_eq!(rule.matches("main", tool, &page, &roots), want, "{effect:?} {tool}");
    }
    // A rule for a whole tool is for that tool.
    let whole = Rule::parse(Effect::Allow, Source::User, "web_fetch", &tools).unwrap();
    assert!(whole.matches("main", "web_fetch", &page, &roots));
    assert!(!whole.matches("main", "web_extract", &page, &roots));
}

#[test]
fn a_deny_rule_is_added_and_taken_out_without_a_trace() {
    let tools = crate::testing::tools();
    for text in
        ["", "allow:\n  - read_file\n", "# mine\ndeny:\n  - read_file(.env)\nask:\n  - terminal(git push*)\n"]
    {
        let with = with_rule(text, Effect::Deny, "terminal(git push* main*)", &tools).unwrap();
        let rules = load(&with, Source::User, &tools).unwrap().rules;
        assert!(rules.iter().any(|r| r.effect == Effect::Deny && r.text() == "terminal(git push* main*)"));
        // A rule that is there already is as if added, and one that is not there as if taken out.
        assert_eq!(with_rule(&with, Effect::Deny, "terminal(git push* main*)", &tools).unwrap(), with);
        assert_eq!(without_deny(&with, "terminal(git push* main*)", &tools).unwrap(), text);
        assert_eq!(without_deny(text, "terminal(git push* main*)", &tools).unwrap(), text);
    }
    // Earlier versions could add a rule twice.
    let twice = "deny:\n  - 'terminal(a*)'\n  - 'terminal(a*)'\n";
    assert_eq!(without_deny(twice, "terminal(a*)", &tools).unwrap(), "");
    // Another form is the person's own, as is a rule of another effect.
    for own in ["deny:\n  - terminal(a*)\n", "deny: ['terminal(a*)']\n"] {
        assert!(without_deny(own, "terminal(a*)", &tools).is_err(), "{own}");
    }
    let both = with_rule("deny:\n  - terminal(a*)\n", Effect::Deny, "terminal(a*)", &tools).unwrap();
    assert_eq!(without_deny(&both, "terminal(a*)", &tools).unwrap(), "deny:\n  - terminal(a*)\n");
    let allowed = "allow:\n  - 'terminal(a*)'\n";
    assert_eq!(without_deny(allowed, "terminal(a*)", &tools).unwrap(), allowed);
    assert_eq!(with_allow(allowed, "terminal(a*)", &tools).unwrap(), allowed);
    assert!(with_rule("", Effect::Deny, "treminal(x)", &tools).is_err());
}

/// A rule in the spelling of other programs, or with a slip, is an error and holds as it is meant until it is corrected.
#[test]
fn a_rule_that_can_match_nothing_is_an_error_and_holds_as_it_is_meant() {
    let tools = crate::testing::tools();
    for (rule, left) in [
        ("Bash(git push:*)", "yours: deny terminal(git push:*)"),
        ("Read(//etc/**)", "yours: deny read_file(//etc/**)"),
        ("MultiEdit(/src/**)", "yours: deny edit_file(/src/**); yours: deny edit_file(src/**)"),
        ("MultiEdit(/../x)", "yours: ask edit_file"),
        ("Read(~root/x)", "yours: ask read_file"),
        ("WebFetch(domain:x.com/)", "yours: ask web_fetch"),
        ("mcp__github__push", "yours: ask *"),
        ("mcp:github", "yours: ask *"),
        ("!terminal(ls*)", "yours: ask terminal"),
        ("terminal(touch*), read_file(x)", "yours: ask terminal"),
        ("terminal(\"git push*\")", "yours: ask terminal"),
        ("terminal('git push')", "yours: ask terminal"),
        ("read_file(\".env\")", "yours: ask read_file"),
        ("read_file(!src/**)", "yours: ask read_file"),
        ("read_file($HOME/.ssh/**)", "yours: ask read_file"),
        ("read_file(${HOME}/.ssh)", "yours: ask read_file"),
        ("read_file(src\\secret)", "yours: ask read_file"),
        ("read_file(src\\**)", "yours: ask read_file"),
        ("read_file(.\\x)", "yours: ask read_file"),
        ("read_file(file:///etc/passwd)", "yours: ask read_file"),
        ("web_fetch(evil.com)", "yours: ask web_fetch"),
        ("web_fetch(evil.com/*)", "yours: ask web_fetch"),
        ("web_fetch(Domain:evil.com)", "yours: ask web_fetch"),
        ("web_fetch(domain:)", "yours: ask web_fetch"),
    ] {
        let loaded = load(&format!("deny:\n{}\n", yaml_item(rule)), Source::User, &tools).unwrap();
        let words: Vec<String> = loaded.rules.iter().map(Rule::words).collect();
        assert_eq!((loaded.problems.len(), words.join("; ")), (1, left.to_owned()), "{rule}");
        let allowed = load(&format!("allow:\n{}\n", yaml_item(rule)), Source::User, &tools).unwrap();
        let name = usize::from(rule.starts_with("terminal('"));
        assert_eq!((allowed.rules.len(), allowed.problems.len()), (name, 1 - name), "{rule}");
    }
    for right in [
        "read_file(src/\\[id\\]/x)",
        "read_file(~)",
        "read_file(a\\*)",
        "web_fetch(*)",
        "web_fetch(https://x.org/*)",
    ] {
        assert_eq!(one(&format!("deny:\n{}\n", yaml_item(right))).problems, vec![], "{right}");
    }
}

/// A rule that denies a path or a host holds for each spelling of it.
#[test]
fn a_rule_that_denies_holds_for_each_spelling_of_a_path_or_host() {
    let tools = crate::testing::tools();
    let roots = crate::Roots::with_resolve(
        "/w",
        Some("/home/u".into()),
        vec![],
        std::sync::Arc::new(crate::paths::normal),
    );
    for (rule, path, want) in [
        ("read_file( .env )", "/w/.env", true),
        ("read_file(.env)", "/w/a/.ENV", true),
        ("read_file(.env/)", "/w/.env", true),
        ("read_file(./.env)", "/w/x/../.env", true),
        ("read_file(//etc/**)", "/etc/passwd", true),
        ("read_file(/etc)", "/etc/a/b", true),
        ("read_file(~)", "/home/u/.ssh/id", true),
        ("read_file(~/.ssh)", "/home/u/.ssh/id", true),
        ("read_file(app/[id]/page.tsx)", "/w/app/[id]/page.tsx", true),
        ("read_file(app/[...slug]/**)", "/w/app/[...slug]/x", true),
        ("read_file(*.pem)", "/w/a/b/x.pem", true),
        ("read_file(secrets/*)", "/w/secrets/a/b", true),
        ("read_file(src/**.py)", "/w/src/a/b.py", true),
        ("read_file(my file.txt)", "/w/my file.txt", true),
        ("read_file(M\u{fc}ll.txt)", "/w/Mu\u{308}ll.txt", true),
        ("read_file(a/Mu\u{308}ll/**)", "/w/a/M\u{dc}LL/x", true),
        ("read_file(M\u{fc}ll.txt)", "/w/Mull.txt", false),
        ("read_file(secrets)", "/w/secrets2", false),
        ("read_file(/etc/**)", "/w/etc/x", false),
    ] {
        let rule = Rule::written(Effect::Deny, Source::User, rule, &tools).unwrap();
        let subject = Subject::Path(std::path::Path::new(path), PathUse::Read);
        assert_eq!(rule.matches("main", "read_file", &subject, &roots), want, "{} {path}", rule.text());
    }
    for (rule, url, host, want) in [
        ("domain:evil.com", "https://evil.com/", "evil.com", true),
        ("domain:Evil.COM.", "https://evil.com./", "evil.com.", true),
        ("domain:evil.com", "https://www.evil.com/", "www.evil.com", true),
        ("domain:*.evil.com", "https://evil.com/", "evil.com", false),
        ("domain:*.evil.com", "https://a.b.evil.com/", "a.b.evil.com", true),
        ("domain:.evil.com", "https://a.evil.com/", "a.evil.com", true),
        ("domain:bücher.example", "https://xn--bcher-kva.example/", "xn--bcher-kva.example", true),
        ("domain:1.2.3.4", "http://1.2.3.4/", "1.2.3.4", true),
        ("https://evil.com/*", "https://evil.com./x", "evil.com.", true),
        ("https://evil.com/*", "http://evil.com/x", "evil.com", true),
        ("domain:evil.com", "https://notevil.com/", "notevil.com", false),
        ("domain:evil.com", "https://evil.com.good.org/", "evil.com.good.org", false),
        ("domain:www.evil.com", "https://evil.com/", "evil.com", false),
    ] {
        let rule = Rule::written(Effect::Deny, Source::User, &format!("web_fetch({rule})"), &tools).unwrap();
        let subject = Subject::Net { url, host };
        assert_eq!(rule.matches("main", "web_fetch", &subject, &roots), want, "{} {url}", rule.text());
        let rule = rule.with_effect(Effect::Allow);
        let wider = host.trim_end_matches('.') != "evil.com" && rule.text().contains("domain:evil.com");
        assert!(!wider || !rule.matches("main", "web_fetch", &subject, &roots), "{} {url}", rule.text());
    }
}
