//! Programs in Tiller's terminals: the real screen in a pane, a person inside, and programs that are hostile, flood or
//! die.

use rustix::process::Signal;
use tiller_testkit::{ScriptServer, Term};

use crate::common::{Place, at_work, says, signal, wait};
use crate::screen::{agent_row, idle, quit, say, type_in};

/// Waits for a key; then a composer `> ` that answers each line. `hide` starts a process in a session of its own,
/// `exit` ends it.
const TALKER: &str = r#"stty raw -echo
printf 'press a key\r\n'
dd bs=1 count=1 >/dev/null 2>&1
printf '\033[?2004h\033]2;toy at work\007'
ask() { printf '\r\n> '; }
printf '\033[1;32mwelcome to toy\033[0m'; ask
line=
while :; do
  c=$(dd bs=1 count=1 2>/dev/null; echo x); c=${c%x}
  case $c in
    "$(printf '\r')")
      [ "$line" = exit ] && exit 0
      [ "$line" = hide ] && { setsid sleep 98765 & }
      [ "$line" = size ] && line=$(stty size)
      printf '\r\nanswer: %s\r\n' "$line"; line=; ask ;;
    "$(printf '\033')") dd bs=1 count=5 >/dev/null 2>&1 ;;
    '') exit 0 ;;
    *) line=$line$c; printf %s "$c" ;;
  esac
done"#;

/// A place with a program `toy` that is this script.
fn place(server: &ScriptServer, script: &str) -> Place {
    let place = Place::anthropic(server);
    let folder = place.home.join("config/adapters");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("toy.sh");
    tiller_testkit::program(&program, &format!("#!/bin/sh\n{script}\n"));
    let adapter = format!(
        "name = \"toy\"\ntitle = \"Toy\"\n[program]\ncommand = \"{}\"\ninstall = \"nothing\"\n[pty]\ncareful = []\n\
         ready = '^> *$'\nanswer = '^answer: (.*)$'\nsettle = 0.3\nquiet = 0.5\nstart = 600.0\n",
        program.display()
    );
    std::fs::write(folder.join("toy.toml"), adapter).unwrap();
    place
}

/// Processes of the program and its children.
fn programs(place: &Place) -> Vec<(u32, String)> {
    let theirs = |line: &str| {
        ["toy.sh", "sleep 9876"].iter().any(|w| line.contains(w))
            || ["yes ", "cat ", "dd ", "tr "].iter().any(|w| line.starts_with(w))
    };
    at_work(place).into_iter().filter(|(_, line)| theirs(line)).collect()
}

fn server() -> ScriptServer {
    ScriptServer::with(|_, _| says("Yes."))
}

