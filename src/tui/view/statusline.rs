//! The status line in the header: a configured command receives the state as JSON, and the first line of its output is
//! shown. It runs on another thread, one run at a time, when the state has changed; never while nothing changes. Its
//! output is untrusted text.

use serde_json::json;
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent};
use tiller_protocol::{Event, EventBody};

use crate::app::App;
use crate::app::effect::{Effect, Task, Token};
use crate::app::state::Owner;
use crate::model::Model;
use crate::text::{clean, shorten_end};

/// Columns of the line at most.
const LONGEST: usize = 60;

/// After an event that changes the command's input.
pub(crate) fn event(app: &mut App, event: &Event) {
    let changes = match &event.body {
        EventBody::Turn(t) => matches!(
            t,
            TurnEvent::TurnStarted {} | TurnEvent::TurnFinished { .. } | TurnEvent::Compacted { .. }
        ),
        EventBody::State(s) => matches!(
            s,
            StateEvent::ModelChanged { .. }
                | StateEvent::ProfileChanged { .. }
                | StateEvent::EffortChanged { .. }
                | StateEvent::GitChanged { .. }
                | StateEvent::TitleChanged { .. }
        ),
        EventBody::Reply(r) => matches!(r.as_ref(), ReplyEvent::SnapshotReply { .. }),
        _ => false,
    };
    if changes {
        refresh(app);
    }
}

/// Runs the command, or lets it run once more when it is done.
pub(crate) fn refresh(app: &mut App) {
    let command = app.model.ui.statusline.clone().filter(|c| !c.trim().is_empty());
    let (Some(command), Some(runner)) = (command, app.outside.status.runner.clone()) else {
        app.model.environment.status_line.clear();
        return;
    };
    if app.outside.status.running {
        app.outside.status.again = true;
        return;
    }
    app.outside.status.running = true;
    let state = state(&app.model);
    let job = Box::new(move || Box::new(runner(&command, &state)) as Box<dyn std::any::Any + Send>);
    app.effects(Owner::Shell, vec![Effect::Task(Task::Job(job, Token(0)))]);
}

/// The command is done.
pub(crate) fn done(app: &mut App, result: Result<String, String>) {
    app.outside.status.running = false;
    match result {
        Ok(text) => {
            let first = clean::lines(&text).map(str::trim).find(|l| !l.is_empty()).unwrap_or("");
            let ascii = app.model.ui.ascii;
            app.model.environment.status_line = shorten_end(&clean::plain(first), LONGEST, ascii);
            app.outside.status.wrong = None;
        }
        Err(why) => {
            app.model.environment.status_line.clear();
            let why = format!("Status line: {}", clean::plain(&why));
            if app.outside.status.wrong.as_ref() != Some(&why) {
                app.notice(
                    tiller_protocol::Notice::new(tiller_protocol::NoticeKind::Config, why.clone())
                        .hint("See ui.statusline in config.toml"),
                );
                app.outside.status.wrong = Some(why);
            }
        }
    }
    if std::mem::take(&mut app.outside.status.again) {
        refresh(app);
    }
}

