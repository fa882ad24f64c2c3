//! The objects of a file and its pages. They are found by reading the file from its begin, so that damaged tables of their
//! places, and files that were cut, do no harm.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use memchr::memmem;

use super::object::{Dict, Lexer, Object};
use super::{Budget, PdfError, filter};

/// Objects of a file.
const OBJECTS: usize = 1_000_000;
/// References that lead to each other.
const HOPS: usize = 16;
/// Depth of the tree of pages, and nodes of it.
const DEPTH: usize = 60;
/// Bytes of syntax that are a step of work.
const STEP: usize = 16;
const NODES: usize = 100_000;

/// Where an object stands.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the file.
    File(usize),
    /// In an unpacked stream of objects.
    Packed(usize, usize),
}

/// A file.
pub(super) struct File<'a> {
    bytes: &'a [u8],
    pub(super) budget: &'a Budget,
    /// By number: the place in the file that the object or its stream has, and its own place. The last one counts.
    places: HashMap<u32, (usize, Place)>,
    packed: Vec<Rc<[u8]>>,
    /// The object at the root of the file.
    root: Option<u32>,
    /// Objects that are pages, for files whose tree is damaged.
    loose: Vec<u32>,
}

/// A page: its dictionary, with the resources that it has from its tree.
pub(super) struct PageObject {
    pub(super) dict: Dict,
    pub(super) resources: Rc<Dict>,
}

impl<'a> File<'a> {
    /// Finds the objects.
    ///
    /// # Errors
    /// When it is encrypted, or no object was found.
    pub(super) fn find(bytes: &'a [u8], budget: &'a Budget) -> Result<Self, PdfError> {
        let mut file =
            File { bytes, budget, places: HashMap::new(), packed: Vec::new(), root: None, loose: Vec::new() };
        let mut starts = Vec::new();
        for at in memmem::find_iter(bytes, b"obj").take(OBJECTS) {
            if let Some((number, from)) = number_before(bytes, at) {
                file.places.insert(number, (from, Place::File(at + b"obj".len())));
                starts.push(number);
            }
        }
        if file.places.is_empty() {
            return Err(PdfError::NoPages);
        }
        starts.sort_unstable();
        starts.dedup();
        let mut roots: Vec<(usize, Dict)> = Vec::new();
        for at in memmem::find_iter(bytes, b"trailer").take(1_000) {
            if let Some(Object::Dict(dict)) = Lexer::file(bytes, at + b"trailer".len()).next() {
                roots.push((at, dict));
            }
        }
        let mut streams = Vec::new();
        let mut catalogs = Vec::new();
        let mut locks = Vec::new();
        for number in starts {
            let object = file.get(number);
            let Some(dict) = object.dict() else { continue };
            let place = file.places.get(&number).map_or(0, |(from, _)| *from);
            match dict.get("Type").and_then(Object::name) {
                Some("XRef") => roots.push((place, dict.clone())),
                Some("ObjStm") => streams.push((place, number)),
                Some("Catalog") => catalogs.push((place, number)),
                Some("Page") => file.loose.push(number),
                _ if ["Filter", "O", "U", "P"].iter().all(|key| dict.contains_key(*key)) => {
                    locks.push(Object::Dict(dict.clone()));
                }
                _ => {}
            }
            if !budget.step(1) {
                return Err(budget.spent());
            }
        }
        let named = roots.iter().filter_map(|(_, dict)| dict.get("Encrypt")).filter(|e| **e != Object::Null);
        let mut named: Vec<&Object> = named.collect();
        if roots.is_empty() {
            // Of a file without its end nothing names it.
            named.extend(&locks);
        }
        if named.iter().any(|lock| !leaves_streams(&file, &file.dict(Some(*lock)))) {
            return Err(PdfError::Encrypted);
        }
        streams.sort_unstable();
        for (place, number) in streams {
            file.unpack(place, number, &mut catalogs);
        }
        roots.sort_by_key(|(place, _)| *place);
        let named = roots.iter().rev().find_map(|(_, dict)| match dict.get("Root") {
            Some(Object::Ref(number)) if file.places.contains_key(number) => Some(*number),
            _ => None,
        });
        file.root = named.or_else(|| catalogs.iter().max().map(|(_, number)| *number));
        Ok(file)
    }

