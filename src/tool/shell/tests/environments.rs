//! Row T8 of the fault matrix: environments as machines, containers and logins have them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use super::*;

/// One environment: its variables, over a usual one. `-`: without the variable. `{}` stands for a folder that holds what
/// [`place`] makes.
const ENVIRONMENTS: &[&[(&str, &str)]] = &[
    &[],
    // Locales that this machine lacks, as ssh hands them over.
    &[("LC_ALL", "en_US.UTF-8")],
    &[("LC_ALL", "de_DE@euro")],
    &[("LC_ALL", "")],
    &[("LC_ALL", "nonsense/../x")],
    &[("LC_ALL", "C")],
    &[("LC_ALL", "POSIX")],
    &[("LC_CTYPE", "UTF-8")],
    &[("LC_CTYPE", "xx_YY"), ("LANG", "xx_YY")],
    &[("LC_MESSAGES", "fr_FR.UTF-8"), ("LC_COLLATE", "fr_FR.UTF-8"), ("LC_NUMERIC", "fr_FR.UTF-8")],
    &[("LANG", "-")],
    &[("LANG", "ja_JP.SJIS"), ("LANGUAGE", "ja:de:")],
    // Folders.
    &[("TMPDIR", "/nonexistent/tmp")],
    &[("TMPDIR", "{}/file")],
    &[("TMPDIR", "{}/locked")],
    &[("TMPDIR", "relative")],
    &[("TMPDIR", "")],
    &[("TMPDIR", "{}/a b\n$(touch x)")],
    &[("HOME", "-")],
    &[("HOME", "")],
    &[("HOME", "/nonexistent")],
    &[("HOME", "{}/file")],
    &[("HOME", "{}/locked")],
    &[("HOME", "relative")],
    &[("HOME", "{}/a b\n$(touch x)")],
    &[("PWD", "/nonexistent"), ("OLDPWD", "/nonexistent")],
    &[("XDG_RUNTIME_DIR", "/nonexistent"), ("XDG_CONFIG_HOME", "{}/file"), ("XDG_CACHE_HOME", "")],
    // Search paths.
    &[("PATH", "/nonexistent:/usr/bin:/bin")],
    &[("PATH", ":/usr/bin:/bin:")],
    &[("PATH", ".:/usr/bin:/bin")],
    &[("PATH", "{}/file:/usr/bin:/bin")],
    &[("PATH", "{}/broken:/usr/bin:/bin")],
    &[("PATH", "{}/loud:/usr/bin:/bin")],
    &[("PATH", "{}/sh:/usr/bin")],
    &[("CDPATH", "/:/usr")],
    // Files that shells read, and that print.
    &[("BASH_ENV", "{}/banner")],
    &[("BASH_ENV", "{}/fails")],
    &[("BASH_ENV", "/nonexistent")],
    &[("BASH_ENV", "{}/background")],
    &[("ENV", "{}/banner")],
    &[("ENV", "$(echo banner >&2)")],
    &[("SHELL", "/nonexistent")],
    &[("SHELL", "/bin/false")],
    &[("SHELL", "")],
    // Options and variables of shells.
    &[("SHELLOPTS", "xtrace")],
    &[("SHELLOPTS", "errexit:nounset")],
    &[("SHELLOPTS", "posix")],
    &[("BASHOPTS", "failglob:nullglob")],
    &[("POSIXLY_CORRECT", "1")],
    &[("PS4", "$(echo x >&2)"), ("PROMPT_COMMAND", "echo x"), ("PS1", "> ")],
    &[("IFS", "abcdefgh0123456789")],
    &[("GLOBIGNORE", "*")],
    &[("BASH_XTRACEFD", "2")],
    &[("BASH_COMPAT", "99.9")],
    &[("BASH_FUNC_printf%%", "() { echo function; }")],
    &[("BASH_FUNC_broken%%", "() { echo function; ")],
    &[("__tiller_out", "/dev/full"), ("__tiller_with", "x"), ("__tiller_st", "7")],
    &[("TILLER_CHILD", "another")],
    // Libraries, terminals, time.
    &[("LD_PRELOAD", "/nonexistent.so")],
    &[("LD_LIBRARY_PATH", "/nonexistent:{}/file")],
    &[("MALLOC_CHECK_", "3"), ("MALLOC_PERTURB_", "165")],
    &[("TERM", "-")],
    &[("TERM", "no-such-terminal"), ("COLUMNS", "-7"), ("LINES", "x")],
    &[("TZ", "Nowhere/City")],
    &[("LONG", "{long}")],
];

fn place() -> tempfile::TempDir {
    let tmp = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str, mode: u32| {
        let path = tmp.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    write("file", "", 0o644);
    write("banner", "echo Welcome; echo Welcome >&2; printf 'r 0 1\\n/evil\\0\\0\\0' >&2\n", 0o644);
    write("fails", "echo oops >&2; no-such-program; false\n", 0o644);
    write("background", "(sleep 0.2; echo late >&2) &\n", 0o644);
    // No program.
    write("broken/sh", "", 0o644);
    write("loud/uname", "#!/bin/sh\necho loud >&2\n", 0o755);
    let locked = tmp.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(locked, std::fs::Permissions::from_mode(0o500)).unwrap();
    std::fs::create_dir(tmp.path().join("sh")).unwrap();
    for program in ["sh", "sleep"] {
        let link = tmp.path().join("sh").join(program);
        std::os::unix::fs::symlink(format!("/bin/{program}"), link).unwrap();
    }
    tmp
}

fn environment(base: &[(String, String)], over: &[(&str, &str)], place: &Path) -> Vec<(String, String)> {
    let mut all = base.to_vec();
    for (name, value) in over {
        all.retain(|(known, _)| known != name);
        let value = value.replace("{}", &place.display().to_string()).replace("{long}", &"x".repeat(60_000));
        if value != "-" {
            all.push(((*name).to_owned(), value));
        }
    }
    all
}

#[tokio::test]
async fn t8_commands_run_in_every_environment() {
    let place = place();
    for shell in ["", "sh"] {
        for over in ENVIRONMENTS {
            let mut b = bench();
            let mut all = environment(&b.cx.child_env, over, place.path());
            if shell == "sh" && !over.iter().any(|(name, _)| *name == "PATH") {
                // No bash is found here.
                let path = place.path().join("sh").display().to_string();
                all.retain(|(name, _)| name != "PATH");
                all.push(("PATH".into(), path));
            }
            b.cx.child_env = Arc::new(all);
            // A note may follow where another test of this process holds the output for a moment.
            let said = sh(&b, "echo hi").await;
            assert_eq!(said.lines().next(), Some("hi"), "{over:?}");
            let twice = sh(&b, "x=1; false || echo \"again $x\"").await;
            assert_eq!(twice.lines().next(), Some("again 1"), "{over:?}");
            let late = over.iter().any(|(_, value)| value.ends_with("background"));
            let last = sh(&b, if late { "sleep 0.3; (exit 3)" } else { "(exit 3)" }).await;
            assert_eq!(last.lines().next(), Some("[exit 3]"), "{over:?}");
        }
    }
}
