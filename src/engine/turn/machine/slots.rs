//! The calls of a reply: which of them can run at all, and which may run now.

use tiller_protocol::{ToolCall, ToolOutcome, Touch, USE_TOOL};

use super::effect::Effect;
use super::meant::meant;
use super::state::{CallResult, Slot, SlotState, Turn};
use tiller_protocol::nearest::nearest;

impl Turn {
    pub(super) fn slots_of(&self, calls: Vec<ToolCall>) -> Vec<Slot> {
        let cap = self.limits.calls_per_reply;
        let slot = |(i, call): (usize, ToolCall)| {
            let call = self.known(call);
            let touch = self.tools.0.get(&call.name).copied();
            let wrong = if i >= cap {
                Some(format!(
                    "Not run: at most {cap} calls of one reply are run. Make the others in the next reply."
                ))
            } else if let Some(raw) = &call.malformed {
                Some(malformed_text(&call.name, raw))
            } else if touch.is_none() {
                Some(self.unknown_text(&call.name))
            } else {
                None
            };
            let state = wrong.map_or(SlotState::Waiting, |text| {
                SlotState::Done(CallResult::text(ToolOutcome::Error, text))
            });
            Slot { touch: touch.unwrap_or(Touch::Execute), call, state }
        };
        calls.into_iter().enumerate().map(slot).collect()
    }

    /// The call with the tool's own name, where the model wrote a name that can mean only that one. The conversation
    /// keeps the model's spelling.
    pub(super) fn known(&self, mut call: ToolCall) -> ToolCall {
        if !self.tools.0.contains_key(&call.name)
            && let Some(tool) = meant(&call.name, self.tools.0.keys().map(String::as_str))
        {
            call.name = tool.to_owned();
        }
        call
    }

    fn unknown_text(&self, name: &str) -> String {
        if name == USE_TOOL {
            return format!("Not run: {USE_TOOL} takes the name of a tool and its arguments.");
        }
        let shown: String = name.chars().take(60).collect();
        match nearest(name, self.tools.0.keys().map(String::as_str)) {
            Some(near) => format!("There is no tool named '{shown}'. Did you mean '{near}'?"),
            None => {
                let names: Vec<&str> = self.tools.0.keys().map(String::as_str).collect();
                format!("There is no tool named '{shown}'. Available: {}.", names.join(", "))
            }
        }
    }

    /// Read-only calls run in parallel; every other call waits for all before it, and all after it wait for it.
    /// Planning and asking calls run in order among themselves.
    pub(super) fn start_calls(&mut self, out: &mut Vec<Effect>) {
        let mut running = self.slots.iter().filter(|s| matches!(s.state, SlotState::Running)).count();
        let mut unfinished = false;
        let mut plan_unfinished = false;
        for slot in &mut self.slots {
            let side_by_side = matches!(slot.touch, Touch::Read | Touch::Network | Touch::Plan);
            match slot.state {
                SlotState::Done(_) | SlotState::Appended => continue,
                SlotState::Running => {}
                SlotState::Waiting => {
                    let free = if side_by_side {
                        running < self.limits.parallel.max(1)
                            && !(slot.touch == Touch::Plan && plan_unfinished)
                    } else {
                        !unfinished
                    };
                    if free {
                        slot.state = SlotState::Running;
                        running += 1;
                        out.push(Effect::RunTool { call: slot.call.clone() });
                    }
                }
            }
            if !side_by_side {
                return;
            }
            unfinished = true;
            plan_unfinished |= slot.touch == Touch::Plan;
        }
    }
}

fn malformed_text(name: &str, raw: &str) -> String {
    let shown: String = raw.chars().take(200).collect();
    let why = match serde_json::from_str::<serde_json::Value>(raw) {
        Ok(_) => "they are not a JSON object".to_owned(),
        Err(e) => e.to_string(),
    };
    let again = "Send the call again with one complete JSON object as its arguments; for several objects, one call for each.";
    format!("Not run: the arguments of '{name}' could not be read ({why}). {again} They began: {shown}")
}
