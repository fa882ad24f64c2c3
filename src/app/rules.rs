//! Permission rules: the person's file, the trusted project's file, flags.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tiller_config::ConfigError;
use tiller_config::schema::SkillApproval;
use tiller_engine::{AlwaysWriter, Permit};
use tiller_permit::rules::rulefile::{self, RuleProblem};
use tiller_permit::{Effect, Policy, Roots, Rule, RuleSet, Source};
use tiller_protocol::{Notice, NoticeKind, ToolCatalog};

use crate::app::extensions::hook_files;
use crate::app::{Setup, sandbox};

/// Path of the project's rule file in the project.
pub(super) const PROJECT: &str = ".tiller/permissions.yaml";

/// The person's rule file.
pub(crate) fn file(config: &Path) -> PathBuf {
    config.join("permissions.yaml")
}

/// The tool that writes skills.
const MANAGE: &str = "skill_manage";

/// A file that restricts and cannot be used. What it forbids is not known, so everything that it may cover asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadFile {
    pub(crate) source: Source,
    /// The file and why, without a full stop.
    pub(crate) why: String,
}

impl BadFile {
    pub(crate) fn new(source: Source, why: impl Into<String>) -> Self {
        Self { source, why: why.into() }
    }

    /// The rule that stands for it.
    pub(crate) fn rule(&self, tools: &ToolCatalog) -> Result<Rule, Notice> {
        RuleSet::ask_all_for(&self.why, self.source, tools)
            .map_err(|why| Notice::new(NoticeKind::Internal, why))
    }

    /// The fault, and how to correct it.
    pub(crate) fn notice(&self) -> Notice {
        Notice::new(NoticeKind::Config, format!("{}.", self.why)).hint(UNTIL)
    }
}

/// The cost of a file that cannot be used.
pub(crate) const UNTIL: &str =
    "Until it is corrected, every call that it may restrict asks; where no one can answer, it is denied.";

/// Other files of the person that cannot be used at present. Cheap, except while something is wrong.
pub(super) type OtherFaults = Arc<dyn Fn() -> Vec<BadFile> + Send + Sync>;

/// Everything that decides about calls, and the errors in the files. `bad`: files of the folder that restrict and cannot be
/// used; `others`: the same of the person's, besides the rules. `counts`: a rule file of the folder that cannot be used counts,
/// also where the folder is not `trusted`.
pub(super) fn permit(
    setup: &Setup,
    [trusted, counts]: [bool; 2],
    bad: &[BadFile],
    others: OtherFaults,
    [allow, ask, deny]: [&[String]; 3],
) -> Result<(Permit, Policy, Vec<Notice>), Notice> {
    let p = &setup.places;
    let own = vec![p.config.clone(), p.data.clone(), p.state.clone(), p.cache.clone()];
    let home = (setup.env)("HOME").map(PathBuf::from);
    let around = Arc::new(tiller_watch::GitSurroundings::new(setup.children()));
    let mut roots = Roots::new(&setup.project, home, own).with_variables(&|name| (setup.env)(name));
    roots.hook_files = hook_files::of(setup).iter().map(|path| setup.project.join(path)).collect();
    let mut policy = Policy::new(roots, setup.tools.catalog()).within(around);
    policy.sandboxed = sandbox::confines_reading(setup);
    policy.writable = sandbox::caches(setup);
    policy.hosts = setup.config.config.sandbox_network.iter().map(|host| host.to_ascii_lowercase()).collect();
    let mut notices = Vec::new();
    let tools = policy.tools.clone();
    let user = file(&p.config);
    let stamp = stamp(&user);
    let mut own = RuleSet::default();
    add(&mut own, read(&user), Source::User, &user, &tools, &mut notices);
    let faults = others();
    policy.rules.add(own.rules().to_vec(), true);
    if trusted || counts {
        let text = read_project(setup);
        if trusted || text.is_err() {
            add(&mut policy.rules, text, Source::Project, Path::new(PROJECT), &tools, &mut notices);
        }
    }
    for bad in faults.iter().chain(bad) {
        policy.rules.push(bad.rule(&tools)?);
    }
    let lists =
        [(Effect::Allow, allow, "--allow"), (Effect::Ask, ask, "ask"), (Effect::Deny, deny, "--deny")];
    for (effect, list, flag) in lists {
        for text in list {
            let rule = Rule::written(effect, Source::Session, text, &policy.tools).map_err(|why| {
                Notice::new(NoticeKind::Config, format!("{flag} '{text}' is not a rule: {why}"))
                    .hint("Write it as tool(argument), for example 'terminal(cargo test*)'.")
            })?;
            policy.rules.push(rule);
        }
    }
    // The setting holds in every mode, also where a mode allows what is not declared.
    let effect = match setup.config.config.skills.approve {
        SkillApproval::Always => Some(Effect::Allow),
        SkillApproval::Ask => Some(Effect::Ask),
        SkillApproval::Never => None,
    };
    if let Some(effect) = effect.filter(|_| policy.tools.contains(MANAGE)) {
        let rule = Rule::written(effect, Source::BuiltIn, MANAGE, &policy.tools);
        rule.into_iter().for_each(|rule| policy.rules.push(rule));
    }
    let permit = Permit::new(policy.clone(), writer(user.clone(), tools.clone()));
    let seen = RulesSeen { stamp, rules: own.rules().to_vec(), faults };
    let permit = permit.live(reader(user, seen, others, tools));
    Ok((permit, policy, notices))
}

