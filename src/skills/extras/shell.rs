//! Arguments in the commands of an own command: quoted for the place in the shell's text where they stand.
//!
//! | place | an argument is put in |
//! | --- | --- |
//! | outside of quotes | as one word; `$ARGUMENTS`: as its words |
//! | within double quotes | with `\` before each of `\`, `"`, `$` and backticks |
//! | within single quotes | with `'\''` for `'` |
//! | in backticks, arithmetic, a comment and the like | as it is, if it has plain characters only; else not at all |

use crate::fill::{position, split};

/// Why a command does not run.
const NUL: &str = "an argument has a NUL character";
const UNSAFE: &str = "an argument stands where it cannot be quoted";

const ALL: &str = "$ARGUMENTS";

/// The arguments of a call, with the pasted texts that they name by their labels.
pub(super) struct Arguments {
    /// As typed.
    all: String,
    words: Vec<String>,
    has_nul: bool,
}

impl Arguments {
    /// `pastes`: labels and texts. A label belongs to one word, whatever its text is.
    pub(super) fn new(typed: &str, pastes: &[(&str, &str)]) -> Self {
        let typed = typed.trim();
        let has_nul = typed.contains('\0')
            || pastes.iter().any(|(label, text)| text.contains('\0') && typed.contains(label));
        let marked = if has_nul { String::new() } else { marked(typed, pastes) };
        let words = split(&marked).iter().map(|word| unmarked(word, pastes)).collect();
        Self { all: unmarked(&marked, pastes), words, has_nul }
    }
}

