//! Commands that are judged read-only are run by a real bash in a sample project, confined to a scratch folder: nothing
//! there may change, and no program of the project may have run. Most cases run nothing and are quick.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tiller_permit::surroundings::{GIT_SETTINGS, Variables};
use tiller_permit::{Human, Policy, Request, Roots, Verdict, decide_in};
use tiller_protocol::{Access, Profile, ShellState, Touch};

use crate::{Outline, Target};

pub(super) const TARGET: Target =
    Target { name: "harmless", words: &[super::words::SHELL, WORDS], seeds: super::shell::seeds, run };

/// Pieces that are often read-only, and pieces that write.
const WORDS: &[&str] = &[
    "ls -la",
    "cat ",
    "head -n 3 ",
    "tail -n 2 ",
    "wc -l ",
    "sort ",
    "uniq -c",
    "cut -d: -f1 ",
    "tr a b",
    "grep -rn a ",
    "grep -v b ",
    "rg a",
    "find . -name '*.rs'",
    "find . -type f -exec ",
    "find . -newer ",
    " -exec cat {} +",
    " \\;",
    "xargs ",
    "xargs -I{} ",
    "sed -n 1,2p ",
    "sed 's/a/b/' ",
    "sed -e p ",
    "awk '{print $1}' ",
    "awk 'NR==1' ",
    "jq . ",
    "diff a.txt b.txt",
    "git status",
    "git log --oneline",
    "git diff ",
    "git show HEAD:a.txt",
    "git grep a",
    "git ls-files",
    "git branch",
    "git -C sub status",
    "echo ",
    "printf '%s\\n' ",
    "basename ",
    "dirname ",
    "stat ",
    "file ",
    "du -sh ",
    "date",
    "pwd",
    "test -f a.txt",
    "[ -n \"$HOME\" ]",
    "for f in *.txt; do ",
    "\"$f\"",
    "$f",
    "\"$(",
    ")\"",
    "*.txt",
    "sub/*",
    "a.txt",
    "b.txt",
    "sub/c.txt",
    "-o out ",
    "--output=out ",
    "-i ",
    "-w out",
    "s/a/b/w out",
    "s/a/date/e",
    "> out",
    ">> out ",
    "2>/dev/null",
    "2>&1 ",
    "< a.txt ",
    "<<< a ",
    "tee out",
    "rm a.txt",
    "touch out",
    "cp a.txt out",
    "./run ",
    "sh run",
    "env ",
    "command ",
    "timeout 1 ",
    "nice ",
    "eval ",
    "sh -c '",
    "-e ",
    "-f ",
    "{",
    "..",
    "/etc/hostname",
    "$HOME",
    "${HOME:=x}",
    "$((1+1))",
    "a[$(touch out)]",
    "-fprint out",
    "-okdir ",
    "system(\"touch out\")",
    "print > \"out\"",
    "'BEGIN{print > \"out\"}'",
    "--pre=./run ",
    "--pager=./run ",
    "-O./run ",
    "--ext-diff ",
    "-c core.pager=./run ",
    "!touch out",
    "tar tf t.tar",
    "zcat a.gz",
    "strings a.txt",
    "od -c a.txt",
    "xxd a.txt",
    "xxd -r a.txt out",
    "comm a.txt b.txt",
    "join a.txt b.txt",
    "paste a.txt b.txt",
    "nl a.txt",
    "tac a.txt",
    "rev a.txt",
    "fold a.txt",
    "column -t a.txt",
    "split a.txt",
    "tree ",
    "realpath a.txt",
    "readlink a.txt",
    "which ls",
    "type ls",
    "command -v ls",
    "printenv HOME",
    "id",
    "whoami",
    "uname -a",
    "hostname",
    "hostname x",
    "seq 3",
    "yes | head -1",
    "sleep 0",
    "cmp a.txt b.txt",
    "md5sum a.txt",
    "sha256sum a.txt",
    "base64 a.txt",
    "expr 1 + 1",
    "less a.txt",
    "more a.txt",
    "man ls",
    "ps",
    "df",
    "free",
    "uptime",
    "set",
    "export A=1",
    "read -r x",
    "cd sub",
    "cd sub && ",
];

