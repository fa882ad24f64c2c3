//! A restricting rule about commands, compared word by word: options may stand anywhere, alone or bundled, the program may be
//! named by its folder, its version or its family, and what an option takes may stand in between.
//!
//! A rule that allows is compared with the text alone: see [`Pattern::allows`].

use tiller_shell::{HOLE, base_name};

use crate::rules::pattern::Pattern;

/// How certain it is that a rule is for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    No,
    /// It depends on what an option takes, or on names that mean the same.
    Perhaps,
    Sure,
}

/// Most words of a command that are compared.
const MOST: usize = 4_000;
/// Longest bundle of short options; a longer word behind one `-` is one long option.
const BUNDLE: usize = 5;

/// Programs whose versions stand at the end of their names.
const VERSIONED: &[&str] =
    &["python", "pypy", "pip", "node", "npm", "perl", "php", "ruby", "gem", "lua", "gcc", "clang", "java"];
/// Programs whose subcommands may be programs of their own: `git-push`, `docker-compose`.
const FAMILIES: &[&str] = &["git", "docker", "podman", "cargo", "kubectl", "gh", "helm", "hg", "npm", "go"];
/// Programs that do each of their operands.
const EACH: &[&str] =
    &["make", "gmake", "just", "ninja", "gradle", "gradlew", "mvn", "mvnw", "ant", "rake", "task"];
/// Programs that take the beginning of a subcommand for the whole.
const SHORTENED: &[&str] = &["npm", "hg", "ip"];
/// Short and long names of options that mean the same in most programs.
const SAME: &[(char, &str)] = &[
    ('f', "--force"),
    ('r', "--recursive"),
    ('n', "--no-verify"),
    ('a', "--all"),
    ('d', "--delete"),
    ('g', "--global"),
    ('y', "--yes"),
    ('i', "--in-place"),
];

/// A pattern as a program, its operands and its options.
#[derive(Clone, Debug)]
pub(super) struct Words {
    program: Pattern,
    /// The program's name, where the pattern stands for one.
    name: Option<String>,
    operands: Vec<Operand>,
    options: Vec<Flag>,
    /// More words may follow.
    open: bool,
}

#[derive(Clone, Debug)]
struct Operand {
    pattern: Pattern,
    /// Other operands may stand before it.
    apart: bool,
    /// The option before it, which it may be a part of: `-X POST` is `-XPOST`.
    of: Option<String>,
}

#[derive(Clone, Debug)]
struct Flag {
    text: String,
    /// It may go on.
    open: bool,
}

impl Words {
    /// Takes a pattern apart; `None`: it is no program with words.
    pub(super) fn new(text: &str) -> Option<Self> {
        if text.contains(['|', '&', ';', '$', '\n', '(']) {
            return None;
        }
        // As Claude Code writes a prefix.
        let (text, prefix) = text.strip_suffix(":*").map_or((text, false), |text| (text, true));
        let mut tokens: Vec<&str> = text.split_whitespace().collect();
        let mut open = prefix;
        while tokens.len() > 1 && tokens.last() == Some(&"*") {
            open = true;
            tokens.pop();
        }
        let (first, rest) = tokens.split_first()?;
        let base = base_name(first.trim_matches(['"', '\'']));
        if base.starts_with(['*', '?', '<', '-', '!']) || base.contains('=') || base.is_empty() {
            return None;
        }
        let (mut operands, mut options) = (Vec::new(), Vec::new());
        let mut apart = goes_on(first) && !rest.is_empty();
        open |= goes_on(first) && rest.is_empty();
        for (i, token) in rest.iter().enumerate() {
            let (token, last) = (token.trim_matches(['"', '\'']), i + 1 == rest.len());
            if token == "*" {
                apart = true;
                continue;
            }
            let on = goes_on(token);
            if token.len() > 1 && token.starts_with('-') {
                let text = token.trim_end_matches('*').to_lowercase();
                options.push(Flag { text, open: on });
            } else {
                let before = i.checked_sub(1).and_then(|before| rest.get(before));
                let of = before.filter(|before| before.len() > 1 && before.starts_with('-'));
                let of = of.map(|of| of.trim_matches(['"', '\'']).to_lowercase());
                operands.push(Operand { pattern: Pattern::new(token).ok()?, apart, of });
                apart = on;
            }
            open |= last && on;
        }
        if operands.is_empty() && options.is_empty() && !open {
            // A program alone is that and nothing else.
            return None;
        }
        let plain = base.trim_end_matches('*').to_owned();
        let name = Some(plain).filter(|name| !name.contains(['*', '?', '<', '\\']));
        Some(Self { program: Pattern::new(&base).ok()?, name, operands, options, open })
    }

