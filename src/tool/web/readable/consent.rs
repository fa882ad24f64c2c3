//! Boxes that ask for consent or for an address: they lie over or beside the text, and are none of it.

use std::collections::HashMap;

use dom_query::{Document, NodeId, NodeRef};

use super::measure::Measures;
use super::{NODES, attribute, is, is_core, plain, plain_of, words};

/// Bytes of text up to which a box is looked at.
const BOX: usize = 3_000;
/// Buttons and forms of a page that are looked at.
const LOOKED: usize = 100;
/// Elements around a button that may be its box.
const AROUND: usize = 12;

/// Names of programs that ask for consent, and words that mean nothing else, in ids and classes, as whole words.
const PROGRAMS: [&str; 25] = [
    "onetrust",
    "cookiebot",
    "cybotcookiebotdialog",
    "didomi",
    "usercentrics",
    "qc-cmp",
    "qc-cmp2",
    "truste",
    "sp-message",
    "cc-window",
    "cookieyes",
    "cky-consent",
    "iubenda",
    "klaro",
    "osano",
    "termly",
    "borlabs",
    "borlabscookie",
    "borlabscookiebox",
    "cmplz",
    "quantcast",
    "fc-consent",
    "gdpr",
    "ccpa",
    "eu-cookie",
];
/// With one of these, `cookie` or `consent` in an id or class means a box.
const BOXES: [&str; 16] = [
    "banner", "notice", "bar", "popup", "pop-up", "modal", "overlay", "dialog", "box", "message", "wall",
    "law", "alert", "layer", "prompt", "consent",
];
/// Classes of what lies over a page, as whole words.
const OVERLAYS: [&str; 7] = ["modal", "popup", "pop-up", "overlay", "lightbox", "dialog", "layer"];
/// Texts of buttons that agree begin with one of these.
const AGREES: [&str; 21] = [
    "accept",
    "agree",
    "i agree",
    "i accept",
    "allow",
    "got it",
    "ok",
    "okay",
    "understood",
    "i understand",
    "akzeptieren",
    "alle akzeptieren",
    "zustimmen",
    "einverstanden",
    "accepter",
    "tout accepter",
    "j'accepte",
    "aceptar",
    "accetta",
    "accepteren",
    "aceitar",
];
/// Texts of buttons that do not.
const REFUSES: [&str; 13] = [
    "reject",
    "decline",
    "deny",
    "refuse",
    "necessary only",
    "only necessary",
    "essential only",
    "manage",
    "ablehnen",
    "nur notwendige",
    "refuser",
    "rechazar",
    "rifiuta",
];
/// Texts of buttons that choose, where another one agrees.
const CHOOSES: [&str; 8] =
    ["alle ablehnen", "tout refuser", "save", "confirm", "settings", "preferences", "options", "speichern"];
/// Words of what is asked.
const ASKED: [&str; 13] = [
    "cookie",
    "consent",
    "gdpr",
    "your privacy",
    "privacy policy",
    "tracking",
    "datenschutz",
    "einwilligung",
    "confidentialit",
    "privacidad",
    "privacy preferences",
    "similar technologies",
    "personal data",
];
/// With one of these, a text about cookies is about those of the page.
const OF_PAGES: [&str; 36] = [
    "use cookies",
    "uses cookies",
    "using cookies",
    "use of cookies",
    "store cookies",
    "set cookies",
    "sets cookies",
    "our cookies",
    "all cookies",
    "cookies to ",
    "cookies and ",
    "cookies for ",
    "cookie policy",
    "cookie settings",
    "cookie preferences",
    "cookie notice",
    "cookie consent",
    "essential cookies",
    "necessary cookies",
    "party cookies",
    "analytics",
    "website",
    "this site",
    "our site",
    "browser",
    "verwendet cookies",
    "verwenden cookies",
    "nutzen cookies",
    "nutzt cookies",
    "cookies zu",
    "des cookies",
    "utilizamos cookies",
    "usamos cookies",
    "utilizza cookie",
    "utilizziamo cookie",
    "gebruiken cookies",
];
/// Words of long texts that ask, with the purposes and partners that they list.
const LISTED: [&str; 14] = [
    "cookie",
    "consent",
    "privacy",
    "partner",
    "vendor",
    "purpose",
    "personal data",
    "advertis",
    "tracking",
    "legitimate interest",
    "datenschutz",
    "einwillig",
    "zweck",
    "anbieter",
];
/// Bytes of such a text for each of these words, at most.
const SPARSE: usize = 500;
/// Bytes of it that are counted.
const COUNTED: usize = 60_000;
/// Bytes within which a long text asks.
const BEGIN: usize = 1_000;
/// Bytes of a text in a box that stands after one that asked.
const SHORT: usize = 200;
/// Words of boxes that ask for an address to send news to.
const NEWS: [&str; 10] = [
    "newsletter",
    "subscribe",
    "sign up",
    "signup",
    "sign-up",
    "mailing list",
    "mailing-list",
    "inbox",
    "abonnieren",
    "s'abonner",
];

