//! Files of git's configuration, before and after a command: whether a change may stay.

use super::git_keys::git_setting_runs_program;

/// A setting: its key, section and name in lower case, and its value; empty where it has none.
type Setting = (String, String);

/// Whether a change of a file of git's configuration sets nothing by which git runs a program, or is led elsewhere.
/// Settings that are gone do not count.
///
/// # Errors
/// The first key that does; other words when the new file cannot be read: what git may understand in another way does not
/// stay.
pub fn check_git_change(before: &[u8], after: &[u8]) -> Result<(), String> {
    check_git_change_but(before, after, |_, _| false).map_err(|refused| refused.key)
}

/// A change of a file of git's configuration that may not stay as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedGitChange {
    /// The first key by which git would run a program; other words when the file cannot be read.
    pub key: String,
    /// The changed file without all such settings. `None`: it cannot be read.
    pub harmless: Option<String>,
}

/// The same as [`check_git_change`]. A setting for which `passes` says so, by its key and value, is taken for harmless.
///
/// # Errors
/// When something else makes git run a program.
pub fn check_git_change_but(
    before: &[u8],
    after: &[u8],
    passes: impl Fn(&str, &str) -> bool,
) -> Result<(), RefusedGitChange> {
    let read = |text: &[u8]| settings(std::str::from_utf8(text).ok()?);
    let runs = |(key, value): &Setting| git_setting_runs_program(key, value) && !passes(key, value);
    // Of an older file that cannot be read nothing is known, so nothing of it counts as known.
    let known: Vec<Setting> = read(before).unwrap_or_default().into_iter().filter(runs).collect();
    let Some(now) = read(after) else {
        return Err(RefusedGitChange { key: "something unreadable".into(), harmless: None });
    };
    // The last value counts: the order must be the same.
    let mut left = &known[..];
    let mut was_there = |setting: &Setting| {
        let at = left.iter().position(|old| old == setting);
        left = at.map_or(left, |at| &left[at + 1..]);
        at.is_some()
    };
    let (kept, refused): (Vec<Setting>, Vec<Setting>) =
        now.into_iter().partition(|setting| !runs(setting) || was_there(setting));
    let Some((key, _)) = refused.first() else { return Ok(()) };
    let key = key.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    Err(RefusedGitChange { key, harmless: Some(kept.iter().map(line).collect()) })
}

/// A setting with its section, as git reads it.
fn line((key, value): &Setting) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let (section, name) = key.split_once('.').unwrap_or(("", key));
    let section = match name.rsplit_once('.') {
        Some((of, _)) => format!("[{section} \"{}\"]", quoted(of)),
        None => format!("[{section}]"),
    };
    let name = name.rsplit('.').next().unwrap_or_default();
    let value = quoted(value).replace('\n', "\\n").replace('\t', "\\t").replace('\u{8}', "\\b");
    format!("{section}\n\t{name} = \"{value}\"\n")
}

/// All settings in their order. `None`: git refuses the file, or might read it differently.
fn settings(text: &str) -> Option<Vec<Setting>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    if text.contains(['\r', '\0']) {
        return None;
    }
    let mut chars = text.chars().peekable();
    let (mut section, mut all) = (None, Vec::new());
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => {}
            '#' | ';' => while chars.next_if(|c| *c != '\n').is_some() {},
            '[' => section = Some(header(&mut chars)?),
            c if c.is_ascii_alphabetic() => {
                let mut key = format!("{}.{}", section.as_ref()?, c.to_ascii_lowercase());
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
                    key.push(c.to_ascii_lowercase());
                }
                while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
                let value = match chars.next() {
                    None | Some('\n') => String::new(),
                    Some('=') => value(&mut chars)?,
                    Some(_) => return None,
                };
                all.push((key, value));
            }
            _ => return None,
        }
    }
    Some(all)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The name of a section, after its bracket: `[a]`, `[a.b]`, `[a "B"]`.
fn header(chars: &mut Chars<'_>) -> Option<String> {
    let mut name = String::new();
    loop {
        match chars.next()? {
            ']' if !name.is_empty() => return Some(name),
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => name.push(c.to_ascii_lowercase()),
            ' ' | '\t' if !name.is_empty() => break,
            _ => return None,
        }
    }
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    if chars.next()? != '"' {
        return None;
    }
    name.push('.');
    loop {
        match chars.next()? {
            '"' => break,
            '\n' => return None,
            '\\' => match chars.next()? {
                '\n' => return None,
                c => name.push(c),
            },
            c => name.push(c),
        }
    }
    (chars.next()? == ']').then_some(name)
}

