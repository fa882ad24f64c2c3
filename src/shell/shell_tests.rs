use super::*;

/// The parts that run, as text, without guesses; `~` marks a transparent wrapper.
fn parts(command: &str) -> Vec<String> {
    let mark = |p: &Part| if p.role == Role::Transparent { format!("~{}", p.text()) } else { p.text() };
    analyse(command).parts.iter().filter(|p| p.role != Role::Guess).map(mark).collect()
}

#[test]
fn every_simple_command_is_found() {
    for (command, want) in [
        ("a; b && c || d | e & f", vec!["a", "b", "c", "d", "e", "f"]),
        ("(a; b); { c; }", vec!["a", "b", "c"]),
        ("if a; then b; elif c; then d; else e; fi", vec!["a", "b", "c", "d", "e"]),
        ("for x in 1 2; do a; done; while b; do c; done; until d; do e; done", vec!["a", "b", "c", "d", "e"]),
        ("case x in y) a;; z) b;& *) c;; esac", vec!["a", "b", "c"]),
        ("f() { a; }; function g { b; }; f", vec!["a", "b", "f"]),
        (
            "x $(a) `b` \"$(c)\" <(d) >(e)",
            vec!["a", "b", "c", "d", "x \u{fffc} \u{fffc} \u{fffc} \u{fffc} \u{fffc}", "e"],
        ),
        ("! a; time b", vec!["a", "b"]),
        ("coproc a", vec!["a"]),
        ("[[ -n $(a) && $(b) == c ]]", vec!["a", "b"]),
        ("(( $(a) + 1 ))", vec!["a"]),
        ("echo $(( $(a) ))", vec!["a", "echo \u{fffc}"]),
        ("cat <<E\n$(a)\nE", vec!["a", "cat"]),
        ("cat <<'E'\n$(a)\nE", vec!["cat"]),
        ("echo '$(a)'", vec!["echo '$(a)'"]),
        ("a \\\n b", vec!["a b"]),
        ("X=$(a) b", vec!["a", "X=\u{fffc} b"]),
    ] {
        assert_eq!(parts(command), want, "{command}");
    }
}

#[test]
fn quotes_are_removed_as_the_shell_does() {
    for (command, want) in [
        (r#"r""m '-r' "-f""#, "rm -r -f"),
        (r"\r\m x", "rm x"),
        ("timeout 1 f= x", "'f=' x"),
        (r"$'\x72\155' x", "rm x"),
        ("echo \"a  b\" 'c'\"d\"", "echo 'a  b' cd"),
        ("echo ~ '~'", "echo ~ ~"),
        ("mkdir {a,b}c", "mkdir ac bc"),
        ("touch f{1..3}", "touch f1 f2 f3"),
        ("echo '{a,b}' \"{a,b}\"", "echo '{a,b}' '{a,b}'"),
        ("echo a\"\"b ''", "echo ab ''"),
    ] {
        assert_eq!(
            parts(command).last().unwrap().replace("'{a,b}'", "{a,b}"),
            want.replace("'{a,b}'", "{a,b}"),
            "{command}"
        );
    }
}

#[test]
fn wrappers_are_taken_off() {
    for (command, want) in [
        (
            "env A=1 nice -n 5 timeout -k 1 9 ls -l",
            vec![
                "~env A=1 nice -n 5 timeout -k 1 9 ls -l",
                "~A=1 nice -n 5 timeout -k 1 9 ls -l",
                "~A=1 timeout -k 1 9 ls -l",
                "A=1 ls -l",
            ],
        ),
        ("sudo -u root env ls", vec!["sudo -u root env ls", "~env ls", "ls"]),
        ("sh -c 'a; b'", vec!["~sh -c 'a; b'", "a", "b"]),
        (
            "find . -name x -exec a {} \\; -o -exec b {} +",
            vec!["find . -name x -exec a {} ';' -o -exec b {} +", "a \u{fffc}", "b \u{fffc}"],
        ),
        ("xargs -n 1 a", vec!["~xargs -n 1 a", "a \u{fffc}"]),
        ("command -v a", vec!["command -v a"]),
        ("eval a b", vec!["~eval a b", "a b"]),
        ("env -S 'a b' c", vec!["~env -S 'a b' c", "~env a b c", "a b c"]),
        ("bash <<< 'a'", vec!["~bash", "a"]),
    ] {
        assert_eq!(parts(command), want, "{command}");
    }
}

#[test]
fn redirections_tell_what_they_write() {
    let writes = |c: &str| -> Vec<String> {
        analyse(c).all_redirects().filter(|r| r.writes()).map(|r| r.target.text.clone()).collect()
    };
    assert_eq!(writes("a >b 2>>c <d 3<>e >|f &>g &>>h >&i"), ["b", "c", "e", "f", "g", "h", "i"]);
    assert_eq!(writes("a >/dev/null 2>&1 2>&- <f >&2"), Vec::<String>::new());
    assert_eq!(writes("{ a; } >b; (c) >d; if e; then f; fi >g"), ["b", "d", "g"]);
    assert_eq!(writes("a > \"b c\""), ["b c"]);
}

#[test]
fn what_is_not_certain_is_said() {
    for command in [
        "$x",
        "\"$x\" a",
        "a$(b)",
        "[$x] y",
        "rm $x",
        "a |",
        "a > $x y",
        "echo \"",
        "f() {",
        "for in",
        "~1234567 x",
        "1234567890>x",
        "a\u{7}",
    ] {
        assert!(analyse(command).unclear.is_some(), "{command}");
    }
    for command in [
        "ls",
        "echo $x",
        "echo \"$x\"",
        "rm \"$x\"",
        "make -j$(nproc)",
        "for f in *; do echo \"$f\"; done",
        "[ -f x ] && [ $y = 1 ]",
    ] {
        assert_eq!(analyse(command).unclear, None, "{command}");
    }
}

#[test]
fn deep_nesting_ends_soon() {
    let start = std::time::Instant::now();
    for open in ["(", "{ ", "$(", "`", "$((", "((", "${a:-", "<(", "[[ ( ", "if ", "\"$(", "a[", "{a,"] {
        for count in [5, 9, 12, 100, 3_000] {
            analyse(&open.repeat(count));
            analyse(&format!("echo {}", open.repeat(count)));
        }
    }
    let nested = (0..9).fold(String::from("rm x"), |inner, _| format!("echo $({inner})"));
    assert!(analyse(&nested).unclear.is_some());
    assert!(start.elapsed() < std::time::Duration::from_secs(90), "{:?}", start.elapsed());
}

#[test]
fn a_line_that_cannot_be_parsed_still_shows_its_pieces() {
    let found = analyse("echo \"; rm -rf x; sudo env rm y");
    assert!(found.unclear.is_some());
    let all: Vec<String> = found.parts.iter().flat_map(Part::spellings).collect();
    assert!(all.iter().any(|s| s == "rm -rf x") && all.iter().any(|s| s == "rm y"), "{all:?}");
}

/// A word of `kubectl` may begin the command that it runs, and that command's words in turn.
#[test]
fn readings_of_nested_wrappers_are_bounded() {
    let command = format!("kubectl {}exec -it pod -c main -- rm x", "bectl exec -it pod ".repeat(50));
    let analysis = analyse(&command);
    assert!(analysis.parts.len() <= 5_000, "{}", analysis.parts.len());
    assert!(analysis.unclear.is_some(), "what is not taken apart to its end is asked about");
}
