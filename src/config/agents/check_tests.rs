use std::path::Path;

use tiller_protocol::{AgentLimits, Cost, MemoryRights, Profile};

use super::check::definition;
use crate::testing::tools;

use super::{Definition, DefinitionContext, Origin, Pick, Tier, Tools};

fn rule(text: &str) -> Result<(), String> {
    if text.contains('(') == text.ends_with(')') {
        Ok(())
    } else {
        Err(format!("'{text}' needs a closing parenthesis"))
    }
}

fn read(text: &str) -> Result<Definition, Vec<String>> {
    let known = DefinitionContext { tools: &tools(), clis: DefinitionContext::CLIS, rule: &rule };
    definition(Path::new("x.md"), "x", Origin::User, text.as_bytes(), &known)
        .map_err(|all| all.iter().map(ToString::to_string).collect())
}

/// With what every definition needs.
fn with(lines: &str) -> Result<Definition, Vec<String>> {
    read(&format!("---\ndescription: d\n{lines}\n---\nDo it.\n"))
}

fn names(tools: &Tools) -> Vec<&str> {
    match tools {
        Tools::Only(names) => names.iter().map(String::as_str).collect(),
        _ => panic!("{tools:?}"),
    }
}

#[test]
fn every_key_is_read() {
    let it = read(
        "\u{feff}---\r\n\
         # mine\r\n\
         name: critic\r\n\
         description: >\r\n  reads a change\r\n  and judges it\r\n\
         model: anthropic/x:1\r\n\
         tools: [read, terminal, browser_open]\r\n\
         skills: rust, writing\r\n\
         permissions:\r\n  profile: read-only\r\n  ask: terminal(a, b)\r\n  deny:\r\n    - terminal(git push*)\r\n\
         limits: { turns: 12, seconds: 90, tokens: 1e6, cost: 0.25 }\r\n\
         cli: claude\r\n\
         may: [project]\r\n\
         ---\r\n\r\nYou judge.\r\n---\r\nStill the body.\r\n",
    )
    .unwrap();
    assert_eq!((it.name.as_str(), it.description.as_str()), ("critic", "reads a change and judges it"));
    assert_eq!(it.pick, Pick::Model("anthropic/x:1".into()));
    assert_eq!(
        names(&it.tools),
        ["browser_open", "list_dir", "read_file", "search", "session_search", "terminal"]
    );
    assert_eq!((it.tools.grants("search"), it.tools.grants("write_file")), (Some(true), Some(false)));
    assert_eq!(it.skills, ["rust", "writing"]);
    assert_eq!(it.permissions.profile, Some(Profile::ReadOnly));
    assert_eq!(it.permissions.ask, ["terminal(a, b)"]);
    assert_eq!(it.permissions.deny, ["terminal(git push*)"]);
    let limits = AgentLimits {
        turns: Some(12),
        seconds: Some(90),
        tokens: Some(1_000_000),
        cost: Some(Cost::from_usd(0.25)),
    };
    assert_eq!(it.limits, limits);
    assert_eq!(it.cli.as_deref(), Some("claude"));
    assert!(it.may("project") && it.may("prompt") && it.may("session") && !it.may("memory"));
    assert_eq!(it.prompt, "You judge.\n---\nStill the body.");
}

#[test]
fn little_is_enough_and_the_rest_is_of_its_depth() {
    let it = with("").unwrap();
    assert_eq!((it.name.as_str(), it.tools.grants("terminal")), ("x", None));
    assert!(it.may("memory"));
    assert_eq!(with("tier: fast").unwrap().pick, Pick::Tier(Tier::Fast));
    assert_eq!(with("model: inherit").unwrap().pick, Pick::Inherit);
    assert_eq!(with("tools: all").unwrap().tools, Tools::All);
    for (line, rights) in [
        ("", None),
        ("memory: off", Some(MemoryRights::Off)),
        ("memory: read", Some(MemoryRights::Read)),
        ("memory: write", Some(MemoryRights::Write)),
    ] {
        assert_eq!(with(line).unwrap().memory, rights, "{line}");
    }
    assert!(with("memory: yes").is_err() && with("memory: all").is_err());
    // Named, and empty: an agent that only thinks.
    assert_eq!(names(&with("tools: []").unwrap().tools), Vec::<&str>::new());
    // Nothing may be spent: what costs is refused to it.
    assert_eq!(with("limits: { cost: 0 }").unwrap().limits.cost, Some(Cost(0)));
}

