//! Text fields of the protocol are for people: no code may compare one with a literal or take it apart. What code decides by
//! is a type. Fields with the same name elsewhere count as well, so that the rule needs no type inference.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Expr, Lit, Pat};

use super::crates::{File, Room};

/// Rooms in which the rule holds. `permit` and `shell` read command lines, whose words have fields of these names too.
const ROOMS: &[&str] =
    &["agents", "engine", "external", "snapshot", "store", "tiller", "tool", "tui", "watch"];

/// Methods that look into a text.
const METHODS: &[&str] = &[
    "contains",
    "ends_with",
    "find",
    "rsplit_once",
    "split",
    "split_once",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
];

/// Methods that only hand a text on.
const THROUGH: &[&str] = &["as_deref", "as_ref", "as_str", "to_lowercase", "trim"];

/// A file, a field of it that is true input or an identifier, and why.
const INPUT: &[(&str, &str, &str)] = &[
    ("src/commands/transcript/import/codex.rs", "provider", "another program's file"),
    ("src/commands/workbench/session_link.rs", "model", "an argument of the command line"),
    ("src/store/knowledge/learnings.rs", "agent", "a column of the database"),
    ("src/store/transfer/import_rows.rs", "kind", "a column of the database"),
    ("src/tool/browser/cdp/connection.rs", "method", "what a browser sends"),
    ("src/tool/browser/page/events.rs", "method", "what a browser sends"),
    ("src/tool/browser/tabs.rs", "method", "what a browser sends"),
    ("src/tui/dialog/commands/palette.rs", "id", "an identifier of the list's own"),
    ("src/tui/dialog/session/tree/badges.rs", "text", "a badge of the tree's own"),
    ("src/tui/panel/composer/submit.rs", "text", "what the person typed"),
    ("src/tui/terminal/suspend.rs", "project", "a path"),
    ("src/tui/view/mod.rs", "act", "the action of a notice's row"),
    ("src/watch/workspace/gitstate.rs", "branch", "what git prints"),
];

/// The places, one line each.
pub(super) fn check(rooms: &[Room]) -> Vec<String> {
    let mut fields = Fields::default();
    for file in rooms.iter().filter(|r| r.name == "protocol").flat_map(|r| &r.files) {
        fields.visit_file(&file.parsed);
    }
    let mut problems = Vec::new();
    let files = rooms.iter().filter(|r| ROOMS.contains(&r.name.as_str())).flat_map(|r| &r.files);
    for file in files {
        let found = of_file(file, &fields.0);
        problems.extend(found.into_iter().map(|(field, words)| {
            format!("{}: looks for \"{words}\" in the text `{field}`; make it a type", file.path)
        }));
    }
    problems
}

/// The fields that a file looks into, each with the words. What is allowed by [`INPUT`] is left out.
fn of_file(file: &File, fields: &BTreeSet<String>) -> Vec<(String, String)> {
    let mut visitor = ProseVisitor { fields, found: Vec::new() };
    visitor.visit_file(&file.parsed);
    let allowed = |field: &str| INPUT.iter().any(|(path, name, _)| *path == file.path && *name == field);
    visitor.found.retain(|(field, _)| !allowed(field));
    visitor.found
}

/// Names of public fields that hold text.
#[derive(Default)]
struct Fields(BTreeSet<String>);

impl Visit<'_> for Fields {
    fn visit_field(&mut self, field: &syn::Field) {
        if let (Some(name), true) = (&field.ident, is_text(&field.ty)) {
            self.0.insert(name.to_string());
        }
    }
}

/// `String`, or an optional one.
fn is_text(ty: &syn::Type) -> bool {
    let syn::Type::Path(path) = ty else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    match &last.arguments {
        syn::PathArguments::AngleBracketed(inner) if last.ident == "Option" => {
            inner.args.iter().any(|arg| matches!(arg, syn::GenericArgument::Type(ty) if is_text(ty)))
        }
        _ => last.ident == "String",
    }
}

struct ProseVisitor<'a> {
    fields: &'a BTreeSet<String>,
    found: Vec<(String, String)>,
}

