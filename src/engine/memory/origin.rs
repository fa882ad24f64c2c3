//! Where an entry of memory comes from: what the agent has read since the person's last message, and whose words it has.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use tiller_config::agents::Origin as DefinitionOrigin;
use tiller_protocol::{Entry, EntryBody, EntryId, Origin, Part, Provenance, Taint, ToolCatalog, ToolSet};
use tiller_tool::MemoryOrigin;

use crate::core::Core;

/// Percentage of an entry's words in one message of the person's from which on they are the person's words.
const PERSON: usize = 70;
/// The same for one result, whose text the entry then is.
const PAGE: usize = 80;
/// Fewer words say nothing about where a text comes from.
const WORDS: usize = 4;

/// The origin of an entry with this text, which the call in `entry` writes now.
pub(crate) fn origin(core: &Core, text: &str, entry: Option<EntryId>) -> MemoryOrigin {
    let catalog = core.services.tools.all.catalog();
    let mut taint = taint(&core.session.history.path, text, &catalog);
    if core.identity.is_child() {
        // Its task was written by an agent whose reading is not known here.
        taint = taint.max(Taint::ToolOutput);
    }
    let provenance = Provenance {
        session: Some(core.identity.child().map_or(core.session.id, |c| c.root)),
        entry: entry.or(core.session.head.id),
        branch: core.session.head.name.clone(),
        agent: core.identity.id.clone(),
        taint,
    };
    MemoryOrigin { provenance, rights: core.services.user.memory_rights, definition: definition(core) }
}

/// The file of the agent's own definition, where it is one of the user's.
fn definition(core: &Core) -> Option<PathBuf> {
    let role = core.identity.role.as_deref()?;
    role.file.clone().filter(|_| matches!(role.from, DefinitionOrigin::User | DefinitionOrigin::Project))
}

/// The same for an entry that is made of a whole path.
pub(crate) fn of_all(path: &[Arc<Entry>], text: &str, catalog: &ToolCatalog) -> Taint {
    let own = taint(path, text, catalog);
    if own == Taint::Agent && !is_of_person(path, text) {
        return path.iter().map(|e| read_by(e, catalog)).max().unwrap_or(own);
    }
    own
}

/// How far the text of an entry can be trusted, by the path to the call that writes it.
fn taint(path: &[Arc<Entry>], text: &str, catalog: &ToolCatalog) -> Taint {
    // A text of a page is one of a page whenever it was read.
    let from_page = |e: &Arc<Entry>| read_by(e, catalog) == Taint::Web && has_words_of(text, e, PAGE);
    if path.iter().any(from_page) {
        return Taint::Web;
    }
    if is_of_person(path, text) {
        return Taint::Agent;
    }
    let from = path.iter().rposition(|e| of_person(e)).unwrap_or(0);
    path[from..].iter().map(|e| read_by(e, catalog)).max().unwrap_or(Taint::Agent)
}

fn of_person(entry: &Entry) -> bool {
    matches!(&entry.body, EntryBody::User { origin, .. } if *origin != Origin::Engine)
}

/// Whether a text has the words of a message of the person's.
fn is_of_person(path: &[Arc<Entry>], text: &str) -> bool {
    path.iter().any(|e| of_person(e) && has_words_of(text, e, PERSON))
}

/// Whether at least `least` of 100 words of a text are in an entry. Few words say nothing.
fn has_words_of(text: &str, entry: &Entry, least: usize) -> bool {
    let (own, other) = (words(text), words(&entry.body.search_text()));
    own.len() >= WORDS && own.iter().filter(|w| other.contains(*w)).count() * 100 / own.len() >= least
}

