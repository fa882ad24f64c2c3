//! The environment of an external agent: the common base, and the secrets of its own vendor only.

use super::adapter::Adapter;
use super::job::{Job, Lookup};

/// Suffixes of variables with keys. Of these only the adapter's own are passed on.
const KEYS: &[&str] = &["_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN"];

fn is_key(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    KEYS.iter().any(|end| upper.ends_with(end))
}

/// The environment of the program; `more` is added by the transport.
pub(crate) fn environment<'a>(
    job: &Job,
    more: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Vec<(String, String)> {
    let mut env = base(&job.adapter, &job.env, &job.lookup);
    let mut set = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
        for (name, value) in pairs {
            env.retain(|(n, _)| n != name);
            env.push((name.clone(), value.clone()));
        }
    };
    if !job.auto_approve {
        set(&mut job.adapter.env.careful.iter());
    }
    set(&mut more.into_iter());
    env
}

/// Network settings and trusted certificates. Programs need to reach their vendors, so all of them get these; the
/// address of a proxy may contain its password.
const NETWORK: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

/// Maximum bytes of a program's configuration that are read.
const CONFIGURATION: u64 = 1 << 20;
/// Maximum number of names from one program's configuration.
const NAMES: usize = 50;

/// Variables that are passed on beyond the common base: keys of its vendor, those that its adapter lists, network
/// settings, those of a cloud that it is configured for, and those that the person's own configuration of it names.
fn passed(adapter: &Adapter, base: &[(String, String)], lookup: &Lookup) -> Vec<String> {
    let on = |switch: &str| {
        let value = lookup(switch).or_else(|| value(base, switch).map(str::to_owned)).unwrap_or_default();
        !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no")
    };
    let mut all: Vec<String> = adapter.env.keys.iter().chain(&adapter.env.pass).cloned().collect();
    all.extend(NETWORK.iter().map(|n| (*n).to_owned()));
    for cloud in adapter.env.cloud.iter().filter(|c| on(&c.when)) {
        all.push(cloud.when.clone());
        all.extend(cloud.pass.iter().cloned());
    }
    all.extend(named(adapter, base, lookup));
    let mut seen = std::collections::HashSet::new();
    all.retain(|name| seen.insert(name.clone()));
    all
}

/// Names of variables in the person's own configuration of the program.
fn named(adapter: &Adapter, base: &[(String, String)], lookup: &Lookup) -> Vec<String> {
    let mut all = Vec::new();
    for named in &adapter.env.named {
        let files = named.files.iter().filter_map(|f| place(f, base, lookup));
        for text in files.filter_map(|f| configuration(&f)) {
            let parts: Vec<&str> = match &named.within {
                Some(within) => within.each(&text).collect(),
                None => vec![&text],
            };
            let names = parts.into_iter().flat_map(|part| named.names.each(part)).filter(|n| is_name(n));
            all.extend(names.take(NAMES).map(str::to_owned));
        }
    }
    all
}

/// Whether its own configuration names a variable that is set: the key of a provider of its own.
pub(crate) fn configured(adapter: &Adapter, base: &[(String, String)], lookup: &Lookup) -> bool {
    named(adapter, base, lookup).iter().any(|n| lookup(n).is_some_and(|v| !v.is_empty()))
}

fn value<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
    env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
}

impl Adapter {
    /// Folders and files that the program reads and writes where it is confined, and those that hold its keys. `env` is its
    /// environment.
    pub fn own_paths(&self, env: &[(String, String)]) -> OwnPaths {
        let nothing: Lookup = std::sync::Arc::new(|_: &str| None);
        let all = |names: &[String]| names.iter().filter_map(|name| place(name, env, &nothing)).collect();
        let needs = &self.sandbox;
        let pair =
            |(from, to): (&String, &String)| Some((place(from, env, &nothing)?, place(to, env, &nothing)?));
        OwnPaths {
            folders: all(&needs.folders),
            files: all(&needs.files),
            protected: all(&needs.protected),
            copies: needs.copies.iter().filter_map(pair).collect(),
            keys: all(&self.auth.files),
        }
    }
}

/// Paths of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnPaths {
    pub folders: Vec<std::path::PathBuf>,
    pub files: Vec<std::path::PathBuf>,
    /// In the folders, what it only reads.
    pub protected: Vec<std::path::PathBuf>,
    /// Files, and where it has its own copies of them.
    pub copies: Vec<(std::path::PathBuf, std::path::PathBuf)>,
    /// Files that show that it is logged in.
    pub keys: Vec<std::path::PathBuf>,
}