    /// Finds the objects in a stream of objects.
    fn unpack(&mut self, place: usize, number: u32, catalogs: &mut Vec<(usize, u32)>) {
        let object = self.get(number);
        let Some(data) = self.stream(&object) else { return };
        let Some(dict) = object.dict() else { return };
        let first = self.number(dict.get("First")).unwrap_or(0.0) as usize;
        let count = (self.number(dict.get("N")).unwrap_or(0.0) as usize).min(OBJECTS);
        let data: Rc<[u8]> = data.into();
        let mut head = Lexer::content(&data);
        for _ in 0..count {
            let (Some(Object::Number(id)), Some(Object::Number(offset))) = (head.next(), head.next()) else {
                break;
            };
            let (id, at) = (id as u32, first.saturating_add(offset as usize));
            if at >= data.len() || !self.budget.step(1) {
                break;
            }
            if self.places.get(&id).is_none_or(|(other, _)| *other < place) {
                self.places.insert(id, (place, Place::Packed(self.packed.len(), at)));
            }
            if let Some(Object::Dict(dict)) = Lexer::file(&data, at).next() {
                match dict.get("Type").and_then(Object::name) {
                    Some("Catalog") => catalogs.push((place, id)),
                    Some("Page") => self.loose.push(id),
                    _ => {}
                }
            }
        }
        self.packed.push(data);
    }

    /// An object by its number; `Null`: there is none.
    pub(super) fn get(&self, number: u32) -> Object {
        match self.places.get(&number) {
            Some((_, Place::File(at))) => {
                let mut lexer = Lexer::file(self.bytes, *at);
                let object = lexer.next().unwrap_or_default();
                if !self.budget.step(lexer.at.saturating_sub(*at) / STEP) {
                    return Object::Null;
                }
                match object {
                    Object::Dict(dict) => match lexer.stream() {
                        Some(from) => Object::Stream(dict, from),
                        None => Object::Dict(dict),
                    },
                    other => other,
                }
            }
            Some((_, Place::Packed(stream, at))) => {
                let Some(data) = self.packed.get(*stream) else { return Object::Null };
                let mut lexer = Lexer::file(data, *at);
                let object = lexer.next().unwrap_or_default();
                if self.budget.step(lexer.at.saturating_sub(*at) / STEP) { object } else { Object::Null }
            }
            None => Object::Null,
        }
    }

    /// An object once its references are followed.
    pub(super) fn resolve(&self, object: Option<&Object>) -> Object {
        let Some(object) = object else { return Object::Null };
        if !self.budget.step(object.weight() / STEP) {
            return Object::Null;
        }
        let mut found = object.clone();
        for _ in 0..HOPS {
            match found {
                Object::Ref(number) if self.budget.step(1) => found = self.get(number),
                other => return other,
            }
        }
        Object::Null
    }

    pub(super) fn number(&self, object: Option<&Object>) -> Option<f64> {
        self.resolve(object).number()
    }

    /// A dictionary, or that of a stream; empty: there is none.
    pub(super) fn dict(&self, object: Option<&Object>) -> Dict {
        match self.resolve(object) {
            Object::Dict(dict) | Object::Stream(dict, _) => dict,
            _ => Dict::new(),
        }
    }

