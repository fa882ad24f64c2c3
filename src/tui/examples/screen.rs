//! The real screen without an engine: for looking at it, and for measuring what a key costs.
//!
//! `cargo run -p tiller-tui --example screen` shows it; with `bench` it prints CPU times of a key and of a
//! frame at 120x40 instead.

#![expect(clippy::print_stdout, reason = "an example for a person at a terminal")]

use std::sync::Arc;
use std::time::Instant;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::SystemClock;
use tiller_tui::app::App;
use tiller_tui::app::msg::Msg;
use tiller_tui::keymap::{self, Chord};
use tiller_tui::output::Encoder;
use tiller_tui::theme::{Depth, Themes};
use tiller_tui::{Ui, UiOptions};

const KEYS: u32 = 2000;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("bench") {
        bench();
        return;
    }
    let mut options = UiOptions::new(Arc::new(|k| std::env::var(k).ok()));
    options.mode.inline = std::env::args().any(|a| a == "--inline");
    options.mode.plain = std::env::args().any(|a| a == "--plain");
    let (ui, _sender) = Ui::new(options);
    match ui.run(Box::new(|_| true)) {
        Ok(exit) => println!("{exit:?}"),
        Err(e) => println!("{e}"),
    }
}

/// One key: taken in, drawn, turned into bytes.
fn bench() {
    let ui = tiller_config::schema::Ui::default();
    let (themes, _) = Themes::new(&ui, Depth::True, None);
    let Ok(map) = keymap::preset(tiller_tui::shipped::registry().words(), "default") else { return };
    let mut app = App::new(
        Arc::new(ui),
        tiller_tui::shipped::registry(),
        Arc::new(map),
        themes,
        Arc::new(SystemClock::default()),
    );
    app.start();
    let mut buf = Buffer::empty(Rect::new(0, 0, 120, 40));
    let (mut encoder, mut out) = (Encoder::default(), String::new());
    let mut bytes = 0;
    let start = Instant::now();
    for i in 0..KEYS {
        let key = if i % 60 == 59 { "ctrl-u" } else { "x" };
        let Ok(chord) = Chord::parse(key) else { return };
        app.update(Msg::Input(tiller_tui::input::Input::Key(chord.event())));
        drop(app.take_tasks());
        let cursor = app.draw(&mut buf);
        out.clear();
        encoder.frame(&buf, app.drawn(), cursor, &mut out);
        bytes += out.len();
    }
    let each = start.elapsed() / KEYS;
    println!("a key at 120x40: {each:?}, {} bytes", bytes / KEYS as usize);
}
