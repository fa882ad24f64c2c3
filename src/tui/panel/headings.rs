//! Lists with names of groups among their rows: a name is never selected.

/// The row to select in place of `chosen`, when that is the name of a group: the next one in the direction of the step
/// from `before`. `is_row`: whether the row at this place can be selected, out of `len`.
pub(crate) fn past(chosen: usize, before: usize, len: usize, is_row: impl Fn(usize) -> bool) -> usize {
    if chosen < len && is_row(chosen) {
        return chosen;
    }
    let down = (chosen..len).find(|at| is_row(*at));
    let up = (0..chosen.min(len)).rev().find(|at| is_row(*at));
    let next = if chosen >= before { down.or(up) } else { up.or(down) };
    next.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_goes_past_the_name_of_a_group_and_back_from_the_first() {
        let is_row = |at: usize| ![0, 3].contains(&at);
        let to = |chosen, before| past(chosen, before, 6, is_row);
        assert_eq!((to(3, 2), to(3, 4)), (4, 2));
        assert_eq!((to(0, 1), to(0, 0)), (1, 1), "above the first there is none");
        assert_eq!(to(5, 4), 5);
        assert_eq!(past(0, 0, 0, |_| false), 0);
        assert_eq!(past(9, 0, 6, is_row), 5, "a list that became shorter");
    }
}
