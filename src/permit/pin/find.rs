//! The files that a command runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tiller_shell::{Part, Redirect, RedirectKind, Role, Word, base_name, changes_programs};

use super::code::Language;
use super::programs::{self, Runs};
use super::words::{Places, prepared};
use crate::hook_files;

/// Largest script that is read.
const SCRIPT: u64 = 128 << 10;
/// Most scripts of one command.
const SCRIPTS: usize = 30;
/// Folders of the system: who can write there need not wait for a hook.
const SYSTEM: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/nix", "/proc", "/dev", "/sys", "/System", "/Library",
];

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Real paths; true: it is run.
    pub(super) files: BTreeMap<PathBuf, bool>,
    /// Folders, in which anything could run; real paths.
    pub(super) places: BTreeSet<PathBuf>,
    /// Why there are places: the first reason.
    pub(super) why: Option<String>,
}

/// Those of a command line for the shell.
pub(super) fn command(folder: &Path, text: &str) -> Found {
    let mut search = Search::new(folder, true);
    search.text(text, &search.places(vec![folder.to_owned()]));
    search.found
}

/// Those of a program that a line of quoted words starts, without a shell.
pub(super) fn program(folder: &Path, below: &str, line: &str, env: &[(String, String)]) -> Found {
    let mut search = Search::new(folder, false);
    let places = search.places(vec![folder.join(below)]);
    // Of the words only variables are replaced.
    search.text(line, &places);
    for (name, value) in env {
        if changes_programs(name) {
            search.open(format!("it sets {name}"));
        }
        let words = value.split([' ', ':', '=']).map(Word::fixed);
        words.for_each(|word| search.named(&word, &places, &[]));
    }
    search.found
}

struct Search<'a> {
    folder: &'a Path,
    found: Found,
    /// Programs that are not known may run files of the folder.
    unknown_runs: bool,
    /// Names of functions that its scripts define.
    functions: BTreeSet<String>,
    /// Scripts that were read, each with its language.
    read: BTreeSet<(PathBuf, Language)>,
}

impl<'a> Search<'a> {
    fn new(folder: &'a Path, unknown_runs: bool) -> Self {
        Self {
            folder,
            found: Found::default(),
            unknown_runs,
            functions: BTreeSet::new(),
            read: BTreeSet::new(),
        }
    }

    fn places(&self, bases: Vec<PathBuf>) -> Places {
        Places { project: self.folder.to_owned(), bases, script: Vec::new() }
    }

    /// Anything in the folder could run.
    fn open(&mut self, why: impl Into<String>) {
        self.found.places.insert(self.folder.to_owned());
        self.found.why.get_or_insert_with(|| why.into());
    }

    /// A command line, or the text of a script.
    fn text(&mut self, text: &str, places: &Places) {
        let text = prepared(text, !places.script.is_empty());
        let analysis = tiller_shell::analyse(&text);
        let places = places.clone().with_folders(&analysis.folders);
        if analysis.folders.contains(&None) {
            self.open("it changes to a folder that is known only when it runs");
        }
        if let Some(why) = &analysis.unclear {
            self.open(format!("it is not clear what it runs: {why}"));
        }
        self.functions.extend(functions(&text));
        let scope = Scope { written: hook_files::written(&text), places };
        for word in &analysis.loops {
            self.run(word, &scope.places, None);
        }
        for redirect in &analysis.redirects {
            self.redirect(redirect, &scope, None);
        }
        for part in &analysis.parts {
            self.part(part, &scope);
        }
    }

