//! What a command costs more in the sandbox, in system calls: they depend on neither the machine's load nor the clock.

use std::path::Path;

use crate::common::{Place, TILLER, run, strace};

/// Questions about paths of one confined `true`, those of the trial of bubblewrap and of the search for hard links included,
/// which a session makes once. Not the rules of Landlock: it has one for each entry of a folder that contains something
/// hidden. `None`: they cannot be counted here.
fn look_ups(place: &Place, method: &str) -> Option<usize> {
    let log = place.user.join("calls");
    let log_text = log.to_str()?;
    if !strace() {
        return None;
    }
    let args = ["-f", "-qq", "-o", log_text, TILLER, "sandbox", "run", "--method", method, "--", "/bin/true"];
    let out = run(place.program("strace", &args), b"");
    if out.code != Some(0) {
        eprintln!("skipped: {method}: {}", out.stderr);
        return None;
    }
    let names = ["readlink", "readlinkat", "statx", "stat", "lstat"];
    let mut found = 0;
    for line in std::fs::read_to_string(log).unwrap().lines() {
        // The number of the process, the name of the call, and its arguments. A call that was interrupted stands there twice.
        let rest = line.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
        let Some((name, arguments)) = rest.split_once('(') else { continue };
        // An empty path asks for the size of an open file. Where a process of the command still ends when the command has
        // ended, the statuses of all processes of the machine are read, so the number of these depends on the load.
        let open_file = arguments.split_once(' ').is_some_and(|(_, path)| path.starts_with("\"\","));
        if names.contains(&name) && !open_file {
            found += 1;
        }
    }
    Some(found)
}

/// Files in folders of the home folder and of the workspace.
fn fill(place: &Place, home: &Path) {
    for folder in [place.work.join("src"), place.work.clone(), home.join(".config/app"), home.join(".cache")]
    {
        std::fs::create_dir_all(&folder).unwrap();
        for n in 0..300 {
            std::fs::write(folder.join(format!("file{n}")), "x").unwrap();
        }
    }
}

#[test]
fn a_confined_command_looks_up_few_paths_however_much_lies_in_the_folders() {
    let place = Place::new();
    let home = place.env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| home.clone()).unwrap();
    for folder in [".config/app", ".cache", ".ssh"] {
        std::fs::create_dir_all(Path::new(&home).join(folder)).unwrap();
    }
    std::fs::create_dir_all(place.work.join("src")).unwrap();
    // Each of some 520 secret places is asked about twice: for its links, and for the launch. A third time would be too much.
    for (method, most) in [("landlock", 1_250), ("bubblewrap", 1_550)] {
        let Some(few) = look_ups(&place, method) else { continue };
        println!("{method}: {few} questions about paths");
        assert!(few < most, "{method}: {few}");
        fill(&place, Path::new(&home));
        let Some(many) = look_ups(&place, method) else { continue };
        assert!(many < few + few / 10, "{method}: {few}, and {many} with many files");
    }
}
