use tiller_protocol::{Access, Touch};

use super::*;
use crate::rules::Source;

/// The verdict on a script in `full` with one more rule.
fn verdict(effect: Effect, rule: &str, code: &str) -> u8 {
    let resolve = std::sync::Arc::new(crate::paths::normal);
    let roots = Roots::with_resolve("/w", Some("/home/u".into()), vec![], resolve);
    let mut policy = Policy::new(roots, crate::testing::tools());
    policy.rules.push(Rule::written(effect, Source::User, rule, &policy.tools).unwrap());
    let access = [Access::Script { code: code.into() }];
    let request = Request {
        profile: Profile::Full,
        human: Human::Present,
        agent: "main",
        tool: "execute_code",
        touch: Touch::Execute,
        access: &access,
        raw: code,
    };
    decide(&policy, &request).strictness()
}

/// A script that starts a program by itself is judged as the command that starts it.
#[test]
fn a_script_gets_around_no_rule_about_commands() {
    let run = "import subprocess\nsubprocess.run(['git', 'push'])";
    let behind_words = format!("x = [{}]\n{run}", "'a', ".repeat(100));
    let behind_lines = format!("{}{run}", "x = 1\n".repeat(1_000));
    for code in [
        "import subprocess\nsubprocess.run(['git', 'push'])",
        "import subprocess\nsubprocess.run(['git','push','origin'])",
        "import subprocess as s\ns.check_output(\"git push\", shell=True)",
        "import os\nos.system('git push')",
        "import os\nos.system(\"cd x && git push origin\")",
        "import os\nos.execvp('git', ['git', 'push'])",
        "import os\nos.spawnlp(os.P_WAIT, 'git', 'git', 'push')",
        "__import__('os').popen('git push')",
        "import asyncio.subprocess\nasyncio.create_subprocess_exec('git', 'push')",
        "import subprocess\nsubprocess.run(['/usr/bin/git', 'push'])",
        "import subprocess\nsubprocess.run(['sh', '-c', 'git push'])",
        "# don't\nimport subprocess\nsubprocess.run(['git', 'push'])",
        "from os import system\nsystem('git push')",
        "import sys, os as o\no.system('git push')",
        "import posix\nposix.system('git push')",
        behind_words.as_str(),
        behind_lines.as_str(),
    ] {
        assert_eq!(verdict(Effect::Deny, "terminal(git push*)", code), 2, "{code}");
        assert_eq!(verdict(Effect::Ask, "terminal(git push*)", code), 1, "{code}");
        assert_eq!(verdict(Effect::Deny, "terminal", code), 2, "{code}");
        assert_eq!(verdict(Effect::Deny, "terminal(npm publish*)", code), 0, "{code}");
    }
    // Code with more pieces than are compared asks.
    let long = format!("import os\n{}os.system('git push')", "os.getpid()\n".repeat(5_000));
    assert_eq!(verdict(Effect::Deny, "terminal(npm publish*)", &long), 1);
    for code in
        ["print('git', 'push')", "from tiller_tools import search\nprint(search('git push'))", "print(1)"]
    {
        assert_eq!(verdict(Effect::Deny, "terminal(git push*)", code), 0, "{code}");
    }
}

/// A rule about reading asks before a script that opens files by itself, in `full` too; its calls are judged one by one.
#[test]
fn a_script_gets_around_no_rule_about_reading() {
    for (code, want) in [
        ("print(open('.env').read())", 1),
        ("from pathlib import Path\nprint(Path('.e' + 'nv').read_text())", 1),
        ("import subprocess\nprint(subprocess.check_output(['cat', '.env']))", 1),
        ("from tiller_tools import read_file\nprint(read_file('src/a.rs'))", 0),
        ("print(1)", 0),
    ] {
        assert_eq!(verdict(Effect::Deny, "read_file(.env)", code), want, "{code}");
        assert_eq!(verdict(Effect::Ask, "read_file(.env)", code), want, "{code}");
        assert_eq!(verdict(Effect::Deny, "write_file(x)", code), 0, "{code}");
    }
}
