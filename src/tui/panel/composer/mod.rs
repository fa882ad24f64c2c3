//! The composer: the field for messages. It owns the text, its lists, its history and its draft on disk.

pub(crate) mod content;
mod draft;
mod draw;
mod history;
mod moves;
mod own_commands;
mod panel;
mod pictures;
mod popup;
mod recall;
pub mod request;
mod submit;
mod vim;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use tiller_config::schema::EnterWhileRunning;
use tiller_protocol::command::{Query, QueueCommand};
use tiller_protocol::mcp::McpPromptView;
use tiller_protocol::skill::{SkillQuery, SkillRow};
use tiller_protocol::{
    CommandBody, MemoryCommand, MemoryTarget, Message, Notice, NoticeKind, SandboxState, SendMode,
    WorkflowFile,
};

use self::content::Content;
use self::draft::{Draft, DraftStore};
use self::history::History;
use self::popup::{Popup, PopupKind};
use self::recall::{MessageRecall, UnconfirmedMessage};
use self::vim::Vim;
use crate::app::effect::{Effect, External, Task, Token};
use crate::input::own_tmp::{self, OwnTmp};
use crate::keymap::action::{ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::{Model, Slice};
use crate::panel::composer::submit::SubmitAction;
use crate::panel::recent_sessions::{self, Recent};
use crate::panel::{Reply, View};
use crate::registry::PanelEntry;
use crate::slash::Commands;

/// Registers the panel.
pub(crate) const PANEL: PanelEntry = PanelEntry {
    view: View::Composer,
    make: |all| Box::new(Composer::new(all.commands())),
    reads: &[Slice::Session, Slice::Outline, Slice::Queue, Slice::Turn, Slice::Crew, Slice::Questions],
    groups: &[("Composer", ACTIONS)],
    scopes: &[
        Scope::new("composer", Some("input"), "Composer", true).keys(KEYS),
        Scope::new("popup", Some("composer"), "Completion", true),
        Scope::new("recent", Some("composer"), "Start screen, sessions", true).keys(recent_sessions::KEYS),
        Scope::new("vim", Some("composer"), "Composer, vim normal mode", true),
    ],
};

/// Actions of the composer, besides the `edit.*` actions of every text field.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("composer.send", "send", "Send the message; while a turn is running, steer it"),
    ActionSpec::key_only("composer.newline", "new line", "Insert a new line"),
    ActionSpec::key_only("composer.take", "take", "Choose the selected entry of the list"),
    ActionSpec::key_only("composer.memory", "other file", "Choose the memory file for text after #"),
    ActionSpec::new("composer.queue", "queue", "Queue the message as a separate turn")
        .menu(Menu::Write)
        .ending(),
    ActionSpec::new("composer.now", "stop and send", "Stop the running turn and send the message now")
        .menu(Menu::Write)
        .ending(),
    ActionSpec::key_only("composer.up", "up", "Line up; at the top, waiting messages, then history"),
    ActionSpec::key_only(
        "composer.down",
        "down",
        "Line down; at the bottom, forward in history; on the start screen, to the last sessions",
    ),
    ActionSpec::key_only("composer.delete", "delete", "Delete the character under the caret"),
    ActionSpec::key_only("composer.help", "help", "Show help when the message is empty"),
    ActionSpec::new("composer.clear", "clear", "Clear the draft; Up restores it").menu(Menu::Write).ending(),
    ActionSpec::new("composer.aside", "stash", "Stash the draft, or restore it").menu(Menu::Write),
    ActionSpec::new("composer.editor", "editor", "Write the message in your editor").menu(Menu::Write),
    ActionSpec::new("composer.paste", "paste", "Paste an image or text from the clipboard").menu(Menu::Write),
    ActionSpec::new("composer.look", "preview", "Show the pasted block or image before the caret")
        .menu(Menu::Write),
    ActionSpec::new(
        "composer.unfold",
        "unfold paste",
        "Insert the full text of the pasted block before the caret",
    )
    .menu(Menu::Write),
    ActionSpec::key_only("recent.first", "open 1", "Open the first session of the start screen"),
    ActionSpec::key_only("recent.second", "open 2", "Open the second session of the start screen"),
    ActionSpec::key_only("recent.third", "open 3", "Open the third session of the start screen"),
];

