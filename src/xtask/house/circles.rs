//! Files of one crate that import each other in a circle: strongly connected components of the graph of imports.
//!
//! An import is a path that begins with `crate::`, `super::` or `self::`, in a `use` or anywhere in the code. It counts
//! for the file of the longest module path that it begins with. A name that a `mod.rs` re-exports counts for that
//! `mod.rs`. A file's own child modules and its parent count as well, when they are named by such a path. Not detected:
//! paths that begin with the name of a child module, and paths inside macro calls. The path of a visibility,
//! `pub(super)`, imports nothing.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::crates::{File, Room};

/// The paths of the files in the largest circle; empty when there is none.
pub(crate) fn largest(room: &Room) -> Vec<String> {
    let modules: BTreeMap<&[String], usize> =
        room.files.iter().enumerate().map(|(n, f)| (f.module.as_slice(), n)).collect();
    let edges: Vec<BTreeSet<usize>> =
        room.files.iter().enumerate().map(|(n, f)| imports(f, n, &modules)).collect();
    let circles = components(&edges);
    let best = circles.into_iter().filter(|c| c.len() > 1).max_by_key(Vec::len).unwrap_or_default();
    let mut names: Vec<String> = best.into_iter().map(|n| room.files[n].path.clone()).collect();
    names.sort();
    names
}

/// The paths into its own crate that a file names, as segments below the crate.
pub(super) fn paths(file: &File) -> Vec<Vec<String>> {
    let mut paths = Paths::default();
    paths.visit_file(&file.parsed);
    paths.found.iter().filter_map(|path| absolute(path, &file.module)).collect()
}

fn imports(file: &File, own: usize, modules: &BTreeMap<&[String], usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for whole in paths(file) {
        let known = (0..=whole.len()).rev().find_map(|n| modules.get(&whole[..n]));
        found.extend(known.copied().filter(|n| *n != own));
    }
    found
}

/// `crate::a::B`, `super::B` and `self::B` as segments below the crate.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    let mut whole = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.to_vec(),
        "super" => module.split_last()?.1.to_vec(),
        _ => return None,
    };
    for segment in rest {
        if segment == "super" {
            whole.pop();
        } else {
            whole.push(segment.clone());
        }
    }
    Some(whole)
}

/// Collects paths, those of `use` trees spelled out.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        spell(&item.tree, &mut Vec::new(), &mut self.found);
    }

    /// `pub(super)` names the module that may see the item; it imports nothing.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.found.push(path.segments.iter().map(|s| s.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

fn spell(tree: &syn::UseTree, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match tree {
        syn::UseTree::Path(p) => {
            before.push(p.ident.to_string());
            spell(&p.tree, before, found);
            before.pop();
        }
        syn::UseTree::Name(n) => end(&n.ident, before, found),
        syn::UseTree::Rename(r) => end(&r.ident, before, found),
        syn::UseTree::Glob(_) => found.push(before.clone()),
        syn::UseTree::Group(g) => g.items.iter().for_each(|t| spell(t, before, found)),
    }
}

fn end(name: &syn::Ident, before: &[String], found: &mut Vec<Vec<String>>) {
    let mut path = before.to_vec();
    if name != "self" {
        path.push(name.to_string());
    }
    found.push(path);
}

/// Strongly connected components (Tarjan 1972).
fn components(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search { edges, ..Search::default() };
    search.index = vec![None; edges.len()];
    search.low = vec![0; edges.len()];
    search.on_stack = vec![false; edges.len()];
    for n in 0..edges.len() {
        if search.index[n].is_none() {
            search.visit(n);
        }
    }
    search.found
}

#[derive(Default)]
struct Search<'a> {
    edges: &'a [BTreeSet<usize>],
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// Recursion is as deep as the longest chain of files in one crate: some hundred.
    fn visit(&mut self, n: usize) {
        self.index[n] = Some(self.next);
        self.low[n] = self.next;
        self.next += 1;
        self.stack.push(n);
        self.on_stack[n] = true;
        for &m in &self.edges[n] {
            match self.index[m] {
                None => {
                    self.visit(m);
                    self.low[n] = self.low[n].min(self.low[m]);
                }
                Some(index) if self.on_stack[m] => self.low[n] = self.low[n].min(index),
                Some(_) => {}
            }
        }
        if self.index[n] != Some(self.low[n]) {
            return;
        }
        let mut component = Vec::new();
        while let Some(m) = self.stack.pop() {
            self.on_stack[m] = false;
            component.push(m);
            if m == n {
                break;
            }
        }
        self.found.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(files: &[(&str, &str)]) -> Room {
        let files = files.iter().map(|(name, text)| {
            let module = if *name == "lib" { vec![] } else { name.split('/').map(str::to_owned).collect() };
            File::parse((*name).to_owned(), module, (*text).to_owned()).unwrap()
        });
        Room { name: "room".to_owned(), files: files.collect() }
    }

    #[test]
    fn a_circle_over_three_files_is_found_and_a_chain_is_none() {
        let circle = room(&[
            ("lib", "mod a; mod b;"),
            ("a", "use crate::{b::{self, B}, c};"),
            ("b", "fn f() { super::c::g() }"),
            ("c", "pub fn g() -> crate::a::A {}"),
            ("d", "use crate::a::A;"),
        ]);
        assert_eq!(largest(&circle), ["a", "b", "c"]);
        let chain = room(&[("a", "use crate::b::B;"), ("b", "use crate::c::C;"), ("c", "")]);
        assert!(largest(&chain).is_empty());
    }

    #[test]
    fn a_visibility_makes_no_circle() {
        let room = room(&[("a", "use crate::a::b::B;"), ("a/b", "pub(super) struct B;")]);
        assert!(largest(&room).is_empty());
    }

    #[test]
    fn what_only_tests_import_makes_no_circle() {
        let room = room(&[
            ("a", "use crate::b::B; #[cfg(test)] mod tests { use crate::b; }"),
            ("b", "#[cfg(test)] use crate::a::A; struct B; impl B { #[cfg(test)] fn f() { crate::a::g() } }"),
        ]);
        assert!(largest(&room).is_empty());
    }
}
