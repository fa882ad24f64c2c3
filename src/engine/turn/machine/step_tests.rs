//! The rules of a turn, as tables: no network, no clock, no files.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{Block, Notice, NoticeKind, Part, StopReason, ToolOutcome, Touch, Usage};
use tiller_provider::{Chunk, ProviderError};

use super::*;

pub(super) fn tools() -> ToolTable {
    ToolTable(BTreeMap::from([
        ("read_file".into(), Touch::Read),
        ("write_file".into(), Touch::Write),
        ("terminal".into(), Touch::Execute),
        ("todo_write".into(), Touch::Plan),
    ]))
}

fn limits() -> TurnLimits {
    TurnLimits { attempts: 3, parallel: 2, calls_per_reply: 4, requests: 3, ..TurnLimits::default() }
}

fn turn() -> Turn {
    Turn::new(limits(), tools(), "fake", HashSet::new())
}

/// A turn whose first request has just gone out.
fn streaming() -> Turn {
    streaming_of(turn())
}

fn streaming_of(mut t: Turn) -> Turn {
    assert!(matches!(t.step(Input::Start)[..], [Effect::Prepare { may_compact: true }]));
    assert!(matches!(t.step(Input::Prepared(Prepared::Go))[..], [Effect::Request { n: 1 }]));
    t
}

fn chunk(t: &mut Turn, chunk: Chunk) -> Vec<Effect> {
    t.step(Input::Chunk { n: t.counts.streams, chunk })
}

fn text(t: &mut Turn, s: &str) -> Vec<Effect> {
    chunk(t, Chunk::Text { index: 0, text: s.into() })
}

fn call(t: &mut Turn, index: usize, id: &str, name: &str, json: &str) {
    chunk(t, Chunk::ToolBegin { index, id: id.into(), name: name.into(), vendor: None });
    chunk(t, Chunk::ToolArgs { index, json: json.into() });
    chunk(t, Chunk::BlockEnd { index });
}

fn stop(t: &mut Turn, reason: StopReason) -> Vec<Effect> {
    chunk(t, Chunk::Stop(reason))
}

fn done(t: &mut Turn, id: &str) -> Vec<Effect> {
    t.step(Input::ToolDone {
        call_id: id.into(),
        result: CallResult::text(ToolOutcome::Ok, format!("result {id}")),
    })
}

/// Each effect in a word or two.
fn words(effects: &[Effect]) -> Vec<String> {
    let word = |e: &Effect| match e {
        Effect::Prepare { .. } => "prepare".into(),
        Effect::Request { n } => format!("request {n}"),
        Effect::CancelStream => "cancel-stream".into(),
        Effect::Delta(Delta::Text(s)) => format!("text {s}"),
        Effect::Delta(Delta::Thinking(s)) => format!("thinking {s}"),
        Effect::Delta(Delta::CallStarted(s)) => format!("begun {s}"),
        Effect::AppendReply { blocks, stop, .. } => format!("reply {} {stop:?}", blocks.len()),
        Effect::Spent { .. } => "spent".into(),
        Effect::AskRepeats { rounds, .. } => format!("ask {rounds}"),
        Effect::CheckAnswer { again, .. } => format!("check {again}"),
        Effect::RunTool { call } => format!("run {}", call.id),
        Effect::CancelTool { call_id, hard } => format!("cancel {call_id} {hard}"),
        Effect::AppendResult { call_id, result, .. } => format!("result {call_id} {:?}", result.outcome),
        Effect::Backoff { attempt, of, discard, .. } => format!("backoff {attempt}/{of} {discard}"),
        Effect::EndBackoff => "end-backoff".into(),
        Effect::Compact { overflow, round } => format!("compact {overflow} {round}"),
        Effect::CancelCompact => "cancel-compact".into(),
        Effect::DeliverSteer => "deliver".into(),
        Effect::DeliverMessage => "deliver-message".into(),
        Effect::Tell { .. } => "tell".into(),
        Effect::Finish { status, .. } => format!("finish {status:?}"),
    };
    effects.iter().map(word).collect()
}

