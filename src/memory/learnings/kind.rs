//! The kind of a call: what must agree for a later call to be like it.

use serde_json::Value;
use tiller_protocol::{FailureKind, RuleArgument};
use tiller_shell::{Part, Role, analyse};
use tiller_tool::Tool;

use super::error_line::{error_line, normalised};
use super::words::one_line;

/// Most subjects of one command line.
const SUBJECTS: usize = 8;
/// Bytes of a subject.
pub(super) const SUBJECT: usize = 200;
/// Longest command line that is taken apart, in bytes.
const COMMAND: usize = 8_000;

/// Programs that say nothing about what a command line is for.
const BESIDE: &[&str] = &[
    "cd", "pushd", "popd", "export", "set", "unset", "echo", "printf", "true", "false", ":", "pwd", "sleep",
    "source", ".", "test", "[", "head", "tail", "cat", "tee", "grep", "sed", "awk", "sort", "wc", "exit",
    "date", "which", "type", "ls",
];

/// Programs whose first argument says what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "git",
    "cargo",
    "npm",
    "yarn",
    "pnpm",
    "pip",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "go",
    "gh",
    "glab",
    "apt",
    "apt-get",
    "brew",
    "systemctl",
    "terraform",
    "tofu",
    "aws",
    "gcloud",
    "az",
    "poetry",
    "uv",
    "rustup",
    "make",
    "just",
    "dotnet",
    "mvn",
    "gradle",
    "gradlew",
    "bundle",
    "rails",
    "mix",
    "conda",
    "npx",
    "dnf",
    "pacman",
    "snap",
    "ip",
    "deno",
    "bun",
    "composer",
    "artisan",
    "flyctl",
    "heroku",
    "vercel",
    "ansible",
    "vagrant",
    "openssl",
    "svn",
    "hg",
    "jj",
    "zig",
    "swift",
    "flutter",
    "dart",
    "stack",
    "cabal",
    "opam",
    "nix",
    "pipenv",
    "hatch",
    "tox",
    "nox",
    "django-admin",
    "xc",
];

/// Subcommands whose next argument belongs to them.
const TWO_WORDS: &[&str] =
    &["run", "compose", "s3", "compute", "container", "image", "remote", "stash", "submodule", "workspace"];

/// Options that have a value, before a subcommand.
const WITH_VALUE: &[&str] = &[
    "-C",
    "-c",
    "-n",
    "-f",
    "-H",
    "-o",
    "--namespace",
    "--context",
    "--manifest-path",
    "--project",
    "--prefix",
    "--file",
    "--cwd",
    "--git-dir",
    "--work-tree",
    "--profile",
    "--region",
];

/// What a call is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallKind {
    pub tool: String,
    /// Programs with subcommands, a path, a host; empty: the tool alone tells its calls apart.
    pub subjects: Vec<String>,
    /// The command line, or the arguments as one line.
    pub text: String,
}

/// The kind of a call of `tool` with these arguments.
pub fn kind_of(tool: &dyn Tool, args: &Value) -> CallKind {
    let info = tool.info();
    let target = tool.target(args);
    match info.rule {
        RuleArgument::Command => {
            let line = args.get("command").and_then(Value::as_str).unwrap_or(&target);
            CallKind { tool: info.name.into(), subjects: command_subjects(line), text: one_line(line, 600) }
        }
        RuleArgument::ReadPath | RuleArgument::WritePath | RuleArgument::EditPath => {
            let subjects = if target.is_empty() { Vec::new() } else { vec![one_line(&target, SUBJECT)] };
            CallKind { tool: info.name.into(), subjects, text: short_args(args) }
        }
        RuleArgument::Address => {
            let host = host_of(&target);
            CallKind { tool: info.name.into(), subjects: host.into_iter().collect(), text: short_args(args) }
        }
        RuleArgument::Text => {
            // Tools of MCP servers are called by one tool that names them.
            let inner = ["server", "tool", "name", "action"]
                .iter()
                .filter_map(|field| args.get(*field).and_then(Value::as_str))
                .collect::<Vec<_>>()
                .join(" ");
            let subjects = if inner.is_empty() { Vec::new() } else { vec![one_line(&inner, SUBJECT)] };
            CallKind { tool: info.name.into(), subjects, text: short_args(args) }
        }
    }
}

/// Arguments with long texts cut.
fn short_args(args: &Value) -> String {
    let mut args = args.clone();
    if let Some(fields) = args.as_object_mut() {
        for value in fields.values_mut() {
            if let Some(text) = value.as_str().filter(|t| t.len() > 120) {
                *value = Value::String(one_line(text, 120));
            }
        }
    }
    one_line(&args.to_string(), 600)
}

fn host_of(address: &str) -> Option<String> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?;
    (!host.is_empty()).then(|| one_line(&host.to_lowercase(), SUBJECT))
}

/// Programs with subcommands of a command line, in their order.
pub fn command_subjects(line: &str) -> Vec<String> {
    let line = &line[..line.floor_char_boundary(COMMAND)];
    let analysis = analyse(line);
    let mut subjects: Vec<String> = Vec::new();
    let mut beside: Vec<String> = Vec::new();
    for part in analysis.parts.iter().filter(|p| p.role == Role::Command) {
        let Some(subject) = subject(part) else { continue };
        let first = subject.split(' ').next().unwrap_or_default();
        let list = if BESIDE.contains(&first) { &mut beside } else { &mut subjects };
        if !list.contains(&subject) && list.len() < SUBJECTS {
            list.push(subject);
        }
    }
    if subjects.is_empty() { beside } else { subjects }
}

fn subject(part: &Part) -> Option<String> {
    let base = part.base();
    if base.is_empty() {
        return None;
    }
    let program = program(&base);
    let args: Vec<&str> = part.args().iter().map(|w| w.text.as_str()).collect();
    if program == "python" || program == "node" || program == "ruby" || program == "perl" {
        if let Some(at) = args.iter().position(|a| *a == "-m")
            && let Some(module) = args.get(at + 1)
        {
            return Some(one_line(&format!("{program} -m {module}"), SUBJECT));
        }
        return Some(program);
    }
    if !WITH_SUBCOMMANDS.contains(&program.as_str()) {
        return Some(one_line(&program, SUBJECT));
    }
    let mut words = vec![program];
    let mut skip = false;
    for arg in args {
        if std::mem::take(&mut skip) {
            continue;
        }
        if arg.starts_with('-') || arg.starts_with('+') {
            skip = words.len() == 1 && WITH_VALUE.contains(&arg);
            if words.len() > 1 {
                break;
            }
            continue;
        }
        let plain = arg.len() <= 40
            && arg.starts_with(|c: char| c.is_ascii_alphabetic())
            && arg.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'));
        if !plain {
            break;
        }
        words.push(arg.to_owned());
        let two = words.len() == 2 && TWO_WORDS.contains(&arg);
        if !two {
            break;
        }
    }
    Some(one_line(&words.join(" "), SUBJECT))
}

/// Without the version at its end: `python3.11`, `pip3`.
fn program(base: &str) -> String {
    let name = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match name {
        "python" | "pip" | "node" | "ruby" | "perl" => name.to_owned(),
        _ => base.to_owned(),
    }
}

/// The kind of a failure: `subject` is one of those of the call, `output` the result.
pub fn failure_kind(tool: &str, subject: &str, output: &str) -> FailureKind {
    let (error_type, details) = normalised(&error_line(output));
    FailureKind { tool: tool.into(), subject: subject.into(), error_type, details }
}

/// The line of an output that says why it failed, as it was printed.
pub(super) fn why(output: &str) -> String {
    error_line(output)
}