/// The boxes that ask for consent, the outermost of each.
pub(super) fn consent_boxes<'a>(
    document: &'a Document,
    measures: &Measures,
    answers: &Answers<'a>,
) -> Vec<NodeRef<'a>> {
    let mut boxes: Vec<NodeRef<'a>> = Vec::new();
    let named = "[id*=cookie i], [class*=cookie i], [aria-label*=cookie i], [id*=consent i], [class*=consent i], \
                 [aria-label*=consent i], [id*=gdpr i], [class*=gdpr i], [id*=ccpa i], [class*=ccpa i]";
    let programs = PROGRAMS.map(|name| format!("[id*='{name}' i], [class*='{name}' i]")).join(", ");
    for node in document.select(&format!("{named}, {programs}")).nodes().iter().take(LOOKED) {
        if is_named_box(node, measures, answers) {
            boxes.push(*node);
        }
    }
    let pressed = |node: &&NodeRef<'_>| {
        !is(node, &["input"]) || matches!(attribute(node, "type").as_str(), "button" | "submit")
    };
    let found = answers.nodes.iter().filter(pressed).filter(|node| answers.is_answer(node)).take(LOOKED);
    boxes.extend(found.filter_map(|node| box_of_answer(*node, measures)));
    boxes
}

/// Boxes of any length that ask for consent, with all purposes and partners, over a page that has its text elsewhere. To be looked
/// for where the others are removed: what is around one of them is none.
pub(super) fn long_boxes<'a>(
    document: &'a Document,
    measures: &Measures,
    answers: &Answers<'_>,
) -> Vec<NodeRef<'a>> {
    let cores = document.select("main, [role=main i], article, h1");
    if !cores.nodes().iter().any(|core| words(core, 1) > 0) {
        return Vec::new();
    }
    let found = document.select("[id], [class], [aria-label]");
    let named = found.nodes().iter().filter(|node| Names::of(node).is_box()).take(LOOKED);
    named.filter(|node| is_long_box(node, measures, answers)).copied().collect()
}

/// True for an element, by its name a box, that asks for consent, has a button to agree and one that does not, and speaks of
/// nothing else throughout.
fn is_long_box(node: &NodeRef<'_>, measures: &Measures, answers: &Answers<'_>) -> bool {
    if measures.holds_core(node) || !asks(&plain(node, BEGIN)) {
        return false;
    }
    let (mut agrees, mut refuses) = (false, false);
    for inner in node.descendants_it().take(NODES) {
        if let Some(answer) = answers.said.get(&inner.id) {
            agrees |= *answer == Answer::Agrees;
            refuses |= *answer != Answer::Agrees;
        }
    }
    agrees && refuses && (Names::of(node).certain() || lists(&plain(node, COUNTED)))
}

/// True for a long text, in small letters, that speaks of consent throughout.
fn lists(text: &str) -> bool {
    let words: usize = LISTED.iter().map(|word| text.matches(word).count()).sum();
    words * SPARSE >= text.len()
}

/// The effect of a button on a question for consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Agrees,
    Refuses,
    /// It chooses, where another one agrees.
    Chooses,
}

impl Answer {
    /// The answer of a button, by the begin of its text.
    fn of(node: &NodeRef<'_>) -> Option<Self> {
        // Buttons may stand within each other: each is looked into as far as a button reaches.
        let text = if is(node, &["input"]) { attribute(node, "value") } else { plain_of(node, 60, LOOKED) };
        let text = text.trim();
        let begins = |words: &[&str]| {
            words.iter().any(|word| {
                text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            })
        };
        match text.len() < 60 {
            true if begins(&AGREES) => Some(Self::Agrees),
            true if begins(&REFUSES) => Some(Self::Refuses),
            true if begins(&CHOOSES) => Some(Self::Chooses),
            _ => None,
        }
    }
}

/// The buttons and links of a page that may answer a question for consent. Each is looked at once.
pub(super) struct Answers<'a> {
    nodes: Vec<NodeRef<'a>>,
    said: HashMap<NodeId, Answer>,
}

impl<'a> Answers<'a> {
    pub(super) fn of(document: &'a Document) -> Self {
        let nodes: Vec<NodeRef<'a>> = document.select("button, a, input, [role=button i]").nodes().to_vec();
        let said = nodes.iter().filter_map(|node| Some((node.id, Answer::of(node)?))).collect();
        Self { nodes, said }
    }

    /// True for a button or link whose text answers a question for consent.
    fn is_answer(&self, node: &NodeRef<'_>) -> bool {
        matches!(self.said.get(&node.id), Some(Answer::Agrees | Answer::Refuses))
    }
}

/// The words of an element's id, class and label, with a hyphen around each: `sidebar` is no bar, and `trusted` no program.
struct Names(String);

impl Names {
    fn of(node: &NodeRef<'_>) -> Self {
        let names =
            [attribute(node, "id"), attribute(node, "class"), attribute(node, "aria-label")].join(" ");
        let words = names.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        Self(format!("-{}-", words.collect::<Vec<_>>().join("-")))
    }