    /// How certain it is that the pattern stands for a command with these words.
    pub(super) fn certainty(&self, words: &[String]) -> Certainty {
        let words = words.iter().map(String::as_str);
        let words: Vec<&str> = words.skip_while(|word| is_assignment(word)).take(MOST).collect();
        let Some((first, args)) = words.split_first() else { return Certainty::No };
        if first.contains(HOLE) {
            // The program is known only at run time: the command is not clear, and asks.
            return Certainty::No;
        }
        let first = base_name(first);
        // `npm@10`, as packages are named with their version.
        let first = match first.split_once('@') {
            Some((name, _)) if !name.is_empty() => name.to_owned(),
            _ => first,
        };
        let mut best = self.one(&first, args);
        let mut also = |program: &str, args: &[&str]| best = best.max(self.one(program, args));
        if let Some((family, sub)) = first.split_once('-').filter(|(family, _)| FAMILIES.contains(family)) {
            let all: Vec<&str> = std::iter::once(sub).chain(args.iter().copied()).collect();
            also(family, &all);
        }
        match args {
            [sub, rest @ ..] if FAMILIES.contains(&first.as_str()) => also(&format!("{first}-{sub}"), rest),
            _ if unversioned(&first) == "python" => {
                if let Some((module, rest)) = python_module(args) {
                    also(module, rest);
                }
            }
            _ => {}
        }
        best
    }

    fn one(&self, program: &str, args: &[&str]) -> Certainty {
        if !self.is_program(program) {
            return Certainty::No;
        }
        let with_value = |option: &Flag| {
            let mut of = self.operands.iter().filter(|operand| operand.of.as_ref() == Some(&option.text));
            of.any(|operand| args.iter().any(|arg| operand.is_part(arg)))
        };
        let options = self.options.iter().map(|option| match with_value(option) {
            true => Certainty::Sure,
            false => option.certainty(args),
        });
        let options = options.min().unwrap_or(Certainty::Sure);
        if options == Certainty::No { options } else { options.min(self.operands(program, args)) }
    }

    fn is_program(&self, program: &str) -> bool {
        let same = |name: &String| {
            VERSIONED.contains(&unversioned(name)) && unversioned(name) == unversioned(program)
        };
        self.program.matches_any_case(program) || self.name.as_ref().is_some_and(same)
    }

    /// Goes through the words with every number of operands that may be found so far.
    fn operands(&self, program: &str, args: &[&str]) -> Certainty {
        let all = self.operands.len();
        let mut found = vec![Certainty::No; all + 1];
        found[0] = Certainty::Sure;
        let mut after_option = false;
        for word in args {
            let is_option = word.len() > 1 && word.starts_with(['-', '+']);
            let mut next = vec![Certainty::No; all + 1];
            for (n, certainty) in found.iter().enumerate().filter(|(_, c)| **c > Certainty::No) {
                let operand = self.operands.get(n);
                let fits = match operand {
                    Some(operand) if operand.pattern.matches_any_case(word) => Certainty::Sure,
                    Some(_) if word.contains(HOLE) => Certainty::Perhaps,
                    Some(operand) if operand.is_part(word) => Certainty::Sure,
                    Some(operand) if n == 0 && SHORTENED.contains(&program) && operand.begins(word) => {
                        Certainty::Perhaps
                    }
                    _ => Certainty::No,
                };
                if fits > Certainty::No {
                    next[n + 1] = next[n + 1].max(fits.min(*certainty));
                }
                let may_follow = operand.map_or(self.open, |operand| operand.apart);
                let stays = if may_follow || operand.is_some() && (is_option || is_assignment(word)) {
                    Certainty::Sure
                } else if is_option || after_option || EACH.contains(&program) {
                    Certainty::Perhaps
                } else {
                    Certainty::No
                };
                next[n] = next[n].max(stays.min(*certainty));
            }
            found = next;
            after_option = is_option && !word.contains('=');
        }
        found[all]
    }
}

impl Operand {
    /// Returns true if a word is the option before it and it in one: `-XPOST`, `-sXPOST`, `--request=POST`.
    fn is_part(&self, word: &str) -> bool {
        let Some(of) = &self.of else { return false };
        let lower = word.to_lowercase();
        let at = match of.strip_prefix('-').filter(|letter| letter.chars().count() == 1) {
            Some(letter) if !lower.starts_with("--") && lower.starts_with('-') => {
                lower.find(letter).map(|at| at + letter.len())
            }
            _ => lower.starts_with(&format!("{of}=")).then_some(of.len() + 1),
        };
        let value = at.and_then(|at| lower.get(at..)).filter(|value| !value.is_empty());
        value.is_some_and(|value| self.pattern.matches_any_case(value.trim_start_matches('=')))
    }

    /// Returns true if a word is a beginning of it.
    fn begins(&self, word: &str) -> bool {
        word.len() > 1 && !word.starts_with('-') && self.pattern.text().starts_with(&word.to_lowercase())
    }
}

