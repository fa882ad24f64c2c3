use super::*;

fn config(text: &str) -> Config {
    toml::from_str(text).unwrap()
}

fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage { input, output, cache_read, cache_write, reasoning: 0, ..Usage::default() }
}

#[test]
fn the_built_in_table_reads_and_is_sane() {
    let table: Table = toml::from_str(TABLE).unwrap();
    assert!(table.model.len() > 40);
    for row in &table.model {
        for id in &row.id {
            assert_eq!(id, &id.to_lowercase());
        }
        let i = &row.info;
        for price in [i.input, i.output, i.cache_read, i.cache_write].into_iter().flatten() {
            assert!(price > 0.0 && price < 1000.0, "{:?}", row.id);
        }
        assert!(i.cache_read.unwrap_or(0.0) <= i.input.unwrap_or(f64::MAX), "{:?}", row.id);
        let mut below = (0, i.input, i.output);
        for step in &i.long {
            assert!(step.over > below.0 && Some(step.over) < i.window, "{:?}", row.id);
            assert!(below.1.is_some_and(|p| p < step.input), "{:?}", row.id);
            assert!(below.2.is_some_and(|p| p < step.output), "{:?}", row.id);
            assert!(step.cache_read.unwrap_or(0.0) <= step.input, "{:?}", row.id);
            assert_eq!(step.cache_read.is_some(), i.cache_read.is_some(), "{:?}", row.id);
            assert_eq!(step.cache_write.is_some(), i.cache_write.is_some(), "{:?}", row.id);
            below = (step.over, Some(step.input), Some(step.output));
        }
        assert!(i.max_output.unwrap_or(0) <= i.window.unwrap_or(u64::MAX), "{:?}", row.id);
    }
    for (provider, model) in &table.defaults {
        let info = lookup(provider, model, &Config::default());
        assert!(provider == "ollama" || info.window.is_some(), "{provider}/{model} has no row");
    }
}

#[test]
fn special_rows_win_over_general_ones() {
    let of = |model: &str| lookup("p", model, &Config::default());
    assert_eq!(of("claude-opus-5-5").input, Some(4.0));
    assert_eq!(of("claude-opus-5").input, Some(5.0));
    assert_eq!(of("anthropic/claude-opus-5.5").input, Some(4.0));
    assert_eq!(of("CLAUDE-OPUS-4-1-20250805").input, Some(15.0));
    assert_eq!(of("gpt-5-mini-2025-08-07").input, Some(0.25));
    assert_eq!(of("gpt-5").input, Some(1.25));
    assert_eq!(of("no-such-model"), ModelInfo::default());
    assert_eq!(lookup("ollama", "gpt-oss:20b", &Config::default()).input, None, "local is not priced");
}

#[test]
fn the_persons_table_wins_field_by_field() {
    let config = config(
        r#"
        [providers.p]
        kind = "anthropic"
        [providers.p.models."claude-*"]
        window = 5
        [providers.p.models."claude-opus-*"]
        input = 1.5
        "#,
    );
    let info = lookup("p", "claude-opus-5-5", &config);
    assert_eq!((info.input, info.output), (Some(1.5), Some(20.0)));
    assert_eq!(lookup("p", "claude-x", &config).window, Some(5));
    assert_eq!(lookup("other", "claude-opus-5-5", &config).input, Some(4.0));
}

#[test]
fn stars_match_any_text() {
    for (pattern, text, want) in [
        ("*", "", true),
        ("a*", "abc", true),
        ("a*c", "abc", true),
        ("a*c", "abcd", false),
        ("*b*", "abc", true),
        ("*é*d", "éd", true),
        ("a", "ab", false),
        ("", "", true),
    ] {
        assert_eq!(matches(pattern, text), want, "{pattern} {text}");
    }
}

