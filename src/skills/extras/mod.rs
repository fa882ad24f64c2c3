//! Own commands and output styles: Markdown files with an optional front matter, from the same places as skills.
//!
//! | file | holds |
//! | --- | --- |
//! | `command` | own commands |
//! | `style` | output styles |

mod command;
mod style;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::Problem;
use tiller_config::agents::front::Pairs;
use tiller_config::agents::{Origin, ProjectFile};

use self::style::STYLES;
use crate::files::{ReadFailure, read_inside};
use crate::read::{find, one_line, scalar};
use crate::skill::is_plain;

pub use self::command::OwnCommand;
pub use self::style::Style;

/// Files of one folder at most, and bytes of each.
const MOST: usize = 200;
const LARGEST: usize = 64 * 1024;
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

/// A file before it is read.
struct Found {
    path: PathBuf,
    content: Result<Vec<u8>, String>,
}

impl Extras {
    pub(crate) fn built_in(&mut self) {
        let of = |(name, text): &(&str, &str)| Found {
            path: PathBuf::from(format!("{name}.md")),
            content: Ok(text.as_bytes().to_vec()),
        };
        self.add(Origin::BuiltIn, true, STYLES.iter().map(of).collect());
    }

    /// Those of a plugin, a pack, or the settings folder.
    pub(crate) fn folder(&mut self, folder: &Path, from: Origin) {
        self.add(from, false, files(&folder.join("commands")));
        self.add(from, true, files(&folder.join("styles")));
    }

    /// Those of the project, made of the bytes that were trusted.
    pub(crate) fn project(&mut self, files: &[ProjectFile<'_>]) {
        let below = |place: &str| {
            let inside = files.iter().filter(|f| {
                f.path.strip_prefix(place).is_some_and(|rest| !rest.contains('/') && rest.ends_with(".md"))
            });
            let found = |f: &ProjectFile<'_>| Found {
                path: PathBuf::from(f.path),
                content: f.bytes.map(<[u8]>::to_vec).ok_or_else(|| "it is a link, or too large".to_owned()),
            };
            inside.take(MOST).map(found).collect::<Vec<_>>()
        };
        self.add(Origin::Project, false, below(".claude/commands/"));
        self.add(Origin::Project, false, below(".tiller/commands/"));
        self.add(Origin::Project, true, below(".tiller/styles/"));
    }

    fn is_built_in_style(&self, name: &str) -> bool {
        self.styles.get(name).is_some_and(|style| style.from == Origin::BuiltIn)
    }

    fn add(&mut self, from: Origin, styles: bool, found: Vec<Found>) {
        for Found { path, content } in found {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let read = content
                .map_err(|why| Problem::file(&path, format!("the file cannot be read: {why}")))
                .and_then(|bytes| parts(&path, &name, &bytes));
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

/// The front matter, which may be missing, and the text below it.
fn parts(path: &Path, name: &str, bytes: &[u8]) -> Result<(Pairs, String), Problem> {
    let wrong = |message: &str, hint: &str| Problem {
        at: Some((1, 1)),
        hint: Some(hint.to_owned()),
        ..Problem::file(path, message)
    };
    if !is_plain(name) {
        return Err(wrong("its name cannot be a command", "use lower-case letters, digits and -"));
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

/// The Markdown files of a folder, by name. No folder is no mistake.
fn files(folder: &Path) -> Vec<Found> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.take(10 * MOST).map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "md"));
    paths.sort();
    paths.truncate(MOST);
    let found = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A person's file may be a link, to where they keep their files.
        let content = match std::fs::canonicalize(&path) {
            Ok(real) => {
                let (parent, file) = (real.parent().unwrap_or(&real), real.file_name().unwrap_or_default());
                match read_inside(parent, &file.to_string_lossy()) {
                    Ok(bytes) => Ok(bytes),
                    Err(ReadFailure::Missing) => Err("it is gone".to_owned()),
                    Err(ReadFailure::Refused(why)) => Err(format!("it {why}")),
                }
            }
            Err(e) => Err(format!("{name}: {e}")),
        };
        Found { path, content }
    };
    paths.into_iter().map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Skills, Sources};

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
            ProjectFile { path: ".claude/commands/sub/deeper.md", bytes: Some(b"x") },
            ProjectFile { path: ".tiller/styles/pirate.md", bytes: Some(b"Arr.") },
        ];
        let sources = Sources {
            built_in: true,
            packs: vec![pack.path().to_owned()],
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
        assert_eq!(
            shared.text("a b"),
            "a and b\n\nOnly these tools run for this task: read_file, terminal(git log *)."
        );
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
}