/// Resolves `~/.x/config` or `$X_HOME/config` to a path.
fn place(file: &str, base: &[(String, String)], lookup: &Lookup) -> Option<std::path::PathBuf> {
    let (first, rest) = file.split_once('/').unwrap_or((file, ""));
    let folder = match first.strip_prefix('$') {
        Some(name) => lookup(name).or_else(|| value(base, name).map(str::to_owned))?,
        None if first == "~" => value(base, "HOME")?.to_owned(),
        None => return None,
    };
    let folder = std::path::PathBuf::from(folder);
    Some(if rest.is_empty() { folder } else { folder.join(rest) }).filter(|p| p.is_absolute())
}

fn configuration(path: &std::path::Path) -> Option<String> {
    use std::io::Read;
    let file = std::fs::File::open(path).ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()))?;
    let mut bytes = Vec::new();
    file.take(CONFIGURATION).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_name(name: &str) -> bool {
    name.len() <= 100
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        // A variable that changes how every program runs is never a key.
        && !["PATH", "HOME", "SHELL", "IFS", "ENV", "BASH_ENV"].contains(&name)
        && !["LD_", "DYLD_", "TILLER_", "NODE_OPTIONS", "PYTHON"].iter().any(|p| name.starts_with(p))
}

/// The part that a version check needs, too.
pub(crate) fn base(adapter: &Adapter, base: &[(String, String)], lookup: &Lookup) -> Vec<(String, String)> {
    let passed = passed(adapter, base, lookup);
    let own = |name: &str| adapter.env.keys.iter().chain(&adapter.env.pass).any(|k| k == name);
    let mut env: Vec<(String, String)> =
        base.iter().filter(|(name, _)| !is_key(name) && !own(name)).cloned().collect();
    for name in &passed {
        if let Some(value) = lookup(name).filter(|v| !v.is_empty() && !v.contains('\0')) {
            env.retain(|(n, _)| n != name);
            env.push((name.clone(), value));
        }
    }
    let root = rustix::process::geteuid().is_root().then_some(&adapter.env.root);
    for (name, value) in adapter.env.set.iter().chain(root.into_iter().flatten()) {
        env.retain(|(n, _)| n != name);
        env.push((name.clone(), value.clone()));
    }
    env
}

