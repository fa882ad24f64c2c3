//! Own commands and output styles: Markdown files with an optional front matter, from the same places as skills.
//!
//! A command in a subfolder has the folder in its name: `commands/team/review.md` is `/team:review`.
//!
//! | file | holds |
//! | --- | --- |
//! | `command` | own commands |
//! | `discover` | the files of a folder |
//! | `shell` | the arguments in commands |
//! | `style` | output styles |

mod command;
mod discover;
mod shell;
mod style;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::Problem;
use tiller_config::agents::front::Pairs;
use tiller_config::agents::{Origin, ProjectFile};

use self::discover::{Found, FoundFiles};
use self::style::STYLES;
use crate::read::{find, one_line, scalar};
use crate::skill::is_plain;
use crate::withheld::{Withheld, WithheldFiles};

pub use self::command::{CommandPiece, OwnCommand};
pub use self::style::Style;

/// Bytes of a file at most.
const LARGEST: usize = 64 * 1024;
/// Bytes of a name at most, with those of the folders in it.
const LONGEST_NAME: usize = 256;
/// Characters of a description that are kept.
const DESCRIPTION: usize = 300;

/// The commands and styles of all places so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    pub(crate) commands: BTreeMap<String, Arc<OwnCommand>>,
    pub(crate) styles: BTreeMap<String, Arc<Style>>,
    /// What is wrong with files that are left out, and their names.
    pub(crate) problems: Vec<(String, Problem)>,
}

impl Extras {
    /// Those of what is not used.
    pub(crate) fn of_withheld(group: &Withheld<'_>) -> Self {
        let mut extras = Self::default();
        match &group.files {
            WithheldFiles::Folder(folder) => extras.folder(folder, group.from, None),
            WithheldFiles::Project(files) => extras.project(files),
        }
        extras
    }

    pub(crate) fn built_in(&mut self) {
        let of = |(name, text): &(&str, &str)| Found {
            path: PathBuf::from(format!("{name}.md")),
            names: vec![(*name).to_owned()],
            content: Ok(text.as_bytes().to_vec()),
        };
        let found = STYLES.iter().map(of).collect();
        self.add(Origin::BuiltIn, true, FoundFiles { found, problems: Vec::new() });
    }

    /// Those of a plugin, a pack, or the settings folder. `agreed`: as
    /// in [`crate::PackSource`].
    pub(crate) fn folder(&mut self, folder: &Path, from: Origin, agreed: Option<&BTreeMap<String, String>>) {
        for (place, styles) in [("commands", false), ("styles", true)] {
            let mut files = discover::in_folder(&folder.join(place), from, !styles);
            if let Some(agreed) = agreed {
                files.found.iter_mut().for_each(|file| file.pin(folder, agreed));
            }
            self.add(from, styles, files);
        }
    }

