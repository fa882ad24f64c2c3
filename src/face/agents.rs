//! `tiller agents`: the kinds of agents that there are.

use tiller_config::agents::{Definition, SETS, Tools};
use tiller_protocol::Notice;

use super::sessions::one_line;
use super::{Exit, json_line, say};
use crate::cli::Agents;
use crate::wire::{Setup, definitions};

/// Lists them.
pub(super) fn run(setup: &Setup, what: &Agents) -> Result<Exit, Notice> {
    match what {
        Agents::List { json } => list(setup, *json),
    }
}

/// Every definition; mistakes go to standard error, and make the exit code 2.
fn list(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let status = setup.trust(&setup.open_store()?);
    let (all, wrong) = definitions::read(&setup.places.config, &setup.brings, status.may_load());
    let mut text = String::new();
    for it in all.iter() {
        text.push_str(&if json { json_line(&**it) } else { row(it) });
    }
    let left_out = setup.brings.items().iter().filter(|i| i.kind == "agent").count();
    if !status.may_load() && left_out > 0 && !json {
        let files = if left_out == 1 { "1 file".into() } else { format!("{left_out} files") };
        text.push_str(&format!(
            "\n{files} in .tiller/agents left out: this folder is not trusted (`tiller trust`)\n"
        ));
    }
    let said = say(&text)?;
    match definitions::told(&wrong) {
        // All of them, one a line.
        Some(notice) => {
            Err(wrong.iter().skip(1).fold(Notice { message: wrong[0].to_string(), ..notice }, |notice, p| {
                notice.hint(p.to_string())
            }))
        }
        None => Ok(said),
    }
}

fn row(it: &Definition) -> String {
    let model = match it.cli {
        Some(ref cli) => format!("{cli} (external)"),
        None => it.pick.words(),
    };
    let model = if model.is_empty() { "-".to_owned() } else { model };
    let file = it
        .file
        .as_ref()
        .map_or_else(String::new, |f| format!("\n    {}", one_line(&f.display().to_string())));
    format!(
        "{:14} {:9} {:14} {}\n    {}{file}\n",
        it.name,
        it.from.word(),
        one_line(&model),
        tools(&it.tools),
        one_line(&it.description),
    )
}

/// In words: sets where they are whole, else names.
fn tools(tools: &Tools) -> String {
    let Tools::Only(names) = tools else {
        return if *tools == Tools::All { "all tools".into() } else { "tools of its depth".into() };
    };
    let whole = |set: &[&str]| set.iter().all(|t| names.contains(*t));
    let mut words: Vec<&str> = SETS.iter().filter(|(_, of)| whole(of)).map(|(set, _)| *set).collect();
    let in_words = |name: &str| SETS.iter().any(|(_, of)| whole(of) && of.contains(&name));
    words.extend(names.iter().map(String::as_str).filter(|n| !in_words(n)));
    if words.is_empty() { "no tools".into() } else { one_line(&words.join(", ")) }
}