/// The workbench with the program's terminal open.
fn opened(place: &Place, cols: u16, rows: u16) -> Term {
    let mut term = place.term(&[], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn @toy:pty hello");
    term.keys("\x1b3");
    // Its text in the conversation is shown before its row.
    term.wait("its row", |s| s.contains("K stop all") && !agent_row(s, "a1 ").is_empty());
    term.keys("j\r");
    term.wait("its terminal", |s| s.contains("r enter") && s.contains("x stop"));
    term
}

/// Enters it, and types the key that it waits for.
fn enter(term: &mut Term) {
    term.wait_text("press a key");
    term.keys("r");
    term.wait_text("F12 leave");
    term.keys("x");
}

fn driven(cols: u16, rows: u16) {
    let (server, size) = (server(), format!("{cols}x{rows}"));
    let place = place(&server, TALKER);
    let mut term = opened(&place, cols, rows);
    enter(&mut term);
    term.wait("the prompt that was typed for us", |s| s.contains("answer: hello"));
    // Inside, every key goes to the program: Escape, Tab and Tiller's leader, too.
    term.keys("size\r");
    term.wait(&size, |s| {
        let Some(line) = s.lines().find(|l| l.contains("answer: ") && !l.contains("hello")) else {
            return false;
        };
        let numbers: Vec<u16> =
            line.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        matches!(numbers[..], [r, c, ..] if r + 2 < rows && r > rows / 2 && c <= cols && c > cols / 2)
    });
    // It has its own colours.
    term.wait_cells("green", |s| {
        let at = crate::screen::find(s, "welcome to toy");
        at.and_then(|(r, c)| s.cell(r, c)).is_some_and(|c| c.fgcolor() != vt100::Color::Default && c.bold())
    });
    term.keys("\x1d");
    term.wait("it is released", |s| s.contains("r enter") && s.contains("z zoom"));
    // The screen as a quotation in main's composer.
    term.keys("[");
    term.wait_text("copy mode");
    term.keys("gVs");
    term.wait("the quotation", |s| s.contains("From the terminal of a1") && s.contains("> press a key"));
    term.keys("\x15\x15\x03");
    // Back to it, and leaving it: it stays, since a person used it, until the person has finished with it.
    term.keys("\x1b7");
    term.wait("its terminal again", |s| s.contains("r enter") && s.contains("welcome to toy"));
    term.keys("f");
    wait("its end", || programs(&place).is_empty());
    term.wait("the end", |s| s.contains("✓ done"));
    term.keys("\x1b");
    // Of main, to which the quotation led. The words of the terminal would stand there before the key was taken.
    term.wait("the conversation", |s| s.contains("Agent a1 is done") && !s.contains("Terminal of a1"));
    term.keys("\x1b0");
    term.keys("\x15\x15");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn a_person_works_in_a_programs_terminal_at_118x25() {
    driven(118, 25);
}

#[test]
fn a_person_works_in_a_programs_terminal_at_80x24() {
    driven(80, 24);
}

/// Everything that a program could try on its terminal; each output contains `EVIL`, plain or encoded.
const EVIL: &str = r#"stty raw -echo
e() { printf "$1"; }
e '\033]0;EVIL title\007'; e '\033]2;EVIL title\033\\'; e '\033]1;EVIL\007'
e '\033]52;c;RVZJTA==\007'; e '\033]52;c;?\007'; e '\033]52;p;?\033\\'
e '\033]4;1;?\007'; e '\033]10;?\007'; e '\033]11;?\007'; e '\033]12;#EVIL\007'; e '\033]104\007'
e '\033]8;;http://EVIL/\007link\033]8;;\007'; e '\033]7;file://EVIL/\007'
e '\033]9;EVIL\007'; e '\033]9;4;1;50\007'; e '\033]99;i=1;EVIL\033\\'; e '\033]777;notify;EVIL;EVIL\007'
e '\033]1337;File=name=RVZJTA==;inline=1:RVZJTA==\007'; e '\033]133;A\007'
e '\033_Gi=31,s=1,v=1,a=T,t=d,f=24;RVZJTA==\033\\'; e '\033Pq#0;2;0;0;0EVIL~~\033\\'
e '\033Ptmux;\033\033]52;c;RVZJTA==\007\033\\'; e '\033P+q544eEVIL\033\\'; e '\033P$qmEVIL\033\\'
e '\033^EVIL\033\\'; e '\033XEVIL\033\\'; e '\033[c'; e '\033[>c'; e '\033[=c'; e '\033[6n'; e '\033[5n'
e '\033[?6n'; e '\033[>q'; e '\033[?u'; e '\033[>31u'; e '\033[?2026$p'; e '\033[21t'; e '\033[20t'
e '\033[14t'; e '\033[18t'; e '\033[8;3;3t'; e '\033[2t'; e '\005'; e '\033Z'; e '\033[?1003h\033[?1006h'
e '\033[?1049h'; e '\033[!p'; e '\033c'; e '\033[3J'; e '\033[?5h'; e '\016'; e '\302\233' ; e '\302\2372;EVIL\302\234'
e '\033]2;EVIL title\007done being bad\r\n> '
cat >/dev/null"#;

/// Control strings in the output (OSC, DCS, APC, PM, SOS), in both encodings.
fn strings(raw: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    let mut at = 0;
    while at + 1 < raw.len() {
        if raw[at] == 0x1b && b"]P_^X".contains(&raw[at + 1]) {
            let rest = &raw[at + 2..];
            let end = rest.iter().position(|b| *b == 7 || *b == 0x1b).unwrap_or(rest.len());
            all.push(format!("{}{}", raw[at + 1] as char, String::from_utf8_lossy(&rest[..end])));
            at += 2 + end;
        } else {
            at += 1;
        }
    }
    all
}

#[test]
fn u8_nothing_that_a_program_asks_of_its_terminal_reaches_the_persons() {
    let server = server();
    let place = place(&server, EVIL);
    let mut term = opened(&place, 118, 25);
    term.wait_text("done being bad");
    let raw = term.raw();
    let mut told = strings(&raw);
    // The queries of this kind that Tiller itself sends, once each, at its start; those of the program contain EVIL.
    for own in ["P$qm", "_Gi=7417,s=1,v=1,a=q,t=d,f=24;AAAA"] {
        if let Some(own) = told.iter().position(|s| s == own) {
            told.remove(own);
        }
    }
    let forwarded: Vec<&String> =
        told.iter().filter(|s| s.contains("EVIL") || s.contains("RVZJTA") || !s.starts_with(']')).collect();
    assert!(forwarded.is_empty(), "{forwarded:?}");
    assert!(
        !told.iter().any(|s| s.starts_with("]52") || s.starts_with("]8;") || s.starts_with("]9;")),
        "{told:?}"
    );
    // Its modes do not reach the outer terminal, which keeps those that Tiller set.
    for mode in ["\x1b[?5h", "\x1b[3J", "\x1bc", "\x1b[!p", "\x1b[>31u", "\x1b[8;3;3t", "\x05", "\x0e"] {
        assert!(!String::from_utf8_lossy(&raw).contains(mode), "{mode:?}");
    }
    // Its title is shown as a badge.
    term.wait("the title", |s| s.contains("\"EVIL title\""));
    stop(&mut term, &place);
}

/// Prints each byte that it receives; `q` requests the next keyboard protocol.
const KEYBOARDS: &str = r#"stty raw -echo
printf 'press a key\r\n'
dd bs=1 count=1 >/dev/null 2>&1
step=1
printf 'kitty \033[>7u\033[?u'
while :; do
  c=$(dd bs=1 count=1 2>/dev/null | od -An -tx1 | tr -d ' \n')
  case $step$c in
    171) step=2; printf ' end\r\nxterm \033[<u\033[>4;2m\033[?4m' ;;
    271) step=3; printf ' end\r\nkeypad \033[>4m\033=\033[?1h' ;;
    371) step=4; printf ' end\r\nplain \033>\033[?1l' ;;
    *) printf %s "$c" ;;
  esac
