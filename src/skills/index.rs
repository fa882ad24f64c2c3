//! The list of skills for a system prompt: names and descriptions, within a budget.

use tiller_config::agents::Origin;

use crate::load::Skills;
use crate::skill::Skill;

/// Bytes of the built-in skills with their descriptions at most: they cost every session something. Above it only their
/// names are listed.
const BUILT_IN: usize = 700;
/// Characters of a description that was shortened.
const SHORT: usize = 60;
/// What stands above the list.
const HEAD: &str = "How kinds of tasks are done here. Before such a task, load its skill with skill_view.\n";

/// How much is said of the skills of one origin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    Nothing,
    Names,
    Short,
    Full,
}

/// The list, at most `budget` bytes long; empty where there are no skills. What does not fit is shortened: first built-in
/// skills, then those of packs, the user's, and the project's last.
pub fn index(skills: &Skills, budget: usize) -> String {
    const ORDER: [Origin; 4] = [Origin::Project, Origin::User, Origin::Plugin, Origin::BuiltIn];
    if skills.iter().next().is_none() {
        return String::new();
    }
    let mut details = ORDER.map(|origin| (origin, Detail::Full));
    let built_in = (Origin::BuiltIn, Detail::Full);
    if written(skills, &[built_in]).len() > BUILT_IN {
        details[3].1 = Detail::Names;
    }
    loop {
        let text = format!("{HEAD}{}", written(skills, &details));
        if text.len() <= budget {
            return text;
        }
        let Some(last) = details.iter_mut().rev().find(|(_, detail)| *detail > Detail::Nothing) else {
            return String::new();
        };
        last.1 = match last.1 {
            Detail::Full => Detail::Short,
            Detail::Short => Detail::Names,
            Detail::Names | Detail::Nothing => Detail::Nothing,
        };
    }
}

fn written(skills: &Skills, details: &[(Origin, Detail)]) -> String {
    let mut text = String::new();
    let mut left_out = 0;
    for (origin, detail) in details {
        let of: Vec<&Skill> = skills.iter().map(AsRef::as_ref).filter(|s| s.from == *origin).collect();
        match detail {
            _ if of.is_empty() => {}
            Detail::Nothing => left_out += of.len(),
            Detail::Names => {
                let names: Vec<&str> = of.iter().map(|s| s.name.as_str()).collect();
                text.push_str(&format!("- {} ({})\n", names.join(", "), origin.word()));
            }
            Detail::Short | Detail::Full => {
                for skill in of {
                    let description = match detail {
                        Detail::Short => shortened(&skill.description),
                        _ => skill.description.clone(),
                    };
                    text.push_str(&format!("- {}: {description}\n", skill.name));
                }
            }
        }
    }
    if left_out > 0 {
        text.push_str(&format!("- {left_out} more: skill_view without a name lists all\n"));
    }
    text
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
        for budget in [0, 50, 200, 600, 1_200, 2_500, 5_000] {
            let text = index(&all, budget);
            assert!(text.len() <= budget, "{budget}: {}", text.len());
            assert_eq!(text, index(&all, budget), "the same skills give the same bytes");
        }
        let full = index(&all, 5_000);
        assert!(
            full.contains("- p000: What p000 is for") && full.ends_with("shortened when there are others\n"),
            "{full}"
        );
        // The user's are shortened before the project's.
        let tight = index(&all, 800);
        assert!(
            tight.contains("- p002: What p002 is for, with many words so that it can be shortened when"),
            "{tight}"
        );
        assert!(tight.contains("- u000, u001") && !tight.contains("- u000:"), "{tight}");
        let tighter = index(&all, 420);
        assert!(tighter.contains("- 20 more: skill_view without a name lists all"), "{tighter}");
    }

    /// What a session pays for the skills that ship.
    #[test]
    fn the_built_in_skills_cost_little() {
        let all = Skills::load(&Sources { built_in: true, ..Sources::default() }).0;
        let text = index(&all, 5_000);
        assert!(text.len() <= BUILT_IN + HEAD.len(), "{}: {text}", text.len());
    }
}
