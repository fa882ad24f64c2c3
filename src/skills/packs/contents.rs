//! What a pack brings, for the question whether it is installed.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tiller_config::agents::Origin;
use tiller_fs::beneath;
use tiller_tool::text::is_binary;

use super::lock::PinnedFile;
use super::stage::{LIMITS, SKILLS};
use crate::skill::{Skill, is_hidden};
use crate::{PackSource, Skills, Sources};

/// Odd lines of one file that are listed; the others are counted.
const REMARKS: usize = 100;
/// Remarks of one pack that forbid to install it, at most. They are kept apart from the others.
const REFUSED: usize = 20;
/// Bytes of a file in which its first line is looked for.
const FIRST: usize = 400;
/// Endings of files that are programs.
const PROGRAMS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "fish",
    "py",
    "js",
    "mjs",
    "cjs",
    "ts",
    "rb",
    "pl",
    "php",
    "lua",
    "ps1",
    "bat",
    "cmd",
    "exe",
    "dll",
    "so",
    "dylib",
    "jar",
    "wasm",
    "applescript",
    "desktop",
];
/// Wording that asks an agent to overrule its user, to hide something, or to run what comes from elsewhere.
const ODD: &[&str] = &[
    "ignore all previous",
    "ignore previous instructions",
    "ignore the above",
    "ignore your instructions",
    "disregard all",
    "disregard previous",
    "disregard the above",
    "do not tell the user",
    "don't tell the user",
    "do not inform the user",
    "without telling the user",
    "without asking the user",
    "hide this from",
    "bypass the sandbox",
    "disable the sandbox",
    "| sh",
    "| bash",
    "| sudo",
    "base64 -d",
    "base64 --decode",
    ".ssh/",
    "id_rsa",
    "/etc/passwd",
    "authorized_keys",
];

/// What a pack brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Programs and scripts. They run only when an agent runs them, as any other command.
    pub scripts: Vec<PackFile>,
    /// Name, description and what they replace.
    pub skills: Vec<PackSkill>,
    /// Its own commands, then its output styles.
    pub extras: Vec<PackExtra>,
    /// What cannot be used, with the reason.
    pub left_out: Vec<(String, String)>,
    /// What is odd.
    pub remarks: Vec<Remark>,
    /// All other files.
    pub others: Vec<PackFile>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Exactly these files are agreed to.
    pub pins: Vec<PinnedFile>,
}

/// A skill of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackSkill {
    pub name: String,
    pub description: String,
    /// Skills of this name in other places: what it replaces, or what replaces it.
    pub clash: Option<String>,
}

/// A command or an output style of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackExtra {
    /// It is an output style.
    pub style: bool,
    pub name: String,
    pub description: String,
    /// What a command asks the agent to run first.
    pub runs: Vec<String>,
}

/// A file of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackFile {
    pub path: String,
    pub bytes: u64,
    pub executable: bool,
    /// Its first line, of a script.
    pub first: String,
}

/// Something odd in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub path: String,
    /// From 1.
    pub line: usize,
    pub text: String,
    /// The pack cannot be installed with it.
    pub refused: bool,
}

impl Contents {
    /// Reads a pack. `others`: the skills of all other places. Blocks.
    ///
    /// # Errors
    /// A sentence, when a file cannot be read, or changes meanwhile.
    pub fn read(pack: &PackSource, others: &Sources<'_>) -> Result<Self, String> {
        let folder = &pack.folder;
        let pins = pin(folder)?;
        let mut contents = Self { bytes: pins.iter().map(|file| file.bytes).sum(), pins, ..Self::default() };
        for file in contents.pins.clone() {
            let bytes = content(folder, &file.path);
            contents.remark(&file.path, text_of(&bytes).as_deref());
            let entry = PackFile {
                first: first_line(&bytes),
                path: file.path,
                bytes: file.bytes,
                executable: file.executable,
            };
            if is_script(&entry.path, entry.executable, &entry.first) {
                contents.scripts.push(entry);
            } else {
                contents.others.push(PackFile { first: String::new(), ..entry });
            }
        }
        contents.read_skills(pack, others);
        if pin(folder)? != contents.pins {
            return Err("its files change at this moment".into());
        }
        Ok(contents)
    }

    /// The first thing that forbids to install it.
    pub fn refusal(&self) -> Option<String> {
        if let Some(remark) = self.remarks.iter().find(|remark| remark.refused) {
            return Some(format!("{}, line {}: {}", remark.path.escape_debug(), remark.line, remark.text));
        }
        if self.skills.is_empty() {
            return Some(match self.left_out.first() {
                Some((name, why)) => {
                    format!("none of its skills can be used; {}: {why}", name.escape_debug())
                }
                None => "there is no skill in it".into(),
            });
        }
        None
    }

