//! Copying within tmux, which does not forward OSC 52 of programs unless configured.

use tiller_testkit::{Script, Wire};

use crate::common::{Place, wait};
use crate::scenario::Model;
use crate::screen::{idle, quit, say};

/// A place where `tmux` is `script`, with one answered message.
fn answered(script: &str) -> (Place, tiller_testkit::Term) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    let bin = place.user.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = bin.join("tmux");
    tiller_testkit::program(&program, script);
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
    place.set("PATH", &format!("{}:{path}", bin.display()));
    place.set("TMUX", &format!("{},1,0", place.user.join("socket").display()));
    model.push(Script::new().text("A walnut on the table."));
    let mut term = place.term(&[], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "what is there?");
    term.wait_text("A walnut on the table.");
    idle(&term);
    say(&mut term, "/copy");
    (place, term)
}

#[test]
fn inside_tmux_its_buffer_gets_the_text() {
    // An old version, which does not know `-w`.
    let script = "#!/bin/sh\n[ \"$2\" = -w ] && exit 1\nd=$(dirname \"$0\")\n\
                  cat > \"$d/got\"; echo \"$@ $TMUX ${ANTHROPIC_API_KEY-none}\" > \"$d/how\"\n";
    let (place, mut term) = answered(script);
    term.wait_text("copied to the tmux buffer");
    let read = |name: &str| std::fs::read_to_string(place.user.join("bin").join(name)).unwrap_or_default();
    wait("the text", || read("how").ends_with('\n'));
    assert_eq!(read("got").trim_end(), "A walnut on the table.");
    let how = read("how");
    assert!(how.starts_with("load-buffer - ") && how.contains("socket,1,0 none"), "{how}");
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn a_tmux_that_cannot_be_asked_is_not_said_to_have_it() {
    let (_place, mut term) = answered("#!/bin/sh\nexit 1\n");
    term.wait_text("by OSC 52");
    idle(&term);
    assert!(!term.showed(0, |s| s.contains("tmux buffer")), "{}", term.screen());
    assert_eq!(quit(&mut term), 0);
}
