//! Which programs run others, or read elsewhere, because of variables that a shell exports.

/// Every program, as an entry of [`tiller_protocol::ShellState::redefined`].
pub(crate) const EVERY: &str = "*";

/// Names, or beginnings of names with a `*`, each with the programs that such variables steer.
const STEERS: &[(&str, &[&str])] = &[
    ("LD_*", &[EVERY]),
    ("DYLD_*", &[EVERY]),
    ("GLIBC_TUNABLES", &[EVERY]),
    ("GCONV_PATH", &[EVERY]),
    ("LOCPATH", &[EVERY]),
    ("NLSPATH", &[EVERY]),
    ("BASH_ENV", &[EVERY]),
    ("BASH_FUNC_*", &[EVERY]),
    ("BASH_LOADABLES_PATH", &[EVERY]),
    ("BASHOPTS", &[EVERY]),
    ("SHELLOPTS", &[EVERY]),
    ("PS4", &[EVERY]),
    ("ENV", &[EVERY]),
    ("IFS", &[EVERY]),
    ("GLOBIGNORE", &[EVERY]),
    ("POSIXLY_CORRECT", &[EVERY]),
    ("HOME", &[EVERY]),
    ("XDG_*", &[EVERY]),
    ("ASDF_*", &[EVERY]),
    ("MISE_*", &[EVERY]),
    ("RTX_*", &[EVERY]),
    ("CDPATH", &["cd"]),
    ("GIT_*", &["git"]),
    ("RIPGREP_*", &["rg"]),
    ("GREP_*", &["grep"]),
    ("JQ_*", &["jq"]),
    ("MAGIC", &["file"]),
    ("AWK*", &["awk", "gawk", "mawk", "nawk"]),
    ("GAWK*", &["awk", "gawk"]),
    ("MAWK*", &["awk", "mawk"]),
    ("TREE_*", &["tree"]),
    ("LS_*", &["ls", "tree", "fd"]),
    ("CARGO*", &["cargo"]),
    ("RUST*", &["cargo", "rustc"]),
    ("NODE*", &["node", "npm"]),
    ("NPM_*", &["node", "npm"]),
    ("npm_*", &["node", "npm"]),
    ("COREPACK_*", &["node", "npm"]),
    ("VOLTA_*", &["node", "npm"]),
    ("OPENSSL_*", &["node", "npm"]),
    ("PYTHON*", &["python", "python3"]),
    ("PYENV*", &["python", "python3"]),
    ("GO*", &["go"]),
    ("GCC_*", &["gcc"]),
    ("COMPILER_PATH", &["gcc"]),
    ("MAKE*", &["make"]),
];

/// An exported variable. The value is `None` where it cannot be read for certain.
pub(crate) type ExportedVariable = (String, Option<String>);

/// What `export -p` wrote. `None`: words that no shell writes there.
pub(crate) fn exported(text: &str) -> Option<Vec<ExportedVariable>> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.strip_prefix("export ").or_else(|| {
            let (flags, line) = rest.strip_prefix("declare -")?.split_once(' ')?;
            (flags.contains('x') && flags.chars().all(|c| c.is_ascii_alphabetic())).then_some(line)
        })?;
        let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(line.len());
        let name = line[..end].to_owned();
        let (value, after) = match line[end..].strip_prefix('=') {
            Some(written) => value(written)?,
            None => (Some(String::new()), &line[end..]),
        };
        if name.is_empty() {
            return None;
        }
        out.push((name, value));
        rest = match after.strip_prefix('\n') {
            Some(rest) => rest,
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(out)
}

