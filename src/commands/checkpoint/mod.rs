//! `tiller checkpoint`: restores files and conversation to an earlier state, without a screen. The same operations as in
//! the workbench.

mod talk;

use std::path::PathBuf;

use serde_json::json;
use tiller_engine::files::cut;
use tiller_engine::files::restore::back::{self, RestoreChoices};
use tiller_engine::undo::OpTitle;
use tiller_protocol::op::OpChange;
use tiller_protocol::restore::StepFile;
use tiller_protocol::{
    Entry, EntryBody, EntryId, IdSource, Notice, NoticeKind, Op, OpId, RestorePreview, RestoreWhat,
    SessionId, names,
};
use tiller_snapshot::{Goal, Shadow, SnapshotError, Step};
use tiller_store::{AcquireMode, Append, Lease, StepOf, StepRow, Store};

use crate::app::{Setup, files};
use crate::commands::args::{Checkpoint, CheckpointWhat};
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say, say_beside};

/// Why the files could not be changed.
enum Fault {
    Files(SnapshotError),
    Told(Notice),
}

impl From<Fault> for Notice {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Files(e) => e.notice(),
            Fault::Told(notice) => notice,
        }
    }
}

/// The result, for a person or a script.
#[derive(Default)]
struct Outcome {
    lines: Vec<String>,
    /// `None`: the files were not changed.
    files: Option<Vec<StepFile>>,
    left: Vec<String>,
    /// The branch on which the conversation continues, and the message at its end.
    branch: Option<String>,
    draft: Option<String>,
    /// The row of the files in the log.
    op: Option<OpId>,
}

impl Outcome {
    fn say(&self, json: bool) -> Result<Exit, Notice> {
        if !json {
            return say(&(self.lines.join("\n") + "\n"));
        }
        let mut row = json!({"left": self.left});
        if let Some(files) = &self.files {
            row["files"] = json!(files);
        }
        if let Some(branch) = &self.branch {
            (row["branch"], row["draft"]) = (json!(branch), json!(self.draft));
        }
        say(&json_line(&row))
    }
}

/// A session, and the snapshots of its folder.
struct Workspace<'a> {
    setup: &'a Setup,
    store: Store,
    session: SessionId,
    head: String,
    /// Heads that were left.
    behind: Vec<String>,
    shadow: Shadow,
}

/// Runs one subcommand.
pub(super) fn run(setup: &Setup, what: &Checkpoint) -> Result<Exit, Notice> {
    let store = crate::commands::opened(setup)?;
    let session = setup.find_session(&store, what.session.as_deref().unwrap_or("last"))?;
    let row = store.sessions().get(session).map_err(|e| e.notice())?;
    if row.summary.project != setup.project_name() {
        return Err(Notice::new(
            NoticeKind::User,
            format!("This session belongs to {}.", row.summary.project),
        )
        .hint("Run this command in that folder: files are only restored in the current folder."));
    }
    let place = files::place(setup).ok_or_else(|| {
        Notice::new(NoticeKind::User, "No snapshots are kept for this folder.")
            .hint("Set snapshots.enabled to true in config.toml.")
    })?;
    let shadow =
        Shadow::open(&place.workspace, &place.store, place.limits, std::sync::Arc::clone(&setup.clock))
            .map_err(|e| e.notice())?;
    let mut here = Workspace { setup, store, session, head: row.head, behind: Vec::new(), shadow };
    if let Some(recovered) = here.shadow.recovered() {
        say_beside(&recovered.sentence());
        here.log_finished(&recovered)?;
    }
    for notice in files::taken_back(setup) {
        say_beside(&notice.message);
    }
    if !here.shadow.cut_calls().is_empty() {
        let now = here.shadow.snapshot().map_err(|e| e.notice())?;
        for credited in cut::credit(&here.shadow, &here.store, &now) {
            say_beside(&credited.sentence());
        }
    }
    match &what.what {
        CheckpointWhat::List => here.list(what.json),
        CheckpointWhat::Create { name } => here.create(name, what.json),
        CheckpointWhat::Diff { point } => here.diff(point, what.json),
        CheckpointWhat::Restore { point, path, force, part } => {
            here.restore(point, path, *force, part.what(), what.json)
        }
        CheckpointWhat::Undo { redo } => here.undo(*redo, what.json),
    }
}

/// The title of a checkpoint.
fn title(entry: &Entry) -> String {
    let text = match &entry.body {
        EntryBody::Checkpoint { name } => name.clone(),
        body => body.search_text(),
    };
    one_line(text.trim())
}

