//! A call failed and a later one of the same kind worked: the pair is offered as a learning.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use tiller_config::schema::LearningsSetting;
use tiller_memory::learnings::{CallSeen, Pair, WrittenLearning};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    Addition, EntryBody, EventBody, LearningNews, LearningSource, LearningState, Notice, NoticeKind, Taint,
};

use crate::context::request;
use crate::context::side_call::{self, SideCall};
use crate::core::Core;
use crate::memory::origin::Reading;
use crate::tool_call::cut;

use super::attach::{CallNote, set_mode};

const PROMPT: &str = include_str!("../../../assets/prompts/learning.md");
/// Output tokens of an answer.
const ANSWER: u64 = 600;
/// Bytes of a pattern in a notice.
const NAMED: usize = 80;
/// Bytes of the failed output that the model sees.
const SEEN: usize = 3_000;

/// Takes note of what the session has read before this process opened it, or went to this place of its tree, and of the rules
/// and learnings that stand in its conversation.
pub(crate) fn read_before(core: &Core) {
    let Some(learnings) = &core.services.user.learnings else { return };
    if !learnings.is_first_look(core.session.id) {
        return;
    }
    let (catalog, imported) = (core.services.tools.all.catalog(), HashSet::new());
    let reading = Reading { catalog: &catalog, memory: None, imported: &imported };
    if core.session.history.path.iter().any(|entry| reading.of(entry) == Taint::Web) {
        learnings.taint(core.session.id);
    }
    // What a compaction left out is shown again.
    let live = request::live(&core.session.history.path);
    let rules = live.iter().filter_map(|entry| match &entry.body {
        EntryBody::ToolResult { added, .. } => {
            let id = entry.id;
            Some(added.after.iter().filter_map(move |one| match one {
                Addition::Rule(rule) => Some((&**rule, id)),
                _ => None,
            }))
        }
        _ => None,
    });
    let with_messages = live.iter().filter_map(|entry| match &entry.body {
        EntryBody::User { learnings, .. } => Some(learnings.iter().copied()),
        _ => None,
    });
    learnings.restore_shown(core.session.id, rules.flatten(), with_messages.flatten());
}

/// Takes note of a call that has ended.
pub(crate) fn seen(core: &mut Core, note: CallNote) {
    let Some(learnings) = core.services.user.learnings.clone() else { return };
    set_mode(&learnings, &core.services.config());
    if note.taint == Taint::Web {
        learnings.taint(core.session.id);
    }
    let call = CallSeen {
        kind: &note.kind,
        ok: note.ok,
        output: &note.output,
        taint: note.taint,
        edits: note.edits,
        reads: note.reads,
    };
    let Some(pair) = core.context.pairs.seen(&call) else { return };
    if learnings.mode() == LearningsSetting::Never || !pair.teaches() || core.session.read_only {
        return;
    }
    let source = LearningSource {
        session: Some(core.session.id),
        entry: core.head_id(),
        agent: core.identity.id.0.clone(),
        branch: core.session.head.name.clone(),
        taint: learnings.taint_of(core.session.id, pair.taint),
    };
    let (writer, bus, scope) = (side_call::fast(core), Arc::clone(&core.bus), core.scope());
    let redact = Arc::clone(&core.services.redaction.redact);
    core.spawn(async move {
        let written = match &writer {
            Some(side) => match written(side, &pair).await {
                Some(Answer::Nothing) => return,
                Some(Answer::Learning(learning)) => Some(learning),
                // The model failed: what the difference says is kept.
                None => None,
            },
            None => None,
        };
        let kept = tokio::task::spawn_blocking(move || {
            let mut learning = learnings.of_pair(&pair, written, source)?;
            for text in learning.texts_mut() {
                *text = redact(text);
            }
            let kept = learnings.offer(learning, learnings.mode());
            if let Err(why) = &kept {
                tracing::info!(why, "a learning is not kept");
            }
            let learning = kept.ok().flatten()?;
            Some((learning, learnings.store().learnings().pending().ok()?))
        });
        if let Ok(Some((learning, pending))) = kept.await {
            let news = Box::new(LearningNews { used: Vec::new(), call_id: None, rules: Vec::new(), pending });
            bus.publish(&scope, EventBody::State(StateEvent::LearningNews { news }));
            if learning.state == LearningState::Proposed {
                let notice = proposed(&learning.pattern);
                bus.publish(&scope, EventBody::State(StateEvent::Notice { notice }));
            }
        }
    });
}

/// What the user sees of a learning that waits.
fn proposed(pattern: &str) -> Notice {
    let pattern = pattern.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = format!("a learning waits for you: {}", cut(&pattern, NAMED));
    Notice::new(NoticeKind::Info, said).hint("/learnings accepts or declines it")
}

enum Answer {
    Nothing,
    Learning(WrittenLearning),
}

#[derive(Deserialize)]
struct Reply {
    pattern: String,
    fix: String,
    #[serde(default)]
    context: String,
    #[serde(default)]
    tags: Vec<String>,
}

/// What the model wrote of a pair; `None`: it failed, or its answer has another form.
async fn written(side: &SideCall, pair: &Pair) -> Option<Answer> {
    let output = &pair.output[pair.output.ceil_char_boundary(pair.output.len().saturating_sub(SEEN))..];
    let mut text = format!("Failed: {}\nOutput:\n{output}\n", pair.failed);
    for call in &pair.between {
        text.push_str(&format!("Then ran: {call}\n"));
    }
    if pair.edited {
        text.push_str("Then files were edited.\n");
    }
    text.push_str(&format!("Worked: {}\n", pair.worked));
    let got = side.ask(PROMPT, text, Some(ANSWER)).await.ok()?;
    let answer = got.text.trim();
    if answer.len() < 20 && answer.to_lowercase().contains("none") {
        return Some(Answer::Nothing);
    }
    let (start, end) = (answer.find('{')?, answer.rfind('}')?);
    let reply: Reply = serde_json::from_str(answer.get(start..=end)?).ok()?;
    let tags = reply.tags.into_iter().take(10).collect();
    Some(Answer::Learning(WrittenLearning {
        pattern: reply.pattern,
        fix: reply.fix,
        context: reply.context,
        tags,
    }))
}
