//! The right name for a wrong one.

/// The name of `known` that is nearest to `wrong`, if any is near: at most a third of its letters differ.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name longer than any of ours is near to none; the table below grows with its length.
    if wrong.len() > 64 {
        return None;
    }
    known
        .into_iter()
        .map(|name| (distance(&wrong.to_lowercase(), name), name))
        .filter(|(distance, name)| *distance <= (name.chars().count().max(3) / 3).max(1))
        .min()
        .map(|(_, name)| name)
}

/// Letters to insert, remove, replace or swap with their neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let known = ["model", "profile", "providers", "budget", "ui"];
        for (wrong, right) in [
            ("modle", Some("model")),
            ("Model", Some("model")),
            ("provider", Some("providers")),
            ("budgets", Some("budget")),
            ("iu", Some("ui")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, known), right, "{wrong}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
