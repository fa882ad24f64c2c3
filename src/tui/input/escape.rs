//! The step that Escape takes now: one list of steps for the whole screen. One Escape is exactly one step, and the footer names
//! that step. Pure, so that it can be tested as a model.

use std::time::Duration;

/// One step, from the innermost outwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EscapeStep {
    /// Drop the keys of an unfinished sequence.
    Prefix,
    /// Close a completion list.
    Popup,
    /// End a search or clear a filter.
    Search,
    /// Drop a selection.
    Selection,
    CopyMode,
    /// From vim insert mode to normal mode.
    VimInsert,
    /// Close the dialog on top.
    Layer,
    /// From a pane to the composer.
    Pane,
    /// From another agent to the main one, which never stops anything.
    Home,
    /// End the line of the person's own that runs.
    Line,
    /// Stop the running turn.
    Stop,
    /// Ask whether the agents that go on after the turn was stopped are ended.
    Agents,
    /// First of two on idle and empty: nothing but "again to rewind".
    Arm,
    /// Second of two: open rewind.
    Rewind,
    /// There is nothing to do.
    Nothing,
}

impl EscapeStep {
    /// For the footer.
    pub fn label(self) -> Option<&'static str> {
        Some(match self {
            Self::Prefix => "cancel",
            Self::Popup | Self::Layer => "close",
            Self::Search => "end search",
            Self::Selection => "deselect",
            Self::CopyMode => "leave copy mode",
            Self::VimInsert => "normal",
            Self::Pane => "back",
            Self::Home => "back to main",
            Self::Line => "end command",
            Self::Stop => "stop",
            Self::Agents => "end agents",
            Self::Rewind => "rewind",
            Self::Arm | Self::Nothing => return None,
        })
    }
}

/// Time within which the second Escape counts.
pub const DOUBLE: Duration = Duration::from_millis(600);

/// Time after a stop within which Escape asks about the agents that go on.
pub const AGENTS: Duration = Duration::from_secs(5);

/// The facts that the choice of a step depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EscapeContext {
    /// Keys of a sequence wait.
    pub prefix: bool,
    /// The innermost thing that is open in the panel on top (layer or focused pane).
    pub inside: Option<EscapeStep>,
    /// A layer is on top.
    pub layer: bool,
    /// The focus is in a pane, not in the composer; or a view other than the conversation is shown.
    pub pane: bool,
    /// Another agent than the main one is on the screen.
    pub child: bool,
    /// A line of the person's own (`!`) runs or waits.
    pub line: bool,
    pub running: bool,
    /// The turn was stopped a moment ago, and agents go on.
    pub agents: bool,
    /// The composer holds no draft.
    pub empty: bool,
    /// The first of two Escapes was pressed within [`DOUBLE`].
    pub armed: bool,
}

/// The step that Escape does.
pub fn step(s: &EscapeContext) -> EscapeStep {
    if s.prefix {
        return EscapeStep::Prefix;
    }
    if let Some(inside) = s.inside {
        return inside;
    }
    if s.layer {
        return EscapeStep::Layer;
    }
    if s.pane {
        return EscapeStep::Pane;
    }
    if s.child {
        return EscapeStep::Home;
    }
    if s.line {
        return EscapeStep::Line;
    }
    if s.running {
        return EscapeStep::Stop;
    }
    if s.agents {
        return EscapeStep::Agents;
    }
    if !s.empty {
        return EscapeStep::Nothing;
    }
    if s.armed { EscapeStep::Rewind } else { EscapeStep::Arm }
}

/// The step that Ctrl-C takes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakStep {
    Copy,
    Stop,
    /// Clear the draft; it is kept in history.
    Clear,
    /// Say "again to quit".
    Arm,
    Quit,
}