/// One value in a shell's quotes, and what follows it.
fn value(written: &str) -> Option<(Option<String>, &str)> {
    let mut out = String::new();
    let mut certain = true;
    let mut chars = written.char_indices();
    let mut quote = None;
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None, '\n') => return Some((certain.then_some(out), &written[at..])),
            (None, '"' | '\'') => quote = Some(c),
            (None, '$') => {
                // `$'...'` has escapes of its own.
                certain = false;
                if chars.next()?.1 != '\'' {
                    return None;
                }
                loop {
                    match chars.next()?.1 {
                        '\\' => drop(chars.next()?),
                        '\'' => break,
                        _ => {}
                    }
                }
            }
            (Some(q), c) if c == q => quote = None,
            (None | Some('"'), '\\') => out.push(chars.next()?.1),
            (_, c) => {
                // A byte that is no text.
                certain &= c != char::REPLACEMENT_CHARACTER;
                out.push(c);
            }
        }
    }
    quote.is_none().then_some((certain.then_some(out), ""))
}

/// The programs that run differently because of variables which the shell did not begin with.
pub(crate) fn steered(exports: &[ExportedVariable], base: &[(String, String)]) -> Vec<String> {
    let as_begun = |name: &str, value: Option<&String>| {
        base.iter().rev().find(|(n, _)| n == name).is_some_and(|(_, v)| Some(v) == value)
    };
    let mut out = Vec::new();
    for (name, value) in exports {
        let named = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        let programs = STEERS.iter().filter(|(pattern, _)| named(pattern)).flat_map(|(_, p)| p.iter());
        if !as_begun(name, value.as_ref()) {
            out.extend(programs.map(|p| (*p).to_owned()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_read_as_shells_write_them() {
        let one = |text: &str| exported(text).map(|mut all| all.remove(0).1);
        assert_eq!(one("declare -x A=\"/a b:/c\\$d\"\n"), Some(Some("/a b:/c$d".into())));
        assert_eq!(one("export A='/a'\"'\"'/b'\n"), Some(Some("/a'/b".into())));
        assert_eq!(one("declare -x A=$'a\\n\\'b'\n"), Some(None));
        assert_eq!(one("declare -x A\n"), Some(Some(String::new())));
        assert_eq!(one("export A=1"), Some(Some("1".into())));
        for odd in
            ["A=1\n", "declare -x A=\"1\n", "declare -r A=\"1\"\n", "declare -x A=$(id)\n", "declare -x =1\n"]
        {
            assert_eq!(exported(odd), None, "{odd}");
        }
        // A value of several lines is no second variable.
        let two = "declare -x A=\"1\ndeclare -x PATH=\\\"/bin\\\"\n\"\ndeclare -ix PATH=\"/x\"\n";
        let names: Vec<_> = exported(two).unwrap().into_iter().map(|(n, v)| (n, v.unwrap())).collect();
        assert_eq!(
            names,
            [("A".to_owned(), "1\ndeclare -x PATH=\"/bin\"\n".to_owned()), ("PATH".into(), "/x".into())]
        );
    }

    #[test]
    fn what_a_shell_began_with_steers_nothing_and_what_it_was_given_later_does() {
        let base = [("GIT_PAGER".to_owned(), "cat".to_owned()), ("HOME".into(), "/h".into())];
        let by = |name: &str, value: &str| steered(&[(name.into(), Some(value.into()))], &base);
        for (name, value) in [
            ("GIT_PAGER", "cat"),
            ("HOME", "/h"),
            ("RUNNER", "x"),
            ("VIRTUAL_ENV", "x"),
            ("HOMES", "x"),
            ("ENVIRONMENT", "x"),
        ] {
            assert!(by(name, value).is_empty(), "{name}");
        }
        assert_eq!(by("GIT_PAGER", "evil"), ["git"]);
        assert_eq!(by("GIT_EXTERNAL_DIFF", "evil"), ["git"]);
        assert_eq!(by("HOME", "/w"), [EVERY]);
        assert_eq!(by("LD_PRELOAD", "/w/x.so"), [EVERY]);
        assert_eq!(by("CDPATH", "/etc"), ["cd"]);
        assert_eq!(by("RUSTUP_TOOLCHAIN", "/w"), ["cargo", "rustc"]);
        assert_eq!(steered(&[("GIT_PAGER".into(), None)], &base), ["git"], "what cannot be read is another");
    }
}
