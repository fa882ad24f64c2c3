//! Real commands in the sandbox, in each way that this machine has.

use super::*;
use crate::testing::{Place, methods};

/// Each script must fail in this profile, and each of the others must work.
fn check(profile: Profile, works: &[&str], fails: &[&str]) {
    for method in methods() {
        let place = Place::new();
        let confined = place.confined(profile, method);
        for script in works {
            let out = place.run(&confined, script);
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.success(), "{method:?}: {script}: {said}");
        }
        for script in fails {
            let out = place.run(&confined, script);
            assert!(!out.status.success(), "{method:?} let through: {script}");
        }
        let outside: Vec<_> = std::fs::read_dir(place.top.join("outside")).unwrap().collect();
        assert_eq!(outside.len(), 1, "{method:?}: {outside:?}");
        assert_eq!(std::fs::read_to_string(place.top.join("outside/old")).unwrap(), "old");
    }
}

#[test]
fn a_reading_command_reads_and_writes_only_its_scratch_folder() {
    check(
        Profile::Read,
        &[
            "cat ../outside/old .git/config && ls / >/dev/null",
            "echo x > $TMPDIR/x && cat $TMPDIR/x >&2 2>/dev/null",
            "echo x | cat > /dev/null",
            "(sleep 0 & wait)",
        ],
        &[
            "echo x > here",
            "echo x > ../outside/new",
            "echo x >> ../outside/old",
            "rm ../outside/old",
            "mv ../outside/old ../outside/moved",
            "chmod 777 ../outside/old",
            "touch ../outside/old",
            "ln -s /etc/passwd link",
            "cat ../home/.ssh/key",
            "cat /etc/shadow",
        ],
    );
}

#[test]
fn a_working_command_writes_in_the_workspace_only() {
    check(
        Profile::Workspace,
        &[
            "echo x > here && mkdir d && mv here d/ && ln d/here e && chmod +x e && rm -r d e",
            "echo x > $TMPDIR/x",
        ],
        &[
            "echo x > ../outside/new",
            "ln -s ../outside/old l && echo x > l",
            "mkdir ../outside/d",
            "mv .git/config ../outside/config",
            "cat ../home/.ssh/key",
            "ln ../outside/old hard && echo x > hard",
        ],
    );
}

#[test]
fn nothing_of_the_policy_is_left_in_the_command() {
    for method in methods() {
        let place = Place::new();
        let confined = place.confined(Profile::Read, method);
        let out = place
            .run(&confined, "tr '\\0' '\\n' < /proc/self/cmdline; env; cat /proc/$$/cmdline | tr '\\0' ' '");
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{method:?}");
        assert!(!said.contains("\"profile\"") && !said.contains(MARK), "{method:?}: {said}");
    }
}

#[test]
fn bubblewrap_keeps_protected_names_in_place() {
    for method in methods().into_iter().filter(|method| *method == Method::Bubblewrap) {
        let place = Place::new();
        let confined = place.confined(Profile::Workspace, method);
        for script in
            ["echo x > .git/hooks/pre-commit", "echo x >> .git/config", "mv .git moved", "rm .git/config"]
        {
            assert!(!place.run(&confined, script).status.success(), "{script}");
        }
        assert!(
            place.run(&confined, "echo x > .git/HEAD").status.success(),
            "the rest of .git is written by commits"
        );
    }
}

#[test]
fn a_system_without_a_sandbox_runs_nothing() {
    let found = Confinement::default();
    assert_eq!(Method::choose(&found, Profile::Read), None);
    assert!(!found.available());
}

/// The self-test holds what the ways of confining promise here.
#[test]
fn the_self_test_names_what_is_held() {
    use crate::probe::{Capability, Held, test};
    for method in methods() {
        let results = test(method, &crate::testing::launcher());
        println!("{method:?}: {results:?}");
        assert_eq!(results.len(), Capability::ALL.len());
        for (capability, held) in results {
            let gap = method == Method::Landlock
                && (matches!(capability, Capability::Protected | Capability::WriteOutside)
                    || Confinement::find().landlock < 6);
            let ok = matches!(held, Held::Yes | Held::Unknown(_)) || gap;
            assert!(ok, "{method:?}: {capability:?}: {held:?}");
        }
    }
}

/// A probe that nothing stops must say so, or the self-test would show nothing.
#[test]
fn the_self_test_fails_without_a_sandbox() {
    use crate::probe::{Capability, Held};
    for method in methods().into_iter().filter(|method| *method == Method::Landlock) {
        let results = crate::probe::test_off(method, &crate::testing::launcher());
        for (capability, held) in results {
            // Systems may refuse these two to everybody; a tool of the system says so.
            let asked: &[&str] = match capability {
                Capability::Namespaces => &["unshare", "-U", "true"],
                Capability::Keyring => &["keyctl", "show", "@s"],
                _ => &["true"],
            };
            let works = std::process::Command::new(asked[0]).args(&asked[1..]).output();
            let works = works.is_ok_and(|out| out.status.success());
            assert!(matches!(held, Held::No(_)) || !works, "{capability:?}: {held:?}");
        }
    }
}