/// Returns what the command gets: one JSON object. Fields are only ever added.
fn state(m: &Model) -> String {
    let s = &m.agent.session;
    let summary = s.summary.as_ref();
    json!({
        "session": summary.map(|x| x.id.to_string()),
        "title": summary.map(|x| x.title.as_str()),
        "project": summary.map(|x| x.project.as_str()),
        "model": s.model.0,
        "profile": s.profile.name(),
        "effort": s.effort.used.word(),
        "running": m.agent.turn.running,
        "branch": s.git.as_ref().map(|g| g.branch.as_str()),
        "changed": s.git.as_ref().map(|g| g.changed),
        "context": s.context,
        "window": s.window,
        "input": s.usage.context(),
        "output": s.usage.output,
        "cost_usd": s.cost.map(|c| c.usd()),
        "todo_done": m.agent.todo.iter().filter(|t| t.status == tiller_protocol::TodoStatus::Completed).count(),
        "todo": m.agent.todo.len(),
        "columns": m.window.screen.0,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tiller_config::schema::Ui;
    use tiller_protocol::event::TurnStatus;
    use tiller_protocol::{ModelRef, Usage};

    use super::*;
    use crate::app::effect::Task;
    use crate::app::msg::Msg;
    use crate::testing::Robot;

    type Calls = Arc<Mutex<Vec<(String, String)>>>;

    fn robot(answer: Result<&'static str, &'static str>) -> (Robot, Calls) {
        let ui = Ui { statusline: Some("my-status --short".into()), ..Ui::default() };
        let mut r = Robot::with(118, 25, ui);
        let calls = Calls::default();
        let log = Arc::clone(&calls);
        r.app.outside.status.runner = Some(Arc::new(move |command: &str, state: &str| {
            log.lock().unwrap().push((command.into(), state.into()));
            answer.map(Into::into).map_err(Into::into)
        }));
        (r, calls)
    }

    /// Does the jobs that wait, as the loop does on other threads; how many there were.
    fn jobs(r: &mut Robot) -> usize {
        let (mut done, mut rest) = (Vec::new(), Vec::new());
        for task in r.tasks.drain(..) {
            match task {
                Task::Job(job, token) => done.push((token, job())),
                task => rest.push(task),
            }
        }
        r.tasks = rest;
        let n = done.len();
        for (token, result) in done {
            r.msg(Msg::Job(token, result));
        }
        n
    }

    fn model(r: &mut Robot, name: &str) {
        r.event(EventBody::State(StateEvent::ModelChanged { model: ModelRef(name.into()), window: None }));
    }

    #[test]
    fn its_first_line_stands_in_the_header_cleaned() {
        let (mut r, calls) = robot(Ok("\n  up 3\u{1b}]0;x\u{7} \u{202e}days \nsecond line\n"));
        model(&mut r, "vendor/model-x");
        assert_eq!(jobs(&mut r), 1);
        let first = r.screen().lines().next().unwrap().to_owned();
        assert!(first.contains("up 3") && first.contains("days"), "{first}");
        assert!(!first.contains("second") && !first.chars().any(|c| c.is_control() || c == '\u{202e}'));
        let (command, state) = calls.lock().unwrap()[0].clone();
        assert_eq!(command, "my-status --short");
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        assert_eq!((&state["model"], &state["running"]), (&json!("vendor/model-x"), &json!(false)));
    }

    #[test]
    fn one_runs_at_a_time_and_none_at_rest() {
        let (mut r, calls) = robot(Ok("x"));
        for i in 0..50 {
            model(&mut r, &format!("vendor/{i}"));
        }
        assert_eq!(jobs(&mut r), 1, "while one runs no other begins");
        assert_eq!(jobs(&mut r), 1, "but once more for what changed meanwhile");
        assert_eq!(jobs(&mut r), 0);
        assert!(calls.lock().unwrap()[1].1.contains("vendor/49"));
        r.event(EventBody::Turn(TurnEvent::TextDelta { text: "words".into() }));
        r.wait(std::time::Duration::from_secs(3600));
        assert_eq!(jobs(&mut r), 0, "neither words nor time start it");
        assert_eq!(r.app.sleep(), None, "nothing wakes the loop");
        r.event(EventBody::Turn(TurnEvent::TurnFinished {
            status: TurnStatus::Done,
            text: String::new(),
            usage: Usage::default(),
            cost_usd: None,
            error: None,
        }));
        assert_eq!(jobs(&mut r), 1);
    }

    #[test]
    fn a_complaint_is_told_once_and_without_a_command_nothing_runs() {
        let (mut r, _) = robot(Err("it took longer than 300 ms"));
        model(&mut r, "a/b");
        jobs(&mut r);
        model(&mut r, "a/c");
        jobs(&mut r);
        assert_eq!(r.app.model.notices.len(), 1);
        assert!(r.app.model.notices[0].1.message.contains("longer than 300 ms"));
        let mut r = Robot::new(80, 24);
        model(&mut r, "a/b");
        assert_eq!(jobs(&mut r), 0);
    }
}
