//! "Did you mean": the name that is least far from a wrong one.

/// Names longer than this are cut before they are compared.
const LONGEST: usize = 64;

/// The nearest of `names`, if one is near enough to be meant (at most a third of its letters differ).
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong: Vec<char> = wrong.to_lowercase().chars().take(LONGEST).collect();
    names
        .map(|n| (distance(&wrong, &n.chars().take(LONGEST).collect::<Vec<_>>()), n))
        .min_by_key(|(d, _)| *d)
        .filter(|(d, n)| *d * 3 <= n.chars().count().max(3))
        .map(|(_, n)| n)
}

/// Insertions, deletions and replacements that lead from `a` to `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["read_file", "write_file", "terminal"];
        let near = |w| nearest(w, names.into_iter());
        assert_eq!(near("readfile"), Some("read_file"));
        assert_eq!(near("Read_File"), Some("read_file"));
        assert_eq!(near("terminals"), Some("terminal"));
        assert_eq!(near("launch_rocket"), None);
        assert_eq!(near(""), None);
    }
}