/// The text of the person's file; `None`: there is none.
///
/// # Errors
/// As [`BadFile::why`].
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    let read = tiller_fs::restricting::read_text(path, rulefile::MAX_BYTES as u64)
        .map_err(|why| format!("{} {why}", path.display()))?;
    if read.is_none() {
        check_names(path)?;
    }
    Ok(read)
}

/// The text of the project's file; `None`: there is none.
///
/// # Errors
/// As [`BadFile::why`].
pub(super) fn read_project(setup: &Setup) -> Result<Option<String>, String> {
    let text = setup.folder_config.text(PROJECT)?;
    if text.is_none() {
        check_names(&setup.project.join(PROJECT))?;
    }
    Ok(text)
}

/// Looks for a file that was meant to be the one at `path`, which is not there.
///
/// # Errors
/// As [`BadFile::why`].
fn check_names(path: &Path) -> Result<(), String> {
    match misnamed(path) {
        Some(other) => Err(format!("{} is not read: name it {}", other.display(), path.display())),
        None => Ok(()),
    }
}

/// A file beside `path` whose name was meant to be its name.
fn misnamed(path: &Path) -> Option<PathBuf> {
    const NAMES: [&str; 5] =
        ["permissions.yml", "permission.yaml", "permission.yml", "permissions.json", "permissions.toml"];
    let folder = std::fs::read_dir(path.parent()?).ok()?;
    let mut names =
        folder.flatten().map(|entry| entry.file_name()).filter_map(|name| name.into_string().ok());
    let meant = |name: &String| {
        let right = |right: &OsStr| right.eq_ignore_ascii_case(name) && right != OsStr::new(name);
        path.file_name().is_some_and(right) || NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    names.find(meant).map(|name| path.with_file_name(name))
}

/// Inode, length and times of a path and of what it leads to, or why it leads to nothing; cheap to read.
type FileStamp = [Result<(u64, u64, i64, i64, i64), std::io::ErrorKind>; 2];

fn stamp(path: &Path) -> FileStamp {
    use std::os::unix::fs::MetadataExt;
    let of = |meta: std::io::Result<std::fs::Metadata>| {
        let of = |m: std::fs::Metadata| (m.ino(), m.len(), m.mtime(), m.mtime_nsec(), m.ctime_nsec());
        meta.map(of).map_err(|e| e.kind())
    };
    [of(std::fs::symlink_metadata(path)), of(std::fs::metadata(path))]
}

/// The person's rules as they were read last.
struct RulesSeen {
    stamp: FileStamp,
    /// The last good ones, or what stands for those of a start at which the file could not be used.
    rules: Vec<Rule>,
    /// Other files that could not be used.
    faults: Vec<BadFile>,
}

/// Reads the person's file when it changed since the last read. A file that cannot be used (half written, perhaps) changes
/// nothing. What else could not be used at the start asks until it is corrected.
fn reader(
    path: PathBuf,
    seen: RulesSeen,
    others: OtherFaults,
    tools: ToolCatalog,
) -> tiller_engine::RulesReader {
    let seen = Mutex::new(seen);
    Arc::new(move || {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, faults) = (stamp(&path), others());
        if seen.stamp == now && seen.faults == faults {
            return None;
        }
        let mut notices = Vec::new();
        if seen.stamp != now {
            seen.stamp = now;
            let text = read(&path).map(Option::unwrap_or_default);
            let loaded = text.and_then(|text| match rulefile::load(&text, Source::User, &tools) {
                Ok(_) => Ok(text),
                Err(problem) => Err(format!("{}, {problem}", path.display())),
            });
            match loaded {
                Ok(text) => {
                    let mut rules = RuleSet::default();
                    add(&mut rules, Ok(Some(text)), Source::User, &path, &tools, &mut notices);
                    seen.rules = rules.rules().to_vec();
                }
                Err(why) => {
                    let notice = Notice::new(NoticeKind::Config, why)
                        .hint("Until it is corrected, the previous rules stay in use.");
                    notices.push(notice);
                    if seen.faults == faults {
                        return Some((None, notices));
                    }
                }
            }
        }
        seen.faults = faults;
        let mut rules = seen.rules.clone();
        for bad in &seen.faults {
            match bad.rule(&tools) {
                Ok(rule) => rules.push(rule),
                Err(notice) => notices.push(notice),
            }
        }
        Some((Some(rules), notices))
    })
}

