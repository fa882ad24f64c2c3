//! Words: quotes removed, expansions marked, commands inside them collected.

mod ansi;
mod brace;

use brush_parser::ParserOptions;
use brush_parser::word::{
    Parameter, ParameterExpr, ParameterTransformOp, SpecialParameter, TildeExpr, WordPiece,
    WordPieceWithSource, parse, parse_heredoc,
};

use crate::command::{HOLE, Word};
use crate::programs::changes_programs;

/// A word and what was found in it.
#[derive(Default)]
pub(crate) struct Expansion {
    pub(crate) word: Word,
    /// Texts of command substitutions, to be taken apart as well.
    pub(crate) commands: Vec<String>,
    pub(crate) unclear: Option<String>,
    pub(crate) loose: Option<String>,
}

impl Expansion {
    fn unclear(why: &str) -> Self {
        Self { word: Word { splits: true, ..Word::unknown() }, unclear: Some(why.into()), ..Self::default() }
    }

    fn not_clear(&mut self, why: &str) {
        self.unclear.get_or_insert_with(|| why.into());
    }

    fn not_tight(&mut self, why: &str) {
        self.loose.get_or_insert_with(|| why.into());
    }

    /// Text that only the shell knows.
    fn hole(&mut self, quoted: bool, number: bool) {
        self.word.text.push(HOLE);
        self.word.dynamic = true;
        if !quoted && !number {
            self.word.splits = true;
        }
    }
}

/// Expands a word that stands where the shell splits and globs. Braces may make several.
pub(crate) fn expand(raw: &str) -> Vec<Expansion> {
    match brace::expand(raw) {
        brace::Braces::None => vec![one(raw)],
        brace::Braces::Unclear => vec![Expansion::unclear("a brace expansion that cannot be listed")],
        brace::Braces::Words(words) => {
            words.into_iter().map(|w| one(&w)).filter(|f| !f.word.text.is_empty()).collect()
        }
    }
}

/// Expands a word that stays one word (an assignment's value, a redirection's target).
pub(crate) fn one(raw: &str) -> Expansion {
    let mut found = Expansion::default();
    match parse(raw, &ParserOptions::default()) {
        Ok(pieces) => walk(&pieces, false, &mut found),
        Err(_) => return Expansion::unclear("a word that cannot be parsed"),
    }
    found
}

/// The body of a here-document in which the shell expands.
pub(crate) fn heredoc(body: &str) -> Expansion {
    let mut found = Expansion::default();
    match parse_heredoc(body, &ParserOptions::default()) {
        Ok(pieces) => walk(&pieces, true, &mut found),
        Err(_) => return Expansion::unclear("a here-document that cannot be parsed"),
    }
    found
}

fn walk(pieces: &[WordPieceWithSource], quoted: bool, found: &mut Expansion) {
    for (at, piece) in pieces.iter().enumerate() {
        match &piece.piece {
            WordPiece::Text(text) if quoted => found.word.text.push_str(&text.replace("\\\n", "")),
            WordPiece::Text(text) => {
                if text.contains(['*', '?']) || (text.contains('[') && !(pieces.len() == 1 && text == "[")) {
                    found.word.glob = true;
                }
                // `@(a|b)` and its kin.
                if text.contains('(') || text.contains(')') {
                    found.word.glob = true;
                    found.not_tight("a file name pattern that cannot be analysed");
                }
                if at == 0 && text.starts_with('=') && text.len() > 1 && !text.starts_with("==") {
                    found.not_clear("'=name' means something else in another shell");
                }
                found.word.text.push_str(text);
            }
            WordPiece::SingleQuotedText(text) => found.word.text.push_str(text),
            WordPiece::AnsiCQuotedText(text) => match ansi::decode(text) {
                Some(text) => found.word.text.push_str(&text),
                None => found.not_clear("a quoted string that the shell would truncate"),
            },
            WordPiece::DoubleQuotedSequence(inner) => walk(inner, true, found),
            WordPiece::GettextDoubleQuotedSequence(inner) => {
                found.not_tight("a string that the shell translates");
                walk(inner, true, found);
            }
            WordPiece::EscapeSequence(text) => {
                let mut chars = text.chars().skip(1);
                if let Some(c) = chars.next().filter(|c| *c != '\n') {
                    found.word.text.push(c);
                    found.word.text.extend(chars);
                }
            }
            WordPiece::TildeExpansion(TildeExpr::Home) if found.word.text.is_empty() => {
                found.word.tilde = true
            }
            WordPiece::TildeExpansion(_) => {
                found.hole(true, false);
            }
            WordPiece::ParameterExpansion(expr) => parameter(expr, quoted, found),
            WordPiece::CommandSubstitution(text) => {
                substitution(text, found);
                let number = matches!(text.trim(), "nproc" | "id -u" | "id -g" | "getconf _NPROCESSORS_ONLN");
                found.hole(quoted, number);
            }
            WordPiece::BackquotedCommandSubstitution(text) => {
                if text.contains('\\') {
                    found.not_clear("escapes inside backticks");
                }
                substitution(text, found);
                found.hole(quoted, false);
            }
            WordPiece::ArithmeticExpression(expr) => {
                arithmetic(&expr.value, found);
                found.hole(quoted, true);
            }
        }
    }
}

