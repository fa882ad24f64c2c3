//! Extracts the texts that a person or a model reads from source and data files: string literals, doc comments that
//! become help or descriptions, paragraphs of Markdown, and values of TOML.

/// A text and its first line, counted from 1.
pub(crate) type Text = (usize, String);

/// Derives that turn doc comments into help of the command line or descriptions of a schema.
const PRINTED: [&str; 5] = ["JsonSchema", "Parser", "Args", "Subcommand", "ValueEnum"];

/// The string literals of Rust source, with their quotes. An escaped line break joins the lines.
pub(crate) fn literals(code: &str) -> Vec<Text> {
    let chars: Vec<char> = code.chars().collect();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    let next = |at: usize| chars.get(at + 1).copied();
    while let Some(&c) = chars.get(at) {
        match c {
            '\n' => line += 1,
            '/' if next(at) == Some('/') => {
                at += chars[at..].iter().take_while(|c| **c != '\n').count();
                continue;
            }
            // A character literal, such as a quote; a lifetime has no second mark.
            '\'' if next(at) == Some('\\') => {
                at += 3 + chars.iter().skip(at + 3).take_while(|c| **c != '\'').count();
            }
            '\'' if chars.get(at + 2) == Some(&'\'') => at += 2,
            '"' => {
                let hashes = chars[..at].iter().rev().take_while(|c| **c == '#').count();
                let raw = chars.get(at.wrapping_sub(hashes + 1)) == Some(&'r');
                let (text, end) = literal(&chars[at + 1..], raw.then_some(hashes));
                let lines =
                    chars[at..=(at + end).min(chars.len() - 1)].iter().filter(|c| **c == '\n').count();
                found.push((line, format!("\"{text}\"")));
                line += lines;
                at += end;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The text of a literal after its first quote, and the distance from that quote to the last one.
fn literal(chars: &[char], raw: Option<usize>) -> (String, usize) {
    let (mut text, mut at) = (String::new(), 0);
    while let Some(&c) = chars.get(at) {
        match (c, raw) {
            ('"', None) => break,
            ('"', Some(hashes)) if chars[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes => {
                break;
            }
            ('\\', None) if chars.get(at + 1) == Some(&'\n') => {
                at += 1;
                at += chars[at..].iter().take_while(|c| c.is_whitespace()).count();
                continue;
            }
            ('\\', None) => {
                let escaped = chars.get(at + 1).copied().unwrap_or_default();
                text.push(if matches!(escaped, 'n' | 't' | 'r') { ' ' } else { escaped });
                at += 1;
            }
            _ => text.push(c),
        }
        at += 1;
    }
    (text, at + 1)
}

/// The doc comments of types that derive help or a schema, and of their fields and variants.
pub(crate) fn printed_docs(code: &str) -> Vec<Text> {
    let (mut found, mut pending) = (Vec::new(), Vec::new());
    let (mut attributes, mut in_attribute, mut inside) = (String::new(), false, false);
    for (number, line) in (1..).zip(code.lines()) {
        let trimmed = line.trim();
        if let Some(doc) = trimmed.strip_prefix("///") {
            join(&mut pending, number, doc);
        } else if inside {
            found.append(&mut pending);
            inside = line != "}";
        } else if in_attribute || trimmed.starts_with("#[") {
            attributes.push_str(trimmed);
            in_attribute = !trimmed.ends_with(']');
        } else {
            let mut words = attributes.split(|c: char| !c.is_alphanumeric());
            if words.any(|word| PRINTED.contains(&word)) {
                found.append(&mut pending);
                inside = line.ends_with('{');
            }
            pending.clear();
            attributes.clear();
        }
    }
    found
}

/// The paragraphs of a text file.
pub(crate) fn paragraphs(text: &str) -> Vec<Text> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            found.push((0, String::new()));
        } else {
            join(&mut found, number, line);
        }
    }
    found.retain(|(line, _)| *line > 0);
    found
}

/// The paragraphs of a TOML file without its comments.
pub(crate) fn values(text: &str) -> Vec<Text> {
    let lines = text.lines().map(|l| if l.trim_start().starts_with('#') { "" } else { l });
    paragraphs(&lines.collect::<Vec<_>>().join("\n"))
}

/// Appends a line to the text that ends on the line before it, or begins a text.
fn join(texts: &mut Vec<Text>, number: usize, line: &str) {
    match texts.last_mut() {
        Some((_, text)) if !text.is_empty() => {
            text.push(' ');
            text.push_str(line.trim());
        }
        _ => texts.push((number, line.trim().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_with_continued_lines_and_without_comments() {
        let code = "let a = \"one \\\n    two\"; // \"three\"\nlet q = '\"'; let e = '\\\"';\nlet r = r#\"fo\"ur\"#;\n\
                    fn f<'a>(x: &'a str) { g(\"five \\\"six\\\"\") }";
        let found = literals(code);
        let expected =
            [(1, "\"one two\""), (4, "\"fo\"ur\""), (5, "\"five \"six\"\"")].map(|(n, t)| (n, t.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn docs_are_found_where_they_are_printed() {
        let code = "/// Not printed.\npub fn f() {}\n\n/// The limits\n/// of a turn.\n#[derive(\n    Debug, JsonSchema,\n)]\n\
                    pub struct L {\n    /// How many.\n    #[serde(default)]\n    pub n: u32,\n}\n\n/// Plain.\n\
                    #[derive(Debug)]\nstruct P {\n    /// A field.\n    n: u32,\n}\n";
        let expected = [(4, "The limits of a turn."), (10, "How many.")].map(|(n, t)| (n, t.to_owned()));
        assert_eq!(printed_docs(code), expected);
    }

    #[test]
    fn paragraphs_are_joined_and_comments_of_toml_left_out() {
        let expected = [(1, "a b"), (4, "c")].map(|(n, t)| (n, t.to_owned()));
        assert_eq!(paragraphs("a\nb\n\nc\n"), expected);
        assert_eq!(values("# a\nt = \"b\"\n"), [(2, "t = \"b\"".to_owned())]);
    }
}