#[test]
fn each_mistake_has_its_place_and_the_nearest_right_word() {
    let one = |lines: &str| {
        let wrong = with(lines).unwrap_err();
        assert_eq!(wrong.len(), 1, "{lines}: {wrong:?}");
        wrong[0].clone()
    };
    for (lines, words) in [
        ("nmae: y", "x.md:3:1: unknown key `nmae` (did you mean `name`?)"),
        (
            "name: My Agent",
            "x.md:3:7: `My Agent` is not a valid agent name (use lower-case letters, digits and -, at most 40, starting with a letter)",
        ),
        ("name: 12", "x.md:3:7: `name` is a number, not text (put it in quotes if it is text)"),
        ("tier: fsat", "x.md:3:7: unknown tier `fsat` (did you mean `fast`?)"),
        (
            "model: sonnet",
            "x.md:3:8: `sonnet` is not a model (write it as provider/model, or use `tier: fast`, `main` or `deep`)",
        ),
        ("tier: fast\nmodel: a/b", "x.md:4:8: `tier` and `model` cannot both be set (keep one of them)"),
        (
            "tools:\n  - read\n  - read_fil",
            "x.md:5:5: there is no tool or set `read_fil` (did you mean `read_file`?)",
        ),
        ("tools: [raed]", "x.md:3:9: there is no tool or set `raed` (did you mean `read`?)"),
        (
            "tools: [zzzzzz]",
            "x.md:3:9: there is no tool or set `zzzzzz` (use a tool name or a set: read, edit, run, web, browser, plan, crew, code, media, memory, all)",
        ),
        ("tools: { read: yes }", "x.md:3:8: `tools` is a map, not a list (write `tools: [one, two]`)"),
        (
            "permissions: { profile: reed-only }",
            "x.md:3:25: unknown profile `reed-only` (did you mean `read-only`?)",
        ),
        (
            "permissions:\n  allow: [terminal]",
            "x.md:4:3: an agent file can only restrict permissions, so `allow` is not possible (list fewer `tools`, or use `ask` and `deny`; allow rules belong in permissions.yaml)",
        ),
        (
            "permissions:\n  deny:\n    - terminal(rm",
            "x.md:5:7: 'terminal(rm' needs a closing parenthesis (a rule is tool(argument), for example terminal(git push*))",
        ),
        ("limits: { turn: 3 }", "x.md:3:11: unknown key `limits.turn` (did you mean `turns`?)"),
        (
            "limits: { turns: 0 }",
            "x.md:3:18: `limits.turns` is 0; it must be a whole number from 1 to 4294967295 (omit it to set no limit)",
        ),
        (
            "limits: { seconds: 1.5 }",
            "x.md:3:20: `limits.seconds` is 1.5; it must be a whole number from 1 to 4294967295 (omit it to set no limit)",
        ),
        (
            "limits: { cost: -1 }",
            "x.md:3:17: `limits.cost` is -1; it must be an amount in dollars of at least 0",
        ),
        (
            "limits: { cost: $1 }",
            "x.md:3:17: `limits.cost` is text, not a number (write dollars without a currency sign: `cost: 0.50`)",
        ),
        ("cli: cluade", "x.md:3:6: unknown program `cluade` (did you mean `claude`?)"),
        ("may: [projekt]", "x.md:3:7: unknown layer `projekt` (did you mean `project`?)"),
        ("description: e", "x.md:3:1: `description` appears twice (keep one of them)"),
    ] {
        assert_eq!(one(lines), words);
    }
}

#[test]
fn several_mistakes_are_told_at_once() {
    let wrong = read("---\nname: A\ntier: x\nlimits: 3\n---\n\n").unwrap_err();
    let places: Vec<&str> =
        wrong.iter().map(|w| w.rsplit_once(" (").map_or(w.as_str(), |(w, _)| w)).collect();
    assert_eq!(
        places,
        [
            "x.md:2:7: `A` is not a valid agent name",
            "x.md:3:7: unknown tier `x`",
            "x.md:4:9: `limits` is a number, not a map",
            "x.md:1:1: the description is missing",
            "x.md:6:1: the prompt is missing",
        ]
    );
}

#[test]
fn what_is_no_definition_at_all_says_so() {
    let first = |text: &[u8]| {
        let known = DefinitionContext { tools: &tools(), clis: &[], rule: &rule };
        let wrong = definition(Path::new("x.md"), "x", Origin::User, text, &known).unwrap_err();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        wrong[0].to_string()
    };
    for (text, words) in [
        (&b""[..], "x.md:1:1: the file does not start with front matter"),
        (b"# Read me\n---\n", "x.md:1:1: the file does not start with front matter"),
        (b"---\nname: x\n", "x.md:1:1: the front matter has no end"),
        (b"---\n- a\n---\nx", "x.md:2:1: the front matter is a list, not keys with values"),
        (b"---\nname: x\ndescription: a: b\n---\nx", "x.md:3:"),
        (b"---\nname: [\n---\nx", "x.md:"),
        (b"---\nname: *none\n---\nx", "x.md:2:"),
        (b"---\nname: \xff\n---\nx", "x.md:2:1: this is not UTF-8 text"),
        (&[b'x'; 300_000], "x.md:1:1: the file is larger than 256 KiB"),
    ] {
        let said = first(text);
        assert!(said.starts_with(words), "{said}");
    }
    // A small file that would be a large one.
    let mut bomb = "---\na: &a [x]\n".to_owned();
    for n in 0..30 {
        let (last, next) = (char::from(b'a' + n % 25), char::from(b'a' + (n + 1) % 25));
        bomb.push_str(&format!("{next}{n}: &{next} [*{last}, *{last}, *{last}, *{last}, *{last}]\n"));
    }
    bomb.push_str("---\nx");
    assert!(first(bomb.as_bytes()).starts_with("x.md:"));
}

proptest::proptest! {
    #[test]
    fn nothing_makes_it_fall_over(text in "(---\n)?([a-z]{1,6}: ?[\\[{]?[a-z0-9,&*:\" -]{0,12}[\\]}]?\n){0,5}(---\n)?.{0,20}") {
        let known = DefinitionContext { tools: &tools(), clis: &[], rule: &rule };
        let all = definition(Path::new("x.md"), "x", Origin::Project, text.as_bytes(), &known);
        let lines = text.lines().count() + 1;
        for wrong in all.err().into_iter().flatten() {
            let (line, _) = wrong.at.unwrap();
            proptest::prop_assert!((1..=lines + 1).contains(&line), "{} of {}", line, lines);
        }
    }
}
