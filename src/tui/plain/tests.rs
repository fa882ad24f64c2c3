use std::sync::Mutex;

use tiller_protocol::ask::PermissionAsk;
use tiller_protocol::command::{AskCommand, TurnCommand};
use tiller_protocol::event::{AskEvent, TurnEvent, TurnStatus};
use tiller_protocol::{
    AgentId, AgentView, Ask, AskBody, AskId, Decision, Event, EventBody, ManualClock, Message,
    PermissionOutcome, QueueId, Queued, Risk, SendMode, SeqIds, SessionId, Usage,
};

use super::*;
use crate::testing::START;

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, b: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(b);
        Ok(b.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Reader {
    plain: Plain,
    paper: Paper,
    clock: Arc<ManualClock>,
}

impl Reader {
    fn new() -> Self {
        let (paper, clock) = (Paper::default(), Arc::new(ManualClock::new(START)));
        let mut plain = Plain::new(Box::new(paper.clone()), clock.clone());
        plain.waiting();
        Self { plain, paper, clock }
    }

    fn event(&mut self, body: EventBody) {
        let session = SessionId::fresh(&SeqIds::default(), START);
        let asks = matches!(body, EventBody::Ask(_));
        let event = Event { seq: 1, time: START, session, agent: AgentId::main(), cause: None, body };
        self.plain.take(Msg::Engine(Box::new(event)));
        if asks {
            // The question is read before it is answered.
            self.clock.advance(Duration::from_millis(self.plain.model.ui.approval_deaf));
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.paper.0.lock().unwrap().clone()).unwrap()
    }
}

fn permission(n: u128) -> Ask {
    let p = PermissionAsk {
        tool: "terminal".into(),
        verb: "run".into(),
        shown: "git push origin docs".into(),
        hash: format!("h{n}"),
        diff: None,
        folder: "~/api".into(),
        why: "publish".into(),
        rule: "no permission rule matches".into(),
        effects: vec!["writes to a remote".into()],
        risk: Risk::High,
        always: None,
        editable: true,
        outside: tiller_protocol::ask::OutsideAnswer::No,
        calls: Vec::new(),
        draft: None,
        source: None,
    };
    let id = AskId(format!("{n:032x}").parse().unwrap());
    Ask { id, agent: AgentId::main(), call: Default::default(), body: AskBody::Permission(p) }
}

#[test]
fn a_turn_is_read_once_in_labelled_lines() {
    let mut r = Reader::new();
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    for text in ["I will ", "look.\nThen", " fix it\x1b[2J"] {
        r.event(EventBody::Turn(TurnEvent::TextDelta { text: text.into() }));
    }
    let end = TurnEvent::TurnFinished {
        status: TurnStatus::Done,
        text: String::new(),
        usage: Usage::default(),
        cost_usd: Some(0.5),
        error: None,
    };
    r.event(EventBody::Turn(end));
    assert_eq!(r.text(), "Assistant: I will look.\nThen fix it\\x1b[2J\nDone. Cost so far $0.50.\n");
}

#[test]
fn a_question_is_numbered_and_only_a_number_answers_it() {
    let mut r = Reader::new();
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask: permission(1) }));
    assert!(r.text().contains("1: no\n2: yes, once\n"), "{}", r.text());
    for line in ["y", "yes", "0", "3", "go ahead"] {
        r.plain.line(line);
        assert!(r.plain.waiting().is_empty(), "{line} is no answer");
    }
    r.plain.line("2");
    assert!(r.plain.waiting().is_empty(), "what is risky needs the word");
    r.plain.line("y");
    assert!(r.plain.waiting().is_empty());
    r.plain.line("yes");
    assert!(r.plain.waiting().is_empty(), "the number has to be typed again");
    r.plain.line("2");
    r.plain.line("yes");
    let reply = AskReply::Permission { decision: Decision::Once, hash: "h1".into() };
    assert_eq!(r.plain.waiting(), [CommandBody::Ask(AskCommand::Answer { id: permission(1).id, reply })]);
}

