//! The files that a command runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tiller_shell::{Part, Redirect, RedirectKind, Role, Word, base_name, changes_programs};

use super::code::Language;
use super::programs::{self, Runs};
use super::words::{Places, prepared};
use crate::hook_files;
use crate::trust::detail::one_line;

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
    /// It may build what it runs.
    pub(super) builds: bool,
    /// It compiles, and runs what the folder has for that: scripts of a build, macros.
    pub(super) compiles: bool,
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
    // The variables of a server's words are those of the process that starts it.
    if line.contains("${") || below.contains("${") {
        search.open("its words hold variables");
    }
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
    /// Scripts of a shell that change the folder.
    moving: BTreeSet<PathBuf>,
}

impl<'a> Search<'a> {
    fn new(folder: &'a Path, unknown_runs: bool) -> Self {
        Self {
            folder,
            found: Found::default(),
            unknown_runs,
            functions: BTreeSet::new(),
            read: BTreeSet::new(),
            moving: BTreeSet::new(),
        }
    }

    fn places(&self, bases: Vec<PathBuf>) -> Places {
        Places { project: self.folder.to_owned(), bases, script: Vec::new() }
    }

    /// Anything in the folder could run.
    fn open(&mut self, why: impl Into<String>) {
        self.found.builds = true;
        self.open_scripts(why);
    }

    /// The same for what builds nothing that it runs.
    fn open_scripts(&mut self, why: impl Into<String>) {
        self.found.places.insert(self.folder.to_owned());
        self.found.why.get_or_insert_with(|| why.into());
    }

    /// A command line, or the text of a script. True: it changes the folder.
    fn text(&mut self, text: &str, places: &Places) -> bool {
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
        !analysis.folders.is_empty()
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
        if path && !guess && files.is_empty() {
            self.open(format!("it runs {}, which is not found", program.text));
        }
        let is_system = path && files.iter().any(|file| is_system(file)) || !path && !guess;
        // A program that chooses what it runs does so wherever it lies.
        let chooses = || path && matches!(programs::of(part), Runs::Open(_) | Runs::Package(_));
        if (is_system || chooses()) && !self.functions.contains(&part.base()) {
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
            Runs::Shell => self.shell(part, scope),
            Runs::Language => self.language(part, scope),
            Runs::Open(why) if programs::only_checks(part) => {
                self.found.compiles |= programs::compiles(part);
                self.open_scripts(why);
            }
            Runs::Open(why) => self.open(why),
            Runs::Package(word) => self.package(word, scope),
            Runs::Unknown if self.unknown_runs => {
                self.open(format!("it runs {}, and it is not known what that runs", part.base()));
            }
            Runs::Unknown => {}
        }
    }

    /// A shell with a script, or a command that takes one in.
    fn shell(&mut self, part: &Part, scope: &Scope) {
        let args = part.args();
        let is_option = |word: &Word| word.text.starts_with(['-', '+']);
        let takes_value = |word: &Word| {
            let text = word.text.as_str();
            matches!(text, "--rcfile" | "--init-file")
                || is_option(word) && !text.starts_with("--") && text.ends_with(['o', 'O'])
        };
        let is_operand = |at: &usize| {
            !is_option(&args[*at]) && !at.checked_sub(1).is_some_and(|at| takes_value(&args[at]))
        };
        let Some(at) = (0..args.len()).find(is_operand) else { return };
        let is_code =
            |word: &Word| is_option(word) && !word.text.starts_with("--") && word.text.contains('c');
        if !args[..at].iter().any(is_code) {
            self.operand(part, &args[at], Language::Shell, scope);
        }
        let is_sourced = matches!(part.base().as_str(), "." | "source");
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        if is_sourced
            && scope.places.files(&args[at]).into_iter().any(|path| self.moving.contains(&real(path)))
        {
            self.open(format!("it takes in {}, which changes the folder", args[at].text));
        }
    }

    /// A package, which lies in the folder or comes from elsewhere.
    fn package(&mut self, word: &Word, scope: &Scope) {
        let name = programs::package(&word.text);
        for place in ["node_modules/.bin".to_owned(), format!("node_modules/{name}")] {
            let place = self.folder.join(place);
            let real = place.canonicalize().ok().filter(|real| real.starts_with(self.folder));
            self.found.places.insert(real.unwrap_or(place));
        }
        self.named(&Word::fixed(".npmrc"), &scope.places, &[]);
        self.found.why.get_or_insert_with(|| format!("it runs {}, which may lie in node_modules", word.text));
    }

    /// The word of an interpreter that names its script.
    fn operand(&mut self, part: &Part, word: &Word, language: Language, scope: &Scope) {
        let base = part.base();
        if word.dynamic || word.tilde {
            self.open(format!("it runs {base} with a script that is known only when it runs"));
        } else if scope.places.files(word).is_empty() {
            self.open(format!("it runs {base} with {}, which is no file", word.text));
        }
        self.run(word, &scope.places, Some(language));
    }

    /// An interpreter of another language than a shell's, with a script or its input.
    fn language(&mut self, part: &Part, scope: &Scope) {
        let language = Language::of_program(&part.base());
        let operands: Vec<&Word> = part.args().iter().filter(|word| !word.text.starts_with('-')).collect();
        if let Some(first) = operands.first() {
            self.operand(part, first, language, scope);
            // The first may be the value of an option, or the name of a subcommand.
            let script = operands.iter().find(|word| !scope.places.files(word).is_empty());
            return script.into_iter().for_each(|word| self.run(word, &scope.places, Some(language)));
        }
        let inputs: Vec<&Redirect> = part.redirects.iter().filter(|r| r.kind == RedirectKind::Read).collect();
        inputs.iter().for_each(|input| self.redirect(input, scope, Some(language)));
        let is_asked = part.args().iter().any(|word| matches!(word.text.as_str(), "-V" | "--version" | "-h"));
        if inputs.is_empty() && !is_asked {
            self.open(format!("it runs {} with code from its input", part.base()));
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
            if self.text(&text, &Places { script, ..places.clone() }) {
                self.moving.insert(real);
            }
            return;
        }
        let name = real.strip_prefix(self.folder).unwrap_or(&real).display().to_string();
        let is_installed = |path: &Path| {
            path.parent().and_then(Path::parent).is_some_and(|top| top.join("pyvenv.cfg").is_file())
        };
        if is_installed(path) || is_installed(&real) {
            return self.open(format!("it runs {name}, which loads installed packages"));
        }
        match language.reaches_out(&text).map(|sign| one_line(&sign)) {
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
