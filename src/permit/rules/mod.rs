//! Rules: `allow | ask | deny` on patterns `tool(argument)`, and `outside` for commands that the sandbox does not confine.
//!
//! The strictest matching rule wins, whatever the order; among equals the most specific is named. Only
//! what the person said for this session can take back an `ask` (never a `deny`), and only with a
//! pattern that is at least as specific.

mod argument;
pub mod denied;
mod launched;
pub mod names;
pub mod pattern;
pub mod rulefile;
mod spellings;
mod unmatched;
mod words;

use std::path::Path;

use tiller_protocol::{RuleArgument, ToolCatalog};

use crate::paths::Roots;
use crate::rules::argument::Argument;
use crate::rules::pattern::Pattern;
pub(crate) use crate::rules::spellings::Spellings;
pub(crate) use crate::rules::words::Certainty;

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    Allow,
    Ask,
    Deny,
    /// A command that it matches runs outside the sandbox. It does not allow the command.
    Outside,
}

impl Effect {
    /// As in the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Outside => "outside",
        }
    }
}

/// Where a rule comes from, from general to particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    BuiltIn,
    /// The person's `permissions.yaml`.
    User,
    /// The folder's `.tiller/permissions.yaml`. It can only narrow until the folder is trusted.
    Project,
    /// `--allow`, `--deny`, and answers "for this session".
    Session,
    /// The definition of one agent: it can only narrow.
    Agent,
}

impl Source {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::User => "yours",
            Self::Project => "project",
            Self::Session => "session",
            Self::Agent => "agent",
        }
    }
}

/// One rule, ready to match.
#[derive(Clone, Debug)]
pub struct Rule {
    pub effect: Effect,
    pub source: Source,
    /// The agent path that it is for, with everything below; `None` is every agent.
    pub agent: Option<String>,
    text: String,
    tool: Pattern,
    /// It is for a tool of another vendor's program.
    foreign: bool,
    /// The tools of this program. A rule about a path holds for every tool that comes to the path in the same way.
    tools: ToolCatalog,
    argument: Option<Argument>,
    /// It stands for a file that cannot be used: the file, and why.
    fault: Option<String>,
}

/// What is done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathUse {
    Read,
    Write,
}

impl PathUse {
    /// A tool that does this to a path: for rules about paths, which hold for every tool that does it.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Read => "read_file",
            Self::Write => "write_file",
        }
    }
}