#[test]
fn a_number_that_was_typed_ahead_allows_nothing() {
    let mut r = Reader::new();
    let mut low = permission(1);
    if let AskBody::Permission(p) = &mut low.body {
        p.risk = Risk::Low;
    }
    let session = SessionId::fresh(&SeqIds::default(), START);
    let body = EventBody::Ask(AskEvent::PermissionAsked { ask: low });
    let event = Event { seq: 1, time: START, session, agent: AgentId::main(), cause: None, body };
    r.plain.take(Msg::Engine(Box::new(event)));
    assert!(r.plain.model.ui.approval_deaf > 0);
    r.plain.line("2");
    assert!(r.plain.waiting().is_empty(), "{}", r.text());
    assert!(r.text().contains("type it again"), "{}", r.text());
    r.clock.advance(Duration::from_millis(r.plain.model.ui.approval_deaf - 1));
    r.plain.line("2");
    assert!(r.plain.waiting().is_empty(), "{}", r.text());
    r.clock.advance(Duration::from_millis(1));
    r.plain.line("2");
    assert_eq!(r.plain.waiting().len(), 1);
    // What allows nothing is taken at once.
    let body = EventBody::Ask(AskEvent::PermissionAsked { ask: permission(2) });
    let event = Event { seq: 2, time: START, session, agent: AgentId::main(), cause: None, body };
    r.plain.question.id = None;
    r.plain.take(Msg::Engine(Box::new(event)));
    r.plain.line("1");
    assert_eq!(r.plain.waiting().len(), 1);
}

#[test]
fn a_second_question_waits_until_the_first_is_answered() {
    let mut r = Reader::new();
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask: permission(1) }));
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask: permission(2) }));
    r.plain.line("1");
    assert!(
        matches!(&r.plain.waiting()[..], [CommandBody::Ask(AskCommand::Answer { id, .. })] if *id == permission(1).id)
    );
    r.event(EventBody::Ask(AskEvent::PermissionDecided {
        id: Some(permission(1).id),
        tool: "terminal".into(),
        what: "git push".into(),
        decision: PermissionOutcome::Refused,
        by: "you".into(),
        allow: None,
        change: false,
    }));
    r.plain.line("1");
    assert!(
        matches!(&r.plain.waiting()[..], [CommandBody::Ask(AskCommand::Answer { id, .. })] if *id == permission(2).id)
    );
}

#[test]
fn progress_is_said_at_most_every_fifteen_seconds() {
    let mut r = Reader::new();
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    for _ in 0..60 {
        r.clock.advance(Duration::from_secs(1));
        r.plain.report_progress();
    }
    assert_eq!(r.text().matches("still running").count(), 4);
    assert!(r.text().contains("still running, 30 s"));
}

#[test]
fn commands_and_messages() {
    let mut r = Reader::new();
    r.plain.line("hello");
    r.plain.line("!ls");
    r.plain.line("/stop");
    let turn = CommandBody::Turn;
    assert_eq!(
        r.plain.waiting(),
        [
            turn(TurnCommand::Submit { message: Message::text("hello"), mode: SendMode::Steer }),
            turn(TurnCommand::Shell { line: "ls".into(), share: true }),
            turn(TurnCommand::Interrupt { hard: false }),
        ]
    );
    r.plain.line("/help");
    assert!(r.text().contains("/review:"));
    r.plain.line("/mode everything");
    assert!(r.text().contains("Unknown mode 'everything'"));
}

#[test]
fn a_no_may_say_why() {
    let mut r = Reader::new();
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask: permission(1) }));
    r.plain.line("2 but only once");
    assert!(r.plain.waiting().is_empty(), "a yes with words is no answer");
    r.plain.line("1 push it yourself");
    let decision = Decision::Deny { comment: Some("push it yourself".into()) };
    let reply = AskReply::Permission { decision, hash: "h1".into() };
    assert_eq!(r.plain.waiting(), [CommandBody::Ask(AskCommand::Answer { id: permission(1).id, reply })]);
}

#[test]
fn a_risky_yes_is_for_the_question_that_was_read_out() {
    let mut r = Reader::new();
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask: permission(1) }));
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask: permission(2) }));
    r.plain.line("2");
    r.event(EventBody::Ask(AskEvent::PermissionDecided {
        id: Some(permission(1).id),
        tool: "terminal".into(),
        what: "git push".into(),
        decision: PermissionOutcome::Refused,
        by: "timeout".into(),
        allow: None,
        change: false,
    }));
    r.plain.line("yes");
    assert!(r.plain.waiting().is_empty(), "the word was for another question");
}

