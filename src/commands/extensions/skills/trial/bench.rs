//! The runs of a trial, each in a copy of the folder.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tiller_engine::compare::scratch::{Scratch, ScratchLimits, lay_out};
use tiller_permit::trust::discover;
use tiller_protocol::Notice;

use super::{Case, Run, TrialSkill};
use crate::app::{Setup, files};
use crate::commands::args::SkillTrial;
use crate::commands::batch::results::CaseResult;
use crate::commands::extensions::skills::fetch::Interrupt;
use crate::commands::extensions::skills::user;
use crate::commands::say_beside;
use crate::commands::sessions::one_line;

/// Time limit of one run.
const RUN: Duration = Duration::from_secs(15 * 60);
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of the events of a run at most.
const EVENTS: u64 = 64 << 20;

/// What all runs share.
pub(super) struct Bench<'a> {
    pub(super) setup: &'a Setup,
    pub(super) trial: &'a SkillTrial,
    pub(super) skill: &'a TrialSkill,
    pub(super) stop: &'a Interrupt,
    /// Dollars of all runs.
    pub(super) budget: f64,
    pub(super) runs: usize,
}

impl Bench<'_> {
    /// Runs all prompts until the money is used up.
    pub(super) fn all(&self, meant: &[String], others: &[String]) -> Result<Vec<Case>, Notice> {
        let mut cases = Vec::new();
        let (mut spent, mut ran) = (0.0, 0);
        let both =
            meant.iter().map(|prompt| (prompt, true)).chain(others.iter().map(|prompt| (prompt, false)));
        for (prompt, meant) in both {
            let wanted = if meant { 2 } else { 1 };
            let left = self.budget - spent;
            if left <= 0.0 || self.stop.hit() {
                break;
            }
            // What a run leaves over is for the later ones.
            let limit = left / (self.runs - ran) as f64;
            let with = self.one(prompt, true, limit)?;
            let without =
                if meant && !self.stop.hit() { Some(self.one(prompt, false, limit)?) } else { None };
            spent += [Some(&with), without.as_ref()]
                .into_iter()
                .flatten()
                .filter_map(|run| run.result.cost_usd)
                .sum::<f64>();
            ran += wanted;
            say_beside(&format!("{ran} of {} runs", self.runs));
            cases.push(Case { prompt: prompt.clone(), meant, with, without });
        }
        Ok(cases)
    }

    /// One run in a copy of the folder.
    fn one(&self, prompt: &str, with: bool, limit: f64) -> Result<Run, Notice> {
        let tmp = tiller_tool::shell::own_folder::make("try");
        let tmp = tmp.map_err(|e| user(format!("There is no room for temporary files: {e}.")))?;
        // Programs and rules see the real path.
        let root = tmp.path().canonicalize().map_err(|e| user(format!("{}: {e}.", tmp.path().display())))?;
        let copy =
            Scratch::new(root.join("folder")).map_err(|e| user(format!("The copy cannot be made: {e}.")))?;
        self.copy(copy.path())?;
        if self.skill.files.is_some() {
            self.compare(copy.path())?;
        }
        let mut args: Vec<String> = ["exec", "--json", "--ephemeral"].map(str::to_owned).into();
        args.push(format!("--max-cost={limit:.6}"));
        let common = &self.trial.common;
        args.extend(common.model.iter().map(|model| format!("--model={model}")));
        let profile = common.profile.and_then(|profile| clap::ValueEnum::to_possible_value(&profile));
        args.push(format!(
            "--profile={}",
            profile.as_ref().map_or("auto-edit", |profile| profile.get_name())
        ));
        if !with {
            args.push(format!("--without-skill={}", self.skill.name));
        } else if let Some(files) = &self.skill.files {
            let into = without_links(copy.path(), &[".tiller", "skills", &self.skill.name])
                .map_err(|e| user(format!("The skill cannot be copied: {e}.")))?;
            // A skill of the project is in the copy already, where git does not ignore it.
            match std::fs::remove_dir_all(&into) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(user(format!("The skill cannot be copied: {e}.")));
                }
                _ => {}
            }
            let made = std::fs::create_dir_all(&into).map_err(|e| e.to_string());
            made.and_then(|()| tiller_fs::archive::copy(files.folder(), &into, tiller_skills::packs::LIMITS))
                .map_err(|why| user(format!("The skill cannot be copied: {why}.")))?;
        }
        if self.skill.files.is_some() {
            // It was trusted, and the copy is the same but for the skill.
            args.push("--trust".into());
        }
        args.push("-".into());
        let events = self.start(&args, copy.path(), &root, prompt)?;
        let used = loads(&events, &self.skill.name);
        let result = outcome(&events);
        let checked = match &self.trial.check {
            Some(check) if !self.stop.hit() => Some(self.check(check, copy.path(), &root)?),
            _ => None,
        };
        Ok(Run { used, result, checked })
    }

    /// Refuses a copy that brings more than what the user trusts: the folder may have changed since it was looked at.
    fn compare(&self, copy: &Path) -> Result<(), Notice> {
        let known = self.setup.folder_config.items();
        let known: HashSet<(String, String)> = known.into_iter().map(|item| (item.path, item.hash)).collect();
        let found = discover(copy, &self.setup.tools.catalog()).items();
        match found.into_iter().find(|item| !known.contains(&(item.path.clone(), item.hash.clone()))) {
            None => Ok(()),
            Some(new) => {
                Err(user(format!("{} has changed since this folder was trusted.", one_line(&new.path)))
                    .hint("`tiller trust` shows what changed, and asks."))
            }
        }
    }

    /// Copies the files that snapshots hold: without what git ignores.
    fn copy(&self, into: &Path) -> Result<(), Notice> {
        let Some(keeper) = files::keeper(self.setup) else {
            return Err(user("A trial needs snapshots of this folder, which the settings turn off.")
                .hint("Set enabled = true in [snapshots] of config.toml."));
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| user(format!("The copy cannot be made: {e}.")))?;
        runtime.block_on(async {
            let state = keeper.run(|shadow| shadow.snapshot()).await.map_err(|e| e.notice())?.id;
            lay_out(&keeper, state, into, ScratchLimits::default()).await
        })
    }

    /// Runs Tiller. Returns its events.
    fn start(&self, args: &[String], folder: &Path, root: &Path, prompt: &str) -> Result<String, Notice> {
        let failed = |e: std::io::Error| user(format!("The run cannot be started: {e}."));
        let (ask, out) = (root.join("prompt"), root.join("events"));
        std::fs::write(&ask, prompt).map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(args).current_dir(folder);
        command.stdin(std::fs::File::open(&ask).map_err(failed)?).stderr(Stdio::null());
        command.stdout(std::fs::File::create(&out).map_err(failed)?);
        let mut child = command.spawn().map_err(failed)?;
        self.wait(&mut child).map_err(failed)?;
        let mut events = String::new();
        std::fs::File::open(&out)
            .and_then(|file| file.take(EVENTS).read_to_string(&mut events))
            .map_err(|e| user(format!("The events of a run cannot be read: {e}.")))?;
        Ok(events)
    }

    /// Runs the user's check on the files that a run left, in the sandbox.
    fn check(&self, check: &str, folder: &Path, root: &Path) -> Result<bool, Notice> {
        let failed = |e: std::io::Error| user(format!("The check cannot be started: {e}."));
        let program = std::env::current_exe().map_err(failed)?;
        let out = std::fs::File::create(root.join("check")).map_err(failed)?;
        let errors = out.try_clone().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["sandbox", "run", "--", "/bin/sh", "-c", check])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .spawn()
            .map_err(failed)?;
        Ok(self.wait(&mut child).map_err(failed)?.is_some_and(|status| status.success()))
    }

    /// Waits for the end of a process; `None`: it took too long and was ended.
    fn wait(&self, child: &mut Child) -> std::io::Result<Option<std::process::ExitStatus>> {
        let until = Instant::now() + RUN;
        let mut asked = None;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            let now = Instant::now();
            if asked.is_none() && (self.stop.hit() || now >= until) {
                // It ends what it has started.
                let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
                if let Some(pid) = pid {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                }
                asked = Some(now);
            }
            if asked.is_some_and(|at| now > at + Duration::from_secs(20)) {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            std::thread::park_timeout(LOOK);
        }
    }
}

