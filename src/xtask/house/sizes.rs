//! Members of types: fields of structs that are not plain data, variants of message enums, methods of traits, and the
//! number of files over which the `impl` of one type is spread.

use std::collections::BTreeMap;

use syn::Item;

use super::crates::{File, Room};
use super::limits;

/// What was counted, its size, its limit. Only sizes of at least two thirds of the general limit.
pub(crate) fn all(rooms: &[Room]) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for room in rooms {
        let mut spread = BTreeMap::<String, usize>::new();
        for file in &room.files {
            items(file, &file.parsed.items, &mut found);
            for name in implemented(&file.parsed.items) {
                *spread.entry(name).or_default() += 1;
            }
        }
        for (name, files) in spread.into_iter().filter(|(_, n)| *n > limits::SPREAD) {
            let what = format!("src/{}: files with an `impl` of {name}", room.name);
            found.push((what, files, limits::spread(&room.name, &name)));
        }
    }
    found
}

fn items(file: &File, items: &[Item], found: &mut Vec<(String, usize, usize)>) {
    for item in items {
        let (kind, name, size, general) = match item {
            Item::Struct(s) if !is_data(&s.attrs) => {
                ("fields of struct", s.ident.to_string(), s.fields.len(), limits::FIELDS)
            }
            Item::Enum(e) if e.ident.to_string().ends_with("Msg") => {
                ("variants of enum", e.ident.to_string(), e.variants.len(), limits::VARIANTS)
            }
            Item::Trait(t) => {
                let methods = t.items.iter().filter(|i| matches!(i, syn::TraitItem::Fn(_))).count();
                ("methods of trait", t.ident.to_string(), methods, limits::METHODS)
            }
            _ => continue,
        };
        if size > general {
            found.push((
                format!("{}: {kind} {name}", file.path),
                size,
                limits::members(&file.path, &name, general),
            ));
        }
    }
}

/// Whether it is plain data: it can be serialised, compared, or parsed from arguments.
fn is_data(attributes: &[syn::Attribute]) -> bool {
    const DATA: &[&str] = &["Serialize", "Deserialize", "PartialEq", "Args", "Parser"];
    attributes.iter().filter(|a| a.path().is_ident("derive")).any(|a| {
        let mut data = false;
        let _ = a.parse_nested_meta(|m| {
            data |= m.path.segments.last().is_some_and(|s| DATA.iter().any(|d| s.ident == d));
            Ok(())
        });
        data
    })
}

/// Types with an inherent `impl` in the file, each once.
fn implemented(items: &[Item]) -> Vec<String> {
    let mut names: Vec<String> = items
        .iter()
        .filter_map(|item| match item {
            Item::Impl(i) if i.trait_.is_none() => match &*i.self_ty {
                syn::Type::Path(p) => p.path.segments.last().map(|s| s.ident.to_string()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    names.sort();
    names.dedup();
    names
}
