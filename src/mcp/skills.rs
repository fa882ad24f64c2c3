//! Skills that a server lists (SEP-2640). Here they are resources: the person adds one to a message by hand, and it arrives
//! marked as the server's. Tiller loads none by itself, and models do not see the list. No file of one is read before that, and
//! each that is read is compared with the list: it must be the file that the person chose by its description.

use std::collections::BTreeSet;

use base64::Engine as _;
use rmcp::model::{Skill, SkillIntegrityError, SkillResource, SkillResources};
use serde_json::Value;
use tiller_protocol::mcp::McpResourceView;

use crate::offers::{is_uri, line, short};
use crate::read::parts::{LeftOut, some};

/// Maximum number of files of a skill.
const FILES: usize = 1000;
/// Maximum bytes of a list: it is kept, and read again at each start.
const LIST: usize = 2 << 20;

/// The skills of a list that can be named, each address once: a file is compared with the skill that was shown for it. What is
/// odd is left out, with words for it.
pub(crate) fn read(all: &[Value], left: &mut LeftOut) -> Vec<Skill> {
    let (mut seen, mut size) = (BTreeSet::new(), 0);
    let read = |(at, value): (usize, &Value)| {
        let skill = serde_json::from_value::<Skill>(value.clone()).ok();
        let skill = skill.filter(|skill| is_uri(&skill.uri) && files(skill).len() <= FILES);
        let Some(skill) = skill else {
            left.push(format!(
                "skill {} of {} was left out: it has no address that can be typed, no description, or no list of files",
                at + 1,
                all.len()
            ));
            return None;
        };
        size += value.to_string().len();
        if size > LIST || !seen.insert(skill.uri.clone()) {
            left.push(format!(
                "skill {} of {} was left out: an earlier one has its address, or the list is too long",
                at + 1,
                all.len()
            ));
            return None;
        }
        Some(skill)
    };
    all.iter().enumerate().filter_map(read).collect()
}

/// A skill as a resource.
pub(crate) fn view(server: &str, skill: &Skill) -> McpResourceView {
    McpResourceView {
        server: server.to_owned(),
        uri: skill.uri.clone(),
        name: format!("skill {}", short(&skill.frontmatter.name)),
        summary: line(&skill.frontmatter.description),
        size: files(skill).iter().find(|file| file.uri == skill.uri).map(|file| file.size),
    }
}

fn files(skill: &Skill) -> &[SkillResource] {
    match &skill.resources {
        SkillResources::Files(files) => files,
        _ => &[],
    }
}

/// Compares what was read at `uri` with the list. What belongs to no skill passes.
///
/// # Errors
/// How it differs; a sentence without a full stop, without words of the server.
pub(crate) fn check(skills: &[Skill], uri: &str, contents: &[Value]) -> Result<(), String> {
    let own = |skill: &&Skill| skill.uri == uri;
    let named = |skill: &&Skill| files(skill).iter().any(|file| file.uri == uri);
    let below = |skill: &&Skill| {
        let folder = skill.uri.strip_suffix("SKILL.md").filter(|folder| folder.ends_with('/'));
        folder.is_some_and(|folder| uri.starts_with(folder))
    };
    // Another skill that names the file does not stand for its own one. Of nested skills, the inner one has the file.
    let skill = skills.iter().find(own).or_else(|| skills.iter().find(named));
    let inner = || skills.iter().filter(below).max_by_key(|skill| skill.uri.len());
    let Some(skill) = skill.or_else(inner) else { return Ok(()) };
    let [content] = contents else {
        return Err(format!("it sent {} parts for one file", contents.len()));
    };
    let bytes = bytes(content)?;
    match (files(skill).iter().find(|file| file.uri == uri), &skill.resources) {
        (Some(file), _) => file.verify(&bytes).map_err(|error| match error {
            SkillIntegrityError::Size { expected, actual, .. } => {
                format!("it has {actual} bytes, and the server's list says {expected}")
            }
            _ => "its content is not the one that the server's list says".to_owned(),
        })?,
        (None, SkillResources::Files(_)) => {
            return Err("the server's list of the skill does not name it".into());
        }
        // It changes, so that the list cannot say what it is.
        (None, _) => {}
    }
    if uri != skill.uri {
        return Ok(());
    }
    let listed = serde_json::to_value(&skill.frontmatter).unwrap_or_default();
    match front(&bytes) {
        Some(front) if front == listed => Ok(()),
        Some(_) => Err("its name or description is not the one that the server's list says".into()),
        None => Err("it does not begin with a name and a description".into()),
    }
}

/// The bytes of a content.
fn bytes(content: &Value) -> Result<Vec<u8>, String> {
    if let Some(text) = some(content, "text") {
        return Ok(text.as_bytes().to_vec());
    }
    let blob = some(content, "blob").ok_or("it has neither text nor data")?;
    base64::engine::general_purpose::STANDARD.decode(blob).map_err(|_| "its data is not base64".to_owned())
}

