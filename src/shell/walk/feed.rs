//! What commands read that have no input of their own: the input of a group, of a wrapper, of a function, or of the
//! whole script after `exec`.

use std::collections::HashMap;
use std::rc::Rc;

use brush_parser::ast;

use super::{MAX_SCRIPTS, Walk};
use crate::code::{self, code_pieces, interpreter};
use crate::runners::{is_shell, reads_itself};
use crate::{Part, Redirect, Word};

/// An input.
#[derive(Clone, Debug)]
pub(super) enum Feed {
    /// A here-document or a here-string.
    Text(Word),
    File(Redirect),
    /// The output of these parts.
    Pipe((usize, usize)),
}

/// What the redirections of one command connect it with, apart from files.
#[derive(Default)]
pub(super) struct Ends<'a> {
    pub(super) stdin: Option<Word>,
    /// `< <(list)`
    pub(super) pipe: Option<(usize, usize)>,
    /// `> >(list)` and `tee >(list)`: these read what the command writes.
    pub(super) readers: Vec<&'a ast::CompoundList>,
}

/// Functions by name, each with the script that defines it.
pub(super) type Functions = HashMap<String, Rc<(ast::FunctionBody, String)>>;

/// The inputs that a part has of its own.
pub(super) fn inputs(part: &Part) -> Vec<Feed> {
    let mut out: Vec<Feed> = part.stdin.clone().map(Feed::Text).into_iter().collect();
    out.extend(part.redirects.iter().filter(|r| r.input).cloned().map(Feed::File));
    if out.is_empty() {
        out.extend(part.piped_from.map(Feed::Pipe));
    }
    out
}

impl Walk {
    /// Gives a part without an input of its own the one that it finds.
    pub(super) fn feed(&self, part: &mut Part) {
        if !inputs(part).is_empty() {
            return;
        }
        match self.fed.as_slice() {
            [] => part.stdin.clone_from(&self.input),
            [Feed::Text(text)] => part.stdin = Some(text.clone()),
            [Feed::File(file)] => part.redirects.push(file.clone()),
            [Feed::Pipe(range)] => part.piped_from = Some(*range),
            // Which of them it reads is known only at run time.
            _ => part.stdin = Some(Word::unknown()),
        }
    }

    /// Walks what reads `feeds` where it has no input of its own. Inputs that `exec` sets in there stay.
    pub(super) fn reading(&mut self, feeds: Vec<Feed>, body: impl FnOnce(&mut Self)) {
        let from = feeds.len();
        let outer = (self.pipe.take(), std::mem::replace(&mut self.fed, feeds));
        body(self);
        let added = self.fed.split_off(from.min(self.fed.len()));
        (self.pipe, self.fed) = outer;
        self.fed.extend(added);
    }

    /// A group, a loop, a condition or a function's body, with its redirections.
    pub(super) fn group(&mut self, redirects: Option<&ast::RedirectList>, body: impl FnOnce(&mut Self)) {
        let mut ends = Ends::default();
        let mut files = Vec::new();
        for redirect in redirects.into_iter().flat_map(|l| &l.0) {
            files.extend(self.redirect(redirect, &mut ends));
        }
        let mut feeds: Vec<Feed> = ends.stdin.take().map(Feed::Text).into_iter().collect();
        feeds.extend(files.iter().filter(|r| r.input).cloned().map(Feed::File));
        feeds.extend(ends.pipe.map(Feed::Pipe));
        self.out.redirects.extend(files);
        let start = self.out.parts.len();
        if feeds.is_empty() {
            body(self);
        } else {
            self.reading(feeds, body);
        }
        self.readers(&ends, start);
    }

    /// Walks the lists that read what the parts since `start` write.
    pub(super) fn readers(&mut self, ends: &Ends<'_>, start: usize) {
        for list in &ends.readers {
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
            self.fed.extend(inputs(part));
        }
    }

    /// A function is called with an input: what it runs may read that.
    pub(super) fn call(&mut self, part: &Part) {
        let name = part.program();
        let Some(function) = self.functions.get(name).cloned() else { return };
        let feeds = inputs(part);
        if feeds.is_empty() || self.calls.iter().any(|c| c == name) {
            return;
        }
        if self.calls.len() >= MAX_SCRIPTS {
            self.out.set_unclear("it is nested too deeply");
            return;
        }
        let (body, text) = &*function;
        self.calls.push(name.to_owned());
        let outer = (self.enter(text), std::mem::take(&mut self.handed));
        self.reading(feeds, |walk| walk.group(body.1.as_ref(), |walk| walk.compound(&body.0)));
        (self.text, self.handed) = outer;
        self.calls.pop();
    }

    /// Why code comes to `part` by a way that is not shown: it stands in a function, or behind it in the input of
    /// the shell that runs it.
    pub(super) fn unseen_code(&self, part: &Part) -> Option<String> {
        let base = part.base();
        let runs = is_shell(&base) || interpreter(&base);
        if !self.handed || !runs || !inputs(part).is_empty() {
            return None;
        }
        let from_input = |w: &Word| {
            reads_itself(w)
                || w.text.starts_with('-') && !w.text[1..].contains(['c', 'e', 'V']) && w.text != "--version"
        };
        let given = part.args().iter().any(|w| w.text.starts_with('-') && w.text.contains('s'));
        (part.args().iter().all(from_input) || is_shell(&base) && given)
            .then(|| format!("{base} reads code that is not shown"))
    }

    /// What `echo` and `printf` hand to a shell or an interpreter, for deny rules.
    pub(super) fn given(&self, part: &Part) -> Vec<String> {
        if !code::takes_code(&part.base()) {
            return vec![];
        }
        let mut out = Vec::new();
        let mut open: Vec<(usize, usize)> = part.piped_from.into_iter().collect();
        for feed in &self.fed {
            match feed {
                Feed::Text(text) => out.extend(code_pieces(&text.text)),
                Feed::Pipe(range) => open.push(*range),
                Feed::File(_) => {}
            }
        }
        let mut seen = Vec::new();
        while let Some((from, to)) = open.pop() {
            if seen.contains(&(from, to)) || seen.len() > MAX_SCRIPTS {
                continue;
            }
            seen.push((from, to));
            for said in self.out.parts.get(from..to).unwrap_or_default() {
                if !matches!(said.base().as_str(), "echo" | "printf" | "cat" | "tee") {
                    continue;
                }
                out.extend(said.args().iter().chain(&said.stdin).flat_map(|w| code_pieces(&w.text)));
                open.extend(said.piped_from);
            }
        }
        out
    }
}
