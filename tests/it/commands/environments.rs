//! Row T8 of the fault matrix with the whole program: commands run in odd environments, in modes that look and that write, and
//! in the sandbox.

use serde_json::json;
use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, says};

/// Variables that are set (`-`: that are not), and what is said of one to the person.
type Environment = (&'static [(&'static str, &'static str)], Option<&'static str>);

const ENVIRONMENTS: &[Environment] = &[
    (&[("LC_ALL", "en_US.UTF-8")], None),
    (&[("LC_ALL", "xx"), ("LC_CTYPE", "UTF-8"), ("LANG", "-")], None),
    (&[("TMPDIR", "/nonexistent/tmp")], Some("TMPDIR names /nonexistent/tmp, where no file can be made")),
    (&[("TMPDIR", "relative")], Some("TMPDIR names relative")),
    (&[("TMPDIR", "")], None),
    (&[("HOME", "/nonexistent")], None),
    (&[("HOME", "-")], None),
    (&[("SHELL", "/nonexistent"), ("TERM", "-"), ("TZ", "Nowhere/City")], None),
    (&[("PATH", "/nonexistent::.:/usr/bin:/bin")], None),
    (&[("XDG_RUNTIME_DIR", "/nonexistent"), ("XDG_CACHE_HOME", "relative")], None),
    (&[("BASH_ENV", "/nonexistent"), ("ENV", "/nonexistent"), ("SHELLOPTS", "xtrace")], None),
    (&[("LD_PRELOAD", "/nonexistent.so")], None),
];

#[test]
fn t8_commands_run_in_every_environment() {
    let run = |mode: &str, (over, named): &Environment| {
        let command = if mode == "full" { "echo hi > made; cat made" } else { "echo hi" };
        let server =
            ScriptServer::start([calls("c1", "terminal", json!({ "command": command })), says("done")]);
        let mut place = Place::anthropic(&server);
        for (name, value) in *over {
            place.set(name, value);
            place.env.retain(|(known, value)| known != name || value != "-");
        }
        let out = place.run(&["exec", "--profile", mode, "go"]);
        assert_eq!(out.code, Some(0), "{mode} {over:?}: {out:?}");
        let result = server.bodies()[1]["messages"][2].to_string();
        assert!(result.contains("\"hi"), "{mode} {over:?}: {result}");
        assert_eq!(out.stderr.contains("TMPDIR"), named.is_some(), "{mode} {over:?}: {out:?}");
        assert!(named.is_none_or(|named| out.stderr.contains(named)), "{mode} {over:?}: {out:?}");
    };
    for mode in ["ask", "full"] {
        std::thread::scope(|scope| {
            for environment in ENVIRONMENTS {
                scope.spawn(|| run(mode, environment));
            }
        });
    }
}
