//! Results of the self-test in a file, so that only the first start after a boot pays for it. They hold for one boot of
//! one kernel, one build of this program, one `bwrap` and one set of namespaces and kernel settings: results of any
//! other are never used.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Capability, Held};
use crate::confine::Method;
use crate::confinement::Confinement;

/// Name of the file.
const FILE: &str = "sandbox.json";
/// A longer file is not read, in bytes.
const LONGEST: u64 = 64 << 10;

/// Kernel settings that decide what a confined process can do; some of them do not exist everywhere.
const SETTINGS: &[&str] = &[
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/version",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_net_namespaces",
    "/sys/kernel/security/lsm",
];

/// What the results hold for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    method: String,
    landlock: u32,
    version: String,
    /// Of the boot: it differs after each start of the kernel.
    boot: String,
    settings: Vec<Option<String>>,
    /// User, privileges, filters and namespaces of this process.
    process: Vec<String>,
    /// This program and `bwrap`: path, inode, size, change.
    files: Vec<Option<String>>,
}

impl Key {
    /// Of this process. `None` where the boot cannot be told: then nothing is kept.
    pub(crate) fn now(method: Method, found: &Confinement, program: &Path) -> Option<Self> {
        let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let boot = read("/proc/sys/kernel/random/boot_id")?;
        let status = read("/proc/self/status")?;
        let told = |line: &&str| {
            ["Uid:", "Gid:", "Cap", "NoNewPrivs:", "Seccomp:"].iter().any(|n| line.starts_with(n))
        };
        let mut process: Vec<String> = status.lines().filter(told).map(str::to_owned).collect();
        for name in ["mnt", "net", "pid", "user"] {
            let link = std::fs::read_link(format!("/proc/self/ns/{name}")).ok()?;
            process.push(link.display().to_string());
        }
        let stamp = |path: &Path| {
            let meta = std::fs::metadata(path).ok()?;
            let (seconds, nanoseconds) = (meta.ctime(), meta.ctime_nsec());
            Some(format!("{} {} {} {seconds}.{nanoseconds}", path.display(), meta.ino(), meta.size()))
        };
        Some(Self {
            method: method.name().into(),
            landlock: found.landlock,
            version: env!("CARGO_PKG_VERSION").into(),
            boot,
            settings: SETTINGS.iter().map(|path| read(path)).collect(),
            process,
            files: vec![stamp(program), found.bubblewrap.as_deref().and_then(stamp)],
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Kept {
    key: Key,
    results: Vec<(Capability, Held)>,
}

/// The results that are kept for `key` in `folder`, else those of `test`, which are kept if every probe could run.
pub(crate) fn remembered(
    folder: &Path,
    key: Option<&Key>,
    test: impl FnOnce() -> Vec<(Capability, Held)>,
) -> Vec<(Capability, Held)> {
    let Some(key) = key else { return test() };
    if let Some(kept) = read(&folder.join(FILE)).filter(|kept| kept.key == *key && complete(&kept.results)) {
        return kept.results;
    }
    let results = test();
    if complete(&results) {
        // Where it cannot be written, the next start tests again.
        let _ = write(folder, &Kept { key: key.clone(), results: results.clone() });
    }
    results
}

/// Every capability once, each with a result.
fn complete(results: &[(Capability, Held)]) -> bool {
    let known = |c: &Capability| {
        matches!(
            results.iter().filter(|(r, _)| r == c).collect::<Vec<_>>()[..],
            [(_, Held::Yes | Held::No(_))]
        )
    };
    results.len() == Capability::ALL.len() && Capability::ALL.iter().all(known)
}

fn read(path: &Path) -> Option<Kept> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    // No other user may have written it.
    let own = meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0;
    if !meta.is_file() || !own || meta.len() > LONGEST {
        return None;
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn write(folder: &Path, kept: &Kept) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(kept)?)?;
    file.persist(folder.join(FILE))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(first: Held) -> Vec<(Capability, Held)> {
        let mut all: Vec<_> = Capability::ALL.iter().map(|c| (*c, Held::Yes)).collect();
        all[0].1 = first;
        all
    }

    fn key() -> Key {
        Key::now(Method::Landlock, &Confinement::default(), Path::new("/bin/sh")).unwrap()
    }

    #[test]
    fn results_hold_for_one_boot_kernel_program_and_method() {
        let tmp = tempfile::tempdir().unwrap();
        let folder = tmp.path().join("cache");
        let open = results(Held::No("it was written".into()));
        let ask =
            |key: &Key, test: &dyn Fn() -> Vec<(Capability, Held)>| remembered(&folder, Some(key), test);
        assert_eq!(ask(&key(), &|| open.clone()), open);
        assert_eq!(ask(&key(), &|| panic!("tested again")), open);
        let changes: [fn(&mut Key); 7] = [
            |k| k.boot.push('x'),
            |k| k.settings[0] = Some("another kernel".into()),
            |k| k.version.push('x'),
            |k| k.files[0] = None,
            |k| k.files[1] = Some("another bwrap".into()),
            |k| k.process.push("another namespace".into()),
            |k| k.method.push('x'),
        ];
        for change in changes {
            remembered(&folder, Some(&key()), || open.clone());
            let mut other = key();
            change(&mut other);
            let new = results(Held::No("new".into()));
            assert_eq!(ask(&other, &|| new.clone()), new, "{other:?}");
        }
        assert_eq!(remembered(&folder, None, || results(Held::Yes)), results(Held::Yes), "no boot, no cache");
    }

    #[test]
    fn what_could_not_be_tested_is_tested_again() {
        let tmp = tempfile::tempdir().unwrap();
        let unknown = results(Held::Unknown("no perl".into()));
        assert_eq!(remembered(tmp.path(), Some(&key()), || unknown.clone()), unknown);
        let after = remembered(tmp.path(), Some(&key()), || results(Held::Yes));
        assert_eq!(after, results(Held::Yes));
        // A file that other users can write, or that is malformed, counts for nothing.
        std::fs::set_permissions(tmp.path().join(FILE), std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .unwrap();
        let open = results(Held::No("open".into()));
        assert_eq!(remembered(tmp.path(), Some(&key()), || open.clone()), open);
        std::fs::write(tmp.path().join(FILE), "[]").unwrap();
        assert_eq!(remembered(tmp.path(), Some(&key()), || open.clone()), open);
    }
}
