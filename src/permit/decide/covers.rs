//! Whether a call is among those that a list of patterns names: for lists that only narrow.

use std::path::Path;

use tiller_protocol::{Access, Profile};

use super::{Policy, Request, Verdict, decide_in};
use crate::rules::{PathUse, Rule, RuleSet, Subject, names};
use crate::surroundings::ShellState;

/// Whether each thing that the call does is covered by a pattern of `list` (`allow` rules). A pattern without brackets covers
/// every use of its tool; of a command, each part must be covered or only read. This permits nothing: the other rules hold
/// as well.
pub fn covers(policy: &Policy, request: &Request<'_>, shell: Option<&ShellState>, list: &[Rule]) -> bool {
    if list.iter().any(|rule| rule.is_whole() && rule.is_for_tool(request.tool)) {
        return true;
    }
    !request.access.is_empty()
        && request.access.iter().all(|access| one(policy, request, access, shell, list))
}

fn one(
    policy: &Policy,
    request: &Request<'_>,
    access: &Access,
    shell: Option<&ShellState>,
    list: &[Rule],
) -> bool {
    let any = |tool: &str, subject: &Subject<'_>| {
        list.iter()
            .any(|rule| rule.is_for_tool(tool) && rule.matches(request.agent, tool, subject, &policy.roots))
    };
    match access {
        Access::Read { path, .. } => any(request.tool, &Subject::Path(Path::new(path), PathUse::Read)),
        Access::Write { path, .. } => any(request.tool, &Subject::Path(Path::new(path), PathUse::Write)),
        Access::Net { url, host, .. } => {
            let host = host.to_ascii_lowercase();
            any(request.tool, &Subject::Net { url, host: &host })
        }
        Access::Mcp { server, tool, arguments } => {
            any(&format!("{}{server}:{tool}", names::MCP), &Subject::Other(arguments))
        }
        Access::Run { .. } => {
            let own: Vec<Rule> = list.iter().filter(|rule| rule.is_for_tool(request.tool)).cloned().collect();
            if own.is_empty() {
                return false;
            }
            let mut alone = Policy { around: None, ..policy.clone() };
            alone.rules = RuleSet::default();
            alone.rules.add(own, true);
            let request = Request { profile: Profile::Ask, access: std::slice::from_ref(access), ..*request };
            matches!(decide_in(&alone, &request, shell), Verdict::Allow { .. })
        }
        Access::Free
        | Access::Store { .. }
        | Access::Process { .. }
        | Access::Input { .. }
        | Access::Script { .. } => any(request.tool, &Subject::Other(request.raw)),
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::{ToolCatalog, Touch};

    use super::*;
    use crate::rules::{Effect, Source};
    use crate::{Human, Roots};

    #[test]
    fn a_call_is_covered_by_a_pattern_for_all_that_it_does() {
        let policy = Policy::new(Roots::new(Path::new("/w"), None, vec![]), ToolCatalog::default());
        let run = |command: &str| {
            ("terminal", Access::Run { command: command.into(), folder: "/w".into(), background: false })
        };
        let write = |path: &str| ("write_file", Access::Write { path: path.into(), inside: true });
        let mcp = |tool: &str| {
            let access = Access::Mcp { server: "git".into(), tool: tool.into(), arguments: "{}".into() };
            ("mcp_call", access)
        };
        let net = |host: &str| {
            let url = format!("https://{host}/");
            ("web_fetch", Access::Net { url, host: host.into(), local: false })
        };
        for (list, (tool, access), expected) in [
            ("terminal(git add*)", run("git add a"), true),
            ("terminal(git add*)", run("git add a && git add b"), true),
            ("terminal(git add*)", run("git add a && rm -r b"), false),
            ("terminal(git add*)", run("touch x"), false),
            ("terminal", run("touch x"), true),
            ("read_file", run("touch x"), false),
            ("write_file(src/**)", write("/w/src/a"), true),
            ("write_file(src/**)", write("/w/b"), false),
            ("write_file(src/**)", write("/w/src/../b"), false),
            ("mcp:git:log", mcp("log"), true),
            ("mcp:git:*", mcp("push"), true),
            ("mcp:git:log", mcp("push"), false),
            ("web_fetch(domain:a.org)", net("a.org"), true),
            ("web_fetch(domain:a.org)", net("b.org"), false),
        ] {
            let rule = Rule::parse(Effect::Allow, Source::Session, list, &policy.tools).unwrap();
            let request = Request {
                profile: Profile::Full,
                human: Human::Present,
                agent: "main",
                tool,
                touch: Touch::Execute,
                access: std::slice::from_ref(&access),
                raw: "{}",
            };
            assert_eq!(covers(&policy, &request, None, &[rule]), expected, "{list}: {access:?}");
            assert!(!covers(&policy, &request, None, &[]), "an empty list covers nothing");
        }
    }
}