impl Flag {
    fn certainty(&self, args: &[&str]) -> Certainty {
        let is_open = |arg: &&str| {
            let name = arg.split('=').next().unwrap_or_default();
            arg.starts_with(HOLE) || arg.starts_with('-') && name.contains(HOLE)
        };
        let unknown = args.iter().any(is_open);
        let apart = args.windows(2).any(|pair| self.is_apart(pair[0], pair[1]));
        // A text with blanks is a value, but for what stands before its `=`.
        let names = args.iter().filter(|a| a.len() > 1 && a.starts_with('-'));
        let names = names.filter(|a| !a.split('=').next().unwrap_or_default().contains(char::is_whitespace));
        let args: Vec<String> = names.map(|arg| arg.to_lowercase()).collect();
        let is_it = |arg: &String| {
            let name = arg.split('=').next().unwrap_or_default();
            *arg == self.text || name == self.text || self.open && arg.starts_with(&self.text)
        };
        if args.iter().any(is_it) {
            return Certainty::Sure;
        }
        if unknown || apart {
            return Certainty::Perhaps;
        }
        if let Some((name, _)) = self.text.split_once('=') {
            // `--config x` is `--config=x`; its value is not compared.
            return if args.iter().any(|arg| arg == name) { Certainty::Perhaps } else { Certainty::No };
        }
        // Programs take a beginning of a long name for it.
        let is_long = |long: &str| {
            let begins = |arg: &&str| arg.len() > 3 && long.starts_with(arg);
            args.iter().filter_map(|arg| arg.split('=').next()).any(|arg| begins(&arg))
        };
        let Some(letters) = self.text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            let short = SAME.iter().find(|(_, long)| *long == self.text).map(|(letter, _)| *letter);
            let alike = is_long(&self.text) || short.is_some_and(|letter| in_bundle(&args, letter));
            return if alike { Certainty::Perhaps } else { Certainty::No };
        };
        if letters.len() > 3 {
            // With a value, behind other letters.
            let ends = |arg: &String| !arg.starts_with("--") && arg.ends_with(letters);
            return if args.iter().any(ends) { Certainty::Perhaps } else { Certainty::No };
        }
        let long = |letter: char| SAME.iter().any(|(short, long)| *short == letter && is_long(long));
        let one = |letter: char| match (in_bundle(&args, letter), long(letter)) {
            (true, _) => Certainty::Sure,
            (false, true) => Certainty::Perhaps,
            (false, false) => Certainty::No,
        };
        letters.chars().map(one).min().unwrap_or(Certainty::No)
    }
}

impl Flag {
    /// Returns true if two words are a short option and its value, which the rule has in one: `-X POST` for `-XPOST`.
    fn is_apart(&self, option: &str, value: &str) -> bool {
        let both = || format!("{option}{value}").to_lowercase();
        option.len() == 2
            && option.starts_with('-')
            && !value.is_empty()
            && (both() == self.text || self.open && both().starts_with(&self.text))
    }
}

/// Returns true if a letter is among the short options.
fn in_bundle(args: &[String], letter: char) -> bool {
    args.iter().any(|arg| !arg.starts_with("--") && arg.len() <= BUNDLE + 1 && arg[1..].contains(letter))
}

/// Returns true if a token ends with a `*` that stands for more.
fn goes_on(token: &str) -> bool {
    token.ends_with('*') && !token.ends_with("\\*")
}

/// The words of a text that are compared.
pub(super) fn compared(text: &str) -> Vec<String> {
    text.split_whitespace().skip_while(|word| is_assignment(word)).take(MOST).map(str::to_owned).collect()
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The module that python runs, with its arguments: `-m x`, also in one word and behind other options.
fn python_module<'a, 'b>(args: &'b [&'a str]) -> Option<(&'a str, &'b [&'a str])> {
    let mut at = 0;
    loop {
        let letters: &'a str = args.get(at)?.strip_prefix('-')?;
        at += 1;
        if let Some(long) = letters.strip_prefix('-') {
            at += usize::from(long == "check-hash-based-pycs");
            continue;
        }
        // Options that take a value.
        let Some(letter) = letters.find(['m', 'c', 'W', 'X']) else { continue };
        let value = match &letters[letter + 1..] {
            "" => {
                at += 1;
                *args.get(at - 1)?
            }
            value => value,
        };
        match &letters[letter..=letter] {
            "m" => return Some((value, args.get(at..)?)),
            "c" => return None,
            _ => {}
        }
    }
}

fn unversioned(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// The text with one space around each operator of the shell; `None`: it has none.
pub(super) fn spaced(text: &str) -> Option<String> {
    const OPERATORS: [char; 3] = ['|', '&', ';'];
    if !text.contains(OPERATORS) {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for c in text.chars() {
        if OPERATORS.contains(&c) != OPERATORS.contains(&before) {
            out.push(' ');
        }
        out.push(c);
        before = c;
    }
    Some(out.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