fn result_text(effects: &[Effect], id: &str) -> String {
    effects
        .iter()
        .find_map(|e| match e {
            Effect::AppendResult { call_id, result, .. } if call_id == id => match &result.content[..] {
                [Part::Text { text }] => Some(text.clone()),
                _ => None,
            },
            _ => None,
        })
        .unwrap_or_default()
}

#[test]
fn a_plain_reply_ends_the_turn() {
    let mut t = streaming();
    assert_eq!(words(&text(&mut t, "Hel")), ["text Hel"]);
    text(&mut t, "lo");
    assert_eq!(
        words(&stop(&mut t, StopReason::EndTurn)),
        ["cancel-stream", "reply 1 EndTurn", "finish Done"]
    );
    assert!(t.finished());
    assert!(t.step(Input::Interrupt { hard: true }).is_empty(), "nothing comes after the end");
}

#[test]
fn looking_calls_run_side_by_side_and_results_come_in_call_order() {
    let mut t = streaming();
    for (i, id) in ["a", "b", "c"].iter().enumerate() {
        call(&mut t, i, id, "read_file", "{}");
    }
    call(&mut t, 3, "w", "write_file", "{}");
    let e = stop(&mut t, StopReason::ToolUse);
    assert_eq!(words(&e), ["cancel-stream", "reply 4 ToolUse", "run a", "run b"], "two at once at most");
    assert_eq!(words(&done(&mut t, "b")), ["run c"], "b waits for a");
    assert!(words(&done(&mut t, "c")).is_empty(), "the write waits for all before it");
    assert_eq!(words(&done(&mut t, "a")), ["result a Ok", "result b Ok", "result c Ok", "run w"]);
    assert_eq!(words(&done(&mut t, "w")), ["result w Ok", "prepare"]);
}

#[test]
fn a_look_after_a_write_waits_for_it() {
    let mut t = streaming();
    call(&mut t, 0, "w", "write_file", "{}");
    call(&mut t, 1, "r", "read_file", "{}");
    let e = stop(&mut t, StopReason::ToolUse);
    assert_eq!(words(&e)[2..], ["run w"]);
    assert_eq!(words(&done(&mut t, "w")), ["result w Ok", "run r"]);
}

#[test]
fn calls_that_keep_the_plan_are_in_order_among_themselves() {
    let mut t = streaming();
    call(&mut t, 0, "p", "todo_write", "{}");
    call(&mut t, 1, "q", "todo_write", "{}");
    call(&mut t, 2, "r", "read_file", "{}");
    assert_eq!(words(&stop(&mut t, StopReason::ToolUse))[2..], ["run p", "run r"]);
    assert_eq!(words(&done(&mut t, "p")), ["result p Ok", "run q"]);
}

#[test]
fn p8_every_bad_call_gets_exactly_one_result() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let rows: [(&str, &str, &str); 6] = [
        ("read_file", "{\"path\":", "could not be read"),
        ("read_file", "[1]", "not a JSON object"),
        ("read_file", "null", "not a JSON object"),
        ("read_file", &deep, "could not be read"),
        ("read_fil", "{}", "Did you mean 'read_file'?"),
        ("frobnicate", "{}", "Available: read_file, "),
    ];
    for (name, json, expected) in rows {
        let mut t = streaming();
        call(&mut t, 0, "x", name, json);
        let e = stop(&mut t, StopReason::ToolUse);
        assert_eq!(words(&e)[1..], ["reply 1 ToolUse", "result x Error", "prepare"], "{name}");
        let got = result_text(&e, "x");
        assert!(got.contains(expected), "{name}: {got}");
        assert!(got.len() < 2000);
    }
}