    /// The unpacked bytes of a stream; `None`: it is none, or cannot be unpacked.
    pub(super) fn stream(&self, object: &Object) -> Option<Vec<u8>> {
        let Object::Stream(dict, from) = object else { return None };
        let rest = self.bytes.get(*from..)?;
        let named = self.number(dict.get("Length")).filter(|n| *n >= 0.0).map(|n| n as usize);
        let right = |length: &usize| {
            let after = rest.get(*length..).unwrap_or_default();
            let after = after.get(..after.len().min(20)).unwrap_or_default();
            memmem::find(after, b"endstream").is_some()
        };
        let length = named.filter(right).or_else(|| memmem::find(rest, b"endstream")).unwrap_or(rest.len());
        if !self.budget.step(length / 256) {
            return None;
        }
        let list = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| dict.get(*name));
            match self.resolve(found) {
                Object::Array(items) => items,
                Object::Null => Vec::new(),
                other => vec![other],
            }
        };
        let filters: Vec<String> = list(["Filter", "F"])
            .iter()
            .filter_map(|item| self.resolve(Some(item)).name().map(str::to_owned))
            .collect();
        let parameters: Vec<Dict> =
            list(["DecodeParms", "DP"]).iter().map(|item| self.dict(Some(item))).collect();
        filter::decode(&rest[..length.min(rest.len())], &filters, &parameters, self.budget)
    }

    /// The pages in their order.
    pub(super) fn pages(&self) -> Vec<PageObject> {
        let mut pages = Vec::new();
        if let Some(root) = self.root {
            let catalog = self.dict(Some(&Object::Ref(root)));
            if let Some(tree) = catalog.get("Pages") {
                self.branch(tree, &Rc::default(), DEPTH, &mut HashSet::new(), &mut pages);
            }
        }
        if pages.is_empty() {
            let loose = self.loose.iter().map(|number| self.dict(Some(&Object::Ref(*number))));
            pages = loose
                .map(|dict| PageObject { resources: Rc::new(self.dict(dict.get("Resources"))), dict })
                .collect();
        }
        pages
    }

    fn branch(
        &self,
        node: &Object,
        inherited: &Rc<Dict>,
        depth: usize,
        seen: &mut HashSet<u32>,
        pages: &mut Vec<PageObject>,
    ) {
        if let Object::Ref(number) = node
            && !seen.insert(*number)
        {
            return;
        }
        if depth == 0 || pages.len() >= NODES || !self.budget.step(1) {
            return;
        }
        let dict = self.dict(Some(node));
        let resources = match dict.get("Resources") {
            Some(own) => Rc::new(self.dict(Some(own))),
            None => Rc::clone(inherited),
        };
        match self.resolve(dict.get("Kids")) {
            Object::Array(kids) => {
                for kid in &kids {
                    self.branch(kid, &resources, depth - 1, seen, pages);
                }
            }
            _ if dict.is_empty() => {}
            _ => pages.push(PageObject { dict, resources }),
        }
    }
}

/// True for an encryption that leaves streams as they are, and with them the text: of attachments, or of strings alone.
fn leaves_streams(file: &File<'_>, lock: &Dict) -> bool {
    let by_filters = file.number(lock.get("V")).is_some_and(|version| version >= 4.0);
    let of_streams = file.resolve(lock.get("StmF"));
    by_filters && of_streams.name().unwrap_or("Identity") == "Identity"
}

/// The number of an object whose keyword stands at `at` (`12 0 obj`), and where it begins.
fn number_before(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let space = |mut at: usize| {
        let from = at;
        while at > 0 && matches!(bytes[at - 1], b' ' | b'\r' | b'\n' | b'\t') && from - at < 4 {
            at -= 1;
        }
        (at < from).then_some(at)
    };
    let digits = |mut at: usize| {
        let from = at;
        while at > 0 && bytes[at - 1].is_ascii_digit() && from - at < 10 {
            at -= 1;
        }
        (at < from).then_some(at)
    };
    // There may be no space before the keyword.
    let end = space(at).unwrap_or(at);
    let generation = digits(end)?;
    let end = space(generation)?;
    let from = digits(end)?;
    let number = std::str::from_utf8(&bytes[from..end]).ok()?.parse().ok()?;
    Some((number, from))
}
