//! Packs of skills from servers: over ssh, http and https, on this machine. What would have been asked is said.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use tiller_testkit::file_url;
use tiller_tool::shell::find_program;

use crate::common::{Place, finish, run, wait};

const SERVER: &str = include_str!("git_server.py");

fn skill(body: &str) -> String {
    format!("---\nname: deploy\ndescription: How we deploy\n---\n{body}\n")
}

/// The repository `served/team.git`, made of the folder `team`.
fn repository(place: &Place) -> PathBuf {
    place.file("team/skills/deploy/SKILL.md", &skill("Deploy it."));
    place.git(&["-C", "team", "init", "-q", "-b", "main"]);
    place.git(&["-C", "team", "add", "-A"]);
    place.git(&["-C", "team", "commit", "-qm", "one"]);
    std::fs::create_dir(place.user.join("served")).unwrap();
    let bare = place.user.join("served/team.git");
    place.git(&["clone", "-q", "--bare", "team", &bare.display().to_string()]);
    bare
}

/// A second commit in it.
fn second(place: &Place, bare: &Path) {
    place.file("team/skills/deploy/SKILL.md", &skill("Deploy it twice."));
    place.git(&["-C", "team", "commit", "-qam", "two"]);
    place.git(&["-C", "team", "push", "-q", &bare.display().to_string(), "main"]);
}

/// Installs from `url`, and updates after a second commit.
fn installs_and_updates(place: &Place, bare: &Path, url: &str) {
    let said = place.ok(&["skills", "install", url, "--yes"]);
    assert!(said.contains("team is installed"), "{said}");
    assert!(place.ok(&["skills", "show", "deploy"]).contains("Deploy it."));
    second(place, bare);
    let said = place.ok(&["skills", "update", "team", "--yes"]);
    assert!(said.contains("+Deploy it twice.") && said.contains("team is updated"), "{said}");
    assert!(place.ok(&["skills", "show", "deploy"]).contains("Deploy it twice."));
    assert!(place.ok(&["skills", "update", "team", "--yes"]).contains("up to date"));
}

/// On a terminal: it ends by itself with the reason, and asks nothing.
fn ends_on_a_terminal(place: &Place, url: &str, why: &str) {
    let mut term = place.term(&["skills", "install", url, "--name", "other", "--yes"], 100, 24);
    let screen = term.wait(why, |screen| crate::screen::words(screen).contains(why));
    assert_eq!(term.wait_exit(), 2, "{screen}");
    for asked in ["password:", "passphrase", "(yes/no", "Username for", "Password for"] {
        assert!(!screen.contains(asked), "{asked}: {screen}");
    }
}

/// A process that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An HTTP server of the folder `served`. `None`, with words, where it cannot be started.
fn http(place: &Place, certificate: Option<(&Path, &Path)>) -> Option<(Server, u16)> {
    let Some(python) = find_program("python3", &place.env) else {
        eprintln!("skipped: there is no python3");
        return None;
    };
    if run(place.program("git", &["http-backend"]), b"").stderr.contains("not a git command") {
        eprintln!("skipped: git has no http-backend");
        return None;
    }
    let shown = |path: &Path| path.display().to_string();
    let (cert, key) = certificate.map_or_else(Default::default, |(cert, key)| (shown(cert), shown(key)));
    let root = shown(&place.user.join("served"));
    let mut command = place.program(python, &["-c", SERVER, &root, &cert, &key]);
    let mut server = Server(command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap());
    let mut port = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    Some((server, port.trim().parse().unwrap()))
}