#[test]
fn p13_a_near_miss_runs_the_tool_and_keeps_what_the_model_wrote() {
    let mut t = streaming();
    call(&mut t, 0, "x", "functions.read_file", "{}");
    let e = stop(&mut t, StopReason::ToolUse);
    let Some(Effect::AppendReply { blocks, .. }) = e.iter().find(|e| matches!(e, Effect::AppendReply { .. }))
    else {
        panic!("{e:?}")
    };
    assert!(matches!(&blocks[0], Block::ToolCall(c) if c.name == "functions.read_file"), "{blocks:?}");
    let Some(Effect::RunTool { call }) = e.last() else { panic!("{e:?}") };
    assert_eq!(call.name, "read_file");
}

/// No vendor takes a signed thought back without what it led to.
#[test]
fn p13_a_thought_whose_call_was_dropped_goes_back_no_more() {
    let thought = |t: &mut Turn, index| {
        chunk(t, Chunk::Thinking { index, text: "hm".into() });
        chunk(t, Chunk::Signature { index, signature: "sig".into() });
        chunk(t, Chunk::BlockEnd { index });
    };
    let signed = |e: &[Effect]| -> Vec<bool> {
        let blocks = e
            .iter()
            .find_map(|e| if let Effect::AppendReply { blocks, .. } = e { Some(blocks) } else { None });
        let thoughts = blocks.into_iter().flatten().filter_map(|b| match b {
            Block::Thinking { signature, .. } => Some(signature.is_some()),
            _ => None,
        });
        thoughts.collect()
    };
    // A refusal drops whole calls; the output limit drops a call that was cut; an interrupt, a call that could not be read.
    let mut t = streaming();
    thought(&mut t, 0);
    call(&mut t, 1, "c", "terminal", "{}");
    thought(&mut t, 2);
    chunk(&mut t, Chunk::Text { index: 3, text: "No.".into() });
    assert_eq!(signed(&stop(&mut t, StopReason::Refusal(String::new()))), [false, true]);
    let mut t = streaming();
    thought(&mut t, 0);
    call(&mut t, 1, "c", "terminal", "{\"command\": \"l");
    assert_eq!(signed(&stop(&mut t, StopReason::MaxTokens)), [false]);
    let mut t = streaming();
    thought(&mut t, 0);
    call(&mut t, 1, "c", "terminal", "[1]");
    assert_eq!(signed(&t.step(Input::Interrupt { hard: false })), [false]);
}

#[test]
fn p8_missing_and_double_ids_are_made_unique() {
    let mut t = Turn::new(limits(), tools(), "fake", HashSet::from(["old".to_owned()]));
    t.step(Input::Start);
    t.step(Input::Prepared(Prepared::Go));
    for (i, id) in ["", "old", "x", "x"].iter().enumerate() {
        call(&mut t, i, id, "read_file", "{}");
    }
    let e = stop(&mut t, StopReason::ToolUse);
    let Effect::AppendReply { blocks, .. } = &e[1] else { panic!("{e:?}") };
    let ids: Vec<&str> = blocks
        .iter()
        .filter_map(|b| if let Block::ToolCall(c) = b { Some(c.id.as_str()) } else { None })
        .collect();
    let unique: HashSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), 4, "{ids:?}");
    assert!(!unique.contains("old") && !unique.contains("") && unique.contains("x"));
}

#[test]
fn p8_only_so_many_calls_of_one_reply_are_taken() {
    let mut t = streaming();
    for i in 0..500 {
        call(&mut t, i, &format!("c{i}"), "read_file", "{}");
    }
    let mut all = stop(&mut t, StopReason::ToolUse);
    for i in 0..4 {
        all.extend(done(&mut t, &format!("c{i}")));
    }
    let w = words(&all);
    assert_eq!(w.iter().filter(|w| w.starts_with("result")).count(), 500);
    assert_eq!(w.iter().filter(|w| w.starts_with("run")).count(), 4);
    assert_eq!(w.last().map(String::as_str), Some("prepare"));
}