/// The values between the lines `---` at the beginning of a skill.
fn front(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
    lines.next().filter(|first| first.trim_end() == "---")?;
    let mut yaml = String::new();
    for line in lines {
        if line.trim_end() == "---" {
            return serde_saphyr::from_str::<Value>(&yaml).ok().filter(Value::is_object);
        }
        yaml.push_str(line);
        yaml.push('\n');
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAIN: &str = "skill://pdf/SKILL.md";
    const TEXT: &str = "---\nname: pdf\ndescription: \"Fills forms: all\"\nversion: 2\n---\n\nBody.\n";

    fn skill(change: impl Fn(&mut Value)) -> Vec<Skill> {
        let file = |uri: &str, text: &str| json!(SkillResource::from_bytes(uri, text.as_bytes()));
        let mut skill = json!({
            "uri": MAIN, "frontmatter": {"description": "Fills forms: all", "name": "pdf", "version": 2},
            "resources": [file(MAIN, TEXT), file("skill://pdf/forms.md", "Forms.\n")]
        });
        change(&mut skill);
        let mut left = LeftOut::default();
        let read = read(&[skill], &mut left);
        assert_eq!(left.sentences(), Vec::<String>::new());
        read
    }

    fn text(text: &str) -> Vec<Value> {
        vec![json!({"uri": MAIN, "mimeType": "text/markdown", "text": text})]
    }

    #[test]
    fn a_file_of_a_skill_is_the_one_that_the_list_says() {
        let listed = skill(|_| {});
        assert_eq!(check(&listed, MAIN, &text(TEXT)), Ok(()));
        let encoded = base64::engine::general_purpose::STANDARD.encode(TEXT);
        assert_eq!(check(&listed, MAIN, &[json!({"blob": encoded})]), Ok(()));
        assert_eq!(check(&listed, "skill://pdf/forms.md", &text("Forms.\n")), Ok(()));
        // Other resources of the server are no files of it.
        assert_eq!(check(&listed, "file:///x", &text("anything")), Ok(()));
        assert_eq!(check(&listed, "skill://other/SKILL.md", &text("anything")), Ok(()));
        for (uri, content, why) in [
            (MAIN, text(&TEXT.replace("Body.", "Evil!")), "not the one that the server's list says"),
            (MAIN, text(&format!("{TEXT}more\n")), "bytes, and the server's list says"),
            (MAIN, vec![], "0 parts"),
            (MAIN, [text(TEXT), text(TEXT)].concat(), "2 parts"),
            (MAIN, vec![json!({"blob": "!"})], "not base64"),
            (MAIN, vec![json!({})], "neither text nor data"),
            ("skill://pdf/forms.md", text("Other.\n"), "not the one"),
            ("skill://pdf/more.md", text("x"), "does not name it"),
        ] {
            let error = check(&listed, uri, &content).unwrap_err();
            assert!(error.contains(why), "{uri}: {error}");
        }
    }

    #[test]
    fn no_other_skill_stands_for_the_one_that_was_chosen() {
        let evil = TEXT.replace("Body.", "Evil!");
        let file = |uri: &str, text: &str| json!(SkillResource::from_bytes(uri, text.as_bytes()));
        let other = json!({
            "uri": "skill://a/SKILL.md", "frontmatter": {"name": "a", "description": "A"},
            "resources": [file("skill://a/SKILL.md", "x"), file(MAIN, &evil)]
        });
        let twin = json!({
            "uri": MAIN, "frontmatter": {"name": "pdf", "description": "Fills forms: all", "version": 2},
            "resources": [file(MAIN, &evil)]
        });
        let mut left = LeftOut::default();
        let listed = read(&[other, json!(skill(|_| {})[0]), twin], &mut left);
        assert_eq!(listed.len(), 2);
        assert!(left.sentences()[0].contains("skill 3 of 3 was left out: an earlier one"));
        assert!(check(&listed, MAIN, &text(&evil)).is_err());
        assert_eq!(check(&listed, MAIN, &text(TEXT)), Ok(()));
        let inner = skill(|skill| {
            skill["uri"] = json!("skill://pdf/more/SKILL.md");
            skill["resources"] = json!("dynamic");
        });
        let nested = [skill(|_| {}), inner].concat();
        assert_eq!(check(&nested, "skill://pdf/more/x.md", &text("x")), Ok(()));
        assert!(check(&nested, "skill://pdf/x.md", &text("x")).is_err());
    }

    #[test]
    fn the_description_that_was_chosen_is_that_of_the_file() {
        for (key, value) in [
            ("description", json!("Another one")),
            ("name", json!("other")),
            ("version", json!("2")),
            ("more", json!(true)),
        ] {
            let listed = skill(|skill| skill["frontmatter"][key] = value.clone());
            let error = check(&listed, MAIN, &text(TEXT)).unwrap_err();
            assert!(error.contains("its name or description"), "{key}: {error}");
        }
        let dynamic = skill(|skill| skill["resources"] = json!("dynamic"));
        assert_eq!(check(&dynamic, MAIN, &text(&TEXT.replace("Body", "New"))), Ok(()));
        for odd in ["no front", "---\nname: pdf\n", "---\n- a\n---\n", "---\n\u{0}\n---\n"] {
            assert!(check(&dynamic, MAIN, &text(odd)).is_err(), "{odd}");
        }
        assert!(check(&dynamic, MAIN, &text(&TEXT.replace("forms", "wills"))).is_err());
    }

    #[test]
    fn an_odd_skill_is_left_out_and_the_others_stay() {
        let good = json!(skill(|_| {})[0]);
        let mut left = LeftOut::default();
        let odd = [json!(7), json!({"uri": MAIN}), json!({"uri": "a b", "frontmatter": {}, "resources": []})];
        let all = [&odd[..], &[good]].concat();
        assert_eq!(read(&all, &mut left).len(), 1);
        let left = left.sentences();
        assert!(left.len() == 3 && left[2].contains("skill 3 of 4"), "{left:?}");
        let hostile = skill(|skill| skill["frontmatter"]["name"] = json!("a\u{1b}[2J\u{202e}\nb"));
        let view = view("s", &hostile[0]);
        assert!(!view.name.contains(['\u{1b}', '\u{202e}', '\n']), "{view:?}");
        assert_eq!((view.summary.as_str(), view.size), ("Fills forms: all", Some(TEXT.len() as u64)));
    }
}