    fn read_skills(&mut self, pack: &PackSource, others: &Sources<'_>) {
        let mut sources = others.clone();
        sources.packs.insert(position(others, pack), pack.clone());
        let (all, _) = Skills::load(&sources);
        self.read_extras(pack);
        let below = pack.folder.join(SKILLS);
        let ours = |file: &Path| file.starts_with(&below);
        let alone = Skills::load(&Sources { packs: vec![pack.clone()], ..Sources::default() }).0;
        let mut hidden: BTreeMap<&str, String> = BTreeMap::new();
        for skill in all.hidden().iter().filter(|skill| !ours(&skill.file)) {
            hidden.insert(&skill.name, place(skill));
        }
        let mut seen = Vec::new();
        for skill in all.iter().chain(all.hidden()).filter(|skill| ours(&skill.file)) {
            let clash = match all.get(&skill.name) {
                Some(winner) if !ours(&winner.file) => {
                    Some(format!("not used: {} has this name", place(winner)))
                }
                _ => hidden.get(skill.name.as_str()).map(|what| format!("replaces {what}")),
            };
            seen.push(skill.name.clone());
            let (name, description) = (skill.name.clone(), skill.description.clone());
            self.skills.push(PackSkill { name, description, clash });
        }
        self.skills.sort_by(|a, b| a.name.cmp(&b.name));
        let flaws = all.flaws().iter().filter(|flaw| flaw.skipped && !seen.contains(&flaw.skill));
        let mine = flaws.filter(|flaw| {
            below.join(&flaw.skill).is_dir()
                && (alone.get(&flaw.skill).is_none() || all.get(&flaw.skill).is_none())
        });
        self.left_out = mine.map(|flaw| (flaw.skill.clone(), flaw.problem.message.clone())).collect();
        self.left_out.dedup();
    }

    /// The commands and styles, which are used from their folders beside the skills.
    fn read_extras(&mut self, pack: &PackSource) {
        let (all, _) =
            Skills::load(&Sources { packs: vec![pack.clone()], built_in: true, ..Sources::default() });
        let commands = all.commands().filter(|command| command.from == Origin::Plugin);
        self.extras.extend(commands.map(|command| PackExtra {
            style: false,
            name: command.name.clone(),
            description: command.description.clone(),
            runs: command.runs(),
        }));
        let styles = all.styles().filter(|style| style.from == Origin::Plugin);
        self.extras.extend(styles.map(|style| PackExtra {
            style: true,
            name: style.name.clone(),
            description: style.description.clone(),
            runs: Vec::new(),
        }));
        self.others.retain(|file| {
            let extra = |extra: &PackExtra| {
                let folder = if extra.style { "styles" } else { "commands" };
                // The name of a command in a subfolder has `:` where its path has `/`.
                file.path == format!("{folder}/{}.md", extra.name.replace(':', "/"))
            };
            !self.extras.iter().any(extra)
        });
    }

    fn remark(&mut self, path: &str, text: Option<&str>) {
        let Some(text) = text else { return };
        let prose = Path::new(path).extension().is_some_and(|ending| ending == "md");
        // A byte order mark at the beginning hides nothing.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut refused = self.remarks.iter().filter(|remark| remark.refused).count();
        let (mut odd_lines, mut last) = (0, 0);
        for (at, line) in text.lines().enumerate() {
            let remark =
                |text: String, refused: bool| Remark { path: path.to_owned(), line: at + 1, text, refused };
            if refused < REFUSED
                && let Some(c) = line.chars().find(|c| is_invisible(*c))
            {
                let text = format!("invisible character U+{:04X}, which can hide instructions", u32::from(c));
                self.remarks.push(remark(text, true));
                refused += 1;
            }
            let lower = line.to_lowercase();
            let said = ODD.iter().find(|odd| says(&lower, odd));
            let said = said.map(|odd| format!("says \"{odd}\": {}", short(line)));
            let comment = (prose && line.contains("<!--"))
                .then(|| format!("a comment, which readers do not see: {}", short(line)));
            for text in said.into_iter().chain(comment) {
                odd_lines += 1;
                last = at + 1;
                if odd_lines <= REMARKS {
                    self.remarks.push(remark(text, false));
                }
            }
        }
        if odd_lines > REMARKS {
            let text = format!("the last of {} more odd places in this file", odd_lines - REMARKS);
            self.remarks.push(Remark { path: path.to_owned(), line: last, text, refused: false });
        }
    }
}

/// Whether a line in lower case has this wording. The name of a program behind a pipe must be a whole word: in a table,
/// `| share` is a cell.
fn says(lower: &str, odd: &str) -> bool {
    let goes_on = |behind: &str| behind.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
    lower.split(odd).skip(1).any(|behind| !odd.starts_with('|') || !goes_on(behind))
}