#[test]
fn p1_retries_wait_and_are_bounded() {
    let mut t = streaming();
    let busy = || ProviderError::Wait { message: "busy".into(), after: Some(Duration::from_secs(3)) };
    let fail = |t: &mut Turn| t.step(Input::StreamEnded { n: t.counts.streams, result: Err(busy()) });
    assert_eq!(words(&fail(&mut t)), ["backoff 2/3 false"]);
    assert_eq!(words(&t.step(Input::WaitOver { n: 1 })), ["end-backoff", "request 2"]);
    assert_eq!(words(&fail(&mut t)), ["backoff 3/3 false"]);
    assert_eq!(words(&t.step(Input::SkipWait)), ["end-backoff", "request 3"]);
    assert_eq!(words(&fail(&mut t)), ["finish Failed"]);
}

#[test]
fn p15_a_request_that_rests_is_booked_and_made_anew() {
    // Not taken by the server: free.
    let mut t = streaming();
    assert_eq!(words(&t.step(Input::Pause)), ["cancel-stream"]);
    assert!(t.step(Input::SkipWait).is_empty() && t.step(Input::WaitOver { n: 1 }).is_empty());
    assert_eq!(words(&t.step(Input::Resume)), ["request 2"]);
    // Taken.
    chunk(&mut t, Chunk::Ping);
    let effects = t.step(Input::Pause);
    assert!(matches!(effects[..], [Effect::CancelStream, Effect::Spent { .. }]), "{effects:?}");
    assert_eq!(words(&t.step(Input::Resume)), ["request 3"]);
    // What the first stream had still sent is nothing of the new reply.
    t.step(Input::Chunk { n: 2, chunk: Chunk::Text { index: 0, text: "old".into() } });
    assert!(t.unanswered());
    // A call has begun: it comes to its end.
    chunk(&mut t, Chunk::ToolBegin { index: 0, id: "c".into(), name: "read_file".into(), vendor: None });
    assert!(t.step(Input::Pause).is_empty() && t.streaming());
    // A paused turn can be stopped.
    let mut t = streaming();
    t.step(Input::Pause);
    assert_eq!(words(&t.step(Input::Interrupt { hard: false })), ["finish Interrupted"]);
}

/// A login page, or an error with a success status, is no reply that a server charges for.
#[test]
fn p15_an_answer_that_is_no_reply_is_not_booked() {
    let refused = || Err(ProviderError::Rejected("a web page".into()));
    let mut t = streaming();
    chunk(&mut t, Chunk::Ping);
    assert_eq!(words(&t.step(Input::StreamEnded { n: 1, result: refused() })), ["finish Failed"]);
    // What has begun is.
    let mut t = streaming();
    chunk(&mut t, Chunk::Usage(Usage { input: 9, ..Usage::default() }));
    assert_eq!(words(&t.step(Input::StreamEnded { n: 1, result: refused() })), ["spent", "finish Failed"]);
}

#[test]
fn p1_a_wait_can_be_cancelled() {
    let mut t = streaming();
    t.step(Input::StreamEnded { n: 1, result: Err(ProviderError::Network("refused".into())) });
    assert_eq!(words(&t.step(Input::Interrupt { hard: false })), ["end-backoff", "finish Interrupted"]);
}

#[test]
fn p2_what_no_retry_mends_parks_the_turn_after_one_request() {
    for e in [ProviderError::Auth("401".into()), ProviderError::Rejected("400".into())] {
        let mut t = streaming();
        let out = t.step(Input::StreamEnded { n: 1, result: Err(e) });
        assert_eq!(words(&out), ["finish Failed"]);
        let Effect::Finish { notice: Some(n), .. } = &out[0] else { panic!("{out:?}") };
        assert!(n.hints.iter().any(|h| h.contains("continue")), "{n:?}");
    }
}

#[test]
fn p3_a_cut_reply_is_dropped_when_it_is_tried_again_and_kept_when_not() {
    let mut t = streaming();
    for attempt in 1..=3u32 {
        text(&mut t, "half a rep");
        call(&mut t, 1, "c", "write_file", "{}");
        let out = t.step(Input::StreamEnded { n: attempt, result: Ok(()) });
        if attempt < 3 {
            assert_eq!(words(&out), ["spent".to_owned(), format!("backoff {}/3 true", attempt + 1)]);
            let Effect::Spent { used } = &out[0] else { panic!() };
            assert!(used.arrived >= 4 && !used.whole, "what came of it is paid: {used:?}");
            t.step(Input::WaitOver { n: attempt });
        } else {
            assert_eq!(words(&out), ["reply 1 Cut(\"the reply was cut off\")", "finish Failed"]);
            let Effect::AppendReply { blocks, .. } = &out[0] else { panic!() };
            assert_eq!(blocks[..], [Block::Text { text: "half a rep".into() }], "the call is not kept");
        }
    }
}