#[test]
fn tables_are_read_out_as_sentences() {
    let mut r = Reader::new();
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    for text in
        ["Sizes:\n\n| file | li", "nes |\n|---|---|\n| a.rs | 12 |\n", "| b.rs | 7 |\n\nThat is all.\n"]
    {
        r.event(EventBody::Turn(TurnEvent::TextDelta { text: text.into() }));
    }
    let text = r.text();
    assert!(!text.contains('|'), "{text}");
    assert!(
        text.contains("file: a.rs") && text.contains("lines: 7") && text.contains("That is all."),
        "{text}"
    );
}

#[test]
fn the_queue_can_be_edited() {
    use tiller_protocol::command::QueueCommand;
    use tiller_protocol::event::StateEvent;
    use tiller_protocol::{Queued, QueuedState};
    let mut r = Reader::new();
    let queue: Vec<Queued> = [1, 2]
        .map(|n: u128| Queued {
            state: QueuedState::Accepted,
            ..Queued::new(
                format!("{n:032x}").parse().unwrap(),
                Message::text(format!("message {n}")),
                SendMode::Queue,
            )
        })
        .to_vec();
    r.event(EventBody::State(StateEvent::QueueChanged { queue: queue.clone() }));
    for line in [
        "/waiting edit 2 other words",
        "/waiting first 2",
        "/waiting drop 1",
        "/waiting edit 2",
        "/waiting drop 3",
    ] {
        r.plain.line(line);
    }
    assert_eq!(
        r.plain.waiting(),
        [
            QueueCommand::Edit { id: queue[1].id, message: Message::text("other words") },
            QueueCommand::Move { id: queue[1].id, to: 0 },
            QueueCommand::Remove { id: queue[0].id },
        ]
        .map(CommandBody::Queue)
    );
}

#[test]
fn an_approval_that_nobody_answers_is_a_no_where_a_time_is_set() {
    let mut r = Reader::new();
    *r.plain.model.ui = Arc::new(tiller_config::schema::Ui { approval_timeout: 60, ..Default::default() });
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask: permission(1) }));
    r.clock.advance(Duration::from_secs(59));
    r.plain.too_late();
    assert!(r.plain.waiting().is_empty());
    r.clock.advance(Duration::from_secs(1));
    r.plain.too_late();
    r.plain.too_late();
    let sent = r.plain.waiting();
    let [CommandBody::Ask(AskCommand::Answer { reply: AskReply::Permission { decision, .. }, .. })] =
        &sent[..]
    else {
        panic!("{sent:?}")
    };
    assert!(matches!(decision, Decision::Deny { comment: Some(why) } if why.contains("within 60 s")));
    assert!(r.text().contains("no answer within 60 s"), "{}", r.text());
}

#[test]
fn a_script_ends_though_a_message_that_was_stopped_waits() {
    let mut r = Reader::script();
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    let queued = Queued::new(QueueId(Default::default()), Message::text("/look"), SendMode::Queue);
    r.event(EventBody::State(StateEvent::QueueChanged { queue: vec![queued] }));
    r.plain.take(Msg::Line(None));
    assert!(r.plain.waiting().is_empty(), "a turn runs");
    r.finished(TurnStatus::Interrupted);
    assert_eq!(r.plain.waiting(), [quit()]);
    assert!(r.text().contains("1 message was not sent. It stays in the queue"), "{}", r.text());
}

/// The engine sends the next message after a turn that was done, unless that message cannot be sent.
#[test]
fn a_script_waits_for_its_queue_until_a_message_of_it_fails() {
    let mut r = Reader::script();
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    let queued = Queued::new(QueueId(Default::default()), Message::text("see @gone.txt"), SendMode::Queue);
    r.event(EventBody::State(StateEvent::QueueChanged { queue: vec![queued] }));
    r.plain.take(Msg::Line(None));
    r.finished(TurnStatus::Done);
    assert!(r.plain.waiting().is_empty(), "it is being prepared");
    r.finished(TurnStatus::Failed);
    assert_eq!(r.plain.waiting(), [quit()]);
}