/// Adds the rules of a file to `rules`, or the rule that stands for a file that cannot be used.
pub(super) fn add(
    rules: &mut RuleSet,
    text: Result<Option<String>, String>,
    source: Source,
    path: &Path,
    tools: &ToolCatalog,
    notices: &mut Vec<Notice>,
) {
    let loaded = match text {
        Ok(None) => return,
        Ok(Some(text)) => {
            rulefile::load(&text, source, tools).map_err(|problem| format!("{}, {problem}", path.display()))
        }
        Err(why) => Err(why),
    };
    match loaded {
        Ok(loaded) => {
            rules.add(loaded.rules, true);
            notices.extend(loaded.problems.iter().map(|p| {
                Notice::new(NoticeKind::Config, format!("{}, {p}", path.display()))
                    .hint("Until it is corrected, calls that the rule covers ask.")
            }));
        }
        // Its content is unknown, so everything that it may have denied needs approval.
        Err(why) => {
            let bad = BadFile::new(source, why);
            match bad.rule(tools) {
                Ok(rule) => rules.push(rule),
                Err(notice) => notices.push(notice),
            }
            notices.push(bad.notice());
        }
    }
}

/// Adds a rule to the person's file without changing anything else in it.
pub(crate) fn writer(path: PathBuf, tools: ToolCatalog) -> AlwaysWriter {
    Arc::new(move |pattern| {
        change(&path, |old| tiller_permit::rules::rulefile::with_allow(old, pattern, &tools))
    })
}