#[test]
fn p3_chunks_of_an_older_stream_are_ignored() {
    let mut t = streaming();
    t.step(Input::StreamEnded { n: 1, result: Ok(()) });
    t.step(Input::WaitOver { n: 1 });
    assert!(t.step(Input::Chunk { n: 1, chunk: Chunk::Text { index: 0, text: "old".into() } }).is_empty());
    assert!(t.step(Input::StreamEnded { n: 1, result: Ok(()) }).is_empty());
    assert_eq!(words(&text(&mut t, "new")), ["text new"]);
}

#[test]
fn p9_an_overflow_compacts_and_tries_again_up_to_three_times() {
    let mut t = streaming();
    let too_long = || Err(ProviderError::TooLong("200001 tokens".into()));
    for round in 1..=3 {
        let out = t.step(Input::StreamEnded { n: t.counts.streams, result: too_long() });
        assert_eq!(words(&out), [format!("compact true {round}")]);
        let out = t.step(Input::Compacted(Ok(())));
        assert!(matches!(out[..], [Effect::Prepare { may_compact: false }]));
        t.step(Input::Prepared(Prepared::Go));
    }
    assert_eq!(
        words(&t.step(Input::StreamEnded { n: t.counts.streams, result: too_long() })),
        ["finish Failed"]
    );
}

#[test]
fn p9_an_overflow_that_cannot_be_compacted_stops_with_the_reason() {
    let mut t = streaming();
    t.step(Input::StreamEnded { n: 1, result: Err(ProviderError::TooLong("x".into())) });
    let out = t.step(Input::Compacted(Err(Notice::new(NoticeKind::Network, "no summary"))));
    assert_eq!(words(&out), ["finish Failed"]);
    let [Effect::Finish { notice: Some(notice), .. }] = &out[..] else { panic!("{out:?}") };
    assert!(notice.message.starts_with("x"), "what the provider said: {}", notice.message);
    assert!(notice.message.contains("no summary") && !notice.hints.is_empty(), "{notice:?}");
}

#[test]
fn p10_ends_without_words_are_clear() {
    // Empty: asked once more, then parked.
    let mut t = streaming();
    assert_eq!(words(&stop(&mut t, StopReason::EndTurn))[1..], ["spent", "backoff 2/2 false"]);
    t.step(Input::WaitOver { n: 1 });
    assert_eq!(words(&stop(&mut t, StopReason::EndTurn))[1..], ["spent", "finish Failed"]);
    // Thinking only: the same, and the thinking is kept for the user.
    let mut t = streaming();
    for n in 1..=2 {
        chunk(&mut t, Chunk::Thinking { index: 0, text: "hm".into() });
        let out = words(&stop(&mut t, StopReason::EndTurn));
        if n == 1 {
            assert_eq!(out[1..], ["spent", "backoff 2/2 true"]);
            t.step(Input::WaitOver { n: 1 });
        } else {
            assert_eq!(out[1..], ["reply 1 EndTurn", "finish Failed"]);
        }
    }
    // Refusal: its calls are not run.
    let mut t = streaming();
    text(&mut t, "I will not.");
    call(&mut t, 1, "c", "terminal", "{}");
    let out = stop(&mut t, StopReason::Refusal("policy".into()));
    assert_eq!(words(&out)[1..], ["reply 1 Refusal(\"policy\")", "finish Failed"]);
    let Some(Effect::Finish { notice: Some(n), .. }) = out.last() else { panic!() };
    assert!(n.message.contains("policy"));
}

