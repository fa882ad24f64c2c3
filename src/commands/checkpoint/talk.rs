//! Going back in the conversation, and undoing it: on a separate branch, as in the workbench. Nothing is deleted.

use tiller_engine::files::restore::back::{self, RestoreChoices};
use tiller_engine::undo::{self, Inverse, Next, OpTitle};
use tiller_protocol::op::OpChange;
use tiller_protocol::{BranchName, EntryBody, EntryId, Notice, NoticeKind, Op};
use tiller_snapshot::SnapshotError;
use tiller_store::{AcquireMode, Lease};

use super::{Exit, Fault, Outcome, Workspace, one_line};

impl Workspace<'_> {
    /// Continues before the person's message at `entry`, or at a checkpoint. The log's row about the files, if there is
    /// one, is undone together with it.
    pub(super) fn talk_back(&mut self, entry: EntryId, said: &mut Outcome) -> Result<(), Notice> {
        let node = self.store.entries().get(entry).map_err(|e| e.notice())?;
        let (at, draft) = match node.body {
            EntryBody::User { message, .. } => (node.parent, Some(message.text)),
            _ => (Some(node.id), None),
        };
        let before = self.store.heads().get(self.session, &self.head).map_err(|e| e.notice())?;
        let id = self.ids().next(self.setup.clock.now()).simple().to_string();
        let name = BranchName::generated(&id[id.len() - 8..]);
        let from = Some(self.head.clone());
        let change = OpChange::Head { name: name.clone(), before, after: at, from };
        let op = Op { with: said.op, ..self.op(&Op::FORK.into(), change) };
        self.store.heads().set(self.session, &name, at, Some(op)).wait().map_err(|e| e.notice())?;
        self.leave(&name);
        said.lines.push(format!("The conversation continues from there, on {name}; the old path stays."));
        if let Some(text) = &draft {
            said.lines.push(format!("The message there was: {}", one_line(text)));
        }
        (said.branch, said.draft) = (Some(name), draft);
        Ok(())
    }

    fn leave(&mut self, now: &str) {
        self.behind.push(std::mem::replace(&mut self.head, now.to_owned()));
    }

    /// Finishes: removes heads that were left and hold nothing of their own.
    pub(super) fn end(&mut self, lease: Lease) -> Result<(), Notice> {
        self.store.leases().release(lease).wait().map_err(|e| e.notice())?;
        for was in std::mem::take(&mut self.behind) {
            self.store.heads().drop_bare(self.session, &was).wait().map_err(|e| e.notice())?;
        }
        Ok(())
    }

    /// Undoes the last restore, of files or of the conversation or of both.
    pub(super) fn undo(&mut self, redo: bool, json: bool) -> Result<Exit, Notice> {
        let ops = self.store.sessions().ops(self.session, undo::OPS).map_err(|e| e.notice())?;
        let head = self.head.clone();
        let back = |op: &Op| {
            let forked = || ops.iter().any(|root| root.id == op.root() && root.is_fork());
            match &op.change {
                OpChange::Files { turn: None, .. } => true,
                // Earlier versions did not record the origin of a branch: there the undo continues with the row before.
                OpChange::Head { from: None, .. } => false,
                OpChange::Head { .. } => forked() && undo::fits(op, &head),
                _ => false,
            }
        };
        let none = if redo { "No restore has been undone." } else { "There is no restore to undo." };
        let none = || Notice::new(NoticeKind::User, none);
        let mut next = Some(undo::next(&ops, redo, back).ok_or_else(none)?);
        let lease = self.lease()?;
        let mut said = Outcome::default();
        while let Some(this) = next.take() {
            let title = OpTitle::inverse(Inverse::of(redo), this.title.clone());
            match &this.row.change {
                OpChange::Head { .. } => self.move_back(&this, &title, &mut said)?,
                _ => self.files_back(&lease, &this, &title, &mut said)?,
            }
            next = this.with.and_then(|root| undo::of(&ops, root, redo));
        }
        self.end(lease)?;
        said.say(json)
    }

    /// Undoes a restore of files. A restore whose states are gone is closed: the next undo continues with the one
    /// before.
    fn files_back(
        &mut self,
        lease: &Lease,
        this: &Next,
        title: &OpTitle,
        said: &mut Outcome,
    ) -> Result<(), Notice> {
        let lost = |here: &Self, state: String| {
            here.log_op(
                lease,
                Op { of: Some(this.root), ..here.op(title, back::nothing(state, this.root, None)) },
            )?;
            Err(Notice::new(NoticeKind::User, "The snapshot of the files at that point is no longer kept.")
                .hint("The next undo continues with the step before it."))
        };
        let Some(goal) = back::reverse(&this.row) else { return lost(self, String::new()) };
        match self.files(lease, &goal, &RestoreChoices::default(), title, Some(this.root), said) {
            Err(Fault::Files(SnapshotError::Missing(_))) => lost(self, goal.to.to_string()),
            done => done.map_err(Notice::from),
        }
    }

    /// Goes to the branch that a row of the log came from.
    fn move_back(&mut self, this: &Next, title: &OpTitle, said: &mut Outcome) -> Result<(), Notice> {
        let OpChange::Head { before, from: Some(to), .. } = &this.row.change else {
            return Err(Notice::new(
                NoticeKind::User,
                "The log has no record of the conversation's earlier position.",
            ));
        };
        let heads = self.store.heads().list(self.session).map_err(|e| e.notice())?;
        let there = heads.iter().find(|(name, _)| name == to).map(|(_, entry)| *entry);
        let here = self.store.heads().get(self.session, &self.head).map_err(|e| e.notice())?;
        let after = there.unwrap_or(*before);
        let change = OpChange::Head { name: to.clone(), before: here, after, from: Some(self.head.clone()) };
        let op = Op { of: Some(this.root), ..self.op(title, change) };
        let done = if there.is_some() {
            // Another process may be working on it.
            let lease = self
                .store
                .leases()
                .acquire(self.session, to, AcquireMode::IfFree)
                .wait()
                .map_err(|e| e.notice())?;
            let done = self.store.heads().go_to(self.session, to, Some(op)).wait();
            self.store.leases().release(lease).wait().map_err(|e| e.notice())?;
            done
        } else {
            self.store.heads().set(self.session, to, after, Some(op)).wait()
        };
        done.map_err(|e| e.notice())?;
        let to = to.clone();
        self.leave(&to);
        said.lines.push(format!("The conversation is on {to} again."));
        said.branch = Some(to);
        Ok(())
    }
}
