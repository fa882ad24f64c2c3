//! Skills, own commands and output styles of a session: what a client asks of them, and what a message takes from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tiller_config::agents::Origin;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::skill::{
    CommandRow, SkillCommand, SkillQuery, SkillRecord, SkillReply, SkillRow, SkillUse, SkillVersionRow,
    StyleRow,
};
use tiller_protocol::{CommandId, Message, Notice, NoticeKind, Part, Taint, Time};
use tiller_skills::change::Scope;
use tiller_skills::{Library, OwnCommand, Skill, SkillFiles, Skills, Style, WithheldItem, WithheldKind};

use crate::bus::{ClientId, read};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::prompts::message_commands::held::{self, MessageCommand};
use crate::prompts::msg::PromptMsg;
use crate::questions::skill_offer;
use crate::turn::hold;
use crate::turn::terms::{ToolList, TurnTerms};

/// Skills that one message loads at most.
const LOADED: usize = 5;
/// Versions that are listed at most, and bytes of a skill's text in a list.
const VERSIONS: usize = 50;
const TEXT: usize = 64 * 1024;

/// Carries out a command of a client.
pub(crate) fn command(core: &mut Core, client: ClientId, cause: CommandId, command: SkillCommand) {
    let library = core.services.crew.roles.library().clone();
    match command {
        SkillCommand::Style { name: Some(name) } if library.now().style(&name).is_none() => {
            // Its file may have been made since the styles were read.
            let tx = core.tx.clone();
            core.spawn(async move {
                let _ = tokio::task::spawn_blocking(move || library.reload()).await;
                let _ = tx.send(Msg::Prompt(PromptMsg::StylesRead { client, cause, name })).await;
            });
        }
        SkillCommand::Style { name } => style(core, client, cause, name),
        SkillCommand::Switch { name, on } => {
            library.switch(&name, on);
            let word = if on { "on" } else { "off" };
            core.done(client, cause, format!("The skill {name} is turned {word}"));
        }
        SkillCommand::Save => skill_offer::save_command(core, client, cause),
        SkillCommand::Offer { on } => skill_offer::offer_command(core, client, cause, on),
        SkillCommand::Reload => read::read(core, client, cause, move || {
            library.reload();
            Ok(ReplyEvent::DoneReply { said: "Skills are read again".into() })
        }),
        SkillCommand::Copy { name } => {
            read::read(core, client, cause, move || Ok(outcome(copy(&library, &name))));
        }
        SkillCommand::Restore { name, project, version } => read::read(core, client, cause, move || {
            Ok(outcome(restore(&library, &name, scope(project), version)))
        }),
    }
}

/// The reply to a change: a sentence, or why it was not made.
fn outcome(changed: Result<String, String>) -> ReplyEvent {
    match changed {
        Ok(said) => ReplyEvent::DoneReply { said },
        Err(why) => ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, why) },
    }
}

fn scope(project: bool) -> Scope {
    if project { Scope::Project } else { Scope::User }
}

/// Copies a skill to the user's own; blocks.
fn copy(library: &Library, name: &str) -> Result<String, String> {
    let editor = library.editor().ok_or("skills cannot be changed here")?;
    let skills = library.reload();
    let skill = skills.get(name).ok_or_else(|| skills.no_such(name))?;
    let said = editor.copy_to_user(skill, "you")?;
    library.reload();
    Ok(said)
}

/// Brings a version back; blocks.
fn restore(library: &Library, name: &str, scope: Scope, version: u64) -> Result<String, String> {
    let editor = library.editor().ok_or("skills cannot be changed here")?;
    let said = editor.apply(&editor.plan_restore(scope, name, version)?, "you")?;
    library.reload();
    Ok(said)
}

/// Writes answers in another style from now on: the next message says so to the model, and the next prefix has the style.
pub(crate) fn style(core: &mut Core, client: ClientId, cause: CommandId, name: Option<String>) {
    let skills = core.services.skills();
    let news = match &name {
        None => "The user turned the output style off: write answers as usual.".to_owned(),
        Some(name) => match skills.style(name) {
            Some(style) => format!("The user chose the output style {name}. From now on:\n{}", style.body),
            None => {
                let notice = Notice::new(NoticeKind::User, skills.no_such_style(name));
                return core.refuse(client, cause, notice);
            }
        },
    };
    core.context.news.set("style", news);
    let said = match &name {
        Some(name) => format!("Answers are written in the style {name} from the next message on"),
        None => "Answers are written as usual from the next message on".into(),
    };
    core.context.style = Some(name);
    core.done(client, cause, said);
}