/// Changes the person's file. `change` returns the new text, or the old one to leave the file as it is.
///
/// # Errors
/// A sentence; the file is then as it was.
pub(crate) fn change(
    path: &Path,
    change: impl Fn(&str) -> Result<String, RuleProblem>,
) -> Result<(), String> {
    let changed = tiller_config::change_private(path, |old| {
        let refused = |e: RuleProblem| ConfigError::Refused(format!("{}, {e}", path.display()));
        Ok(Some(change(old).map_err(refused)?).filter(|new| new != old))
    });
    changed.map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_persons_file_is_read_again_when_it_changed() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("permissions.yaml");
        let seen = RulesSeen { stamp: stamp(&path), rules: Vec::new(), faults: Vec::new() };
        let others: OtherFaults = Arc::new(Vec::new);
        let read = reader(path.clone(), seen, others, tiller_tool::Registry::built_in().catalog());
        assert!(read().is_none(), "there is none");
        std::fs::write(&path, "deny:\n  - read_file(.env)\n").unwrap();
        let (rules, wrong) = read().unwrap();
        assert_eq!((rules.unwrap().len(), wrong.len()), (1, 0));
        assert!(read().is_none(), "it is as it was");
        std::fs::write(&path, "deny: [\n").unwrap();
        let (rules, wrong) = read().unwrap();
        assert!(rules.is_none() && wrong[0].message.contains("line 1"), "{wrong:?}");
        assert!(wrong[0].hints[0].contains("previous rules"), "{wrong:?}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read().unwrap().0.unwrap().len(), 0, "without a file there are no rules");
    }

    const GOOD: &str = "deny:\n  - terminal(touch*)\n";

    /// The verdict on `touch x` in full mode.
    fn verdict(rules: RuleSet) -> tiller_permit::Verdict {
        let tools = tiller_tool::Registry::built_in().catalog();
        let mut policy = Policy::new(Roots::new(Path::new("/w"), None, vec![]), tools.clone());
        policy.rules = rules;
        // What the command line allows does not take back what is not known.
        policy.rules.push(Rule::written(Effect::Allow, Source::Session, "terminal(touch*)", &tools).unwrap());
        let access = tiller_protocol::Access::Run {
            command: "touch x".into(),
            folder: "/w".into(),
            background: false,
        };
        let request = tiller_permit::Request {
            profile: tiller_protocol::Profile::Full,
            human: tiller_permit::Human::Absent,
            agent: "main",
            tool: "terminal",
            touch: tiller_protocol::Touch::Execute,
            access: &[access],
            raw: "{}",
        };
        tiller_permit::decide(&policy, &request)
    }

    #[test]
    fn a_rule_file_that_cannot_be_used_never_counts_as_none() {
        let (tmp, tools) = (tempfile::tempdir().unwrap(), tiller_tool::Registry::built_in().catalog());
        let path = file(tmp.path());
        let judge = || {
            let (mut rules, mut notices) = (RuleSet::default(), Vec::new());
            add(&mut rules, read(&path), Source::User, &path, &tools, &mut notices);
            (verdict(rules), notices)
        };
        let (free, said) = judge();
        assert!(free.strictness() == 0 && said.is_empty(), "there is none");
        for good in [GOOD.to_owned(), format!("\u{feff}{GOOD}"), format!("# mine\r{GOOD}")] {
            std::fs::write(&path, good).unwrap();
            let (denied, said) = judge();
            assert!(denied.strictness() == 2 && said.is_empty(), "{denied:?} {said:?}");
        }
        std::fs::write(&path, "deny: [\n").unwrap();
        let mut all = vec![("malformed", judge())];
        for bad in tiller_fs::testing::BadFile::all() {
            if bad.make(&path, GOOD) {
                all.push((bad.name, judge()));
            }
        }
        for (name, (verdict, said)) in all {
            let tiller_permit::Verdict::Deny { rule, .. } = verdict else { panic!("{name}: {verdict:?}") };
            assert!(rule.contains("permissions.yaml") && said.len() == 1, "{name}: {rule} {said:?}");
            assert!(said[0].message.contains("permissions.yaml"), "{name}: {said:?}");
        }
    }

    #[test]
    fn a_rule_file_of_another_name_is_said_and_never_counts_as_none() {
        let tools = tiller_tool::Registry::built_in().catalog();
        for name in
            ["permissions.yml", "Permissions.yaml", "PERMISSIONS.YML", "permission.yaml", "permissions.json"]
        {
            let tmp = tempfile::tempdir().unwrap();
            let path = file(tmp.path());
            std::fs::write(tmp.path().join(name), GOOD).unwrap();
            let (mut rules, mut said) = (RuleSet::default(), Vec::new());
            add(&mut rules, read(&path), Source::User, &path, &tools, &mut said);
            assert_eq!(verdict(rules).strictness(), 2, "{name}");
            assert!(
                said[0].message.contains("name it") && said[0].message.contains(name),
                "{name}: {said:?}"
            );
            // With the right one beside it, that one counts.
            std::fs::write(&path, "allow: []\n").unwrap();
            assert!(read(&path).unwrap().is_some(), "{name}");
        }
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("permissions.yaml.bak"), GOOD).unwrap();
        assert_eq!(read(&file(tmp.path())), Ok(None));
    }

    #[test]
    fn rules_that_were_read_stay_while_their_file_is_bad() {
        for bad in tiller_fs::testing::BadFile::all() {
            let tmp = tempfile::tempdir().unwrap();
            let path = file(tmp.path());
            std::fs::write(&path, GOOD).unwrap();
            let seen = RulesSeen { stamp: stamp(&path), rules: Vec::new(), faults: Vec::new() };
            let none: OtherFaults = Arc::new(Vec::new);
            let read = reader(path.clone(), seen, none, tiller_tool::Registry::built_in().catalog());
            if !bad.make(&path, GOOD) {
                continue;
            }
            let (rules, said) = read().unwrap();
            assert!(rules.is_none() && said[0].hints[0].contains("previous rules"), "{}: {said:?}", bad.name);
            assert!(read().is_none(), "{}: it is said once", bad.name);
            tiller_fs::testing::remove(&path);
            assert_eq!(read().unwrap().0.unwrap().len(), 0, "{}", bad.name);
        }
    }

    #[test]
    fn bad_settings_and_memory_ask_until_they_are_corrected() {
        let tmp = tempfile::tempdir().unwrap();
        let path = file(tmp.path());
        std::fs::write(&path, GOOD).unwrap();
        let tools = tiller_tool::Registry::built_in().catalog();
        let good = rulefile::load(GOOD, Source::User, &tools).unwrap().rules;
        let bad = Arc::new(Mutex::new(vec![BadFile::new(Source::User, "config.toml is not UTF-8 text")]));
        let seen = RulesSeen { stamp: stamp(&path), rules: good, faults: bad.lock().unwrap().clone() };
        let others = Arc::clone(&bad);
        let others: OtherFaults = Arc::new(move || others.lock().unwrap().clone());
        let read = reader(path, seen, others, tools);
        assert!(read().is_none());
        bad.lock().unwrap().clear();
        assert_eq!(read().unwrap().0.unwrap().len(), 1, "the file's own rule is left");
        bad.lock().unwrap().push(BadFile::new(Source::User, "MEMORY.md is a pipe"));
        let rules = read().unwrap().0.unwrap();
        assert_eq!((rules.len(), rules[1].words().contains("MEMORY.md is a pipe")), (2, true));
    }

    #[test]
    fn each_bad_file_of_a_trusted_folder_restricts() {
        let tools = tiller_tool::Registry::built_in().catalog();
        let kinds = tiller_provider::ApiFormats::built_in().kinds();
        for bad in tiller_fs::testing::BadFile::all() {
            for name in [".tiller/hooks.toml", tiller_config::PROJECT] {
                let tmp = tempfile::tempdir().unwrap();
                std::fs::create_dir(tmp.path().join(".tiller")).unwrap();
                if !bad.make(&tmp.path().join(name), "# settings\n") {
                    continue;
                }
                let folder = tiller_permit::trust::discover(tmp.path(), &tools);
                let (all, _) = crate::app::restricting::bad_of_folder(&folder, &kinds);
                assert_eq!(all.len(), 1, "{} {name}: {all:?}", bad.name);
                assert!(all[0].why.starts_with(name), "{} {name}: {all:?}", bad.name);
            }
        }
    }
}
