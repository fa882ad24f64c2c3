use super::*;

#[test]
fn a_name_with_brackets_and_spaces_does_not_confuse() {
    let line = b"42 (a) R (b)) S 7 42 40 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 98765 1000 2\n";
    let stat = parse(line).unwrap();
    assert_eq!(stat, Stat { pid: 42, parent: 7, session: 40, state: b'S', start: 98765 });
    assert_eq!(parse(b"42 (cut"), None);
    assert_eq!(parse(b""), None);
}

#[test]
fn a_number_that_someone_else_has_now_is_not_signalled() {
    let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
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
    let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
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
        std::process::Command::new("sleep").arg("30").stdin(stdin).spawn().unwrap()
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