/// The style in force: the session's, else that of the settings.
pub(crate) fn current_style(core: &Core) -> Option<Arc<Style>> {
    let name = match &core.context.style {
        Some(chosen) => chosen.clone(),
        None => core.services.config().skills.style.clone(),
    };
    core.services.skills().style(&name?).cloned()
}

/// Answers a question of a client.
pub(crate) fn query(core: &mut Core, client: ClientId, cause: CommandId, query: SkillQuery) {
    let library = core.services.crew.roles.library().clone();
    let current = current_style(core).map(|s| s.name.clone());
    let (root, store) = (core.services.workspace.root.clone(), core.services.store.clone());
    read::read(core, client, cause, move || {
        // A file may have been edited.
        let skills = library.reload();
        let reply = match query {
            SkillQuery::Skills => {
                // Without the counts the list is still of use.
                let records = store.skill_uses().records().unwrap_or_default();
                SkillReply::Skills { rows: rows(&skills, &root, &records) }
            }
            SkillQuery::Versions { name, project } => {
                let editor = library.editor();
                let versions = editor.as_ref().map_or_else(Vec::new, |e| e.versions(scope(project), &name));
                let row = |v: tiller_skills::change::Version| SkillVersionRow {
                    diff: editor
                        .as_ref()
                        .and_then(|e| e.plan_restore(scope(project), &name, v.number).ok())
                        .map_or_else(String::new, |plan| plan.diff()),
                    version: v.number,
                    time: Time(i64::try_from(v.time).unwrap_or_default()),
                    action: v.action,
                    by: author(&store, &v.by),
                };
                let rows = versions.into_iter().take(VERSIONS).map(row).collect();
                SkillReply::Versions { rows, name }
            }
            SkillQuery::Commands => SkillReply::Commands { rows: command_rows(&skills) },
            SkillQuery::Styles => {
                let row = |s: &Arc<Style>| StyleRow {
                    name: s.name.clone(),
                    description: s.description.clone(),
                    source: s.from.word().into(),
                    current: current.as_ref() == Some(&s.name),
                    text: s.body.clone(),
                };
                SkillReply::Styles { rows: skills.styles().map(row).collect() }
            }
        };
        Ok(ReplyEvent::SkillsReply { reply })
    });
}

/// Who replaced a version, with the title of the session in place of its id. Of a session that is gone the agent is named alone: the
/// time of the version stands beside it.
fn author(store: &tiller_store::Store, by: &str) -> String {
    let Some((agent, id)) = by.split_once(" in session ") else { return by.to_owned() };
    let title = id
        .parse::<tiller_protocol::SessionId>()
        .ok()
        .and_then(|id| store.sessions().get(id).ok())
        .map(|row| row.summary.title);
    match title.filter(|title| !title.is_empty()) {
        Some(title) => format!("{agent} in \"{title}\""),
        None => agent.to_owned(),
    }
}

