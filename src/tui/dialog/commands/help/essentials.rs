//! The page of essentials: what a newcomer needs, by subject.

use crate::app::App;
use crate::keymap::action::Action;

/// The effect of choosing an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// An action, by its id.
    Act(&'static str),
    /// An action of the composer that concerns the draft, which help hides: it is pressed there.
    Draft(&'static str),
    /// A character in the composer that opens a list or begins a command.
    Type(&'static str),
}

/// The keys that a person needs first, by subject: the words are a newcomer's.
pub(super) const ESSENTIALS: [(&str, &[(Does, &str)]); 3] = [
    (
        "Write",
        &[
            (Does::Draft("composer.send"), "send"),
            (Does::Draft("composer.newline"), "new line"),
            (Does::Draft("composer.queue"), "send later"),
            (Does::Type("@"), "add a file"),
            (Does::Type("/"), "commands"),
            (Does::Type("!"), "run in shell"),
            (Does::Act("history.open"), "past prompts"),
        ],
    ),
    (
        "Look",
        &[
            (Does::Act("conversation.page_up"), "scroll up"),
            (Does::Act("conversation.unfold"), "full output"),
            (Does::Act("conversation.search"), "search"),
            (Does::Act("view.todo"), "todo list"),
            (Does::Act("view.agents"), "agents"),
            (Does::Act("review.open"), "changes"),
            (Does::Act("sessions.open"), "sessions"),
            (Does::Act("tree.open"), "session tree"),
        ],
    ),
    (
        "Control",
        &[
            (Does::Act("palette.open"), "all actions"),
            (Does::Act("global.answer"), "answer"),
            (Does::Act("global.profile"), "change mode"),
            (Does::Act("model.open"), "model"),
            (Does::Act("global.escape"), "back, stop"),
            (Does::Act("session.undo"), "undo"),
            (Does::Act("errors.open"), "errors"),
            (Does::Act("global.quit"), "quit"),
        ],
    ),
];

/// One entry of the page of essentials.
pub(super) struct Essential {
    pub(super) key: String,
    pub(super) label: &'static str,
    pub(super) does: Does,
    /// Why it cannot be done now.
    pub(super) disabled: Option<String>,
    /// It stops, ends or clears something.
    pub(super) ends: bool,
}

/// An entry as it stands now, with its key.
pub(super) fn essential(app: &App, does: Does, label: &'static str) -> Essential {
    let words = app.registry.words();
    let (key, id) = match does {
        Does::Type(key) => (key.to_owned(), ""),
        Does::Act(id) | Does::Draft(id) => {
            // Essentials are the same in every place: the keys are those of the composer.
            let key = app.keys.map.describe(Action(id), &words.chain("composer"));
            (key.or_else(|| app.keys.map.anywhere(Action(id)).map(|(_, k)| k)).unwrap_or_default(), id)
        }
    };
    let disabled = match does {
        Does::Draft(_) => Some(DRAFT.into()),
        Does::Act(id) => app.disabled(Action(id)),
        Does::Type(_) => None,
    };
    Essential { key, label, does, disabled, ends: words.find(id).is_some_and(|s| s.ends) }
}

pub(super) const DRAFT: &str = "Press it in the composer";