fn short(line: &str) -> String {
    line.trim().chars().take(100).collect()
}

/// The position of a pack among the others. They are in the order of their names, behind the plugins. One without a name is the
/// last.
fn position(others: &Sources<'_>, pack: &PackSource) -> usize {
    // A plugin has no name, which is less than any.
    let later = |other: &PackSource| pack.name.is_some() && other.name > pack.name;
    others.packs.iter().position(later).unwrap_or(others.packs.len())
}

fn place(skill: &Skill) -> String {
    match (skill.from, &skill.pack) {
        (_, Some(pack)) => format!("the one of the pack {pack}"),
        (Origin::BuiltIn, _) => "a built-in skill".into(),
        (Origin::Plugin, _) => "the one of a plugin".into(),
        (Origin::User, _) => "your own skill".into(),
        (Origin::Project, _) => "the skill of this project".into(),
    }
}

/// Whether a file of a pack is a program. `first`: its first line.
pub(super) fn is_script(path: &str, executable: bool, first: &str) -> bool {
    let path = Path::new(path);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    executable
        || first.starts_with("#!")
        || PROGRAMS.contains(&ending.as_str())
        || path.components().rev().skip(1).any(|part| part.as_os_str() == "scripts")
}

/// Characters that are not seen and are not part of an emoji.
fn is_invisible(c: char) -> bool {
    is_hidden(c) || (c.is_control() && !matches!(c, '\t' | '\r'))
}

/// The content of a file, within the limit of a pack. Empty where it cannot be read, or is no regular file.
pub(super) fn content(folder: &Path, path: &str) -> Vec<u8> {
    beneath::read_below(folder, Path::new(path), LIMITS.bytes).unwrap_or_default()
}

/// The first line of a script or of a text, shortened; empty for other content.
pub(super) fn first_line(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(FIRST)];
    if is_binary(head) && !head.starts_with(b"#!") {
        return String::new();
    }
    String::from_utf8_lossy(head).lines().next().unwrap_or_default().chars().take(80).collect()
}

/// A file as the text that a tool can show a model; `None`: no tool shows it. Bytes that are not UTF-8 do not hide the rest.
fn text_of(bytes: &[u8]) -> Option<String> {
    // `read_file` and mentions look at the beginning of a file, and find its encoding.
    let read = tiller_tool::files::decoded(bytes);
    // `skill_view` looks at all of it, and reads it as UTF-8.
    let viewed = (!is_binary(bytes)).then(|| String::from_utf8_lossy(bytes));
    let viewed = viewed.map(|text| text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned());
    let (Some(read), Some(viewed)) = (&read, &viewed) else { return read.or(viewed) };
    // Without the control characters between those of UTF-16.
    let narrow = viewed.replace(|c: char| c.is_control() && c != '\n', "");
    Some(if viewed != read && narrow.contains(is_hidden) {
        format!("{read}\n{narrow}")
    } else {
        read.clone()
    })
}

/// All files below a folder with their hashes, by path.
///
/// # Errors
/// A sentence: a link, too many files, or one that cannot be read.
pub(super) fn pin(folder: &Path) -> Result<Vec<PinnedFile>, String> {
    let mut files = Vec::new();
    walk(folder, "", 0, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(root: &Path, inside: &str, depth: usize, files: &mut Vec<PinnedFile>) -> Result<(), String> {
    let at = root.join(inside);
    let fail = |e: std::io::Error| {
        format!("{} cannot be read: {e}", if inside.is_empty() { "its folder" } else { inside })
    };
    if depth > LIMITS.depth {
        return Err(format!("{} is nested too deep", inside.escape_debug()));
    }
    for entry in std::fs::read_dir(&at).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let name = name.to_str().ok_or("a name is not UTF-8")?;
        let path = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            walk(root, &path, depth + 1, files)?;
            continue;
        }
        if !kind.is_file() {
            return Err(format!("{} is a link or a special file", path.escape_debug()));
        }
        if files.len() >= LIMITS.entries {
            return Err(format!("it has more than {} files", LIMITS.entries));
        }
        let file = beneath::file_below(root, Path::new(&path))
            .map_err(|e| format!("{} cannot be read: {e}", path.escape_debug()))?;
        let meta = file.metadata().map_err(fail)?;
        if meta.len() > LIMITS.bytes {
            return Err(format!("{} is too large", path.escape_debug()));
        }
        let mut hasher = blake3::Hasher::new();
        let bytes = std::io::copy(&mut file.take(LIMITS.bytes), &mut hasher).map_err(fail)?;
        let executable = meta.permissions().mode() & 0o100 != 0;
        files.push(PinnedFile { path, hash: hasher.finalize().to_hex().to_string(), bytes, executable });
    }
    Ok(())
}
