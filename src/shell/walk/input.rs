//! What commands read that have no input of their own: the input of a group, of a wrapper, of a function, or of the
//! whole script after `exec`.

use std::collections::HashMap;
use std::rc::Rc;

use brush_parser::ast;

use super::{MAX_SCRIPTS, Walk};
use crate::command::{Part, Redirect, Word};
use crate::programs::{code_pieces, interpreter, is_shell, reads_code};
use crate::wrappers::reads_itself;

/// An input.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// A here-document or a here-string.
    Text(Word),
    File(Redirect),
    /// The output of these parts.
    Pipe((usize, usize)),
}

/// What the redirections of one command connect it with, apart from files.
#[derive(Default)]
pub(super) struct Connections<'a> {
    pub(super) stdin: Option<Word>,
    /// `< <(list)`
    pub(super) pipe: Option<(usize, usize)>,
    /// `> >(list)` and `tee >(list)`: these read what the command writes.
    pub(super) readers: Vec<&'a ast::CompoundList>,
}

/// Functions by name, each with the script that defines it.
pub(super) type Functions = HashMap<String, Rc<(ast::FunctionBody, String)>>;

/// The inputs that a part has of its own.
pub(super) fn own_inputs(part: &Part) -> Vec<Input> {
    let mut out: Vec<Input> = part.stdin.clone().map(Input::Text).into_iter().collect();
    out.extend(part.redirects.iter().filter(|r| r.input).cloned().map(Input::File));
    if out.is_empty() {
        out.extend(part.piped_from.map(Input::Pipe));
    }
    out
}

impl Walk {
    /// Gives a part without an input of its own the input of its surroundings.
    pub(super) fn give_input(&self, part: &mut Part) {
        if !own_inputs(part).is_empty() {
            return;
        }
        match self.inputs.as_slice() {
            [] => part.stdin.clone_from(&self.typed),
            [Input::Text(text)] => part.stdin = Some(text.clone()),
            [Input::File(file)] => part.redirects.push(file.clone()),
            [Input::Pipe(range)] => part.piped_from = Some(*range),
            // Which of them it reads is known only at run time.
            _ => part.stdin = Some(Word::unknown()),
        }
    }

    /// Walks what reads `inputs` where it has no input of its own. Inputs that `exec` sets in there stay.
    pub(super) fn reading(&mut self, inputs: Vec<Input>, body: impl FnOnce(&mut Self)) {
        let from = inputs.len();
        let outer = (self.pipe.take(), std::mem::replace(&mut self.inputs, inputs));
        body(self);
        let added = self.inputs.split_off(from.min(self.inputs.len()));
        (self.pipe, self.inputs) = outer;
        self.inputs.extend(added);
    }

    /// A group, a loop, a condition or a function's body, with its redirections.
    pub(super) fn group(&mut self, redirects: Option<&ast::RedirectList>, body: impl FnOnce(&mut Self)) {
        let mut connections = Connections::default();
        let mut files = Vec::new();
        for redirect in redirects.into_iter().flat_map(|l| &l.0) {
            files.extend(self.redirect(redirect, &mut connections));
        }
        let mut inputs: Vec<Input> = connections.stdin.take().map(Input::Text).into_iter().collect();
        inputs.extend(files.iter().filter(|r| r.input).cloned().map(Input::File));
        inputs.extend(connections.pipe.map(Input::Pipe));
        self.out.redirects.extend(files);
        let start = self.out.parts.len();
        if inputs.is_empty() {
            body(self);
        } else {
            self.reading(inputs, body);
        }
        self.readers(&connections, start);
    }

    /// Walks the lists that read what the parts since `start` write.
    pub(super) fn readers(&mut self, connections: &Connections<'_>, start: usize) {
        for list in &connections.readers {
            let outer = self.pipe.replace((start, self.out.parts.len()));
            self.list(list);
            self.pipe = outer;
        }
    }

    /// `exec < file` without a command: what follows reads this.
    pub(super) fn exec(&mut self, part: &Part) {
        let own = part.stdin.is_some() || part.redirects.iter().any(|r| r.input) || self.substituted;
        if own {
            self.out.set_unclear("exec changes what later commands read");
            self.inputs.extend(own_inputs(part));
        }
    }

    /// A function is called with an input: what it runs may read that.
    pub(super) fn call(&mut self, part: &Part) {
        let name = part.program();
        let Some(function) = self.functions.get(name).cloned() else { return };
        let inputs = own_inputs(part);
        if inputs.is_empty() || self.calls.iter().any(|c| c == name) {
            return;
        }
        if self.calls.len() >= MAX_SCRIPTS {
            self.out.set_unclear("it is nested too deeply");
            return;
        }
        let (body, text) = &*function;
        self.calls.push(name.to_owned());
        let outer = (self.enter(text), std::mem::take(&mut self.hidden_input));
        self.reading(inputs, |walk| walk.group(body.1.as_ref(), |walk| walk.compound(&body.0)));
        (self.text, self.hidden_input) = outer;
        self.calls.pop();
    }

    /// Why code comes to `part` by a way that is not shown: it stands in a function, or behind it in the input of
    /// the shell that runs it.
    pub(super) fn unseen_code(&self, part: &Part) -> Option<String> {
        let base = part.base();
        let runs = is_shell(&base) || interpreter(&base);
        if !self.hidden_input || !runs || !own_inputs(part).is_empty() {
            return None;
        }
        let from_input = |w: &Word| {
            reads_itself(w)
                || w.text.starts_with('-') && !w.text[1..].contains(['c', 'e', 'V']) && w.text != "--version"
        };
        let from_input_option = part.args().iter().any(|w| w.text.starts_with('-') && w.text.contains('s'));
        (part.args().iter().all(from_input) || is_shell(&base) && from_input_option)
            .then(|| format!("{base} reads code that is not shown"))
    }

    /// What `echo` and `printf` hand to a shell or an interpreter, for deny rules.
    pub(super) fn printed_code(&self, part: &Part) -> Vec<String> {
        if !reads_code(&part.base()) {
            return vec![];
        }
        let mut out = Vec::new();
        let mut open: Vec<(usize, usize)> = part.piped_from.into_iter().collect();
        for input in &self.inputs {
            match input {
                Input::Text(text) => out.extend(code_pieces(&text.text)),
                Input::Pipe(range) => open.push(*range),
                Input::File(_) => {}
            }
        }
        let mut seen = Vec::new();
        while let Some((from, to)) = open.pop() {
            if seen.contains(&(from, to)) || seen.len() > MAX_SCRIPTS {
                continue;
            }
            seen.push((from, to));
            for source in self.out.parts.get(from..to).unwrap_or_default() {
                if !matches!(source.base().as_str(), "echo" | "printf" | "cat" | "tee") {
                    continue;
                }
                out.extend(source.args().iter().chain(&source.stdin).flat_map(|w| code_pieces(&w.text)));
                open.extend(source.piped_from);
            }
        }
        out
    }
}
