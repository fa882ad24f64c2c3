//! What Escape does now. One ladder for the whole screen, pure, so that it can be tested as a model: one
//! Escape is exactly one step, and the footer names that step.

use std::time::Duration;

/// One step, from the innermost outwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
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
    /// First of two on a model's question: the second declines it.
    Decline,
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
    /// First of two on idle and empty: nothing but "again to rewind".
    Arm,
    /// Second of two: open rewind.
    Rewind,
    /// There is nothing to do.
    Nothing,
}

impl Rung {
    /// For the footer.
    pub fn label(self) -> Option<&'static str> {
        Some(match self {
            Self::Prefix => "cancel",
            Self::Popup | Self::Layer => "close",
            Self::Search => "end search",
            Self::Selection => "deselect",
            Self::CopyMode => "leave copy mode",
            Self::VimInsert => "normal",
            Self::Decline => "decline",
            Self::Pane => "back",
            Self::Home => "back to main",
            Self::Line => "end command",
            Self::Stop => "stop",
            Self::Rewind => "rewind",
            Self::Arm | Self::Nothing => return None,
        })
    }
}

/// Time within which the second Escape counts.
pub const DOUBLE: Duration = Duration::from_millis(600);

/// What the ladder needs to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Keys of a sequence wait.
    pub prefix: bool,
    /// What the panel on top (layer or focused pane) has open inside.
    pub inside: Option<Rung>,
    /// A layer is on top.
    pub layer: bool,
    /// The focus is in a pane, not in the composer; or a view other than the conversation is shown.
    pub pane: bool,
    /// Another agent than the main one is on the screen.
    pub child: bool,
    /// A line of the person's own (`!`) runs or waits.
    pub line: bool,
    pub running: bool,
    /// The composer holds no draft.
    pub empty: bool,
    /// The first of two Escapes was pressed within [`DOUBLE`].
    pub armed: bool,
}

/// The step that Escape does.
pub fn step(s: &Standing) -> Rung {
    if s.prefix {
        return Rung::Prefix;
    }
    if let Some(inside) = s.inside {
        return inside;
    }
    if s.layer {
        return Rung::Layer;
    }
    if s.pane {
        return Rung::Pane;
    }
    if s.child {
        return Rung::Home;
    }
    if s.line {
        return Rung::Line;
    }
    if s.running {
        return Rung::Stop;
    }
    if !s.empty {
        return Rung::Nothing;
    }
    if s.armed { Rung::Rewind } else { Rung::Arm }
}

/// What Ctrl-C does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
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
pub fn break_step(selection: bool, running: bool, empty: bool, armed: bool) -> Break {
    if selection {
        Break::Copy
    } else if running {
        Break::Stop
    } else if !empty {
        Break::Clear
    } else if armed {
        Break::Quit
    } else {
        Break::Arm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn standing() -> impl Strategy<Value = Standing> {
        let inside = prop_oneof![
            Just(None),
            Just(Some(Rung::Popup)),
            Just(Some(Rung::Search)),
            Just(Some(Rung::Selection)),
            Just(Some(Rung::CopyMode)),
            Just(Some(Rung::VimInsert)),
            Just(Some(Rung::Decline)),
        ];
        (any::<[bool; 8]>(), inside).prop_map(
            |([prefix, layer, pane, child, line, running, empty, armed], inside)| Standing {
                prefix,
                inside,
                layer,
                pane,
                child,
                line,
                running,
                empty,
                armed,
            },
        )
    }

    /// What is left after the step, as the app carries it out.
    fn after(s: &Standing, rung: Rung) -> Standing {
        let mut n = *s;
        n.armed = false;
        match rung {
            Rung::Prefix => n.prefix = false,
            Rung::Popup
            | Rung::Search
            | Rung::Selection
            | Rung::CopyMode
            | Rung::VimInsert
            | Rung::Decline => n.inside = None,
            Rung::Layer => n.layer = false,
            Rung::Pane => n.pane = false,
            Rung::Home => n.child = false,
            Rung::Line => n.line = false,
            Rung::Stop => n.running = false,
            Rung::Arm => n.armed = true,
            Rung::Rewind | Rung::Nothing => {}
        }
        n
    }

    /// How many things are open.
    fn height(s: &Standing) -> usize {
        [s.prefix, s.inside.is_some(), s.layer, s.pane, s.child, s.line, s.running]
            .iter()
            .filter(|b| **b)
            .count()
    }

    proptest! {
        #[test]
        fn one_escape_is_exactly_one_step(s in standing()) {
            let rung = step(&s);
            let n = after(&s, rung);
            if height(&s) > 0 {
                prop_assert_eq!(height(&n), height(&s) - 1, "{:?} by {:?}", s, rung);
                prop_assert_eq!(n.empty, s.empty, "a draft is never touched");
                prop_assert!(rung.label().is_some(), "the footer names it");
            } else {
                prop_assert!(matches!(rung, Rung::Arm | Rung::Rewind | Rung::Nothing));
                prop_assert_eq!(rung == Rung::Nothing, !s.empty);
            }
        }

        #[test]
        fn enough_escapes_lead_home_and_inner_things_go_first(s in standing()) {
            let mut now = s;
            let mut last = None;
            for _ in 0..8 {
                if height(&now) == 0 {
                    break;
                }
                let rung = step(&now);
                if let Some(last) = last {
                    prop_assert!(last < rung, "{:?} before {:?}", last, rung);
                }
                last = Some(rung);
                now = after(&now, rung);
            }
            prop_assert_eq!(height(&now), 0);
        }
    }

    #[test]
    fn a_running_turn_is_stopped_only_when_nothing_lies_over_it() {
        let s = Standing { running: true, layer: true, ..Standing::default() };
        assert_eq!(step(&s), Rung::Layer);
        assert_eq!(step(&Standing { layer: false, ..s }), Rung::Stop);
    }

    #[test]
    fn ctrl_c_copies_stops_clears_then_quits() {
        assert_eq!(break_step(true, true, false, true), Break::Copy);
        assert_eq!(break_step(false, true, false, true), Break::Stop);
        assert_eq!(break_step(false, false, false, true), Break::Clear);
        assert_eq!(break_step(false, false, true, false), Break::Arm);
        assert_eq!(break_step(false, false, true, true), Break::Quit);
    }
}
