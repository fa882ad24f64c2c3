//! What becomes a skill, and what is said of the rest.

use std::fs;
use std::path::Path;

use super::*;
use crate::agents::ProjectFile;

fn put(config: &Path, folder: &str, text: &str) {
    let folder = config.join("skills").join(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

fn file(name: &str, description: &str, body: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {description}\nlicense: MIT\nmetadata: {{ by: us }}\n---\n{body}\n"
    )
}

#[test]
fn the_projects_takes_the_place_of_the_persons_and_other_keys_are_let_be() {
    let config = tempfile::tempdir().unwrap();
    put(config.path(), "rust-style", &file("rust-style", "Mine", "Be brief."));
    put(config.path(), "notes", &file("notes", "How notes\n  are taken", "Take them."));
    fs::create_dir_all(config.path().join("skills/empty")).unwrap();
    let text = file("rust-style", "Ours", "Be careful.");
    let script = ProjectFile { path: ".tiller/skills/rust-style/run.sh", bytes: Some(b"rm -rf /") };
    let deeper = ProjectFile { path: ".tiller/skills/a/b/SKILL.md", bytes: Some(text.as_bytes()) };
    let ours = ProjectFile { path: ".tiller/skills/rust-style/SKILL.md", bytes: Some(text.as_bytes()) };

    let (all, wrong) = Skills::load(config.path(), &[script, deeper, ours]);

    assert_eq!(wrong, []);
    let told: Vec<_> =
        all.iter().map(|s| (s.name.as_str(), s.description.as_str(), s.body.as_str())).collect();
    assert_eq!(told, [("notes", "How notes are taken", "Take them."), ("rust-style", "Ours", "Be careful.")]);
}

#[test]
fn each_mistake_is_told_with_its_line_and_leaves_the_rest() {
    let config = tempfile::tempdir().unwrap();
    put(config.path(), "good", &file("good", "Good", "Do it."));
    put(config.path(), "other", &file("another", "Named otherwise", "Do it."));
    put(config.path(), "Big", &file("Big", "A capital", "Do it."));
    put(config.path(), "bare", "---\nname: bare\n---\nDo it.\n");
    put(config.path(), "hollow", "---\nname: hollow\ndescription: x\n---\n");
    put(config.path(), "listed", "---\nname: listed\ndescription: [a]\n---\nDo it.\n");
    put(config.path(), "plain", "Do it.\n");

    let link = ProjectFile { path: ".tiller/skills/link/SKILL.md", bytes: None };
    let (all, wrong) = Skills::load(config.path(), &[link]);

    assert_eq!(all.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["good"]);
    let home = config.path().join("skills").display().to_string() + "/";
    let said: Vec<String> = wrong.iter().map(|p| p.to_string().replace(&home, "")).collect();
    assert_eq!(
        said,
        [
            "Big/SKILL.md:2:1: `Big` is not a valid skill name (use lower-case letters, digits and -, at most 64)",
            "bare/SKILL.md:1:1: the description is missing (add `description: ...`: what it does and when to use it)",
            "hollow/SKILL.md:5:1: there is nothing below the front matter (write the instructions)",
            "listed/SKILL.md:3:1: `description` is a list, not text (put it in quotes if it is text)",
            "other/SKILL.md:2:1: the skill is named `another`, but its folder `other` (give the folder and the skill the same name)",
            "plain/SKILL.md:1:1: the file does not start with front matter (start with ---, then name and description, then --- and the prompt)",
            ".tiller/skills/link/SKILL.md: the file cannot be read: it is a link, or too large",
        ]
    );
}

#[test]
fn of_a_name_that_is_none_the_nearest_is_told() {
    let config = tempfile::tempdir().unwrap();
    let none = Skills::load(config.path(), &[]).0;
    assert!(none.no_such("x").ends_with("put the knowledge into context"));
    put(config.path(), "rust-style", &file("rust-style", "Mine", "Be brief."));
    let one = Skills::load(config.path(), &[]).0;
    assert_eq!(one.no_such("rust-stile"), "there is no skill `rust-stile`; did you mean `rust-style`?");
    assert_eq!(one.no_such("cobol"), "there is no skill `cobol`; available: rust-style");
}
