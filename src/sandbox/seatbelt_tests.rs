//! The text of profiles, compared whole. No Mac has run them.

use super::*;
use crate::policy::ProxyPort;

/// Names that would end a string, a rule or a pattern, if they were part of the text.
const HOSTILE: &str = "a \"b\\c\n(allow default) #\"d'.*[";

/// A workspace of this name with a repository, and a home with a secret, below a folder whose name is cut off in texts.
struct World {
    _tmp: tempfile::TempDir,
    top: PathBuf,
    work: PathBuf,
}

impl World {
    fn new(name: &str) -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        let work = top.join(name);
        for folder in [work.join(".git/hooks"), top.join("scratch"), top.join("home/.ssh")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(work.join(".git/config"), "[core]\n").unwrap();
        Self { _tmp: tmp, top, work }
    }

    /// With two protected names and one hidden folder.
    fn policy(&self, profile: Profile) -> Policy {
        let mut policy = Policy::new(profile, &self.work, &self.top.join("scratch"), None);
        policy.protected = vec![".git/hooks".into(), ".envrc".into()];
        policy.hidden = vec![self.top.join("home/.ssh")];
        policy
    }

    /// The text with short names of folders in its patterns, and the paths of the parameters.
    fn profile(&self, policy: &Policy) -> (String, Vec<String>) {
        let profile = SeatbeltProfile::new(policy).unwrap();
        let top = self.top.to_str().unwrap();
        let names: Vec<_> = (0..profile.parameters.len()).map(|n| format!("P{n}")).collect();
        assert_eq!(
            profile.parameters.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            names.iter().collect::<Vec<_>>()
        );
        let paths = profile.parameters.iter().map(|(_, path)| path.replace(top, "")).collect();
        let text = profile.text.strip_prefix("(version 1)\n").unwrap();
        (text.replace(BASE, "BASE\n").replace(&pattern(top), ""), paths)
    }
}