/// A text with the number of a paste, between NUL characters, for each label.
fn marked(text: &str, pastes: &[(&str, &str)]) -> String {
    let (mut out, mut rest) = (String::new(), text);
    loop {
        let labels = pastes.iter().enumerate().filter(|(_, (label, _))| !label.is_empty());
        let found = labels.filter_map(|(n, (label, _))| Some((rest.find(label)?, n, label.len()))).min();
        let Some((at, n, length)) = found else { break };
        out.push_str(rest.get(..at).unwrap_or_default());
        out.push_str(&format!("\0{n}\0"));
        rest = rest.get(at + length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// A text of [`marked`] with the texts of the pastes.
fn unmarked(text: &str, pastes: &[(&str, &str)]) -> String {
    let part = |(at, part): (usize, &str)| {
        if at % 2 == 0 {
            return part.to_owned();
        }
        let paste = part.parse::<usize>().ok().and_then(|n| pastes.get(n));
        paste.map_or_else(String::new, |(_, text)| (*text).to_owned())
    };
    text.split('\0').enumerate().map(part).collect()
}

/// A command with its arguments. `true`: it has a place for some.
///
/// # Errors
/// Says why the command cannot run with them.
pub(super) fn filled(line: &str, arguments: &Arguments) -> (Result<String, &'static str>, bool) {
    let (mut out, mut rest, mut used) = (String::new(), line, false);
    let mut reader = Reader::new(line);
    while let Some(c) = rest.chars().next() {
        if let Some((place, length)) = placeholder(rest).filter(|_| !reader.escaped) {
            used = true;
            rest = rest.get(length..).unwrap_or_default();
            if arguments.has_nul {
                return (Err(NUL), used);
            }
            if !reader.put(&mut out, &place.values(arguments), rest) {
                return (Err(UNSAFE), used);
            }
            continue;
        }
        reader.step(c, &out, rest);
        out.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    (Ok(out), used)
}

/// A place for arguments in a command.
enum Placeholder {
    All,
    /// From 1.
    Word(usize),
}

/// What is put into a place.
struct Values<'a> {
    /// Within quotes.
    text: &'a str,
    /// Outside of quotes.
    words: &'a [String],
}

impl Placeholder {
    fn values<'a>(&self, arguments: &'a Arguments) -> Values<'a> {
        match self {
            Self::All => Values { text: &arguments.all, words: &arguments.words },
            Self::Word(n) => {
                let words = arguments.words.get(n - 1..*n).unwrap_or_default();
                Values { text: words.first().map_or("", String::as_str), words }
            }
        }
    }
}

/// The placeholder at the beginning of a text, and its length in bytes.
fn placeholder(text: &str) -> Option<(Placeholder, usize)> {
    if text.starts_with(ALL) {
        return Some((Placeholder::All, ALL.len()));
    }
    position(text).map(|n| (Placeholder::Word(n), 2))
}

/// What is open at a place outside of single quotes.
#[derive(PartialEq, Eq)]
enum Open {
    Double,
    /// `(` or `$(`: as outside of quotes.
    Paren,
}

/// Follows the quotes of a command.
struct Reader {
    open: Vec<Open>,
    single: bool,
    /// The next character stands for itself.
    escaped: bool,
    /// A `$(` has begun: its `(` is next.
    substitutes: bool,
    /// From here on it is not followed what is quoted.
    unknown: bool,
}

impl Reader {
    fn new(line: &str) -> Self {
        // The `)` of a pattern would end a substitution.
        let unknown = line.contains("$(") && line.contains("case");
        Self { open: Vec::new(), single: false, escaped: false, substitutes: false, unknown }
    }

    fn is_double(&self) -> bool {
        self.open.last() == Some(&Open::Double)
    }

    /// Reads a character of the command. `before`: what stands before it; `tail` begins with it.
    fn step(&mut self, c: char, before: &str, tail: &str) {
        if self.single {
            self.single = c != '\'';
            return;
        }
        if std::mem::take(&mut self.escaped) {
            return;
        }
        let double = self.is_double();
        match c {
            '\\' => self.escaped = true,
            '`' => self.unknown = true,
            '$' => self.dollar(tail),
            '"' if double => {
                self.open.pop();
            }
            '"' => self.open.push(Open::Double),
            '(' if std::mem::take(&mut self.substitutes) => self.open.push(Open::Paren),
            _ if double => {}
            '\'' => self.single = true,
            '(' => {
                self.unknown |= tail.starts_with("((");
                self.open.push(Open::Paren);
            }
            ')' => {
                self.open.pop();
            }
            '#' => self.unknown |= before.chars().last().is_none_or(ends_word),
            // A here-document; `<<<` is none.
            '<' => {
                let two = tail.starts_with("<<") && !tail.starts_with("<<<");
                self.unknown |= two && !before.ends_with('<');
            }
            _ => {}
        }
    }

    fn dollar(&mut self, tail: &str) {
        let quotes = !self.is_double() && tail.starts_with("$'");
        let other = ["$$", "$((", "$["].iter().any(|begin| tail.starts_with(begin));
        self.unknown |= quotes || other || tail.strip_prefix("${").is_some_and(|name| !is_simple(name));
        self.substitutes = tail.starts_with("$(");
    }

    /// Puts arguments behind `out`. `false`: they cannot stand here.
    fn put(&self, out: &mut String, values: &Values<'_>, behind: &str) -> bool {
        if self.unknown {
            let plain = values.text.chars().all(|c| is_plain(c) || c == ' ') && !out.ends_with('$');
            if plain {
                out.push_str(values.text);
            }
            return plain;
        }
        if self.single {
            out.push_str(&values.text.replace('\'', r"'\''"));
        } else if self.is_double() {
            put_double(out, values.text);
        } else {
            put_words(out, values.words, behind.chars().next());
        }
        true
    }
}

/// Within double quotes.
fn put_double(out: &mut String, text: &str) {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // The text would become part of the name of a variable.
    if text.starts_with(name) && out.trim_end_matches(name).ends_with('$') {
        out.push_str("\"\"");
    }
    for c in text.chars() {
        if matches!(c, '\\' | '"' | '$' | '`') {
            out.push('\\');
        }
        out.push(c);
    }
}

/// Outside of quotes. `next`: the character behind them.
fn put_words(out: &mut String, words: &[String], next: Option<char>) {
    let ends = |c: char| c.is_ascii_whitespace() || "/.:;)|&".contains(c);
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        let begins = |c: char| c.is_ascii_whitespace() || "/:=".contains(c);
        let alone = out.chars().last().is_none_or(begins) && (at + 1 < words.len() || next.is_none_or(ends));
        let plain =
            !word.is_empty() && word.chars().all(|c| is_plain(c) || c == '=' && word.starts_with('-'));
        if alone && plain {
            out.push_str(word);
        } else {
            out.push_str(&format!("'{}'", word.replace('\'', r"'\''")));
        }
    }
}

/// It means itself to the shell wherever it stands.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:@%+-".contains(c)
}

/// Behind it a `#` begins a comment.
fn ends_word(c: char) -> bool {
    c.is_ascii_whitespace() || ";&|()<>`".contains(c)
}