#[test]
fn p11_cost_saturates_and_unknown_is_never_zero() {
    let info = ModelInfo {
        input: Some(3.0),
        output: Some(15.0),
        cache_read: Some(0.3),
        cache_write: Some(3.75),
        ..ModelInfo::default()
    };
    assert_eq!(cost(&usage(1_000_000, 100_000, 10, 0), &info), Some(Cost(4_500_003)));
    assert_eq!(cost(&usage(u64::MAX, u64::MAX, u64::MAX, u64::MAX), &info), Some(Cost(u64::MAX)));
    assert_eq!(cost(&Usage::default(), &info), Some(Cost(0)));
    assert_eq!(cost(&usage(5, 5, 0, 0), &ModelInfo::default()), None);
    assert_eq!(cost(&Usage::default(), &ModelInfo::default()), None);
    let half = ModelInfo { input: Some(1.0), ..ModelInfo::default() };
    assert_eq!(cost(&usage(5, 5, 0, 0), &half), None, "the output's price is unknown");
    assert_eq!(
        cost(&usage(5, 0, 5, 5), &half),
        Some(Cost(15)),
        "without own prices the cache costs the input's"
    );
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        let info = ModelInfo { input: Some(bad), output: Some(1.0), ..ModelInfo::default() };
        assert_eq!(cost(&usage(5, 5, 0, 0), &info), None);
    }
}

#[test]
fn a_long_prompt_costs_its_own_price() {
    let of = |model: &str, usage| cost(&usage, &lookup("p", model, &Config::default()));
    // At the limit the lower price applies; one token more, and the whole request is charged at the higher one.
    assert_eq!(of("claude-haiku-5-5", usage(100_000, 1000, 0, 0)), Some(Cost(10_500)));
    assert_eq!(of("claude-haiku-5-5", usage(100_001, 1000, 0, 0)), Some(Cost(50_001 + 2500)));
    // Tokens read from and written to the cache count as prompt.
    assert_eq!(of("claude-haiku-5-5", usage(1, 0, 90_000, 10_000)), Some(Cost(4500 + 6250 + 1)));
    assert_eq!(of("gpt-5.5", usage(272_000, 0, 0, 0)), Some(Cost(1_360_000)));
    assert_eq!(of("gpt-5.5", usage(1, 1000, 300_000, 0)), Some(Cost(10 + 45_000 + 300_000)));
    assert_eq!(of("claude-sonnet-5", usage(900_000, 0, 0, 0)), Some(Cost(1_800_000)), "one price");
}

#[test]
fn steps_of_the_person_win_and_their_own_price_stands_alone() {
    let config = config(
        r#"
        [providers.p]
        kind = "gemini"
        [providers.p.models."gemini-2.5-pro"]
        input = 1.0
        [providers.p.models."x"]
        input = 1.0
        output = 2.0
        long = [{ over = 10, input = 3.0, output = 4.0 }, { over = 20, input = 5.0, output = 6.0 }]
        [providers.p.models."gemini-3-pro"]
        window = 7
        "#,
    );
    let of = |model: &str, usage| cost(&usage, &lookup("p", model, &config));
    assert_eq!(of("gemini-2.5-pro", usage(1_000_000, 0, 0, 0)), Some(Cost(1_000_000)));
    assert_eq!(of("gemini-3-pro", usage(1_000_000, 0, 0, 0)), Some(Cost(4_000_000)));
    for (prompt, want) in [(10, 10 + 2), (20, 60 + 4), (21, 105 + 6)] {
        assert_eq!(of("x", usage(prompt, 1, 0, 0)), Some(Cost(want)), "{prompt}");
    }
    // Without a price of their own, cache reads cost the same as input.
    assert_eq!(of("x", usage(0, 0, 21, 0)), Some(Cost(105)));
}

#[test]
fn lists_of_models_read() {
    assert_eq!(ids(br#"{"data":[{"id":"a"},{"x":1},{"id":"b"}]}"#, "data", "id"), ["a", "b"]);
    assert_eq!(ids(br#"[{"id":"a"}]"#, "data", "id"), ["a"]);
    assert!(ids(b"<html>", "data", "id").is_empty());
}
