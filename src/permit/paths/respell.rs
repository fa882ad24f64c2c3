//! A command as its paths lead, so that a rule on its text holds for where it leads and not for how it
//! is spelled: `cat src/../../etc/passwd` is `cat /etc/passwd`.

use std::path::{Path, PathBuf};

use crate::paths::Roots;
use crate::rules::Spellings;
use tiller_shell::{Part, Word};

/// The texts that an allow rule must match, all of them: as written, and as its paths lead. A program that is a link
/// (`.venv/bin/python`, `node_modules/.bin/tsc`) is allowed by its name as written; where it leads can only narrow.
pub(crate) fn all(part: &Part, roots: &Roots, places: &[PathBuf]) -> Vec<String> {
    let mut out = vec![part.text()];
    let climbs = part.program().split('/').any(|name| name == "..");
    let as_written = |mut led: Part| {
        if let (false, Some(own), Some(word)) = (climbs, part.argv.first(), led.argv.first_mut()) {
            word.clone_from(own);
        }
        led.text()
    };
    out.extend(led(part, roots, places).into_iter().map(as_written));
    out.dedup();
    out
}

/// Every spelling that a rule which narrows is compared with.
pub(crate) fn spellings(part: &Part, roots: &Roots, places: &[PathBuf]) -> Spellings {
    let mut out = Spellings::of_part(part);
    for led in led(part, roots, places) {
        out.extend(Spellings::of_part(&led));
        // Relative to the workspace and absolute are the same place.
        let whole: Vec<Word> = led.argv.iter().map(|w| absolute(w, roots)).collect();
        out.extend(Spellings::of_part(&Part { argv: whole, ..led }));
    }
    out
}

/// The part with each path in the place of how it was spelled; nothing when that changes nothing.
fn led(part: &Part, roots: &Roots, places: &[PathBuf]) -> Vec<Part> {
    // With several folders in which it may run, each is one reading.
    let readings = if places.is_empty() { vec![roots.workspace.clone()] } else { places.to_vec() };
    let mut out: Vec<Part> = Vec::new();
    for place in readings.iter().take(4) {
        let argv: Vec<Word> = part.argv.iter().map(|w| one(w, roots, place)).collect();
        let led = Part { argv, ..part.clone() };
        if led.argv != part.argv && !out.contains(&led) {
            out.push(led);
        }
    }
    out
}

fn absolute(word: &Word, roots: &Roots) -> Word {
    let path = Path::new(&word.text);
    if word.dynamic || word.tilde || path.is_absolute() || !word.text.contains('/') {
        return word.clone();
    }
    Word { text: roots.workspace.join(path).display().to_string(), ..word.clone() }
}

/// `--file=x/../y` and `x/../y`, where that leads.
fn one(word: &Word, roots: &Roots, place: &Path) -> Word {
    if word.dynamic || word.tilde || word.text.contains("://") {
        return word.clone();
    }
    let (head, path) = match word.text.split_once('=') {
        Some((head, value)) if head.starts_with("--") || !head.contains('/') => (format!("{head}="), value),
        _ => (String::new(), word.text.as_str()),
    };
    if path.is_empty() || path.starts_with('-') || path.contains(char::is_whitespace) {
        return word.clone();
    }
    let steps = path.split('/').any(|c| c == "..");
    let lexical = crate::paths::normal(&place.join(path));
    let real = roots.real(&lexical);
    let root = roots.real(&roots.workspace);
    // The links on the way to the workspace itself are no news.
    let rebased =
        lexical.strip_prefix(&roots.workspace).map(|p| root.join(p)).unwrap_or_else(|_| lexical.clone());
    if !steps && real == rebased {
        return word.clone();
    }
    let shown = real.strip_prefix(&root).map(Path::to_path_buf).unwrap_or(real);
    let mut text = shown.display().to_string();
    if text.is_empty() {
        text.push('.');
    }
    if path.ends_with('/') && !text.ends_with('/') {
        text.push('/');
    }
    Word { text: format!("{head}{text}"), ..word.clone() }
}
