//! What there is, and one skill.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tiller_protocol::Notice;
use tiller_protocol::notice::{capital, sentence};
use tiller_protocol::skill::{SkillRecord, SkillTrial};
use tiller_skills::packs::PackState;
use tiller_skills::{Skill, Skills, WithheldKind};

use super::describe::{body, contents_json, count, describe, short};
use super::fetch::{self, Interrupt, shown};
use super::{install, user};
use crate::app::extensions::{packs, plugins};
use crate::app::{Setup, definitions};
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

/// Characters of a description that are shown.
const ABOUT: usize = 110;

/// The skills of this folder; those of the project only when it is trusted.
pub(super) fn skills(setup: &Setup) -> Result<Skills, Notice> {
    let trusted = setup.trust(&setup.open_store()?).may_load();
    let mut places = setup.places.clone();
    places.plugins = plugins::in_use(setup);
    let disabled = &setup.config.config.skills.disabled;
    // What is left out is listed with its reason.
    Ok(definitions::skills::read(&places, &setup.folder_config, trusted, disabled).0)
}

/// How often skills were used and what came of it, by name.
fn records(setup: &Setup) -> Result<BTreeMap<String, SkillRecord>, Notice> {
    setup.open_store()?.skill_uses().records().map_err(|e| e.notice())
}

/// The state of a pack, for people.
fn state(state: &PackState) -> String {
    state.why().map_or_else(|| "used".into(), |why| format!("not used: {}", one_line(&why)))
}

/// Prints all skills, then all packs.
pub(super) fn list(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let all = skills(setup)?;
    let home = packs::home(setup);
    let installed = home.list().map_err(|why| user(format!("{why}.")))?;
    let records = records(setup)?;
    let mut text = String::new();
    let rows: Vec<(&Arc<Skill>, &str)> = all
        .iter()
        .map(|skill| (skill, "used"))
        .chain(all.hidden().iter().map(|skill| (skill, "hidden by another of this name")))
        .chain(all.disabled().map(|skill| (skill, "turned off in the settings")))
        .collect();
    let wide = rows.iter().map(|(skill, _)| skill.name.len()).max().unwrap_or_default().min(40);
    for (skill, used) in &rows {
        let from = skill.source();
        if json {
            text.push_str(&json_line(&json!({
                "kind": "skill", "name": skill.name, "description": skill.description, "from": from,
                "pack": skill.pack, "file": skill.file.display().to_string(), "used": *used == "used", "state": used,
                "uses": records.get(&skill.name).map_or(0, |record| record.uses),
                "record": records.get(&skill.name),
            })));
            continue;
        }
        let about = match *used {
            "used" => {
                let record = records.get(&skill.name).filter(|record| record.uses > 0);
                let words = record.map(|record| format!(" ({})", record.words())).unwrap_or_default();
                skill.description.chars().take(ABOUT).collect::<String>() + &words
            }
            other => format!("({other})"),
        };
        text.push_str(&format!("{:wide$}  {:14}  {}\n", one_line(&skill.name), from, one_line(&about)));
    }
    for flaw in all.flaws().iter().filter(|flaw| flaw.skipped) {
        let why = one_line(&flaw.problem.to_string());
        match json {
            true => text.push_str(&json_line(&json!({
                "kind": "skill", "name": flaw.skill, "used": false, "state": format!("left out: {why}"),
            }))),
            false => text.push_str(&format!("left out: {why}\n")),
        }
    }
    text.push_str(&withheld(&all, json));
    for pack in &installed {
        let now = home.state(pack);
        let files = pack.files.len();
        if json {
            text.push_str(&json_line(&json!({
                "kind": "pack", "name": pack.name, "source": pack.origin.source, "commit": pack.origin.commit,
                "files": files, "used": now == PackState::Used, "state": state(&now),
            })));
            continue;
        }
        let commit =
            pack.origin.commit.as_deref().map(|commit| format!(" at {}", short(commit))).unwrap_or_default();
        let name = one_line(&pack.name);
        let from = match pack.origin.is_built_in() {
            true => "built in".to_owned(),
            false => format!("from {}", shown(&pack.origin.source)),
        };
        let remedy = now.remedy(&pack.name).map(|remedy| format!("; {remedy}")).unwrap_or_default();
        text.push_str(&format!(
            "pack {name}: {}, {from}{commit}, {}{remedy}\n",
            count(files, "file"),
            state(&now)
        ));
    }
    if rows.is_empty() && installed.is_empty() && !json {
        text.push_str("No skills. `tiller skills new NAME` makes one, `tiller skills install SOURCE` installs a pack.\n");
    }
    say(&text)
}