    fn part(&mut self, part: &Part, scope: &Scope) {
        for (name, value) in &part.env {
            if changes_programs(name) {
                self.open(format!("it sets {name}"));
            }
            self.named(value, &scope.places, &scope.written);
        }
        let Some(program) = part.argv.first() else { return };
        // A pattern may also stand for the program, and a variable of a loop for each of its words, which are run.
        if (program.dynamic || program.tilde) && program.each.is_none() {
            self.open("it runs a program whose name is known only when it runs");
            return;
        }
        let path = program.text.contains('/') || program.glob;
        let guess = part.role == Role::Guess;
        let files = if path || guess { scope.places.files(program) } else { Vec::new() };
        for file in &files {
            self.script(file, None, &scope.places);
        }
        let is_system = path && files.iter().any(|file| is_system(file)) || !path && !guess;
        if is_system && !self.functions.contains(&part.base()) {
            self.known(part, scope);
        } else if path && is_interpreter_in_folder(part) {
            self.open("it runs an interpreter of the folder");
        }
        for word in part.args() {
            self.named(word, &scope.places, &scope.written);
        }
        let shell = matches!(programs::of(part), Runs::Shell).then_some(Language::Shell);
        for redirect in &part.redirects {
            self.redirect(redirect, scope, shell);
        }
    }

    /// A program of the system: by what it runs.
    fn known(&mut self, part: &Part, scope: &Scope) {
        match programs::of(part) {
            Runs::Nothing => {}
            Runs::Shell => {
                let operand = part.args().iter().find(|word| !word.text.starts_with('-'));
                let code =
                    part.args().iter().any(|word| word.text.starts_with('-') && word.text.contains('c'));
                match operand.filter(|_| !code) {
                    Some(word) if word.dynamic && word.each.is_none() || word.tilde => {
                        self.open(format!(
                            "it runs {} with a script that is known only when it runs",
                            part.base()
                        ));
                    }
                    Some(word) => self.run(word, &scope.places, Some(Language::Shell)),
                    None => {}
                }
            }
            Runs::Language => self.language(part, scope),
            Runs::Open(why) => self.open(why),
            Runs::Package(word) => {
                let name = word.text.rsplit_once('@').map_or(word.text.as_str(), |(name, _)| name);
                let name = if name.is_empty() { &word.text } else { name };
                let places = ["node_modules/.bin".to_owned(), format!("node_modules/{name}")];
                self.found.places.extend(places.iter().map(|place| self.folder.join(place)));
                self.named(&Word::fixed(".npmrc"), &scope.places, &[]);
                self.found
                    .why
                    .get_or_insert_with(|| format!("it runs {}, which may lie in node_modules", word.text));
            }
            Runs::Unknown if self.unknown_runs => {
                self.open(format!("it runs {}, and it is not known what that runs", part.base()));
            }
            Runs::Unknown => {}
        }
    }

    /// An interpreter of another language than a shell's, with a script or its input.
    fn language(&mut self, part: &Part, scope: &Scope) {
        let language = Language::of_program(&part.base());
        let operands: Vec<&Word> = part.args().iter().filter(|word| !word.text.starts_with('-')).collect();
        if operands.first().is_some_and(|word| word.dynamic && word.each.is_none() || word.tilde) {
            self.open(format!("it runs {} with a script that is known only when it runs", part.base()));
        }
        // The first may be the value of an option.
        let script = operands.iter().find(|word| !scope.places.files(word).is_empty());
        if let Some(word) = script {
            return self.run(word, &scope.places, Some(language));
        }
        let folders = operands.iter().flat_map(|word| scope.places.paths(word)).filter(|path| path.is_dir());
        if folders.count() > 0 {
            self.open(format!("it runs {} with a folder", part.base()));
        } else if operands.is_empty() {
            let inputs: Vec<&Redirect> =
                part.redirects.iter().filter(|r| r.kind == RedirectKind::Read).collect();
            inputs.iter().for_each(|input| self.redirect(input, scope, Some(language)));
            let is_asked =
                part.args().iter().any(|word| matches!(word.text.as_str(), "-V" | "--version" | "-h"));
            if inputs.is_empty() && !is_asked {
                self.open(format!("it runs {} with code from its input", part.base()));
            }
        }
    }

    /// A file that is read; `language`: as a script.
    fn redirect(&mut self, redirect: &Redirect, scope: &Scope, language: Option<Language>) {
        if redirect.kind != RedirectKind::Read {
            return;
        }
        match language {
            Some(language) => self.run(&redirect.target, &scope.places, Some(language)),
            None => self.named(&redirect.target, &scope.places, &scope.written),
        }
    }

