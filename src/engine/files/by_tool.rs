//! Moments that the agent names, and going back to one, in the middle of a turn. The tool asks the person; here it
//! is done.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    CommandId, Entry, EntryBody, EntryId, EventBody, Notice, NoticeKind, Op, OpId, RestorePreview, SessionId,
};
use tiller_store::{StepOf, Store};

use super::back::{self, Wishes};
use super::msg::{Gone, Kept};
use super::restore::{go, goal, off_thread};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::files::msg::{Answer, Asked, Back, FilesMsg, Named};
use crate::turn::Input;

const OFF: &str = "the files of this folder are not kept: snapshots.enabled is false in config.toml";

impl Core {
    pub(crate) fn files_asked(&mut self, asked: Asked) {
        match asked {
            Asked::Name { name, call, reply } => {
                let _ = reply.send(self.name_moment(&name, call));
            }
            Asked::Preview { name, reply } => self.preview_for_tool(name, reply),
            Asked::Restore { entry, call, reply } => self.restore_for_tool(entry, call, reply),
            Asked::Gone { back, gone, reply } => {
                let _ = reply.send(self.gone_for_tool(back, *gone));
            }
        }
    }

    fn name_moment(&mut self, name: &str, call: String) -> Result<String, String> {
        let keeper = self.services.files.clone().ok_or(OFF)?;
        let name = self.redact(name);
        let watched = self.watched();
        // Now, not when the entry finds its place: what the same reply changes next is not part of it.
        let kept = keeper.submit(move |s| {
            let after = s.snapshot()?;
            let others = watched.others(s, &after, StepOf::OthersBeforeCall(call));
            Ok(Kept { others, before: None, began: None, after, files: Vec::new(), open: None })
        });
        // Its row stands before those of what comes next, so the entry has its id from now on.
        let entry = EntryId::fresh(&*self.services.ids, self.services.clock.now());
        self.record(StepOf::Point(entry), async { kept.await.ok() });
        self.files.named.push(Named { name: name.clone(), entry });
        self.prompts.pending.push(EntryBody::Checkpoint { name: name.clone() });
        let mut append = self.append();
        append.pending = Some(self.prompts.pending.clone());
        self.save(append, Vec::new(), Then::Nothing);
        if self.turn.live.is_some() {
            self.feed(Input::Steer(true));
        }
        Ok(format!("This moment is the checkpoint \"{name}\"."))
    }

    /// What waited finds its place.
    pub(crate) fn grow_pending(&mut self, body: EntryBody) -> Entry {
        let id = match &body {
            EntryBody::Checkpoint { name } => {
                self.files.named.iter().find(|n| n.name == *name).map(|n| n.entry)
            }
            _ => None,
        };
        match id {
            Some(id) => self.session.grow_as(&self.services, id, body),
            None => self.session.grow(&self.services, body),
        }
    }

    fn preview_for_tool(&mut self, name: String, reply: Answer<(EntryId, RestorePreview)>) {
        let name = self.redact(&name);
        let (keeper, store, session) =
            (self.services.files.clone(), self.services.store.clone(), self.session.id);
        let written = self.written();
        self.spawn(async move {
            written.await;
            let made = async {
                let keeper = keeper.ok_or(OFF)?;
                let found = off_thread(move || {
                    let entry = find(&store, session, &name)?;
                    Ok((entry, goal(&store, session, entry)?))
                });
                let (entry, (goal, title, time)) = found.await.map_err(|n| n.message)?;
                let made = keeper.run(move |s| {
                    let plan = s.plan(&goal)?;
                    Ok(back::preview(s, &plan, title, time, back::LISTED))
                });
                Ok((entry, made.await.map_err(|e| e.notice().message)?))
            };
            let _ = reply.send(made.await);
        });
    }

    fn restore_for_tool(&mut self, entry: EntryId, call: String, reply: Answer<String>) {
        let (keeper, store, session) =
            (self.services.files.clone(), self.services.store.clone(), self.session.id);
        let (tx, written, watched) = (self.tx.clone(), self.written(), self.watched());
        let op = OpId::fresh(&*self.services.ids, self.services.clock.now());
        self.spawn(async move {
            written.await;
            let mut back = Back { entry, call, op, title: String::new() };
            let result = async {
                let keeper = keeper.ok_or(OFF)?;
                let (goal, name, _) =
                    off_thread(move || goal(&store, session, entry)).await.map_err(|n| n.message)?;
                back.title = format!("restore files: {name}");
                go(&keeper, goal, Wishes::default(), watched, op).await.map_err(|n| n.message)
            };
            let gone = Box::new(result.await);
            let _ = tx.send(Msg::Files(FilesMsg::Asked(Asked::Gone { back, gone, reply }))).await;
        });
    }

    fn gone_for_tool(&mut self, way: Back, gone: Result<Gone, String>) -> Result<String, String> {
        let Gone { done, files, others, .. } = gone?;
        let said = back::sentence(&done, &files);
        let place = self.place();
        // It is recorded for the call as well, so that the call's own view lists its changes.
        let whose = StepOf::Call(way.call);
        let (change, row) = back::traces(done.step(), files, done.after.time, None, whose);
        let logged = self.op(self.session.id, CommandId(0), &way.title, change);
        let op = Op { id: way.op, cause: place.cause, ..logged };
        let own = (done.before.id != done.after.id).then_some(row);
        let changed = own.is_some();
        for row in others.into_iter().chain(own) {
            let step = self.services.store.add_step(self.session.id, row);
            self.saves.push(step, After { events: Vec::new(), then: Then::Nothing });
        }
        if changed {
            let mut append = self.append();
            append.op = Some(op);
            let events = vec![(place, EventBody::State(StateEvent::Restored { entry: way.entry }))];
            self.save(append, events, Then::Nothing);
        }
        Ok(said)
    }
}

/// The last moment of this name.
fn find(store: &Store, session: SessionId, name: &str) -> Result<EntryId, Notice> {
    let mut names = Vec::new();
    for row in store.steps(session, 0).map_err(|e| e.notice())?.iter().rev() {
        // An entry that is damaged or gone is no way back.
        if let StepOf::Point(id) = row.of
            && let Ok(entry) = store.entry(id)
            && let EntryBody::Checkpoint { name: this } = entry.body
        {
            if this == name {
                return Ok(id);
            }
            if !names.contains(&this) && names.len() < 10 {
                names.push(this);
            }
        }
    }
    let there = if names.is_empty() {
        "there is no checkpoint yet".to_owned()
    } else {
        format!("available: {}", names.join(", "))
    };
    let text = format!("there is no checkpoint \"{name}\"; {there}");
    Err(Notice::new(NoticeKind::User, text))
}