/// What a rule is compared with.
pub(crate) enum Subject<'a> {
    /// Spellings of one command; an allow rule is compared with the first only.
    Command(&'a Spellings),
    Path(&'a Path, PathUse),
    Net {
        url: &'a str,
        host: &'a str,
    },
    /// The arguments as text.
    Other(&'a str),
}

impl Rule {
    /// Reads `tool(argument)` or `tool`. Whether there is such a tool among `tools` is not checked.
    ///
    /// # Errors
    /// In words.
    pub fn parse(effect: Effect, source: Source, text: &str, tools: &ToolCatalog) -> Result<Self, String> {
        let text = text.trim();
        let (tool, argument) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let inner =
                    rest.strip_suffix(')').ok_or_else(|| format!("'{text}' needs a closing parenthesis"))?;
                (tool, Some(inner))
            }
        };
        if tool.is_empty() || tool.contains(char::is_whitespace) {
            return Err(format!("'{text}' is not of the form tool(argument)"));
        }
        if !tiller_shell::invisibles(text).is_empty() {
            return Err("the rule contains an invisible character".into());
        }
        if argument.is_some_and(unmatched::has_another) {
            return Err(format!("'{text}' holds two rules: write each in a line of its own"));
        }
        Ok(Self {
            effect,
            source,
            agent: None,
            text: text.to_owned(),
            foreign: tool.starts_with(names::FOREIGN),
            tool: Pattern::new(tool.strip_prefix(names::FOREIGN).unwrap_or(tool))?,
            argument: argument.map(Argument::new).transpose()?,
            tools: tools.clone(),
            fault: None,
        })
    }

    /// Reads a rule that a person wrote: its tool must be among `tools`.
    ///
    /// # Errors
    /// In words, with the nearest right name.
    pub fn written(effect: Effect, source: Source, text: &str, tools: &ToolCatalog) -> Result<Self, String> {
        let rule = Self::parse(effect, source, text, tools)?;
        names::check(rule.text.split('(').next().unwrap_or_default(), tools)?;
        match rule.matches_nothing() {
            Some(why) => Err(format!("'{}' can match nothing: {why}", rule.text)),
            None => Ok(rule),
        }
    }

    /// The same rule for one agent and those below it.
    #[must_use]
    pub fn for_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// As written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same rule, which stands for a file that cannot be used. `fault`: the file and why, without a full stop. What the
    /// file forbids is not known, so no rule of the session takes it back.
    #[must_use]
    pub fn for_fault(mut self, fault: impl Into<String>) -> Self {
        self.fault = Some(fault.into());
        self
    }

    /// For people: `yours: allow terminal(git status*)`.
    pub fn words(&self) -> String {
        if let Some(fault) = &self.fault {
            return format!("{fault}, so every call needs approval");
        }
        format!("{}: {} {}", self.source.word(), self.effect.word(), self.text)
    }

    /// True when it stands for exactly one command.
    pub(crate) fn is_exact(&self) -> bool {
        !self.tool.is_wild() && self.argument.as_ref().is_some_and(|a| !a.text.is_wild())
    }

    /// True when its argument ends with the name of a file, not with a pattern of names.
    pub(crate) fn names_file(&self) -> bool {
        let name = self.path_text().and_then(|path| path.rsplit('/').next());
        name.is_some_and(|name| !name.is_empty() && !name.contains(['*', '?', '[', '{']))
    }

    /// The folder or file that its argument names, as far as it is no pattern.
    pub(crate) fn plain_path(&self) -> Option<&str> {
        let text = self.path_text()?;
        let plain = text.find(['*', '?', '[', '{']).map_or(text, |at| &text[..at]);
        let plain = if plain.len() == text.len() {
            plain
        } else {
            plain.rsplit_once('/').map_or("", |(folder, _)| folder)
        };
        let plain = plain.trim_end_matches('/').trim_start_matches("./");
        (!plain.is_empty() && !plain.starts_with('~')).then_some(plain)
    }

    /// Its argument, where that can name paths.
    pub(crate) fn path_text(&self) -> Option<&str> {
        Some(self.argument.as_ref()?.path.as_ref()?.text())
    }

    /// Whether it is for each use of its tool.
    pub(crate) fn is_whole(&self) -> bool {
        self.argument.is_none()
    }

    /// Characters that stand for themselves.
    pub(crate) fn specificity(&self) -> usize {
        self.tool.literal() + self.argument.as_ref().map_or(0, |a| a.text.literal())
    }

    pub(crate) fn is_for(&self, agent: &str) -> bool {
        self.agent
            .as_deref()
            .is_none_or(|a| agent == a || agent.strip_prefix(a).is_some_and(|r| r.starts_with('/')))
    }

    fn strict(&self) -> bool {
        matches!(self.effect, Effect::Ask | Effect::Deny)
    }

    /// The same pattern with another effect.
    pub(crate) fn with_effect(&self, effect: Effect) -> Self {
        Self { effect, ..self.clone() }
    }

    pub(crate) fn tool_text(&self) -> &str {
        self.tool.text()
    }

    pub(crate) fn tool_is_wild(&self) -> bool {
        self.tool.is_wild()
    }

    /// `tool` of a program of another vendor is `PROGRAM:TOOL`: one that allows names both, one that restricts may name the tool
    /// alone.
    pub(crate) fn is_for_tool(&self, tool: &str) -> bool {
        if self.foreign && self.tools.contains(tool) {
            return false;
        }
        if !self.strict() {
            return self.tool.matches(tool);
        }
        let bare = tool.split_once(':').map(|(_, bare)| bare);
        self.tool.matches_any_case(tool) || bare.is_some_and(|bare| self.tool.matches_any_case(bare))
    }

    /// True when it names this tool and no other.
    pub(crate) fn is_of_tool(&self, tool: &str) -> bool {
        self.tool.text() == tool
    }

    /// A rule that restricts a path holds for every tool that reaches the path, not only for the tool that it names; one
    /// about addresses for every tool that fetches them.
    fn is_about(&self, tool: &str, subject: &Subject<'_>) -> bool {
        let by_path = || match subject {
            Subject::Path(_, how) if self.strict() && self.argument.is_some() => {
                self.is_for_path_tool(*how, tool)
            }
            // To reach an address is the same by each tool that does it.
            Subject::Net { .. } if self.argument.is_some() => self.is_for_address_tool(tool),
            _ => false,
        };
        self.is_for_tool(tool) || by_path()
    }

    /// Whether it is for one of the tools that go to an address, as `tool` does. A rule that allows is for tools of the same
    /// set: to read a page is less than to open it in a browser.
    fn is_for_address_tool(&self, tool: &str) -> bool {
        let Some(own) = self.tools.get(tool).filter(|t| t.rule == RuleArgument::Address) else {
            return false;
        };
        let same = |t: &&tiller_protocol::ToolInfo| {
            t.rule == RuleArgument::Address && (self.strict() || t.set == own.set)
        };
        self.tools.iter().filter(same).any(|t| self.is_for_tool(t.name))
    }

    /// Whether it is for one of the tools that do `how` to a path. A tool that writes a path and shows what was there
    /// (`tool`) is held to the rules about reading as well.
    fn is_for_path_tool(&self, how: PathUse, tool: &str) -> bool {
        let shows = how == PathUse::Write && self.tools.get(tool).is_some_and(|t| t.rule.shows_path());
        self.tools.iter().any(|t| {
            let reads = t.rule == RuleArgument::ReadPath;
            let same = match how {
                PathUse::Read => reads,
                PathUse::Write => t.rule.changes_path() || shows && reads,
            };
            same && self.is_for_tool(t.name)
        })
    }

    /// True for a rule that names this host, by itself, in an address, or as one below a domain that it names.
    pub(crate) fn names_host(&self, host: &str) -> bool {
        let Some(argument) = &self.argument else { return false };
        let text = argument.host.as_ref().unwrap_or(&argument.text).text();
        if argument.host.is_some() {
            let name = text.strip_prefix("*.").unwrap_or(text);
            let below = name.len() < text.len();
            return match host.strip_suffix(&name.to_ascii_lowercase()) {
                Some("") => !below,
                Some(rest) => below && name.contains('.') && rest.ends_with('.'),
                None => false,
            };
        }
        let known = text.split('*').next().unwrap_or_default();
        let whole = known.len() == text.len() || known.splitn(4, '/').count() == 4;
        whole && crate::decide::host_of(known).is_some_and(|of| of == host)
    }

    /// True for a rule that narrows what may be done to paths, and says which.
    pub(crate) fn narrows_paths(&self, how: PathUse) -> bool {
        self.strict()
            && self.argument.as_ref().is_some_and(|a| a.path.is_some())
            && self.is_for_path_tool(how, "")
    }

    /// Returns true if it is for the call. A rule that denies must be for it for certain; one that asks, also perhaps.
    pub(crate) fn matches(&self, agent: &str, tool: &str, subject: &Subject<'_>, roots: &Roots) -> bool {
        let least = if self.effect == Effect::Ask { Certainty::Perhaps } else { Certainty::Sure };
        self.certainty(agent, tool, subject, roots) >= least
    }

    /// How certain it is that it is for the call.
    pub(crate) fn certainty(
        &self,
        agent: &str,
        tool: &str,
        subject: &Subject<'_>,
        roots: &Roots,
    ) -> Certainty {
        if !self.is_for(agent) || !self.is_about(tool, subject) {
            return Certainty::No;
        }
        let Some(argument) = &self.argument else { return Certainty::Sure };
        let strict = self.strict();
        let text = |p: &Pattern, t: &str| if strict { p.matches_any_case(t) } else { p.matches(t) };
        let is_match = match subject {
            Subject::Command(spellings) if strict => return argument.restricts(spellings),
            Subject::Command(spellings) => spellings.texts.first().is_some_and(|s| argument.text.allows(s)),
            Subject::Path(path, _) => argument.path.as_ref().is_some_and(|p| p.matches(path, strict, roots)),
            Subject::Net { url, host } if strict => argument.restricts_address(url, host),
            Subject::Net { url, host } => match &argument.host {
                Some(pattern) => text(pattern, host.trim_end_matches('.')),
                None => text(&argument.text, url),
            },
            Subject::Other(raw) => text(&argument.text, raw),
        };
        if is_match { Certainty::Sure } else { Certainty::No }
    }
}

