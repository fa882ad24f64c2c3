//! Pictures as the terminal's own graphics: for a terminal that answers that it has some, and for no other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tiller_testkit::{ScriptServer, Term};

use crate::common::{Place, calls, says, wait};
use crate::screen::idle;

/// A picture of 4 by 4 pixels.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGM4oaAARwzEcQC3wxCBgP33CwAAAABJRU5ErkJggg==";

/// An answer of a terminal with sixels, and of one without.
const SIXEL: &str = "\x1b[?62;4;22c";
const PLAIN: &str = "\x1b[?62;22c";
const KITTY: &str = "\x1b_Gi=7417;OK\x1b\\";

fn place(env: &[(&str, &str)]) -> (ScriptServer, Place) {
    let server = ScriptServer::start([calls("c1", "read_file", json!({"path": "shot.png"})), says("Seen.")]);
    let mut place = Place::anthropic(&server);
    std::fs::write(place.work.join("shot.png"), STANDARD.decode(PNG).unwrap()).unwrap();
    env.iter().for_each(|(name, value)| place.set(name, value));
    (server, place)
}

/// The picture that a call has read, opened from its row; the terminal has answered so.
fn opened(place: &Place, answers: &str) -> Term {
    let mut term = place.term(&[], 100, 30);
    wait("the last question", || String::from_utf8_lossy(&term.raw()).contains("\x1b[?u\x1b[c"));
    term.bytes(answers.as_bytes());
    idle(&term);
    term.keys("look\r");
    term.wait_text("Seen.");
    idle(&term);
    // To the conversation, to the call, unfold it, open what it gave.
    term.keys("\x181");
    term.wait_text("turn up");
    term.keys("kk");
    term.wait_text("Enter open");
    term.keys("\r");
    term.wait_text("4x4 pixels");
    term.keys("\r");
    term.wait("the picture", |screen| screen.contains("o open"));
    term
}

fn raw(term: &Term) -> String {
    String::from_utf8_lossy(&term.raw()).into_owned()
}

#[test]
fn a_terminal_with_kittys_protocol_gets_the_picture_and_loses_it_again() {
    let (_server, place) = place(&[]);
    let mut term = opened(&place, &format!("{KITTY}{PLAIN}"));
    wait("the graphics", || raw(&term).contains("\x1b_Ga=T,f=100,t=d,i=7417,p=1,c=1,r=1,C=1,q=2,m=0;"));
    let all = raw(&term);
    assert_eq!(all.matches("\x1b_Ga=T").count(), 1, "once, though frames follow");
    // Each string of the terminal's protocol is ours: the question, and the picture.
    assert_eq!(all.matches("\x1b_").count(), 2);
    assert!(!all.contains("\x1bP0;1;0q"), "no sixels besides");
    term.keys("q");
    wait("its removal", || raw(&term).contains("\x1b_Ga=d,d=I,i=7417,q=2\x1b\\"));
    term.wait_text("Seen.");
}

#[test]
fn a_terminal_with_sixels_gets_sixels_that_fill_whole_cells() {
    let (_server, place) = place(&[]);
    let mut term = opened(&place, SIXEL);
    // 4 by 4 pixels are one cell of 8 by 16.
    wait("the graphics", || raw(&term).contains("\x1bP0;1;0q\"1;1;8;16#"));
    assert!(!raw(&term).contains("\x1b_Ga=T"), "no other graphics");
    term.keys("q");
    term.wait_text("Seen.");
}

#[test]
fn a_terminal_that_does_not_answer_so_gets_cells_and_no_graphics() {
    for (env, answers) in [
        (&[][..], PLAIN),
        (&[], "\x1b_Gi=7417;ENOTSUPPORTED\x1b\\\x1b[?62c"),
        (&[], "\x1b_Gi=31;OK\x1b\\\x1b[?4c"),
        // A multiplexer is not asked, and passes nothing on.
        (&[("TMUX", "/tmp/tmux-0/default,1,0"), ("TERM_PROGRAM", "iTerm.app")], PLAIN),
    ] {
        let (_server, place) = place(env);
        let term = opened(&place, answers);
        term.wait("the cells", |screen| screen.contains('▀') || screen.contains('@'));
        let all = raw(&term);
        assert!(
            !all.contains("\x1b_Ga=T") && !all.contains("\x1bP0;1;0q") && !all.contains("\x1b]1337"),
            "{answers:?}"
        );
        assert_eq!(all.contains("\x1b_G"), env.is_empty(), "a multiplexer is not asked: {env:?}");
        // The answers are no keys.
        let screen = term.screen();
        assert!(!screen.contains("7417") && !screen.contains("62;"), "{screen}");
    }
}

