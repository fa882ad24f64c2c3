//! A side question (`/btw`): answered by the session's model from the conversation so far, without tools and without
//! an entry, so that neither the turn in flight nor the prefix changes.

use crate::context::side_call;
use crate::money;
use crate::session::model;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandId, Notice, NoticeKind};
use tokio_util::sync::CancellationToken;

use crate::bus::ClientId;
use crate::context::compaction::compact;
use crate::context::msg::ContextMsg;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::prompts::msg::{Aside, LINE, RunningLine};

const PROMPT: &str = include_str!("../../../assets/prompts/aside.md");
/// Percentage of the model's window that the conversation may fill, at about 2.5 characters a token.
const FILL: u64 = 50;
/// Tokens of the window where it is not known.
const WINDOW: u64 = 100_000;
/// Tokens of the answer at most.
const ANSWER: u64 = 4_000;

pub(crate) fn aside(core: &mut Core, client: ClientId, cause: CommandId, question: &str) {
    let question = core.redact(question.trim());
    let model = core.session.model.clone();
    let why = if question.is_empty() {
        Some(Notice::new(NoticeKind::User, "the question is empty"))
    } else if model::is_demo(core, &model) {
        let why = "the demo model follows a script and cannot answer questions";
        Some(Notice::new(NoticeKind::User, why).hint("choose a model with /model"))
    } else {
        money::may_ask(core, &model).err()
    };
    let provider = match (why, model::provider(core, &model)) {
        (Some(why), _) => return core.refuse(client, cause, why),
        (None, Err(e)) => return core.refuse(client, cause, crate::bus::notices::provider(&e)),
        (None, Ok(p)) => p,
    };
    let window = model::model_info(core, &model).window.unwrap_or(WINDOW);
    let most = usize::try_from(window / 100 * FILL * 5 / 2).unwrap_or(usize::MAX);
    let path = core.session.history.path.clone();
    let (tx, side) = (core.tx.clone(), side_call::side_call(core, provider, &model));
    let (cancel, hard) = (CancellationToken::new(), CancellationToken::new());
    let running = RunningLine { line: format!("/btw {question}"), cancel: cancel.clone(), hard };
    core.prompts.lines.insert(format!("{LINE}-{}", cause.0), running);
    core.spawn(async move {
        let text = format!("{}\n\n[the question]\n{question}", compact::transcript(&path, None, most));
        let ask = side.ask(PROMPT, text, Some(ANSWER));
        let got = tokio::select! {
            got = ask => Some(got),
            () = cancel.cancelled() => None,
        };
        let result = match got {
            Some(Ok(answer)) if answer.text.trim().is_empty() => {
                Err(Notice::new(NoticeKind::Network, "the answer was empty"))
            }
            Some(Ok(answer)) if answer.cut => {
                Ok(format!("{}\n\n[cut off at the output limit]", answer.text.trim_end()))
            }
            Some(Ok(answer)) => Ok(answer.text),
            Some(Err(e)) => Err(crate::bus::notices::provider(&e)),
            None => Err(Notice::new(NoticeKind::Info, "the question was stopped")),
        };
        let done = Aside { client, cause, model, question, result };
        let _ = tx.send(Msg::Context(ContextMsg::Aside(Box::new(done)))).await;
    });
}

pub(crate) fn aside_done(core: &mut Core, a: Aside) {
    core.prompts.lines.remove(&format!("{LINE}-{}", a.cause.0));
    match a.result {
        Ok(answer) => {
            let answer = core.redact(&answer);
            let reply = ReplyEvent::AsideReply { question: a.question, answer, model: a.model };
            core.bus.reply(a.client, &core.scope_of(Some(a.cause)), reply);
        }
        Err(notice) => core.refuse(a.client, a.cause, notice),
    }
}
