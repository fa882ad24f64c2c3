//! Why a text was not found: the place that is most like it.

use std::time::Duration;

use similar::TextDiff;

use crate::text::visible;

/// Lines that are looked at, and candidates that are compared in full.
const LINES: usize = 200_000;
const CANDIDATES: usize = 6;
/// Lines and bytes of the place that are shown.
const SHOWN_LINES: usize = 40;
const SHOWN_BYTES: usize = 3_000;

/// What to tell the model that asked for `old`.
pub(crate) fn explain(text: &str, old: &str) -> String {
    let mut said = String::from("`old` was not found; nothing was changed.");
    if let Some(plain) = without_numbers(old)
        && text.contains(&plain)
    {
        said.push_str(" It begins with line numbers, which are not part of the file: leave them out.");
        return said;
    }
    let lines: Vec<&str> = text.lines().take(LINES).collect();
    let wanted: Vec<&str> = old.trim_matches('\n').lines().collect();
    if let Some(at) = same_but_space(&lines, &wanted) {
        said.push_str(" Only whitespace differs: tabs, indentation or line breaks.");
        place(&mut said, &lines, at, wanted.len());
        return said;
    }
    match best(&lines, &wanted) {
        Some((at, ratio)) if ratio >= 0.45 => {
            said.push_str(&format!(" Closest match ({:.0} % similar):", ratio * 100.0));
            place(&mut said, &lines, at, wanted.len());
        }
        _ => said.push_str(" The file has no similar text; read it again."),
    }
    said
}

fn place(said: &mut String, lines: &[&str], at: usize, count: usize) {
    let end = (at + count.clamp(1, SHOWN_LINES)).min(lines.len());
    said.push_str(&format!(" lines {}-{}:\n", at + 1, end));
    let mut left = SHOWN_BYTES;
    for line in &lines[at..end] {
        let line = visible(line);
        let cut = line.floor_char_boundary(left.min(line.len()));
        said.push_str(&line[..cut]);
        said.push('\n');
        left -= cut;
        if left == 0 {
            break;
        }
    }
}

/// `old` without the numbers that read_file puts before lines, when all lines have them.
fn without_numbers(old: &str) -> Option<String> {
    let strip = |line: &str| -> Option<String> {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < line.trim_start().len()).then(|| rest.strip_prefix('\t').map(str::to_owned)).flatten()
    };
    let lines: Option<Vec<String>> = old.lines().map(strip).collect();
    lines.filter(|l| !l.is_empty()).map(|l| l.join("\n"))
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect()
}

/// First line of a place that is the same apart from white space.
fn same_but_space(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let want: String = wanted.iter().map(|l| squeezed(l)).collect();
    if want.is_empty() {
        return None;
    }
    let have: Vec<String> = lines.iter().map(|l| squeezed(l)).collect();
    let mut all = String::new();
    let mut starts = Vec::with_capacity(have.len());
    for line in &have {
        starts.push(all.len());
        all.push_str(line);
    }
    let at = all.find(&want)?;
    // The last line that starts at or before the match and is not empty.
    Some(starts.partition_point(|s| *s <= at).saturating_sub(1))
}

/// The window of as many lines that is most alike, and how much (0 to 1).
fn best(lines: &[&str], wanted: &[&str]) -> Option<(usize, f32)> {
    if lines.is_empty() || wanted.is_empty() {
        return None;
    }
    let trimmed: Vec<&str> = wanted.iter().map(|l| l.trim()).filter(|l| !l.is_empty()).collect();
    let size = wanted.len().min(lines.len());
    // Cheap first: for each window, how many of the wanted lines are in it word for word; and single
    // lines by what they share with the longest wanted one.
    let longest = trimmed.iter().copied().max_by_key(|l| l.len())?;
    let hit: Vec<u32> = lines.iter().map(|l| u32::from(trimmed.contains(&l.trim()))).collect();
    let mut sum: u32 = hit[..size].iter().sum();
    let offset = wanted.iter().position(|l| l.trim() == longest).unwrap_or(0);
    let mut scored = Vec::with_capacity(lines.len());
    for at in 0..=lines.len() - size {
        if at > 0 {
            sum = sum + hit[at + size - 1] - hit[at - 1];
        }
        let line = lines.get(at + offset).copied().unwrap_or_default();
        scored.push((sum as f32 * 2.0 + words_shared(line, longest), at));
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let want = wanted.join("\n");
    let candidates = scored.iter().take(CANDIDATES).filter(|(score, _)| *score > 0.0);
    candidates
        .map(|(_, at)| {
            let have = lines[*at..at + size].join("\n");
            let cut = |s: &str| s[..s.floor_char_boundary(4_000.min(s.len()))].to_owned();
            let (have, want) = (cut(&have), cut(&want));
            let diff = TextDiff::configure()
                .timeout(Duration::from_millis(50))
                .diff_chars(have.as_str(), want.as_str());
            (*at, diff.ratio())
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Share of the words of `want` that are in `line`.
fn words_shared(line: &str, want: &str) -> f32 {
    let words = |s: &str| -> Vec<String> {
        s.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect()
    };
    if line.len() > 2_000 || want.len() > 2_000 {
        return 0.0;
    }
    let have = words(line);
    let want = words(want);
    if want.is_empty() {
        return 0.0;
    }
    want.iter().filter(|w| have.contains(w)).count() as f32 / want.len() as f32
}
