//! Which columns of a row there is room for. They are dropped one by one, so that the text keeps its room.

/// Columns of the screen that the text keeps beside the columns that matter, and beside the others.
const WORDS: u16 = 36;
const MORE_WORDS: u16 = 56;

/// A column at the right of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Time,
    Model,
    Tokens,
    Cost,
    Files,
}

impl Column {
    /// In the order of the screen, each with its width, a blank before it included.
    pub(super) const ALL: [(Self, u16); 5] =
        [(Self::Time, 8), (Self::Model, 16), (Self::Tokens, 8), (Self::Cost, 8), (Self::Files, 7)];

    /// In the order in which they are dropped.
    const GOES: [Self; 5] = [Self::Model, Self::Tokens, Self::Files, Self::Cost, Self::Time];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Time => "Time",
            Self::Model => "Model",
            Self::Tokens => "Tokens",
            Self::Cost => "Cost",
            Self::Files => "Files",
        }
    }
}

/// The columns that fit beside the text. `filled`: those in which a row has something to say.
pub(super) fn fit(width: u16, filled: &[Column]) -> Vec<(Column, u16)> {
    let mut all: Vec<(Column, u16)> = Column::ALL.into_iter().filter(|(m, _)| filled.contains(m)).collect();
    for goes in Column::GOES {
        let used: u16 = all.iter().map(|(_, w)| w).sum();
        let words = if matches!(goes, Column::Model | Column::Tokens) { MORE_WORDS } else { WORDS };
        if used + words <= width {
            break;
        }
        all.retain(|(m, _)| *m != goes);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_give_way_and_words_do_not() {
        let titles = |w, filled: &[Column]| {
            fit(w, filled).iter().map(|(m, _)| m.title()).collect::<Vec<_>>().join(" ")
        };
        let shown = |w| titles(w, &Column::ALL.map(|(m, _)| m));
        assert_eq!(shown(116), "Time Model Tokens Cost Files");
        assert_eq!(shown(87), "Time Tokens Cost Files");
        assert_eq!(shown(59), "Time Cost Files");
        assert_eq!(shown(52), "Time Cost");
        assert_eq!(shown(40), "");
        assert_eq!(titles(59, &[Column::Time, Column::Tokens]), "Time", "what no row fills takes no room");
        assert_eq!(titles(80, &[Column::Time, Column::Tokens]), "Time Tokens");
    }
}
