//! Real containers of Podman, from an image that holds BusyBox alone.

use super::*;

/// As root in a container of its own, Podman needs these.
const FLAGS: &[&str] = &["--runtime", "runc"];
const LIMITS: &[&str] = &["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"];
const IMAGE: &str = "localhost/tiller-test-busybox";

/// A `podman` that works here, in this folder; `None`: why there is none.
fn podman(bin: &Path) -> Option<()> {
    let (program_at, busybox) = (Path::new("/usr/bin/podman"), ["/bin/busybox", "/usr/bin/busybox"]);
    let Some(busybox) = busybox.into_iter().find(|p| Path::new(p).exists()).filter(|_| program_at.exists())
    else {
        eprintln!("skipped: no podman or no busybox here (Debian: podman runc busybox-static)");
        return None;
    };
    let flags = FLAGS.join(" ");
    let script = format!("#!/bin/sh\nexec /usr/bin/podman {flags} \"$@\"\n");
    program(&bin.join("podman"), &script);
    let podman = || Command::new(bin.join("podman"));
    let there = podman().args(["image", "exists", IMAGE]).output().unwrap().status.success();
    if !there {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("bin")).unwrap();
        std::fs::copy(busybox, root.path().join("bin/busybox")).unwrap();
        let line = format!(
            "cd '{0}' && mkdir -p tmp proc dev sys etc root && chmod 1777 tmp && for a in $(bin/busybox --list); do \
             [ -e bin/$a ] || ln -s busybox bin/$a; done && echo 'root:x:0:0:root:/root:/bin/sh' >etc/passwd && \
             tar cf - . | '{1}/podman' import - {IMAGE}",
            root.path().display(),
            bin.display()
        );
        let made = Command::new("sh").args(["-c", &line]).output().unwrap();
        if !made.status.success() {
            eprintln!("skipped: podman makes no image here: {}", String::from_utf8_lossy(&made.stderr));
            return None;
        }
    }
    let run =
        podman().args(["run", "--rm"]).args(LIMITS).args(["--entrypoint", "true", IMAGE]).output().unwrap();
    if !run.status.success() {
        eprintln!("skipped: podman runs no container here: {}", String::from_utf8_lossy(&run.stderr));
        return None;
    }
    Some(())
}

fn container(change: impl FnOnce(&mut Setting)) -> Option<There> {
    let bench = Bench::new();
    let bin = bench.scratch.path().join("bin");
    podman(&bin)?;
    let mut options: Vec<String> = LIMITS.iter().map(|l| (*l).to_owned()).collect();
    options.push("--network=none".into());
    options.push(format!("--env={RUN}={}", std::process::id()));
    let mut setting =
        Setting { kind: TerminalKind::Podman, image: Some(IMAGE.into()), options, ..Setting::default() };
    change(&mut setting);
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", bin.display());
    let vars = vec![("PATH".to_owned(), path), ("HOME".to_owned(), "/root".to_owned())];
    Some(There::with(bench, setting, vars, 60))
}

/// The containers of a terminal's label.
fn ours(there: &There) -> Vec<String> {
    let podman = there.bench.scratch.path().join("bin/podman");
    let owner = format!("label=tiller.owner={}", label());
    let out = Command::new(podman)
        .args(["ps", "-aq", "--filter", &owner, "--format", "{{.ID}} {{.Mounts}}"])
        .output();
    let root = there.bench.root.display().to_string();
    String::from_utf8_lossy(&out.unwrap().stdout)
        .lines()
        .filter(|l| l.contains(&root))
        .filter_map(|l| l.split(' ').next().map(str::to_owned))
        .collect()
}

fn label() -> String {
    let pid = std::process::id();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    format!("{pid}.{}", stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap())
}

