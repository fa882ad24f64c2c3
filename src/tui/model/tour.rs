//! The guided tour: which step is shown. It lies over nothing and takes no keys: a few lines tell what to
//! try, and doing it goes on to the next step.

use crate::action::Action;
/// One step: what to read, and the actions that take it further by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TourStep {
    pub title: String,
    pub text: String,
    /// Ids of actions, such as `composer.send`; their keys are shown.
    pub actions: Vec<String>,
}

/// Steps and where it stands.
#[derive(Clone, Debug, Default)]
pub struct Tour {
    steps: Vec<TourStep>,
    at: usize,
    ended: bool,
}

impl Tour {
    /// Title, text and action ids (with commas between them) of each step. It has not begun.
    pub fn new(steps: &[(String, String, String)]) -> Self {
        let step = |(title, text, actions): &(String, String, String)| TourStep {
            title: title.clone(),
            text: text.clone(),
            actions: actions.split(',').map(|a| a.trim().to_owned()).filter(|a| !a.is_empty()).collect(),
        };
        Self { steps: steps.iter().map(step).collect(), at: 0, ended: true }
    }

    /// The step, its number from 1 on, and how many there are; `None`: it does not run.
    pub fn step(&self) -> Option<(&TourStep, usize, usize)> {
        if self.ended {
            return None;
        }
        self.steps.get(self.at).map(|s| (s, self.at + 1, self.steps.len()))
    }

    /// Whether there is one at all.
    pub fn exists(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The next step; behind the last one it ends.
    pub fn next(&mut self) {
        self.at += 1;
        self.ended |= self.at >= self.steps.len();
    }

    /// Ends it. It can be begun again.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// From the first step on.
    pub fn begin(&mut self) {
        self.at = 0;
        self.ended = false;
    }

    /// The person did something: when it is what the step is about, the next one comes. A step that only
    /// tells something is passed over by who does already what the one behind it is about.
    pub fn did(&mut self, action: Action) {
        if self.ended {
            return;
        }
        let steps = || self.steps.iter().skip(self.at);
        let told = steps().take_while(|s| s.actions.is_empty()).count();
        if steps().nth(told).is_some_and(|s| s.actions.iter().any(|a| a == action.0)) {
            self.at += told;
            self.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_what_comes_next_passes_over_words() {
        let step = |title: &str, actions: &str| (title.to_owned(), String::new(), actions.to_owned());
        let mut t = Tour::new(&[step("welcome", ""), step("ask", "composer.send"), step("end", "app.quit")]);
        let at = |t: &Tour| t.step().map(|(s, ..)| s.title.clone());
        t.did(Action("composer.send"));
        assert_eq!(at(&t), None, "it has not begun");
        t.begin();
        t.did(Action("app.quit"));
        assert_eq!(at(&t).as_deref(), Some("welcome"));
        t.did(Action("composer.send"));
        assert_eq!(at(&t).as_deref(), Some("end"));
        t.begin();
        t.next();
        t.did(Action("composer.send"));
        assert_eq!(at(&t).as_deref(), Some("end"));
    }
}
