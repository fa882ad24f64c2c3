//! From the parser's tree to a flat list of parts.

mod input;
mod loops;
mod simple;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use brush_parser::ast::{self, Command, CompoundCommand, CompoundList, ExtendedTestExpr};

use input::{Functions, Input};

use crate::analysis::Analysis;
use crate::command::{Part, Role, Word};
use crate::precheck::{self, MAX_PARTS};
use crate::programs::{changes_programs, is_cosmetic};
use crate::spelling::crude_pieces;
use crate::words::{self, Expansion};

/// Substitutions and `sh -c` inside one another.
pub(super) const MAX_SCRIPTS: usize = 8;
/// Parts are no longer collected after this many.
pub(super) const MAX_COLLECTED: usize = 5_000;
/// Pieces that deny rules see of a line that could not be parsed.
const MAX_PIECES: usize = 20_000;

pub(crate) fn analyse(command: &str) -> Analysis {
    analyse_with_input(command, None)
}

pub(crate) fn analyse_with_input(command: &str, input: Option<&str>) -> Analysis {
    let mut walk = Walk {
        typed: input.map(Word::fixed),
        out: Analysis { raw: command.to_owned(), ..Analysis::default() },
        text: String::new(),
        depth: 0,
        pipe: None,
        inputs: vec![],
        functions: Functions::new(),
        calls: vec![],
        hidden_input: false,
        substituted: false,
        bound: vec![],
    };
    walk.script(command);
    if walk.out.parts.iter().filter(|p| p.role != Role::Guess).count() > MAX_PARTS {
        walk.out.set_unclear(format!("it has more than {MAX_PARTS} commands"));
    }
    walk.out
}

struct Walk {
    out: Analysis,
    /// The script that is being taken apart.
    text: String,
    depth: usize,
    /// Parts whose output the current command reads.
    pipe: Option<(usize, usize)>,
    /// What a command without input and pipe reads. Of more than one it may be any.
    inputs: Vec<Input>,
    functions: Functions,
    /// Functions whose bodies are walked with an input.
    calls: Vec<String>,
    /// What is walked may be given an input that is not shown.
    hidden_input: bool,
    /// The current command reads the output of a substitution: `< <(list)`.
    substituted: bool,
    /// What is typed into it while it runs.
    typed: Option<Word>,
    /// Variables of the loops around the current command, with the words of [`Analysis::loops`] that each stands for.
    bound: Vec<(String, (usize, usize))>,
}

impl Walk {
    /// A whole script: the line itself, a substitution, the text of `sh -c`.
    pub(super) fn script(&mut self, text: &str) {
        if self.depth >= MAX_SCRIPTS {
            self.out.set_unclear("it is nested too deeply");
            return;
        }
        let guard = precheck::check(text);
        if let Some(why) = guard.unclear {
            self.out.set_unclear(why);
        }
        let program = if guard.parse { parse(text) } else { None };
        let Some(program) = program else {
            self.out.set_unclear("it cannot be parsed");
            for piece in crude_pieces(text).into_iter().take(MAX_PIECES) {
                self.out.parts.push(Part { also: vec![piece], ..Part::empty() });
            }
            return;
        };
        self.depth += 1;
        // Another shell, or another time: what a variable stands for is not followed into it.
        let bound = std::mem::take(&mut self.bound);
        // A substitution reads what the command reads in whose words it stands.
        let outer = self.enter(text);
        for list in &program.complete_commands {
            self.list(list);
        }
        self.text = outer;
        self.bound = bound;
        self.depth -= 1;
    }

    /// Makes `text` the script that is taken apart, and hands the one before back.
    pub(super) fn enter(&mut self, text: &str) -> String {
        std::mem::replace(&mut self.text, text.to_owned())
    }