done"#;

/// Keys from a terminal that distinguishes all of them, and from another that does not.
fn keys_of(cols: u16, rows: u16) {
    let server = server();
    let place = place(&server, KEYBOARDS);
    let mut term = opened(&place, cols, rows);
    enter(&mut term);
    let line = |start: &str, bytes: &[&str]| {
        let hex = |s: &&str| s.bytes().map(|b| format!("{b:02x}")).collect::<String>();
        format!("{start} {}", bytes.iter().map(hex).collect::<String>())
    };
    let keys = "\x1b[13;2u\x1b[105;5u\x03\x1b[57414u\x1b[A";
    let mut shows = |keys: &str, line: String| {
        term.keys(keys);
        term.wait(&line, |s| {
            // The output is wrapped at the end of the pane.
            let pane = |l: &str| {
                let row = l.trim_start_matches('│').split(['│', '├']).next();
                row.unwrap_or_default().trim_end().to_owned()
            };
            let flat: String = s.lines().map(pane).collect();
            flat.replace(' ', "").contains(&line.replace(' ', ""))
        });
    };
    // Supported requests are answered; Ctrl-I is not Tab.
    shows("", line("kitty", &["\x1b[?5u"]));
    let told = ["\x1b[?5u", "\x1b[13;2u", "\x1b[105;5u", "\x1b[99;5u", "\x1b[57414u", "\x1b[A"];
    shows(keys, line("kitty", &told));
    shows("q", line("xterm", &["\x1b[>4;2m"]));
    let told = ["\x1b[>4;2m", "\x1b[27;2;13~", "\x1b[27;5;105~", "\x1b[27;5;99~", "\r", "\x1b[A"];
    shows(keys, line("xterm", &told));
    shows("q", "keypad".into());
    shows(keys, line("keypad", &["\n", "\t", "\x03", "\x1bOM", "\x1bOA"]));
    shows("q", "plain".into());
    shows(keys, line("plain", &["\n", "\t", "\x03", "\r", "\x1b[A"]));
    term.keys("\x1d");
    term.wait("it is released", |s| s.contains("r enter") && s.contains("z zoom"));
    // The person's own keyboard protocol is restored.
    let raw = term.raw();
    for mode in ["\x1b[>7u", "\x1b[>4;2m", "\x1b[>4m", "\x1b=", "\x1b[?1h", "\x1b[?4m"] {
        assert!(!String::from_utf8_lossy(&raw).contains(mode), "{mode:?}");
    }
    stop(&mut term, &place);
}

#[test]
fn a_program_gets_the_keys_in_the_form_that_it_asked_for_at_118x25() {
    keys_of(118, 25);
}

#[test]
fn a_program_gets_the_keys_in_the_form_that_it_asked_for_at_80x24() {
    keys_of(80, 24);
}

fn stop(term: &mut Term, place: &Place) {
    term.keys("x");
    term.wait_text("Stop a1");
    crate::common::let_deafness_pass();
    term.keys("y");
    wait("its processes to end", || programs(place).is_empty());
    term.keys("\x1b\x1b0");
    assert_eq!(quit(term), 0);
}