/// All own commands by name, also those that the user has not agreed to.
fn command_rows(skills: &Skills) -> Vec<CommandRow> {
    let used = skills.commands().map(|command| CommandRow {
        name: command.name.clone(),
        description: command.description.clone(),
        hint: command.hint.clone(),
        unused: String::new(),
    });
    let mut rows: Vec<CommandRow> = used.collect();
    let withheld = skills.withheld().iter().filter(|item| item.kind == WithheldKind::Command);
    let free: Vec<&WithheldItem> =
        withheld.filter(|item| rows.iter().all(|row| row.name != item.name)).collect();
    rows.extend(free.into_iter().map(|item| CommandRow {
        name: item.name.clone(),
        description: item.description.clone(),
        hint: String::new(),
        unused: format!("the command /{} is not used: {}; {}", item.name, item.why, item.remedy),
    }));
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

/// The row of a skill that the user has not agreed to.
fn untrusted(item: &WithheldItem, root: &std::path::Path) -> SkillRow {
    SkillRow {
        name: item.name.clone(),
        description: item.description.clone(),
        source: item.source(),
        pack: item.pack.clone().unwrap_or_default(),
        fixed: item.from == Origin::Plugin,
        project: item.from == Origin::Project,
        file: root.join(&item.file).display().to_string(),
        state: SkillUse::Untrusted,
        problems: vec![format!("Not used: {}", item.why), item.remedy.clone()],
        text: item.text[..item.text.floor_char_boundary(TEXT)].to_owned(),
        ..SkillRow::default()
    }
}

/// All skills for a list, by name: also those that are hidden, turned off, broken or not trusted.
fn rows(skills: &Skills, root: &std::path::Path, records: &BTreeMap<String, SkillRecord>) -> Vec<SkillRow> {
    let row = |skill: &Arc<Skill>, state| SkillRow {
        name: skill.name.clone(),
        description: skill.description.clone(),
        source: skill.source(),
        pack: skill.pack.clone().unwrap_or_default(),
        fixed: matches!(skill.from, Origin::BuiltIn | Origin::Plugin),
        project: skill.from == Origin::Project,
        file: match skill.files {
            SkillFiles::Embedded(_) => String::new(),
            _ => root.join(&skill.file).display().to_string(),
        },
        state,
        record: records.get(&skill.name).cloned().unwrap_or_default(),
        problems: skills
            .flaws()
            .iter()
            .filter(|f| f.problem.source == skill.file)
            .map(|f| f.problem.to_string())
            .collect(),
        arguments: skill.params.iter().map(|p| format!("[{}]", p.name)).collect::<Vec<_>>().join(" "),
        text: skill.body[..skill.body.floor_char_boundary(TEXT)].to_owned(),
    };
    let mut all: Vec<SkillRow> = skills.iter().map(|s| row(s, SkillUse::Used)).collect();
    all.extend(skills.disabled().map(|s| row(s, SkillUse::Off)));
    all.extend(skills.hidden().iter().map(|s| row(s, SkillUse::Hidden)));
    all.extend(skills.flaws().iter().filter(|f| f.skipped).map(|f| SkillRow {
        name: f.skill.clone(),
        description: f.problem.message.clone(),
        source: String::new(),
        file: root.join(&f.problem.source).display().to_string(),
        state: SkillUse::Broken,
        problems: vec![f.problem.to_string()],
        ..SkillRow::default()
    }));
    let listed = |item: &&WithheldItem| matches!(item.kind, WithheldKind::Skill | WithheldKind::Pack);
    all.extend(skills.withheld().iter().filter(listed).map(|item| untrusted(item, root)));
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// What a message takes from skills and own commands.
#[derive(Default)]
pub(crate) struct Taken {
    skills: Skills,
    /// Names of skills with their arguments.
    loads: Vec<(String, String)>,
    /// Names of skills beyond the number that one message loads.
    left_out: Vec<String>,
    /// A name at the beginning of the message that looks like a skill's and is none's. The message is sent as it is, since
    /// it may be a variable of a shell.
    unknown: Option<String>,
    /// The own command that the message calls.
    command: Option<Arc<OwnCommand>>,
    /// The commands in its text, which run before the message is sent.
    pub(crate) runs: Vec<MessageCommand>,
}

/// Puts the text of an own command in place of `/name words`, with a mark for each command in it, and notes the skills
/// that the message names as `$name`. Skills that are named take what follows as their arguments where the message begins
/// with the name.
pub(crate) fn take(core: &Core, message: &mut Message) -> Taken {
    let skills = core.services.skills();
    let (mut command, mut runs) = (None, Vec::new());
    if let Some((called, words)) = held::called(&skills, &message.text) {
        // A program of another vendor runs its commands itself.
        let (text, commands) = match core.identity.external() {
            Some(_) => (held::requested(&called, words, &message.attachments), Vec::new()),
            None => held::marked(&called, words, &message.attachments),
        };
        (message.text, command, runs) = (text, Some(called), commands);
    }
    let (mut loads, mut left_out): (Vec<(String, String)>, Vec<String>) = (Vec::new(), Vec::new());
    let text = message.text.trim_start();
    for word in text.split_whitespace() {
        let word = word.trim_start_matches(['(', '[', '"', '\'']);
        let Some(name) = word.strip_prefix('$') else { continue };
        let end = name.find(|c: char| !matches!(c, 'a'..='z' | '0'..='9' | '-')).unwrap_or(name.len());
        let (name, behind) = name.split_at(end);
        // `$name_x` and `$name/x` are no skills but variables.
        let ends = behind.chars().all(|c| ",;!?)].:\"'".contains(c));
        let named = loads.iter().map(|(name, _)| name).chain(&left_out).any(|known| known == name);
        if !ends || named || skills.get(name).is_none() {
            continue;
        }
        if loads.len() == LOADED {
            left_out.push(name.to_owned());
        } else {
            let begins = text.strip_prefix('$').and_then(|t| t.strip_prefix(name));
            let arguments = begins.filter(|rest| rest.starts_with(char::is_whitespace)).map(str::trim);
            loads.push((name.to_owned(), arguments.unwrap_or_default().to_owned()));
        }
    }
    let unknown = skill_like(text).filter(|name| command.is_none() && skills.get(name).is_none());
    let unknown = unknown.map(str::to_owned);
    Taken { skills, loads, left_out, unknown, command, runs }
}

/// Letters of a name that looks like a skill's, at least.
const NAME_LETTERS: usize = 3;

/// The name of a message that begins with `$name` and a blank, or is nothing else: of lower case letters, digits and hyphens.
fn skill_like(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?.split(char::is_whitespace).next()?;
    let letters = name.chars().filter(char::is_ascii_lowercase).count();
    let plain = name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    (plain && letters >= NAME_LETTERS).then_some(name)
}

impl Taken {
    /// What the user should know: the message names no skill, too many of them, or one whose parameters it does not give.
    pub(crate) fn hints(&self) -> Vec<Notice> {
        let unknown = self.unknown.iter().map(|name| {
            let mut withheld = self.skills.withheld().iter().filter(|item| item.is_skill());
            match withheld.find(|item| item.name == *name) {
                Some(item) => format!("the skill {}", item.why_not()),
                None => format!("there is no skill called {name}; /skills lists them"),
            }
        });
        let open = self.loads.iter().filter_map(|(name, arguments)| {
            let names = tiller_skills::missing(self.skills.get(name)?, arguments);
            let words: Vec<String> = names.iter().map(|name| format!("{name}=VALUE")).collect();
            (!names.is_empty()).then(|| {
                format!(
                    "the skill {name} has no value for {}, so the agent looks for it in your message; to give it, begin the message with ${name} {}",
                    names.join(", "),
                    words.join(" ")
                )
            })
        });
        let beyond = (!self.left_out.is_empty()).then(|| {
            let names = self.left_out.join(", ");
            format!(
                "a message loads at most {LOADED} skills; not loaded: {names}; another message can name them"
            )
        });
        unknown.chain(open).chain(beyond).map(|said| Notice::new(NoticeKind::Info, said)).collect()
    }

    /// What the turn of the message is held to.
    pub(crate) fn terms(&self, core: &Core) -> TurnTerms {
        let own = self.command.iter().filter(|command| !command.allowed_tools.is_empty());
        let own = own.map(|command| ToolList {
            of: format!("/{}", command.name),
            entries: command.allowed_tools.clone(),
        });
        let mut limits: Vec<ToolList> = own.collect();
        limits.extend(hold::of_skills(core, self.loads.iter().map(|(name, _)| name.as_str())));
        let model = self.command.as_ref().and_then(|c| Some((c.name.clone(), c.model.clone()?)));
        TurnTerms { limits, model }
    }

    /// The least trusted text that it adds: of skills and commands that came from elsewhere; `None`: it adds none.
    pub(crate) fn taint(&self) -> Option<Taint> {
        let command = self.command.iter().map(|command| command.from);
        let skills = self.loads.iter().filter_map(|(name, _)| Some(self.skills.get(name)?.from));
        command.chain(skills).any(|from| from > Origin::BuiltIn).then_some(Taint::ToolOutput)
    }

    /// Adds the texts of the skills to the message's own. Reads folders, so it does not run on the engine's task.
    ///
    /// # Errors
    /// When one cannot be loaded; nothing is sent then.
    pub(crate) async fn add_to(self, content: &mut [Part]) -> Result<(), Notice> {
        if self.loads.is_empty() {
            return Ok(());
        }
        let work = move || {
            let mut texts = String::new();
            for (name, arguments) in &self.loads {
                let text = tiller_skills::shown(&self.skills, name, arguments).map_err(|why| {
                    Notice::new(NoticeKind::User, format!("${name} cannot be loaded: {why}"))
                })?;
                texts.push_str("\n\n");
                texts.push_str(text.trim_end());
            }
            Ok(texts)
        };
        let texts = tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|_| Err(Notice::new(NoticeKind::Internal, "the skills could not be read")))?;
        if let Some(Part::Text { text }) = content.first_mut() {
            text.push_str(&texts);
        }
        Ok(())
    }
}