/// How a run ended. One that did not end has cost something, too.
fn outcome(events: &str) -> CaseResult {
    let (mut result, ended) = CaseResult::read_so_far(events);
    if !ended || result.status.is_empty() {
        result.status = "failed".into();
    }
    result
}

/// Whether the agent loaded the skill.
fn loads(events: &str, name: &str) -> bool {
    events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).any(|event| {
        event["type"] == "tool_finished"
            && event["name"] == "skill_view"
            && event["ok"] == true
            && event["arguments"]["name"] == name
    })
}

/// A folder in a copy of a project, by the names on the way. A link on the way is removed: it would lead out of the copy.
fn without_links(copy: &Path, names: &[&str]) -> std::io::Result<PathBuf> {
    let mut path = copy.to_owned();
    for name in names {
        path.push(name);
        if path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_that_did_not_end_has_its_cost() {
        let spent = json!({"type": "agent_changed", "view": {"id": "main", "cost": tiller_protocol::Cost::from_usd(0.25).0}});
        let result = outcome(&format!("{spent}\n"));
        assert_eq!((result.status.as_str(), result.cost_usd), ("failed", Some(0.25)));
    }

    #[test]
    fn a_load_of_this_very_skill_counts() {
        let event = |name: &str, ok: bool| {
            json!({"type": "tool_finished", "name": "skill_view", "ok": ok, "arguments": {"name": name}})
                .to_string()
        };
        let loaded = format!("{}\nnoise\n{}\n", event("other", true), event("deploy", true));
        assert!(loads(&loaded, "deploy") && loads(&loaded, "other"));
        assert!(!loads(&event("deploy", false), "deploy") && !loads("", "deploy"));
    }

    #[test]
    fn a_link_on_the_way_to_the_skill_of_a_copy_is_not_followed() {
        let tmp = tempfile::tempdir().unwrap();
        let (copy, own) = (tmp.path().join("copy"), tmp.path().join("own"));
        std::fs::create_dir_all(own.join("skills/deploy")).unwrap();
        for link in [".tiller", ".tiller/skills", ".tiller/skills/deploy"] {
            let _ = std::fs::remove_dir_all(&copy);
            std::fs::create_dir_all(copy.join(link).parent().unwrap()).unwrap();
            let depth = link.matches('/').count();
            let leads = [own.clone(), own.join("skills"), own.join("skills/deploy")][depth].clone();
            std::os::unix::fs::symlink(leads, copy.join(link)).unwrap();
            let path = without_links(&copy, &[".tiller", "skills", "deploy"]).unwrap();
            assert_eq!(path, copy.join(".tiller/skills/deploy"));
            assert!(!path.exists() && own.join("skills/deploy").is_dir(), "{link}");
        }
    }
}