/// Longest time of one command.
const LIMIT: Duration = Duration::from_secs(2);

/// A thread that can write in a scratch folder only, and runs one command at a time. It ends with the process.
struct Shell {
    /// A command and the variables that are set for it.
    commands: SyncSender<(String, Variables)>,
    /// Hears when it has ended.
    done: Receiver<()>,
}

/// The sample project, and what judges commands in it.
struct Sample {
    policy: Policy,
    project: PathBuf,
    scratch: PathBuf,
    /// What the scratch folder is before a command.
    before: Mutex<String>,
    shell: Mutex<Shell>,
}

static SAMPLE: LazyLock<Option<Sample>> = LazyLock::new(|| Sample::new().ok().flatten());

/// Folders of this target are named so, and after their process.
const FOLDER: &str = "tiller-fuzz-sample-";

/// A new folder of this process. Those of processes that ended are removed: nothing runs at the end of a process.
fn scratch() -> std::io::Result<PathBuf> {
    let above = tempfile::env::temp_dir();
    for entry in std::fs::read_dir(&above)?.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(FOLDER));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let folder = above.join(format!("{FOLDER}{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    folder.canonicalize()
}

impl Sample {
    /// `None`: this system cannot confine a thread.
    fn new() -> std::io::Result<Option<Self>> {
        let scratch = scratch()?;
        let project = scratch.join("project");
        lay_out(&project)?;
        std::fs::create_dir(scratch.join("home"))?;
        std::fs::create_dir(scratch.join("tmp"))?;
        let Some(shell) = confined(&scratch, &project) else { return Ok(None) };
        let roots = Roots::new(&project, Some(scratch.join("home")), vec![]);
        let policy = Policy::new(roots, super::permit::tools()).within(Arc::new(super::permit::Calm));
        let before = Mutex::new(fingerprint(&scratch));
        Ok(Some(Self { policy, project, scratch, before, shell: Mutex::new(shell) }))
    }
}

fn lay_out(project: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(project.join("sub"))?;
    for (name, text) in [
        ("a.txt", "a b\nb:1\nc\n"),
        ("b.txt", "b\n{\"a\":1}\n"),
        ("sub/c.txt", "x\n"),
        ("-i", "an option\n"),
        ("odd name;touch out", "y\n"),
        ("run", "#!/bin/sh\ntouch \"$PWD/ran\"\n"),
        ("ls", "#!/bin/sh\ntouch \"$PWD/ran\"\n"),
    ] {
        std::fs::write(project.join(name), text)?;
    }
    for name in ["run", "ls"] {
        std::fs::set_permissions(project.join(name), PermissionsExt::from_mode(0o755))?;
    }
    let git = |args: &[&str]| {
        let settings = GIT_SETTINGS.iter().flat_map(|(k, v)| ["-c".to_owned(), format!("{k}={v}")]);
        let mut git = Command::new("/usr/bin/git");
        tiller_testkit::plain_git(&mut git).args(settings).args(args).current_dir(project);
        git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    // Without git its commands only fail.
    if git(&["init", "-q"]).is_ok() {
        git(&["add", "."])?;
        git(&["commit", "-q", "-m", "a"])?;
    }
    Ok(())
}

/// Everything below a folder: names, kinds, modes, times of change, contents.
fn fingerprint(folder: &Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::fs::MetadataExt as _;
    let mut out = String::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(at) = todo.pop() {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(&at).into_iter().flatten().flatten().map(|e| e.path()).collect();
        entries.sort();
        for path in entries {
            let Ok(meta) = path.symlink_metadata() else { continue };
            let _ = writeln!(
                out,
                "{} {:o} {} {} {}",
                path.display(),
                meta.mode(),
                meta.len(),
                meta.mtime(),
                meta.mtime_nsec()
            );
            if meta.is_dir() {
                todo.push(path);
            }
        }
    }
    out
}

/// Starts the thread; `None` where it cannot be confined.
#[cfg(target_os = "linux")]
fn confined(scratch: &Path, project: &Path) -> Option<Shell> {
    use landlock::{
        ABI, Access as _, AccessFs, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus,
        path_beneath_rules,
    };
    let (scratch, project) = (scratch.to_owned(), project.to_owned());
    let (send, commands) = sync_channel::<(String, Variables)>(0);
    let (done, wait) = sync_channel(0);
    let (ready, is_ready) = sync_channel(1);
    std::thread::spawn(move || {
        let abi = ABI::V3;
        let restricted = || {
            Ruleset::default()
                .handle_access(AccessFs::from_all(abi))?
                .create()?
                .add_rules(path_beneath_rules(["/"], AccessFs::from_read(abi)))?
                .add_rules(path_beneath_rules(["/dev/null"], AccessFs::from_file(abi)))?
                .add_rules(path_beneath_rules([&scratch], AccessFs::from_all(abi)))?
                .restrict_self()
        };
        let held =
            restricted().is_ok_and(|r: landlock::RestrictionStatus| r.ruleset != RulesetStatus::NotEnforced);
        let _ = ready.send(held);
        while let Ok((text, variables)) = commands.recv() {
            bash(&scratch, &project, &text, variables);
            if done.send(()).is_err() {
                break;
            }
        }
    });
    is_ready.recv().ok().filter(|held| *held)?;
    Some(Shell { commands: send, done: wait })
}

#[cfg(not(target_os = "linux"))]
fn confined(_: &Path, _: &Path) -> Option<Shell> {
    None
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is confined on this system"))]
fn bash(scratch: &Path, project: &Path, text: &str, variables: Variables) {
    use std::os::unix::process::CommandExt as _;
    let child = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", text])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", scratch.join("home"))
        .env("TMPDIR", scratch.join("tmp"))
        .envs(variables)
        .current_dir(project)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let Ok(mut child) = child else { return };
    let until = Instant::now() + LIMIT;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > until {
            break;
        }
        std::thread::park_timeout(Duration::from_micros(200));
    }
    // Its whole group, in case it left something.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

fn run(data: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(data);
    let mut outline = Outline::default();
    let Some(sample) = &*SAMPLE else { return 0 };
    let access = [Access::Run {
        command: text.clone().into_owned(),
        folder: sample.project.display().to_string(),
        background: false,
    }];
    let request = Request {
        profile: Profile::Ask,
        human: Human::Present,
        agent: "main",
        tool: "terminal",
        touch: Touch::Execute,
        access: &access,
        raw: &text,
    };
    let shell = ShellState { path: "/usr/bin:/bin".into(), redefined: Vec::new(), ..ShellState::default() };
    match decide_in(&sample.policy, &request, Some(&shell)) {
        Verdict::Allow { unasked: Some(run), .. } if !run.needs_sandbox => {
            let analysis = tiller_shell::analyse(&text);
            outline.size(analysis.parts.len());
            analysis.parts.iter().take(3).for_each(|p| outline.add((p.base(), p.args().len().min(3))));
            run_it(sample, &text, run.variables);
        }
        verdict => outline.add(verdict.strictness()),
    }
    outline.end()
}

fn run_it(sample: &Sample, text: &str, variables: Variables) {
    let shell = tiller_protocol::lock(&sample.shell);
    if shell.commands.send((text.to_owned(), variables)).is_err() || shell.done.recv().is_err() {
        return;
    }
    let after = fingerprint(&sample.scratch);
    let before = std::mem::replace(&mut *tiller_protocol::lock(&sample.before), after.clone());
    drop(shell);
    let only = |a: &str, b: &str| {
        a.lines().filter(|l| !b.lines().any(|o| o == *l)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(
        before == after,
        "{text:?} was judged harmless, and made {:?} of {:?}",
        only(&after, &before),
        only(&before, &after)
    );
}