#[tokio::test]
async fn a_container_has_the_folder_and_is_removed_with_the_session() {
    let Some(there) = container(|_| ()) else { return };
    there.bench.file("a", "here\n");
    there.bench.file(".git/config", "[core]\n");
    there.bench.file(".git/hooks/pre-commit", "true\n");
    let said =
        there.run("cat a; echo there >b; pwd; id -u; A=kept; cd /tmp; echo evil >>$OLDPWD/.git/config").await;
    let root = there.bench.root.display();
    assert!(said.starts_with(&format!("here\n{root}\n0\n")), "{said}");
    assert!(said.contains("Read-only file system") && said.contains("[folder is now /tmp]"), "{said}");
    assert_eq!(std::fs::read_to_string(there.bench.root.join("b")).unwrap(), "there\n");
    assert_eq!(std::fs::read_to_string(there.bench.root.join(".git/config")).unwrap(), "[core]\n");
    assert_eq!(there.run("echo $A; pwd").await, "kept\n/tmp");
    let started = there.terminal(json!({"command": "echo bg; sleep 4351", "background": true})).await;
    assert!(started.starts_with("started as p1"), "{started}");
    until("it runs", || lives("sleep 4351")).await;
    assert_eq!(there.process(json!({"action": "kill", "id": "p1"})).await, "p1: killed");
    let said = there.terminal(json!({"command": "echo on a terminal", "timeout": 60, "pty": true})).await;
    assert!(said.contains("on a terminal"), "{said}");
    let late = there.terminal(json!({"command": "sleep 4352", "timeout": 1})).await;
    assert!(late.contains("timed out"), "{late}");
    until("it has ended there", || !lives("sleep 4352")).await;
    assert_eq!(ours(&there).len(), 1, "one container for all of it");
    let podman = there.bench.scratch.path().join("bin/podman");
    let owner = format!("label=tiller.owner={}", label());
    there.bench.cx.state.shells.shutdown().await;
    let left = Command::new(podman).args(["ps", "-aq", "--filter", &owner]).output().unwrap();
    drop(left);
    assert!(ours(&there).is_empty());
}

#[tokio::test]
async fn a_container_that_is_gone_is_said_and_another_one_started() {
    let Some(there) = container(|_| ()) else { return };
    assert_eq!(there.run("export A=kept; echo 1").await, "1");
    let remove = async {
        until("it runs", || lives("sleep 4353")).await;
        let ids = ours(&there);
        assert_eq!(ids.len(), 1);
        let podman = there.bench.scratch.path().join("bin/podman");
        let out = Command::new(podman).args(["rm", "-f", "-t", "0", &ids[0]]).output().unwrap();
        assert!(out.status.success(), "{out:?}");
    };
    let (said, ()) = tokio::join!(there.run("sleep 4353"), remove);
    assert!(said.contains("lost"), "{said}");
    assert_eq!(there.run("echo $A").await, "kept");
    assert_eq!(ours(&there).len(), 1);
    there.end().await;
}

/// The label of a process that is gone stands for a Tiller that was killed.
#[tokio::test]
async fn containers_of_a_killed_tiller_are_removed_at_the_next_start() {
    let Some(there) = container(|_| ()) else { return };
    assert_eq!(there.run("echo 1").await, "1");
    let podman = there.bench.scratch.path().join("bin/podman");
    let ids = ours(&there);
    let of = |id: &str, label: &str| {
        let format = format!("{{{{ index .Config.Labels \"{label}\" }}}}");
        let out = Command::new(&podman).args(["inspect", "--format", &format, id]).output().unwrap();
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    let machine = of(&ids[0], "tiller.machine");
    let start = |owner: &str, machine: &str| {
        let labels = [format!("tiller.owner={owner}"), format!("tiller.machine={machine}")];
        let mut run = Command::new(&podman);
        run.args(["run", "-d"]).args(LIMITS).args(["--label", &labels[0], "--label", &labels[1]]);
        let out = run.args(["--entrypoint", "sleep", IMAGE, "4354"]).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8_lossy(&out.stdout).trim()[..12].to_owned()
    };
    let (killed, elsewhere) = (start("4194303.17", &machine), start("4194303.17", "another.1"));
    let vars = vec![("PATH".to_owned(), format!("{}:/usr/bin:/bin", podman.parent().unwrap().display()))];
    let setting = Setting { kind: TerminalKind::Podman, image: Some(IMAGE.into()), ..Setting::default() };
    let session = Session::new(BTreeMap::from([("box".to_owned(), setting)]), vars, "/nonexistent".into());
    assert!(session.sweep() >= 1);
    let lives =
        |id: &str| Command::new(&podman).args(["container", "exists", id]).status().unwrap().success();
    assert!(!lives(&killed) && lives(&elsewhere) && lives(&ids[0]));
    Command::new(&podman).args(["rm", "-f", "-t", "0", &elsewhere]).output().unwrap();
    there.end().await;
}

/// The name of an image that does not exist, and a container of the person's that does not run.
#[tokio::test]
async fn a_wrong_image_or_container_is_said_with_what_to_do() {
    let Some(there) = container(|s| s.image = Some("localhost/no-such-image".into())) else { return };
    let said = there.run("echo 1").await;
    assert!(said.contains("build (podman)") && said.contains("no-such-image"), "{said}");
    let Some(there) = container(|s| (s.image, s.container) = (None, Some("no-such-container".into()))) else {
        return;
    };
    let said = there.run("echo 1").await;
    assert!(said.contains("the container no-such-container does not run"), "{said}");
}

/// Files that are copied into a container instead of being mounted.
#[tokio::test]
async fn a_new_container_without_a_mounted_folder_gets_all_files_and_removes_none() {
    let Some(there) = container(|s| s.files = Some(tiller_config::schema::TerminalFiles::Sync)) else {
        return;
    };
    there.bench.file("a", "here\n");
    assert_eq!(there.run("cat a; echo there >b; pwd").await, "here\n/work");
    assert_eq!(std::fs::read_to_string(there.bench.root.join("b")).unwrap(), "there\n");
    there.place.close().await;
    let said = there.run("cat a b").await;
    assert!(said.starts_with("here\nthere\n[build (podman) had lost the shell"), "{said}");
    assert!(there.bench.root.join("a").exists());
    there.end().await;
}

/// A `docker` of the test: its containers are folders, and their commands run on this machine.
const DOCKER: &str = r#"#!/bin/sh
echo "$*" >>"HERE/calls"
verb=$1
shift
case $verb in
run)
  : >"HERE/containers/c$$"
  echo "pulling the image" >&2
  echo c$$
  ;;
