//! The confinement of commands on this machine: how, which commands, and what it does not stop, line by line.

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::notice::capital;
use tiller_protocol::{
    CapabilityState, Event, EventBody, SandboxCapability, SandboxNetwork, SandboxScope, SandboxState,
    TerminalLimits,
};

use crate::app::effect::{Effect, Task};
use crate::dialog::picker::{Item, ListSpec, Picker, Source};
use crate::keymap::action::Menu;
use crate::model::Model;
use crate::registry::{Dialog, Opener};
use crate::text::clean;
use crate::theme::Role;
use crate::widget::table::{Cell, Column};
use crate::widget::{draw, sign};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new(
        "sandbox.open",
        "sandbox",
        "What confines commands, and what it does not stop",
        |_| Ok(Box::new(open())),
    )
    .menu(Menu::Go)],
    ..Dialog::NONE
};

const COLUMNS: &[Column] = &[Column::text(""), Column::text("").grows()];

/// Rows of the preview, which says in full what a row has no room for.
const PREVIEW: u16 = 2;

const EMPTY: &str = "The sandbox is being tested; this takes a moment";

struct Report;

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(Report)
}

impl Source for Report {
    fn title(&self) -> String {
        "Sandbox".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            verb: "copy",
            columns: COLUMNS,
            table: Some(PREVIEW),
            empty: EMPTY,
            changed_by: tested,
            ..ListSpec::default()
        }
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        model.engine.sandbox.as_deref().map(rows).unwrap_or_default()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        let text = format!("{}: {}", item.text, item.more);
        vec![Effect::Task(Task::Copy { text, what: "row" })]
    }

    fn preview(&self, item: &Item) -> Option<String> {
        Some(item.more.clone())
    }
}

fn tested(event: &Event) -> bool {
    match &event.body {
        EventBody::State(e) => matches!(e, StateEvent::SandboxTested { .. }),
        EventBody::Reply(e) => matches!(**e, ReplyEvent::SnapshotReply { .. }),
        _ => false,
    }
}

/// The same in lines, for plain mode.
pub(crate) fn lines(model: &Model) -> String {
    let Some(state) = model.engine.sandbox.as_deref() else { return EMPTY.into() };
    let mut text = String::from("Sandbox");
    let mut group = String::new();
    for item in rows(state) {
        if item.group != group {
            group.clone_from(&item.group);
            text.push_str(&format!("\n{group}:"));
        }
        // A result of the test says in full what it is about.
        let words = if item.sign.is_some() { item.more } else { format!("{}: {}", item.text, item.more) };
        text.push_str(&format!("\n{words}"));
    }
    text
}

/// All rows: what is in force, what the machine lacks, and each probe with its result, the gaps first.
fn rows(s: &SandboxState) -> Vec<Item> {
    let fact = |name: &str, words: String| row("In force", name, words, Role::Text);
    let method = s.method.clone().unwrap_or_else(|| "none: this machine cannot confine commands".into());
    let mut all = vec![fact("Method", method)];
    all.extend(commands(s).into_iter().map(|(name, words)| fact(name, words.into())));
    all.push(fact("Network", network(s)));
    all.extend(s.tmp.iter().map(|folder| {
        let name = if s.mounts() { "Own /tmp" } else { "Own TMPDIR" };
        // The path is long; a column of it would cut the names.
        let item = fact(name, "a private folder; Enter copies its path".into());
        Item { more: clean::plain(folder).into_owned(), ..item }
    }));
    all.push(fact("Setting", format!("sandbox = \"{}\", {}", s.scope, s.origin)));
    all.extend(s.lacks.iter().enumerate().map(|(n, what)| {
        let item = fact("Missing", what.clone());
        Item { id: format!("{}/{n}", item.id), ..item }
    }));
    all.extend(s.elsewhere.iter().map(|place| {
        let words = match place.limits {
            TerminalLimits::Container => "only its container confines it",
            TerminalLimits::Account => "nothing confines it but its account",
        };
        let name = format!("@{}", clean::plain(&place.name));
        row("Elsewhere", &name, format!("{}: {words}", clean::plain(&place.kind)), Role::Text)
    }));
    let probes = |group: &'static str, mark: sign::Sign, tone: Role, fits: fn(&SandboxCapability) -> bool| {
        s.capabilities.iter().filter(move |c| fits(c)).map(move |c| {
            let (words, more) = match &c.held {
                CapabilityState::Stopped => (c.name.clone(), capital(&c.name)),
                CapabilityState::Open { why } | CapabilityState::Unknown { why } => {
                    (why.clone(), format!("{}: {why}", capital(&c.name)))
                }
            };
            let item = row(group, &capital(&c.short), words, Role::Dim).sign(draw::sign(mark), tone);
            Item { more, ..item }
        })
    };
    all.extend(probes("Not stopped", sign::FAILED, Role::Error, |c| {
        matches!(c.held, CapabilityState::Open { .. })
    }));
    all.extend(probes("Not known", sign::EMPTY, Role::Dim, |c| {
        matches!(c.held, CapabilityState::Unknown { .. })
    }));
    all.extend(probes("Stopped", sign::OK, Role::Ok, |c| c.held == CapabilityState::Stopped));
    all
}