#[test]
fn a_script_waits_for_what_it_continues() {
    let mut r = Reader::script();
    r.plain.line("/go");
    assert_eq!(r.plain.waiting(), [CommandBody::Turn(TurnCommand::Continue)]);
    let cause = CommandId(r.plain.requests.last);
    r.plain.take(Msg::Line(None));
    assert!(r.plain.waiting().is_empty(), "the turn has not begun yet");
    r.caused(cause, EventBody::Turn(TurnEvent::TurnStarted {}));
    assert!(r.plain.waiting().is_empty(), "the turn runs");
    r.finished(TurnStatus::Done);
    assert_eq!(r.plain.waiting(), [quit()]);
    // It is refused: nothing is to come.
    let mut r = Reader::script();
    r.plain.line("/go");
    r.plain.waiting();
    let cause = CommandId(r.plain.requests.last);
    r.plain.take(Msg::Line(None));
    let notice =
        tiller_protocol::Notice::new(tiller_protocol::NoticeKind::User, "there is nothing to continue");
    r.caused(cause, EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })));
    assert_eq!(r.plain.waiting(), [quit()]);
}

#[test]
fn a_script_waits_for_agents_and_not_for_paused_ones() {
    let mut r = Reader::script();
    let agent = |state| {
        let view = AgentView { id: AgentId("main/a1".into()), state, ..AgentView::default() };
        EventBody::State(StateEvent::AgentChanged { view })
    };
    r.event(agent(AgentState::Running));
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    r.plain.take(Msg::Line(None));
    r.finished(TurnStatus::Done);
    assert!(r.plain.waiting().is_empty(), "an agent works");
    assert!(r.text().contains("Agents work in the background."), "{}", r.text());
    r.event(agent(AgentState::Waiting));
    assert!(r.plain.waiting().is_empty(), "its question gets an answer");
    r.event(agent(AgentState::Paused));
    assert_eq!(r.plain.waiting(), [quit()]);
}

fn quit() -> CommandBody {
    CommandBody::Session(tiller_protocol::command::SessionCommand::Quit)
}

impl Reader {
    /// The lines come from a file, and the engine has said what there is.
    fn script() -> Self {
        let mut r = Self::new();
        r.plain.model.engine.ready = true;
        r.plain.input.script = true;
        r.plain.requests.unanswered.clear();
        r
    }

    fn caused(&mut self, cause: CommandId, body: EventBody) {
        let session = SessionId::fresh(&SeqIds::default(), START);
        let event = Event { seq: 1, time: START, session, agent: AgentId::main(), cause: Some(cause), body };
        self.plain.take(Msg::Engine(Box::new(event)));
    }

    fn finished(&mut self, status: TurnStatus) {
        self.event(EventBody::Turn(TurnEvent::TurnFinished {
            status,
            text: String::new(),
            usage: Usage::default(),
            cost_usd: None,
            error: None,
        }));
    }

    fn reply(&mut self, id: u64, reply: ReplyEvent) {
        let session = SessionId::fresh(&SeqIds::default(), START);
        let cause = Some(CommandId(id));
        let body = EventBody::Reply(Box::new(reply));
        let event = Event { seq: 1, time: START, session, agent: AgentId::main(), cause, body };
        self.plain.take(Msg::Engine(Box::new(event)));
    }

    /// The engine has answered: there is no model.
    fn no_model(&mut self) {
        self.plain.model.engine.ready = true;
        self.plain.setup.offer = true;
        self.plain.offer_setup();
    }

    fn model(&mut self, name: &str) {
        let model = tiller_protocol::ModelRef(name.into());
        self.event(EventBody::State(StateEvent::ModelChanged { model, window: None }));
    }
}

fn set_model(name: &str) -> CommandBody {
    let model = tiller_protocol::ModelRef(name.into());
    CommandBody::Session(tiller_protocol::command::SessionCommand::SetModel { model })
}

fn submitted(text: &str) -> CommandBody {
    CommandBody::Turn(TurnCommand::Submit { message: Message::text(text), mode: SendMode::Steer })
}