/// Default keys of the section `composer`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("ctrl-r", "history.open"),
    ("enter", "composer.send"),
    ("ctrl-j", "composer.newline"),
    ("alt-enter", "composer.newline"),
    ("shift-enter", "composer.newline"),
    ("tab", "composer.take composer.queue composer.memory"),
    ("ctrl-enter", "composer.now"),
    ("leader i", "composer.now"),
    ("leader p", "composer.aside"),
    ("ctrl-g", "composer.editor"),
    ("leader ctrl-e", "composer.editor"),
    ("ctrl-v", "composer.paste"),
    ("leader v", "composer.paste"),
    ("leader Y", "composer.unfold"),
    ("leader y", "composer.look"),
    ("?", "composer.help"),
    ("leader enter", "composer.newline"),
    ("up", "composer.up"),
    ("down", "composer.down"),
    ("ctrl-d", "composer.delete global.quit"),
];

/// Prompts asked of the store for Up.
const HISTORY: u32 = 200;
/// Sent messages that can still come back when they are refused.
const SENT: usize = 16;

/// The request that an answer belongs to. Sent messages count up from `SENT0`.
const MENTIONS: Token = Token(1);
const EARLIER: Token = Token(2);
const PASTED: Token = Token(3);
const TAKEN: Token = Token(4);
const ARRIVED: Token = Token(5);
const FLOWS: Token = Token(6);
const RECENT: Token = Token(7);
const PROMPTS: Token = Token(8);
const DROPPED: Token = Token(9);
const SKILLS: Token = Token(90);
const COMMANDS: Token = Token(91);
const SENT0: u64 = 1000;

/// The panel.
#[derive(Default)]
pub struct Composer {
    commands: Commands,
    content: Content,
    aside: Option<Message>,
    /// The vim layer, when the keymap is vim.
    vim: Option<Vim>,
    popup: Option<Popup>,
    reported: Reported,
    history: History,
    keeper: Option<DraftStore>,
    outbox: UnconfirmedMessages,
    elsewhere: Elsewhere,
    /// Columns of the text at the last draw, for moving by visual rows.
    width: usize,
    /// A sentence under the text until the next key.
    notice: Option<String>,
    /// Position behind the blank that was inserted with a completed name: a line range goes before that blank.
    gap: Option<usize>,
    names: UnknownMentions,
    /// The last sessions, on the start screen.
    recent: Recent,
}

/// Work elsewhere whose end changes the text.
#[derive(Default)]
struct Elsewhere {
    /// The file that the external editor has.
    editing: Option<PathBuf>,
    /// Labels of chips whose pictures are being read.
    reading: Vec<String>,
    /// Number of the last one.
    last: u64,
}

/// The composer's knowledge besides its text: lists as the engine reported them last, and where text after `#` goes.
#[derive(Default)]
struct Reported {
    memory: MemoryTarget,
    flows: Vec<WorkflowFile>,
    /// Skills, as the engine last said.
    skills: Vec<SkillRow>,
    /// Prompts of MCP servers.
    prompts: Vec<McpPromptView>,
    /// Commands from files.
    commands: own_commands::OwnCommands,
}

/// Messages that the engine has not confirmed yet, in either direction.
#[derive(Default)]
struct UnconfirmedMessages {
    /// A waiting message on its way back from the queue.
    taking: Option<MessageRecall>,
    sent: VecDeque<UnconfirmedMessage>,
    /// Sent by an earlier process that ended before the engine confirmed that they are on disk.
    unsure: Vec<Message>,
    /// Number of the last token.
    last: u64,
}

/// Words behind an `@` that look like files and do not exist.
#[derive(Default)]
struct UnknownMentions {
    unknown: std::collections::BTreeSet<String>,
    /// Words that name a file outside of the project, with the reason why nothing is attached.
    outside: std::collections::BTreeMap<String, String>,
    /// The message for which the notice was shown.
    told: String,
}

/// Words of the text behind an `@`.
fn mentioned(text: &str) -> impl Iterator<Item = String> {
    let names = text.split_whitespace().filter_map(|w| w.strip_prefix('@'));
    names.map(|w| w.trim_end_matches([',', '.', ';', ':', '!', '?', ')']).to_owned())
}

/// Says that a file outside of the project is not attached.
fn elsewhere(word: &str) -> String {
    format!(
        "@{word} is outside this folder, so nothing is attached. Press Enter again to send it as plain text: the agent can \
         ask to read it."
    )
}

