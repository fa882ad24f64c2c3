use super::*;

#[test]
fn a_name_with_brackets_and_spaces_does_not_confuse() {
    let line = b"42 (a) R (b)) S 7 42 40 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 98765 1000 2 3 4 5 140700\n";
    let stat = parse(line).unwrap();
    let stated = Stat {
        pid: 42,
        parent: 7,
        session: 40,
        threads: 1,
        ran: 3,
        state: b'S',
        start: 98765,
        stack: 140_700,
    };
    assert_eq!(stat, stated);
    assert_eq!(parse(b"42 (cut"), None);
    assert_eq!(parse(b""), None);
}

#[test]
fn a_number_that_someone_else_has_now_is_not_signalled() {
    let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let mut stat = stat(child.id().cast_signed()).unwrap();
    stat.start += 1;
    assert!(!signal(&stat, Signal::KILL));
    assert_eq!(child.try_wait().unwrap(), None);
    stat.start -= 1;
    assert!(signal(&stat, Signal::KILL));
    child.wait().unwrap();
    assert!(!signal(&stat, Signal::KILL));
}

#[test]
fn strangers_are_never_family() {
    let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let family = Family { roots: vec![(1, 0)], marker: "no-such-marker.".into(), ..Family::default() };
    assert_eq!(family.living(), []);
    // The right number with another start is a stranger too.
    let family = Family { roots: vec![(child.id().cast_signed(), 1)], ..Family::default() };
    assert_eq!(family.living(), []);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ticks_are_those_of_start_times() {
    let me = stat(std::process::id().cast_signed()).unwrap();
    assert!(me.start <= ticks());
    // Not in other units: this process is not a day old.
    assert!(ticks() - me.start < 100 * 60 * 60 * 24, "{} {}", me.start, ticks());
}

/// A child between fork and exec holds all that we hold. It must not be taken for a writer.
#[test]
fn only_writers_hold_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("p");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let both = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let run = |stdin: std::process::Stdio| {
        std::process::Command::new("sleep").arg("300").stdin(stdin).spawn().unwrap()
    };
    let mut reader = run(std::fs::File::open(&pipe).unwrap().into());
    let mut writer = run(std::fs::OpenOptions::new().write(true).open(&pipe).unwrap().into());
    std::fs::remove_file(&pipe).unwrap();
    assert!(holds(writer.id().cast_signed(), &pipe));
    assert!(holds(writer.id().cast_signed(), &pipe.with_file_name("p")));
    assert!(!holds(writer.id().cast_signed(), &pipe.with_file_name("q")));
    assert!(!holds(reader.id().cast_signed(), &pipe));
    for child in [&mut reader, &mut writer] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    drop(both);
}

/// A session's number without its leader's start proves nothing: it may have been given away.
#[test]
fn s1_a_session_whose_number_was_reused_is_not_ours() {
    let process = |pid, parent, session, start| Stat {
        pid,
        parent,
        session,
        threads: 1,
        ran: 0,
        state: b'S',
        start,
        stack: 0,
    };
    let me = 7;
    // Another's session has the number 40 now; its leader lives, or has ended.
    let leader = process(40, 1, 40, 900);
    let theirs = [process(50, 40, 40, 910), process(51, 1, 40, 910), process(52, 51, 40, 920)];
    let family = Family { roots: vec![(40, 100)], ended: vec![40], ..Family::default() };
    let with_leader: Vec<Stat> = [leader].into_iter().chain(theirs).collect();
    assert_eq!(family.members_of(with_leader, me), []);
    assert_eq!(family.members_of(theirs.to_vec(), me), []);
    // What ours left comes to us, with all below it.
    let ours = [process(60, me, 40, 150), process(61, 60, 40, 160), process(62, 61, 62, 170)];
    assert_eq!(family.members_of(ours.to_vec(), me), ours);
    let living = [process(40, me, 40, 100), process(63, 1, 40, 150)];
    assert_eq!(family.members_of(living.to_vec(), me), living, "its leader is the one that we started");
}

/// The same with real processes: the right number, another start.
#[test]
fn s1_members_of_a_strangers_session_are_not_family() {
    let mut leader =
        std::process::Command::new("setsid").args(["sh", "-c", "sleep 300 & wait"]).spawn().unwrap();
    let pid = leader.id().cast_signed();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(90);
    while all().iter().filter(|s| s.session == pid).count() < 2 {
        assert!(std::time::Instant::now() < until, "it does not start");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    let start = stat(pid).unwrap().start;
    let family = |start| Family { roots: vec![(pid, start)], ..Family::default() };
    assert_eq!(family(start + 1).living(), []);
    let own = family(start).living();
    assert_eq!(own.len(), 2, "{own:?}");
    own.iter().for_each(|s| _ = signal(s, Signal::KILL));
    leader.wait().unwrap();
}

/// A process that begins one program after the other has no environment for a moment each time.
#[test]
fn a_process_within_exec_is_family_at_each_look() {
    const LOOKS: usize = 1_500;
    let tmp = tempfile::tempdir().unwrap();
    let script = tmp.path().join("again");
    std::fs::write(&script, "exec /bin/sh \"$0\"\n").unwrap();
    let mut again = std::process::Command::new("/bin/sh")
        .arg(&script)
        .env_clear()
        .env("TILLER_CHILD", "exec-test.1.")
        .spawn()
        .unwrap();
    let pid = again.id().cast_signed();
    let family = Family { marker: "exec-test.".into(), ..Family::default() };
    let me = std::process::id().cast_signed();
    // As soon as it runs a program of its own, and not the one of this test.
    while !has_marker(&stat(pid).unwrap(), me, &family.marker) {
        std::thread::yield_now();
    }
    let missed = (0..LOOKS).filter(|_| family.members_of(vec![stat(pid).unwrap()], me).is_empty()).count();
    again.kill().unwrap();
    again.wait().unwrap();
    assert_eq!(missed, 0, "of {LOOKS} looks");
}
