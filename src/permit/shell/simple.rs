//! Simple commands, their redirections and assignments.

use brush_parser::ast::{
    self, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem as Item, IoFileRedirectKind as Kind,
    IoFileRedirectTarget as Target, IoRedirect,
};

use super::code;
use super::walk::{MAX_COLLECTED, MAX_SCRIPTS, Walk};
use super::wrap::{self, Inner};
use super::{HOLE, Part, Redirect, RedirectKind, Role, Word, word};

impl Walk {
    pub(super) fn redirect(&mut self, redirect: &IoRedirect, stdin: &mut Option<Word>) -> Option<Redirect> {
        let (kind, target) = match redirect {
            IoRedirect::File(_, kind, Target::Filename(w)) => (
                match kind {
                    Kind::Read => RedirectKind::Read,
                    Kind::Append => RedirectKind::Append,
                    Kind::ReadAndWrite => RedirectKind::ReadWrite,
                    Kind::Write | Kind::Clobber | Kind::DuplicateOutput | Kind::DuplicateInput => {
                        RedirectKind::Write
                    }
                },
                self.target(&w.value),
            ),
            IoRedirect::File(_, _, Target::Fd(_)) => return None,
            IoRedirect::File(_, _, Target::ProcessSubstitution(_, shell)) => {
                self.list(&shell.list);
                return None;
            }
            IoRedirect::File(_, kind, Target::Duplicate(w)) => {
                let word = self.target(&w.value);
                let text = word.text.strip_suffix('-').unwrap_or(&word.text);
                if word.plain() && text.chars().all(|c| c.is_ascii_digit()) {
                    return None;
                }
                // `>& file` writes both streams to a file.
                let kind = if matches!(kind, Kind::DuplicateInput) {
                    RedirectKind::Read
                } else {
                    RedirectKind::Write
                };
                (kind, word)
            }
            IoRedirect::OutputAndError(w, append) => {
                (if *append { RedirectKind::Append } else { RedirectKind::Write }, self.target(&w.value))
            }
            IoRedirect::HereString(_, w) => {
                let found = word::one(&w.value);
                *stdin = Some(self.take(found));
                return None;
            }
            IoRedirect::HereDocument(_, doc) => {
                *stdin = Some(if doc.requires_expansion {
                    let found = word::heredoc(&doc.doc.value);
                    self.take(found)
                } else {
                    Word::fixed(doc.doc.value.clone())
                });
                return None;
            }
        };
        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
            self.out.set_unclear("a redirection that opens a network connection");
        }
        Some(Redirect { kind, target })
    }

    /// A redirection's target must be one word that is known.
    fn target(&mut self, raw: &str) -> Word {
        let mut words = self.words(raw);
        let word =
            if words.len() == 1 { words.swap_remove(0) } else { Word { splits: true, ..Word::unknown() } };
        if word.glob || word.splits {
            self.out.set_unclear("a redirection whose target is not a plain file name");
        } else if word.dynamic {
            self.out.set_loose("a redirection whose target is not a plain file name");
        }
        word
    }

    pub(super) fn simple(&mut self, simple: &ast::SimpleCommand) {
        let mut part = empty();
        for item in simple.prefix.iter().flat_map(|p| &p.0) {
            match item {
                Item::AssignmentWord(assignment, _) => self.assignment(assignment, &mut part),
                other => self.item(other, &mut part),
            }
        }
        if let Some(name) = &simple.word_or_name {
            part.argv = self.words(&name.value);
        }
        for item in simple.suffix.iter().flat_map(|s| &s.0) {
            self.item(item, &mut part);
        }
        part.piped_from = self.pipe;
        if part.argv.is_empty() {
            part.role = Role::Assignment;
            if !part.env.is_empty() {
                self.out.set_loose("it sets a variable of the shell");
            }
            self.out.parts.push(part);
            return;
        }
        self.emit(part);
    }

    fn item(&mut self, item: &Item, part: &mut Part) {
        match item {
            Item::IoRedirect(redirect) => {
                let redirect = self.redirect(redirect, &mut part.stdin);
                part.redirects.extend(redirect);
            }
            Item::Word(w) => {
                let words = self.words(&w.value);
                part.argv.extend(words);
            }
            Item::AssignmentWord(assignment, w) => {
                if matches!(assignment.value, AssignmentValue::Array(_)) {
                    let mut scratch = empty();
                    self.assignment(assignment, &mut scratch);
                    part.argv.push(Word {
                        text: format!("{}={HOLE}", name_of(assignment)),
                        dynamic: true,
                        ..Word::default()
                    });
                } else {
                    let words = self.words(&w.value);
                    part.argv.extend(words);
                }
            }
            Item::ProcessSubstitution(_, shell) => {
                let pipe = self.pipe.take();
                self.list(&shell.list);
                self.pipe = pipe;
                part.argv.push(Word::unknown());
            }
        }
    }

    fn assignment(&mut self, assignment: &ast::Assignment, part: &mut Part) {
        if let AssignmentName::ArrayElementName(_, index) = &assignment.name
            && !index.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            self.out.set_unclear("an array index that may run commands");
        }
        let value = match &assignment.value {
            AssignmentValue::Scalar(w) => {
                let found = word::one(&w.value);
                self.take(found)
            }
            AssignmentValue::Array(items) => {
                for (key, value) in items {
                    if let Some(key) = key {
                        self.out.set_loose("an array with keys");
                        self.words(&key.value);
                    }
                    self.words(&value.value);
                }
                Word::unknown()
            }
        };
        // `x='a[$(ls)]'`: arithmetic over `x` would run it later.
        if value.text.contains("[$(") || value.text.contains("[`") {
            self.out.set_unclear("a value in which arithmetic may run commands");
        }
        part.env.push((name_of(assignment), value));
    }

    /// What `echo` and `printf` hand to a shell or an interpreter, for deny rules.
    fn given(&self, part: &Part) -> Vec<String> {
        let Some((from, to)) = part.piped_from.filter(|_| code::takes_code(&part.base())) else {
            return vec![];
        };
        let said = self.out.parts.get(from..to).unwrap_or_default();
        said.iter()
            .filter(|p| matches!(p.base().as_str(), "echo" | "printf" | "cat" | "tee"))
            .flat_map(|p| p.args().iter().chain(&p.stdin))
            .flat_map(|w| code::code_pieces(&w.text))
            .collect()
    }

    /// Adds a part, and what it runs when it is a wrapper.
    pub(super) fn emit(&mut self, part: Part) {
        if self.out.parts.len() >= MAX_COLLECTED {
            self.out.set_unclear(format!("it has more than {MAX_COLLECTED} commands"));
            return;
        }
        let mut part = part;
        // `time -p -- ls`
        if part.argv.len() > 1 && part.argv[0].text == "--" {
            part.argv.remove(0);
        }
        let Some(name) = part.argv.first() else { return };
        if let Some(why) = odd_name(&name.text) {
            self.out.set_unclear(why);
        }
        if name.dynamic || name.glob || name.text.is_empty() {
            self.out.set_unclear("the name of a command is known only at run time");
            self.out.parts.push(part);
            return;
        }
        if part.stdin.is_none()
            && part.piped_from.is_none()
            && !part.redirects.iter().any(|r| r.kind == RedirectKind::Read)
        {
            part.stdin.clone_from(&self.input);
        }
        let inner = wrap::unwrap(&part);
        part.also.extend(inner.also);
        part.also.extend(self.given(&part));
        if inner.transparent && part.role == Role::Command {
            part.role = Role::Transparent;
        }
        if let Some(why) = inner.unclear {
            self.out.set_unclear(why);
        }
        if let Some(why) = inner.loose {
            self.out.set_loose(why);
        }
        self.out.folders.extend(inner.folders);
        let base = part.base();
        if part.role != Role::Transparent
            && part.args().iter().any(|w| w.splits)
            && !options_are_harmless(&base)
        {
            self.out.set_unclear(format!(
                "arguments of {base} are known only at run time and may become options"
            ));
        }
        let mut wrappers = part.wrappers.clone();
        wrappers.push(base);
        let (pipe, stdin, env, role) = (part.piped_from, part.stdin.clone(), part.env.clone(), part.role);
        if wrappers.len() > MAX_SCRIPTS {
            self.out.set_unclear("it is nested too deeply");
            self.out.parts.push(part);
            return;
        }
        self.out.parts.push(part);
        for run in inner.runs {
            match run {
                Inner::Command { argv, env: more, guess } => {
                    let mut env = env.clone();
                    env.extend(more);
                    self.emit(Part {
                        argv,
                        env,
                        role: if guess || role == Role::Guess { Role::Guess } else { Role::Command },
                        wrappers: wrappers.clone(),
                        piped_from: pipe,
                        stdin: stdin.clone(),
                        ..empty()
                    });
                }
                Inner::Script(text) => self.script(&text),
            }
        }
    }
}

