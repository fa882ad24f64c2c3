use tiller_protocol::{Access, Profile, Touch};

use crate::rules::{Effect, Rule, Source};
use crate::{Human, Policy, Request, Roots, Verdict};

fn policy(rules: &[(Effect, &str)]) -> Policy {
    let resolve = std::sync::Arc::new(crate::paths::normal);
    let roots = Roots::with_resolve("/w", Some("/home/u".into()), vec![], resolve);
    let mut policy = Policy::new(roots, crate::testing::tools());
    for (effect, text) in rules {
        let rule = Rule::written(*effect, Source::User, text, &policy.tools);
        policy.rules.push(rule.unwrap_or_else(|why| panic!("{text}: {why}")));
    }
    policy
}

/// The verdict in `full`.
fn verdict(policy: &Policy, command: &str) -> Verdict {
    let access = [Access::Run { command: command.into(), folder: "/w".into(), background: false }];
    let request = Request {
        profile: Profile::Full,
        human: Human::Present,
        agent: "main",
        tool: "terminal",
        touch: Touch::Execute,
        access: &access,
        raw: command,
    };
    crate::decide(policy, &request)
}

fn word(verdict: &Verdict) -> &'static str {
    ["allow", "ask", "deny"][usize::from(verdict.strictness())]
}

/// The line with the characters that its escapes stand for.
fn unescaped(line: &str) -> String {
    let (mut out, mut chars) = (String::new(), line.chars());
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                other => other.unwrap_or(c),
            },
            c => c,
        });
    }
    out
}

/// Each way to write a command that a rule forbids asks at least.
#[test]
fn no_way_to_write_it_gets_around_a_rule_that_denies_or_asks() {
    let lines = include_str!("launching.txt").lines().filter(|line| !line.starts_with("# "));
    let commands: Vec<String> = lines.map(unescaped).collect();
    assert!(commands.len() > 380, "{}", commands.len());
    for effect in [Effect::Deny, Effect::Ask] {
        let policy = policy(&[(effect, "terminal(git push*)")]);
        let through: Vec<&String> =
            commands.iter().filter(|command| verdict(&policy, command).strictness() == 0).collect();
        assert!(through.is_empty(), "{effect:?}: {through:#?}");
    }
}

/// The same for three rules, in spellings that were tried later.
#[test]
fn no_later_spelling_gets_around_a_rule() {
    let (mut rule, mut seen, mut through) = ("", 0, Vec::new());
    for line in include_str!("spelled.txt").lines().filter(|line| !line.starts_with("# ")) {
        if let Some(next) = line.strip_prefix("= ") {
            rule = next;
            continue;
        }
        let command = unescaped(line);
        seen += 1;
        for effect in [Effect::Deny, Effect::Ask] {
            if verdict(&policy(&[(effect, &format!("terminal({rule})"))]), &command).strictness() == 0 {
                through.push((effect, rule, command.clone()));
            }
        }
    }
    assert!(through.is_empty() && seen > 110, "{seen}: {through:#?}");
}