#[test]
fn u7_a_flood_in_the_pane_stops_nobody_from_typing() {
    let server = server();
    let script = "printf '> '; exec yes 'a line that says the same again and again, without an end in sight'";
    let place = place(&server, script);
    let mut term = opened(&place, 118, 25);
    term.wait_text("without an end in sight");
    // It stays in its pane, and the composer accepts text meanwhile.
    term.keys("\x1b0");
    type_in(&mut term, "words in a flood");
    term.keys("\x15\x1b7");
    term.wait_text("without an end in sight");
    stop(&mut term, &place);
}

#[test]
fn all_that_a_program_started_ends_with_it_also_what_hides_and_leaves_no_zombie() {
    let server = server();
    let place = place(&server, TALKER);
    let mut term = opened(&place, 80, 24);
    enter(&mut term);
    term.wait_text("answer: hello");
    term.keys("hide\r");
    wait("what hides", || programs(&place).iter().any(|(_, l)| l.starts_with("sleep 98765")));
    term.keys("\x1d");
    term.wait_text("r enter");
    let own = term.pid().unwrap();
    stop_only(&mut term, &place);
    // A child that is not reaped would stay until the program ends.
    wait("no zombie", || zombies(own) == 0);
    term.keys("\x1b\x1b0");
    assert_eq!(quit(&mut term), 0);
}

fn stop_only(term: &mut Term, place: &Place) {
    term.keys("x");
    term.wait_text("Stop a1");
    crate::common::let_deafness_pass();
    term.keys("y");
    wait("its processes to end", || programs(place).is_empty());
}

/// Number of a process's children that ended and were not reaped.
fn zombies(of: u32) -> usize {
    let stat =
        |e: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(e.ok()?.path().join("stat")).ok();
    let dead = |text: String| {
        let rest: Vec<&str> =
            text.rsplit_once(')').map(|(_, r)| r.split_whitespace().collect()).unwrap_or_default();
        rest.first() == Some(&"Z") && rest.get(1).and_then(|p| p.parse().ok()) == Some(of)
    };
    std::fs::read_dir("/proc").map_or(0, |all| all.filter_map(stat).filter(|t| dead(t.clone())).count())
}

#[test]
fn a_program_that_is_killed_is_said_to_have_ended_and_others_live() {
    let server = server();
    let place = place(&server, TALKER);
    let mut term = opened(&place, 118, 25);
    enter(&mut term);
    term.wait_text("answer: hello");
    let toy = programs(&place).into_iter().find(|(_, l)| l.contains("toy.sh")).unwrap().0;
    signal(toy, Signal::KILL);
    term.wait("its end", |s| s.contains("failed") || s.contains("ended"));
    term.wait("keys are ours again", |s| !s.contains("F12 leave"));
    let own = term.pid().unwrap();
    wait("no zombie", || zombies(own) == 0);
    term.keys("\x1b\x1b0");
    type_in(&mut term, "words");
    term.keys("\x15");
    assert_eq!(quit(&mut term), 0);
}

/// A program that never draws is shown as such, and ends with Tiller, however Tiller ends.
#[test]
fn u7_one_that_never_draws_is_shown_so_and_dies_with_the_parent() {
    let server = server();
    let place = place(&server, "setsid sleep 98764 & exec sleep 98763");
    let mut term = opened(&place, 80, 24);
    term.wait_text("No output yet");
    wait("both of it", || programs(&place).iter().filter(|(_, l)| l.starts_with("sleep 9876")).count() == 2);
    signal(term.host().unwrap(), Signal::KILL);
    wait("their end", || programs(&place).is_empty());
    term.wait_exit();
}

/// Figures of a flood: latency from the keyboard to the screen, and Tiller's resource use.
#[test]
#[ignore = "prints figures"]
fn u7_figures_of_a_flood() {
    let server = server();
    let script = "printf '> '; exec cat /dev/zero | tr '\\0' 'x'";
    let place = place(&server, script);
    let mut term = opened(&place, 118, 25);
    term.wait_text("xxxxxxxx");
    term.keys("\x1b0");
    let mut all = Vec::new();
    for n in 0..50 {
        let word = format!("w{n}z");
        let from = std::time::Instant::now();
        type_in(&mut term, &word);
        all.push(from.elapsed());
        term.keys("\x15");
        term.wait_gone(&word);
    }
    all.sort();
    eprintln!("a word beside a flood: p50 {:?}, p95 {:?}, slowest {:?}", all[25], all[47], all[49]);
    term.keys("\x1b7");
    stop(&mut term, &place);
}