/// A request was made and its reply streams.
fn next_reply(t: &mut Turn) {
    assert_eq!(words(&t.step(Input::Steered)), ["prepare"]);
    assert!(words(&t.step(Input::Prepared(Prepared::Go))).iter().any(|w| w.starts_with("request")));
}

/// A reply that the output limit cut off is continued, a limited number of times; it is never the end of a turn that is done.
#[test]
fn a_reply_that_the_output_limit_cut_is_continued() {
    for cuts in 0..6 {
        let many = TurnLimits { requests: 10, ..limits() };
        let mut t = streaming_of(Turn::new(many, tools(), "fake", HashSet::new()));
        let mut done = None;
        for n in 0..cuts {
            text(&mut t, &format!("{n}, "));
            let out = stop(&mut t, StopReason::MaxTokens);
            assert_eq!(words(&out)[1], "reply 1 MaxTokens");
            if let Some(Effect::Finish { status, text, notice }) = out.last() {
                done = Some((*status, text.clone(), notice.clone().map(|n| n.message)));
                break;
            }
            assert_eq!(words(&out)[2..], ["tell"]);
            next_reply(&mut t);
        }
        let (status, said, notice) = done.unwrap_or_else(|| {
            text(&mut t, "end");
            let out = stop(&mut t, StopReason::EndTurn);
            let Some(Effect::Finish { status, text, notice }) = out.last() else { panic!("{out:?}") };
            (*status, text.clone(), notice.clone().map(|n| n.message))
        });
        let whole: String = (0..cuts.min(4)).map(|n| format!("{n}, ")).collect();
        if cuts <= 3 {
            assert_eq!((status, said, notice), (TurnStatus::Done, format!("{whole}end"), None));
        } else {
            assert_eq!((status, said), (TurnStatus::Failed, whole));
            assert!(notice.unwrap().contains("output limit"));
        }
    }
}

/// Thoughts alone that used up the output limit are no answer, and an empty reply after a cut one says that nothing is missing.
#[test]
fn thoughts_that_were_cut_and_an_end_without_text() {
    let mut t = streaming();
    chunk(&mut t, Chunk::Thinking { index: 0, text: "hm".into() });
    assert_eq!(words(&stop(&mut t, StopReason::MaxTokens))[1..], ["reply 1 MaxTokens", "tell"]);
    next_reply(&mut t);
    text(&mut t, "all of it");
    assert_eq!(words(&stop(&mut t, StopReason::MaxTokens))[1..], ["reply 1 MaxTokens", "tell"]);
    next_reply(&mut t);
    let out = stop(&mut t, StopReason::EndTurn);
    assert_eq!(words(&out)[1..], ["spent", "finish Done"]);
    assert!(matches!(out.last(), Some(Effect::Finish { text, .. }) if text == "all of it"), "{out:?}");
}

#[test]
fn p10_a_call_that_the_output_limit_cut_is_told_to_the_model() {
    let mut t = streaming();
    chunk(&mut t, Chunk::ToolBegin { index: 0, id: "c".into(), name: "write_file".into(), vendor: None });
    chunk(&mut t, Chunk::ToolArgs { index: 0, json: "{\"path\":\"a\",\"te".into() });
    let out = stop(&mut t, StopReason::MaxTokens);
    assert_eq!(words(&out)[1..], ["spent", "tell"]);
    // The text before the call is no part of the answer that follows.
    next_reply(&mut t);
    text(&mut t, "I write it.");
    chunk(&mut t, Chunk::ToolBegin { index: 1, id: "d".into(), name: "write_file".into(), vendor: None });
    let out = stop(&mut t, StopReason::MaxTokens);
    assert_eq!(words(&out)[1..], ["reply 1 MaxTokens", "tell"]);
    next_reply(&mut t);
    text(&mut t, "Done.");
    let out = stop(&mut t, StopReason::EndTurn);
    assert!(matches!(out.last(), Some(Effect::Finish { text, .. }) if text == "Done."), "{out:?}");
    // A message of the user's takes the place of the note.
    let mut t = streaming();
    text(&mut t, "long");
    t.step(Input::Steer(true));
    assert_eq!(words(&stop(&mut t, StopReason::MaxTokens))[1..], ["reply 1 MaxTokens", "deliver"]);
}

