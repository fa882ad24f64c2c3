//! Logins without a person: added whole or not at all, and only by the person.

use serde_json::json;
use tiller_testkit::ScriptServer;

use crate::common::Place;

const URL: &str = "https://tracker.example/mcp";

#[test]
fn a_login_without_a_person_is_added_whole_or_not_at_all() {
    let mut place = Place::anthropic(&ScriptServer::start([]));
    let settings = place.home.join("config/config.toml");
    let before = std::fs::read_to_string(&settings).unwrap_or_default();
    let add = |place: &Place, name: &str, options: &[&str], url: &[&str]| {
        place.run(&[&["mcp", "add", name][..], options, url].concat())
    };
    let secret = ["--client-id", "ci", "--client-secret-env", "CI_SECRET"];
    let key = ["--client-id", "ci", "--key-file", "~/ci.pem"];
    let wrong: [(&[&str], &[&str], &str); 10] = [
        (&["--login", "client"], &[URL], "login needs a client_id"),
        (&["--login", "client", "--client-id", "ci"], &[URL], "needs a client_secret, a key or a key_file"),
        (&["--login", "workload"], &[URL], "needs a token or a token_file"),
        (&["--login", "robot"], &[URL], "workload"),
        (&["--key-file", "k.pem"], &[URL], "--login"),
        (&["--login", "workload", "--token-env", "A", "--token-file", "b"], &[URL], "cannot be used with"),
        (
            &["--login", "enterprise", "--client-id", "c", "--token-env", "T"],
            &[URL],
            "needs a company with an issuer",
        ),
        (
            &["--login", "workload", "--token-env", "T", "--issuer", "http://login.example"],
            &[URL],
            "is no https address",
        ),
        (
            &["--login", "workload", "--token-env", "T", "--header", "Authorization=x"],
            &[URL],
            "both a login and an Authorization header",
        ),
        (&["--login", "workload", "--token-env", "T"], &["--", "npx", "x"], "with an address"),
    ];
    for (options, url, why) in wrong {
        let out = add(&place, "tracker", options, url);
        assert!(out.code == Some(2) && out.stderr.contains(why), "{options:?}: {out:?}");
        assert_eq!(std::fs::read_to_string(&settings).unwrap_or_default(), before, "{options:?}");
    }
    for (name, options) in [
        ("one", [&["--login", "client"][..], &secret, &["--scope", "read", "--scope", "write"]].concat()),
        (
            "two",
            [&["--login", "client"][..], &key, &["--key-id", "k1", "--issuer", "https://login.example"]]
                .concat(),
        ),
        ("three", vec!["--login", "workload", "--token-file", "/run/token"]),
        (
            "four",
            [
                &[
                    "--login",
                    "enterprise",
                    "--token-env",
                    "ID_TOKEN",
                    "--company-issuer",
                    "https://idp.example",
                ][..],
                &["--company-client-id", "tiller"],
                &secret,
            ]
            .concat(),
        ),
    ] {
        let out = add(&place, name, &options, &[URL]);
        assert!(out.code == Some(0) && out.stdout.starts_with("Added "), "{name}: {out:?}");
    }
    let written = std::fs::read_to_string(&settings).unwrap();
    for part in [
        "kind = \"client\"",
        "client_secret = \"${CI_SECRET}\"",
        "scopes = [\"read\", \"write\"]",
        "key_file = \"~/ci.pem\"",
        "token_file = \"/run/token\"",
        "token = \"${ID_TOKEN}\"",
        "company = { issuer = \"https://idp.example\"",
    ] {
        assert!(written.contains(part), "{part}: {written}");
    }
    // The variables are missing: each is named, and what needs none is there.
    let out = place.run(&["mcp", "list"]);
    assert!(out.stderr.contains("CI_SECRET") && out.stdout.contains("three"), "{out:?}");
    place.set("CI_SECRET", "a-secret-value");
    place.set("ID_TOKEN", "an.id.token");
    let out = place.run(&["mcp", "list"]);
    assert!(["one", "two", "three", "four"].iter().all(|name| out.stdout.contains(name)), "{out:?}");
}

/// A login sends secrets of this machine to an address. A repository may name neither.
#[test]
fn a_project_has_no_login_without_a_person() {
    let place = Place::anthropic(&ScriptServer::start([]));
    let login = json!({"kind": "workload", "token_file": "/etc/hostname"});
    let file = json!({"mcpServers": {"shared": {"url": URL, "login": login}}});
    place.file(".mcp.json", &file.to_string());
    place.ok(&["trust", "--yes"]);
    let out = place.run(&["mcp", "list"]);
    assert!(out.stdout.contains("shared") && out.stderr.contains("its login is not used"), "{out:?}");
}
