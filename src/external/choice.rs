//! Selects the program's option that an answer means: by kind, never by id or position, and never an option that grants
//! more.

use super::event::{Answer, Choice, ChoiceKind};

/// The option, or `None`: no option fits, so nothing is granted.
pub(crate) fn choose<'a>(options: &'a [Choice], answer: &Answer) -> Option<&'a Choice> {
    let first = |kind: ChoiceKind| options.iter().find(|o| o.kind == kind);
    match answer {
        Answer::Kind(kind) => match kind {
            ChoiceKind::AllowAlways => first(*kind).or_else(|| first(ChoiceKind::AllowOnce)),
            ChoiceKind::RejectOnce => first(*kind).or_else(|| first(ChoiceKind::RejectAlways)),
            ChoiceKind::RejectAlways => first(*kind).or_else(|| first(ChoiceKind::RejectOnce)),
            ChoiceKind::AllowOnce | ChoiceKind::Other => first(*kind),
        },
        Answer::Option(id) => options.iter().find(|o| o.id == *id),
        Answer::Text(_) | Answer::Cancel => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_never_grants_more_than_it_says() {
        use ChoiceKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let option = |id: &str, kind| Choice { id: id.into(), name: id.into(), kind };
        let all = [
            option("approved-for-session", AllowAlways),
            option("approved", AllowOnce),
            option("denied", RejectOnce),
        ];
        let id = |options: &[Choice], kind| choose(options, &Answer::Kind(kind)).map(|o| o.id.clone());
        assert_eq!(id(&all, AllowOnce).as_deref(), Some("approved"));
        assert_eq!(id(&all, RejectAlways).as_deref(), Some("denied"));
        assert_eq!(id(&all[..1], AllowOnce), None);
        assert_eq!(id(&all[1..], AllowAlways).as_deref(), Some("approved"));
        assert_eq!(id(&all[..2], RejectOnce), None);
        assert_eq!(choose(&all, &Answer::Cancel), None);
        assert_eq!(choose(&all, &Answer::Option("none".into())), None);
    }
}