#[test]
fn a_model_is_set_up_by_number_and_what_was_written_waits_for_it() {
    let mut r = Reader::new();
    r.no_model();
    assert!(r.text().contains("1: type or paste a key") && r.text().contains("3: use the built-in demo"));
    r.plain.line("what is here?");
    r.plain.line("sk-ant-0123456789abcdef");
    assert!(r.text().contains("Not accepted: this looks like a key."));
    r.plain.line("and there?");
    assert!(r.text().contains("Saved. Your message is sent as soon as a model is set up."));
    r.plain.line("3");
    assert_eq!(r.plain.waiting(), [set_model("demo/demo")]);
    r.model("demo/demo");
    assert_eq!(r.plain.waiting(), [submitted("what is here?\nand there?")]);
    // It was a choice: nothing is offered again, and later messages go out at once.
    r.plain.line("3");
    assert_eq!(r.plain.waiting(), [submitted("3")]);
}

#[test]
fn the_way_out_of_the_set_up_is_named() {
    let mut r = Reader::new();
    r.no_model();
    for line in ["2", "/later"] {
        r.plain.line(line);
    }
    assert!(r.text().contains("base URL") && r.text().contains("/setup opens it again"));
    assert!(r.plain.waiting().is_empty());
    // Without a model a message opens it again.
    r.plain.line("hello");
    assert!(r.plain.setup.step.is_some() && r.plain.waiting().is_empty());
}

#[test]
fn several_models_of_a_server_are_chosen_by_number() {
    let mut r = Reader::new();
    r.no_model();
    let models = ["s/a", "s/b"].map(|m| tiller_protocol::ModelRef(m.into())).to_vec();
    let done: Result<crate::app::effect::Connected, String> =
        Ok(crate::app::effect::Connected { said: "s is ready".into(), models });
    r.plain.take(Msg::Job(crate::app::effect::Token(0), Box::new(done)));
    assert!(r.text().contains("1: s/a\n2: s/b"), "{}", r.text());
    r.plain.line("2");
    assert_eq!(r.plain.waiting(), [set_model("s/b")]);
    let refused: Result<crate::app::effect::Connected, String> = Err("the server does not answer".into());
    r.plain.take(Msg::Job(crate::app::effect::Token(0), Box::new(refused)));
    assert!(r.text().contains("Not done: the server does not answer"));
}

#[test]
fn ctrl_c_stops_then_kills_and_on_idle_quits_at_the_second() {
    let interrupt = |hard| CommandBody::Turn(TurnCommand::Interrupt { hard });
    let quit = CommandBody::Session(tiller_protocol::command::SessionCommand::Quit);
    let mut r = Reader::new();
    r.plain.model.engine.ready = true;
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    for hard in [false, true] {
        r.plain.take(Msg::Signal(crate::app::msg::SignalMsg::Terminate(signal_hook::consts::SIGINT)));
        assert_eq!(r.plain.waiting(), [interrupt(hard)]);
    }
    r.plain.model.agent.turn.running = false;
    r.clock.advance(Duration::from_secs(3));
    r.plain.take(Msg::Signal(crate::app::msg::SignalMsg::Terminate(signal_hook::consts::SIGINT)));
    assert!(r.plain.waiting().is_empty() && r.text().contains("Press Ctrl-C again to quit"));
    r.plain.take(Msg::Signal(crate::app::msg::SignalMsg::Terminate(signal_hook::consts::SIGINT)));
    assert_eq!(r.plain.waiting(), [CommandBody::Query(Query::Processes)]);
    let id = r.plain.requests.last;
    r.reply(id, ReplyEvent::ProcessesReply { rows: Vec::new() });
    assert_eq!(r.plain.waiting(), [quit]);
    assert_eq!(r.plain.exit, None, "the engine says when all is saved");
    // A script's end by signal is what it was.
    let mut r = Reader::new();
    r.plain.input.script = true;
    r.plain.take(Msg::Signal(crate::app::msg::SignalMsg::Terminate(signal_hook::consts::SIGINT)));
    assert!(r.plain.exit.is_some());
}

#[test]
fn quitting_tells_what_runs_in_the_background_first() {
    let quit = CommandBody::Session(tiller_protocol::command::SessionCommand::Quit);
    let ask = |r: &mut Reader| {
        r.plain.line("/quit");
        assert_eq!(r.plain.waiting(), [CommandBody::Query(Query::Processes)]);
        let rows = vec!["p1: running for 3 s: npm run dev\n  ready".into(), "p2: ended, exit 0: ls".into()];
        let id = r.plain.requests.last;
        r.reply(id, ReplyEvent::ProcessesReply { rows });
        assert!(
            r.text().contains("p1 runs in the background; quitting ends it: npm run dev"),
            "{}",
            r.text()
        );
        assert!(!r.text().contains("p2"), "{}", r.text());
        assert!(r.plain.waiting().is_empty());
    };
    let mut r = Reader::new();
    r.plain.model.engine.ready = true;
    r.plain.model.agent.session.model = tiller_protocol::ModelRef("a/b".into());
    ask(&mut r);
    // Going on takes the wish back.
    r.plain.line("/agents");
    ask(&mut r);
    r.plain.line("/quit");
    assert_eq!(r.plain.waiting(), [quit]);
}

