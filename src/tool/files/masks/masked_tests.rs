use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// What stands between guillemets is secret.
fn secrets() -> Secrets {
    Arc::new(|text: &str| {
        let begins = text.match_indices('«').map(|(at, _)| at);
        let ends = begins.filter_map(|at| Some(at..at + text[at..].find('»')? + '»'.len_utf8()));
        ends.map(|range| Secret { range, name: "secret" }).collect()
    })
}

const M: &str = "[redacted secret]";

fn back(file: &str, written: &str) -> Result<String, String> {
    let masked = MaskedText::of(file, &secrets());
    restore(&written.replace("[M]", M), &[&masked])
        .map(Cow::into_owned)
        .map_err(|u| format!("{}:{}", u.line, u.mask))
}

#[test]
fn positions_go_to_and_fro() {
    let text = "a=«1»\nb [redacted x] «two\nlines» c\n";
    let masked = MaskedText::of(text, &secrets());
    assert_eq!(masked.shown(), format!("a={M}\nb [redacted x] {M} c\n"));
    for real in (0..=text.len()).filter(|i| text.is_char_boundary(*i)) {
        if let Ok(shown) = masked.to_shown(real) {
            assert_eq!(masked.to_real(shown), Ok(real), "{real}");
        }
    }
    assert_eq!(masked.to_real(4).unwrap_err(), 2.."a=«1»".len());
    let part = masked.part(text.find('b').unwrap()..text.len());
    assert_eq!(part.shown(), format!("b [redacted x] {M} c\n"));
}

#[test]
fn a_mask_that_stands_unchanged_becomes_its_value() {
    let file = "# head\nA=«one»\nB: \"«two»\",\nC=«th\nree»;\nliteral [redacted secret] here\n";
    for (written, want) in [
        ("A=[M]\n", "A=«one»\n"),
        ("# new\nA=[M]\nB: \"[M]\",\nC=[M];\n", "# new\nA=«one»\nB: \"«two»\",\nC=«th\nree»;\n"),
        // Indented, quoted, moved, twice, with more on its line.
        ("  B: '[M]' # two\n\nA = [M]\n", "  B: '«two»' # two\n\nA = «one»\n"),
        ("A=[M]\nA=[M]\n", "A=«one»\nA=«one»\n"),
        // Another name at its place.
        ("# head\nAA=[M]\nB: \"[M]\",\nC=[M];\n", "# head\nAA=«one»\nB: \"«two»\",\nC=«th\nree»;\n"),
        // A mask that stands in the file itself is what it is.
        ("literal [M] here\n", "literal [redacted secret] here\n"),
        ("no mask", "no mask"),
    ] {
        assert_eq!(back(file, written).as_deref(), Ok(want), "{written}");
    }
    for written in ["X=[M]\n", "[M]", "A=[redacted password]", "A=1\nnew [M] and A=[M]"] {
        assert!(back(file, written).is_err(), "{written}: {:?}", back(file, written));
    }
    assert_eq!(back(file, "one\nD=[M]").unwrap_err(), format!("2:{M}"));
}

#[test]
fn lines_that_look_alike_are_told_apart_by_what_is_around_them_or_refused() {
    let file = "prod:\n  user: x\n  pw: «1»\ndev:\n  user: x\n  pw: «2»\n";
    for (written, want) in [
        (file.replace("«1»", "[M]").replace("«2»", "[M]"), Ok(file.to_owned())),
        ("dev:\n  user: x\n  pw: [M]\n".into(), Ok("dev:\n  user: x\n  pw: «2»\n".to_owned())),
        (
            "dev:\n  user: x\n  pw: [M]\nprod:\n  user: x\n  pw: [M]\n".into(),
            Ok("dev:\n  user: x\n  pw: «2»\nprod:\n  user: x\n  pw: «1»\n".to_owned()),
        ),
        (
            "prod:\n  user: y\n  pw: [M]\ndev:\n  user: y\n  pw: [M]\n".into(),
            Ok("prod:\n  user: y\n  pw: «1»\ndev:\n  user: y\n  pw: «2»\n".to_owned()),
        ),
        ("stage:\n  pw: [M]\n".into(), Err(())),
    ] {
        assert_eq!(back(file, &written).map_err(|_| ()), want, "{written}");
    }
    let list = "tokens:\n- «1»\n- «2»\n- «3»\n";
    assert_eq!(back(list, "tokens:\n- [M]\n- [M]\n- [M]\n").as_deref(), Ok(list));
    assert_eq!(back(list, "tokens:\n- [M]\n- [M]\n- [M]\nmore: 1\n").unwrap(), format!("{list}more: 1\n"));
    assert!(back(list, "tokens:\n- [M]\n- [M]\n").is_err(), "which one went is not known");
    assert!(back(list, "tokens:\n- [M]\n- new\n- [M]\n- [M]\nend\n").is_ok_and(|t| !t.contains("redacted")));
    // As many, moved about and changed: the sections say that it is not the old order.
    let moved = "dev:\n  host: d\n  user: z\n  pw: [M]\n\nprod:\n  host: p\n  user: z\n  pw: [M]\n";
    let apart = "prod:\n  host: p\n  user: x\n  pw: «1»\ndev:\n  host: d\n  user: x\n  pw: «2»\n";
    let swapped = "dev:\n  host: d\n  user: z\n  pw: «1»\n";
    assert!(!back(apart, moved).is_ok_and(|t| t.contains(swapped)));
}