    /// Those of the project, made of the bytes that were trusted.
    pub(crate) fn project(&mut self, files: &[ProjectFile<'_>]) {
        self.add(Origin::Project, false, discover::in_project(".claude/commands/", files, true));
        self.add(Origin::Project, false, discover::in_project(".tiller/commands/", files, true));
        self.add(Origin::Project, true, discover::in_project(".tiller/styles/", files, false));
    }

    fn is_built_in_style(&self, name: &str) -> bool {
        self.styles.get(name).is_some_and(|style| style.from == Origin::BuiltIn)
    }

    fn add(&mut self, from: Origin, styles: bool, files: FoundFiles) {
        self.problems.extend(files.problems);
        for Found { path, names, content } in files.found {
            let name = names.join(":");
            let read = content
                .map_err(|why| Problem::file(&path, format!("the file cannot be read: {why}")))
                .and_then(|bytes| parts(&path, &names, &bytes));
            match read {
                Ok(_) if styles && from == Origin::Plugin && self.is_built_in_style(&name) => {
                    let message = format!("`{}` is an output style of Tiller's", one_line(&name));
                    let hint = Some("give it another name".to_owned());
                    self.problems.push((name, Problem { hint, ..Problem::file(&path, message) }));
                }
                Ok((pairs, body)) if styles => {
                    let style = Style::new(&name, &pairs, body, from, path);
                    self.styles.insert(name, Arc::new(style));
                }
                Ok((pairs, body)) => {
                    let command = OwnCommand::new(&name, &pairs, body, from, path);
                    self.commands.insert(name, Arc::new(command));
                }
                Err(problem) => self.problems.push((name, problem)),
            }
        }
    }
}

fn described(pairs: &Pairs) -> String {
    let text = find(pairs, "description").and_then(scalar).unwrap_or_default();
    one_line(&text).chars().take(DESCRIPTION).collect()
}

/// The front matter, which may be missing, and the text below it. `names`: of the folders and of the file.
fn parts(path: &Path, names: &[String], bytes: &[u8]) -> Result<(Pairs, String), Problem> {
    let wrong = |message: &str, hint: &str| Problem {
        at: Some((1, 1)),
        hint: Some(hint.to_owned()),
        ..Problem::file(path, message)
    };
    let allowed = "use lower-case letters, digits and -";
    if names.last().is_none_or(|name| !is_plain(name)) {
        return Err(wrong("its name cannot be a command", allowed));
    }
    if let Some(folder) = names.iter().find(|name| !is_plain(name)) {
        let message = format!("the folder `{}` cannot be part of a command's name", folder.escape_default());
        return Err(wrong(&message, allowed));
    }
    if names.iter().map(String::len).sum::<usize>() > LONGEST_NAME {
        return Err(wrong("its name and those of its folders are too long", "give them shorter names"));
    }
    if bytes.len() > LARGEST {
        return Err(wrong("the file is larger than 64 KiB", "put the text into a skill with several files"));
    }
    let begins = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start().starts_with(b"---");
    let (pairs, body) = if begins {
        let parts = crate::read::split(path, bytes)?;
        (parts.pairs, parts.body)
    } else {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| wrong("this is not UTF-8 text", "save the file as UTF-8"))?;
        (Pairs::new(), text.trim().to_owned())
    };
    let body = body.replace(crate::skill::is_hidden, "");
    if body.is_empty() {
        Err(wrong("there is no text in it", "write what is to be sent"))
    } else {
        Ok((pairs, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{PackSource, Skills, Sources};

    fn put(home: &Path, path: &str, text: &str) {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn commands_come_from_all_places_and_odd_files_are_left_out_and_reported() {
        let (home, pack) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(
            pack.path(),
            "commands/deploy.md",
            "---\ndescription: \"Deploys it\"\n---\nDeploy to $ARGUMENTS.\n",
        );
        put(pack.path(), "commands/shared.md", "of the pack");
        put(
            home.path(),
            "commands/shared.md",
            "---\ndescription: Mine: better\nargument-hint: [stage] [when]\nmodel: opus\nallowed-tools: read_file, terminal(git log *)\n---\n$1 and $2",
        );
        put(home.path(), "commands/plain.md", "Say hello.\n");
        put(home.path(), "commands/empty.md", "---\ndescription: x\n---\n\n");
        put(home.path(), "commands/Bad Name.md", "x");
        put(home.path(), "commands/other.txt", "x");
        put(home.path(), "commands/binary.md", "x");
        std::fs::write(home.path().join("commands/binary.md"), [0xff, 0xfe, 0x00]).unwrap();
        std::fs::File::create(home.path().join("commands/huge.md")).unwrap().set_len(100 << 20).unwrap();
        let project = vec![
            ProjectFile { path: ".claude/commands/ours.md", bytes: Some(b"theirs") },
            ProjectFile { path: ".tiller/commands/ours.md", bytes: Some(b"ours") },
            ProjectFile { path: ".tiller/styles/pirate.md", bytes: Some(b"Arr.") },
        ];
        let sources = Sources {
            built_in: true,
            packs: vec![PackSource::unpinned(pack.path())],
            config: Some(home.path().to_owned()),
            project,
            ..Sources::default()
        };
        let (all, wrong) = Skills::load(&sources);
        let told: Vec<_> = all.commands().map(|c| (c.name.as_str(), c.from, c.body.as_str())).collect();
        assert_eq!(
            told,
            [
                ("deploy", Origin::Plugin, "Deploy to $ARGUMENTS."),
                ("ours", Origin::Project, "ours"),
                ("plain", Origin::User, "Say hello."),
                ("shared", Origin::User, "$1 and $2"),
            ]
        );
        let shared = all.command("shared").unwrap();
        assert_eq!((shared.description.as_str(), shared.hint.as_str()), ("Mine: better", "[stage] [when]"));
        let text = "a and b\n\nOnly these tools run for this task: read_file, terminal(git log *).";
        assert_eq!(shared.pieces("a b"), [CommandPiece::Text(text.to_owned())]);
        let styles: Vec<_> = all.styles().map(|s| s.name.as_str()).collect();
        assert_eq!(styles, ["concise", "explanatory", "learning", "pirate"]);
        let said: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        for part in [
            "empty.md:1:1: there is no text in it",
            "Bad Name.md:1:1: its name cannot be",
            "binary.md:1:1: this is not UTF-8",
            "huge.md: the file cannot be read: it is larger",
        ] {
            assert!(said.iter().any(|s| s.contains(part)), "{part}: {said:?}");
        }
        assert_eq!(said.len(), 4, "{said:?}");
    }

    #[test]
    fn a_command_of_a_subfolder_has_the_folder_in_its_name_and_answers_to_its_own_where_that_is_unique() {
        let (home, pack) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(home.path(), "commands/team/review.md", "Review it.");
        put(home.path(), "commands/team/web/style.md", "Style it.");
        put(home.path(), "commands/unit.md", "All of them.");
        put(home.path(), "commands/.git/info.md", "not a command");
        put(pack.path(), "commands/ops/unit.md", "Of the pack.");
        put(pack.path(), "commands/ops/build.md", "Of the pack.");
        put(pack.path(), "styles/sub/odd.md", "no style");
        let sources = Sources {
            packs: vec![PackSource::unpinned(pack.path())],
            config: Some(home.path().to_owned()),
            project: vec![
                ProjectFile { path: ".claude/commands/ops/build.md", bytes: Some(b"Of the project.") },
                ProjectFile { path: ".claude/commands/web/build.md", bytes: Some(b"Of the web.") },
            ],
            ..Sources::default()
        };
        let (all, wrong) = Skills::load(&sources);
        let names: Vec<_> = all.commands().map(|c| c.name.as_str()).collect();
        assert_eq!(
            names,
            ["ops:build", "ops:unit", "team:review", "team:web:style", "unit", "web:build"],
            "{wrong:?}"
        );
        let body = |name: &str| all.command(name).map(|c| c.body.as_str());
        assert_eq!(body("team:review"), Some("Review it."));
        assert_eq!(body("review"), Some("Review it."), "no other command has this name");
        assert_eq!(body("style"), Some("Style it."));
        assert_eq!(body("unit"), Some("All of them."), "the one in no folder goes first");
        assert_eq!(body("ops:build"), Some("Of the project."), "a later place replaces an earlier");
        assert_eq!(body("build"), None, "two commands have this name");
        assert!(wrong.is_empty() && all.styles().next().is_none(), "{wrong:?}");
    }

    #[test]
    fn commands_of_subfolders_that_are_left_out_are_reported() {
        let (home, pack, away) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(away.path(), "hello.md", "Hello.");
        put(home.path(), "commands/a/b/c/d/fits.md", "x");
        put(home.path(), "commands/a/b/c/d/e/deep.md", "x");
        put(home.path(), "commands/My Team/x.md", "x");
        put(home.path(), "commands/a:b.md", "x");
        put(pack.path(), "commands/plain.md", "x");
        let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).unwrap();
        link(away.path(), &home.path().join("commands/linked"));
        link(&away.path().join("hello.md"), &home.path().join("commands/a/file.md"));
        link(away.path(), &home.path().join("commands/a/folder"));
        link(away.path(), &pack.path().join("commands/out"));
        let sources = Sources {
            packs: vec![PackSource::unpinned(pack.path())],
            config: Some(home.path().to_owned()),
            project: vec![
                ProjectFile { path: ".claude/commands/1/2/3/4/5/deep.md", bytes: Some(b"x") },
                ProjectFile { path: ".claude/commands/away", bytes: None },
            ],
            ..Sources::default()
        };
        let (all, wrong) = Skills::load(&sources);
        let names: Vec<_> = all.commands().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["a:b:c:d:fits", "linked:hello", "plain"]);
        let said: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        for part in [
            "a/b/c/d/e: the folder cannot be read: it is more than 4 folders deep",
            "x.md:1:1: the folder `My Team` cannot be part",
            "a:b.md:1:1: its name cannot be",
            "a/file.md: the file cannot be read: it is a link",
            "a/folder: the folder cannot be read: it is a link",
            "commands/out: the folder cannot be read: it is a link",
            "5/deep.md: the file cannot be read: it is more than 4 folders deep",
            "commands/away: the file cannot be read: it is a link",
        ] {
            assert!(said.iter().any(|s| s.contains(part)), "{part}: {said:?}");
        }
        assert_eq!(said.len(), 8, "{said:?}");
    }

    #[test]
    fn more_commands_than_are_read_are_reported() {
        let home = tempfile::tempdir().unwrap();
        for n in 0..=discover::MOST {
            put(home.path(), &format!("commands/many/c{n}.md"), "x");
        }
        put(home.path(), "commands/z.md", "x");
        let (all, wrong) =
            Skills::load(&Sources { config: Some(home.path().to_owned()), ..Sources::default() });
        assert_eq!(all.commands().count(), discover::MOST);
        assert!(all.command("z").is_some(), "what is in no subfolder goes first");
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].to_string().contains("more than 200"), "{wrong:?}");
    }

    #[test]
    fn only_markdown_files_and_folders_count_as_entries() {
        let home = tempfile::tempdir().unwrap();
        let read = || Skills::load(&Sources { config: Some(home.path().to_owned()), ..Sources::default() });
        put(home.path(), "commands/z.md", "x");
        for n in 0..=discover::ENTRIES {
            put(home.path(), &format!("commands/n{n}.txt"), "x");
        }
        let (all, wrong) = read();
        assert_eq!((all.commands().count(), wrong.len()), (1, 0), "{wrong:?}");
        for n in 0..=discover::ENTRIES {
            std::fs::create_dir(home.path().join(format!("commands/d{n}"))).unwrap();
        }
        let (_, wrong) = read();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].to_string().contains("more than 2000 files and folders"), "{wrong:?}");
    }
}
