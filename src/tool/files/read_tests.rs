use std::io::{Seek, SeekFrom, Write};

use base64::Engine as _;
use serde_json::json;
use tiller_protocol::Part;

use super::*;
use crate::testing::Bench;

/// A real PNG of 2x3 pixels.
fn png() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    ::image::DynamicImage::new_rgb8(2, 3).write_to(&mut bytes, ::image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

#[tokio::test]
async fn reads_lines_and_names_what_is_odd() {
    let b = Bench::new();
    b.file("a.txt", "one\r\ntwo\x1b[1m\r\n");
    assert_eq!(b.say(&ReadFile, json!({"path": "a.txt"})).await, "1\tone\n2\ttwo␛[1m\n[CRLF line endings]\n");
    assert_eq!(
        b.say(&ReadFile, json!({"path": "a.txt", "start": 2, "end": 2})).await,
        "2\ttwo␛[1m\n[CRLF line endings]\n"
    );
    b.file("l", b"k\xe4se\n");
    assert_eq!(b.say(&ReadFile, json!({"path": "l"})).await, "1\tkäse\n[windows-1252]\n");
    b.file(
        "u",
        [0xff, 0xfe]
            .into_iter()
            .chain("hi\r\n".encode_utf16().flat_map(u16::to_le_bytes))
            .collect::<Vec<u8>>(),
    );
    assert_eq!(b.say(&ReadFile, json!({"path": "u"})).await, "1\thi\n[UTF-16 LE, CRLF line endings]\n");
    b.file("empty", "");
    assert_eq!(b.say(&ReadFile, json!({"path": "empty"})).await, "[the file is empty]\n");
    assert!(b.say(&ReadFile, json!({"path": "a.tx"})).await.contains("in the same folder: a.txt"));
    assert!(b.say(&ReadFile, json!({"path": "."})).await.contains("use list_dir"));
    assert_eq!(ReadFile.target(&json!({"path": "a", "start": 3})), "a:3-");
}

#[tokio::test]
async fn images_are_attached_and_large_ones_described() {
    let b = Bench::new();
    b.file("i.png", png());
    let out = b.call(&ReadFile, json!({"path": "i.png"})).await.unwrap();
    let [Part::Text { text }, Part::Image { media_type, data }] = out.content.as_slice() else {
        panic!("{out:?}")
    };
    assert!(text.contains("image/png, 2x3 pixels"), "{text}");
    assert_eq!(media_type, "image/png");
    assert_eq!(base64::engine::general_purpose::STANDARD.decode(data).unwrap(), png());
    let mut big = png();
    big.resize(4_000_000, 0);
    b.file("big.png", big);
    assert!(b.say(&ReadFile, json!({"path": "big.png"})).await.contains("too large to attach"));
    b.file("broken.png", b"\x89PNG\r\n\x1a\nnot really");
    let out = b.call(&ReadFile, json!({"path": "broken.png"})).await.unwrap();
    assert!(matches!(out.content.as_slice(), [Part::Text { text }] if text.contains("damaged image/png")));
}

#[tokio::test]
async fn binaries_are_described_and_notebooks_rendered() {
    let b = Bench::new();
    b.file("prog", b"\x7fELF\x02\x01\x01\0\0");
    assert_eq!(
        b.say(&ReadFile, json!({"path": "prog"})).await,
        "prog: an ELF program or library, 9 B; not shown. First bytes: 7f 45 4c 46 02 01 01 00 00"
    );
    let book = json!({"nbformat": 4, "cells": [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "execution_count": 2, "source": "print(1)", "outputs": [
            {"output_type": "stream", "text": ["1\n"]},
            {"output_type": "execute_result", "data": {"text/plain": "7", "image/png": "AAAA"}},
            {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u{1b}[31mred\u{1b}[0m"]},
        ]},
    ]});
    b.file("n.ipynb", book.to_string());
    let said = b.say(&ReadFile, json!({"path": "n.ipynb"})).await;
    for want in [
        "--- cell 1 markdown",
        "# Title",
        "--- cell 2 code [2]",
        "print(1)",
        "[image/png, 4 B]",
        "E: v",
        "red",
    ] {
        assert!(said.contains(want), "{want}: {said}");
    }
    assert!(!said.contains('\x1b'));
    b.file("odd.ipynb", "no json");
    assert!(b.say(&ReadFile, json!({"path": "odd.ipynb"})).await.starts_with("1\tno json"));
}

#[tokio::test]
async fn the_text_of_a_pdf_is_read_in_pages_of_lines() {
    let b = Bench::new();
    let two = crate::pdf::tests::pages(&["BT /F 9 Tf (First page) Tj ET", "BT /F 9 Tf (Second page) Tj ET"]);
    b.file("a.pdf", &two);
    b.file("A.PDF", &two);
    b.file("download", &two);
    let whole = "1\t--- page 1 of 2 ---\n2\tFirst page\n3\t--- page 2 of 2 ---\n4\tSecond page\n\
                 [the text of a PDF of 2 pages]\n";
    assert_eq!(b.say(&ReadFile, json!({"path": "a.pdf"})).await, whole);
    assert_eq!(b.say(&ReadFile, json!({"path": "A.PDF"})).await, whole);
    assert_eq!(b.say(&ReadFile, json!({"path": "download"})).await, whole);
    let part = b.say(&ReadFile, json!({"path": "a.pdf", "start": 3, "end": 4})).await;
    assert!(part.starts_with("3\t--- page 2") && !part.contains("First"), "{part}");
    b.file("scan.pdf", crate::pdf::tests::pages(&["q Q"]));
    let said = b.say(&ReadFile, json!({"path": "scan.pdf"})).await;
    assert!(
        said.contains("a PDF document") && said.contains("none of the pages that were read (1) has a text"),
        "{said}"
    );
    b.file("notes.txt", "%PDF-1.7 is the first line of such a file\n");
    assert!(b.say(&ReadFile, json!({"path": "notes.txt"})).await.contains("first line"));
    b.file("empty.pdf", "%PDF-1.7\n");
    assert!(b.say(&ReadFile, json!({"path": "empty.pdf"})).await.contains("it is damaged"));
}

#[tokio::test]
async fn full_outputs_can_be_paged_without_permission() {
    let b = Bench::new().limits(|l| l.page_bytes = 1_000);
    let text: String = (1..=500).map(|n| format!("row {n}\n")).collect();
    let mut spill = crate::output::Spill::create(&b.cx).unwrap();
    spill.write(text.as_bytes()).unwrap();
    let args = json!({"path": spill.path(), "start": 400});
    assert_eq!(ReadFile.access(&args, &b.cx).unwrap(), [Access::Free]);
    let said = b.say(&ReadFile, args).await;
    assert!(said.starts_with("400\trow 400\n") && said.contains("next page: start="), "{said}");
    let said = b.say(&crate::files::WriteFile, json!({"path": spill.path(), "content": "x"})).await;
    assert!(said.contains("read-only"), "{said}");
}

/// Bytes that may be read for one page near the start of a huge file.
const READ_MAX: u64 = 1 << 20;

#[tokio::test]
async fn w13_a_sparse_file_of_2_gb() {
    let b = Bench::new();
    let path = b.root.join("huge");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(b"first\nsecond\n").unwrap();
    // Text up to here, then a hole.
    file.write_all("row\n".repeat(20_000).as_bytes()).unwrap();
    file.set_len(2 << 30).unwrap();
    file.seek(SeekFrom::Start((2 << 30) - 5)).unwrap();
    file.write_all(b"last\n").unwrap();
    let before = read_bytes();
    let said = b.say(&ReadFile, json!({"path": "huge", "end": 2})).await;
    assert!(said.starts_with("1\tfirst\n2\tsecond\n[lines 1-2 of a file of 2.1 GB"), "{said}");
    let said = b.say(&ReadFile, json!({"path": "huge", "byte": (2u64 << 30) - 5})).await;
    assert!(said.starts_with("last\n"), "{said}");
    // Other tests read too; the bound is far below the file.
    if let (Some(before), Some(after)) = (before, read_bytes()) {
        assert!(after - before < 256 * READ_MAX, "{} bytes read", after - before);
    }
    for (tool, args) in [
        (&crate::files::EditFile as &dyn Tool, json!({"path": "huge", "old": "first", "new": "x"})),
        (&crate::files::WriteFile, json!({"path": "huge", "content": "x"})),
    ] {
        assert!(b.say(tool, args).await.contains("too large to edit"));
    }
    let said = b.say(&crate::files::Search, json!({"pattern": "second"})).await;
    assert!(said.starts_with("huge\n2:second"), "{said}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 2 << 30);
}

/// Bytes that this process has read so far; `None` where there is no `/proc`.
fn read_bytes() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        println!("skipped: how many bytes were read (no /proc)");
        return None;
    }
    let io = std::fs::read_to_string("/proc/self/io").expect("what this process has read");
    Some(
        io.lines()
            .find_map(|l| l.strip_prefix("rchar: "))
            .expect("the line rchar")
            .parse()
            .expect("a number"),
    )
}

#[tokio::test]
async fn w13_a_line_of_100_mb() {
    let b = Bench::new();
    let mut file = std::fs::File::create(b.root.join("line")).unwrap();
    let piece = "ä".repeat(1 << 19);
    for _ in 0..100 {
        file.write_all(piece.as_bytes()).unwrap();
    }
    file.write_all(b"\nend\n").unwrap();
    let said = b.say(&ReadFile, json!({"path": "line"})).await;
    assert!(
        said.len() < b.cx.limits.page_bytes + 200 && said.contains("line 1 continues; next page: byte="),
        "{}",
        said.len()
    );
    let byte: u64 = said.split("byte=").nth(1).unwrap().trim_end_matches("]\n").parse().unwrap();
    let said = b.say(&ReadFile, json!({"path": "line", "byte": byte})).await;
    assert!(said.starts_with("ää") && !said.contains('\u{fffd}'));
    assert_eq!(
        b.say(&ReadFile, json!({"path": "line", "start": 2})).await,
        "2\tend\n[the end of the file (105 MB)]\n"
    );
}
