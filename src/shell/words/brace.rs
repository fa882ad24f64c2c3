//! Brace expansion of plain words: `src/{a,b}`, `{1..5}`.

/// More words than this are not listed.
const MAX_WORDS: usize = 64;

/// Outcome of looking for braces in a word as written.
pub(super) enum Braces {
    /// There is nothing to expand.
    None,
    /// The words that the shell would make.
    Words(Vec<String>),
    /// There is something, and it cannot be listed for certain.
    Unclear,
}

/// `raw` is the word with its quotes.
pub(super) fn expand(raw: &str) -> Braces {
    if !may_expand(raw) {
        return Braces::None;
    }
    let simple = raw.chars().all(|c| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '.' | '/' | ',' | '{' | '}' | '=' | ':' | '@' | '%' | '+' | '-' | '*' | '?')
    });
    if !simple {
        return Braces::Unclear;
    }
    let mut words = vec![String::new()];
    match parts(raw, &mut words) {
        Some(()) => Braces::Words(words),
        None => Braces::Unclear,
    }
}

/// An unquoted `{` that is followed by `,` or `..` and a `}`. `${` is no brace expansion.
fn may_expand(raw: &str) -> bool {
    let mut quote = None;
    let mut depth = 0_usize;
    let mut hot = false;
    let mut before = ' ';
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('"') | None, '\\') => {
                chars.next();
            }
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '{') if before != '$' => depth += 1,
            (None, ',') if depth > 0 => hot = true,
            (None, '.') if depth > 0 && chars.peek() == Some(&'.') => hot = true,
            (None, '}') if hot && depth > 0 => return true,
            _ => {}
        }
        before = c;
    }
    false
}

/// Multiplies `words` by everything in `text`. `None`: too many, or not well formed.
fn parts(text: &str, words: &mut Vec<String>) -> Option<()> {
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        append(words, &rest[..open]);
        let (inner, after) = closed(&rest[open + 1..])?;
        let options = members(inner)?;
        if words.len().checked_mul(options.len())? > MAX_WORDS {
            return None;
        }
        *words = words.iter().flat_map(|w| options.iter().map(move |o| format!("{w}{o}"))).collect();
        rest = after;
    }
    if rest.contains('}') {
        return None;
    }
    append(words, rest);
    Some(())
}

fn append(words: &mut [String], text: &str) {
    for w in words {
        w.push_str(text);
    }
}

/// Splits after the brace that closes; nested ones are not expanded here.
fn closed(text: &str) -> Option<(&str, &str)> {
    let end = text.find(['{', '}'])?;
    text[end..].starts_with('}').then(|| (&text[..end], &text[end + 1..]))
}

fn members(inner: &str) -> Option<Vec<String>> {
    if inner.contains(',') {
        return Some(inner.split(',').map(str::to_owned).collect());
    }
    let (from, to) = inner.split_once("..")?;
    let short = |s: &str| s.len() <= 4 && !s.starts_with('0') || s == "0";
    if !short(from) || !short(to) {
        return None;
    }
    let (from, to): (i32, i32) = (from.parse().ok()?, to.parse().ok()?);
    if from.abs_diff(to) as usize >= MAX_WORDS {
        return None;
    }
    let up: Vec<String> = (from.min(to)..=from.max(to)).map(|n| n.to_string()).collect();
    Some(if from <= to { up } else { up.into_iter().rev().collect() })
}