/// The value after `=`, to the end of its last line.
fn value(chars: &mut Chars<'_>) -> Option<String> {
    let (mut value, mut space, mut quoted) = (String::new(), String::new(), false);
    loop {
        match chars.next() {
            None | Some('\n') => return (!quoted).then_some(value),
            Some(c @ (' ' | '\t')) if !quoted => {
                if !value.is_empty() {
                    space.push(c);
                }
                continue;
            }
            Some('#' | ';') if !quoted => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            Some('"') => {
                quoted = !quoted;
                value.push_str(&std::mem::take(&mut space));
            }
            Some('\\') => {
                let c = match chars.next()? {
                    '\n' => continue,
                    't' => '\t',
                    'b' => '\u{8}',
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    _ => return None,
                };
                value.push_str(&std::mem::take(&mut space));
                value.push(c);
            }
            Some(c) => {
                value.push_str(&std::mem::take(&mut space));
                value.push(c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Stdio;

    use super::*;

    const BEFORE: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";

    #[test]
    fn what_everyday_commands_of_git_write_may_stay() {
        for added in [
            "[remote \"origin\"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
            "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\trebase = true\n",
            "[user]\n\tname = \"A; B\" # x\n\temail = a@b.c\n",
            "[submodule \"lib\"]\n\turl = https://example.org/lib\n\tactive = true\n",
            "[remote \"a.b\"]\n\turl = /srv/c:d/e\n\tgh-resolved = base\n[pull]\n\trebase\n[merge]\n\tff = only\n",
            "[lfs]\n\trepositoryformatversion = 0\n[lfs \"https://example.org/x.git/info/lfs\"]\n\taccess = basic\n",
            "[extensions]\n\tworktreeConfig = true\n[http]\n\tpostBuffer = 1\n[merge]\nconflictStyle = zdiff3\n",
        ] {
            assert_eq!(
                check_git_change(BEFORE.as_bytes(), format!("{BEFORE}{added}").as_bytes()),
                Ok(()),
                "{added}"
            );
        }
        assert_eq!(
            check_git_change(b"[alias]\n\tx = !y\n[a]\nb = c\n", b"[a]\n\tb = d\n"),
            Ok(()),
            "it is gone"
        );
    }

    #[test]
    fn what_makes_git_run_programs_may_not() {
        for (added, key) in [
            ("[core]\n\tfsmonitor = x\n", "core.fsmonitor"),
            ("[CORE] hooksPath=x", "core.hookspath"),
            ("[core]\n\tfsmoni\\\ntor = x\n", ""),
            ("[core]\n\tbare = f\\\nalse\n\tsshCommand = \"x\"\n", "core.sshcommand"),
            ("[a]\n\tb = c # \\\n[core]\n\teditor = x\n", "core.editor"),
            ("[a \"[core]\\\"\"]\n\tb = \"c\\\n\n", ""),
            ("[alias]\n\tst = status\n", "alias.st"),
            ("[filter \"X\"]\n\tclean = x\n", "filter.X.clean"),
            ("[diff \"x.y\"]\n\ttextconv = x\n", "diff.x.y.textconv"),
            ("[merge \"x\"]\n\tdriver = x\n", "merge.x.driver"),
            ("[include]\n\tpath = x\n", "include.path"),
            ("[includeIf \"gitdir:/\"]\n\tpath = x\n", "includeif.gitdir:/.path"),
            ("[remote \"o\"]\n\turl = ext::sh -c x\n", "remote.o.url"),
            ("[remote \"o\"]\n\tuploadpack = x\n", "remote.o.uploadpack"),
            ("[remote \"o\"]\n\tvcs = x\n", "remote.o.vcs"),
            ("[branch \"m\"]\n\tremote = ext::sh -c x\n", "branch.m.remote"),
            ("[submodule \"s\"]\n\tupdate = !x\n", "submodule.s.update"),
            ("[url \"ext::x \"]\n\tinsteadOf = https://\n", "url.ext::x .insteadof"),
            ("[credential]\n\thelper = x\n", "credential.helper"),
            ("[protocol \"ext\"]\n\tallow = always\n", "protocol.ext.allow"),
            ("[http \"https://x\"]\n\tproxy = x\n", "http.https://x.proxy"),
            ("[http]\n\tsslVerify = false\n", "http.sslverify"),
            ("[gpg]\n\tprogram = x\n", "gpg.program"),
            ("[svn]\n\tauthorsProg = x\n", "svn.authorsprog"),
            ("x\n[core", ""),
            ("[core]\n\tbare = \"\n", ""),
            ("[core]\r\tfsmonitor = x\n", ""),
            ("[core]\n\tbare = \\q\n", ""),
        ] {
            let refused = check_git_change(BEFORE.as_bytes(), format!("{BEFORE}{added}").as_bytes());
            let expected = if key.is_empty() { "something unreadable" } else { key };
            assert_eq!(refused, Err(expected.to_owned()), "{added}");
        }
    }

    #[test]
    fn what_was_there_may_stay_as_it_was() {
        let before = "[core]\n\tpager = a\n\tpager = b\n\teditor = c\n";
        let same = format!("{before}[user]\n\tname = x\n");
        assert_eq!(check_git_change(before.as_bytes(), same.as_bytes()), Ok(()));
        assert_eq!(check_git_change(before.as_bytes(), b"[core]\n\tpager = b\n\teditor = c\n"), Ok(()));
        for after in [
            "[core]\n\tpager = b\n\tpager = a\n",
            "[core]\n\tpager = a\n\tpager = a\n",
            "[core]\n\teditor = d\n",
        ] {
            assert!(check_git_change(before.as_bytes(), after.as_bytes()).is_err(), "{after}");
        }
        assert_eq!(check_git_change(b"[", b"[core]\n\tpager = a\n"), Err("core.pager".into()));
    }

    #[test]
    fn what_is_harmless_is_left_as_it_was() {
        let text = "[core]\n\tbare = false\n\tfsmonitor = x\n\tworktree = ../a\n[Remote \"o.\\\"p\"]\n\turl = \"a \\\\ b\"\n\
                    \tfetch = +refs/*:refs/*\n\tvcs = x\n[user]\n\tname = \"A \\\"B\\\" # c\\n\\t\"\n";
        let refused =
            check_git_change_but(b"", text.as_bytes(), |key, _| key == "core.worktree").unwrap_err();
        assert_eq!(refused.key, "core.fsmonitor");
        let mut expected = settings(text).unwrap();
        expected.retain(|(key, _)| key != "core.fsmonitor" && !key.ends_with(".vcs"));
        assert_eq!(settings(&refused.harmless.unwrap()).unwrap(), expected);
        let known =
            check_git_change_but(b"[core]\nfsmonitor = x\n", text.as_bytes(), |_, _| false).unwrap_err();
        assert_eq!(known.key, "core.worktree");
        assert!(known.harmless.unwrap().contains("fsmonitor"), "it was there");
        assert_eq!(check_git_change_but(b"", b"[", |_, _| true).unwrap_err().harmless, None);
    }

    /// Each file that is understood here must say the same to git.
    #[test]
    fn git_reads_the_same() {
        for text in [
            "[a]b=c\n[a \"x\\\"y\\\\ z\"] d = \"e  f\" g ; h\n\tlong = one \\\n two\n\tflag\n",
            "[A.B]\n\tX-y = \"#\" # no\n;c\n\tz = \\t\\\"q\\\" \n",
            "\u{feff}[a]\r\n\tb = c\r\n\td = e # f \\\n\tg = h\r\n",
            "[a]\n\tb = \"c\nd\"\n",
            "[a]\n\tb c = d\n",
            "[a \"b\" ]\n\tc = d\n",
            "[ a]\n\tb = c\n",
            "[a]\n\tb = c",
            "[a]\n[a \"\"]\n\tb = \"  \"\n",
            "[a]\n\tb = x\"y  z\"w\n\t1b = c\n",
        ] {
            let mut git = std::process::Command::new("git");
            git.args(["config", "--list", "-z", "--file", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let Ok(mut git) = git.stderr(Stdio::null()).spawn() else {
                println!("skipped: there is no git");
                return;
            };
            git.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let out = git.wait_with_output().unwrap();
            let theirs: Vec<Setting> = String::from_utf8(out.stdout)
                .unwrap()
                .split_terminator('\0')
                .map(|line| line.split_once('\n').unwrap_or((line, "")))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            match settings(text) {
                Some(own) => assert_eq!((own, true), (theirs, out.status.success()), "{text}"),
                None => assert!(!out.status.success(), "{text}: {theirs:?}"),
            }
        }
    }
}