#[test]
fn a_pack_comes_over_http_from_this_machine() {
    let place = Place::new();
    let bare = repository(&place);
    let Some((_server, port)) = http(&place, None) else { return };
    installs_and_updates(&place, &bare, &format!("http://127.0.0.1:{port}/team.git"));
    let private = format!("http://127.0.0.1:{port}/private/team.git");
    ends_on_a_terminal(&place, &private, "the server asks for a name and a password");
    let missing = format!("http://127.0.0.1:{port}/nothing.git");
    ends_on_a_terminal(&place, &missing, "not found");
    // A name and a password that git has stored.
    std::fs::write(place.user.join("store"), format!("http://ann:secret@127.0.0.1%3a{port}\n")).unwrap();
    let store = format!("[credential]\n\thelper = store --file='{}'\n", place.user.join("store").display());
    std::fs::write(place.user.join(".gitconfig"), store).unwrap();
    let said = place.ok(&["skills", "install", &private, "--name", "private", "--yes"]);
    assert!(said.contains("private is installed"), "{said}");
    for entry in std::fs::read_dir(place.home.join("data")).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        assert!(!tiller_testkit::holds(&bytes, "secret"), "{}", entry.path().display());
    }
}

#[test]
fn a_pack_comes_over_https_by_a_certificate_of_the_users_git() {
    let place = Place::new();
    let bare = repository(&place);
    let (cert, key) = (place.user.join("cert.pem"), place.user.join("key.pem"));
    let shown = |path: &Path| path.display().to_string();
    let made = place.program(
        "openssl",
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            &shown(&key),
            "-out",
            &shown(&cert),
        ],
    );
    if find_program("openssl", &place.env).is_none() || run(made, b"").code != Some(0) {
        return eprintln!("skipped: no certificate can be made with openssl");
    }
    let Some((_server, port)) = http(&place, Some((&cert, &key))) else { return };
    let url = format!("https://127.0.0.1:{port}/team.git");
    ends_on_a_terminal(&place, &url, "certificate");
    let config = format!("[http \"https://127.0.0.1:{port}/\"]\n\tsslCAInfo = {}\n", cert.display());
    std::fs::write(place.user.join(".gitconfig"), config).unwrap();
    installs_and_updates(&place, &bare, &url);
}