impl Workspace<'_> {
    /// The checkpoints of the session: messages and named checkpoints, oldest first.
    fn points(&self) -> Result<Vec<(Entry, StepRow)>, Notice> {
        let mut points = Vec::new();
        for row in self.store.steps().list(self.session, 0).map_err(|e| e.notice())? {
            // A damaged or missing entry cannot be restored.
            if let StepOf::Point(id) = row.of
                && let Ok(entry) = self.store.entries().get(id)
            {
                points.push((entry, row));
            }
        }
        Ok(points)
    }

    fn list(&self, json: bool) -> Result<Exit, Notice> {
        let mut text = String::new();
        for (entry, row) in self.points()? {
            let named = matches!(entry.body, EntryBody::Checkpoint { .. });
            if json {
                text.push_str(&json_line(&json!({
                    "entry": entry.id, "name": title(&entry), "named": named, "time": row.time,
                    "snapshot": row.after,
                })));
            } else {
                let when = tiller_tui::zone::written(row.time)[..16].to_owned();
                let mark = if named { "*" } else { " " };
                text.push_str(&format!("{}  {when} {mark} {}\n", entry.id, title(&entry)));
            }
        }
        if text.is_empty() && !json {
            text = "No snapshots have been taken in this session yet.\n".into();
        }
        say(&text)
    }

    /// Finds a checkpoint by its name, or by an entry's id or a prefix of it.
    fn find_point(&self, text: &str) -> Result<(Entry, String), Notice> {
        let points = self.points()?;
        let named = points
            .iter()
            .rev()
            .find(|(e, _)| matches!(&e.body, EntryBody::Checkpoint { name } if name == text));
        let mut by_id = points.iter().filter(|(e, _)| text.len() >= 6 && e.id.to_string().starts_with(text));
        let found = match (named, by_id.next(), by_id.next()) {
            (Some(found), ..) | (None, Some(found), None) => found,
            (None, Some(_), Some(_)) => {
                let several = format!("Several checkpoints begin with '{text}'.");
                return Err(Notice::new(NoticeKind::User, several).hint("Give more characters of the ID."));
            }
            (None, None, _) => {
                let none = format!("There is no checkpoint '{}'.", one_line(text));
                return Err(Notice::new(NoticeKind::User, none).hint("`tiller checkpoint list` lists them."));
            }
        };
        Ok((found.0.clone(), title(&found.0)))
    }

    fn find(&self, text: &str) -> Result<(Goal, EntryId, String), Notice> {
        let (entry, title) = self.find_point(text)?;
        let point = back::point(&self.store, self.session, entry.id).map_err(|e| e.notice())?;
        let point = point.ok_or_else(|| {
            Notice::new(
                NoticeKind::User,
                "There is no snapshot of the files at that \
                                                          point.",
            )
        })?;
        Ok((point.goal(), entry.id, title))
    }

    fn preview(&mut self, goal: &Goal, title: String) -> Result<RestorePreview, Notice> {
        let plan = self.shadow.plan(goal).map_err(|e| e.notice())?;
        // A script gets the complete list.
        Ok(back::preview(&self.shadow, &plan, title, self.setup.clock.now(), usize::MAX))
    }

    fn diff(&mut self, point: &str, json: bool) -> Result<Exit, Notice> {
        let (goal, _, title) = self.find(point)?;
        let preview = self.preview(&goal, title)?;
        if json {
            return say(&json_line(&preview));
        }
        let mut text = String::new();
        for f in &preview.files {
            let why =
                f.conflict.as_deref().map(|c| format!("  ({c}: kept unless --force)")).unwrap_or_default();
            text.push_str(&format!("{:?} {}  +{} -{}{why}\n", f.kind, one_line(&f.path), f.added, f.removed));
            text.push_str(&tiller_text::clean::plain_lines(&f.diff));
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
        for line in preview.left.iter().chain(&preview.notes) {
            text.push_str(&format!("{}\n", one_line(line)));
        }
        say(if text.is_empty() { "No file differs.\n" } else { &text })
    }

    /// Takes the lease: no other process may work on this branch meanwhile.
    fn lease(&self) -> Result<Lease, Notice> {
        self.store.leases().acquire(self.session, &self.head, AcquireMode::IfFree).wait().map_err(|e| {
            e.notice().hint("Use that window instead: press Esc twice, or type /checkpoint or /undo.")
        })
    }

    fn create(&mut self, name: &str, json: bool) -> Result<Exit, Notice> {
        let name = one_line(name.trim());
        if name.is_empty() {
            return Err(Notice::new(NoticeKind::User, "A checkpoint needs a name."));
        }
        let lease = self.lease()?;
        let now = self.setup.clock.now();
        let parent = self.store.heads().get(self.session, &self.head).map_err(|e| e.notice())?;
        let id = EntryId::fresh(self.ids(), now);
        let entry = Entry {
            id,
            parent,
            session: self.session,
            agent: tiller_protocol::AgentId::main(),
            time: now,
            body: EntryBody::Checkpoint { name: name.clone() },
            snapshot: None,
        };
        let kept = self.shadow.snapshot().map_err(|e| e.notice())?;
        let mut append = Append::new(self.session, self.head.clone()).entries(vec![entry]);
        append.lease = Some(lease.clone());
        self.store.entries().append(append).wait().map_err(|e| e.notice())?;
        let row = StepRow {
            began: None,
            id: 0,
            of: StepOf::Point(id),
            before: None,
            after: kept.id.to_string(),
            files: Vec::new(),
            time: kept.time,
        };
        self.store.steps().add(self.session, row).wait().map_err(|e| e.notice())?;
        self.store.leases().release(lease).wait().map_err(|e| e.notice())?;
        let words = format!("Checkpoint \"{name}\" created ({id}).\n");
        say(&if json {
            json_line(&json!({"entry": id, "name": name, "snapshot": kept.id.to_string()}))
        } else {
            words
        })
    }

    fn restore(
        &mut self,
        point: &str,
        paths: &[PathBuf],
        force: bool,
        what: RestoreWhat,
        json: bool,
    ) -> Result<Exit, Notice> {
        let lease = self.lease()?;
        let mut said = Outcome::default();
        let entry = if what.files() {
            let (mut goal, entry, title) = self.find(point)?;
            if !paths.is_empty() {
                // As the lists show it, or in its own bytes.
                let named = |p: &PathBuf| p.to_str().map_or_else(|| p.clone(), names::path);
                goal.select = Some(paths.iter().map(named).collect());
            }
            let wishes = RestoreChoices { force_all: force, ..RestoreChoices::default() };
            self.files(&lease, &goal, &wishes, &format!("restore files: {title}").into(), None, &mut said)?;
            entry
        } else {
            self.find_point(point)?.0.id
        };
        if what.talk() {
            self.talk_back(entry, &mut said)?;
        }
        self.end(lease)?;
        said.say(json)
    }

    /// Records a restore in the log, and its states among the session's steps.
    fn log(
        &self,
        lease: &Lease,
        title: &OpTitle,
        states: Step,
        files: Vec<StepFile>,
        of: Option<OpId>,
    ) -> Result<OpId, Notice> {
        let now = self.setup.clock.now();
        let id = OpId::fresh(self.ids(), now);
        let (change, row) = back::traces(states, files, now, of, StepOf::Restore(id));
        let op = Op { id, ..self.op(title, change) };
        self.store.steps().add(self.session, row).wait().map_err(|e| e.notice())?;
        self.log_op(lease, op)?;
        Ok(id)
    }

    fn log_op(&self, lease: &Lease, op: Op) -> Result<(), Notice> {
        let mut append = Append::new(self.session, lease.head.clone());
        append.op = Some(op);
        append.lease = Some(lease.clone());
        self.store.entries().append(append).wait().map_err(|e| e.notice())?;
        Ok(())
    }

    /// A row of the log.
    fn op(&self, title: &OpTitle, change: OpChange) -> Op {
        let now = self.setup.clock.now();
        let id = OpId::fresh(self.ids(), now);
        let (session, title) = (self.session, title.to_string());
        Op { id, session, time: now, parent: None, cause: None, title, of: None, with: None, change }
    }

    /// A restore that a kill interrupted was finished when the store was opened: it can be undone like any other.
    fn log_finished(&self, recovered: &tiller_snapshot::RecoveryReport) -> Result<(), Notice> {
        let Some(step) = recovered.step() else { return Ok(()) };
        let files = back::named(&self.shadow.compare(step.before, step.after).map_err(|e| e.notice())?);
        let lease = self.lease()?;
        self.log(&lease, &"restore files, completed at startup".into(), step, files, None)?;
        self.store.leases().release(lease).wait().map_err(|e| e.notice())
    }

    /// Changes the files, and records it in the log.
    fn files(
        &mut self,
        lease: &Lease,
        goal: &Goal,
        wishes: &RestoreChoices,
        title: &OpTitle,
        of: Option<OpId>,
        said: &mut Outcome,
    ) -> Result<(), Fault> {
        let (done, named) = back::go(&mut self.shadow, goal, wishes).map_err(Fault::Files)?;
        if done.before.id != done.after.id {
            said.op = Some(self.log(lease, title, done.step(), named.clone(), of).map_err(Fault::Told)?);
        } else if let Some(root) = of {
            // It is undone: the next undo affects the operation before it.
            let change = back::nothing(done.after.id.to_string(), root, None);
            self.log_op(lease, Op { of, ..self.op(title, change) }).map_err(Fault::Told)?;
        }
        let words =
            if of.is_some() { back::undone(title, &done, &named) } else { back::sentence(&done, &named) };
        said.lines.push(format!("{}.", one_line(&words)));
        if done.left.iter().any(|l| matches!(l.why, tiller_snapshot::SkipReason::Conflict)) && of.is_none() {
            said.lines.push(
                "Files that you or another program changed since then are kept; --force \
                    restores them too (their current state is kept first)."
                    .into(),
            );
        }
        said.left = done.left.iter().map(|l| format!("{}: {}", back::shown(&l.path), l.why)).collect();
        said.files = Some(named);
        Ok(())
    }

    fn ids(&self) -> &dyn IdSource {
        self.setup.ids.as_ref()
    }
}