/// The skills, commands and styles that the user has not agreed to, with what to do.
fn withheld(all: &Skills, json: bool) -> String {
    let line = |item: &tiller_skills::WithheldItem| {
        let kind = match item.kind {
            WithheldKind::Skill => "skill",
            WithheldKind::Command => "command",
            WithheldKind::Style => "style",
            // It has a line of its own.
            WithheldKind::Pack => return String::new(),
        };
        let from = item.source();
        if json {
            return json_line(&json!({
                "kind": kind, "name": item.name, "description": item.description, "from": from, "pack": item.pack,
                "file": item.file.display().to_string(), "used": false, "state": format!("not trusted: {}", item.why),
                "remedy": item.remedy,
            }));
        }
        format!(
            "{kind} {}, {}: not trusted: {}; {}\n",
            one_line(&item.name),
            one_line(&from),
            one_line(&item.why),
            one_line(&item.remedy)
        )
    };
    all.withheld().iter().map(line).collect()
}

/// Prints what the registry has.
pub(super) fn registry(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let stop = Interrupt::listen();
    let index = fetch::registry(setup, &stop);
    if stop.hit() {
        return Ok(Exit::Interrupted);
    }
    let (index, url) = index.map_err(|why| user(format!("{why}.")))?;
    let installed = packs::home(setup).list().unwrap_or_default();
    let mut text = String::new();
    for entry in &index.packs {
        let here = installed.iter().any(|pack| pack.name == entry.name);
        match json {
            true => text.push_str(&json_line(&json!({
                "name": entry.name, "description": entry.description, "source": entry.source, "installed": here,
            }))),
            false => {
                let about: String = entry.description.chars().take(ABOUT).collect();
                let mark = if here { " (installed)" } else { "" };
                text.push_str(&format!("{:24}  {}{mark}\n", one_line(&entry.name), one_line(&about)));
            }
        }
    }
    if index.packs.is_empty() && !json {
        text.push_str(&format!("{} lists no packs.\n", shown(&url)));
    }
    say(&text)
}

/// Prints one skill, or what a pack brings.
pub(super) fn show(setup: &Setup, name: &str, json: bool) -> Result<Exit, Notice> {
    let all = skills(setup)?;
    let home = packs::home(setup);
    let installed = home.list().map_err(|why| user(format!("{why}.")))?;
    if let Some(skill) = all.get(name) {
        let record = records(setup)?.remove(&skill.name).unwrap_or_default();
        return say(&if json { skill_json(skill, &record) } else { skill_text(skill, &record) });
    }
    let Some(pack) = installed.iter().find(|pack| pack.name == name) else {
        let flaw = all.flaws().iter().find(|flaw| flaw.skipped && flaw.skill == name);
        return Err(match flaw {
            Some(flaw) => user(format!(
                "The skill {} is left out: {}.",
                shown(name),
                one_line(&flaw.problem.to_string())
            )),
            None => user(sentence(&all.no_such(name))),
        });
    };
    let contents = install::read(setup, name, &home.folder(pack))?;
    if json {
        return say(&json_line(&contents_json(name, &pack.origin, &contents)));
    }
    let now = state(&home.state(pack));
    say(&format!("{}{}\n{}", describe(name, &pack.origin, &contents), capital(&now), body(&contents)))
}

fn skill_json(skill: &Skill, record: &SkillRecord) -> String {
    let params: Vec<_> =
        skill.params.iter().map(|param| json!({ "name": param.name, "default": param.default })).collect();
    json_line(&json!({
        "kind": "skill", "name": skill.name, "description": skill.description, "from": skill.source(), "pack": skill.pack,
        "file": skill.file.display().to_string(), "license": skill.license, "compatibility": skill.compatibility,
        "metadata": skill.metadata, "allowed_tools": skill.allowed_tools, "params": params,
        "requires": skill.requires, "body": skill.body, "uses": record.uses, "uses_done": record.done,
        "uses_cost_usd": record.cost.usd(), "uses_tokens": record.tokens, "record": record,
    }))
}

/// The newest trial, for people.
fn trial_words(skill: &Skill, trial: &SkillTrial) -> String {
    let text = skill.files.read("SKILL.md").unwrap_or_default();
    let same = blake3::hash(&text).to_hex().as_str() == trial.text;
    let of = if same { "" } else { " (of another text)" };
    let cut = if trial.cut { " (cut by its budget)" } else { "" };
    format!("{}{of}{cut}", trial.words())
}

fn skill_text(skill: &Skill, record: &SkillRecord) -> String {
    let mut text =
        format!("{}  ({})\n{}\n", one_line(&skill.name), skill.source(), one_line(&skill.description));
    let mut row = |what: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("{what}: {}\n", one_line(&value)));
        }
    };
    row("File", skill.file.display().to_string());
    row("License", skill.license.clone().unwrap_or_default());
    row("Compatibility", skill.compatibility.clone().unwrap_or_default());
    row("Parameters", skill.params.iter().map(|param| param.name.as_str()).collect::<Vec<_>>().join(", "));
    row("Requires", skill.requires.join(", "));
    row("Tools it names", skill.allowed_tools.join(" "));
    row("Record", record.words());
    row("Last trial", record.trial.as_ref().map(|trial| trial_words(skill, trial)).unwrap_or_default());
    text.push('\n');
    text.push_str(&tiller_text::clean::plain_lines(&skill.body));
    text.push('\n');
    text
}