#[test]
fn an_interrupt_keeps_the_words_and_closes_every_call() {
    let mut t = streaming();
    text(&mut t, "I will");
    call(&mut t, 1, "whole", "terminal", "{}");
    chunk(&mut t, Chunk::ToolBegin { index: 2, id: "half".into(), name: "terminal".into(), vendor: None });
    let out = t.step(Input::Interrupt { hard: false });
    assert_eq!(
        words(&out),
        ["cancel-stream", "reply 2 Interrupted", "result whole Interrupted", "finish Interrupted"]
    );
    // Before the first word nothing is left behind but the cost of what was sent.
    let mut t = streaming();
    let out = words(&t.step(Input::Interrupt { hard: false }));
    assert_eq!(out, ["cancel-stream", "spent", "finish Interrupted"]);
}

#[test]
fn an_interrupt_stops_running_calls_and_does_not_start_the_others() {
    let mut t = streaming();
    call(&mut t, 0, "a", "terminal", "{}");
    call(&mut t, 1, "b", "terminal", "{}");
    stop(&mut t, StopReason::ToolUse);
    assert_eq!(words(&t.step(Input::Interrupt { hard: false })), ["cancel a false"]);
    assert_eq!(words(&t.step(Input::Interrupt { hard: true })), ["cancel a true"], "the second is harder");
    let out = t.step(Input::ToolDone { call_id: "a".into(), result: CallResult::interrupted() });
    assert_eq!(words(&out), ["result a Interrupted", "result b Interrupted", "finish Interrupted"]);
}

#[test]
fn steering_is_delivered_after_the_results_or_in_place_of_the_end() {
    let mut t = streaming();
    call(&mut t, 0, "a", "read_file", "{}");
    stop(&mut t, StopReason::ToolUse);
    t.step(Input::Steer(true));
    assert_eq!(words(&done(&mut t, "a")), ["result a Ok", "deliver"]);
    assert_eq!(words(&t.step(Input::Steered)), ["prepare"]);
    t.step(Input::Prepared(Prepared::Go));
    text(&mut t, "done");
    t.step(Input::Steer(true));
    assert_eq!(words(&stop(&mut t, StopReason::EndTurn))[1..], ["reply 1 EndTurn", "deliver"]);
    assert_eq!(words(&t.step(Input::Steered)), ["prepare"]);
}

#[test]
fn a_turn_has_a_limit_of_requests() {
    let mut t = streaming();
    for n in 1..=3 {
        call(&mut t, 0, &format!("c{n}"), "read_file", "{}");
        stop(&mut t, StopReason::ToolUse);
        assert_eq!(words(&done(&mut t, &format!("c{n}")))[1..], ["prepare"]);
        let out = t.step(Input::Prepared(Prepared::Go));
        assert_eq!(words(&out), [if n < 3 { format!("request {}", n + 1) } else { "finish Limit".into() }]);
    }
}

#[test]
fn a_denial_for_want_of_a_person_shows_in_the_status() {
    let mut t = streaming();
    call(&mut t, 0, "a", "terminal", "{}");
    stop(&mut t, StopReason::ToolUse);
    let result = CallResult { unanswered: true, ..CallResult::text(ToolOutcome::Denied, "nobody") };
    t.step(Input::ToolDone { call_id: "a".into(), result });
    t.step(Input::Prepared(Prepared::Go));
    text(&mut t, "could not");
    assert_eq!(words(&stop(&mut t, StopReason::EndTurn)).last().map(String::as_str), Some("finish Refused"));
}

#[test]
fn a_compaction_by_limit_is_tried_once_and_its_failure_does_not_stop_the_turn() {
    let mut t = turn();
    t.step(Input::Start);
    assert_eq!(words(&t.step(Input::Prepared(Prepared::Compact))), ["compact false 1"]);
    let out = t.step(Input::Compacted(Err(Notice::new(NoticeKind::Network, "x"))));
    assert!(matches!(out[..], [Effect::Prepare { may_compact: false }]));
    assert_eq!(words(&t.step(Input::Prepared(Prepared::Go))), ["request 1"]);
}

