//! Everything that messages advise exists: commands with their flags, slash commands, settings. Read from the sources,
//! so that sentences without a test are checked as well.

use std::path::Path;

use clap::CommandFactory as _;

/// The texts between quotation marks of a Rust file, without those of its tests at the end.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let (mut out, mut rest) = (Vec::new(), source);
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let tail = &rest[at..];
        if let Some(comment) = tail.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if tail.starts_with("'\"'") || tail.starts_with("'\\\"'") {
            rest = &tail[3..];
        } else if let Some(text) = tail.strip_prefix('"') {
            let hashes = rest[..at].len() - rest[..at].trim_end_matches('#').len();
            let raw = rest[..at - hashes].ends_with('r');
            let end = if raw {
                text.find(&format!("\"{}", "#".repeat(hashes)))
            } else {
                let mut escaped = false;
                text.find(|c| match (c, escaped) {
                    ('"', false) => true,
                    (c, was) => {
                        escaped = c == '\\' && !was;
                        false
                    }
                })
            };
            let Some(end) = end else { break };
            // A continued line is one sentence.
            let lines: Vec<&str> = text[..end].split("\\\n").map(str::trim_start).collect();
            out.push(lines.concat());
            rest = &text[end + 1..];
        } else {
            rest = &tail[1..];
        }
    }
    out
}

fn sources(folder: &Path, out: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        let test = name.contains("test")
            || ["stories", "fixtures", "examples", "xtask", "snapshots"].contains(&&*name);
        if test {
            continue;
        }
        if entry.is_dir() {
            sources(&entry, out);
        } else if name.ends_with(".rs") {
            let texts = literals(&std::fs::read_to_string(&entry).unwrap());
            out.extend(texts.into_iter().map(|t| (entry.display().to_string(), t)));
        }
    }
}

fn all() -> Vec<(String, String)> {
    let mut out = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut out);
    assert!(out.len() > 1_000, "the sources are read");
    out
}

/// The text after each occurrence of `mark`.
fn behind<'t>(text: &'t str, mark: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(mark).map(move |(at, _)| &text[at + mark.len()..])
}

fn word(text: &str, more: &[char]) -> String {
    text.chars().take_while(|c| c.is_ascii_lowercase() || more.contains(c)).collect()
}

#[test]
fn commands_and_flags_that_messages_name_exist() {
    let cli = tiller::commands::args::Cli::command();
    let mut seen = 0;
    for (file, text) in all() {
        for mark in ["`tiller ", "'tiller "] {
            for said in behind(&text, mark) {
                let said = said.split(['`', '\'']).next().unwrap_or_default();
                let (mut command, mut names) = (&cli, said.split_whitespace().peekable());
                seen += 1;
                while let Some(name) = names.peek() {
                    let Some(inner) = command.find_subcommand(name) else { break };
                    command = inner;
                    names.next();
                }
                let first = said.split_whitespace().next().unwrap_or_default();
                let known =
                    first.starts_with('-') || first.starts_with('{') || command.get_name() != cli.get_name();
                assert!(known, "{file}: there is no command `tiller {said}`");
                for flag in names.filter(|n| n.starts_with("--") && n.len() > 2) {
                    let flag = word(&flag[2..], &['-']);
                    let has = |c: &clap::Command| c.get_arguments().any(|a| a.get_long() == Some(&flag));
                    assert!(
                        has(command) || has(&cli) || flag == "help",
                        "{file}: `tiller {said}` has no --{flag}"
                    );
                }
            }
        }
    }
    assert!(seen > 15, "{seen}");
}

#[test]
fn slash_commands_that_messages_name_exist() {
    let mut seen = 0;
    for (file, text) in all() {
        for lead in
            ["with ", "by ", "or ", "use ", "say ", "type ", "see ", "enter ", "key with ", "`", "first: "]
        {
            for said in behind(&text, &format!("{lead}/")) {
                let name = word(said, &['-', '_']);
                let after = said[name.len()..].chars().next();
                // A path continues, and begins with nothing else.
                if name.len() < 3 || matches!(after, Some('/' | '.' | '{' | '*' | ':')) {
                    continue;
                }
                seen += 1;
                assert!(tiller::tui::slash::COMMANDS.exists(&name), "{file}: there is no /{name}: {text}");
            }
        }
    }
    assert!(seen > 8, "{seen}");
}

#[test]
fn settings_that_messages_name_exist() {
    let schema = tiller::config::json_schema(&tiller::provider::ApiFormats::built_in().kinds());
    let sections = ["tiers", "budget", "limits", "context", "ui", "watch", "agents"];
    let mut seen = 0;
    for (file, text) in all() {
        // Agent definitions have limits of their own.
        let agents = file.contains("config/agents/");
        // Names of actions have such a form, too; a sentence has blanks, and words without a dot.
        let sentence = text.contains(' ') && text.split(' ').any(|word| !word.contains('.'));
        for section in sections.iter().filter(|s| sentence && !(agents && **s == "limits")) {
            for (at, _) in text.match_indices(&format!("{section}.")) {
                let before = text[..at].chars().next_back();
                let name = word(&text[at + section.len() + 1..], &['_']);
                let ours = before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '/' | '-'));
                if !ours
                    || text.contains(&format!("action {section}."))
                    || name.len() < 3
                    || text[at..].starts_with(&format!("{section}.rs"))
                {
                    continue;
                }
                // A section refers to its own type.
                let of = &schema["properties"][*section];
                let inner = of["$ref"].as_str().or_else(|| of["allOf"][0]["$ref"].as_str());
                let inner = inner.and_then(|r| schema.pointer(r.strip_prefix('#')?)).unwrap_or(of);
                assert!(inner["properties"].is_object(), "{section}: {of}");
                seen += 1;
                assert!(
                    inner["properties"][&name].is_object(),
                    "{file}: there is no {section}.{name}: {text}"
                );
            }
        }
    }
    assert!(seen > 5, "{seen}");
}
