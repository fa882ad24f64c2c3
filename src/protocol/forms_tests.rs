//! Every command and every event, in the JSON form that scripts and transcripts rely on: `fixtures/*.jsonl`.
//! A line there is read and must come out again byte for byte. A new variant does not compile here until it
//! is named, and is missed until it has a line. Lines may be added; a changed one is a broken promise.

use std::collections::BTreeSet;

use crate::bus::command::*;
use crate::bus::event::*;
use crate::skill::*;
use crate::*;

const COMMANDS: &str = include_str!("fixtures/commands.jsonl");
const EVENTS: &str = include_str!("fixtures/events.jsonl");

/// The variants of an enum: a function that names the variant of a value, and the list of all names.
macro_rules! variants {
    ($name:ident, $all:ident, $of:ident: $($variant:ident)*) => {
        fn $name(value: &$of) -> &'static str {
            match value {
                $($of::$variant { .. } => concat!(stringify!($of), "::", stringify!($variant)),)*
            }
        }
        const $all: &[&str] = &[$(concat!(stringify!($of), "::", stringify!($variant))),*];
    };
}

variants!(turn_command, TURN_COMMANDS, TurnCommand: Submit Interrupt Continue SkipWait Shell Aside StopTool);
variants!(queue_command, QUEUE_COMMANDS, QueueCommand: Edit Remove Move Mode);
variants!(ask_command, ASK_COMMANDS, AskCommand: Answer);
variants!(session_command, SESSION_COMMANDS, SessionCommand: New Open Rename Archive Trash Fork CarryOver OpenBranch LabelBranch
    ArchiveBranch Tag Checkpoint
    Restore UndoRestore UndoOp Export SetModel SetProfile SetEffort
    SetBudget StoreKey SwitchHook Mcp Reload Quit);
variants!(context_command, CONTEXT_COMMANDS, ContextCommand: Compact CompactPreview Report);
variants!(goal_command, GOAL_COMMANDS, GoalCommand: Set Stop Go);
variants!(todo_command, TODO_COMMANDS, TodoCommand: Add Edit Status Move);
variants!(review_command, REVIEW_COMMANDS, ReviewCommand: Open Reject UndoReject);
variants!(compare_command, COMPARE_COMMANDS, CompareCommand: Take Run);
variants!(watch_command, WATCH_COMMANDS, WatchCommand: Pause Mute Diff);
variants!(agent_command, AGENT_COMMANDS, AgentCommand: Spawn Pause Resume ResumeAll Cancel CancelAll BackgroundAll Retry Raise
    Background Diff Workflow WorkflowResume WorkflowCancel WorkflowPause WorkflowRetry WorkflowCancelStep);
variants!(learning_command, LEARNING_COMMANDS, LearningCommand: Decide Edit Undo Promote Demote);
variants!(pane_command, PANE_COMMANDS, PaneCommand: Size Enter Type Finish);
variants!(skill_command, SKILL_COMMANDS, SkillCommand: Switch Copy Restore Style Reload Save Offer);
variants!(memory_command, MEMORY_COMMANDS, MemoryCommand: Add Edit Delete Archive Decide Restore Undo);
variants!(query, QUERIES, Query: Snapshot Page PathPart Sessions Models Mentions Audit Costs Ops Compare Branches History Search
    RestorePreview
    ToolOutput Processes Hooks Workflows Mcp Learnings Screen Scrollback Tree Memory Skills);
variants!(turn_event, TURN_EVENTS, TurnEvent: SessionStarted TurnStarted UserMessage TextDelta ThinkingDelta
    ToolCallBegun AssistantMessage EntryAdded Awaiting Retrying RetryEnded Usage Compacted TurnFinished);
variants!(tool_event, TOOL_EVENTS, ToolEvent: ToolStarted ToolProgress InnerCall ToolFinished ShellStarted ShellLine);
variants!(ask_event, ASK_EVENTS, AskEvent: PermissionAsked PermissionDecided QuestionAsked QuestionAnswered);
variants!(state_event, STATE_EVENTS, StateEvent: TodoChanged AgentChanged WorkflowChanged Receipt QueueChanged WorkspaceChanged TurnChanged
    GitChanged SandboxTested ModelChanged ProfileChanged EffortChanged TitleChanged GoalChanged HeadMoved BranchLeft BranchNamed BranchArchived TagChanged CheckpointCreated Restored LearningNews MemoryChanged Notice Saving
    Lagged Stopped);