    /// A word that names what is run.
    fn run(&mut self, word: &Word, places: &Places, language: Option<Language>) {
        for file in places.files(word) {
            self.script(&file, language, places);
        }
    }

    /// A word of a command that may name a file; those of scripts name what they work on. `written`: names of files that the
    /// command writes.
    fn named(&mut self, word: &Word, places: &Places, written: &[String]) {
        if word.dynamic || word.glob || word.text.is_empty() || !places.script.is_empty() {
            return;
        }
        let value = word.text.split_once('=').map(|(_, value)| value);
        for text in [word.text.as_str()].into_iter().chain(value) {
            for path in places.of_text(text.trim_start_matches('@')) {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                let is_log = path.extension().is_some_and(|ending| ending == "log");
                let is_written = is_log || name.is_none_or(|name| written.contains(&name));
                if !is_written && path.starts_with(self.folder) && path.is_file() {
                    self.pin(&path, false);
                }
            }
        }
    }

    /// Keeps a file with its content; `None`: it is one of the system.
    fn pin(&mut self, path: &Path, runs: bool) -> Option<PathBuf> {
        let real = path.canonicalize().ok()?;
        if is_system(&real) && !real.starts_with(self.folder) {
            return None;
        }
        *self.found.files.entry(real.clone()).or_default() |= runs;
        Some(real)
    }

    /// A file that is run, by itself or by an interpreter of `language`.
    fn script(&mut self, path: &Path, language: Option<Language>, places: &Places) {
        let Some(real) = self.pin(path, true) else { return };
        let Some(text) = self.script_text(&real) else { return };
        let ending = real.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let found = || Language::of_first_line(&text).or_else(|| Language::of_ending(ending));
        let language = language.or_else(found).unwrap_or(Language::Shell);
        if !self.read.insert((real.clone(), language)) {
            return;
        }
        if self.read.len() > SCRIPTS {
            return self.open(format!("it runs more than {SCRIPTS} scripts"));
        }
        let folders = [path, real.as_path()].into_iter().filter_map(Path::parent).map(Path::to_owned);
        if language == Language::Shell {
            let script: Vec<PathBuf> = folders.collect();
            return self.text(&text, &Places { script, ..places.clone() });
        }
        let name = real.strip_prefix(self.folder).unwrap_or(&real).display().to_string();
        match language.reaches_out(&text) {
            Some(sign) => self.open(format!("it runs {name}, which may start or load anything ({sign})")),
            None => {
                // What it loads lies beside it.
                self.found.places.extend(folders.filter_map(|folder| folder.canonicalize().ok()));
                self.found
                    .why
                    .get_or_insert_with(|| format!("it runs {name}, which loads what lies beside it"));
            }
        }
    }

    /// The text of a script; `None`: it is a binary.
    fn script_text(&mut self, real: &Path) -> Option<String> {
        match tiller_fs::beneath::read(real, SCRIPT + 1) {
            Ok(bytes) if bytes.iter().take(1024).any(|byte| *byte == 0) => None,
            Ok(bytes) if bytes.len() as u64 <= SCRIPT => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => {
                self.open(format!("it runs {}, which cannot be read or is too long", real.display()));
                None
            }
        }
    }
}

/// Facts that hold for all commands of a text.
struct Scope {
    places: Places,
    /// Names of files that it writes.
    written: Vec<String>,
}

/// The functions that a script defines.
fn functions(text: &str) -> Vec<String> {
    let named = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("function ").unwrap_or(line);
        let (name, _) = line.split_once('(').filter(|(_, rest)| rest.trim_start().starts_with(')'))?;
        let name = name.trim();
        (!name.is_empty() && !name.contains(char::is_whitespace)).then(|| name.to_owned())
    };
    text.split(['\n', ';']).filter_map(named).collect()
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// An interpreter that lies in the folder loads modules from there.
fn is_interpreter_in_folder(part: &Part) -> bool {
    let base = base_name(part.program());
    tiller_shell::interpreter(&base) || tiller_shell::is_shell(&base)
}
