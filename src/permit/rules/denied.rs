//! Deny rules about reading, as globs for external programs.

use std::path::Path;

use crate::paths::Roots;
use crate::rules::{Effect, PathUse, Rule, RuleSet};

/// One deny rule about reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedRead {
    /// The rule, for people: `yours: deny read_file(.env)`.
    pub rule: String,
    /// Absolute paths as globs (`**` crosses folders). Together they name each file that the rule names.
    pub globs: Vec<String>,
}

/// The rules that deny `agent` to read, with the files that they name.
pub fn denied_reads(rules: &RuleSet, roots: &Roots, agent: &str) -> Vec<DeniedRead> {
    let denied = rules.rules().iter().filter(|r| r.effect == Effect::Deny && r.is_for(agent));
    denied
        .filter_map(|rule| {
            let globs = match rule.path_text() {
                Some(text) if rule.narrows_paths(PathUse::Read) => {
                    let forms = tiller_protocol::names::pattern_forms(text).unwrap_or_default();
                    forms.iter().flat_map(|form| globs(form, roots)).collect()
                }
                // A reader that is denied as a whole reads nothing.
                None if rule.is_whole() && rule.is_for_tool("read_file") => vec!["/**".to_owned()],
                _ => return None,
            };
            Some(DeniedRead { rule: Rule::words(rule), globs })
        })
        .collect()
}

/// A rule names a path, what lies below it, and, as a bare name, each file of that name.
fn globs(text: &str, roots: &Roots) -> Vec<String> {
    let bare = text.trim_end_matches('/').trim_end_matches("/**");
    let under =
        |folder: &Path, rest: &str| format!("{}/{rest}", folder.display().to_string().trim_end_matches('/'));
    let mut all = match (bare.strip_prefix("~/"), &roots.home) {
        (Some(rest), Some(home)) => vec![under(home, rest)],
        _ if bare.starts_with('/') || bare.is_empty() => vec![bare.to_owned()],
        _ => {
            let rest = bare.strip_prefix("./").unwrap_or(bare);
            let mut all = vec![under(&roots.workspace, rest)];
            let real = roots.real(&roots.workspace);
            if real != roots.workspace {
                all.push(under(&real, rest));
            }
            if !bare.contains('/') {
                all.extend(
                    all.clone().iter().filter_map(|a| a.rsplit_once('/').map(|(f, n)| format!("{f}/**/{n}"))),
                );
            }
            all
        }
    };
    all.extend(all.clone().iter().map(|glob| format!("{glob}/**")));
    all.retain(|glob| !glob.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Source;

    fn globs_of(rule: &str) -> Vec<String> {
        let mut rules = RuleSet::default();
        rules.push(Rule::written(Effect::Deny, Source::User, rule, &crate::testing::tools()).unwrap());
        let resolve = std::sync::Arc::new(|p: &Path| p.to_owned());
        let roots = Roots::with_resolve("/w", Some("/home/a".into()), Vec::new(), resolve);
        denied_reads(&rules, &roots, "main").into_iter().flat_map(|d| d.globs).collect()
    }

    #[test]
    fn x17_a_rule_names_each_file_that_it_is_held_to_here() {
        assert_eq!(globs_of("read_file(.env)"), ["/w/.env", "/w/**/.env", "/w/.env/**", "/w/**/.env/**"]);
        assert_eq!(globs_of("read_file(./keys/*.pem)"), ["/w/keys/*.pem", "/w/keys/*.pem/**"]);
        assert_eq!(globs_of("search(~/.ssh/**)"), ["/home/a/.ssh", "/home/a/.ssh/**"]);
        assert_eq!(globs_of("read_file(/etc/shadow)"), ["/etc/shadow", "/etc/shadow/**"]);
        assert_eq!(globs_of("read_file"), ["/**"]);
        for other in ["terminal(cat *)", "web_fetch(domain:x.org)"] {
            assert!(globs_of(other).is_empty(), "{other}");
        }
    }
}