fn terminal(id: &str) -> tiller_protocol::ToolCall {
    tiller_protocol::ToolCall {
        id: id.into(),
        name: "terminal".into(),
        arguments: serde_json::json!({}),
        malformed: None,
        vendor: None,
    }
}

#[test]
fn the_commands_of_a_message_run_before_it_is_sent() {
    let begun = || {
        let mut t =
            turn().with_calls(vec![(terminal("a"), None), (terminal("b"), None)]).before_message(true);
        assert_eq!(words(&t.step(Input::Start)), ["run a"]);
        t
    };
    let mut t = begun();
    assert_eq!(words(&done(&mut t, "a")), ["result a Ok", "run b"]);
    assert_eq!(words(&done(&mut t, "b")), ["result b Ok", "deliver-message"]);
    assert_eq!(words(&t.step(Input::Steered)), ["prepare"]);
    let mut t = begun();
    assert_eq!(words(&t.step(Input::Interrupt { hard: false })), ["cancel a false"]);
    assert_eq!(words(&done(&mut t, "a")), ["result a Ok", "result b Interrupted", "finish Interrupted"]);
}

#[test]
fn a_turn_left_in_its_calls_goes_on_with_those_that_never_ran() {
    let call = terminal;
    let mut t = turn().with_calls(vec![(call("a"), Some(CallResult::interrupted())), (call("b"), None)]);
    assert_eq!(words(&t.step(Input::Start)), ["result a Interrupted", "run b"]);
    assert_eq!(words(&done(&mut t, "b")), ["result b Ok", "prepare"]);
}

#[test]
fn tokens_of_every_try_are_counted() {
    let mut t = streaming();
    let usage = Usage { input: u64::MAX, output: 5, ..Usage::default() };
    chunk(&mut t, Chunk::Usage(usage));
    let out = t.step(Input::StreamEnded { n: 1, result: Ok(()) });
    assert_eq!(words(&out), ["spent", "backoff 2/3 false"]);
    let Effect::Spent { used } = &out[0] else { panic!() };
    assert_eq!(used.usage, usage);
    t.step(Input::WaitOver { n: 1 });
    chunk(&mut t, Chunk::Usage(usage));
    text(&mut t, "x");
    let out = stop(&mut t, StopReason::EndTurn);
    let reply =
        out.iter().find_map(|e| if let Effect::AppendReply { used, .. } = e { Some(used) } else { None });
    assert!(reply.is_some_and(|used| used.usage == usage && used.whole), "{out:?}");
}

/// A request that the server refused costs nothing; it has no row.
#[test]
fn a_refused_request_is_not_booked() {
    let mut t = streaming();
    let refused = || Err(ProviderError::Wait { message: "too many requests".into(), after: None });
    assert_eq!(words(&t.step(Input::StreamEnded { n: 1, result: refused() })), ["backoff 2/3 false"]);
}

/// Where no user can skip it, the wait that a server requests is limited.
#[test]
fn a_wait_that_is_too_long_ends_the_turn_and_is_named() {
    let long = std::time::Duration::from_secs(7200);
    let mut t = streaming();
    let wait =
        || Err(ProviderError::Wait { message: "x reports too many requests.".into(), after: Some(long) });
    assert_eq!(words(&t.step(Input::StreamEnded { n: 1, result: wait() })), ["backoff 2/3 false"]);
    let mut t = streaming();
    t.limits.longest_wait = Some(std::time::Duration::from_secs(300));
    let out = t.step(Input::StreamEnded { n: 1, result: wait() });
    assert_eq!(words(&out), ["finish Failed"]);
    let Some(Effect::Finish { notice: Some(n), .. }) = out.last() else { panic!() };
    assert!(
        n.message.contains("wait 2 h") && n.message.contains("limits.longest_wait allows 5 min"),
        "{n:?}"
    );
}