variants!(reply_event, REPLIES, ReplyEvent: SnapshotReply PageReply PathPartReply SessionsReply ModelsReply MentionsReply
    AuditReply CostsReply OpsReply CompareReply TakeReply CompareRunReply BranchesReply HistoryReply RestorePreviewReply SearchReply ToolOutputReply ProcessesReply HooksReply WorkflowsReply McpReply
    LearningsReply ContextReply CompactPreviewReply ReviewReply RejectReply DiffReply AsideReply TreeReply MemoryReply SkillsReply ScreenReply ScrollbackReply
    DoneReply ErrorReply);
variants!(ask_body, ASKS, AskBody: Permission Clarify Plan Trust Budget DeepTier Unpriced Repeats SessionBusy NotSaving);
variants!(ask_reply, ANSWERS, AskReply: Permission Choice Declined Never Yes Branch ReadOnly);

fn missing(seen: &BTreeSet<&str>, all: &[&[&'static str]]) -> Vec<&'static str> {
    all.iter().copied().flatten().copied().filter(|name| !seen.contains(name)).collect()
}

#[test]
fn every_command_keeps_its_form() {
    let mut seen = BTreeSet::new();
    for line in COMMANDS.lines() {
        let command: Command = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(serde_json::to_string(&command).unwrap(), line);
        seen.insert(match &command.body {
            CommandBody::Turn(c) => turn_command(c),
            CommandBody::Queue(c) => queue_command(c),
            CommandBody::Ask(c) => ask_command(c),
            CommandBody::Session(c) => session_command(c),
            CommandBody::Context(c) => context_command(c),
            CommandBody::Todo(c) => todo_command(c),
            CommandBody::Goal(c) => goal_command(c),
            CommandBody::Review(c) => review_command(c),
            CommandBody::Compare(c) => compare_command(c),
            CommandBody::Watch(c) => watch_command(c),
            CommandBody::Agent(c) => agent_command(c),
            CommandBody::Pane(c) => pane_command(c),
            CommandBody::Memory(c) => memory_command(c),
            CommandBody::Learning(c) => learning_command(c),
            CommandBody::Skill(c) => skill_command(c),
            CommandBody::Query(c) => query(c),
        });
        if let CommandBody::Ask(AskCommand::Answer { reply, .. }) = &command.body {
            seen.insert(ask_reply(reply));
        }
    }
    let all = [
        TURN_COMMANDS,
        QUEUE_COMMANDS,
        ASK_COMMANDS,
        SESSION_COMMANDS,
        CONTEXT_COMMANDS,
        TODO_COMMANDS,
        GOAL_COMMANDS,
        REVIEW_COMMANDS,
        COMPARE_COMMANDS,
        WATCH_COMMANDS,
        AGENT_COMMANDS,
        PANE_COMMANDS,
        LEARNING_COMMANDS,
        SKILL_COMMANDS,
        MEMORY_COMMANDS,
        QUERIES,
        ANSWERS,
    ];
    assert_eq!(missing(&seen, &all), [""; 0]);
}

#[test]
fn every_event_keeps_its_form() {
    let mut seen = BTreeSet::new();
    for line in EVENTS.lines() {
        let event: Event = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        seen.insert(match &event.body {
            EventBody::Turn(e) => turn_event(e),
            EventBody::Tool(e) => tool_event(e),
            EventBody::Ask(e) => ask_event(e),
            EventBody::State(e) => state_event(e),
            EventBody::Reply(e) => reply_event(e),
        });
        if let EventBody::Ask(AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask }) =
            &event.body
        {
            seen.insert(ask_body(&ask.body));
        }
    }
    let all = [TURN_EVENTS, TOOL_EVENTS, ASK_EVENTS, STATE_EVENTS, REPLIES, ASKS];
    assert_eq!(missing(&seen, &all), [""; 0]);
}

/// What `contract.md` names stays there under its name.
#[test]
fn the_types_that_scripts_may_rely_on_are_there() {
    for kind in [
        "session_started",
        "user_message",
        "text_delta",
        "thinking_delta",
        "assistant_message",
        "tool_started",
        "tool_progress",
        "tool_finished",
        "permission_asked",
        "permission_decided",
        "question_asked",
        "question_answered",
        "todo_changed",
        "agent_changed",
        "workspace_changed",
        "checkpoint_created",
        "restored",
        "compacted",
        "retrying",
        "usage",
        "notice",
        "turn_finished",
    ] {
        assert!(EVENTS.contains(&format!("\"type\":\"{kind}\"")), "{kind}");
    }
}