    pub(super) fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.pipeline(&item.0.first);
            for more in &item.0.additional {
                let (ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline)) = more;
                self.pipeline(pipeline);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline) {
        let outer = self.pipe;
        for command in &pipeline.seq {
            let start = self.out.parts.len();
            self.command(command);
            self.pipe = Some((start, self.out.parts.len()));
        }
        self.pipe = outer;
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.group(redirects.as_ref(), |walk| walk.compound(compound));
            }
            Command::Function(function) => {
                self.out.set_loose("it defines a function");
                if function.fname.value.contains(['$', '`', '\'', '"', '\\']) {
                    self.out.set_unclear("a function whose name is not a plain word");
                }
                let start = self.out.parts.len();
                // What it reads is only known where it is called.
                let outer = std::mem::replace(&mut self.hidden_input, true);
                let body = &function.body;
                self.reading(vec![], |walk| walk.group(body.1.as_ref(), |walk| walk.compound(&body.0)));
                self.hidden_input = outer;
                let known = Rc::new((body.clone(), self.text.clone()));
                self.functions.insert(function.fname.value.clone(), known);
                let own = |p: &&Part| p.program() == function.fname.value;
                let calls = self.out.parts.iter().skip(start).filter(own).count();
                self.out.multiplies |= calls > 1 || (calls == 1 && self.out.raw.contains('&'));
            }
            Command::ExtendedTest(test, redirects) => {
                self.group(redirects.as_ref(), |walk| walk.test(&test.expr));
            }
        }
    }

    pub(super) fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(a) => {
                self.arithmetic(&a.expr.value);
                // The parser takes `( (ls) )` for arithmetic; to bash these are shells in shells.
                if !written_as_arithmetic(&self.text, &a.expr.value) {
                    self.script(&a.expr.value);
                }
            }
            CompoundCommand::ArithmeticForClause(f) => {
                for e in [&f.initializer, &f.condition, &f.updater].into_iter().flatten() {
                    self.arithmetic(&e.value);
                }
                self.list(&f.body.list);
            }
            CompoundCommand::BraceGroup(g) => self.list(&g.list),
            CompoundCommand::Subshell(s) => self.list(&s.list),
            CompoundCommand::ForClause(f) => {
                let from = self.out.loops.len();
                for value in f.values.iter().flatten() {
                    let words = self.words(&value.value);
                    self.out.loops.extend(words);
                }
                let to = self.out.loops.len();
                if changes_programs(&f.variable_name) {
                    self.out.set_unclear("a loop over a variable that changes what other programs do");
                } else if !is_cosmetic(&f.variable_name) && !f.variable_name.chars().any(char::is_lowercase) {
                    self.out.set_loose("a loop over a system variable");
                }
                let known = from < to && loops::set_by_loop_only(&self.text, &f.variable_name);
                if known {
                    self.bound.push((f.variable_name.clone(), (from, to)));
                }
                self.list(&f.body.list);
                if known {
                    self.bound.pop();
                }
            }
            CompoundCommand::CaseClause(c) => {
                self.words(&c.value.value);
                for case in &c.cases {
                    for pattern in &case.patterns {
                        self.words(&pattern.value);
                    }
                    if let Some(list) = &case.cmd {
                        self.list(list);
                    }
                }
            }
            CompoundCommand::IfClause(i) => {
                self.list(&i.condition);
                self.list(&i.then);
                for e in i.elses.iter().flatten() {
                    if let Some(condition) = &e.condition {
                        self.list(condition);
                    }
                    self.list(&e.body);
                }
            }
            CompoundCommand::WhileClause(w) | CompoundCommand::UntilClause(w) => {
                self.list(&w.0);
                self.list(&w.1.list);
            }
            CompoundCommand::Coprocess(c) => {
                self.out.set_loose("a coprocess");
                // It reads what later commands write.
                let start = self.out.parts.len();
                self.reading(vec![Input::Pipe((start, start))], |walk| walk.command(&c.body));
            }
        }
    }

    fn test(&mut self, expr: &ExtendedTestExpr) {
        match expr {
            ExtendedTestExpr::And(a, b) | ExtendedTestExpr::Or(a, b) => {
                self.test(a);
                self.test(b);
            }
            ExtendedTestExpr::Not(a) | ExtendedTestExpr::Parenthesized(a) => self.test(a),
            ExtendedTestExpr::UnaryTest(kind, w) => {
                if matches!(kind, ast::UnaryPredicate::ShellVariableIsSetAndAssigned) && w.value.contains('[')
                {
                    self.out.set_unclear("an array index that may run commands");
                }
                self.words(&w.value);
            }
            ExtendedTestExpr::BinaryTest(kind, a, b) => {
                use ast::BinaryPredicate as B;
                if matches!(
                    kind,
                    B::ArithmeticEqualTo
                        | B::ArithmeticNotEqualTo
                        | B::ArithmeticLessThan
                        | B::ArithmeticLessThanOrEqualTo
                        | B::ArithmeticGreaterThan
                        | B::ArithmeticGreaterThanOrEqualTo
                ) {
                    self.arithmetic(&a.value);
                    self.arithmetic(&b.value);
                }
                self.words(&a.value);
                self.words(&b.value);
            }
        }
    }

    fn arithmetic(&mut self, text: &str) {
        let mut found = Expansion::default();
        words::arithmetic(text, &mut found);
        self.take(found);
    }

    /// Notes what a word does and hands the word back.
    pub(super) fn take(&mut self, found: Expansion) -> Word {
        if let Some(why) = found.unclear {
            self.out.set_unclear(why);
        }
        if let Some(why) = found.loose {
            self.out.set_loose(why);
        }
        for command in &found.commands {
            self.script(command);
        }
        found.word
    }

    pub(super) fn words(&mut self, raw: &str) -> Vec<Word> {
        let mut words: Vec<Word> = words::expand(raw).into_iter().map(|f| self.take(f)).collect();
        if let Some(name) = loops::quoted_variable(raw)
            && let Some((_, each)) = self.bound.iter().rev().find(|(bound, _)| bound == name)
            && let [word] = words.as_mut_slice()
        {
            word.each = Some(*each);
        }
        words
    }
}

/// Whether `expr` stands between `((` and `))` without blanks inside these.
fn written_as_arithmetic(text: &str, expr: &str) -> bool {
    text.match_indices("((").any(|(at, open)| {
        let rest = text[at + open.len()..].trim_start();
        rest.strip_prefix(expr.trim()).is_some_and(|rest| rest.trim_start().starts_with("))"))
    })
}

/// The parser is foreign code that sees hostile text: a panic in it means "cannot be parsed".
fn parse(text: &str) -> Option<ast::Program> {
    catch_unwind(AssertUnwindSafe(|| {
        let options = brush_parser::ParserOptions::default();
        brush_parser::Parser::new(text.as_bytes(), &options).parse_program().ok()
    }))
    .ok()
    .flatten()
}
