//! A real `sshd` on loopback, with keys and a port of its own.

use super::*;
use std::net::TcpListener;
use std::process::{Child, Stdio};

pub(super) struct Server {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn key(path: &Path) {
    let _ = std::fs::remove_file(path);
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status().unwrap();
    assert!(made.success());
}

/// `None`: it has ended, since another program has taken the port.
fn start(folder: &Path) -> Option<Child> {
    let mut server = Command::new("/usr/sbin/sshd");
    server
        .args(["-D", "-e", "-f"])
        .arg(folder.join("sshd_config"))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut child = server.stderr(std::fs::File::create(folder.join("log")).unwrap()).spawn().unwrap();
    let log = || std::fs::read_to_string(folder.join("log")).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while !log().contains("Server listening on") {
        assert!(Instant::now() < end, "{}", log());
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Some(child)
}

/// `None`: why there is none.
fn serve(there: &Path) -> Option<Server> {
    if !Path::new("/usr/sbin/sshd").exists() {
        eprintln!("skipped: no sshd here (Debian: openssh-server)");
        return None;
    }
    let folder = there.to_owned();
    std::fs::create_dir_all(&folder).unwrap();
    key(&folder.join("host"));
    key(&folder.join("id"));
    std::fs::copy(folder.join("id.pub"), folder.join("authorized")).unwrap();
    let _ = std::fs::create_dir("/run/sshd");
    std::fs::create_dir_all(folder.join("home")).unwrap();
    for _ in 0..10 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::fs::write(folder.join("sshd_config"), config(&folder, port)).unwrap();
        if let Some(child) = start(&folder) {
            return Some(Server { child, port, folder });
        }
    }
    panic!("{}", std::fs::read_to_string(folder.join("log")).unwrap());
}

fn config(folder: &Path, port: u16) -> String {
    format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey \"{0}/host\"\nAuthorizedKeysFile \"{0}/authorized\"\nPidFile none\nUsePAM no\n\
         StrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nAcceptEnv *\nSetEnv \"HOME={0}/home\" {RUN}={1}\n",
        folder.display(),
        std::process::id(),
    )
}

impl Server {
    /// Knows the host key of now.
    fn accept(&self) {
        let key = std::fs::read_to_string(self.folder.join("host.pub")).unwrap();
        std::fs::write(self.folder.join("known"), format!("[127.0.0.1]:{} {key}", self.port)).unwrap();
    }

    fn setting(&self) -> Setting {
        let f = self.folder.display();
        Setting {
            kind: TerminalKind::Ssh,
            host: Some("127.0.0.1".into()),
            folder: Some(format!("{f}/home/work dir")),
            options: vec![
                format!("Port={}", self.port),
                format!("IdentityFile=\"{f}/id\""),
                "IdentitiesOnly=yes".into(),
                format!("UserKnownHostsFile=\"{f}/known\""),
                "GlobalKnownHostsFile=/dev/null".into(),
                // It is not obeyed.
                "StrictHostKeyChecking=no".into(),
            ],
            ..Setting::default()
        }
    }

    /// The processes of the server that hold a connection.
    fn cut(&self) {
        tiller_testkit::cut_connections(self.child.id());
    }
}

pub(super) fn machine(keep: u32) -> Option<(There, Server)> {
    let bench = Bench::new();
    let server = serve(&bench.scratch.path().join("machine"))?;
    server.accept();
    let home = bench.scratch.path().display().to_string();
    let vars = [("PATH", "/usr/bin:/bin"), ("HOME", &home), ("SECRET_TOKEN", "hunter2hunter2")];
    let vars = vars.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
    let mut there = There::with(bench, server.setting(), vars, keep);
    there.home = server.folder.join("home");
    Some((there, server))
}

#[tokio::test]
async fn commands_files_and_processes_go_to_the_other_machine() {
    let Some((there, server)) = machine(60) else { return };
    there.bench.file("a", "here\n");
    let said = there
        .run("cat a; pwd; echo \"$SECRET_TOKEN\"; echo there >b; [ -n \"$SSH_CONNECTION\" ] && echo over ssh")
        .await;
    let folder = server.folder.join("home/work dir");
    assert_eq!(said, format!("here\n{}\n\nover ssh", folder.display()));
    assert_eq!(std::fs::read_to_string(there.bench.root.join("b")).unwrap(), "there\n");
    let started = there.terminal(json!({"command": "echo $$; exec sleep 4341", "background": true})).await;
    assert!(started.starts_with("started as p1"), "{started}");
    until("it runs", || lives("sleep 4341")).await;
    assert_eq!(there.process(json!({"action": "kill", "id": "p1"})).await, "p1: killed");
    until("it has ended", || !lives("sleep 4341")).await;
    let said = there.terminal(json!({"command": "tty; basename \"$PWD\"", "pty": true})).await;
    if said.contains("closed by remote host") && !rustix::process::geteuid().is_root() {
        return println!("skipped: the ssh server of an ordinary user opens no terminal");
    }
    assert!(said.contains("/dev/pts/") && said.contains("work dir"), "{said}");
    there.end().await;
}

#[tokio::test]
async fn a_killed_connection_is_made_again_and_the_command_found() {
    let Some((there, server)) = machine(60) else { return };
    there.run("A=kept").await;
    let command = "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; : >~/at$i; sleep 0.3; done; echo $A";
    let cut = async {
        until("numbers come", || there.home.join("at4").exists()).await;
        server.cut();
    };
    let (said, ()) = tokio::join!(there.run(command), cut);
    assert!(said.starts_with("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\nkept\n"), "{said}");
    assert!(said.contains("broke and was made again"), "{said}");
    there.end().await;
}

/// No key is accepted for the person: neither a new one nor a changed one.
#[tokio::test]
async fn an_unknown_or_changed_host_key_is_refused_with_what_to_do() {
    let Some((there, mut server)) = machine(60) else { return };
    std::fs::write(server.folder.join("known"), "").unwrap();
    let said = there.run("touch reached").await;
    assert!(said.contains("is not known here, and only you can accept it"), "{said}");
    server.accept();
    assert_eq!(there.run("echo 1").await, "1");
    // Another machine answers at the address.
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    server.cut();
    key(&server.folder.join("host"));
    server.child = start(&server.folder).expect("its port is free");
    Command::new("pkill").args(["-KILL", "-f", &format!("Port={}", server.port)]).output().unwrap();
    let began = Instant::now();
    let said = there.run("touch reached").await;
    assert!(said.contains("is not the one that you accepted") && said.contains("ssh-keygen -R"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(20), "it is not tried again");
    assert!(!server.folder.join("home/work dir/reached").exists());
    let known = std::fs::read_to_string(server.folder.join("known")).unwrap();
    assert_eq!(known.lines().count(), 1, "{known}");
    there.end().await;
}

/// A key that is not accepted is no reason to ask for a password.
#[tokio::test]
async fn a_refused_login_is_said_at_once() {
    let Some((there, server)) = machine(60) else { return };
    std::fs::write(server.folder.join("authorized"), "").unwrap();
    let said = there.run("echo 1").await;
    assert!(said.contains("accepts none of your keys"), "{said}");
}
