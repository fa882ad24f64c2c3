//! Measures how fast texts are masked: `cargo run --release -p tiller-permit --example redact_speed -- FILE...`. Prints the
//! megabytes per second of each file, in pieces as tools give them, and of a stream of words.

#![allow(clippy::print_stdout, reason = "a tool for builders that prints its figures")]

use std::time::Instant;

use tiller_permit::{RedactStream, Redactor};

/// Bytes of a piece.
const PIECE: usize = 32 << 10;
const ROUNDS: usize = 3;

fn main() -> std::io::Result<()> {
    let start = Instant::now();
    let redactor = Redactor::default();
    redactor.redact("first");
    println!("the first text took {:?}", start.elapsed());
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path)?;
        let whole = best(&text, |text| {
            let mut at = 0;
            while at < text.len() {
                let end = text.ceil_char_boundary((at + PIECE).min(text.len()));
                redactor.redact(&text[at..end]);
                at = end;
            }
        });
        let streamed = best(&text, |text| {
            let mut stream = RedactStream::new(redactor.clone());
            for word in text.split_inclusive(' ') {
                stream.push(word);
            }
            stream.finish();
        });
        println!("{path}: {whole:.1} MB/s whole, {streamed:.1} MB/s as a stream");
    }
    Ok(())
}

/// Megabytes per second in the best of some rounds.
fn best(text: &str, work: impl Fn(&str)) -> f64 {
    let seconds = |()| {
        let start = Instant::now();
        work(text);
        start.elapsed().as_secs_f64()
    };
    let least = std::iter::repeat_n((), ROUNDS).map(seconds).fold(f64::MAX, f64::min);
    text.len() as f64 / 1e6 / least
}