/// Says that a file of the machine's own `/tmp` is not attached.
fn machine(word: &str, sandbox: Option<&SandboxState>) -> String {
    let own = sandbox.and_then(SandboxState::own_tmp).unwrap_or("this folder");
    format!(
        "@{word} is not attached: this session has a /tmp of its own, without such a file. Copy it to {own}, or press \
         Enter again to send it as plain text."
    )
}

/// Says which of two files of one name is attached.
fn both(word: &str, at: &Path) -> String {
    format!(
        "@{word} is the file of this session's own /tmp; the machine's /tmp has another of that name. Press Enter again to \
         attach the session's, {}.",
        at.display()
    )
}

impl UnknownMentions {
    /// Remembers what the engine found under `word`.
    fn found(&mut self, word: &str, some: bool) {
        if some {
            self.unknown.remove(word);
        } else if word.contains(['/', '.']) && self.unknown.len() < 200 {
            self.unknown.insert(word.to_owned());
        }
    }

    /// Words of the text that the engine found nothing under when they were typed, and those that name a place outside
    /// of the project.
    fn doubtful(&self, text: &str) -> Vec<String> {
        let far = |w: &str| w.starts_with(['/', '~']) || w.split('/').any(|part| part == "..");
        mentioned(text).filter(|w| self.unknown.contains(w) || far(w)).collect()
    }

    /// The warning to show before this text is sent; only once for the same words.
    fn doubt(&mut self, text: &str) -> Option<String> {
        let lost = mentioned(text).find(|w| self.unknown.contains(w) || self.outside.contains_key(w))?;
        if self.told == text {
            return None;
        }
        self.told = text.to_owned();
        if let Some(said) = self.outside.get(&lost) {
            return Some(said.clone());
        }
        Some(format!(
            "@{lost} was not found, so nothing is attached. Press Enter again to send it as plain \
            text."
        ))
    }
}

impl Composer {
    /// An empty one with these commands.
    pub fn new(commands: Commands) -> Self {
        Self { commands, ..Self::default() }
    }

    fn changed(&mut self) {
        if self.history.is_begun() && !self.history.walking(&self.content.message()) {
            self.history.stop();
        }
        self.notice = None;
        self.recent.leave();
        self.keep();
    }

    /// Keeps a text for which there is no room: stashed, or among the earlier prompts.
    fn lay_aside(&mut self, message: Message) {
        match self.aside {
            None => self.aside = Some(message),
            Some(_) => self.history.keep(message),
        }
    }

    /// Saves all text that may not be stored elsewhere.
    fn keep(&mut self) {
        // One that is laid aside may end another walk.
        while let Some(draft) = self.history.take_parked() {
            self.lay_aside(draft);
        }
        if let Some(k) = &mut self.keeper {
            k.keep(Draft {
                // The prompt that a walk came to is stored already.
                message: self.history.draft().cloned().unwrap_or_else(|| self.content.message()),
                unsent: self.history.unsent().to_vec(),
                aside: self.aside.clone(),
                taking: self.outbox.taking.as_ref().map(|t| (t.id, t.message.clone())),
                sent: self.outbox.sent.iter().map(|s| s.message.clone()).collect(),
            });
        }
    }

    /// After an edit: opens, refreshes or closes the list, and asks for what it needs.
    fn look(&mut self) -> Reply {
        self.changed();
        let before = self.popup.take().map(|p| p.kind);
        self.popup = Popup::at(&self.content.edit, self.commands, &self.reported.prompts);
        match &mut self.popup {
            // The prompts are read once for each list that opens.
            Some(p) if p.kind == PopupKind::Slash && before != Some(PopupKind::Slash) => {
                let prompts = Effect::ask(CommandBody::Query(Query::Mcp), PROMPTS);
                Reply::Done(vec![prompts, self.reported.commands.ask()])
            }
            Some(p) if p.kind == PopupKind::Mention => {
                let query = Query::Mentions { text: p.word.clone(), limit: 50 };
                Reply::with(Effect::ask(CommandBody::Query(query), MENTIONS))
            }
            Some(p) if p.kind == PopupKind::Workflow => {
                p.workflows(&self.reported.flows);
                // The files are read once for each list that opens.
                if before == Some(PopupKind::Workflow) {
                    return Reply::done();
                }
                Reply::with(Effect::ask(CommandBody::Query(Query::Workflows), FLOWS))
            }
            Some(p) if p.kind == PopupKind::Skill => {
                p.skills(&self.reported.skills);
                // They are read once for each list that opens.
                if before == Some(PopupKind::Skill) {
                    return Reply::done();
                }
                let query = Query::Skills { query: SkillQuery::Skills };
                Reply::with(Effect::ask(CommandBody::Query(query), SKILLS))
            }
            _ => Reply::done(),
        }
    }