/// Addition to the message of a failure: variables that it mentions, that are set, and that the program did not get.
pub(crate) fn withheld(why: &str, given: &[String], lookup: &Lookup, adapter: &Adapter) -> Option<String> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let named = |w: &&str| w.contains('_') && w.len() > 4 && *w == w.to_ascii_uppercase() && is_name(w);
    let mut names: Vec<&str> = why.split(word).filter(named).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|n| !given.iter().any(|g| g == n) && lookup(n).is_some_and(|v| !v.is_empty()));
    names.truncate(3);
    let all = names.join(" and ");
    (!all.is_empty()).then(|| {
        let name = &adapter.name;
        format!(
            "{all} is set here but was not passed to {}: a program only gets variables that its \
            adapter or its own configuration names. Add it to `pass` under [env] in \
            adapters/{name}.toml of the settings folder",
            adapter.title
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::adapter::Adapters;

    #[test]
    fn x8_each_sees_its_own_vendors_key_and_no_other() {
        let vendors =
            ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "GROQ_API_KEY"];
        let lookup: Lookup = Arc::new(|name| Some(format!("secret of {name}")));
        let given: Vec<(String, String)> = vendors
            .iter()
            .chain(&["PATH", "LC_ALL"])
            .map(|n| ((*n).to_owned(), format!("secret of {n}")))
            .collect();
        let all = Adapters::new(&[]);
        for (name, own) in [
            ("claude", Some("ANTHROPIC_API_KEY")),
            ("codex", Some("OPENAI_API_KEY")),
            ("gemini", Some("GEMINI_API_KEY")),
            ("aider", Some("OPENAI_API_KEY")),
            ("opencode", None),
            ("goose", None),
            ("droid", None),
        ] {
            let env = base(&all.get(name).unwrap(), &given, &lookup);
            let seen: Vec<&str> =
                vendors.iter().copied().filter(|v| env.iter().any(|(n, _)| n == v)).collect();
            assert_eq!(seen, own.into_iter().collect::<Vec<_>>(), "{name}");
            assert!(env.iter().any(|(n, _)| n == "PATH"));
            let mut names: Vec<_> = env.iter().map(|(n, _)| n).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), env.len(), "a name twice");
        }
    }

    fn lookup(pairs: &'static [(&'static str, &'static str)]) -> Lookup {
        Arc::new(move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn what_its_own_configuration_names_passes_and_nothing_that_steers_programs() {
        let home = tempfile::tempdir().unwrap();
        let all = Adapters::new(&[]);
        let set = lookup(&[("AZURE_KEY", "a"), ("LD_PRELOAD", "b"), ("OTHER_KEY", "c")]);
        let given = vec![("HOME".to_owned(), home.path().display().to_string())];
        let codex = all.get("codex").unwrap();
        let has = |name: &str| base(&codex, &given, &set).iter().any(|(n, _)| n == name);
        assert!(!has("AZURE_KEY"));
        std::fs::create_dir(home.path().join(".codex")).unwrap();
        let text = "model = \"x\"\n[model_providers.azure]\nenv_key = \"AZURE_KEY\"\n[model_providers.b]\nenv_key = \"LD_PRELOAD\"\n# env_key = \"OTHER_KEY\"\n";
        let config = home.path().join(".codex/config.toml");
        std::fs::write(&config, text).unwrap();
        assert!(has("AZURE_KEY") && !has("LD_PRELOAD") && !has("OTHER_KEY"));
        // Equivalent forms in TOML.
        for text in [
            "[model_providers.azure]\nenv_key = 'AZURE_KEY'\n",
            "[model_providers.azure]\nenv_http_headers = { \"X-A\" = \"AZURE_KEY\", 'X-B' = 'LD_PRELOAD' }\n",
            "[model_providers.azure]\nenv_http_headers = { \"X-B\" = \"NONE\", 'X-A' = 'AZURE_KEY' }\n",
            "[model_providers.azure.env_http_headers]\n\"X-B\" = \"NONE\"\n\"X-A\" = 'AZURE_KEY'\n[other]\nx = \"OTHER_KEY\"\n",
        ] {
            std::fs::write(&config, text).unwrap();
            assert!(has("AZURE_KEY") && !has("LD_PRELOAD") && !has("OTHER_KEY"), "{text}");
        }
        std::fs::write(&config, "# env_http_headers = { \"X-A\" = \"AZURE_KEY\" }\nname = \"OTHER_KEY\"\n")
            .unwrap();
        assert!(!has("AZURE_KEY") && !has("OTHER_KEY"));
        let opencode = all.get("opencode").unwrap();
        std::fs::create_dir_all(home.path().join(".config/opencode")).unwrap();
        let text = r#"{"provider": {"x": {"options": {"apiKey": "{env:OTHER_KEY}"}}}}"#;
        std::fs::write(home.path().join(".config/opencode/opencode.json"), text).unwrap();
        let env = base(&opencode, &given, &set);
        assert!(
            env.iter().any(|(n, v)| n == "OTHER_KEY" && v == "c")
                && !env.iter().any(|(n, _)| n == "AZURE_KEY")
        );
    }

    #[test]
    fn a_clouds_variables_pass_only_where_the_program_is_switched_to_it_and_the_networks_always() {
        let all = Adapters::new(&[]);
        let claude = all.get("claude").unwrap();
        let env = |set: &'static [(&'static str, &'static str)]| {
            let env = base(&claude, &[], &lookup(set));
            env.into_iter().map(|(n, _)| n).collect::<Vec<_>>()
        };
        let aws = env(&[
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("HTTPS_PROXY", "http://p"),
            ("CLAUDE_CODE_USE_BEDROCK", "0"),
        ]);
        assert!(
            !aws.iter().any(|n| n.starts_with("AWS_")) && aws.iter().any(|n| n == "HTTPS_PROXY"),
            "{aws:?}"
        );
        let aws =
            env(&[("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "r"), ("CLAUDE_CODE_USE_BEDROCK", "1")]);
        for name in ["AWS_SECRET_ACCESS_KEY", "AWS_REGION", "CLAUDE_CODE_USE_BEDROCK"] {
            assert!(aws.iter().any(|n| n == name), "{name}: {aws:?}");
        }
        let codex = base(
            &all.get("codex").unwrap(),
            &[],
            &lookup(&[("AWS_SECRET_ACCESS_KEY", "s"), ("CLAUDE_CODE_USE_BEDROCK", "1")]),
        );
        assert!(!codex.iter().any(|(n, _)| n.starts_with("AWS_")));
    }

    #[test]
    fn a_variable_that_was_withheld_is_named() {
        let all = Adapters::new(&[]);
        let codex = all.get("codex").unwrap();
        let set = lookup(&[("MY_MODEL_KEY", "secret-value"), ("OPENAI_API_KEY", "k")]);
        let given = vec!["OPENAI_API_KEY".to_owned()];
        let why = "Missing environment variable: `MY_MODEL_KEY`. OPENAI_API_KEY, NOT_SET_KEY";
        let told = withheld(why, &given, &set, &codex).unwrap();
        assert!(told.contains("MY_MODEL_KEY is set here") && told.contains("adapters/codex.toml"), "{told}");
        assert!(
            !told.contains("OPENAI") && !told.contains("NOT_SET") && !told.contains("secret-value"),
            "{told}"
        );
        assert_eq!(withheld("it ended with exit code 1", &given, &set, &codex), None);
    }
}
