//! Checks on the text before a parser sees it: length, hidden characters, nesting.

/// Longest command that is judged; longer ones ask.
pub const MAX_CHARS: usize = 10_000;
/// Most simple commands in one line; more ask.
pub const MAX_PARTS: usize = 50;
/// Longest text that is parsed at all, so that deny rules see the parts of over-long ones too.
const MAX_PARSE: usize = 400_000;
/// The parser recurses; its cost may double with each level.
const MAX_NEST: usize = 10;
/// Nested `if`, `for`, `case`: each is a level of recursion as well.
const MAX_KEYWORDS: usize = 60;
/// A longer run of blanks pushes what follows out of sight.
const MAX_BLANKS: usize = 40;
const MAX_TABS: usize = 3;

/// Outcome of [`check`].
pub(crate) struct Outcome {
    pub(crate) unclear: Option<String>,
    /// Whether the parser may see it.
    pub(crate) parse: bool,
}

pub(crate) fn check(text: &str) -> Outcome {
    let mut unclear = None;
    let mut parse = text.len() <= MAX_PARSE;
    let mut say = |why: String| {
        unclear.get_or_insert(why);
    };
    if text.chars().nth(MAX_CHARS).is_some() {
        say(format!("it is longer than {MAX_CHARS} characters"));
    }
    if let Some((_, name)) = invisibles(text).into_iter().next() {
        say(format!("it contains an invisible character ({name})"));
    }
    if text.contains('\0') {
        parse = false;
    }
    if nesting(text) > MAX_NEST || keywords(text) > MAX_KEYWORDS {
        say("it is nested too deeply".into());
        parse = false;
    }
    if breaks_parser(text) {
        say("it contains a number that is too long".into());
        parse = false;
    }
    if long_blanks(text) {
        say("it contains a long run of spaces".into());
    }
    if let Some(form) = zsh_form(text) {
        say(format!("'{form}' means something else in another shell"));
    }
    Outcome { unclear, parse }
}

/// Deepest nesting of brackets, quotes ignored, plus backticks: an upper bound.
fn nesting(text: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0_usize);
    for c in text.chars() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

fn keywords(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| matches!(*w, "if" | "for" | "while" | "until" | "case" | "select" | "function"))
        .count()
}

/// Numbers before a redirection or after a tilde that the parser cannot hold.
fn breaks_parser(text: &str) -> bool {
    let mut run = 0;
    let mut tilde = false;
    let mut before = ' ';
    for c in text.chars() {
        if c.is_ascii_digit() {
            if run == 0 {
                tilde = before == '~' || (tilde && matches!(before, '+' | '-'));
            }
            run += 1;
            if tilde && run > 6 {
                return true;
            }
        } else {
            if matches!(c, '<' | '>') && run > 6 {
                return true;
            }
            run = 0;
            tilde = c == '~' || (before == '~' && matches!(c, '+' | '-'));
        }
        before = c;
    }
    false
}

fn long_blanks(text: &str) -> bool {
    let (mut blanks, mut tabs) = (0, 0);
    for c in text.chars() {
        match c {
            ' ' => blanks += 1,
            '\t' => {
                blanks += 1;
                tabs += 1;
            }
            _ => (blanks, tabs) = (0, 0),
        }
        if blanks > MAX_BLANKS || tabs > MAX_TABS {
            return true;
        }
    }
    false
}

/// Forms that only zsh knows. Found outside single quotes only, which is strict enough.
fn zsh_form(text: &str) -> Option<&'static str> {
    let open: String = text.split('\'').step_by(2).collect::<Vec<_>>().join(" ");
    ["${(", "=(", "<->", "&!", "&|", ">!", ">&|", ">>|", "${=", "${~", "${^", "**/*("].into_iter().find(
        |form| match *form {
            // An array assignment is `name=(`; zsh's is a word of its own.
            "=(" => open.match_indices("=(").any(|(i, _)| {
                !open[..i].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == ']' || c == '+')
            }),
            // `2>&1 >|` is plain; `!` must follow at once and be no `!=`.
            ">!" => open.contains(">!") && !open.contains(">!="),
            other => open.contains(other),
        },
    )
}

/// Characters that a reader cannot see or would take for something else, with offset (bytes) and name.
/// Line feed and tab are not among them: a dialog can draw those.
pub fn invisibles(text: &str) -> Vec<(usize, String)> {
    text.char_indices().filter_map(|(i, c)| invisible_name(c).map(|n| (i, n))).collect()
}

/// Returns a name of a file in lower case, look-alikes of ASCII as ASCII, without invisible characters: file systems that fold
/// names must not be a way around.
pub fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.chars()
        .filter(|c| invisible_name(*c).is_none())
        .map(|c| match c {
            '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
            '\u{017F}' => 's',
            '\u{0131}' | '\u{0130}' => 'i',
            '\u{2024}' => '.',
            c => c,
        })
        .flat_map(char::to_lowercase)
        .filter(|c| *c != '\u{0307}')
        .collect()
}

fn invisible_name(c: char) -> Option<String> {
    let code = c as u32;
    let name = match code {
        0x09 | 0x0A => return None,
        0x0D => "carriage return",
        0x1B => "escape",
        0x00 => "zero byte",
        0x08 => "backspace",
        0x01..=0x07 | 0x0B | 0x0C | 0x0E..=0x1A | 0x1C..=0x1F => "control character",
        0x7F => "delete",
        0x80..=0x9F => "control character",
        0xA0 => "no-break space",
        0xAD => "soft hyphen",
        0x034F => "combining grapheme joiner",
        0x061C | 0x200E | 0x200F | 0x202A..=0x202E | 0x2066..=0x2069 => "direction mark",
        0x115F | 0x1160 | 0x3164 | 0xFFA0 => "Hangul filler",
        0x1680 | 0x2000..=0x200A | 0x202F | 0x205F | 0x3000 => "unusual space",
        0x17B4 | 0x17B5 => "inherent vowel",
        0x180B..=0x180F => "Mongolian separator",
        0x200B => "zero-width space",
        0x200C | 0x200D => "zero-width joiner",
        0x2028 | 0x2029 => "line separator",
        0x2060..=0x2065 | 0x206A..=0x206F => "invisible format character",
        0x2800 => "blank pattern",
        0xFE00..=0xFE0F | 0xE0100..=0xE01EF => "variation selector",
        0xFEFF => "zero-width no-break space",
        0xFFF9..=0xFFFC => "object mark",
        0xFFFD => "replacement mark",
        0x1D173..=0x1D17A => "invisible format character",
        0xE0000..=0xE007F => "tag character",
        0xE000..=0xF8FF | 0xF0000..=0x10FFFF => "private character",
        _ => return None,
    };
    Some(format!("{name} U+{code:04X}"))
}