    /// Empties the text, which was sent.
    fn clear(&mut self) {
        self.history.push(self.content.message());
        self.empty();
    }

    fn empty(&mut self) {
        self.content = Content::default();
        self.popup = None;
        self.changed();
    }

    /// Looks again for mentions that the search did not find while they were typed: they may be ignored by git, in
    /// another folder, or new. Files of the project and of the session's own `/tmp` are attached; of files elsewhere, and
    /// of those that two folders have, the warning says where they are.
    fn look_again(&mut self, model: &Model) {
        let Some(summary) = &model.agent.session.summary else { return };
        let project = tiller_protocol::names::path(&summary.project);
        self.names.outside.clear();
        for word in self.names.doubtful(self.content.edit.text()) {
            let inside = std::path::Path::new(&word)
                .components()
                .all(|c| matches!(c, std::path::Component::Normal(_) | std::path::Component::CurDir));
            let at = match word.strip_prefix("~/") {
                Some(rest) => {
                    std::env::home_dir().map_or_else(|| project.join(&word), |home| home.join(rest))
                }
                None => project.join(&word),
            };
            let exists = std::fs::symlink_metadata(&at).is_ok();
            if exists && (inside || (at.starts_with(&project) && !word.contains(".."))) {
                self.names.unknown.remove(&word);
                self.content.mention(&word);
                continue;
            }
            let sandbox = model.engine.sandbox.as_deref();
            let why = match own_tmp::find(&at, sandbox) {
                OwnTmp::Here { also, at } => {
                    self.names.unknown.remove(&word);
                    self.content.mention(&word);
                    also.then(|| both(&word, &at))
                }
                OwnTmp::Machine => Some(machine(&word, sandbox)),
                OwnTmp::Elsewhere => exists.then(|| elsewhere(&word)),
            };
            if let Some(why) = why {
                self.names.outside.insert(word, why);
            }
        }
    }

    fn send(&mut self, mode: SendMode, model: &Model) -> Reply {
        if self.content.is_blank() {
            return Reply::Ignored;
        }
        if self.elsewhere.reading.iter().any(|label| self.content.reserves(label)) {
            self.notice = Some(
                "A picture is still being read. Press Enter again in a moment, or delete it from the message."
                    .into(),
            );
            return Reply::done();
        }
        self.look_again(model);
        let message = self.content.message();
        if let Some(why) = self.names.doubt(&message.text) {
            self.notice = Some(why);
            return Reply::done();
        }
        if let Some(text) = submit::note(&message.text) {
            if text.is_empty() {
                self.notice = Some("Write what to keep in memory after the #.".into());
                return Reply::done();
            }
            if let Some(why) = submit::cannot_go(&message, "a note") {
                self.notice = Some(why);
                return Reply::done();
            }
            let command = MemoryCommand::Add { target: self.reported.memory, text: text.to_owned() };
            let reply = self.post(message, CommandBody::Memory(command));
            self.clear();
            return reply;
        }
        match submit::submit(&message, mode, self.commands, model) {
            SubmitAction::Stay(why) => self.stay(&message.text, mode, why),
            SubmitAction::Effects(effects) => {
                self.clear();
                Reply::Done(effects)
            }
            SubmitAction::Message(command) => {
                let reply = self.post(message, command);
                self.clear();
                reply
            }
        }
    }

    /// Sends a message, and keeps it until the engine has it on disk.
    fn post(&mut self, message: Message, command: CommandBody) -> Reply {
        self.outbox.last += 1;
        let token = Token(SENT0 + self.outbox.last);
        self.outbox.sent.push_back(UnconfirmedMessage { token, message, queued: None });
        if self.outbox.sent.len() > SENT {
            self.outbox.sent.pop_front();
        }
        self.keep();
        Reply::with(Effect::ask(command, token))
    }

