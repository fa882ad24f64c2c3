//! Simple commands, their redirections and assignments.

use brush_parser::ast::{
    self, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem as Item, IoFileRedirectKind as Kind,
    IoFileRedirectTarget as Target, IoRedirect, ProcessSubstitutionKind as Substitution,
};

use super::input::{self, Connections};
use super::{MAX_COLLECTED, MAX_SCRIPTS, Walk};
use crate::command::{HOLE, Part, Redirect, RedirectKind, Role, Word};
use crate::programs::{code_pieces, utility};
use crate::words;
use crate::wrappers::{Inner, effects};

impl Walk {
    pub(super) fn redirect<'a>(
        &mut self,
        redirect: &'a IoRedirect,
        connections: &mut Connections<'a>,
    ) -> Option<Redirect> {
        let standard = |fd: &Option<ast::IoFd>| fd.is_none_or(|fd| fd == 0);
        let mut input = false;
        let (kind, target) = match redirect {
            IoRedirect::File(fd, kind, Target::Filename(w)) => (
                match kind {
                    Kind::Read => {
                        input = standard(fd);
                        RedirectKind::Read
                    }
                    Kind::Append => RedirectKind::Append,
                    Kind::ReadAndWrite => {
                        input = standard(fd);
                        RedirectKind::ReadWrite
                    }
                    Kind::Write | Kind::Clobber | Kind::DuplicateOutput | Kind::DuplicateInput => {
                        RedirectKind::Write
                    }
                },
                self.target(&w.value),
            ),
            IoRedirect::File(fd, kind, Target::Fd(from)) => {
                // `<&3`: what was opened there is not looked up.
                if matches!(kind, Kind::DuplicateInput) && standard(fd) && *from != 0 {
                    connections.stdin.get_or_insert_with(Word::unknown);
                }
                return None;
            }
            IoRedirect::File(fd, _, Target::ProcessSubstitution(kind, shell)) => {
                if matches!(kind, Substitution::Write) {
                    connections.readers.push(&shell.list);
                    return None;
                }
                let start = self.out.parts.len();
                self.list(&shell.list);
                if standard(fd) {
                    connections.pipe = Some((start, self.out.parts.len()));
                }
                return None;
            }
            IoRedirect::File(fd, kind, Target::Duplicate(w)) => {
                let word = self.target(&w.value);
                let text = word.text.strip_suffix('-').unwrap_or(&word.text);
                let reads = matches!(kind, Kind::DuplicateInput);
                if word.plain() && text.chars().all(|c| c.is_ascii_digit()) {
                    if reads && standard(fd) && !matches!(text, "" | "0") {
                        connections.stdin.get_or_insert_with(Word::unknown);
                    }
                    return None;
                }
                input = reads && standard(fd);
                // `>& file` writes both streams to a file.
                (if reads { RedirectKind::Read } else { RedirectKind::Write }, word)
            }
            IoRedirect::OutputAndError(w, append) => {
                (if *append { RedirectKind::Append } else { RedirectKind::Write }, self.target(&w.value))
            }
            IoRedirect::HereString(fd, w) => {
                let found = words::one(&w.value);
                let text = self.take(found);
                self.text_for(standard(fd), text, connections);
                return None;
            }
            IoRedirect::HereDocument(fd, doc) => {
                let text = if doc.requires_expansion {
                    let found = words::heredoc(&doc.doc.value);
                    self.take(found)
                } else {
                    Word::fixed(doc.doc.value.clone())
                };
                self.text_for(standard(fd), text, connections);
                return None;
            }
        };
        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
            self.out.set_unclear("a redirection that opens a network connection");
        }
        Some(Redirect { kind, target, input })
    }

    /// A here-document or here-string, for the standard input or for another descriptor.
    fn text_for(&mut self, standard: bool, text: Word, connections: &mut Connections<'_>) {
        if !standard {
            self.out.set_unclear("a here-document for another descriptor than the standard input");
            self.out.parts.push(Part { also: code_pieces(&text.text), ..Part::empty() });
            return;
        }
        connections.stdin = Some(text);
    }

    /// A redirection's target must be one word that is known.
    fn target(&mut self, raw: &str) -> Word {
        let mut words = self.words(raw);
        let word =
            if words.len() == 1 { words.swap_remove(0) } else { Word { splits: true, ..Word::unknown() } };
        if word.glob || word.splits {
            self.out.set_unclear_words("a redirection whose target is not a plain file name");
        } else if word.dynamic {
            self.out.set_loose("a redirection whose target is not a plain file name");
        }
        word
    }

    pub(super) fn simple(&mut self, simple: &ast::SimpleCommand) {
        let mut part = Part::empty();
        let mut connections = Connections::default();
        for item in simple.prefix.iter().flat_map(|p| &p.0) {
            match item {
                Item::AssignmentWord(assignment, _) => self.assignment(assignment, &mut part),
                other => self.item(other, &mut part, &mut connections),
            }
        }
        if let Some(name) = &simple.word_or_name {
            part.argv = self.words(&name.value);
        }
        for item in simple.suffix.iter().flat_map(|s| &s.0) {
            self.item(item, &mut part, &mut connections);
        }
        part.stdin = connections.stdin.take();
        part.piped_from = connections.pipe.or(self.pipe);
        let start = self.out.parts.len();
        if part.argv.is_empty() {
            part.role = Role::Assignment;
            if !part.env.is_empty() {
                self.out.set_loose("it sets a shell variable");
            }
            self.out.parts.push(part);
        } else {
            self.substituted = connections.pipe.is_some();
            self.emit(part);
            self.substituted = false;
        }
        self.readers(&connections, start);
    }

    fn item<'a>(&mut self, item: &'a Item, part: &mut Part, connections: &mut Connections<'a>) {
        match item {
            Item::IoRedirect(redirect) => {
                let redirect = self.redirect(redirect, connections);
                part.redirects.extend(redirect);
            }
            Item::Word(w) => {
                let words = self.words(&w.value);
                part.argv.extend(words);
            }
            Item::AssignmentWord(assignment, w) => {
                if matches!(assignment.value, AssignmentValue::Array(_)) {
                    let mut scratch = Part::empty();
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
            Item::ProcessSubstitution(kind, shell) => {
                match kind {
                    Substitution::Read => self.list(&shell.list),
                    Substitution::Write => connections.readers.push(&shell.list),
                }
                let pipe = matches!(kind, Substitution::Read);
                part.argv.push(Word { pipe, ..Word::unknown() });
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
                let found = words::one(&w.value);
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
        self.give_input(&mut part);
        let inner = effects(&part);
        part.also.extend(inner.also);
        part.also.extend(self.printed_code(&part));
        if inner.transparent && part.role == Role::Command {
            part.role = Role::Transparent;
        }
        if let Some(why) = inner.unclear {
            self.out.set_unclear(why);
        }
        if let Some(why) = inner.unclear_words {
            self.out.set_unclear_words(why);
        }
        if let Some(why) = inner.loose {
            self.out.set_loose(why);
        }
        if let Some(why) = self.unseen_code(&part) {
            self.out.set_unclear(why);
        }
        if part.base() == "exec" && inner.runs.is_empty() {
            self.exec(&part);
        }
        self.out.folders.extend(inner.folders);
        let base = part.base();
        if part.role != Role::Transparent
            && part.args().iter().any(|w| w.splits)
            && !utility(&base).is_some_and(|u| u.safe_options)
        {
            self.out.set_unclear_words(format!(
                "arguments of {base} are known only at run time and may become options"
            ));
        }
        let mut wrappers = part.wrappers.clone();
        wrappers.push(base);
        let outer = part.clone();
        if wrappers.len() > MAX_SCRIPTS {
            self.out.set_unclear("it is nested too deeply");
            self.out.parts.push(part);
            return;
        }
        self.out.parts.push(part);
        self.call(&outer);
        for run in inner.runs {
            match run {
                Inner::Command { argv, env: more, guess } => {
                    let mut env = outer.env.clone();
                    env.extend(more);
                    self.emit(Part {
                        argv,
                        env,
                        role: if guess || outer.role == Role::Guess { Role::Guess } else { Role::Command },
                        wrappers: wrappers.clone(),
                        redirects: outer.redirects.iter().filter(|r| r.input).cloned().collect(),
                        piped_from: outer.piped_from,
                        stdin: outer.stdin.clone(),
                        ..Part::empty()
                    });
                }
                // The script is the input itself: what stands in it reads the rest of it.
                Inner::Script(text) if outer.stdin.as_ref().is_some_and(|w| w.text == text) => {
                    let hidden = std::mem::replace(&mut self.hidden_input, true);
                    self.reading(vec![], |walk| walk.script(&text));
                    self.hidden_input = hidden;
                }
                Inner::Script(text) => self.reading(input::own_inputs(&outer), |walk| walk.script(&text)),
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

fn name_of(assignment: &ast::Assignment) -> String {
    match &assignment.name {
        AssignmentName::VariableName(name) | AssignmentName::ArrayElementName(name, _) => name.clone(),
    }
}
