//! Parameters of a skill and of an own command: `{{name}}`, `$ARGUMENTS`, `$1` to `$9`.

use crate::skill::{Param, Skill};

/// Puts arguments into a text, in one pass: what is put in is never looked at again. Arguments that the text has no place
/// for follow at its end. A parameter without a value stays as it is.
pub fn fill(text: &str, params: &[Param], arguments: &str) -> String {
    let (mut out, used) = placed(text, params, arguments);
    let arguments = arguments.trim();
    if !used && !arguments.is_empty() {
        out.push_str("\n\n");
        out.push_str(arguments);
    }
    out
}

/// The names of the parameters in a skill's text that have no value with these arguments, in the order of their declaration.
pub fn missing(skill: &Skill, arguments: &str) -> Vec<String> {
    let (words, text) = (split(arguments.trim()), &skill.body);
    let values = values(text, &skill.params, &words);
    let stands = |name: &str| {
        let mut places = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
        places.any(|(place, _)| place.trim() == name)
    };
    let open =
        |param: &&Param| param.default.is_none() && !values.iter().any(|(name, _)| *name == param.name);
    skill.params.iter().filter(open).filter(|p| stands(&p.name)).map(|p| p.name.clone()).collect()
}

/// The values that words give to parameters.
fn values(text: &str, params: &[Param], words: &[String]) -> Vec<(String, String)> {
    let named = |word: &str| {
        let (name, value) = word.split_once('=')?;
        params.iter().any(|p| p.name == name).then(|| (name.to_owned(), value.to_owned()))
    };
    let (given, mut plain): (Vec<_>, Vec<_>) = (
        words.iter().filter_map(|w| named(w)).collect(),
        words.iter().filter(|w| named(w).is_none()).cloned().collect::<Vec<String>>(),
    );
    // Parameters that are not named take the other words in order; the last takes all that are left.
    let open: Vec<&Param> = params.iter().filter(|p| !given.iter().any(|(n, _)| *n == p.name)).collect();
    let mut values = given;
    let uses_params = open.iter().any(|p| text.contains(&format!("{{{{{}}}}}", p.name)));
    if uses_params {
        for (at, param) in open.iter().enumerate() {
            if plain.is_empty() {
                break;
            }
            let take = if at + 1 == open.len() { plain.len() } else { 1 };
            values.push((param.name.clone(), plain.drain(..take).collect::<Vec<_>>().join(" ")));
        }
    }
    values
}

/// As [`fill`], without the arguments that the text has no place for. `true`: it has a place for some.
pub(crate) fn placed(text: &str, params: &[Param], arguments: &str) -> (String, bool) {
    let arguments = arguments.trim();
    let words = split(arguments);
    let values = values(text, params, &words);
    let value = |name: &str| {
        let given = values.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        given.or_else(|| params.iter().find(|p| p.name == name).and_then(|p| p.default.clone()))
    };
    let mut out = String::new();
    let mut used = !values.is_empty();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let (put, length) = if let Some(after) = tail.strip_prefix("$ARGUMENTS") {
            let _ = after;
            used = true;
            (Some(arguments.to_owned()), "$ARGUMENTS".len())
        } else if let Some(n) = position(tail) {
            used = true;
            (Some(words.get(n - 1).cloned().unwrap_or_default()), 2)
        } else if let Some(name) = tail.strip_prefix("{{").and_then(|t| t.split_once("}}")).map(|(n, _)| n) {
            (value(name.trim()), name.len() + 4)
        } else {
            (None, 1)
        };
        match put {
            Some(put) => {
                out.push_str(&put);
                rest = tail.get(length..).unwrap_or_default();
            }
            None => {
                let first = tail.chars().next().map_or(1, char::len_utf8);
                out.push_str(tail.get(..first).unwrap_or_default());
                rest = tail.get(first..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    (out, used)
}

/// The number of `$1` to `$9` at the beginning; `$10` is none.
pub(crate) fn position(text: &str) -> Option<usize> {
    let mut chars = text.strip_prefix('$')?.chars();
    let digit = chars.next()?.to_digit(10).filter(|d| *d > 0)?;
    (!chars.next().is_some_and(|c| c.is_ascii_digit())).then_some(digit as usize)
}

/// Words with quotes around those that hold blanks.
pub(crate) fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
    for c in text.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => word.push(c),
            None if c == '"' || c == '\'' && word.is_empty() => {
                quote = Some(c);
                any = true;
            }
            None if c.is_whitespace() => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            None => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(all: &[(&str, Option<&str>)]) -> Vec<Param> {
        let one = |(name, default): &(&str, Option<&str>)| Param {
            name: (*name).to_owned(),
            default: default.map(ToOwned::to_owned),
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn arguments_are_put_where_the_text_has_a_place() {
        let two = params(&[("branch", None), ("since", Some("v1"))]);
        for (text, arguments, expected) in [
            ("Say $ARGUMENTS.", "a b", "Say a b."),
            ("$1 then $2, $3.", "\"a b\" c", "a b then c, ."),
            ("No place", "", "No place"),
            ("No place", "x y", "No place\n\nx y"),
            ("{{branch}} since {{since}}", "main", "main since v1"),
            ("{{branch}} since {{since}}", "since=v2 main", "main since v2"),
            ("{{branch}} since {{since}}", "main last week", "main since last week"),
            ("{{branch}} {{other}} {{", "", "{{branch}} {{other}} {{"),
            // What is put in is not looked at again.
            ("$1 $2", "'$2 {{branch}} $ARGUMENTS' x", "$2 {{branch}} $ARGUMENTS x"),
            ("Costs $10 or $x, {a}", "", "Costs $10 or $x, {a}"),
            ("it's $1", "don't stop", "it's don't"),
        ] {
            assert_eq!(fill(text, &two, arguments), expected, "{text:?} with {arguments:?}");
        }
    }

    #[test]
    fn parameters_without_a_value_are_named() {
        let text = "---\nname: a\ndescription: x\nmetadata:\n  params: stage, when, since=v1, unused\n---\n{{stage}} {{ when }} {{since}}\n";
        let files = crate::files::SkillFiles::Embedded(&[]);
        let path = std::path::Path::new("a/SKILL.md");
        let from = tiller_config::agents::Origin::User;
        let (skill, _) = crate::read::skill(path, from, text.as_bytes(), files).unwrap();
        for (arguments, expected) in [
            ("", &["stage", "when"][..]),
            ("live", &["when"]),
            ("when=now", &["stage"]),
            ("live now", &[]),
            ("since=v2 live when=now", &[]),
        ] {
            assert_eq!(missing(&skill, arguments), expected, "{arguments:?}");
        }
    }

    #[test]
    fn large_and_odd_texts_end() {
        let text = "{{".repeat(20_000) + &"$".repeat(20_000) + "é{{é}}";
        assert_eq!(fill(&text, &[], ""), text);
    }
}
