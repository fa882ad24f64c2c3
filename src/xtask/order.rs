//! `cargo xtask order MAP FOLDER`: which functions run, as a list for the linker (see `build.rs`).
//!
//! MAP is what the linker wrote of the optimised program
//! (`cargo rustc --release --bin tiller -- -C strip=none -C link-arg=-Wl,-Map=MAP`), and FOLDER holds what
//! `valgrind --tool=callgrind --demangle=no --callgrind-out-file=FOLDER/GROUP.%p` wrote of its runs. The groups are
//! taken in the order of their names: first what the process at the terminal runs, then what the start of the
//! workbench does, `tiller exec`, and what follows (a turn, coming back).
//! A name of the list without a hash holds for all its versions; where only few of many instances of generic code
//! run they are named with their hashes, which last as long as the compiler and the library.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

const OUT: &str = "assets/link/order.txt";

/// So many bytes of instances that do not run may come with those that do: a short name is worth that.
const SMALL: u64 = 256;

/// The sections of the program's functions by the functions' names without what the compiler adds behind the
/// hash: the section's name so far, and its bytes.
type Sections = BTreeMap<String, (String, u64)>;

pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let mut args = std::env::args_os().skip(2).map(PathBuf::from);
    let (Some(map), Some(folder)) = (args.next(), args.next()) else {
        bail!("name the linker's map, and the folder of what callgrind wrote");
    };
    let map = std::fs::read(&map)?;
    let sections: Sections = String::from_utf8_lossy(&map).lines().filter_map(section).collect();
    let groups = groups(&folder)?;
    if sections.is_empty() || groups.is_empty() {
        bail!("nothing is known of the program, or of what runs");
    }
    let mut text =
        String::from("# Written by `cargo xtask order`: functions that run, those of every start first.\n");
    let mut before = BTreeSet::new();
    for mut ran in groups.into_values() {
        ran.retain(|name| sections.contains_key(name) && before.insert(name.clone()));
        for line in lines(&ran, &sections) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    std::fs::write(root.join(OUT), text)?;
    Ok(Vec::new())
}

/// `address address size align file:(.text.name)`, in hexadecimal digits.
fn section(line: &str) -> Option<(String, (String, u64))> {
    let (head, name) = line.strip_suffix(')')?.rsplit_once(":(.text.")?;
    let size = u64::from_str_radix(head.split_whitespace().nth(2)?, 16).ok()?;
    let function = stem(name.strip_prefix("unlikely.").unwrap_or(name));
    let name = name.find(function).and_then(|at| name.get(..at + function.len()))?;
    Some((function.to_owned(), (name.to_owned(), size)))
}

/// The functions of the files of each group.
fn groups(folder: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let group = name.split('.').next().unwrap_or_default().to_owned();
        let text = std::fs::read(entry.path())?;
        all.entry(group).or_default().extend(String::from_utf8_lossy(&text).lines().filter_map(function));
    }
    Ok(all)
}

/// `fn=(12) name`; a recursive one has `'2` behind its name.
fn function(line: &str) -> Option<String> {
    let rest = line.strip_prefix("fn=(").or_else(|| line.strip_prefix("cfn=("))?;
    let (_, name) = rest.split_once(") ")?;
    Some(stem(name.split('\'').next().unwrap_or(name)).to_owned())
}

/// Where the hash begins in `_ZN...17h0123456789abcdefE`.
fn hash(name: &str) -> Option<usize> {
    let at = name.rfind("17h")? + 3;
    let function = name.strip_prefix("unlikely.").unwrap_or(name);
    (function.starts_with("_ZN") && name.get(at + 16..)?.starts_with('E')).then_some(at)
}

/// Without what may stand behind the hash, which is another one in every build.
fn stem(name: &str) -> &str {
    hash(name).and_then(|at| name.get(..at + 17)).unwrap_or(name)
}

/// The lines for what ran, in the order of their names.
fn lines(ran: &BTreeSet<String>, sections: &Sections) -> BTreeSet<String> {
    // Bytes of all instances, and of those that run.
    let mut bytes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (name, (section, size)) in sections {
        if let Some(at) = hash(section) {
            let (all, mine) = bytes.entry(&section[..at]).or_default();
            *all += size;
            *mine += if ran.contains(name) { *size } else { 0 };
        }
    }
    let line = |(section, _): &(String, u64)| match hash(section) {
        None => section.clone(),
        Some(at) => match bytes.get(&section[..at]) {
            Some((all, mine)) if *all <= mine + mine / 4 + SMALL => format!("{}*", &section[..at]),
            _ => format!("{section}*"),
        },
    };
    ran.iter().filter_map(|name| sections.get(name)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_instances_keep_their_hash_and_cold_ones_their_section() {
        let hash = |c: &str| c.repeat(16);
        let one = format!("_ZN4core3run17h{}E", hash("a"));
        let few = format!("_ZN3vec4from17h{}E", hash("b"));
        let many = format!("_ZN3vec4from17h{}E", hash("c"));
        let map = format!(
            "  a0  a0  100  16 x.o:(.text.{one})\n a0 a0 10 1 y.o:(.text.unlikely.{few}.llvm.7)\n\
             a0 a0 9000 1 y.o:(.text.unlikely.{many})\n a0 a0 8 1 lib.a(sqlite3.o):(.text.sqlite3_open)\n\
             a0 a0 8 1 z.o:(.rodata.x)\n a0 a0 8 1         {one}\n"
        );
        let sections: Sections = map.lines().filter_map(section).collect();
        assert_eq!(sections.len(), 4);
        let folder = tempfile::tempdir().unwrap();
        let wrote =
            format!("fn=(1) {one}'2\ncfn=(22) {few}.llvm.8\nfn=(3) sqlite3_open\nfn=(3)\ncalls=1 2\n");
        std::fs::write(folder.path().join("b.12"), wrote).unwrap();
        let groups = groups(folder.path()).unwrap();
        let lines: Vec<String> = lines(&groups["b"], &sections).into_iter().collect();
        let hashed = format!("unlikely._ZN3vec4from17h{}E*", hash("b"));
        assert_eq!(lines, ["_ZN4core3run17h*", "sqlite3_open", hashed.as_str()]);
    }
}