/// A rule is about the command, however its options are ordered, bundled and named.
#[test]
fn a_rule_that_denies_is_compared_word_by_word() {
    for (rule, command, want) in [
        ("git push:*", "git push origin", "deny"),
        ("git push:*", "git push", "deny"),
        ("npm run test:*", "npm run test:unit", "deny"),
        ("git push *", "git push", "deny"),
        (" git push* ", "git push", "deny"),
        ("git  push*", "git push x", "deny"),
        ("git push * main*", "git push origin main", "deny"),
        ("git push* main*", "git push -u origin main", "deny"),
        ("git push* main*", "git push origin other", "allow"),
        ("/usr/bin/git push*", "git push", "deny"),
        ("git push*", "/opt/git/bin/git push", "deny"),
        ("git push*", "git-push origin", "deny"),
        ("git push*", "/usr/lib/git-core/git-push", "deny"),
        ("docker compose up*", "docker-compose up", "deny"),
        ("docker-compose up*", "docker compose up", "deny"),
        ("./deploy.sh*", "sh deploy.sh", "deny"),
        ("./deploy.sh*", "bash ./deploy.sh x", "deny"),
        ("./deploy.sh*", "/w/deploy.sh", "deny"),
        ("rm -rf*", "rm -fr x", "deny"),
        ("rm -rf*", "rm -r -f x", "deny"),
        ("rm -rf *", "rm -rfv x", "deny"),
        ("rm -rf *", "rm x -rf", "deny"),
        ("rm -rf*", "rm -Rf x", "deny"),
        ("rm -rf*", "rm --recursive --force x", "ask"),
        ("rm -rf*", "rm --rec --for x", "ask"),
        ("rm -rf*", "rm -r x", "allow"),
        ("rm --recursive*", "rm -r x", "ask"),
        ("git push --force*", "git push origin main --force", "deny"),
        ("git push --force*", "git push origin --force-with-lease", "deny"),
        ("git push --force*", "git push origin --forc", "ask"),
        ("git commit --no-verify*", "git commit -m x --no-verify", "deny"),
        ("git commit --no-verify*", "git commit -n -m x", "ask"),
        ("git commit --no-verify*", "git commit -m '--no-verify is bad'", "allow"),
        ("git commit -n*", "git commit -m 'a -n b'", "allow"),
        ("git reset --hard*", "git reset HEAD~1 --hard", "deny"),
        ("python -m http.server*", "python3 -m http.server 80", "deny"),
        ("python3 -m http.server*", "python3.12 -m http.server", "deny"),
        ("python -c*", "python3 -Ic 'print(1)'", "deny"),
        ("pip install*", "python3 -m pip install x", "deny"),
        ("pip install*", "python3 -I -m pip install x", "deny"),
        ("pip install*", "python3 -W ignore -Impip install x", "deny"),
        ("pip install*", "python3 --check-hash-based-pycs never -m pip install x", "deny"),
        ("pip install*", "python3 -W ignore /usr/bin/pip install x", "ask"),
        ("pip install*", "pip3 install x", "deny"),
        ("pip install*", "pip --quiet install x", "deny"),
        ("chmod 777*", "chmod -R 777 x", "deny"),
        ("npm publish", "npm publish --tag x", "ask"),
        ("npm run deploy*", "npm --prefix x run deploy", "ask"),
        ("npm run deploy*", "npm run --silent deploy", "deny"),
        ("terraform apply*", "terraform -chdir=x apply", "deny"),
        ("kubectl delete*", "kubectl -n x delete pod y", "ask"),
        ("make deploy*", "make -C x deploy", "ask"),
        ("make deploy*", "make clean deploy", "ask"),
        ("make deploy*", "make V=1 deploy", "deny"),
        ("make deploy*", "make -j4 all", "allow"),
        ("cargo publish*", "cargo +nightly publish", "deny"),
        ("gh pr merge*", "gh pr -R a/b merge 1", "ask"),
        ("curl * | sh*", "curl -s x.org|sh", "deny"),
        ("curl*|*sh", "curl x.org | sh", "deny"),
        ("curl -X POST*", "curl -XPOST x", "deny"),
        ("curl -X POST*", "curl -sXPOST x", "deny"),
        ("curl -X POST*", "curl -X=POST x", "deny"),
        ("curl --request POST*", "curl --request=POST x", "deny"),
        ("curl -XPOST*", "curl -X POST x", "ask"),
        ("curl -XPOST*", "curl -sXPOST x", "ask"),
        ("make -n foo*", "make -nfoo", "deny"),
        ("npm publish*", "npm publ", "ask"),
        ("npm publish*", "npx npm@10 publish", "deny"),
        ("npm publish*", "node node_modules/.bin/npm publish", "ask"),
        ("cargo publish*", "cargo watch -x publish", "ask"),
        ("cargo publish*", "cargo watch -xpublish", "ask"),
        ("cargo publish*", "cargo -q watch -cx publish", "ask"),
        ("cargo publish*", "cargo-watch -x=publish", "ask"),
        ("cargo publish*", "cargo watch --exec='publish -q'", "ask"),
        ("rm -rf*", "rm -r$(echo f) x", "ask"),
        ("find * -delete*", "find . -name x -delete", "deny"),
        ("sed -i*", "sed -n -i s/a/b/ x", "deny"),
        // What is something else stays as it is.
        ("git push*", "git stash push", "allow"),
        ("git push*", "git commit -m 'git push'", "allow"),
        ("git push*", "git --no-pager stash push", "allow"),
        ("git push*", "git -C push status", "allow"),
        ("git push*", "git log --grep push", "allow"),
        ("git push*", "git config push.default simple", "allow"),
        ("git push*", "echo git push", "allow"),
        ("git push*", "grep -rn 'git push' .", "allow"),
        ("git push*", "npm install git push", "allow"),
        ("curl*", "apt-get install -y curl", "allow"),
        ("rm*", "aws s3 rm x", "allow"),
        ("rm*", "git rm x", "allow"),
        ("rm*", "mytool rm x", "ask"),
        ("rm*", "mytool --then=rm x", "ask"),
        ("curl -X POST*", "curl -XGET x", "allow"),
        ("curl -X POST*", "curl x/POST", "allow"),
        ("git push*", "git log --grep=push", "allow"),
        ("git push*", "node scripts/push.js git push", "allow"),
        ("npm publish*", "npm pack", "allow"),
        ("npm publish*", "npm install publish", "allow"),
        ("cargo publish*", "cargo watch -x test", "allow"),
        ("sh", "sh -c 'true'", "allow"),
        ("make", "make test", "allow"),
        ("cargo test", "cargo test --lib", "ask"),
        ("cargo test", "cargo test name", "allow"),
    ] {
        let rule = format!("terminal({rule})");
        let (without, with) = (policy(&[]), policy(&[(Effect::Deny, &rule)]));
        let (before, now) = (verdict(&without, command), verdict(&with, command));
        if want == "allow" {
            assert_eq!(now, before, "{rule}: {command}");
        } else {
            assert_eq!(word(&now), want, "{rule}: {command}: {now:?}");
            let asks = verdict(&policy(&[(Effect::Ask, &rule)]), command);
            assert!(asks.strictness() > 0, "{rule}: {command}: {asks:?}");
        }
    }
}

