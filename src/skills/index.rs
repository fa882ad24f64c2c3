//! The list of skills for a system prompt: names and descriptions, within a budget.

use tiller_config::agents::Origin;

use crate::load::Skills;
use crate::skill::Skill;

/// Bytes of the list at most, where the settings say nothing.
pub const BYTES: usize = 1_600;
/// Characters of a description that was shortened.
const SHORT: usize = 80;
/// What stands above the list.
const HEAD: &str = "How kinds of tasks are done here. Before such a task, load its skill with skill_view.\n";
/// The places, the most important one first.
const ORDER: [Origin; 4] = [Origin::Project, Origin::User, Origin::Plugin, Origin::BuiltIn];

/// How much is said of a skill.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Name,
    Short,
    Full,
}

/// The list, at most `budget` bytes long; empty where there are no skills, or no room for it. What does not fit is named
/// only: of the project's skills last, then of the user's, of packs, and of built-in ones first.
pub fn index(skills: &Skills, budget: usize) -> String {
    let all: Vec<(Origin, Vec<&Skill>)> = ORDER
        .into_iter()
        .map(|origin| (origin, skills.iter().map(AsRef::as_ref).filter(|s| s.from == origin).collect()))
        .collect();
    let flat: Vec<&Skill> = all.iter().flat_map(|(_, of)| of.iter().copied()).collect();
    if flat.is_empty() {
        return String::new();
    }
    let mut details = vec![Detail::Name; flat.len()];
    if written(&flat, &details).len() > budget {
        return some_names(&flat, budget);
    }
    let mut from = 0;
    for (_, of) in &all {
        let range = from..from + of.len();
        from = range.end;
        // All of a place are described a little before one of them is described whole.
        for detail in [Detail::Short, Detail::Full] {
            for at in range.clone() {
                let before = std::mem::replace(&mut details[at], detail);
                if written(&flat, &details).len() > budget {
                    details[at] = before;
                }
            }
        }
    }
    written(&flat, &details)
}

fn written(skills: &[&Skill], details: &[Detail]) -> String {
    let mut text = HEAD.to_owned();
    let mut names: Vec<&str> = Vec::new();
    for (skill, detail) in skills.iter().zip(details) {
        match detail {
            Detail::Name => names.push(&skill.name),
            Detail::Short => text.push_str(&format!("- {}: {}\n", skill.name, shortened(&skill.description))),
            Detail::Full => text.push_str(&format!("- {}: {}\n", skill.name, skill.description)),
        }
    }
    if !names.is_empty() {
        text.push_str(&format!("- {} (skill_view without a name describes them)\n", names.join(", ")));
    }
    text
}

/// The first names, and how many more there are.
fn some_names(skills: &[&Skill], budget: usize) -> String {
    (0..skills.len())
        .rev()
        .map(|shown| {
            let names: String = skills[..shown].iter().map(|skill| format!("{}, ", skill.name)).collect();
            format!("{HEAD}- {names}{} more (skill_view without a name lists all)\n", skills.len() - shown)
        })
        .find(|text| text.len() <= budget)
        .unwrap_or_default()
}

/// The beginning of a text, to the end of a word.
fn shortened(text: &str) -> String {
    if text.chars().count() <= SHORT {
        return text.to_owned();
    }
    let cut: String = text.chars().take(SHORT).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(whole, _)| whole);
    format!("{whole}...")
}

#[cfg(test)]
mod tests {
    use tiller_config::agents::ProjectFile;

    use super::*;
    use crate::load::Sources;

    fn skills(user: usize, project: usize) -> Skills {
        let home = tempfile::tempdir().unwrap();
        let text = |name: &str| {
            format!(
                "---\nname: {name}\ndescription: What {name} is for, with many words so that it can be shortened when there are others\n---\nDo.\n"
            )
        };
        for n in 0..user {
            let folder = home.path().join(format!("skills/u{n:03}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("SKILL.md"), text(&format!("u{n:03}"))).unwrap();
        }
        let files: Vec<(String, String)> = (0..project)
            .map(|n| (format!(".tiller/skills/p{n:03}/SKILL.md"), text(&format!("p{n:03}"))))
            .collect();
        let project = files.iter().map(|(p, t)| ProjectFile { path: p, bytes: Some(t.as_bytes()) }).collect();
        let config = Some(home.path().to_owned());
        Skills::load(&Sources { config, project, ..Sources::default() }).0
    }

    #[test]
    fn the_list_is_within_its_budget_and_shortens_by_priority() {
        assert_eq!(index(&Skills::default(), 5_000), "");
        let all = skills(20, 3);
        for budget in [0, 50, 200, 400, 600, 1_200, 2_500, 5_000] {
            let text = index(&all, budget);
            assert!(text.len() <= budget, "{budget}: {}", text.len());
            assert_eq!(text, index(&all, budget), "the same skills give the same bytes");
        }
        let full = index(&all, 5_000);
        assert!(
            full.contains("- p000: What p000 is for") && full.ends_with("shortened when there are others\n"),
            "{full}"
        );
        // The project's are whole before one of the user's is described.
        let tight = index(&all, 900);
        assert!(
            tight.contains(
                "- p002: What p002 is for, with many words so that it can be shortened when there are"
            ),
            "{tight}"
        );
        assert!(tight.contains("- u000: What u000") && tight.contains("u018, u019 (skill_view"), "{tight}");
        // One whole description does not take the room of a short one of the same place.
        let shared = index(&all, 700);
        assert!(shared.matches("- p").count() == 3, "{shared}");
        let tighter = index(&all, 200);
        assert!(
            tighter.contains("p000, p001, p002, u000") && tighter.contains(" more (skill_view"),
            "{tighter}"
        );
    }

    /// What a session pays for the skills that ship: each with its description, in the order of their names.
    #[test]
    fn the_built_in_skills_are_described_within_the_default_budget() {
        let all = Skills::load(&Sources { built_in: true, ..Sources::default() }).0;
        let text = index(&all, BYTES);
        for skill in all.iter() {
            assert!(
                text.contains(&format!("- {}: {}\n", skill.name, skill.description)),
                "{}: {text}",
                skill.name
            );
            assert!(skill.description.chars().count() <= SHORT, "{}", skill.name);
        }
        // With skills of the person they still fit for the most part, and all are named.
        let names: Vec<&str> =
            text.lines().skip(1).filter_map(|l| l.strip_prefix("- ")?.split(':').next()).collect();
        assert!(names.is_sorted() && names.len() >= 15, "{names:?}");
    }
}
