//! The results of a batch: one JSON line for each case that has ended. A case with a result is not run again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_engine::money::budget;
use tiller_protocol::{Cost, Usage};

/// Longest error text, in bytes.
const ERROR: usize = 2000;

/// How a case ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::commands) struct CaseResult {
    pub(super) id: String,
    /// `done`, or why it did not succeed: the status of its turn, `failed` without a turn, or `lost`.
    pub(in crate::commands) status: String,
    /// Exit code of its process; `None`: not known.
    #[serde(default)]
    pub(super) exit: Option<i32>,
    /// The answer.
    #[serde(default)]
    text: String,
    /// Of all its agents; `None`: not known.
    #[serde(default)]
    pub(in crate::commands) cost_usd: Option<f64>,
    #[serde(default)]
    pub(in crate::commands) usage: Usage,
    /// From its start to its end, as far as this is known.
    #[serde(default)]
    pub(in crate::commands) seconds: f64,
    #[serde(default)]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    launcher: String,
    /// From 1; more after `--retry`.
    #[serde(default)]
    pub(super) attempt: u32,
    /// Tells whether the case in the file is still the same.
    pub(super) hash: String,
}

impl CaseResult {
    /// A result of nothing but a reason.
    pub(super) fn without_turn(status: &str, exit: Option<i32>, error: &str) -> Self {
        let error = error.trim();
        let from = error.ceil_char_boundary(error.len().saturating_sub(ERROR));
        let error = Some(error[from..].to_owned()).filter(|e| !e.is_empty());
        Self { status: status.into(), exit, error, ..Self::default() }
    }

    pub(super) fn of(self, id: &str, hash: &str, launcher: &str) -> Self {
        Self { id: id.into(), hash: hash.into(), launcher: launcher.into(), ..self }
    }

    /// With this exit code.
    pub(super) fn with_exit(self, exit: Option<i32>) -> Self {
        Self { exit, ..self }
    }

    /// From the events that `tiller exec --json` printed; `None`: its turn has not ended.
    pub(in crate::commands) fn read(events: &str) -> Option<Self> {
        let (result, ended) = Self::read_so_far(events);
        ended.then_some(result)
    }

    /// What an attempt has cost whose events these are, whether it has ended or not.
    pub(super) fn cost_so_far(events: &str) -> Cost {
        Self::read_so_far(events).0.cost()
    }

    /// With the cost of attempts before this one.
    pub(super) fn after(mut self, earlier: Cost) -> Self {
        if earlier > Cost::default() {
            self.cost_usd = Some(self.cost().plus(earlier).usd());
        }
        self
    }

    /// The events as far as they go, and whether the turn has ended.
    pub(in crate::commands) fn read_so_far(events: &str) -> (Self, bool) {
        let mut result = Self::default();
        let mut ended = false;
        // The newest row of each agent, which counts where the turn has not ended; its end has the sum of all.
        let mut costs: HashMap<String, u64> = HashMap::new();
        let mut whole = None;
        let mut times: [Option<String>; 2] = [None, None];
        for line in events.lines() {
            // Other lines are those of a launcher, or a line that was cut off.
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            let text = |name: &str| event[name].as_str().map(str::to_owned);
            let Some(kind) = event["type"].as_str() else { continue };
            if let Some(time) = text("time") {
                times[0].get_or_insert_with(|| time.clone());
                times[1] = Some(time);
            }
            match kind {
                "session_started" => result.session = text("session"),
                "agent_changed" => {
                    let view = &event["view"];
                    if let (Some(id), Some(cost)) = (view["id"].as_str(), view["cost"].as_u64()) {
                        costs.insert(id.to_owned(), cost);
                    }
                }
                "turn_finished" if event["agent"].as_str().is_none_or(|agent| agent == "main") => {
                    ended = true;
                    result.status = text("status").unwrap_or_default();
                    result.text = text("text").unwrap_or_default();
                    result.usage = serde_json::from_value(event["usage"].clone()).unwrap_or_default();
                    result.error = event["error"]["message"].as_str().map(str::to_owned);
                    whole = event["cost_usd"].as_f64().map(Cost::from_usd);
                }
                _ => {}
            }
        }
        let rows = costs.values().fold(Cost::default(), |sum, cost| sum.plus(Cost(*cost)));
        let rows = (!costs.is_empty()).then_some(rows);
        result.cost_usd = rows.max(whole).map(Cost::usd);
        let of = |at: usize| times[at].as_ref().and_then(|t: &String| t.parse::<jiff::Timestamp>().ok());
        if let (Some(first), Some(last)) = (of(0), of(1)) {
            result.seconds = last.duration_since(first).as_secs_f64().max(0.0);
        }
        (result, ended)
    }

    pub(in crate::commands) fn is_done(&self) -> bool {
        self.status == "done"
    }