#[test]
fn iterm_is_known_by_its_environment_and_the_setting_turns_all_of_it_off() {
    let (_server, place) = place(&[("TERM_PROGRAM", "iTerm.app")]);
    let term = opened(&place, PLAIN);
    wait("the graphics", || raw(&term).contains("\x1b]1337;File=inline=1;size="));
    drop(term);
    let (_server, place) = self::place(&[("TERM_PROGRAM", "iTerm.app")]);
    place.config("[ui]\nimages = \"off\"\n");
    let term = opened(&place, &format!("{KITTY}{SIXEL}"));
    term.wait("the cells", |screen| screen.contains('▀') || screen.contains('@'));
    let all = raw(&term);
    assert!(!all.contains("\x1b_Ga=T") && !all.contains("\x1bP0;1;0q") && !all.contains("\x1b]1337"));
}

/// gzip stands for the program that shows pictures: it leaves a trace, and is no script that was written just now.
#[test]
fn a_key_opens_the_picture_with_the_systems_program() {
    let gzip = ["/usr/bin/gzip", "/bin/gzip"].into_iter().find(|path| std::path::Path::new(path).exists());
    let Some(gzip) = gzip else {
        eprintln!("skipped: gzip is missing");
        return;
    };
    let (_server, mut place) = place(&[]);
    let bin = place.work.join("../bin");
    let copies = place.work.join("../copies");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&copies).unwrap();
    for name in ["xdg-open", "open"] {
        std::os::unix::fs::symlink(gzip, bin.join(name)).unwrap();
    }
    place.set("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    place.set("TMPDIR", &copies.display().to_string());
    let mut term = opened(&place, PLAIN);
    let found = || {
        let names =
            std::fs::read_dir(&copies).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
        names.into_iter().filter(|name| name.starts_with("tiller-picture-")).collect::<Vec<_>>()
    };
    assert!(found().is_empty(), "nothing is opened without the key");
    term.keys("o");
    // The program removes the file that it was given after it has written its own.
    wait("the copy alone", || matches!(&found()[..], [name] if name.ends_with(".png.gz")));
    term.keys("q");
}

/// Seen: a reply that is cut behind its Escape stood in the composer.
#[test]
fn a_reply_that_comes_in_two_parts_is_no_text() {
    let replies =
        ["\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\", "\x1bP1$r0;48:2::1:2:3m\x1b\\", KITTY, "\x1b[?2026;2$y", PLAIN];
    // One of them is cut: each lone Escape is a key, and two open the session tree.
    for cut in 0..replies.len() {
        let (cols, rows) = [(118, 25), (80, 24)][cut % 2];
        let server = ScriptServer::start([says("Yes.")]);
        let place = Place::anthropic(&server);
        let mut term = place.term(&[], cols, rows);
        wait("the last question", || raw(&term).contains("\x1b[?u\x1b[c"));
        for (n, reply) in replies.iter().enumerate() {
            let (escape, rest) = reply.split_at(1);
            term.bytes(escape.as_bytes());
            if n == cut {
                // Longer than a lone Escape is waited for.
                crate::common::let_pass(std::time::Duration::from_millis(150));
            }
            term.bytes(rest.as_bytes());
        }
        idle(&term);
        crate::screen::type_in(&mut term, "hello");
        term.wait_text("hello");
        let screen = term.screen();
        for part in ["rgb", "1e1e", "7417", "2026", "62;", "48:2", "$"] {
            assert!(!screen.contains(part), "{part}: {screen}");
        }
    }
}

#[test]
fn dropped_pictures_reach_the_model() {
    for (cols, rows) in [(118, 25), (80, 24)] {
        let server = ScriptServer::start([says("Two pictures.")]);
        let place = Place::anthropic(&server);
        let outside = tempfile::tempdir().unwrap();
        let path = |name: &str| outside.path().join(name).display().to_string();
        for name in ["a b.png", "c.png"] {
            std::fs::write(path(name), STANDARD.decode(PNG).unwrap()).unwrap();
        }
        let mut term = place.term(&[], cols, rows);
        idle(&term);
        crate::screen::type_in(&mut term, "what is this ");
        term.keys(&format!("\x1b[200~'{}' {}\x1b[201~", path("a b.png"), path("c.png")));
        term.wait_text("[image 2: 4x4");
        term.keys("\r");
        term.wait_text("Two pictures.");
        let sent = server.requests()[0].json()["messages"].to_string();
        assert_eq!(sent.matches("image/png").count(), 2, "{sent}");
        assert!(!sent.contains("a b.png"), "{sent}");
    }
}