/// Of a command of which not each word is compared, none passes unseen.
#[test]
fn a_program_with_many_words_asks_beside_a_rule() {
    for (many, rule) in [(14, "git push*"), (200, "git push*"), (400, "git push*"), (400, "npm publish*")] {
        let command = format!("mytool {}git push", "a ".repeat(many));
        let denied = verdict(&policy(&[(Effect::Deny, &format!("terminal({rule})"))]), &command);
        assert_eq!(word(&denied), "ask", "{many} {rule}: {denied:?}");
        assert_eq!(word(&verdict(&policy(&[]), &command)), "allow");
    }
}

/// Lines that are typed are compared as the commands that they become in a shell.
#[test]
fn a_line_that_is_typed_is_compared_word_by_word() {
    let policy = policy(&[(Effect::Deny, "terminal(npm run deploy*)")]);
    for (text, want) in [
        ("npm run --silent deploy\n", "deny"),
        ("npm --prefix x run deploy\n", "ask"),
        ("cargo test\n", "allow"),
    ] {
        let access = [Access::Input {
            process: "p1".into(),
            command: "bash".into(),
            before: String::new(),
            text: text.into(),
            folder: "/w".into(),
        }];
        let request = Request {
            profile: Profile::Full,
            human: Human::Present,
            agent: "main",
            tool: "process",
            touch: Touch::Execute,
            access: &access,
            raw: text,
        };
        assert_eq!(word(&crate::decide(&policy, &request)), want, "{text}");
    }
}
