//! What a call comes to, found once and compared with any number of rules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tiller_protocol::Access;
use tiller_shell::analyse;

use super::{Policy, Request, command, folders};
use crate::paths::Roots;
use crate::paths::touched::{self, NamedPaths};
use crate::rules::{Certainty, PathUse, Rule, Spellings, Subject, names};

/// What a call comes to: commands, paths, addresses.
#[derive(Clone, Debug)]
pub struct CallReach {
    agent: String,
    tool: String,
    roots: Roots,
    reached: Vec<Reached>,
}

#[derive(Clone, Debug)]
enum Reached {
    /// A command line: each form of it that deny rules are compared with, and the paths that it names.
    /// `unclear`: it may run another one that is known only at run time.
    Command {
        forms: Box<Spellings>,
        unclear: bool,
        paths: NamedPaths,
    },
    Path(PathBuf, PathUse),
    Net {
        url: String,
        host: String,
    },
    /// `tool`: the name that rules have for what is called.
    Other {
        tool: String,
        text: String,
    },
}

/// What a call comes to, by its words and as the files are now: to be found before the call changes them.
pub fn reach(policy: &Policy, request: &Request<'_>) -> CallReach {
    let mut reached: Vec<Reached> = request.access.iter().flat_map(|a| one(policy, request, a)).collect();
    if reached.is_empty() {
        reached.push(other(request.tool, request.raw));
    }
    let (agent, tool) = (request.agent.to_owned(), request.tool.to_owned());
    CallReach { agent, tool, roots: policy.roots.clone(), reached }
}

fn other(tool: &str, text: &str) -> Reached {
    Reached::Other { tool: tool.to_owned(), text: text.to_owned() }
}

fn one(policy: &Policy, request: &Request<'_>, access: &Access) -> Vec<Reached> {
    let own = |text: &str| vec![other(request.tool, text)];
    match access {
        Access::Read { path, .. } => vec![Reached::Path(path.into(), PathUse::Read)],
        Access::Write { path, .. } => vec![Reached::Path(path.into(), PathUse::Write)],
        Access::Run { command, folder, .. } => {
            let analysis = analyse(command);
            let places = folders(&policy.roots, &analysis, Path::new(folder));
            let forms = Box::new(command::readings(&policy.roots, &analysis, &places));
            let unclear = analysis.unclear_but_words().is_some();
            vec![Reached::Command {
                forms,
                unclear,
                paths: touched::reached(&policy.roots, &analysis, &places),
            }]
        }
        Access::Net { url, host, .. } => {
            vec![Reached::Net { url: url.clone(), host: host.to_ascii_lowercase() }]
        }
        Access::Mcp { server, tool, arguments } => {
            vec![other(&format!("{}{server}:{tool}", names::MCP), arguments), other(request.tool, arguments)]
        }
        Access::Process { what } => own(what),
        Access::Input { process, text, .. } => own(&format!("write to {process}: {text}")),
        Access::Script { code } => own(code),
        Access::Store { path, .. } => {
            let file = path.as_ref().map(|path| Reached::Path(path.into(), PathUse::Write));
            own(request.raw).into_iter().chain(file).collect()
        }
        Access::Free => own(request.raw),
    }
}

impl CallReach {
    /// Returns true if the rule, which must be one that denies or asks, is about the call, perhaps at least. A rule about a
    /// path is about a command that names the path in the same use.
    pub fn meets(&self, rule: &Rule) -> bool {
        let is_about = |tool: &str, subject: &Subject<'_>| {
            rule.certainty(&self.agent, tool, subject, &self.roots) > Certainty::No
        };
        self.reached.iter().any(|reached| match reached {
            Reached::Command { forms, paths, .. } => {
                let names_path = |(how, path): &(PathUse, PathBuf)| {
                    rule.narrows_paths(*how) && is_about(how.tool(), &Subject::Path(path, *how))
                };
                is_about(&self.tool, &Subject::Command(forms)) || paths.iter().any(names_path)
            }
            Reached::Path(path, how) => is_about(&self.tool, &Subject::Path(path, *how)),
            Reached::Net { url, host } => is_about(&self.tool, &Subject::Net { url, host }),
            Reached::Other { tool, text } => is_about(tool, &Subject::Other(text)),
        })
    }

    /// As [`Self::meets`], and for a command of which it is not known what it runs.
    pub fn may_meet(&self, rule: &Rule) -> bool {
        let unclear = |reached: &Reached| matches!(reached, Reached::Command { unclear: true, .. });
        self.meets(rule) || rule.is_for_tool(&self.tool) && self.reached.iter().any(unclear)
    }

    /// Each text of its commands that deny rules are compared with.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.of_commands().flat_map(|(forms, _)| &forms.texts).map(String::as_str)
    }

    /// The paths that its commands name, absolute, as they are spelled and as their links lead.
    pub fn command_paths(&self) -> BTreeSet<String> {
        let paths = self.of_commands().flat_map(|(_, paths)| paths);
        let both = |(_, path): &(PathUse, PathBuf)| [path.clone(), self.roots.real(path)];
        paths.flat_map(both).map(|path| path.to_string_lossy().into_owned()).collect()
    }

    fn of_commands(&self) -> impl Iterator<Item = (&Spellings, &NamedPaths)> {
        self.reached.iter().filter_map(|reached| match reached {
            Reached::Command { forms, paths, .. } => Some((&**forms, paths)),
            _ => None,
        })
    }
}

#[cfg(test)]
#[path = "call_reach_tests.rs"]
mod tests;
