//! Names that the person gives: to a branch, a session, an entry, a file to write.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::{CommandBody, EntryId, Notice, NoticeKind, SessionId};

use super::keys::{say, send};
use super::requests::{CHANGE, TRASH};
use super::{Browser, Field};
use crate::app::effect::{Effect, Token};
use crate::panel::Reply;
use crate::text::clean;
use crate::widget::edit::Edit;

impl Browser {
    pub(super) fn name(&mut self) -> Reply {
        let Some(at) = self.at() else { return Reply::done() };
        if at.node.is_none() {
            self.field = Field::Title(at.tree.session, Edit::with(&clean::plain(&at.tree.about.title)));
            return Reply::done();
        }
        let Some((shape, _, _)) = at.node else { return Reply::done() };
        let Some(head) = self.branch(&at).map(|h| &shape.tree.heads[h]) else {
            return say("No branch ends below this entry; fork here, or tag the entry");
        };
        let session = at.tree.session;
        self.field = Field::Branch(session, head.name.clone(), Edit::with(&clean::plain(&head.label)));
        Reply::done()
    }

    pub(super) fn tag(&mut self) -> Reply {
        let Some(at) = self.at() else { return Reply::done() };
        let Some((shape, n, entry)) = at.node else { return say("Select one of its entries first") };
        let tag = shape.tags.get(&n).and_then(|t| t.first()).map(|t| shape.tree.tags[*t].name.clone());
        let session = at.tree.session;
        self.field = Field::Tag(session, entry, Edit::with(&clean::plain(&tag.unwrap_or_default())));
        Reply::done()
    }

    pub(super) fn archive(&mut self) -> Reply {
        let Some(at) = self.at() else { return Reply::done() };
        let id = at.tree.session;
        let Some((shape, _, _)) = at.node else {
            if at.tree.nested {
                return say("A sub-agent's session belongs to its parent session");
            }
            let archived = !at.tree.about.archived;
            let archive = send(SessionCommand::Archive { id, archived });
            // Shown at once, so that the same key brings it back; a refusal is reported.
            if let Some(n) = self.forest.find(id) {
                self.forest.trees[n].about.archived = archived;
            }
            self.filter.archived |= archived;
            self.rebuild();
            return Reply::Done(vec![archive]);
        };
        let here = self.is_here(id);
        match self.branch(&at).map(|h| &shape.tree.heads[h]) {
            None => say("No branch ends below this entry"),
            Some(h) if h.current && here => say("The open branch cannot be archived; open another one first"),
            Some(h) if h.current => say("This is the session's current branch: it cannot be archived"),
            Some(h) => {
                let (head, archived) = (h.name.clone(), !h.archived);
                self.filter.archived |= archived;
                let session = (!here).then_some(id);
                self.change(id, SessionCommand::ArchiveBranch { session, head, archived })
            }
        }
    }

    /// Moves a session to the trash; the same key restores it. Branches are never deleted.
    pub(super) fn trash(&mut self) -> Reply {
        let Some(at) = self.at() else { return Reply::done() };
        let (id, n) = (at.tree.session, at.row.tree);
        if at.node.is_some() && !at.tree.trashed {
            return say("Only a whole session can be deleted, on its own row; archive a branch instead");
        }
        if at.tree.nested {
            return say("A sub-agent's session belongs to its parent session");
        }
        if self.is_here(id) || self.origin.root == Some(id) {
            return say("The open session cannot be deleted; open another one first");
        }
        if at.tree.about.open_in && !at.tree.trashed {
            return say("This session is open in another window");
        }
        let trashed = !at.tree.trashed;
        self.forest.trees[n as usize].trashed = trashed;
        // Shown at once; a refusal is reported, and takes it back.
        let ask = CommandBody::Session(SessionCommand::Trash { id, trashed });
        let said = if trashed { "Deleted; the same key restores it within 30 days" } else { "Restored" };
        let said = Notice::new(NoticeKind::Info, said);
        Reply::Done(vec![Effect::ask(ask, Token(TRASH + u64::from(n))), Effect::Toast(said)])
    }

    pub(super) fn export(&mut self) -> Reply {
        let Some(at) = self.at() else { return Reply::done() };
        let words = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = at.tree.about.title.chars().take(40).map(words).collect();
        let name = name.split('-').filter(|p| !p.is_empty()).collect::<Vec<_>>().join("-");
        let name = if name.is_empty() { "session".into() } else { name };
        self.field = Field::Export(at.tree.session, Edit::with(&format!("{name}.md")));
        Reply::done()
    }

    /// The text in the field has changed.
    pub(super) fn field_changed(&mut self) -> Reply {
        if let Field::Find(edit) = &self.field {
            self.search.typed = edit.text().to_owned();
            return Reply::Done(self.wants());
        }
        Reply::done()
    }

    /// Enter in the field.
    pub(super) fn field_done(&mut self) -> Reply {
        let command = match std::mem::replace(&mut self.field, Field::None) {
            Field::None | Field::Find(_) => return Reply::Done(self.wants()),
            Field::Branch(id, head, edit) => {
                let label = edit.text().trim().to_owned();
                let session = (!self.is_here(id)).then_some(id);
                return self.change(id, SessionCommand::LabelBranch { session, head, label });
            }
            Field::Title(id, edit) => {
                let title = edit.text().trim().to_owned();
                if let Some(n) = self.forest.find(id).filter(|_| !title.is_empty()) {
                    self.forest.trees[n].about.title.clone_from(&title);
                }
                SessionCommand::Rename { id, title }
            }
            Field::Export(id, edit) => {
                let file = edit.text().trim().to_owned();
                SessionCommand::Export { id, file }
            }
            Field::Tag(id, entry, edit) => {
                let session = (!self.is_here(id)).then_some(id);
                let name = edit.text().trim().to_owned();
                let known = self.tag_of(id, entry);
                let tag = match (name.is_empty(), known) {
                    (true, None) => return Reply::done(),
                    (true, Some(name)) => SessionCommand::Tag { session, name, entry: None },
                    (false, _) => SessionCommand::Tag { session, name, entry: Some(entry) },
                };
                return self.change(id, tag);
            }
        };
        Reply::with(send(command))
    }

    /// Changes a session's names. Of the open one the events tell; of another one the answer does.
    fn change(&mut self, session: SessionId, command: SessionCommand) -> Reply {
        if self.is_here(session) {
            return Reply::with(send(command));
        }
        self.loading.changing = Some(session);
        Reply::with(Effect::ask(CommandBody::Session(command), CHANGE))
    }

    fn tag_of(&self, session: SessionId, entry: EntryId) -> Option<String> {
        let shape = self.forest.trees[self.forest.find(session)?].shape()?;
        let tag = shape.tree.tags.iter().find(|t| shape.tree.nodes[t.node as usize].id == entry)?;
        Some(tag.name.clone())
    }
}