#[test]
fn a_text_that_is_masked_piece_by_piece_gives_no_value() {
    // The line with the mask itself is there once; the other one hides a value.
    let file = format!("A=[redacted secret]\nB=«1»\n{}", "x\n".repeat(WHOLE / 2));
    for written in ["A=[M]\n", "B=[M]\n"] {
        assert!(back(&file, written).is_err(), "{written}");
    }
    assert_eq!(back(&file, "A=1\n").as_deref(), Ok("A=1\n"));
    assert!(back(&file[..1000], "A=[M]\n").is_ok());
}

#[test]
fn line_ends_of_the_file_are_no_difference() {
    let file = "a\r\nK=«1»\r\nb\r\n";
    assert_eq!(back(file, "a\nK=[M]\nc\n").as_deref(), Ok("a\nK=«1»\nc\n"));
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{0,2}", "[xy]=«[0-9]{1,3}»", "  [xy]: «[0-9]»,", "«[0-9]\n[0-9]»"]
}

proptest! {
    /// However a masked text is changed: what comes back holds no mask, and no value stands behind a name that was not
    /// its own when the lines with masks stay as they were.
    #[test]
    fn no_mask_is_ever_written(
        lines in prop::collection::vec(line(), 0..12),
        cut in prop::collection::vec(any::<bool>(), 12),
        more in prop::collection::vec("(new [0-9])?", 12),
    ) {
        let file = lines.join("\n");
        let masked = MaskedText::of(&file, &secrets());
        let mut written = String::new();
        for (n, line) in masked.shown().split('\n').enumerate() {
            if cut[n % 12] { written.push_str(&more[n % 12]); written.push('\n'); }
            if !cut[(n + 5) % 12] || line.contains(M) { written.push_str(line); written.push('\n'); }
        }
        if let Ok(out) = restore(&written, &[&masked]) {
            prop_assert!(!out.contains(M));
            // All masks were kept, in their order: so are all values.
            let values = |t: &str| secrets()(t).into_iter().map(|s| t[s.range].to_owned()).collect::<Vec<_>>();
            prop_assert_eq!(values(&out), values(&file));
        }
    }

    #[test]
    fn what_comes_back_unchanged_is_the_file(lines in prop::collection::vec(line(), 0..12)) {
        let file = lines.join("\n");
        let masked = MaskedText::of(&file, &secrets());
        let back = restore(masked.shown(), &[&masked]);
        prop_assert_eq!(back.as_deref().ok(), Some(file.as_str()));
    }
}

mod tools {
    use serde_json::json;

    use super::secrets;
    use crate::files::{EditFile, Patch, ReadFile, WriteFile};
    use crate::testing::Bench;

    const M: &str = super::M;
    const FILE: &str = "# keys\nHOST=h\nTOKEN=«real-1»\nPORT=1\nPEM=\"«line 1\nline 2\nline 3»\"\nLAST=x\n";

    fn bench() -> Bench {
        Bench::new().mask(secrets())
    }

