//! Makes a title after the first turn: by the fast tier in the background, or from the prompt where no model should be
//! asked.

use crate::context::side_call;
use crate::money;
use crate::session::model;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{EventBody, SessionId};

use crate::context::msg::ContextMsg;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};

const PROMPT: &str = include_str!("../../../assets/prompts/title.md");
/// Characters of a title.
const LONGEST: usize = 60;
/// Characters of the prompt that the model sees.
const SEEN: usize = 2_000;

pub(crate) fn title_after(core: &mut Core, prompt: &str) {
    if !core.session.info.title.is_empty() || prompt.trim().is_empty() || core.session.read_only {
        return;
    }
    let made = from_prompt(prompt);
    // The session's model is not used when only the fast tier's budget is used up.
    let model = model::fast_or_session(core);
    let provider = match model::provider(core, &model) {
        Ok(p)
            if core.services.models.titles
                && !model::is_demo(core, &model)
                && money::may_ask(core, &model).is_ok() =>
        {
            p
        }
        _ => return title_found(core, core.session.id, &made),
    };
    let (tx, session) = (core.tx.clone(), core.session.id);
    let side = side_call::side_call(core, provider, &model);
    let text: String = prompt.chars().take(SEEN).collect();
    core.context.titling.insert(session, made.clone());
    core.spawn(async move {
        // No limit of output: a model that thinks first would have nothing left for the title.
        let got = side.ask(PROMPT, text, None).await;
        let title = got.ok().map(|a| clean(&a.text)).filter(|t| !t.is_empty()).unwrap_or(made);
        let _ = tx.send(Msg::Context(ContextMsg::TitleFound { session, title })).await;
    });
}

pub(crate) fn title_found(core: &mut Core, session: SessionId, title: &str) {
    let ours = session == core.session.id;
    core.context.titling.remove(&session);
    if ours && core.session.info.titled {
        return;
    }
    let title = core.redact(title);
    let ticket = core.services.store.sessions().set_title_if_none(session, &title);
    let mut events = Vec::new();
    if ours {
        core.session.info.title.clone_from(&title);
        events.push((core.scope_of(None), EventBody::State(StateEvent::TitleChanged { title })));
    }
    core.saves.push(ticket, After { events, then: Then::Nothing });
}

/// At the end of the engine a title is made from the prompt, also where no turn was done.
pub(crate) fn titles_at_the_end(core: &mut Core) {
    if core.session.info.title.is_empty() && !core.session.info.titled && !core.session.read_only {
        let said = core.session.history.path.iter().find_map(|e| match &e.body {
            body if body.begins_turn() => Some(body.search_text()),
            _ => None,
        });
        if let Some(made) = said.map(|s| from_prompt(&s)).filter(|t| !t.is_empty()) {
            core.context.titling.entry(core.session.id).or_insert(made);
        }
    }
    for (session, made) in std::mem::take(&mut core.context.titling) {
        let ticket = core.services.store.sessions().set_title_if_none(session, &core.redact(&made));
        core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }
}

/// A title from the first words of a prompt.
pub(crate) fn from_prompt(prompt: &str) -> String {
    let words: Vec<&str> = prompt.split_whitespace().take(8).collect();
    clean(&words.join(" "))
}

/// One line without quotation marks and control characters.
fn clean(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    // Models often put `Title:` in front.
    let head = line.get(..6).filter(|h| h.eq_ignore_ascii_case("title:"));
    let line = head.map_or(line, |h| &line[h.len()..]);
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    let line = match line.char_indices().nth(LONGEST) {
        // Cuts between words, where there are several.
        Some((end, _)) => line[..end].rsplit_once(' ').map_or(&line[..end], |(head, _)| head),
        None => &line,
    };
    line.trim_matches(|c: char| "\"'`*#.“”„".contains(c) || c.is_whitespace()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_short_plain_line() {
        assert_eq!(clean("\n\"Retry logic.\"\nsecond"), "Retry logic");
        assert_eq!(clean(&"x".repeat(500)).len(), LONGEST);
        assert_eq!(clean("a\u{1b}[31mb"), "a[31mb");
        assert_eq!(clean("Title: **Retry logic**"), "Retry logic");
        assert_eq!(clean(&"word ".repeat(20)), ["word"; 12].join(" "));
        assert_eq!(
            from_prompt("Make  the retry\nlogic honour the header and add tests please"),
            "Make the retry logic honour the header and"
        );
    }
}
