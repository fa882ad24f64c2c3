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
