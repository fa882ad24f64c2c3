//! How the program is built and started: a random address, no core dumps.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::common::{PATIENCE, Place, TILLER, poll, signal};

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

#[test]
fn a_crash_leaves_no_core_dump() {
    let place = Place::new();
    let control = with_cores(&place, "kill -ABRT $$").status().unwrap();
    if !control.core_dumped() {
        eprintln!("skipped: this system dumps no core of a plain shell either");
        return;
    }
    let mut child = with_cores(&place, &format!("exec '{TILLER}' acp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{hello}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("\"result\""), "{line}");
    signal(child.id(), Signal::ABORT);
    let ended = poll(PATIENCE, || child.try_wait().unwrap()).expect("an end");
    assert_eq!(ended.signal(), Some(Signal::ABORT.as_raw()));
    assert!(!ended.core_dumped(), "the dump would hold keys and the conversation");
}
