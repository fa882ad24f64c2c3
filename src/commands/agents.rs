//! `tiller agents`: lists agent definitions, and runs one turn as one of them.

use tiller_config::Flags;
use tiller_config::agents::{Definition, Pick, Tier, Tools};
use tiller_protocol::{Notice, NoticeKind, Profile, ToolCatalog, ToolSet, TrustKind};

use crate::app::{Setup, definitions};
use crate::commands::args::{Exec, ProfileArg};
use crate::commands::sessions::one_line;
use crate::commands::{Exit, exec, json_line, say};

/// Runs one turn without a screen. The definition applies, unless a flag is stricter or names another model.
pub(super) fn run(name: &str, mut exec: Exec) -> Result<Exit, Notice> {
    let mut setup = Setup::read(&exec.common, Flags::default())?;
    let trusted = exec.trust || setup.trust(&setup.open_store()?).may_load();
    let (all, _) = definitions::read(&setup.places, &setup.folder_config, trusted, &setup.tools.catalog());
    let Some(it) = all.get(name) else {
        return Err(Notice::new(NoticeKind::User, format!("{}.", all.no_such(name).trim_end_matches('?')))
            .hint("`tiller agents list` shows every kind."));
    };
    narrow(it, &setup, &mut exec)?;
    // Model and profile are read with the settings.
    setup = Setup::read(&exec.common, Flags::default())?;
    exec::run(setup, &exec, Some(it))
}

/// Applies the definition to the flags.
fn narrow(it: &Definition, setup: &Setup, exec: &mut Exec) -> Result<(), Notice> {
    if let Some(cli) = &it.cli {
        return Err(Notice::new(NoticeKind::User, format!("{} is run by {cli}.", it.name))
            .hint("Start it in the workbench with /spawn."));
    }
    let tiers = &setup.config.config.tiers;
    let model = match &it.pick {
        Pick::Inherit => None,
        Pick::Model(model) => Some(model.clone()),
        Pick::Tier(Tier::Fast) => tiers.fast.clone(),
        Pick::Tier(Tier::Main) => tiers.main.clone(),
        Pick::Tier(Tier::Deep) => tiers.deep.clone(),
    };
    exec.common.model = exec.common.model.take().or(model);
    let now = setup.sources.flags.profile.unwrap_or(setup.config.config.profile);
    if let Some(profile) = it.permissions.profile.filter(|p| *p < now) {
        exec.common.profile = Some(match profile {
            Profile::ReadOnly => ProfileArg::ReadOnly,
            Profile::Plan => ProfileArg::Plan,
            Profile::Ask => ProfileArg::Ask,
            Profile::AutoEdit => ProfileArg::AutoEdit,
            Profile::Full => ProfileArg::Full,
        });
    }
    exec.deny.extend(it.permissions.deny.iter().cloned());
    exec.max_turns = exec.max_turns.into_iter().chain(it.limits.turns).min();
    let own = it.limits.cost.map(|c| c.usd());
    exec.max_cost = exec.max_cost.into_iter().chain(own).reduce(f64::min);
    Ok(())
}

/// Lists every definition; errors go to standard error, and make the exit code 2.
pub(super) fn list(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let status = setup.trust(&setup.open_store()?);
    let tools = setup.tools.catalog();
    let (all, mut wrong) = definitions::read(&setup.places, &setup.folder_config, status.may_load(), &tools);
    let mut text = String::new();
    for it in all.iter() {
        text.push_str(&if json { json_line(&**it) } else { row(it, &tools) });
    }
    let disabled = &setup.config.config.skills.disabled;
    let (skills, left_out) =
        definitions::skills::read(&setup.places, &setup.folder_config, status.may_load(), disabled);
    wrong.extend(left_out);
    if !json && skills.iter().next().is_some() {
        text.push_str("\nSkills for agents:\n");
        for it in skills.iter() {
            text.push_str(&format!("{:24} {:9} {}\n", it.name, it.from.word(), one_line(&it.description)));
        }
    }
    let left_out = setup
        .folder_config
        .items()
        .iter()
        .filter(|i| matches!(i.kind, TrustKind::Agent | TrustKind::Skill))
        .count();
    if !status.may_load() && left_out > 0 && !json {
        let files = if left_out == 1 { "1 file".into() } else { format!("{left_out} files") };
        text.push_str(&format!(
            "\n{files} of this folder's agents and skills left out: this folder is not trusted (`tiller trust`)\n"
        ));
    }
    let said = say(&text)?;
    match definitions::problem_notice(&wrong) {
        // All of them, one on each line. This list shows the others.
        Some(notice) => {
            let hints = vec!["A file with an error is left out as a whole.".into()];
            let first = Notice { message: wrong[0].to_string(), hints, ..notice };
            Err(wrong.iter().skip(1).fold(first, |notice, p| notice.hint(p.to_string())))
        }
        None => Ok(said),
    }
}

fn row(it: &Definition, all: &ToolCatalog) -> String {
    let model = match it.cli {
        Some(ref cli) => format!("{cli} (external)"),
        None => it.pick.words(),
    };
    let model = if model.is_empty() { "-".to_owned() } else { model };
    let file = it
        .file
        .as_ref()
        .map_or_else(String::new, |f| format!("\n    {}", one_line(&f.display().to_string())));
    let skills = match it.skills.as_slice() {
        [] => String::new(),
        names => format!(", skills {}", one_line(&names.join(", "))),
    };
    format!(
        "{:14} {:9} {:14} {}{skills}\n    {}{file}\n",
        it.name,
        it.from.word(),
        one_line(&model),
        tools(&it.tools, all),
        one_line(&it.description),
    )
}

/// The tools as text: complete sets by name, else single tools.
fn tools(tools: &Tools, all: &ToolCatalog) -> String {
    let Tools::Only(names) = tools else {
        return if *tools == Tools::All {
            "all tools".into()
        } else {
            "all tools allowed at its depth".into()
        };
    };
    let whole = |set: &ToolSet| all.of_set(*set).all(|t| names.contains(t));
    let sets: Vec<ToolSet> = ToolSet::ALL.into_iter().filter(whole).collect();
    let mut words: Vec<&str> = sets.iter().map(|s| s.word()).collect();
    let in_words = |name: &str| all.get(name).is_some_and(|t| sets.contains(&t.set));
    words.extend(names.iter().map(String::as_str).filter(|n| !in_words(n)));
    if words.is_empty() { "no tools".into() } else { one_line(&words.join(", ")) }
}
