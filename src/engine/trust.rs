//! The question about what a folder brings. Until the person says yes, nothing of it is loaded.

use std::sync::Arc;

use tiller_permit::Rule;
use tiller_protocol::ask::TrustItem;
use tiller_protocol::{AskBody, AskReply, Notice, NoticeKind};
use tokio::sync::oneshot;

use crate::core::Core;
use crate::msg::Msg;

/// What a yes brings in, made from the bytes that were hashed.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    pub rules: Vec<Rule>,
    /// It brings settings: they are read again, and hold at once.
    pub settings: bool,
    /// What could not be read, each with its place.
    pub wrong: Vec<Notice>,
}

/// Keeps the person's word. True: trust exactly what was shown. False: never, and nothing is brought in.
/// May block. An error is a sentence.
pub type TrustDecide = Arc<dyn Fn(bool) -> Result<Agreed, String> + Send + Sync>;

/// What is asked at the start, where a person is there.
#[derive(Clone)]
pub struct TrustOffer {
    pub folder: String,
    pub items: Vec<TrustItem>,
    /// There was a yes, to other content.
    pub changed: bool,
    pub decide: TrustDecide,
}

impl Core {
    /// Asks. No answer and "not now" change nothing.
    pub(crate) fn ask_trust(&mut self, offer: TrustOffer) {
        let TrustOffer { folder, items, changed, decide } = offer;
        let (reply, answer) = oneshot::channel();
        self.ask(self.me.id.clone(), None, AskBody::Trust { folder, brings: items, changed }, reply);
        let tx = self.tx.clone();
        self.spawn(async move {
            let yes = match answer.await {
                Ok(Ok(AskReply::Yes { .. })) => true,
                Ok(Ok(AskReply::Never)) => false,
                _ => return,
            };
            let result = tokio::task::spawn_blocking(move || decide(yes))
                .await
                .unwrap_or_else(|_| Err("it failed inside; this is a bug of Tiller".into()));
            // The engine may have ended; the word itself is kept.
            let _ = tx.send(Msg::Trusted { yes, result }).await;
        });
    }

    /// The word is kept: rules and settings hold from now on.
    pub(crate) fn trusted(&mut self, yes: bool, result: Result<Agreed, String>) {
        match result {
            Ok(Agreed { rules, settings, wrong }) => {
                self.w.permit.add_project(&rules);
                let notice = if yes {
                    let n = rules.len();
                    let holds = match (n, settings) {
                        (0, false) => "it brings no rules and no settings of Tiller's".into(),
                        (0, true) => "its settings hold from now on".into(),
                        (1, false) => "its rule holds from now on".into(),
                        (1, true) => "its rule and its settings hold from now on".into(),
                        (n, false) => format!("its {n} rules hold from now on"),
                        (n, true) => format!("its {n} rules and its settings hold from now on"),
                    };
                    Notice::new(NoticeKind::Info, format!("this folder is trusted: {holds}"))
                } else {
                    let said = "nothing that this folder brings is loaded, and you are not asked again";
                    Notice::new(NoticeKind::Info, said).hint("`tiller trust` changes that")
                };
                self.notice(notice);
                for notice in wrong {
                    self.notice(notice);
                }
                if settings {
                    self.reload(None);
                }
            }
            Err(why) => self.notice(
                Notice::new(NoticeKind::Store, format!("your word about this folder is not kept: {why}"))
                    .hint("nothing of the folder is loaded; `tiller trust` asks again"),
            ),
        }
    }
}