fn row(group: &str, name: &str, words: String, role: Role) -> Item {
    let more = if words.is_empty() { name.to_owned() } else { words.clone() };
    Item { more, ..Item::new(format!("{group}/{name}"), name) }.group(group).cell(Cell::new(words, role))
}

/// Which commands run in which profile.
fn commands(s: &SandboxState) -> Vec<(&'static str, &'static str)> {
    const READ: &str = "read: no writes, no network";
    const WORKSPACE: &str = "workspace: no writes outside this folder";
    const OFF: &str = "off: not confined";
    match (&s.method, &s.scope) {
        (None, _) => vec![("Commands", "off: not confined, so more of them ask")],
        (_, SandboxScope::Off) => vec![("Commands", OFF)],
        (_, SandboxScope::Auto) => vec![("Run without asking", READ), ("Other commands", WORKSPACE)],
        (_, SandboxScope::Read | SandboxScope::Other(_)) => {
            vec![("Run without asking", READ), ("Other commands", OFF)]
        }
    }
}

fn network(s: &SandboxState) -> String {
    if s.method.is_none() || s.scope == SandboxScope::Off {
        return "not confined".into();
    }
    match &s.network {
        _ if s.scope != SandboxScope::Auto => "off without asking, otherwise without limit".into(),
        SandboxNetwork::Nothing => "off; sandbox_network can list domains".into(),
        SandboxNetwork::Everything => "everything, by sandbox_network".into(),
        SandboxNetwork::Domains { domains } => domains.join(", "),
        SandboxNetwork::DomainsUnavailable { .. } => {
            "off: listed domains need bubblewrap or a newer kernel".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Robot;
    use tiller_protocol::{Profile, TerminalPlace};

    fn state() -> SandboxState {
        let capability = |name: &str, short: &str, held| SandboxCapability {
            name: name.into(),
            short: short.into(),
            held,
        };
        SandboxState {
            tmp: None,
            scope: SandboxScope::Auto,
            origin: "user (/home/me/config.toml:3)".into(),
            method: Some("Landlock and seccomp".into()),
            lacks: vec!["bubblewrap is not installed".into()],
            network: SandboxNetwork::Domains { domains: vec!["*.crates.io".into()] },
            capabilities: vec![
                capability("write outside", "outside writes", CapabilityState::Stopped),
                capability(
                    "UDP\u{1b} packets",
                    "U\u{1b}DP",
                    CapabilityState::Open { why: "a packet\u{1b} arrived".into() },
                ),
                capability("keyring", "keyring", CapabilityState::Unknown { why: "it needs perl".into() }),
            ],
            elsewhere: vec![
                place("box", "podman", TerminalLimits::Container),
                place("build", "ssh", TerminalLimits::Account),
            ],
            main: None,
        }
    }

    fn place(name: &str, kind: &str, limits: TerminalLimits) -> TerminalPlace {
        TerminalPlace { name: name.into(), kind: kind.into(), limits }
    }

    /// An agent elsewhere is not in the sandbox of this machine: the header says where it runs and what limits it there.
    #[test]
    fn the_header_says_where_an_agent_elsewhere_runs_and_what_limits_it() {
        for (width, height) in [(80, 24), (118, 25)] {
            let mut r = Robot::new(width, height);
            let first = |r: &Robot| r.screen().lines().next().unwrap_or_default().to_owned();
            let at = |r: &mut Robot, main: Option<&str>| {
                r.event(found(SandboxState { main: main.map(Into::into), ..state() }));
                first(r)
            };
            r.event(EventBody::State(StateEvent::ProfileChanged { profile: Profile::Ask }));
            let here = at(&mut r, None);
            assert!(here.contains("DP open") && !here.contains('@'), "{here}");
            let there = at(&mut r, Some("build"));
            assert!(there.contains("@build ssh: not confined") && !there.contains("open"), "{there}");
            let there = at(&mut r, Some("box"));
            assert!(there.contains("@box podman") && !there.contains("confined"), "{there}");
            r.run("type /sandbox; enter");
            let screen = r.screen();
            for words in
                ["@box", "podman: only its container confines it", "ssh: nothing confines it but its account"]
            {
                assert!(screen.contains(words), "{words}: {screen}");
            }
        }
    }

    fn found(sandbox: SandboxState) -> EventBody {
        EventBody::State(StateEvent::SandboxTested { sandbox: Box::new(sandbox) })
    }

    #[test]
    fn each_capability_has_a_line_with_its_reason() {
        for (width, height) in [(80, 40), (118, 40)] {
            let mut r = Robot::new(width, height);
            r.run("type /sandbox; enter");
            assert!(r.screen().contains("being tested"), "{}", r.screen());
            r.event(found(state()));
            let screen = r.screen();
            for words in [
                "Landlock and seccomp",
                "no writes outside this folder",
                "*.crates.io",
                "config.toml:3",
                "bubblewrap is not installed",
                "Not stopped",
                "a packet",
                "Not known",
                "it needs perl",
                "write outside",
            ] {
                assert!(screen.contains(words), "{words}: {screen}");
            }
            assert!(!screen.contains('\u{1b}'), "{screen}");
        }
    }

    /// A group whose rows do not follow each other would get its heading twice.
    #[test]
    fn each_group_has_one_heading() {
        let mut groups: Vec<_> = rows(&state()).into_iter().map(|row| row.group).collect();
        groups.dedup();
        let all = groups.len();
        groups.sort();
        groups.dedup();
        assert_eq!(groups.len(), all, "{groups:?}");
    }

    /// The row of the method is the selected one.
    #[test]
    fn the_preview_says_only_what_the_row_has_no_room_for() {
        let screen = |method: &str, width| {
            let mut r = Robot::new(width, 24);
            r.event(found(SandboxState { method: Some(method.into()), ..state() }));
            r.run("type /sandbox; enter");
            r.screen()
        };
        let wide = screen("Landlock and seccomp", 80);
        assert_eq!(wide.matches("Landlock and seccomp").count(), 1, "{wide}");
        let narrow = screen("namespaces, Landlock and seccomp, of which the last is new", 60);
        assert_eq!(narrow.matches("is new").count(), 1, "{narrow}");
        assert_eq!(narrow.matches("namespaces, Landlock").count(), 2, "{narrow}");
    }

    /// X5: no silent step down. The header names what is not held wherever commands run.
    #[test]
    fn the_header_names_what_is_not_held() {
        for (width, height) in [(80, 24), (118, 25)] {
            let mut r = Robot::new(width, height);
            let first = |r: &Robot| r.screen().lines().next().unwrap_or_default().to_owned();
            let set = |r: &mut Robot, profile| {
                r.event(EventBody::State(StateEvent::ProfileChanged { profile }));
            };
            assert!(!first(&r).contains("sandbox"), "nothing is known yet: {}", first(&r));
            r.event(found(state()));
            for profile in [Profile::Ask, Profile::AutoEdit, Profile::Full] {
                set(&mut r, profile);
                assert!(
                    first(&r).contains("DP open") && !first(&r).contains('\u{1b}'),
                    "{profile:?}: {}",
                    first(&r)
                );
            }
            set(&mut r, Profile::ReadOnly);
            assert!(!first(&r).contains("open"), "no command runs: {}", first(&r));
            set(&mut r, Profile::Full);
            let mut none = state();
            none.method = None;
            none.capabilities.clear();
            r.event(found(none.clone()));
            assert!(first(&r).contains("no sandbox"), "{}", first(&r));
            assert_eq!(network(&none), "not confined", "no limit is claimed that nothing holds");
            none.scope = SandboxScope::Off;
            r.event(found(none));
            assert!(first(&r).contains("sandbox off"), "{}", first(&r));
            let mut whole = state();
            whole.capabilities.truncate(1);
            r.event(found(whole));
            assert!(!first(&r).contains("sandbox"), "all is held: {}", first(&r));
        }
    }

    #[test]
    fn the_start_line_has_a_sign_for_the_sandbox() {
        for (width, height) in [(80, 24), (118, 32)] {
            let mut r = Robot::new(width, height);
            let line = |r: &Robot| {
                let screen = r.screen();
                screen.lines().skip(1).find(|l| l.contains("sandbox")).unwrap_or_default().to_owned()
            };
            assert_eq!(line(&r), "", "nothing is known yet");
            let mut whole = state();
            whole.capabilities.truncate(1);
            r.event(found(whole.clone()));
            assert!(line(&r).contains("● sandbox"), "{}", r.screen());
            r.event(found(state()));
            assert!(line(&r).contains("◐ sandbox") && !line(&r).contains("open"), "{}", r.screen());
            whole.method = None;
            r.event(found(whole));
            assert_eq!(line(&r), "", "the header says it");
        }
    }

    #[test]
    fn several_gaps_fit_into_the_header() {
        let mut r = Robot::new(160, 25);
        let mut many = state();
        let open = CapabilityState::Open { why: "it was".into() };
        many.capabilities = ["UDP", "DNS", "sockets", "signals"]
            .map(|n| SandboxCapability { name: n.into(), short: n.into(), held: open.clone() })
            .into();
        r.event(found(many));
        let first = r.screen().lines().next().unwrap_or_default().to_owned();
        assert!(first.contains("sandbox: UDP, DNS +2 open"), "{first}");
    }
}