    /// Returns true when it ended because its share of the money was used up, or too small for its first request.
    pub(super) fn is_used_up(&self) -> bool {
        self.status == "limit" && self.error.as_deref().is_some_and(budget::is_used_up)
    }

    /// Returns true when no request of it was answered.
    pub(super) fn is_unspent(&self) -> bool {
        self.cost() == Cost::default() && self.usage.context() == 0
    }

    pub(super) fn cost(&self) -> Cost {
        self.cost_usd.map(Cost::from_usd).unwrap_or_default()
    }
}

/// The file of the results.
pub(super) struct Results {
    file: File,
    /// The last result of each case.
    pub(super) all: HashMap<String, CaseResult>,
    /// Cost of all results at the start, those of earlier attempts among them.
    pub(super) spent: Cost,
}

impl Results {
    /// Opens or creates it. A line that a crash cut off is removed.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let mut file = File::options().read(true).append(true).create(true).open(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64)?;
        }
        let lines = String::from_utf8_lossy(&text[..whole]).into_owned();
        let (mut all, mut spent) = (HashMap::new(), Cost::default());
        for (at, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let result: CaseResult = serde_json::from_str(line).map_err(|e| {
                let why = format!("line {} is no result of a batch: {e}", at + 1);
                std::io::Error::new(std::io::ErrorKind::InvalidData, why)
            })?;
            spent = spent.plus(result.cost());
            all.insert(result.id.clone(), result);
        }
        Ok(Self { file, all, spent })
    }

    /// Adds a result; it is on the disk then.
    pub(super) fn add(&mut self, result: CaseResult) -> std::io::Result<()> {
        let line = crate::commands::json_line(&result);
        let end = self.file.seek(SeekFrom::End(0))?;
        if let Err(e) = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()) {
            // Nothing of a half line stays for the next one.
            let _ = self.file.set_len(end);
            return Err(e);
        }
        self.all.insert(result.id.clone(), result);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = r#"{"seq":1,"time":"2026-11-21T20:00:00Z","session":"s1","agent":"main","type":"session_started"}
{"seq":2,"time":"2026-11-21T20:00:01Z","agent":"main","type":"agent_changed","view":{"id":"a1","cost":2000}}
{"seq":3,"time":"2026-11-21T20:00:02Z","agent":"main","type":"agent_changed","view":{"id":"a1","cost":3000}}
{"seq":4,"time":"2026-11-21T20:00:03Z","agent":"a1","type":"turn_finished","status":"failed","text":"not mine"}
{"seq":5,"time":"2026-11-21T20:00:04.5Z","agent":"main","type":"turn_finished","status":"done","text":"Yes.","usage":{"input":7},"cost_usd":0.013}
"#;

    #[test]
    fn a_result_has_the_answer_and_the_cost_of_all_agents() {
        let result = CaseResult::read(EVENTS).unwrap();
        assert_eq!((result.status.as_str(), result.text.as_str()), ("done", "Yes."));
        assert_eq!((result.cost_usd, result.seconds, result.usage.input), (Some(0.013), 4.5, 7));
        assert_eq!(result.session.as_deref(), Some("s1"));
    }

    #[test]
    fn an_attempt_without_an_end_has_a_cost_and_the_next_one_includes_it() {
        let cut = EVENTS.split_inclusive('\n').take(3).collect::<String>();
        let earlier = CaseResult::cost_so_far(&cut);
        assert_eq!(earlier, Cost::from_usd(0.003));
        assert_eq!(CaseResult::read(EVENTS).unwrap().after(earlier).cost_usd, Some(0.016));
        assert_eq!(CaseResult::without_turn("lost", None, "").after(Cost::default()).cost_usd, None);
    }

    /// At every byte where the output can end.
    #[test]
    fn a_turn_that_has_not_ended_gives_no_result() {
        let end = EVENTS.trim_end().len();
        for at in 0..end {
            assert!(CaseResult::read(&EVENTS[..at]).is_none(), "{at}");
        }
        assert!(CaseResult::read(&EVENTS[..end]).is_some());
    }

    #[test]
    fn a_line_that_was_cut_off_is_removed_and_written_again() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("out");
        let result = |id: &str| CaseResult::read(EVENTS).unwrap().of(id, "h", "local");
        let mut results = Results::open(&path).unwrap();
        results.add(result("a")).unwrap();
        results.add(result("b")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let first = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
        for at in first..whole.len() {
            std::fs::write(&path, &whole[..at]).unwrap();
            let mut results = Results::open(&path).unwrap();
            assert_eq!(results.all.keys().collect::<Vec<_>>(), ["a"], "{at}");
            results.add(result("b")).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), whole, "{at}");
        }
        std::fs::write(&path, "{\"id\": 1}\n").unwrap();
        assert!(Results::open(&path).is_err_and(|e| e.to_string().contains("line 1 is no result")));
    }
}