#[test]
fn of_other_agents_only_states_and_questions_are_told() {
    use tiller_protocol::{AgentState, AgentView, ChildView};
    let mut r = Reader::new();
    let of = |r: &mut Reader, body: EventBody| {
        let session = SessionId::fresh(&SeqIds::default(), START);
        let agent = AgentId("main/a1".into());
        let event = Event { seq: 1, time: START, session, agent, cause: None, body };
        r.plain.take(Msg::Engine(Box::new(event)));
    };
    let view = |state, result: &str| {
        let child = ChildView { result: result.into(), ..ChildView::default() };
        let (id, label) = (AgentId("main/a1".into()), "docs".to_owned());
        let view = AgentView { id, label, state, child: Some(Box::new(child)), ..AgentView::default() };
        EventBody::State(StateEvent::AgentChanged { view })
    };
    of(&mut r, view(AgentState::Running, ""));
    of(&mut r, view(AgentState::Running, ""));
    of(&mut r, EventBody::Turn(TurnEvent::TurnStarted {}));
    of(&mut r, EventBody::Turn(TurnEvent::TextDelta { text: "words of a child.\n".into() }));
    assert!(!r.plain.model.agent.turn.running, "the main agent rests");
    let ask = Ask { agent: AgentId("main/a1".into()), ..permission(1) };
    of(&mut r, EventBody::Ask(AskEvent::PermissionAsked { ask }));
    of(&mut r, view(AgentState::Done, "two pages"));
    let text = r.text();
    assert_eq!(text.matches("Agent a1 docs is running").count(), 1, "{text}");
    assert!(text.contains("Permission: a1 docs wants to run"), "{text}");
    assert!(
        text.contains("Agent a1 docs is done: two pages") && !text.contains("words of a child"),
        "{text}"
    );
}

#[test]
fn workflows_are_told_in_lines_and_steered_by_words() {
    use tiller_protocol::{AgentCommand, StepState, StepView, WorkflowFile, WorkflowView};
    let mut r = Reader::new();
    r.plain.waiting();
    let step = |id: &str, needs: &[&str], state, said: &str| StepView {
        id: id.into(),
        needs: needs.iter().map(|n| (*n).to_owned()).collect(),
        state,
        said: said.into(),
        ..StepView::default()
    };
    let view = WorkflowView {
        id: "w1".into(),
        name: "ship".into(),
        state: StepState::Failed,
        steps: vec![
            step("build", &[], StepState::Done, "built"),
            step("test", &["build"], StepState::Failed, "\u{1b}[31mred"),
        ],
        ..WorkflowView::default()
    };
    r.event(EventBody::State(StateEvent::WorkflowChanged { view }));
    r.plain.line("/workflow");
    let said = r.text();
    assert!(said.contains("Workflow w1 ship failed: 1 of 2 steps done."), "{said}");
    assert!(said.contains("test failed, needs build") && !said.contains('\u{1b}'), "{said}");
    assert_eq!(r.plain.waiting(), [CommandBody::Query(Query::Workflows)]);
    let id = r.plain.requests.last;
    let file = WorkflowFile { name: "ship".into(), steps: vec!["build".into()], ..WorkflowFile::default() };
    r.reply(id, ReplyEvent::WorkflowsReply { files: vec![file] });
    assert!(r.text().contains("ship: 1 steps"));
    r.plain.line("/workflow retry w1 test only the first");
    let retry = AgentCommand::WorkflowRetry {
        id: "w1".into(),
        step: "test".into(),
        note: Some("only the first".into()),
    };
    assert_eq!(r.plain.waiting(), [CommandBody::Agent(retry)]);
}

