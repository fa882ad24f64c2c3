//! Measures of the structure, from the parsed source: circles of imports, forbidden imports, sizes of types, files in
//! each folder, replaced names, signs outside of their table, a map that differs from the manifests. `cargo xtask house`
//! prints them; `cargo xtask tidy` fails where one exceeds its limit in [`limits`].
//!
//! Tests are left out: files whose name or folder contains `test`, and items under `#[cfg(test)]`.

mod circles;
mod crates;
mod layers;
mod limits;
mod map;
mod names;
mod prose;
mod signs;
mod sizes;

use std::path::Path;

use anyhow::Result;

use crates::Room;

/// Prints every measure with its limit.
///
/// # Errors
/// When a source file cannot be read or parsed.
#[expect(clippy::print_stdout, reason = "a command-line tool without a screen")]
pub(crate) fn print(root: &Path) -> Result<Vec<String>> {
    let rooms = crates::read(root)?;
    for room in &rooms {
        let circle = circles::largest(room);
        println!(
            "{:10} largest circle {:3} files (limit {})",
            room.name,
            circle.len(),
            limits::circle(&room.name)
        );
        for file in circle.iter().take(60) {
            println!("           {file}");
        }
    }
    for (what, size, limit) in sizes::all(&rooms) {
        println!("{size:3} of {limit:3}  {what}");
    }
    for (folder, files, limit) in folders(&rooms) {
        println!("{files:3} of {limit:3}  files directly in {folder}");
    }
    Ok(Vec::new())
}

/// The exceeded limits, one line each.
///
/// # Errors
/// When a source file cannot be read or parsed.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let rooms = crates::read(root)?;
    let mut problems = Vec::new();
    for room in &rooms {
        let (circle, limit) = (circles::largest(room), limits::circle(&room.name));
        if circle.len() > limit {
            problems.push(format!(
                "{}: {} files import each other in a circle (limit {limit}): {}",
                room.name,
                circle.len(),
                circle.join(", ")
            ));
        }
    }
    let over = sizes::all(&rooms).into_iter().filter(|(_, size, limit)| size > limit);
    problems.extend(over.map(|(what, size, limit)| format!("{what}: {size}, more than {limit}")));
    let full = folders(&rooms).into_iter().filter(|(_, files, limit)| files > limit);
    problems.extend(full.map(|(folder, files, limit)| {
        format!("{folder}: {files} files directly in it, more than {limit}; make folders by subject")
    }));
    problems.extend(map::check(root, &rooms)?);
    problems.extend(layers::check(&rooms));
    problems.extend(names::check(&rooms));
    problems.extend(prose::check(&rooms));
    problems.extend(signs::check(&rooms));
    Ok(problems)
}

/// Folders with more files directly in them than [`limits::FILES`], or with a limit of their own.
fn folders(rooms: &[Room]) -> Vec<(String, usize, usize)> {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for file in rooms.iter().flat_map(|r| &r.files) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *counts.entry(folder.to_owned()).or_default() += 1;
    }
    let found = counts.into_iter().map(|(folder, n)| {
        let limit = limits::files(&folder);
        (folder, n, limit)
    });
    found.filter(|(_, n, limit)| *n > limits::FILES || *limit > limits::FILES).collect()
}
