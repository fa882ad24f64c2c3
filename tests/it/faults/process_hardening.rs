//! How the program is built and started: a random address, no core dumps, one arena of the heap.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::common::{Place, TILLER, TIMEOUT, poll, signal};

/// `e_type` of an ELF file that is loaded at a random address (`ET_DYN`; System V ABI, "ELF header").
const DYNAMIC: u16 = 3;

#[test]
fn the_program_is_position_independent() {
    let bytes = std::fs::read(TILLER).unwrap();
    if !bytes.starts_with(b"\x7fELF") {
        eprintln!("skipped: the program is no ELF file on this system");
        return;
    }
    assert_eq!(u16::from_le_bytes([bytes[16], bytes[17]]), DYNAMIC, "linked for one fixed address");
}

/// Runs `script` in a shell whose limit for core files is the highest possible.
fn with_cores(place: &Place, script: &str) -> Command {
    place.program("/bin/sh", &["-c", &format!("ulimit -c unlimited 2>/dev/null; {script}")])
}

/// Starts the server of the protocol for editors, and waits for its first answer: its threads run then.
fn answering(command: &mut Command) -> Child {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    // Kept open: at the end of its input the server ends.
    writeln!(child.stdin.as_mut().unwrap(), "{hello}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("\"result\""), "{line}");
    child
}

/// Arenas besides the main one, from `/proc/PID/maps`: 64 MiB at a multiple of 64 MiB, the used part first (glibc,
/// `HEAP_MAX_SIZE` for 64 bits).
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
fn arenas(maps: &str) -> usize {
    const SIZE: u64 = 64 << 20;
    let rows: Vec<(u64, u64, &str)> = maps
        .lines()
        .filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some((number(from)?, number(to)?, rest.get(..4)?))
        })
        .collect();
    let arena = |pair: &&[(u64, u64, &str)]| {
        let (used, unused) = (pair[0], pair[1]);
        used.0 % SIZE == 0
            && used.2 == "rw-p"
            && unused.2 == "---p"
            && used.1 == unused.0
            && unused.1 - used.0 == SIZE
    };
    rows.windows(2).filter(arena).count()
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
#[test]
fn all_threads_share_one_arena() {
    let two = "7f1c00000000-7f1c00021000 rw-p 00000000 00:00 0\n7f1c00021000-7f1c04000000 ---p 00000000 00:00 0\n\
               7f1c09000000-7f1c09021000 rw-p 00000000 00:00 0\n7f1c09021000-7f1c0d000000 ---p 00000000 00:00 0\n\
               7f1c10000000-7f1c10100000 rw-p 00000000 00:00 0\n7f1c10100000-7f1c14000000 ---p 00000000 00:00 0\n";
    assert_eq!(arenas(two), 2, "the second pair lies at no multiple");
    let place = Place::new();
    let mut child = answering(&mut place.program(TILLER, &["acp"]));
    let proc = std::path::PathBuf::from(format!("/proc/{}", child.id()));
    let threads = std::fs::read_dir(proc.join("task")).unwrap().count();
    let maps = std::fs::read_to_string(proc.join("maps"));
    child.kill().unwrap();
    child.wait().unwrap();
    if maps.is_err() && !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: the program hides its memory from an ordinary user");
    }
    let maps = maps.unwrap();
    assert!(threads > 1, "with one thread there is one arena anyway");
    assert_eq!(arenas(&maps), 0, "{maps}");
}

#[test]
fn a_crash_leaves_no_core_dump() {
    let place = Place::new();
    let control = with_cores(&place, "kill -ABRT $$").status().unwrap();
    if !control.core_dumped() {
        eprintln!("skipped: this system dumps no core of a plain shell either");
        return;
    }
    let mut child = answering(&mut with_cores(&place, &format!("exec '{TILLER}' acp")));
    signal(child.id(), Signal::ABORT);
    let ended = poll(TIMEOUT, || child.try_wait().unwrap()).expect("an end");
    assert_eq!(ended.signal(), Some(Signal::ABORT.as_raw()));
    assert!(!ended.core_dumped(), "the dump would hold keys and the conversation");
}
