//! Folders of one crate that must not import each other. Between crates the manifests enforce this.

use super::circles;
use super::crates::Room;

/// Crate, folder, folders of the same crate that it must not import.
const RULES: &[(&str, &str, &[&str])] =
    &[("tiller", "app", &["commands", "detach"]), ("tiller", "detach", &["app", "commands"])];

/// The imports that break a rule, one line each.
pub(super) fn check(rooms: &[Room]) -> Vec<String> {
    let mut problems = Vec::new();
    for (room, folder, forbidden) in RULES {
        let files = rooms.iter().filter(|r| r.name == *room).flat_map(|r| &r.files);
        for file in files.filter(|f| f.module.first().is_some_and(|first| first == folder)) {
            for path in circles::paths(file) {
                let Some(to) = path.first().filter(|to| forbidden.contains(&to.as_str())) else { continue };
                problems.push(format!("{}: {folder} must not import {to}", file.path));
            }
        }
    }
    problems.dedup();
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::crates::File;

    #[test]
    fn an_import_of_a_forbidden_folder_is_found_and_another_is_not() {
        let module = || vec!["app".to_owned(), "x".to_owned()];
        let file = |text: &str| File::parse("src/app/x.rs".to_owned(), module(), text.to_owned()).unwrap();
        let check = |text| check(&[Room { name: "tiller".to_owned(), files: vec![file(text)] }]);
        assert!(check("use crate::app::setup::Setup; use super::files; fn f() { commands() }").is_empty());
        let wrong = ["src/app/x.rs: app must not import commands"];
        assert_eq!(check("use crate::{app::Setup, commands::{self, Exit}};"), wrong);
        assert_eq!(check("fn f() -> super::super::commands::Exit { todo() }"), wrong);
    }
}