/// All rules in force.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
}

/// The strictest rules that match one subject, by effect.
#[derive(Debug, Default)]
pub(crate) struct RuleMatches<'a> {
    pub(crate) deny: Option<&'a Rule>,
    pub(crate) ask: Option<&'a Rule>,
    pub(crate) allow: Option<&'a Rule>,
}

impl RuleSet {
    /// Adds rules. Allow rules of an untrusted project or of an agent are left out: those can only
    /// narrow. Out of the sandbox leads the person's own file alone.
    pub fn add(&mut self, rules: impl IntoIterator<Item = Rule>, trusted: bool) {
        self.rules.extend(rules.into_iter().filter(|r| match (r.effect, r.source) {
            (Effect::Outside, source) => source == Source::User,
            (Effect::Allow, Source::Project) => trusted,
            (Effect::Allow, Source::Agent) => false,
            _ => true,
        }));
    }

    /// Adds one rule of the person's.
    pub fn push(&mut self, rule: Rule) {
        self.add([rule], false);
    }

    /// Replaces all rules of `source`.
    pub fn replace(&mut self, source: Source, rules: impl IntoIterator<Item = Rule>) {
        self.rules.retain(|r| r.source != source);
        self.add(rules, false);
    }

    /// The rule that stands for a line which cannot be read: everything asks.
    ///
    /// # Errors
    /// Never in practice: the rule is fixed.
    pub fn ask_all(source: Source, tools: &ToolCatalog) -> Result<Rule, String> {
        Rule::parse(Effect::Ask, source, "*", tools)
    }

