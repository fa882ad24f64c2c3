//! The session's mode: makes sure that the program asks for permission, and keeps asking.
//!
//! Unless everything is allowed, the asking mode is set even when the program does not list it, and a program that
//! refuses it gets no prompt. When it leaves that mode by itself, the mode is set again at once.

use serde_json::{Value, json};

use super::client::{Client, RequestFailure};
use super::session::{offers, option};
use crate::event::AgentEvent;
use tiller_rpc::Error;

/// How a mode is set.
#[derive(Clone, Debug, PartialEq)]
enum Way {
    Mode,
    /// By the config option with this id.
    Option(Value),
}

/// The mode that was set for a session.
#[derive(Debug, Default)]
pub(super) struct Mode {
    /// Permitted modes. Empty: any.
    allowed: Vec<String>,
    set: Option<(String, Way)>,
    /// The id of our unanswered request to restore the mode.
    asked: Option<u64>,
}

impl Mode {
    /// The request that restores the mode, when an update reports a mode that is not permitted.
    pub(super) fn left(&self, session: &str, update: &Value) -> Option<(&'static str, Value)> {
        let now = match update["sessionUpdate"].as_str()? {
            "current_mode_update" => update["currentModeId"].as_str()?,
            "config_option_update" => option(update, "mode")?["currentValue"].as_str()?,
            _ => return None,
        };
        let (mode, way) = self.set.as_ref()?;
        let fine = self.allowed.is_empty() || self.allowed.iter().any(|m| m == now);
        (!fine).then(|| request(session, mode, way))
    }

    pub(super) fn asks(&mut self, id: u64) {
        self.asked = Some(id);
    }

    pub(super) fn is_asked(&self, id: u64) -> bool {
        self.asked == Some(id)
    }

    /// Handles the answer to the request to restore the mode.
    ///
    /// # Errors
    /// When it is refused: the program would continue without asking.
    pub(super) fn answered(&mut self, result: Result<Value, Error>) -> Result<(), Error> {
        self.asked = None;
        result.map(|_| ()).map_err(|e| {
            let why = e.text();
            Error::new(0, format!("it left its asking mode and did not return ({why}); it was ended"))
        })
    }
}

fn request(session: &str, mode: &str, way: &Way) -> (&'static str, Value) {
    match way {
        Way::Mode => ("session/set_mode", json!({"sessionId": session, "modeId": mode})),
        Way::Option(id) => {
            ("session/set_config_option", json!({"sessionId": session, "configId": id, "value": mode}))
        }
    }
}

/// Sets the job's mode for a session that was just opened.
pub(super) async fn set(c: &mut Client, opened: &Value) -> Result<(), RequestFailure> {
    let acp = c.acp.clone();
    let choice = option(opened, "mode");
    let listed = |mode: &str| {
        let modes = opened["modes"]["availableModes"].as_array();
        modes.into_iter().flatten().any(|m| m["id"] == mode)
    };
    let offered = |mode: &str| choice.is_some_and(|o| offers(o, mode));
    // The session's own modes first; some programs offer them as an option only.
    let way = |mode: &str| {
        let option = || choice.filter(|_| offered(mode)).map(|o| Way::Option(o["id"].clone()));
        if listed(mode) { Some(Way::Mode) } else { option() }
    };
    let known = |modes: &[String]| modes.iter().find_map(|m| Some((m.clone(), way(m)?)));
    if c.run.job.auto_approve {
        // Without such a mode its questions are answered one by one.
        let Some((mode, way)) = known(&acp.auto_mode) else { return Ok(()) };
        return match ask(c, &mode, &way).await {
            Err(RequestFailure::Error(e)) => {
                c.send_event(AgentEvent::Note(format!("mode {mode}: {}", e.text()))).await
            }
            other => other,
        };
    }
    let edits = c.run.job.edits;
    c.mode.allowed = [&acp.ask_mode, &acp.rest_mode]
        .into_iter()
        .chain(edits.then_some(&acp.edit_mode))
        .flatten()
        .cloned()
        .collect();
    let mut tries: Vec<(String, Way)> = known(&acp.edit_mode).filter(|_| edits).into_iter().collect();
    tries.extend(known(&acp.ask_mode).or_else(|| {
        // It is not listed, but some programs accept it nevertheless.
        let by_option = choice.filter(|_| !opened["modes"].is_object());
        let way = by_option.map_or(Way::Mode, |o| Way::Option(o["id"].clone()));
        Some((acp.ask_mode.first()?.clone(), way))
    }));
    if tries.is_empty() {
        // Its environment makes it ask.
        c.mode.allowed.clear();
        return Ok(());
    }
    let mut refused = None;
    for (mode, way) in tries {
        match ask(c, &mode, &way).await {
            Err(RequestFailure::Error(e)) => refused = Some((mode, e)),
            Ok(()) => {
                c.mode.set = Some((mode, way));
                return Ok(());
            }
            other => return other,
        }
    }
    let Some((mode, e)) = refused else { return Ok(()) };
    let message = format!(
        "it does not accept its mode {mode}, in which it asks ({}), so nothing was sent to it; update it, or \
         choose the permission mode full",
        e.text()
    );
    Err(RequestFailure::Error(Error::new(0, message)))
}

async fn ask(c: &mut Client, mode: &str, way: &Way) -> Result<(), RequestFailure> {
    let (method, params) = request(&c.session, mode, way);
    c.request(method, params).await.map(|_| ())
}
