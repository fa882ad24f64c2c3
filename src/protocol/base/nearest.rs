//! Spelling suggestions, for "did you mean".

/// Longest name that is compared, in characters; a longer one has no suggestion.
const LONGEST: usize = 64;
/// Minimum length of a prefix that counts as a match, in characters.
const BEGINNING: usize = 3;

/// The name of `known` that is nearest to `wrong` without regard to its case, if one is near: at most a third of its
/// letters are inserted, removed, replaced or swapped with their neighbour (optimal string alignment), or `wrong` is its
/// beginning.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let long = wrong.chars().take(LONGEST + 1).count();
    if long == 0 || long > LONGEST {
        return None;
    }
    let far = |name: &str| match long >= BEGINNING && name.to_lowercase().starts_with(&wrong) {
        true => 1,
        false => strsim::osa_distance(&wrong, &name.to_lowercase()),
    };
    known
        .into_iter()
        .filter(|name| name.len() <= 4 * LONGEST)
        .map(|name| (far(name), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let known = ["model", "profile", "providers", "budget", "ui", "read_file", "write_file", "terminal"];
        for (wrong, right) in [
            ("modle", Some("model")),
            ("Model", Some("model")),
            ("provider", Some("providers")),
            ("budgets", Some("budget")),
            ("iu", Some("ui")),
            ("readfile", Some("read_file")),
            ("Read_File", Some("read_file")),
            ("terminals", Some("terminal")),
            ("term", Some("terminal")),
            ("te", None),
            ("launch_rocket", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, known), right, "{wrong}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
        let long = "x".repeat(100_000);
        assert_eq!(nearest("xxx", [long.as_str()]), None);
    }
}