/// Where a substitution ends is hard to say with comments, `case` and here-documents inside.
fn substitution(text: &str, found: &mut Expansion) {
    let comment = text.starts_with('#') || [" #", "\t#", "\n#", ";#", "(#"].iter().any(|c| text.contains(c));
    let case = text.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == "case" || w == "esac");
    if comment || case || text.contains("<<") {
        found.not_clear("a substitution whose end is unclear");
    }
    found.commands.push(text.to_owned());
}

/// Commands inside arithmetic. A variable's value is evaluated again and may hold one.
pub(crate) fn arithmetic(text: &str, found: &mut Expansion) {
    let bare = strip_numbers(text);
    if bare.contains(['$', '`', '"', '\'', '\\']) {
        inside(text, found);
    }
    if bare.contains('[') {
        found.not_clear("an array in arithmetic, which may run commands");
    }
    if bare.chars().any(|c| c.is_alphabetic() || c == '_') {
        found.not_tight("arithmetic over variables");
    }
}

/// `0x1f` and `16#ff` are numbers.
fn strip_numbers(text: &str) -> String {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "_#$`\"'\\[".contains(c)))
        .filter(|t| {
            !t.starts_with(|c: char| c.is_ascii_digit()) || t.contains(['$', '`', '"', '\'', '\\', '['])
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Collects what a nested text (a default, a pattern, an index) would run.
fn inside(text: &str, found: &mut Expansion) {
    if !text.contains(['$', '`', '<', '>', '\\', '"', '\'']) {
        return;
    }
    let inner = one(text);
    found.commands.extend(inner.commands);
    if let Some(why) = inner.unclear {
        found.not_clear(&why);
    }
    if let Some(why) = inner.loose {
        found.not_tight(&why);
    }
}

fn parameter(expr: &ParameterExpr, quoted: bool, found: &mut Expansion) {
    use ParameterExpr as P;
    let (parameter, texts): (Option<&Parameter>, Vec<&str>) = match expr {
        P::Parameter { parameter, .. } | P::ParameterLength { parameter, .. } => (Some(parameter), vec![]),
        P::UseDefaultValues { parameter, default_value: t, .. }
        | P::AssignDefaultValues { parameter, default_value: t, .. }
        | P::IndicateErrorIfNullOrUnset { parameter, error_message: t, .. }
        | P::UseAlternativeValue { parameter, alternative_value: t, .. }
        | P::RemoveSmallestSuffixPattern { parameter, pattern: t, .. }
        | P::RemoveLargestSuffixPattern { parameter, pattern: t, .. }
        | P::RemoveSmallestPrefixPattern { parameter, pattern: t, .. }
        | P::RemoveLargestPrefixPattern { parameter, pattern: t, .. }
        | P::UppercaseFirstChar { parameter, pattern: t, .. }
        | P::UppercasePattern { parameter, pattern: t, .. }
        | P::LowercaseFirstChar { parameter, pattern: t, .. }
        | P::LowercasePattern { parameter, pattern: t, .. } => {
            (Some(parameter), t.as_deref().into_iter().collect())
        }
        P::ReplaceSubstring { parameter, pattern, replacement, .. } => {
            (Some(parameter), std::iter::once(pattern.as_str()).chain(replacement.as_deref()).collect())
        }
        P::Substring { parameter, offset, length, .. } => {
            arithmetic(&offset.value, found);
            if let Some(length) = length {
                arithmetic(&length.value, found);
            }
            (Some(parameter), vec![])
        }
        P::Transform { parameter, op, .. } => {
            if matches!(op, ParameterTransformOp::PromptExpand) {
                found.not_clear("an expansion that runs commands found in a variable");
            }
            (Some(parameter), vec![])
        }
        P::VariableNames { .. } | P::MemberKeys { .. } => (None, vec![]),
    };
    for text in texts {
        inside(text, found);
    }
    if let P::AssignDefaultValues { parameter: Parameter::Named(name), .. } = expr
        && changes_programs(name)
    {
        found.not_clear("it sets a variable that changes what other programs do");
    }
    let mut all = false;
    let mut number = matches!(expr, P::ParameterLength { .. });
    match parameter {
        Some(Parameter::NamedWithIndex { index, .. }) if !index.chars().all(|c| c.is_ascii_digit()) => {
            found.not_clear("an array index that may run commands");
        }
        Some(Parameter::NamedWithAllIndices { concatenate, .. }) => all = !concatenate,
        Some(Parameter::Special(special)) => match special {
            SpecialParameter::AllPositionalParameters { concatenate } => all = !concatenate,
            SpecialParameter::PositionalParameterCount
            | SpecialParameter::LastExitStatus
            | SpecialParameter::ProcessId => number = matches!(expr, P::Parameter { .. }),
            _ => {}
        },
        _ => {}
    }
    if let P::Parameter { indirect: true, .. } = expr {
        found.not_tight("a variable that refers to another variable");
    }
    // "$@" is several words even inside quotes.
    found.hole(quoted && !all, number);
}