/// An ssh server with a key of the host and one of the user, and the settings of a client. `None`, with words, where it
/// cannot be started.
fn ssh(place: &Place) -> Option<(Server, u16)> {
    let sshd = Path::new("/usr/sbin/sshd");
    let missing = ["ssh", "ssh-keygen"].into_iter().find(|name| find_program(name, &place.env).is_none());
    if !sshd.is_file() || missing.is_some() {
        eprintln!("skipped: there is no ssh server or client");
        return None;
    }
    let at = |name: &str| place.user.join(name).display().to_string();
    for name in ["host", "key"] {
        let made = place.program("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &at(name)]);
        assert_eq!(run(made, b"").code, Some(0));
    }
    std::fs::copy(at("key.pub"), at("authorized")).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let path = std::env::var("PATH").unwrap_or_default();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
         PidFile none\nPermitRootLogin yes\nSetEnv \"PATH={path}\"\n",
        at("host"),
        at("authorized")
    );
    std::fs::write(at("sshd_config"), config).unwrap();
    // Run by root it needs a folder below /run, which may be missing.
    let start = "if [ \"$(id -u)\" = 0 ] && ! [ -d /run/sshd ]; then mount -t tmpfs none /run && mkdir /run/sshd || exit 9; \
                 fi; exec /usr/sbin/sshd -D -e -f \"$1\"";
    let own = std::path::Path::new("/run/sshd").is_dir() || !rustix::process::geteuid().is_root();
    let mut command = match own {
        true => place.program("sh", &["-c", start, "sh", &at("sshd_config")]),
        false => place.program("unshare", &["-m", "sh", "-c", start, "sh", &at("sshd_config")]),
    };
    let log = std::fs::File::create(at("log")).unwrap();
    let mut server = Server(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().ok()?);
    let mut ended = None;
    wait("the ssh server", || {
        ended = server.0.try_wait().unwrap();
        ended.is_some() || TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    if ended.is_some() {
        eprintln!("skipped: the ssh server does not start: {}", std::fs::read_to_string(at("log")).unwrap());
        return None;
    }
    let host = std::fs::read_to_string(at("host.pub")).unwrap();
    std::fs::write(at("known"), format!("[127.0.0.1]:{port} {host}")).unwrap();
    let client = format!(
        "Host packs.test\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
         UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n",
        at("key"),
        at("known")
    );
    std::fs::write(at("ssh_config"), client).unwrap();
    // The name of the user of this machine, whatever stands before the host.
    let user = run(place.program("id", &["-un"]), b"").stdout;
    let git = format!("[core]\n\tsshCommand = ssh -F {} -l {}\n", at("ssh_config"), user.trim());
    std::fs::write(place.user.join(".gitconfig"), git).unwrap();
    std::fs::set_permissions(at("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    Some((server, port))
}

#[test]
fn a_pack_comes_over_ssh_and_nothing_is_asked() {
    let place = Place::new();
    let bare = repository(&place);
    let Some((_server, port)) = ssh(&place) else { return };
    let short = format!("git@packs.test:{}", bare.display());
    let url = file_url(&bare).replace("file://", "ssh://packs.test");
    installs_and_updates(&place, &bare, &url);
    let said = place.ok(&["skills", "install", &short, "--name", "short", "--yes"]);
    assert!(said.contains("short is installed"), "{said}");
    // A host that is not known, and one with another key.
    let known = place.user.join("known");
    let right = std::fs::read_to_string(&known).unwrap();
    std::fs::write(&known, "").unwrap();
    ends_on_a_terminal(&place, &url, "the key of the server is not known");
    let own = std::fs::read_to_string(place.user.join("key.pub")).unwrap();
    std::fs::write(&known, format!("[127.0.0.1]:{port} {own}")).unwrap();
    ends_on_a_terminal(&place, &url, "is another one than before");
    std::fs::write(&known, right).unwrap();
    // A key that the server does not accept, and one that is locked.
    std::fs::write(place.user.join("authorized"), "").unwrap();
    ends_on_a_terminal(&place, &url, "does not accept a key of yours");
    let lock = ["-q", "-p", "-N", "a secret", "-P", "", "-f"];
    let key = place.user.join("key").display().to_string();
    assert_eq!(run(place.program("ssh-keygen", &[&lock[..], &[&key]].concat()), b"").code, Some(0));
    ends_on_a_terminal(&place, &url, "does not accept a key of yours");
    // Of a person's own settings nothing was written.
    assert_eq!(std::fs::read_to_string(&known).unwrap().lines().count(), 1);
}

/// Ctrl-C ends an update in an orderly way also after another pack was looked at.
#[test]
fn an_update_that_is_interrupted_leaves_no_temporary_files() {
    let mut place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for name in ["first", "second"] {
        place.file(&format!("{name}/skills/{name}/SKILL.md"), &skill("It.").replace("deploy", name));
        place.ok(&["skills", "install", name, "--yes"]);
    }
    // The second one is from a server that says nothing.
    let lock = place.home.join("data/skill-packs.json");
    let mut packs: serde_json::Value = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
    let url = format!("http://127.0.0.1:{}/second.git", listener.local_addr().unwrap().port());
    packs["packs"][1]["origin"]["source"] = url.into();
    std::fs::write(&lock, packs.to_string()).unwrap();
    let temporary = place.user.join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    place.set("TMPDIR", &temporary.display().to_string());
    let mut command = place.tiller(&["skills", "update", "--yes"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stream, _) = listener.accept().unwrap();
    crate::common::signal(child.id(), rustix::process::Signal::INT);
    let out = finish(child);
    assert!(out.code == Some(130) && out.stdout.contains("first is up to date"), "{out:?}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    drop(stream);
}

/// A server that says nothing does not hold Ctrl-C.
#[test]
fn a_silent_server_is_left_at_once() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/team.git", listener.local_addr().unwrap().port());
    let mut command = place.tiller(&["skills", "install", &url, "--yes"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stream, _) = listener.accept().unwrap();
    crate::common::signal(child.id(), rustix::process::Signal::INT);
    let out = finish(child);
    assert!(out.code == Some(130) || out.stderr.contains("stopped"), "{out:?}");
    drop(stream);
}