#[test]
fn what_only_reads_writes_in_its_scratch_folder() {
    let world = World::new("work");
    let mut policy = world.policy(Profile::Read);
    // Each machine has others.
    policy.hidden.push(world.work.join(".git/hooks"));
    let (text, paths) = world.profile(&policy);
    let system = paths.iter().filter(|path| ["/usr", "/etc", "/bin"].contains(&path.as_str())).count();
    assert!(system > 0, "{paths:?}");
    let named =
        |path: &str| paths.iter().position(|p| p == path).map(|n| format!("(subpath (param \"P{n}\"))"));
    assert!(
        text.starts_with(
            "(deny default)\nBASE\n(allow file-read-metadata)\n(allow file-read* (literal \"/\")"
        ),
        "{text}"
    );
    for (rule, path) in [
        ("allow file-read*", "/work"),
        ("allow file-read*", "/scratch"),
        ("allow file-write*", "/scratch"),
        ("deny file-read* file-write*", "/work/.git/hooks"),
    ] {
        let line = format!("({rule} {})\n", named(path).unwrap());
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert!(named("/home/.ssh").is_none() && !text.contains("(allow file-read*)"), "{text}");
}

#[test]
fn what_works_writes_in_the_workspace_but_not_what_is_protected() {
    let world = World::new("work");
    let (text, paths) = world.profile(&world.policy(Profile::Workspace));
    let expected = "(deny default)\nBASE\n(allow file-read*)\n\
                    (allow file-write* (subpath (param \"P0\")))\n\
                    (allow file-write* (subpath (param \"P1\")))\n\
                    (deny file-write* (subpath (param \"P2\")))\n\
                    (deny file-write* (regex #\"^/[wW][oO][rR][kK]/\\.[eE][nN][vV][rR][cC](/|$)\"))\n\
                    (deny file-write* (subpath (param \"P3\")))\n\
                    (deny file-write* (regex #\"^/[wW][oO][rR][kK]/\\.[gG][iI][tT]/[hH][oO][oO][kK][sS](/|$)\"))\n\
                    (deny file-write-unlink (literal (param \"P1\")))\n\
                    (deny file-write-unlink (literal (param \"P4\")))\n\
                    (deny file-read* file-write* (subpath (param \"P5\")))\n";
    assert_eq!(text, expected);
    assert_eq!(paths, ["/scratch", "/work", "/work/.envrc", "/work/.git/hooks", "/work/.git", "/home/.ssh"]);
}

#[test]
fn outside_the_sandbox_only_protected_names_are_denied() {
    let world = World::new("work");
    let (text, paths) = world.profile(&world.policy(Profile::Floor));
    assert!(text.starts_with("(allow default)\n(deny file-write* (subpath (param \"P0\")))\n"), "{text}");
    assert!(!text.contains("file-read") && !text.contains("BASE"), "{text}");
    assert!(paths.contains(&"/work/.git/hooks".to_owned()) && !paths.contains(&"/home/.ssh".to_owned()));
    let policy = Policy { profile: Profile::Off, ..world.policy(Profile::Off) };
    assert_eq!(world.profile(&policy), ("(allow default)\n".to_owned(), Vec::new()));
}

#[test]
fn names_of_folders_are_no_part_of_the_text() {
    let world = World::new(HOSTILE);
    let mut policy = world.policy(Profile::Workspace);
    policy.hidden.push(world.top.join("home"));
    let (text, paths) = world.profile(&policy);
    // The same rules as for a harmless name, and nothing of this one but letters.
    let harmless = World::new("work");
    let mut other = harmless.policy(Profile::Workspace);
    other.hidden.push(harmless.top.join("home"));
    let (known, _) = harmless.profile(&other);
    assert_eq!(text.lines().count(), known.lines().count(), "{text}");
    for (line, known) in text.lines().zip(known.lines()).filter(|(line, _)| !line.contains("regex #\"^/[")) {
        assert_eq!(line, known);
    }
    let all = "/[aA][^/]*[bB][^/]*[cC][^/]*[aA][lL][lL][oO][wW][^/]*[dD][eE][fF][aA][uU][lL][tT][^/]*[dD][^/]*\\.[^/]*/\\.[eE]";
    assert!(text.contains(&format!("(regex #\"^{all}")), "{text}");
    assert_eq!(paths[1], format!("/{HOSTILE}"));
    let launch = Launch {
        program: "/bin/echo".into(),
        args: vec!["-p".into(), HOSTILE.into()],
        env: vec![("A".into(), "b".into())],
        folder: world.work,
    };
    let started = confined(&policy, &launch).unwrap();
    assert_eq!((started.program.as_path(), started.args[0].as_str()), (Path::new(PROGRAM), "-p"));
    assert_eq!(started.args[started.args.len() - 3..], ["/bin/echo", "-p", HOSTILE]);
    assert_eq!((started.env, started.folder), (launch.env, launch.folder));
}

#[test]
fn the_network_is_off_unless_the_policy_opens_it() {
    let world = World::new("work");
    let network = |network, proxy_port| {
        let policy = Policy { network, proxy_port, ..world.policy(Profile::Workspace) };
        world
            .profile(&policy)
            .0
            .lines()
            .filter(|line| line.contains("network"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(network(Network::Off, None), [""; 0]);
    let own = network(Network::Loopback, None);
    assert!(own.len() == 2 && own.iter().all(|line| line.contains("(local ip \"localhost:*\")")), "{own:?}");
    assert_eq!(network(Network::Domains, None), own, "without a proxy");
    let proxy = network(Network::Domains, Some(ProxyPort { port: 3129, inode: 1 }));
    assert_eq!(proxy[2..], ["(allow network-outbound (remote ip \"localhost:3129\"))"]);
    let all = network(Network::All, None);
    let at = |words: &str| all.iter().position(|line| line.contains(words)).unwrap();
    assert!(at("(allow network*)") < at("(deny network-outbound (subpath \"/\"))"), "{all:?}");
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_text_confines_nothing_by_half() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new("work");
    let mut policy = world.policy(Profile::Workspace);
    let odd = world.top.join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::create_dir(&odd).unwrap();
    policy.hidden.push(odd);
    assert_eq!(SeatbeltProfile::new(&policy), None);
}