    fn has(&self, names: &[&str]) -> bool {
        // A page has many elements, and there are many names.
        let whole = |at: usize, end: usize| self.0[..at].ends_with('-') && self.0[end..].starts_with('-');
        names.iter().any(|name| self.0.match_indices(name).any(|(at, _)| whole(at, at + name.len())))
    }

    /// The name of a program that asks for consent, and of nothing else.
    fn certain(&self) -> bool {
        self.has(&PROGRAMS)
    }

    /// A box that asks for it.
    fn asking(&self) -> bool {
        let about = ["cookies", "cookie", "consent"];
        let rest = |word: &str, name: &str| word.strip_prefix(name).is_some_and(|rest| BOXES.contains(&rest));
        let joined = self.0.split('-').any(|word| about.iter().any(|name| rest(word, name)));
        // `consent` is a word of both kinds.
        joined || self.has(&about) && self.has(&BOXES)
    }

    /// Such a box, or something that lies over the page.
    fn is_box(&self) -> bool {
        self.certain() || self.asking() || self.has(&OVERLAYS)
    }
}

/// True when id, class or label say that an element is such a box, and it is one.
fn is_named_box(node: &NodeRef<'_>, measures: &Measures, answers: &Answers<'_>) -> bool {
    let names = Names::of(node);
    let certain = names.certain();
    if !(certain || names.asking()) || measures.holds_core(node) {
        return false;
    }
    let text = plain(node, BOX);
    let asked = ASKED.iter().any(|word| text.contains(word));
    if text.len() >= BOX || !asked || !certain && !asks(&text) {
        return false;
    }
    certain
        || node
            .descendants_it()
            .take(LOOKED)
            .any(|inner| is(&inner, &["button", "a", "input"]) && answers.is_answer(&inner))
}

/// The box around a button that answers: as far out as the rest of the text speaks of nothing else.
fn box_of_answer<'a>(button: NodeRef<'a>, measures: &Measures) -> Option<NodeRef<'a>> {
    let mut found = None;
    for around in button.ancestors_it(Some(AROUND)) {
        if is_core(&around) || measures.holds_core(&around) || !only_asks(&around) {
            break;
        }
        if asks(&plain(&around, BOX)) {
            found = Some(around);
        }
    }
    found
}

/// True for a text, in small letters, about consent or about the cookies of a page: the word cookie alone has other meanings.
fn asks(text: &str) -> bool {
    let mut asked = ASKED.iter().filter(|word| text.contains(**word));
    asked.any(|word| *word != "cookie" || OF_PAGES.iter().any(|word| text.contains(word)))
}

/// True when each paragraph of an element belongs to a question for consent: it has one of its words, or is short and stands
/// after one that has.
fn only_asks(node: &NodeRef<'_>) -> bool {
    if plain(node, BOX).len() >= BOX {
        return false;
    }
    let mut asked = false;
    for inner in node.descendants_it().filter(NodeRef::is_text) {
        let text = inner.text().trim().to_lowercase();
        let free = || {
            let mut around = inner.ancestors_it(Some(AROUND)).take_while(|outer| outer.id != node.id);
            around.any(|outer| {
                is(&outer, &["button", "a", "label", "h2", "h3", "h4", "h5", "h6", "option"])
                    || attribute(&outer, "role") == "button"
            })
        };
        if text.is_empty() || free() {
            continue;
        }
        if ASKED.iter().any(|word| text.contains(word)) {
            asked = true;
        } else if !asked || text.len() > SHORT {
            return false;
        }
    }
    true
}

/// Boxes that ask for an address to send news to.
pub(super) fn newsletter_boxes<'a>(document: &'a Document, measures: &Measures) -> Vec<NodeRef<'a>> {
    let mut boxes = Vec::new();
    for form in document.select("form").nodes().iter().take(LOOKED) {
        let fields: Vec<NodeRef<'_>> = form
            .descendants_it()
            .filter(|inner| is(inner, &["input", "textarea", "select"]))
            .filter(|inner| {
                !matches!(attribute(inner, "type").as_str(), "hidden" | "submit" | "button" | "checkbox")
            })
            .collect();
        let email = |field: &NodeRef<'_>| {
            attribute(field, "type") == "email" || attribute(field, "name").contains("email")
        };
        if fields.len() > 3
            || !fields.iter().any(email)
            || fields.iter().any(|f| attribute(f, "type") == "password")
        {
            continue;
        }
        let mut found = None;
        for around in std::iter::once(*form).chain(form.ancestors_it(Some(4))) {
            let text = plain(&around, 600);
            let names = [attribute(&around, "id"), attribute(&around, "class")].join(" ");
            let start: String = text.chars().take(120).collect();
            if is_core(&around) || measures.holds_core(&around) || text.len() >= 600 {
                break;
            }
            if NEWS.iter().any(|word| start.contains(word) || names.contains(word)) {
                found = Some(around);
            }
        }
        boxes.extend(found);
    }
    boxes
}