    #[tokio::test]
    async fn a_read_shows_masks_with_the_real_numbers_and_says_what_becomes_of_them() {
        let b = bench();
        b.file("k.env", FILE);
        let said = b.say(&ReadFile, json!({"path": "k.env"})).await;
        assert!(
            said.starts_with(&format!(
                "1\t# keys\n2\tHOST=h\n3\tTOKEN={M}\n4\tPORT=1\n5\tPEM=\"{M}\"\n8\tLAST=x\n"
            )),
            "{said}"
        );
        assert!(said.contains("restore the real value"), "{said}");
        // A page that begins inside of a value, by line and by byte.
        let said = b.say(&ReadFile, json!({"path": "k.env", "start": 6, "end": 7})).await;
        assert!(said.contains(&format!("5\tPEM=\"{M}\"")) && !said.contains("line 2"), "{said}");
        let said = b.say(&ReadFile, json!({"path": "k.env", "byte": FILE.find("line 2").unwrap()})).await;
        assert!(said.starts_with(&format!("{M}\"\nLAST")), "{said}");
        b.file("plain", "a\n");
        assert_eq!(b.say(&ReadFile, json!({"path": "plain"})).await, "1\ta\n");
    }

    #[tokio::test]
    async fn what_is_written_whole_keeps_its_values() {
        let b = bench();
        let path = b.file("k.env", FILE);
        b.say(&ReadFile, json!({"path": "k.env"})).await;
        let content = format!("# more\nHOST=i\nTOKEN={M}\nPORT=1\nPEM=\"{M}\"\nLAST=x\n");
        let said = b.say(&WriteFile, json!({"path": "k.env", "content": content})).await;
        assert!(said.starts_with("wrote"), "{said}");
        let want = FILE.replace("# keys", "# more").replace("HOST=h", "HOST=i");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), want);
        for (file, content) in
            [("k.env", format!("OTHER={M}\nTOKEN={M}")), ("new.env", format!("a\nTOKEN={M}\n"))]
        {
            let said = b.say(&WriteFile, json!({"path": file, "content": content})).await;
            assert!(said.starts_with("error: line ") && said.contains(M), "{said}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), want);
        assert!(!b.root.join("new.env").exists());
    }

    #[tokio::test]
    async fn an_edit_spans_masked_lines() {
        let b = bench();
        let path = b.file("k.env", FILE.replace('\n', "\r\n"));
        b.say(&ReadFile, json!({"path": "k.env"})).await;
        let old = format!("TOKEN={M}\nPORT=1\nPEM=\"{M}\"\n");
        let new = format!("PEM=\"{M}\"\nTOKEN={M} # t\nPORT=2\n");
        let said = b.say(&EditFile, json!({"path": "k.env", "old": old, "new": new})).await;
        assert!(said.starts_with("edited"), "{said}");
        let want = "# keys\nHOST=h\nPEM=\"«line 1\nline 2\nline 3»\"\nTOKEN=«real-1» # t\nPORT=2\nLAST=x\n"
            .replace('\n', "\r\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), want);
        // Text that is not there is reported with masks; a mask of unknown origin is refused.
        let said =
            b.say(&EditFile, json!({"path": "k.env", "old": format!("TOKEN={M} # u"), "new": "x"})).await;
        assert!(said.contains("not found") && said.contains(M) && !said.contains("real-1"), "{said}");
        let said =
            b.say(&EditFile, json!({"path": "k.env", "old": "LAST=x", "new": format!("LAST={M}")})).await;
        assert!(said.contains("it is not clear which value"), "{said}");
        // Its line goes: so does the value, as was meant.
        let said =
            b.say(&EditFile, json!({"path": "k.env", "old": format!("TOKEN={M} # t\n"), "new": ""})).await;
        assert!(said.starts_with("edited"), "{said}");
        assert!(!std::fs::read_to_string(&path).unwrap().contains("real-1"));
    }

    #[tokio::test]
    async fn each_of_many_places_keeps_its_own_value() {
        let b = bench();
        let path = b.file("l", "k=«1»;\nk=«2»;\nk=«3»;\n");
        b.say(&ReadFile, json!({"path": "l"})).await;
        let args =
            json!({"path": "l", "old": format!("k={M};"), "new": format!("key = {M}"), "replace_all": true});
        let said = b.say(&EditFile, args).await;
        assert!(said.starts_with("edited"), "{said}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "key = «1»\nkey = «2»\nkey = «3»\n");
    }

    #[tokio::test]
    async fn a_patch_has_masks_in_its_context() {
        let b = bench();
        let path = b.file("k.env", format!("{FILE}TOKEN=«real-2»\nEND\n"));
        b.say(&ReadFile, json!({"path": "k.env"})).await;
        let patch = |body: String| json!({"patch": format!("*** Begin Patch\n{body}*** End Patch")});
        let said = b
            .say(&Patch, patch(format!(
                "*** Update File: k.env\n@@\n HOST=h\n TOKEN={M}\n-PORT=1\n+PORT=2\n PEM=\"{M}\"\n-LAST=x\n-TOKEN={M}\n+TOKEN2={M}\n END\n"
            )))
            .await;
        assert!(said.starts_with("patched"), "{said}");
        let want = FILE.replace("PORT=1", "PORT=2").replace("LAST=x\n", "TOKEN2=«real-2»\nEND\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), want);
        // Of two equal lines only the line that the edit removes is removed.
        let twin = b.file("twin", "a\nk=«1»\nk=«2»\nb\n");
        b.say(&ReadFile, json!({"path": "twin"})).await;
        let said = b.say(&Patch, patch(format!("*** Update File: twin\n@@\n a\n-k={M}\n k={M}\n b\n"))).await;
        assert!(said.starts_with("patched"), "{said}");
        assert_eq!(std::fs::read_to_string(&twin).unwrap(), "a\nk=«2»\nb\n");
        let said = b.say(&Patch, patch(format!("*** Add File: n\n+k={M}\n"))).await;
        assert!(said.starts_with("error: line 1") && !b.root.join("n").exists(), "{said}");
        // A move with a change keeps them, too.
        let said = b
            .say(&Patch, patch(format!("*** Update File: twin\n*** Move to: moved\n@@\n k={M}\n-b\n+c\n")))
            .await;
        assert!(said.starts_with("patched"), "{said}");
        assert_eq!(std::fs::read_to_string(b.root.join("moved")).unwrap(), "a\nk=«2»\nc\n");
    }

    /// Finds each value below a head, as the masks of the program do.
    fn variables() -> crate::Secrets {
        use tiller_protocol::mask::{OF_VARIABLES, READS_VARIABLES, Secret};
        std::sync::Arc::new(|text: &str| {
            let mut at = 0;
            let mut all = Vec::new();
            for line in text.split_inclusive('\n') {
                let end = at + line.trim_end().len();
                if let Some(sign) = line.find('=').filter(|_| at > 0) {
                    all.push(Secret { range: at + sign + 1..end, name: "variable" });
                }
                at += line.len();
            }
            let known = text.starts_with(OF_VARIABLES) || text.starts_with(READS_VARIABLES);
            if known { all } else { Vec::new() }
        })
    }

    #[tokio::test]
    async fn every_value_of_a_file_of_variables_is_masked_and_kept() {
        use crate::shell::Terminal;
        let v = "[redacted variable]";
        let b = Bench::new().mask(variables());
        let path = b.file(".env.local", "HOST=db\nPORT=1\n");
        b.file("other", "HOST=db\n");
        let said = b.say(&ReadFile, json!({"path": ".env.local"})).await;
        assert!(said.starts_with(&format!("1\tHOST={v}\n2\tPORT={v}\n")), "{said}");
        assert_eq!(b.say(&ReadFile, json!({"path": "other"})).await, "1\tHOST=db\n");
        let said = b
            .say(
                &EditFile,
                json!({"path": ".env.local", "old": format!("PORT={v}"), "new": format!("PORT={v}\nNEW=1")}),
            )
            .await;
        assert!(said.starts_with("edited"), "{said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "HOST=db\nPORT=1\nNEW=1\n");
        for (command, masked) in [("cat .env.local", true), ("head -1 ./.e*", true), ("cat other", false)] {
            let said = b.say(&Terminal, json!({"command": command})).await;
            assert_eq!(said.contains(&format!("HOST={v}")), masked, "{command}: {said}");
            assert_eq!(said.contains("db"), !masked, "{command}: {said}");
        }
    }

    #[tokio::test]
    async fn a_program_gets_no_mask() {
        use crate::shell::Terminal;
        let b = bench();
        let path = b.file("k.env", FILE);
        let command = format!("printf 'TOKEN={M}' > k.env");
        let said = b.say(&Terminal, json!({"command": command})).await;
        assert!(said.starts_with("error: nothing was run") && said.contains(M), "{said}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), FILE);
    }
}