/// Why the name of a program is not what it seems.
fn odd_name(name: &str) -> Option<&'static str> {
    if name.starts_with("/proc/") || name.starts_with("/dev/") {
        return Some("the command is named through /proc/ or /dev/");
    }
    // `сat` with a Cyrillic letter is another program than `cat`.
    (!name.is_ascii() && !name.contains(HOLE)).then_some("the name of a command contains look-alike letters")
}

/// Programs that no option makes dangerous.
fn options_are_harmless(base: &str) -> bool {
    matches!(
        base,
        "echo"
            | "printf"
            | "test"
            | "["
            | "ls"
            | "cat"
            | "wc"
            | "head"
            | "tail"
            | "basename"
            | "dirname"
            | "exit"
            | "return"
            | "shift"
            | "true"
            | "false"
            | ":"
            | "sleep"
            | "seq"
            | "expr"
            | "cd"
            | "pwd"
            | "grep"
            | "egrep"
            | "fgrep"
            | "stat"
            | "file"
            | "du"
            | "cut"
            | "tr"
            | "read"
            | "wait"
            | "break"
            | "continue"
            | "nl"
            | "rev"
            | "local"
    )
}

fn name_of(assignment: &ast::Assignment) -> String {
    match &assignment.name {
        AssignmentName::VariableName(name) | AssignmentName::ArrayElementName(name, _) => name.clone(),
    }
}

pub(super) fn empty() -> Part {
    Part {
        argv: vec![],
        env: vec![],
        redirects: vec![],
        wrappers: vec![],
        role: Role::Command,
        piped_from: None,
        stdin: None,
        also: vec![],
    }
}