    /// Handles Enter: a completion that is open is finished first, so that Enter never runs the wrong command.
    fn enter(&mut self, model: &Model) -> Reply {
        if let Some(row) = self.recent.selected() {
            return self.open_recent(row, model);
        }
        let other = |p: &Popup| p.current().is_some_and(|r| r.name != p.word);
        let begun = |p: &Popup| match p.kind {
            PopupKind::Mention => true,
            // A complete name is used as it is, also an alias from another program.
            PopupKind::Slash => other(p) && (p.moved || !self.commands.exists(&p.word)),
            // Without a word the command stands for itself, unless a row was gone to.
            PopupKind::Workflow | PopupKind::Effort | PopupKind::Skill => {
                (p.moved || !p.word.is_empty()) && other(p)
            }
        };
        if self.popup.as_ref().is_some_and(begun)
            && let Some(reply) = self.take_row()
        {
            return reply;
        }
        self.popup = None;
        if self.content.edit.text()[..self.content.edit.caret()].ends_with('\\') {
            self.content.edit.delete_back();
            self.content.edit.insert("\n");
            return self.look();
        }
        // After a stop, what waits goes out with the next message, or by an Enter alone.
        if let Some(q) =
            model.agent.waiting().next().filter(|_| self.content.is_blank() && !model.agent.turn.running)
        {
            let go = QueueCommand::Mode { id: q.id, mode: SendMode::Now };
            return Reply::with(Effect::send(CommandBody::Queue(go)));
        }
        self.send(if model.agent.turn.running { running_modes(model).0 } else { SendMode::Steer }, model)
    }

    /// Returns true if Enter would not send the draft to a model, but run it, or write it to memory.
    pub(crate) fn is_command(&self) -> bool {
        self.content.edit.text().trim_start().starts_with(['!', '/', '#'])
    }

    /// The text that is not sent.
    #[cfg(test)]
    pub(crate) fn draft_text(&self) -> String {
        self.content.edit.text().to_owned()
    }

    /// The last sessions and the selected one.
    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Opens one of the last sessions by the number of its row.
    fn open_recent(&mut self, row: usize, model: &Model) -> Reply {
        self.recent.leave();
        let effect = self.recent.open(row).filter(|_| recent_sessions::are_shown(model));
        effect.map_or(Reply::Ignored, Reply::with)
    }

    /// Takes the selected row into the text. `None`: no list is open, or it is empty.
    fn take_row(&mut self) -> Option<Reply> {
        let popup = self.popup.take()?;
        let row = popup.current().cloned()?;
        match popup.kind {
            PopupKind::Slash => {
                self.content.edit.replace(popup.range, &format!("/{} ", row.name));
                // What follows may have a list of its own.
                return Some(self.look());
            }
            PopupKind::Workflow | PopupKind::Effort => self.content.edit.replace(popup.range, &row.name),
            PopupKind::Skill => {
                self.content.edit.replace(popup.range, &format!("${} ", row.name));
                self.gap = Some(self.content.edit.caret());
            }
            PopupKind::Mention => {
                if !row.agent {
                    self.content.mention(&row.name);
                }
                let gap = if row.name.ends_with('/') { "" } else { " " };
                self.content.edit.replace(popup.range, &format!("@{}{gap}", row.name));
                self.gap = (!gap.is_empty()).then(|| self.content.edit.caret());
            }
        }
        self.changed();
        Some(Reply::done())
    }

    fn open_editor(&mut self, model: &Model) -> Reply {
        let folder = &model.environment.folders.scratch;
        let file = folder.join(format!("message-{}.md", std::process::id()));
        match crate::app::saver::write_private(&file, self.content.message().text.as_bytes()) {
            Ok(()) => {
                self.elsewhere.editing = Some(file.clone());
                Reply::with(Effect::Task(Task::Suspend(External::Editor { file, line: None })))
            }
            Err(e) => Reply::with(Effect::Toast(
                Notice::new(NoticeKind::User, format!("The file for the editor could not be created: {e}."))
                    .hint(format!("Check that {} is writable.", folder.display())),
            )),
        }
    }
}

/// Returns what Enter and Tab mean while a turn runs.
fn running_modes(model: &Model) -> (SendMode, SendMode) {
    match model.ui.enter_while_running {
        EnterWhileRunning::Steer => (SendMode::Steer, SendMode::Queue),
        EnterWhileRunning::Queue => (SendMode::Queue, SendMode::Steer),
    }
}

#[cfg(test)]
#[path = "composer_tests.rs"]
mod tests;