#[test]
fn a_line_of_the_persons_own_is_heard_while_it_runs() {
    use tiller_protocol::event::ToolEvent;
    use tiller_protocol::view::ShellLineView;
    let mut r = Reader::new();
    let line = ShellLineView { call_id: "l1".into(), line: "npm run dev".into(), shared: true, waits: false };
    r.event(EventBody::Tool(ToolEvent::ShellStarted { line }));
    assert!(r.text().contains("Shell: npm run dev is running"), "{}", r.text());
    for text in ["ready on po", "rt 3000\nwatching", " files"] {
        r.event(EventBody::Tool(ToolEvent::ToolProgress { call_id: "l1".into(), text: text.into() }));
    }
    assert!(r.text().contains("ready on port 3000\n") && !r.text().contains("watching"), "{}", r.text());
    r.clock.advance(Duration::from_secs(20));
    r.plain.report_progress();
    assert!(r.text().contains("still running, 20 s"), "{}", r.text());
    let ended = |call_id: &str, output: &str| ToolEvent::ShellLine {
        line: "npm run dev".into(),
        output: output.into(),
        exit: Some(1),
        shared: true,
        call_id: call_id.into(),
    };
    r.event(EventBody::Tool(ended("l1", "ready on port 3000\nwatching files")));
    assert!(r.text().ends_with("Shell: npm run dev (exit 1)\nwatching files\n"), "{}", r.text());
    assert_eq!(r.text().matches("port 3000").count(), 1, "{}", r.text());
    r.clock.advance(Duration::from_secs(20));
    r.plain.report_progress();
    assert_eq!(r.text().matches("still running").count(), 1, "it has ended");
    // One of which nothing came while it ran is read out at its end.
    r.event(EventBody::Tool(ended("l2", "all of it")));
    assert!(r.text().ends_with("all of it\n"), "{}", r.text());
}

/// The same words as the dialog of the screen.
#[test]
fn the_sandbox_is_said_line_by_line() {
    use tiller_protocol::event::{ReplyEvent, StateEvent};
    use tiller_protocol::{CapabilityState, SandboxCapability, SandboxScope, SandboxState};
    let mut r = Reader::new();
    r.plain.line("/sandbox");
    assert!(r.text().contains("The sandbox is being tested"), "{}", r.text());
    let capability =
        |name: &str, short: &str, held| SandboxCapability { name: name.into(), short: short.into(), held };
    let state = SandboxState {
        scope: SandboxScope::Auto,
        origin: "built in".into(),
        method: Some("Landlock and seccomp".into()),
        lacks: vec!["bubblewrap is not installed".into()],
        capabilities: vec![
            capability("TCP connections", "TCP", CapabilityState::Stopped),
            capability("UDP packets", "UDP", CapabilityState::Open { why: "a packet arrived".into() }),
        ],
        ..SandboxState::default()
    };
    r.event(EventBody::State(StateEvent::SandboxTested { sandbox: Box::new(state) }));
    r.plain.line("/sandbox");
    let text = r.text();
    for lines in [
        "In force:\nMethod: Landlock and seccomp\n",
        "\nMissing: bubblewrap is not installed\n",
        "\nNot stopped:\nUDP packets: a packet arrived\nStopped:\nTCP connections\n",
    ] {
        assert!(text.contains(lines), "{lines}: {text}");
    }
    r.plain.line("/search");
    r.event(EventBody::Reply(Box::new(ReplyEvent::SearchReply {
        query: tiller_protocol::SearchQuery { text: "walnut".into(), ..Default::default() },
        page: tiller_protocol::SearchPage::default(),
    })));
    let text = r.text();
    assert!(text.contains("Write the text after it.") && text.contains("Found walnut: 0"), "{text}");
    for (instead, suggestion, said) in [
        (Some("parser "), None, "Nothing for parsr. Found parser: 0\n"),
        (None, Some("parser "), "Found parsr: 0. Did you mean parser?\n"),
    ] {
        let (instead, suggestion) = (instead.map(str::to_owned), suggestion.map(str::to_owned));
        r.event(EventBody::Reply(Box::new(ReplyEvent::SearchReply {
            query: tiller_protocol::SearchQuery { text: "parsr".into(), ..Default::default() },
            page: tiller_protocol::SearchPage { instead, suggestion, ..Default::default() },
        })));
        let text = r.text();
        assert!(text.contains(said), "{text}");
    }
}