impl ProseVisitor<'_> {
    /// The text field that an expression hands on.
    fn field(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Field(field) => match &field.member {
                syn::Member::Named(name) => Some(name.to_string()).filter(|n| self.fields.contains(n)),
                syn::Member::Unnamed(_) => None,
            },
            Expr::MethodCall(call) if THROUGH.contains(&call.method.to_string().as_str()) => {
                self.field(&call.receiver)
            }
            Expr::Reference(inner) => self.field(&inner.expr),
            Expr::Unary(inner) => self.field(&inner.expr),
            Expr::Paren(inner) => self.field(&inner.expr),
            _ => None,
        }
    }

    fn note(&mut self, expr: &Expr, words: Option<String>) {
        if let (Some(field), Some(words)) = (self.field(expr), words) {
            self.found.push((field, words));
        }
    }
}

/// A literal with at least one letter: signs and blanks are the form of a text, not its words.
fn words(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Lit(lit) => literal(&lit.lit),
        Expr::Array(array) => array.elems.iter().find_map(words),
        Expr::Call(call) => call.args.iter().find_map(words),
        Expr::Reference(inner) => words(&inner.expr),
        Expr::Path(path) => path.path.segments.last().and_then(|last| constant(&last.ident.to_string())),
        _ => None,
    }
}

/// The name of a constant: a text that is compared with one is taken apart as well. Those of numbers are left out.
fn constant(name: &str) -> Option<String> {
    let capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    (name.len() > 1 && name.chars().all(capital) && !["MIN", "MAX"].contains(&name)).then(|| name.to_owned())
}

fn literal(lit: &Lit) -> Option<String> {
    let Lit::Str(text) = lit else { return None };
    Some(text.value()).filter(|text| text.chars().any(char::is_alphabetic))
}

fn words_of_pattern(pat: &Pat) -> Option<String> {
    match pat {
        Pat::Lit(lit) => literal(&lit.lit),
        Pat::Or(or) => or.cases.iter().find_map(words_of_pattern),
        Pat::TupleStruct(inner) => inner.elems.iter().find_map(words_of_pattern),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for ProseVisitor<'_> {
    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if matches!(binary.op, syn::BinOp::Eq(_) | syn::BinOp::Ne(_)) {
            for (one, other) in [(&binary.left, &binary.right), (&binary.right, &binary.left)] {
                self.note(one, words(other));
            }
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if METHODS.contains(&call.method.to_string().as_str()) {
            self.note(&call.receiver, call.args.first().and_then(words));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        self.note(&expr.expr, expr.arms.iter().find_map(|arm| words_of_pattern(&arm.pat)));
        visit::visit_expr_match(self, expr);
    }

    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        // `matches!(EXPRESSION, PATTERN)`
        let parse = |input: syn::parse::ParseStream<'_>| {
            let expr: Expr = input.parse()?;
            input.parse::<syn::Token![,]>()?;
            let pat = Pat::parse_multi_with_leading_vert(input)?;
            if input.parse::<Option<syn::Token![if]>>()?.is_some() {
                input.parse::<Expr>()?;
            }
            input.parse::<Option<syn::Token![,]>>()?;
            Ok((expr, pat))
        };
        if found.path.is_ident("matches")
            && let Ok((expr, pat)) = found.parse_body_with(parse)
        {
            self.note(&expr, words_of_pattern(&pat));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_with_words_are_found_and_forms_are_not() {
        let fields: BTreeSet<String> = ["state".to_owned()].into();
        let found = |code: &str| {
            let text = format!("fn f() {{ {code}; }}");
            of_file(&File::parse("src/x.rs".into(), Vec::new(), text).unwrap(), &fields).len()
        };
        for wrong in [
            r#"a.state == "idle""#,
            r#""idle" != a.b.state.as_str()"#,
            r#"a.state != NO_RULE"#,
            r#"a.state.starts_with(words::PREFIX)"#,
            r#"a.state.as_deref() == Some("idle")"#,
            r#"a.state.trim().starts_with("running for ")"#,
            r#"match a.state.as_str() { "idle" | "done" => 1, _ => 2 }"#,
            r#"x && matches!(a.state.as_str(), "idle" | "done")"#,
        ] {
            assert_eq!(found(wrong), 1, "{wrong}");
        }
        for right in [
            r#"a.state.is_empty()"#,
            r#"a.state == b.state"#,
            r#"a.state.split_once('\n')"#,
            r#"a.state.starts_with("-- ")"#,
            r#"a.name == "idle""#,
            r#"state == "idle""#,
            r#"matches!(a.state, State::Idle)"#,
        ] {
            assert_eq!(found(right), 0, "{right}");
        }
    }
}