/// Whether the text behind `${` has no quotes and no substitutions up to its `}`.
fn is_simple(text: &str) -> bool {
    let sign = |c: char| c.is_ascii_alphanumeric() || "_:=?+#%/.*@!^,-".contains(c);
    text.split_once('}').is_some_and(|(name, _)| name.chars().all(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(line: &str, typed: &str) -> Result<String, &'static str> {
        filled(line, &Arguments::new(typed, &[])).0
    }

    /// What `/bin/sh` prints.
    fn printed(line: &str) -> String {
        let out = std::process::Command::new("/bin/sh").args(["-c", line]).output().unwrap();
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    /// Texts of signs that mean something to a shell, the same in each run.
    fn texts() -> Vec<String> {
        let signs: Vec<char> = "a1 '\"\\$`;&|(){}<>#*?~![]=\n\té-%".chars().collect();
        let mut state = 1_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let mut all = vec!["$(touch x)".to_owned(), "`touch x`".into(), "'; touch x; '".into(), "\\".into()];
        for _ in 0..60 {
            let length = 1 + next(12);
            all.push((0..length).map(|_| signs[next(signs.len())]).collect());
        }
        all
    }

    #[test]
    fn a_shell_gives_an_argument_back_in_every_place() {
        for text in texts() {
            // As one word, whatever it has: a paste.
            let arguments = Arguments::new("[p]", &[("[p]", &text)]);
            let lines = [
                ("printf %s $1", text.clone()),
                ("printf %s \"$1\"", text.clone()),
                ("printf %s '$1'", text.clone()),
                ("printf %s x$1.y", format!("x{text}.y")),
                ("printf %s \"<$ARGUMENTS>\"", format!("<{text}>")),
                ("printf %s 'it'\\''s $ARGUMENTS'", format!("it's {text}")),
                ("v=w; printf %s \"$v$1\"", format!("w{text}")),
                ("v=w; printf %s $v$1", format!("w{text}")),
                ("printf %s \"$(printf '%s|' \"$1\")\"", format!("{text}|")),
                ("printf %s \"$(printf '%s|' $1)\"", format!("{text}|")),
                ("v=w; (printf %s ${v:+y}$1)", format!("y{text}")),
                ("printf %s \\\\$1", format!("\\{text}")),
            ];
            for (line, expected) in lines {
                let line = filled(line, &arguments).0.unwrap();
                assert_eq!(printed(&line), expected, "{line}");
            }
        }
    }

    #[test]
    fn arguments_are_quoted_for_their_place() {
        for (line, typed, expected) in [
            ("git log $ARGUMENTS", "-n 3", "git log -n 3"),
            ("git log $ARGUMENTS", "--since='a b' x;y", "git log '--since='\\''a' 'b'\\''' 'x;y'"),
            ("git log $ARGUMENTS", "\"a b\" c", "git log 'a b' c"),
            ("echo \"<$ARGUMENTS>\"", "it `x` $(y) \"z\"", "echo \"<it \\`x\\` \\$(y) \\\"z\\\">\""),
            ("echo '$1'", "a'b", "echo 'a'\\''b'"),
            ("git show $1:$2", "HEAD a.txt", "git show HEAD:a.txt"),
            ("echo $1>x", "2", "echo '2'>x"),
            ("echo $1 $2.", "", "echo  ."),
            ("echo $1", "''", "echo ''"),
            // These are the file's own.
            ("awk \"{ print \\$1 }\" $1", "a", "awk \"{ print \\$1 }\" a"),
            ("echo ${1} $10", "a", "echo ${1} $10"),
            ("echo `date $1`", "-u", "echo `date -u`"),
            ("make # $1", "all", "make # all"),
        ] {
            assert_eq!(fill(line, typed).as_deref(), Ok(expected), "{line:?} with {typed:?}");
        }
    }

    #[test]
    fn where_an_argument_cannot_be_quoted_the_command_does_not_run() {
        for line in [
            "echo `date $1`",
            "echo $((1 + $1))",
            "make # $1",
            "cat <<E $1",
            "echo ${x:-$1}",
            "echo $'$1'",
            "echo $$1",
            "echo \"$$($1)\"",
            "echo \"$(case a in a) echo $1;; esac)\"",
        ] {
            assert_eq!(fill(line, "a;b"), Err(UNSAFE), "{line}");
        }
        assert_eq!(fill("echo $$1", "a"), Err(UNSAFE));
        assert_eq!(fill("echo $1", "a\0b"), Err(NUL));
        assert_eq!(filled("echo $1", &Arguments::new("[p]", &[("[p]", "\0")])).0, Err(NUL));
        assert_eq!(fill("make", "a\0b").as_deref(), Ok("make"), "it has no place for it");
    }

    #[test]
    fn a_label_is_one_word() {
        let pastes = [("[paste 1: 2 lines]", "a\nb [paste 2]"), ("[paste 2]", "c d")];
        let arguments = Arguments::new("x [paste 1: 2 lines] [paste 2]y", &pastes);
        let line = filled("echo $1 $2 $3", &arguments).0;
        assert_eq!(line.as_deref(), Ok("echo x 'a\nb [paste 2]' 'c dy'"));
        assert_eq!(filled("echo", &arguments), (Ok("echo".to_owned()), false));
    }
}
