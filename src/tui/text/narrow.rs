//! Patterns of syntax tables with small classes. Also a module of the build script, which applies it to all tables.

/// Letters, in classes: those of ASCII, and everything beyond ASCII.
const LETTERS: &str = r"A-Za-z\x{80}-\x{10FFFF}";
/// Symbols, likewise.
const SYMBOLS: &str = r"$+<=>\^`|~\x{80}-\x{10FFFF}";

/// The pattern with short lists of ranges for the classes of Unicode that tables of languages use: a compiled `\p{L}` takes
/// 60 KiB, and a grammar has a hundred of them. Beyond ASCII, each character counts as a letter: names in other scripts
/// keep their colours. Within negated classes they are then taken for what the class excludes.
pub(crate) fn narrow(pattern: &str) -> String {
    let verbose = pattern.contains("(?x");
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    // Open brackets of a class; classes may lie within classes.
    let mut depth = 0_usize;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('p') if chars.peek() == Some(&'{') => {
                    let name: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                    match property(&name) {
                        Some(ranges) => class(&mut out, ranges, depth),
                        None => out.extend(["\\p{", &name, "}"]),
                    }
                }
                Some('w') => class(&mut out, &format!("0-9_{LETTERS}"), depth),
                Some('d') => class(&mut out, "0-9", depth),
                Some('s') => class(&mut out, r" \t-\r", depth),
                Some('W') if depth == 0 => out.push_str(&format!("[^0-9_{LETTERS}]")),
                Some('D') if depth == 0 => out.push_str("[^0-9]"),
                Some('S') if depth == 0 => out.push_str(r"[^ \t-\r]"),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' => {
                depth += 1;
                out.push(c);
                // At the start of a class, a closing bracket is a character like others.
                for first in ['^', ']'] {
                    out.extend(chars.next_if_eq(&first));
                }
            }
            ']' if depth > 0 => {
                depth -= 1;
                out.push(c);
            }
            '#' if verbose && depth == 0 => {
                out.push(c);
                while let Some(c) = chars.next_if(|c| *c != '\n') {
                    out.push(c);
                }
            }
            _ => out.push(c),
        }
    }
    out
}

/// Writes ranges, in brackets where no class is open.
fn class(out: &mut String, ranges: &str, depth: usize) {
    if depth > 0 { out.push_str(ranges) } else { out.extend(["[", ranges, "]"]) }
}

/// The ranges for a property of Unicode; `None` for those that no table needs often.
fn property(name: &str) -> Option<&'static str> {
    Some(match name {
        "L" | "Alphabetic" | "Alpha" => LETTERS,
        "Lu" => "A-Z",
        "Ll" => "a-z",
        "N" | "Nd" => "0-9",
        "Pc" => "_",
        "S" | "Sm" => SYMBOLS,
        "Lo" | "Lt" | "Nl" | "M" | "Mc" | "Mn" | "So" => r"\x{80}-\x{10FFFF}",
        _ => return None,
    })
}
