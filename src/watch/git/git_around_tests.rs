use super::*;
use crate::git::tests::sh;

fn look(folder: &Path, home: &Path) -> GitConfiguration {
    let env = vec![
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOME".to_owned(), home.display().to_string()),
        ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
    ];
    GitSurroundings::new(ChildEnv::new(env)).git(folder, Path::new("git")).unwrap()
}

struct Place {
    tmp: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tmp.path().join("work/src")).unwrap();
        std::fs::create_dir(tmp.path().join("home")).unwrap();
        let place = Self { tmp };
        place.sh("git init -q .; git config user.name t; git config user.email t@t; echo a >f.txt; git add .; git commit -qm one");
        place
    }

    fn work(&self) -> PathBuf {
        self.tmp.path().join("work")
    }

    fn sh(&self, script: &str) {
        sh(&self.work(), script);
    }

    fn look(&self) -> GitConfiguration {
        look(&self.work().join("src"), &self.tmp.path().join("home"))
    }
}

#[test]
fn an_ordinary_repository_needs_nothing() {
    let place = Place::new();
    place.sh("git config core.autocrlf input; git config remote.origin.url git@example.org:x; git config core.fsmonitor false");
    assert_eq!(place.look(), GitConfiguration { quiet: true, ..GitConfiguration::default() });
    // Nor in a folder without a repository.
    assert!(look(place.tmp.path(), &place.tmp.path().join("home")).quiet);
}

#[test]
fn what_settings_keep_from_running_does_not_ask() {
    let place = Place::new();
    place.sh("git config core.fsmonitor ./x; git config core.hooksPath hooks; git config diff.d.textconv ./x; git config filter.f.clean ./x");
    let found = place.look();
    assert!(!found.quiet);
    assert_eq!((&found.any, &found.content, &found.compare), (&None, &None, &None));
    let set = |key: &str, value: &str| found.settings.contains(&(key.into(), value.into()));
    assert!(set("diff.d.textconv", "/bin/cat") && set("filter.f.clean", ""), "{found:?}");
}

#[test]
fn a_filter_that_files_use_asks_for_what_reads_them() {
    let place = Place::new();
    place.sh("git config filter.f.clean ./x; echo '*.txt filter=f' >.gitattributes");
    let why = place.look().content.unwrap();
    assert!(why.contains("the filter 'f'"), "{why}");
    place.sh("echo '*.none filter=f' >.gitattributes");
    assert_eq!(place.look().content, None);
    place.sh("echo '*.txt filter=f' >.git/info/attributes");
    assert!(place.look().content.is_some());
    // A name that cannot be part of a setting.
    place.sh("rm .git/info/attributes; git config \"filter.a'b=c.clean\" ./x");
    assert!(place.look().content.is_some());
}

#[test]
fn the_persons_own_lfs_runs_unless_the_repository_steers_it() {
    let place = Place::new();
    let config = "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n";
    std::fs::write(place.tmp.path().join("home/.gitconfig"), config).unwrap();
    place.sh("echo '*.txt filter=lfs' >.gitattributes; git config lfs.repositoryformatversion 0");
    let found = place.look();
    assert!(found.quiet && found.content.is_none() && found.settings.is_empty(), "{found:?}");
    place.sh("git config lfs.extension.x.clean ./evil");
    assert!(place.look().content.is_some());
    place.sh("git config --unset lfs.extension.x.clean; git config filter.lfs.clean ./evil");
    assert!(place.look().content.is_some());
}

#[test]
fn other_places_and_other_programs_to_compare_ask() {
    let place = Place::new();
    place.sh("git config diff.external ./x");
    assert!(place.look().compare.unwrap().contains("--no-ext-diff"));
    place.sh("git config --unset diff.external; git config diff.d.command ./x");
    assert!(place.look().compare.is_some());
    place.sh("git config core.worktree /");
    assert!(place.look().any.unwrap().contains("core.worktree"));
    place.sh("git config core.worktree ..");
    assert_eq!(place.look().any, None);
    place.sh("git config hook.x.command ./x");
    assert!(place.look().any.unwrap().contains("hook.x.command"));
    place.sh("git config --unset hook.x.command; cp -r .git src/bare; rm -r src/bare/hooks");
    let home = place.tmp.path().join("home");
    assert!(look(&place.work().join("src/bare"), &home).any.unwrap().contains("nested repository"));
    assert!(look(&place.work().join(".git"), &home).any.is_some());
}

#[test]
fn submodules_are_looked_into() {
    let place = Place::new();
    place.sh("git init -q sub; cd sub; git config user.name t; git config user.email t@t; echo a >g.txt; echo '*.txt filter=f' >.gitattributes; git add .; git commit -qm one; cd ..; git add sub 2>/dev/null; git commit -qm two");
    assert!(place.look().quiet);
    place.sh("git -C sub config diff.d.textconv ./x");
    let found = place.look();
    assert!(!found.quiet && found.settings.iter().any(|(k, _)| k == "diff.d.textconv"), "{found:?}");
    place.sh("git -C sub config filter.f.clean ./x");
    assert!(place.look().content.unwrap().contains("in the submodule"));
}

#[test]
fn tracked_names_are_listed_below_the_folder() {
    let place = Place::new();
    place.sh("echo a >src/-x; git add src");
    let env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let around = GitSurroundings::new(ChildEnv::new(env));
    assert_eq!(around.tracked(&place.work().join("src"), Path::new("git")).unwrap(), [PathBuf::from("-x")]);
}

#[test]
fn work_trees_submodules_and_files_of_the_repository_stay_with_it() {
    let place = Place::new();
    let home = place.tmp.path().join("home");
    let plain = |folder: &str| {
        let found = look(&place.tmp.path().join(folder), &home);
        assert_eq!(found.any, None, "{folder}");
    };
    place.sh("git worktree add -q ../linked; git init -q ../mod; git -C ../mod -c user.name=t -c user.email=t@t commit -q --allow-empty -m m");
    plain("linked");
    place.sh("git -c protocol.file.allow=always submodule --quiet add ../mod mod 2>/dev/null");
    plain("work/mod");
    place.sh("echo '[a]' >conf; git config include.path ../conf; git config blame.ignoreRevsFile .revs; : >.revs; git config core.excludesFile skip; ln -s ../conf .git/inside");
    plain("work/src");
}

#[test]
fn what_leads_out_of_the_repository_asks() {
    for script in [
        "git config blame.ignoreRevsFile ../../out",
        "git config core.excludesFile '~/x'",
        "git config mailmap.file \"$PWD/../out\"",
        "git config include.path ../../out",
        "echo '[include]\npath = ../out' >conf; git config include.path ../conf",
        "ln -s ../../out .git/shallow",
        "mkdir .git/rebase-merge; ln -s ../../../out .git/rebase-merge/done",
        "mkdir -p .git/worktrees/w; ln -s ../../../../out .git/worktrees/w/gitdir",
        "echo ../../../other/.git/objects >.git/objects/info/alternates",
        "mv .git ../moved; ln -s ../moved .git",
        "mv .git ../moved; echo 'gitdir: ../moved' >.git",
    ] {
        let place = Place::new();
        std::fs::write(place.tmp.path().join("out"), "[a]\n\tk = secret\n").unwrap();
        place.sh(script);
        assert!(place.look().any.is_some(), "{script}");
    }
}