container) for id; do :; done; [ -e "HERE/containers/$id" ] || { echo "Error: No such container: $id" >&2; exit 1; }; echo true ;;
exec)
  [ -e "HERE/containers/$2" ] || { echo "Error response from daemon: No such container: $2" >&2; exit 1; }
  echo $$ >>"HERE/relays"
  shift 2
  HOME="HERE/there" exec env RUN "$@"
  ;;
rm) for id; do :; done; rm -f "HERE/containers/$id"; echo "$id" >>"HERE/removed" ;;
ps) ;;
esac
"#;

/// Docker, as far as a program of the test can stand for it: which arguments it gets, when a container is started again, and
/// that it is removed.
#[tokio::test]
async fn a_container_of_docker_is_started_once_and_again_when_it_is_gone() {
    let bench = Bench::new();
    let scratch = bench.scratch.path().to_owned();
    std::fs::create_dir_all(scratch.join("containers")).unwrap();
    let run = format!("{RUN}={}", std::process::id());
    let script = DOCKER.replace("HERE", &scratch.display().to_string()).replace("RUN", &run);
    program(&scratch.join("bin/docker"), &script);
    let options = vec!["--memory=1g".to_owned()];
    let setting = Setting {
        kind: TerminalKind::Docker,
        image: Some("builder:1".into()),
        options,
        ..Setting::default()
    };
    let path = format!("{}:/usr/bin:/bin", scratch.join("bin").display());
    let there = There::with(bench, setting, vec![("PATH".to_owned(), path)], 60);
    // The folder is a worktree, whose repository lies elsewhere.
    let main = scratch.canonicalize().unwrap().join("main");
    std::fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "one"]);
    let (root, spare) = (there.bench.root.display().to_string(), scratch.join("spare"));
    git(&main, &["worktree", "add", "-q", "-b", "side", &spare.display().to_string()]);
    std::fs::rename(spare.join(".git"), there.bench.root.join(".git")).unwrap();
    git(&main, &["worktree", "repair", &root]);
    there.bench.file("a", "here\n");
    assert_eq!(there.run("cat a; git status --short --branch").await, "here\n## side\n?? a");
    let calls = std::fs::read_to_string(scratch.join("calls")).unwrap();
    let started = calls.lines().find(|call| call.starts_with("run ")).unwrap();
    let git_folder = main.join(".git").display().to_string();
    for part in [
        "--detach --rm".to_owned(),
        format!("--label tiller.owner={}", label()),
        format!("--volume {root}:{root}"),
        format!("--volume {git_folder}:{git_folder}"),
        format!("--volume {git_folder}/hooks:{git_folder}/hooks:ro"),
        format!("--volume {git_folder}/config:{git_folder}/config:ro"),
        format!("--workdir {root} "),
        "--memory=1g --entrypoint sh builder:1 -c ".to_owned(),
    ] {
        assert!(started.contains(&part), "{part}: {started}");
    }
    // It is gone: another one is started, and the variables of the shell are said to be lost.
    let containers = || -> Vec<PathBuf> {
        scratch.join("containers").read_dir().unwrap().flatten().map(|entry| entry.path()).collect()
    };
    let first = containers();
    assert_eq!(first.len(), 1, "one container for all of it: {first:?}");
    std::fs::remove_file(&first[0]).unwrap();
    assert!(there.cut() > 0);
    let said = there.run("echo again").await;
    assert!(said.contains("again"), "{said}");
    assert!(containers().len() == 1 && containers() != first, "another container: {:?}", containers());
    assert_eq!(there.bench.cx.state.shells.shutdown().await, 0);
    assert!(containers().is_empty(), "it is removed: {:?}", containers());
}
