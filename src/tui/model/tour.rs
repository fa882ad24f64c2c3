//! The guided tour: which step is shown. It covers nothing and takes no keys: a few lines say what to try, and doing
//! that shows the next step.

use crate::keymap::action::Action;
/// One step: what to read, and the actions that take it further by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TourStep {
    pub title: String,
    pub text: String,
    /// Actions such as `composer.send`; their keys are shown.
    pub actions: Vec<TourAction>,
}

/// An action that a step is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TourAction {
    pub id: String,
    pub goes_on: Advance,
}

/// When performing the action shows the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    Always,
    /// `!`: only where it does something to a turn that runs.
    Running,
    /// `?`: it only leads to the place where the step happens.
    Never,
}

impl TourAction {
    fn read(text: &str) -> Self {
        let (id, goes_on) = match (text.strip_suffix('!'), text.strip_suffix('?')) {
            (Some(id), _) => (id, Advance::Running),
            (_, Some(id)) => (id, Advance::Never),
            _ => (text, Advance::Always),
        };
        Self { id: id.to_owned(), goes_on }
    }

    fn is(&self, action: Action, running: bool) -> bool {
        let now = match self.goes_on {
            Advance::Always => true,
            Advance::Running => running,
            Advance::Never => false,
        };
        now && self.id == action.0
    }
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
            actions: actions
                .split(',')
                .map(str::trim)
                .filter(|a| !a.is_empty())
                .map(TourAction::read)
                .collect(),
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

    /// True when there is one at all.
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

    /// Notes an action of the person's: when the step is about it, the next step comes. A step without actions is
    /// skipped when the action belongs to the step behind it.
    /// `running`: a turn was running.
    pub fn performed(&mut self, action: Action, running: bool) {
        if self.ended {
            return;
        }
        let steps = || self.steps.iter().skip(self.at);
        let told = steps().take_while(|s| s.actions.is_empty()).count();
        if steps().nth(told).is_some_and(|s| s.actions.iter().any(|a| a.is(action, running))) {
            self.at += told;
            self.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_action_of_the_next_step_skips_a_step_without_actions() {
        let step = |title: &str, actions: &str| (title.to_owned(), String::new(), actions.to_owned());
        let mut t = Tour::new(&[step("welcome", ""), step("ask", "composer.send"), step("end", "app.quit")]);
        let at = |t: &Tour| t.step().map(|(s, ..)| s.title.clone());
        t.performed(Action("composer.send"), false);
        assert_eq!(at(&t), None, "it has not begun");
        t.begin();
        t.performed(Action("app.quit"), false);
        assert_eq!(at(&t).as_deref(), Some("welcome"));
        t.performed(Action("composer.send"), false);
        assert_eq!(at(&t).as_deref(), Some("end"));
        t.begin();
        t.next();
        t.performed(Action("composer.send"), false);
        assert_eq!(at(&t).as_deref(), Some("end"));
    }

    #[test]
    fn a_step_goes_on_only_when_what_it_says_was_done() {
        let step = |actions: &str| (actions.to_owned(), String::new(), actions.to_owned());
        let mut t = Tour::new(&[step("global.escape!"), step("view.conversation?, list.open"), step("x.y")]);
        t.begin();
        let at = |t: &Tour| t.step().map(|(_, at, _)| at);
        t.performed(Action("global.escape"), false);
        assert_eq!(at(&t), Some(1), "it stopped nothing");
        t.performed(Action("global.escape"), true);
        t.performed(Action("view.conversation"), true);
        assert_eq!(at(&t), Some(2), "that is only the way there");
        t.performed(Action("list.open"), false);
        assert_eq!(at(&t), Some(3));
        let ids: Vec<&str> = t.steps[1].actions.iter().map(|a| a.id.as_str()).collect();
        assert_eq!(ids, ["view.conversation", "list.open"]);
    }
}
