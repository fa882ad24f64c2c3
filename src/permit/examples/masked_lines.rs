//! Counts the lines of source code that are masked: `cargo run -p tiller-permit --example masked_lines -- FOLDER...`.
//! Each is printed, masked, with its file, so that what is masked wrongly can be read.

#![allow(clippy::print_stdout, reason = "a tool for builders that prints its figures")]

use std::path::Path;

use tiller_permit::Redactor;

const CODE: &[&str] = &["rs", "py", "js", "ts", "go", "c", "h", "toml", "json", "yaml", "yml", "md", "sh"];

#[derive(Default)]
struct Count {
    files: usize,
    lines: usize,
    masked: usize,
}

fn main() -> std::io::Result<()> {
    let redactor = Redactor::default();
    let mut count = Count::default();
    for folder in std::env::args().skip(1) {
        walk(Path::new(&folder), &redactor, &mut count)?;
    }
    let Count { files, lines, masked } = count;
    println!(
        "{masked} of {lines} lines in {files} files: 1 in {}",
        lines.checked_div(masked).unwrap_or(lines)
    );
    Ok(())
}

fn walk(at: &Path, redactor: &Redactor, count: &mut Count) -> std::io::Result<()> {
    let kind = std::fs::symlink_metadata(at)?;
    if kind.is_dir() {
        for entry in std::fs::read_dir(at)? {
            walk(&entry?.path(), redactor, count)?;
        }
        return Ok(());
    }
    let code = at.extension().and_then(|e| e.to_str()).is_some_and(|e| CODE.contains(&e));
    if !kind.is_file() || !code {
        return Ok(());
    }
    let Ok(text) = std::fs::read_to_string(at) else { return Ok(()) };
    count.files += 1;
    count.lines += text.lines().count();
    let mut last = None;
    for secret in redactor.secrets(&text) {
        let first = text[..secret.range.start].matches('\n').count();
        let end = first + text[secret.range.clone()].matches('\n').count();
        count.masked += end - first + usize::from(last != Some(first));
        last = Some(end);
        let from = text[..secret.range.start].rfind('\n').map_or(0, |i| i + 1);
        let to = text[secret.range.end..].find('\n').map_or(text.len(), |i| secret.range.end + i);
        let (before, after) = (&text[from..secret.range.start], &text[secret.range.end..to]);
        let value = text[secret.range.clone()].chars().take(60).collect::<String>().replace('\n', "\\n");
        let tail = |s: &str, n: usize| {
            s.chars().rev().take(n).collect::<Vec<_>>().into_iter().rev().collect::<String>()
        };
        let head: String = after.chars().take(30).collect();
        println!("{}:{}: {}<<{}: {value}>>{head}", at.display(), first + 1, tail(before, 60), secret.name);
    }
    Ok(())
}
