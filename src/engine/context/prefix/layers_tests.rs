use super::*;

fn system(facts: &PromptFacts, settings: &Context) -> (String, Vec<LayerCost>) {
    layers(facts, settings).render()
}

fn facts(folder: &Path) -> PromptFacts {
    PromptFacts { folder: folder.to_owned(), config: folder.join("config"), ..PromptFacts::default() }
}

fn setup(agents: &str, user: &str) -> (tempfile::TempDir, PromptFacts) {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tmp.path().join("config")).unwrap();
    std::fs::write(tmp.path().join("AGENTS.md"), agents).unwrap();
    std::fs::write(tmp.path().join("config/USER.md"), user).unwrap();
    let f = facts(tmp.path());
    (tmp, f)
}

#[test]
fn layers_stand_in_order_of_priority_and_each_is_counted() {
    let (_tmp, f) = setup("use tabs", "likes short answers");
    let (text, costs) = system(&f, &Context::default());
    let places: Vec<usize> = ["You are Tiller", "use tabs", "likes short answers", "Permissions:", "Folder:"]
        .iter()
        .map(|s| text.find(s).unwrap())
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    let names: Vec<&str> = costs.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["prompt", "project", "user", "session", "runtime"]);
    assert!(costs.iter().all(|c| c.tokens > 0 && !c.shortened));
}

/// `/context` shows each layer as it is sent.
#[test]
fn each_layer_is_found_in_the_prompt() {
    let (_tmp, f) = setup("use tabs", "likes short answers");
    let (mut text, mut costs) = system(&f, &Context::default());
    let part = |at: usize| costs[at].part.and_then(|(from, to)| text.get(from..to)).unwrap();
    assert!(part(0).starts_with("You are Tiller") && !part(0).contains("use tabs"), "{costs:?}");
    assert!(part(1).ends_with("use tabs") && part(2).ends_with("likes short answers"), "{costs:?}");
    let whole: Vec<&str> = (0..costs.len()).map(part).collect();
    assert_eq!(whole.join("\n\n"), text);
    // Redaction moves what stands behind it.
    let redact: crate::core::services::Redact = Arc::new(|text: &str| text.replace("short", "[x]"));
    crate::context::clean::prefix(&redact, &mut text, &mut costs);
    assert!(text.contains("likes [x] answers") && costs.iter().all(|c| c.part.is_none()), "{costs:?}");
}

#[test]
fn a_layer_over_its_budget_keeps_head_and_tail_with_a_mark() {
    let (_tmp, f) = setup(&format!("HEAD {} TAIL", "é".repeat(30_000)), "u");
    let (text, costs) = system(&f, &Context::default());
    assert!(text.contains("HEAD") && text.contains("TAIL") && text.contains("AGENTS.md for the rest"));
    let project = &costs[1];
    assert!(project.shortened && project.tokens <= project.budget + 10, "{project:?}");
}

#[test]
fn over_the_total_the_lowest_layer_goes_first_and_the_prompt_never() {
    let (_tmp, f) = setup(&"a".repeat(9_000), &"u".repeat(3_000));
    let all: u64 = system(&f, &Context::default()).1.iter().map(|c| c.tokens).sum();
    let context = Context { total: all - 700, ..Context::default() };
    let (text, costs) = system(&f, &context);
    let shortened: Vec<&str> = costs.iter().filter(|c| c.shortened).map(|c| c.name.as_str()).collect();
    assert!(shortened.contains(&"user") && !shortened.contains(&"project"), "{costs:?}");
    assert!(text.starts_with(AGENT.trim()));
    let (text, _) = system(&f, &Context { total: 0, ..Context::default() });
    assert_eq!(text, AGENT.trim());
}

#[test]
fn a_summary_takes_the_place_of_what_was_cut_and_never_more() {
    let (tmp, f) = setup(&format!("HEAD {} TAIL", "rule ".repeat(20_000)), "u");
    let mut layers = layers(&f, &Context::default());
    let cuts = layers.cuts();
    assert_eq!(cuts.len(), 1);
    assert!(cuts[0].whole.ends_with("TAIL") && cuts[0].source.ends_with("AGENTS.md"), "{}", cuts[0].source);
    let before = layers.render().1[1].tokens;
    layers.put(cuts[0].at, "obey");
    let (text, costs) = layers.render();
    let path = tmp.path().join("AGENTS.md");
    assert!(
        text.contains(&format!("[shortened; read {} for the full text]\nobey", path.display())),
        "{text}"
    );
    assert!(!text.contains("HEAD") && costs[1].shortened);
    layers.put(cuts[0].at, &"long ".repeat(100_000));
    assert!(layers.render().1[1].tokens <= before + 10);
}

