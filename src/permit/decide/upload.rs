//! A call that gives files to a page: they leave this machine, which is more than to open the page.

use tiller_protocol::{Access, AskReason, Risk, ToolSet};

use super::{Need, Policy, Request, sending, settle};
use crate::rules::{Effect, Subject};

/// Files that a question names.
const SHOWN: usize = 5;

/// The files that a call sends. A tool of the browser reads a file for no other reason.
pub(super) fn files<'r>(policy: &Policy, request: &Request<'r>) -> Vec<&'r str> {
    if policy.tools.get(request.tool).is_none_or(|tool| tool.set != ToolSet::Browser) {
        return Vec::new();
    }
    let path = |access: &'r Access| match access {
        Access::Read { path, .. } => Some(path.as_str()),
        _ => None,
    };
    request.access.iter().filter_map(path).collect()
}

/// It asks in every mode. A rule allows it only if it names this very tool: one about opening pages of the host says nothing of
/// files.
pub(super) fn judge(
    policy: &Policy,
    request: &Request<'_>,
    access: &Access,
    url: &str,
    host: &str,
    files: &[&str],
) -> Need {
    if host.is_empty() {
        let reason = "the page has no host, so where its files go cannot be said".to_owned();
        return Need::No { rule: "no host".into(), reason };
    }
    let host = host.to_ascii_lowercase();
    let subject = Subject::Net { url, host: &host };
    let always = sending::is_plain(&host).then(|| format!("{}(domain:{host})", request.tool));
    let mut effects: Vec<String> =
        files.iter().take(SHOWN).map(|file| format!("sends {file} to {host}")).collect();
    if files.len() > SHOWN {
        effects.push(format!("and {} files more", files.len() - SHOWN));
    }
    let risk = Risk::High;
    match settle(policy, request, &subject, access, None, None) {
        Need::Ok(_) | Need::ReadOnly(_) => {
            let mut rules = policy.rules.rules().iter().filter(|r| r.effect == Effect::Allow);
            let named = rules.find(|r| {
                r.is_of_tool(request.tool) && r.matches(request.agent, request.tool, &subject, &policy.roots)
            });
            match named {
                Some(rule) => Need::Ok(rule.words()),
                None => Need::Ask { rule: AskReason::NoRule, risk, effects, always },
            }
        }
        Need::Ask { rule, .. } => {
            let always = always.filter(|_| rule == AskReason::NoRule);
            Need::Ask { rule, risk, effects, always }
        }
        no @ Need::No { .. } => no,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use tiller_protocol::{Profile, Touch};

    use super::*;
    use crate::decide::{Human, Verdict, decide};
    use crate::paths::Roots;
    use crate::rules::{Rule, Source};

    fn roots() -> Roots {
        let lexical = Arc::new(|p: &Path| crate::paths::normal(p));
        Roots::with_resolve("/work/app", Some("/home/u".into()), vec![], lexical)
    }

    fn judged(rules: &[(Effect, &str)], profile: Profile, host: &str, files: &[&str]) -> Verdict {
        let mut policy = Policy::new(roots(), crate::testing::tools());
        for (effect, text) in rules {
            policy.rules.push(Rule::parse(*effect, Source::User, text, &policy.tools).unwrap());
        }
        let mut access =
            vec![Access::Net { url: format!("https://{host}/form"), host: host.into(), local: false }];
        let reads =
            |path: &&str| Access::Read { path: (*path).into(), inside: policy.roots.inside(path.as_ref()) };
        access.extend(files.iter().map(reads));
        let request = Request {
            profile,
            human: Human::Present,
            agent: "main",
            tool: "browse",
            touch: Touch::Network,
            access: &access,
            raw: "",
        };
        decide(&policy, &request)
    }

    #[test]
    fn giving_a_file_to_a_page_asks_in_every_mode_until_a_rule_names_the_tool() {
        use Effect::{Allow, Ask, Deny};
        let file = "/work/app/a.txt";
        let wide = (Allow, "*");
        for (rules, profile, strictness) in [
            (vec![], Profile::Ask, 1),
            (vec![], Profile::AutoEdit, 1),
            (vec![], Profile::Full, 1),
            (vec![], Profile::ReadOnly, 2),
            (vec![], Profile::Plan, 2),
            (vec![wide], Profile::Full, 1),
            (vec![(Allow, "web_fetch(domain:a.org)")], Profile::Full, 1),
            (vec![(Allow, "browse(domain:b.org)")], Profile::Full, 1),
            (vec![(Allow, "browse(domain:a.org)")], Profile::Full, 0),
            (vec![(Allow, "browse(domain:a.org)")], Profile::Ask, 0),
            (vec![(Allow, "browse")], Profile::Ask, 0),
            (vec![(Allow, "browse"), (Ask, "browse(domain:a.org)")], Profile::Full, 1),
            (vec![(Allow, "browse"), (Deny, "web_fetch(domain:a.org)")], Profile::Full, 2),
            (vec![(Allow, "browse"), (Deny, "read_file(a.txt)")], Profile::Full, 2),
        ] {
            let verdict = judged(&rules, profile, "a.org", &[file]);
            assert_eq!(verdict.strictness(), strictness, "{rules:?} {profile:?}: {verdict:?}");
            let nowhere = judged(&rules, profile, "", &[file]);
            assert_eq!(nowhere.strictness(), 2, "no host: {rules:?} {profile:?}: {nowhere:?}");
        }
        // To open a page of the host stays what it was.
        assert_eq!(judged(&[], Profile::Full, "a.org", &[]).strictness(), 0);
    }

    #[test]
    fn the_question_names_the_files_and_the_host() {
        let Verdict::Ask { effects, always, risk, .. } =
            judged(&[], Profile::Full, "A.org", &["/work/app/a.txt", "/work/app/b.txt"])
        else {
            panic!("it asks")
        };
        assert_eq!(effects, ["sends /work/app/a.txt to a.org", "sends /work/app/b.txt to a.org"]);
        assert_eq!((always.as_deref(), risk), (Some("browse(domain:a.org)"), Risk::High));
        // A secret file has a question of its own beside it, and no rule answers both.
        let Verdict::Ask { effects, always, .. } =
            judged(&[], Profile::Full, "a.org", &["/home/u/.ssh/id_ed25519"])
        else {
            panic!("it asks")
        };
        assert_eq!(effects.len(), 2, "{effects:?}");
        assert_eq!(always, None);
        let allowed = judged(
            &[(Effect::Allow, "browse(domain:a.org)")],
            Profile::Full,
            "a.org",
            &["/home/u/.ssh/id_ed25519"],
        );
        assert_eq!(allowed.strictness(), 1, "{allowed:?}");
    }
}