/// The step that Ctrl-C does: `selection` exists, a turn runs, the composer is empty, Ctrl-C was pressed
/// just before.
pub fn break_step(selection: bool, running: bool, empty: bool, armed: bool) -> BreakStep {
    if selection {
        BreakStep::Copy
    } else if running {
        BreakStep::Stop
    } else if !empty {
        BreakStep::Clear
    } else if armed {
        BreakStep::Quit
    } else {
        BreakStep::Arm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn standing() -> impl Strategy<Value = EscapeContext> {
        let inside = prop_oneof![
            Just(None),
            Just(Some(EscapeStep::Popup)),
            Just(Some(EscapeStep::Search)),
            Just(Some(EscapeStep::Selection)),
            Just(Some(EscapeStep::CopyMode)),
            Just(Some(EscapeStep::VimInsert)),
        ];
        (any::<[bool; 9]>(), inside).prop_map(
            |([prefix, layer, pane, child, line, running, agents, empty, armed], inside)| EscapeContext {
                prefix,
                inside,
                layer,
                pane,
                child,
                line,
                running,
                agents,
                empty,
                armed,
            },
        )
    }

    /// Returns what is left after the step, as the app carries it out.
    fn after(s: &EscapeContext, escape_step: EscapeStep) -> EscapeContext {
        let mut n = *s;
        n.armed = false;
        match escape_step {
            EscapeStep::Prefix => n.prefix = false,
            EscapeStep::Popup
            | EscapeStep::Search
            | EscapeStep::Selection
            | EscapeStep::CopyMode
            | EscapeStep::VimInsert => n.inside = None,
            EscapeStep::Layer => n.layer = false,
            EscapeStep::Pane => n.pane = false,
            EscapeStep::Home => n.child = false,
            EscapeStep::Line => n.line = false,
            EscapeStep::Stop => n.running = false,
            EscapeStep::Agents => n.agents = false,
            EscapeStep::Arm => n.armed = true,
            EscapeStep::Rewind | EscapeStep::Nothing => {}
        }
        n
    }

    /// How many things are open.
    fn height(s: &EscapeContext) -> usize {
        [s.prefix, s.inside.is_some(), s.layer, s.pane, s.child, s.line, s.running, s.agents]
            .iter()
            .filter(|b| **b)
            .count()
    }

    proptest! {
        #[test]
        fn one_escape_is_exactly_one_step(s in standing()) {
            let escape_step = step(&s);
            let n = after(&s, escape_step);
            if height(&s) > 0 {
                prop_assert_eq!(height(&n), height(&s) - 1, "{:?} by {:?}", s, escape_step);
                prop_assert_eq!(n.empty, s.empty, "a draft is never touched");
                prop_assert!(escape_step.label().is_some(), "the footer names it");
            } else {
                prop_assert!(matches!(escape_step, EscapeStep::Arm | EscapeStep::Rewind | EscapeStep::Nothing));
                prop_assert_eq!(escape_step == EscapeStep::Nothing, !s.empty);
            }
        }

        #[test]
        fn enough_escapes_lead_home_and_inner_things_go_first(s in standing()) {
            let mut now = s;
            let mut last = None;
            for _ in 0..9 {
                if height(&now) == 0 {
                    break;
                }
                let escape_step = step(&now);
                if let Some(last) = last {
                    prop_assert!(last < escape_step, "{:?} before {:?}", last, escape_step);
                }
                last = Some(escape_step);
                now = after(&now, escape_step);
            }
            prop_assert_eq!(height(&now), 0);
        }
    }

    #[test]
    fn a_running_turn_is_stopped_only_when_nothing_lies_over_it() {
        let s = EscapeContext { running: true, layer: true, ..EscapeContext::default() };
        assert_eq!(step(&s), EscapeStep::Layer);
        assert_eq!(step(&EscapeContext { layer: false, ..s }), EscapeStep::Stop);
    }

    #[test]
    fn ctrl_c_copies_stops_clears_then_quits() {
        assert_eq!(break_step(true, true, false, true), BreakStep::Copy);
        assert_eq!(break_step(false, true, false, true), BreakStep::Stop);
        assert_eq!(break_step(false, false, false, true), BreakStep::Clear);
        assert_eq!(break_step(false, false, true, false), BreakStep::Arm);
        assert_eq!(break_step(false, false, true, true), BreakStep::Quit);
    }
}
