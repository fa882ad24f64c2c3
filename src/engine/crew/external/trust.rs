//! Trust in the files of a folder that can make a program run commands: checked before each start of the program.

use std::sync::Arc;

use tiller_protocol::ask::{TrustItem, TrustKind};
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AskBody, AskReply, Notice, NoticeKind};
use tokio::sync::oneshot;

use crate::core::msg::Msg;
use crate::crew::driver::ExternalDriver;
use crate::crew::external::msg::ExternalMsg;
use crate::crew::external::{BeforeWork, FilesTrust};
use crate::questions::asking;
use crate::turn::driver;
use crate::{Human, TrustOffer};

impl ExternalDriver<'_> {
    /// Checks that the configuration files which the program would read are trusted, then starts its turn. Files are read away
    /// from the loop.
    pub(crate) fn check_trust(&mut self) {
        let Some(turn) = self.core.turn.live.as_ref().map(|l| l.no) else { return };
        let Some(programs) = self.core.services.crew.programs.clone() else { return };
        let Some(adapter) = self.core.identity.external_mut().map(|o| Arc::clone(&o.adapter)) else { return };
        let (tx, root) = (self.core.tx.clone(), self.core.services.workspace.root.clone());
        let mut open = self.core.services.permit.denied_reads(&self.core.identity.id);
        open.retain(|d| !adapter.holds_to(&d.globs));
        let open: Vec<String> = open.into_iter().map(|d| d.rule).collect();
        let (keeps, unconfined) = (self.state_before_start(), self.unconfined_start());
        self.core.spawn(async move {
            let title = adapter.title.clone();
            let looked = tokio::task::spawn_blocking(move || (programs.trust)(&root, &adapter, &open)).await;
            let found = match looked {
                Ok(None) => {
                    let (mut files, mut memory) = (None, None);
                    if let Some(keeps) = keeps {
                        files = Some(keeps.kept().await);
                    }
                    if let Some(start) = unconfined {
                        memory = start.noted().await;
                    }
                    FilesTrust::Trusted(BeforeWork { files, memory })
                }
                Ok(Some(offer)) if offer.never => FilesTrust::Refused(Box::new(not_trusted(&title, &offer))),
                Ok(Some(offer)) => FilesTrust::Open(Box::new(offer)),
                Err(_) => {
                    let text = format!("{title} was not started: its settings could not be checked");
                    FilesTrust::Refused(Box::new(Notice::new(NoticeKind::Internal, text)))
                }
            };
            // The engine may have ended.
            let _ = tx.send(Msg::External(ExternalMsg::ProgramTrust { turn, found })).await;
        });
    }

    /// Asks the user to trust files of the folder that can make the program run commands: the turn waits for
    /// the answer, or ends where no person can answer.
    pub(crate) fn ask_trust(&mut self, turn: u64, title: &str, offer: TrustOffer) {
        if self.core.services.user.human == Human::Absent {
            return self.refuse(not_trusted(title, &offer));
        }
        let refused = not_trusted(title, &offer);
        let TrustOffer { folder, items, changed, decide, never: _ } = offer;
        let (reply, answer) = oneshot::channel();
        asking::ask(
            self.core,
            self.core.identity.id.clone(),
            None,
            AskBody::Trust { folder, brings: items, changed },
            reply,
        );
        let tx = self.core.tx.clone();
        self.core.spawn(async move {
            let yes = match answer.await {
                Ok(Ok(AskReply::Yes { .. })) => Some(true),
                Ok(Ok(AskReply::Never)) => Some(false),
                _ => None,
            };
            let kept = match yes {
                Some(yes) => tokio::task::spawn_blocking(move || decide(yes))
                    .await
                    .unwrap_or_else(|_| Err("internal error; this is a bug in Tiller".to_owned()))
                    .map(drop),
                None => Ok(()),
            };
            let found = match kept {
                // The files are checked once more: they may have changed, and a parent folder may have some, too.
                Ok(()) if yes == Some(true) => FilesTrust::Agreed,
                Ok(()) => FilesTrust::Refused(Box::new(refused)),
                Err(why) => {
                    let detail = format!("your decision could not be saved: {why}");
                    FilesTrust::Refused(Box::new(refused.detail(detail)))
                }
            };
            // The engine may have ended; the answer itself is kept.
            let _ = tx.send(Msg::External(ExternalMsg::ProgramTrust { turn, found })).await;
        });
    }

    /// The files have been checked: the program starts, the user is asked, or the turn ends.
    pub(crate) fn trust_checked(&mut self, turn: u64, found: FilesTrust) {
        if !self.core.is_live(turn) {
            if let FilesTrust::Trusted(BeforeWork { files, memory }) = found {
                if let Some(work) = files {
                    self.store_state_after(work);
                }
                if let Some(program) = memory {
                    self.show_memory_changes(program);
                }
            }
            return;
        }
        match found {
            FilesTrust::Trusted(before) => {
                if let Some(o) = self.core.identity.external_mut() {
                    o.before = before;
                }
                self.start();
            }
            FilesTrust::Agreed => self.check_trust(),
            FilesTrust::Open(offer) => {
                let title =
                    self.core.identity.external_mut().map(|o| o.adapter.title.clone()).unwrap_or_default();
                self.ask_trust(turn, &title, *offer);
            }
            FilesTrust::Refused(notice) => self.refuse(*notice),
        }
    }

    pub(crate) fn refuse(&mut self, notice: Notice) {
        if self.core.services.user.human == Human::Absent && notice.kind == NoticeKind::Denied {
            self.core.child_driver().record_refusal();
        }
        driver::finish(self.core, TurnStatus::Failed, String::new(), Some(notice));
    }
}

/// Why a program does not start, with up to three of the files or rules.
fn not_trusted(title: &str, offer: &TrustOffer) -> Notice {
    let listed = |items: &[&str]| match items.len().saturating_sub(3) {
        0 => items.join(", "),
        more => format!("{} and {more} more", items[..3].join(", ")),
    };
    let of = |rules: bool| -> Vec<&str> {
        let kind = |i: &&TrustItem| (i.kind == TrustKind::UnenforcedRule) == rules;
        offer.items.iter().filter(kind).map(|i| i.path.as_str()).collect()
    };
    let (files, rules) = (of(false), of(true));
    let never = if offer.never { " (you chose never)" } else { "" };
    if files.is_empty() && !rules.is_empty() {
        let text = format!(
            "{title} was not started{never}: it reads files without asking, regardless of {}",
            listed(&rules)
        );
        let hint =
            "continue it in the workbench and agree there, or use a program that can enforce such rules";
        return Notice::new(NoticeKind::Denied, text).hint(hint);
    }
    let text = format!(
        "{title} was not started{never}: {} can make it run commands and is not trusted; `tiller trust` shows it",
        listed(&files)
    );
    Notice::new(NoticeKind::Denied, text)
        .hint(format!("run `tiller trust` in {}, then continue the agent", offer.folder))
}