    /// The rule that stands for a file which cannot be used, as [`Rule::for_fault`]: everything asks.
    ///
    /// # Errors
    /// As [`Self::ask_all`].
    pub fn ask_all_for(fault: &str, source: Source, tools: &ToolCatalog) -> Result<Rule, String> {
        Ok(Self::ask_all(source, tools)?.for_fault(fault))
    }

    /// All of them.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(crate) fn matching(
        &self,
        agent: &str,
        tool: &str,
        subject: &Subject<'_>,
        roots: &Roots,
    ) -> RuleMatches<'_> {
        let allows = self.rules.iter().filter(|r| r.effect == Effect::Allow);
        RuleMatches {
            deny: self.denied(agent, tool, subject, roots),
            ask: self.asked(agent, tool, subject, roots),
            allow: most_specific(allows.filter(|r| r.matches(agent, tool, subject, roots))),
        }
    }

    /// The ask rule that matches, and that no rule of the session takes back.
    pub(crate) fn asked(
        &self,
        agent: &str,
        tool: &str,
        subject: &Subject<'_>,
        roots: &Roots,
    ) -> Option<&Rule> {
        let matches = |r: &&Rule| r.matches(agent, tool, subject, roots);
        let asks: Vec<&Rule> =
            self.rules.iter().filter(|r| r.effect == Effect::Ask).filter(matches).collect();
        if asks.is_empty() {
            return None;
        }
        let of_session = |r: &&Rule| r.effect == Effect::Allow && r.source == Source::Session;
        let session = self.rules.iter().filter(of_session).filter(matches).map(Rule::specificity).max();
        most_specific(asks.into_iter().filter(|r| {
            !matches!(r.source, Source::BuiltIn | Source::User)
                || r.fault.is_some()
                || session.is_none_or(|s| s < r.specificity())
        }))
    }

    /// The deny rule that is for the subject, with how certain that is: the most specific of those that are for certain, or
    /// else one that perhaps is.
    pub(crate) fn denying(
        &self,
        agent: &str,
        tool: &str,
        subject: &Subject<'_>,
        roots: &Roots,
    ) -> Option<(&Rule, Certainty)> {
        let denies = self.rules.iter().filter(|r| r.effect == Effect::Deny);
        let found: Vec<(&Rule, Certainty)> = denies
            .map(|r| (r, r.certainty(agent, tool, subject, roots)))
            .filter(|(_, certainty)| *certainty != Certainty::No)
            .collect();
        let sure = found.iter().filter(|(_, certainty)| *certainty == Certainty::Sure).map(|(r, _)| *r);
        most_specific(sure).map(|r| (r, Certainty::Sure)).or_else(|| found.first().copied())
    }

    /// The deny rule that matches.
    pub(crate) fn denied(
        &self,
        agent: &str,
        tool: &str,
        subject: &Subject<'_>,
        roots: &Roots,
    ) -> Option<&Rule> {
        let denies = self.rules.iter().filter(|r| r.effect == Effect::Deny);
        most_specific(denies.filter(|r| r.matches(agent, tool, subject, roots)))
    }
}

/// The rule that is named where several match.
fn most_specific<'a>(rules: impl Iterator<Item = &'a Rule>) -> Option<&'a Rule> {
    rules.max_by(|a, b| (a.specificity(), a.source, a.text()).cmp(&(b.specificity(), b.source, b.text())))
}