/// The least trusted text that an entry brought to the agent.
fn read_by(entry: &Entry, catalog: &ToolCatalog) -> Taint {
    match &entry.body {
        EntryBody::User { message, .. } if !message.attachments.is_empty() => Taint::ToolOutput,
        EntryBody::ToolResult { name, content, .. } => match catalog.get(name).map(|info| info.set) {
            Some(ToolSet::Plan) => Taint::Agent,
            // What was kept has its origin in its text.
            Some(ToolSet::Memory) => kept(content),
            Some(ToolSet::Read | ToolSet::Edit | ToolSet::Run | ToolSet::Crew | ToolSet::Code) => {
                Taint::ToolOutput
            }
            Some(ToolSet::Web | ToolSet::Browser | ToolSet::Media) | None => Taint::Web,
        },
        _ => Taint::Agent,
    }
}

/// The origin that entries of memory say in their text.
fn kept(content: &[Part]) -> Taint {
    let says = |taint: Taint| {
        content.iter().any(|part| matches!(part, Part::Text { text } if text.contains(taint.mark())))
    };
    [Taint::Web, Taint::ToolOutput].into_iter().find(|taint| says(*taint)).unwrap_or(Taint::Agent)
}

/// The words of a text that tell it from others.
fn words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|w| w.chars().count() >= 3);
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use tiller_protocol::{AgentId, IdSource, Message, SeqIds, SessionId, Time, ToolOutcome};

    use super::*;

    fn path(bodies: Vec<EntryBody>) -> Vec<Arc<Entry>> {
        let ids = SeqIds::default();
        let session = SessionId(ids.next(Time(0)));
        let entry = |body| Entry {
            id: EntryId(ids.next(Time(0))),
            parent: None,
            session,
            agent: AgentId::main(),
            time: Time(0),
            body,
            snapshot: None,
        };
        bodies.into_iter().map(|body| Arc::new(entry(body))).collect()
    }

    fn prompt(text: &str) -> EntryBody {
        EntryBody::User { message: Message::text(text), origin: Origin::Prompt, content: Vec::new() }
    }

    fn result(name: &str, text: &str) -> EntryBody {
        EntryBody::ToolResult {
            call_id: "c".into(),
            name: name.into(),
            outcome: ToolOutcome::Ok,
            content: vec![Part::Text { text: text.into() }],
            display: None,
            seconds: 0.0,
            learnings: Vec::new(),
        }
    }

    #[test]
    fn the_origin_is_what_was_read_since_the_last_message() {
        let catalog = tiller_tool::Registry::built_in().catalog();
        let of = |bodies, text: &str| taint(&path(bodies), text, &catalog);
        let fact = "the build uses pnpm";
        for (tool, want) in [
            ("todo_write", Taint::Agent),
            ("read_file", Taint::ToolOutput),
            ("terminal", Taint::ToolOutput),
            ("web_fetch", Taint::Web),
            ("hub_search", Taint::Web),
        ] {
            assert_eq!(of(vec![prompt("go"), result(tool, "x")], fact), want, "{tool}");
        }
        assert_eq!(of(vec![], fact), Taint::Agent);
        assert_eq!(
            of(vec![prompt("go"), result("web_fetch", "x"), result("read_file", "x")], fact),
            Taint::Web
        );
        // An earlier turn does not count, unless the entry has its words.
        let earlier = |page: &str| vec![prompt("go"), result("web_fetch", page), prompt("next")];
        assert_eq!(of(earlier("x"), fact), Taint::Agent);
        assert_eq!(of(earlier("Our build uses pnpm, and the rest is here."), fact), Taint::Web);
    }

    #[test]
    fn the_person_s_own_words_are_trusted_and_those_of_a_page_never() {
        let catalog = tiller_tool::Registry::built_in().catalog();
        let asked = prompt("please remember that the staging database is read only on mondays");
        let fact = "The staging database is read only on Mondays.";
        let read = vec![asked.clone(), result("read_file", "x")];
        assert_eq!(taint(&path(read), fact, &catalog), Taint::Agent);
        let page = vec![asked, result("web_fetch", "the staging database is read only on mondays")];
        assert_eq!(taint(&path(page), fact, &catalog), Taint::Web);
    }
}
