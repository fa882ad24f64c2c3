use super::*;

fn vars(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn x8_a_secret_in_any_variable_does_not_reach_a_child() {
    let secret = |i: usize| format!("sk-ant-api03-{i:04}QmFzZTY0RW5jb2RlZFNlY3JldEtleQ");
    // Every listed name, and names that are not listed, each with a secret in it.
    let mut all: Vec<(String, String)> =
        NAMES.iter().enumerate().map(|(i, n)| ((*n).to_owned(), secret(i))).collect();
    for (i, name) in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "FOO",
        "LC_SECRET",
        "TILLER_KEY",
        "DATABASE_URL",
    ]
    .iter()
    .enumerate()
    {
        all.push(((*name).to_owned(), secret(1000 + i)));
    }
    assert_eq!(child_env(all, &[], &[]), vec![]);
}

#[test]
fn what_is_listed_stays_and_the_rest_goes() {
    let got = child_env(
        vars(&[
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/home/u"),
            ("LC_ALL", "C.UTF-8"),
            ("CARGO_HOME", "/home/u/.cargo"),
            ("RANDOM_THING", "1"),
            ("LD_PRELOAD", "/x.so"),
            ("GITHUB_TOKEN", "x"),
            ("BASH_ENV", "/x"),
            ("GIT_DIR", "/x"),
            ("PROMPT_COMMAND", "x"),
        ]),
        &[],
        &[],
    );
    let names: Vec<&str> = got.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["CARGO_HOME", "HOME", "LC_ALL", "PATH"]);
}

#[test]
fn a_configured_name_is_passed_on_even_with_a_key() {
    let got = child_env(
        vars(&[("GITHUB_TOKEN", "ghp_0123456789abcdefghijABCDEFGHIJ012345")]),
        &["GITHUB_TOKEN".into()],
        &[],
    );
    assert_eq!(got.len(), 1);
}

#[test]
fn our_own_keys_are_known_by_value() {
    let own = "plain-looking-value".to_owned();
    let got = child_env(vars(&[("PAGER", "less plain-looking-value"), ("TERM", "xterm")]), &[], &[own]);
    assert_eq!(got, vars(&[("TERM", "xterm")]));
}
