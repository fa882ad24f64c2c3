//! What a command costs more in the sandbox, in system calls: they depend on neither the machine's load nor the clock.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Place, TILLER, run};

/// System calls of one confined `true` by their names, and all of them; of the trial of bubblewrap at the start, too, which a
/// session makes once. `None`: they cannot be counted here.
fn calls(place: &Place, method: &str) -> Option<(BTreeMap<String, usize>, usize)> {
    let log = place.user.join("calls");
    let log_text = log.to_str()?;
    let args = ["-f", "-qq", "-o", log_text, TILLER, "sandbox", "run", "--method", method, "--", "/bin/true"];
    let out = run(place.program("strace", &args), b"");
    if out.code != Some(0) {
        eprintln!("skipped: {method}: {}", out.stderr);
        return None;
    }
    let mut all = BTreeMap::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        // The number of the process, the name of the call, and its arguments. A call that was interrupted stands there twice.
        let rest = line.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
        if let Some((name, _)) = rest.split_once('(').filter(|_| !rest.starts_with('<')) {
            *all.entry(name.to_owned()).or_default() += 1;
        }
    }
    let sum = all.values().sum();
    Some((all, sum))
}

/// Files in the folders of home folder and workspace, but not directly in the home folder: Landlock has a rule for each
/// entry of a folder that contains something hidden.
fn fill(place: &Place, home: &Path) {
    for folder in [place.work.join("src"), place.work.clone(), home.join(".config/app"), home.join(".cache")] {
        std::fs::create_dir_all(&folder).unwrap();
        for n in 0..300 {
            std::fs::write(folder.join(format!("file{n}")), "x").unwrap();
        }
    }
}

#[test]
fn a_confined_command_makes_few_system_calls_however_much_lies_in_the_folders() {
    let place = Place::new();
    let home = place.env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| home.clone()).unwrap();
    for folder in [".config/app", ".cache", ".ssh"] {
        std::fs::create_dir_all(Path::new(&home).join(folder)).unwrap();
    }
    std::fs::create_dir_all(place.work.join("src")).unwrap();
    for (method, most) in [("landlock", 420), ("bubblewrap", 650)] {
        let Some((before, few)) = calls(&place, method) else { continue };
        // Those that look up paths.
        let names = ["readlink", "readlinkat", "statx", "newfstatat", "stat", "lstat"];
        let looked: usize = names.iter().filter_map(|name| before.get(*name)).sum();
        println!("{method}: {few} system calls, {looked} of them look up paths");
        assert!(looked < most, "{method}: {looked} look-ups: {before:#?}");
        fill(&place, Path::new(&home));
        let Some((after, many)) = calls(&place, method) else { continue };
        // The allocator and the scheduler make some that differ from run to run.
        assert!(many < few + few / 10, "{method}: {few} calls, {many} with many files: {before:#?} {after:#?}");
    }
}