#[test]
fn the_agents_prompt_leaves_room_for_the_tools_in_8_kib() {
    assert!(AGENT.len() < 2_600, "{}", AGENT.len());
}

#[test]
fn the_budget_that_is_shown_for_the_list_of_skills_is_the_one_that_holds() {
    let (_tmp, mut f) = setup("a", "u");
    f.skills.list = "- deploy: How it is deployed".to_owned();
    for (set, tokens) in [(None, 640), (Some(300), 300), (Some(9_000), 2_000)] {
        let layers = set.map(|tokens| ("skills".to_owned(), tokens)).into_iter().collect();
        let settings = Context { layers, ..Context::default() };
        let (_, costs) = system(&f, &settings);
        let list = costs.iter().find(|c| c.name == "skills").unwrap();
        assert_eq!((list.budget, list.shortened), (tokens, false), "{set:?}");
        assert_eq!(skill_list_budget(&settings), tokens);
    }
    assert_eq!(SKILL_LIST * 5 / 2, tiller_skills::INDEX_BYTES as u64);
}

#[test]
fn soul_md_is_part_of_the_prompt_with_hidden_text_made_visible() {
    let (tmp, f) = setup("use tabs", "u");
    let hidden = "Be dry.\u{200b}\u{202e}\nShort answers.";
    std::fs::write(tmp.path().join("config/SOUL.md"), hidden).unwrap();
    let (text, costs) = system(&f, &Context::default());
    let at = text.find("# Your character, as the user wrote it\nBe dry.").unwrap();
    assert!(text.find("You are Tiller").unwrap() < at && at < text.find("use tabs").unwrap());
    assert!(text.contains("Short answers.") && !text.contains(['\u{200b}', '\u{202e}']), "{text}");
    let soul = costs.iter().find(|c| c.source.ends_with("SOUL.md")).unwrap();
    assert_eq!((soul.name.as_str(), soul.shortened), ("prompt", false));
    // However long it is, the agent's own prompt stays whole.
    std::fs::write(tmp.path().join("config/SOUL.md"), "word ".repeat(40_000)).unwrap();
    let (text, costs) = system(&f, &Context::default());
    assert!(text.starts_with(AGENT.trim()));
    let soul = costs.iter().find(|c| c.source.ends_with("SOUL.md")).unwrap();
    assert!(soul.shortened && soul.tokens <= Layer::Prompt.budget(), "{soul:?}");
}

#[test]
fn other_agents_have_soul_md_only_where_their_definition_says_so() {
    let (tmp, mut f) = setup("a", "u");
    std::fs::write(tmp.path().join("config/SOUL.md"), "Be dry.").unwrap();
    let agents = tmp.path().join("config/agents");
    std::fs::create_dir_all(&agents).unwrap();
    for (name, may) in [("all", ""), ("some", "may: [project, user]\n"), ("soul", "may: [project, soul]\n")] {
        std::fs::write(
            agents.join(format!("{name}.md")),
            format!("---\ndescription: x\n{may}---\nYou forge.\n"),
        )
        .unwrap();
    }
    let known = tiller_config::agents::DefinitionContext {
        tools: &tiller_tool::Registry::built_in().catalog(),
        clis: &[],
        rule: &|_| Ok(()),
    };
    let (all, wrong) = tiller_config::agents::Definitions::load(&tmp.path().join("config"), &[], &known);
    assert_eq!(wrong, []);
    let mut text = |name: Option<&str>, identity: &str| {
        let definition = name.map(|n| Arc::clone(all.get(n).unwrap()));
        f.role = Some(AgentRole { definition, identity: identity.to_owned(), ..AgentRole::default() });
        system(&f, &Context::default()).0
    };
    assert!(text(None, "").contains("Be dry."), "the main agent");
    assert!(!text(None, "You are a1.").contains("Be dry."));
    assert!(!text(Some("all"), "You are a1.").contains("Be dry."));
    assert!(!text(Some("some"), "You are a1.").contains("Be dry."));
    assert!(text(Some("soul"), "You are a1.").contains("Be dry."));
    assert!(
        text(Some("all"), "").contains("Be dry."),
        "the main agent with a definition that names no layers"
    );
}
