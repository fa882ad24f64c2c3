//! Runs all hooks of an event, one after the other, and joins what they decide.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use tiller_permit::Rule;
use tiller_permit::pin::Held;
use tiller_protocol::{HookEvent, HookOutcome, HookRun, Notice, NoticeKind};
use tiller_tool::shell::Launch;
use tokio_util::sync::CancellationToken;

use crate::command;
use crate::decision::{self, Decision, Failure, OutputForm};
use crate::input::{self, HookScene};
use crate::list::{Hook, HookMatch, HookRunner, Hooks};

/// Rounds in which hooks may change arguments: each change is shown to all hooks again.
const ROUNDS: usize = 4;

/// A denial, with its hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The name of the hook.
    pub hook: String,
    pub reason: String,
}

impl Denial {
    /// For the model and the user, without a full stop at the end.
    pub fn words(&self) -> String {
        format!("denied by the hook `{}`: {}", self.hook, self.reason.trim_end_matches('.'))
    }
}

/// What the hooks of an event decided together.
#[derive(Clone, Debug, Default)]
pub struct HookAnswer {
    pub deny: Option<Denial>,
    /// Why the user is to be asked about a call, in words: a hook before it did not get to decide, or leaves it to the user.
    pub ask: Option<String>,
    /// The arguments of a call, where a hook changed them.
    pub arguments: Option<Value>,
    /// The result of a call, where a hook replaced it.
    pub result: Option<String>,
    /// Texts for the end of a prompt or a result, each with the name of its hook.
    pub add: Vec<(String, String)>,
    /// Failures that have not been reported yet, and texts for the user.
    pub notices: Vec<Notice>,
    /// Names of the hooks that changed arguments or the result.
    pub changed_by: Vec<String>,
}

/// Most runs of a hook for one call.
const RUNS: usize = 100;

/// What a hook is compared with.
type Matches<'a> = dyn Fn(&Rule, &Value) -> bool + Send + Sync + 'a;

impl Hooks {
    /// Runs the hooks of an event that is no call. `paths`: for changed files, relative to the folder.
    pub async fn fire(
        &self,
        scene: HookScene<'_>,
        about: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        self.all(scene, about, &|_, _| true, cancel).await
    }

    /// Runs the hooks before a call. `arguments` stand in `about.call`; `matches` tells whether a rule is for the call
    /// with these arguments. Where a hook changes them, all hooks see the new ones.
    pub async fn before_call(
        &self,
        scene: HookScene<'_>,
        about: Map<String, Value>,
        matches: &Matches<'_>,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        let mut about = about;
        let mut all = HookAnswer::default();
        for _ in 0..ROUNDS {
            let mut answer = self.all(scene, about.clone(), matches, cancel).await;
            all.notices.append(&mut answer.notices);
            answer.changed_by.retain(|name| !all.changed_by.contains(name));
            all.changed_by.append(&mut answer.changed_by);
            all.add = answer.add;
            all.ask = answer.ask.or(all.ask);
            if answer.deny.is_some() {
                all.deny = answer.deny;
                return all;
            }
            match answer.arguments {
                Some(changed) if about.get("call").and_then(|c| c.get("arguments")) != Some(&changed) => {
                    set_arguments(&mut about, &changed);
                    all.arguments = Some(changed);
                }
                _ => return all,
            }
        }
        let hook = all.changed_by.join(", ");
        let reason = "hooks change the arguments again and again".to_owned();
        all.deny = Some(Denial { hook, reason });
        all
    }

    /// Runs the hooks after a call.
    pub async fn after_call(
        &self,
        scene: HookScene<'_>,
        about: Map<String, Value>,
        matches: &Matches<'_>,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        self.all(scene, about, matches, cancel).await
    }

    /// One round: until the first denial.
    async fn all(
        &self,
        scene: HookScene<'_>,
        mut about: Map<String, Value>,
        matches: &Matches<'_>,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        let mut answer = HookAnswer::default();
        let Some(runner) = &self.0 else { return answer };
        for hook in self.list().iter().filter(|hook| hook.event == scene.event && hook.is_on()) {
            let Some(about_hook) = hook.concerns(&about, matches) else { continue };
            let decision = match runner.one(hook, &scene, &about_hook, cancel, &mut answer.notices).await {
                Ok(decision) => decision,
                Err(reason) => {
                    answer.deny = Some(Denial { hook: hook.name(), reason });
                    return answer;
                }
            };
            let name = hook.name();
            if let Some(why) = decision.ask.filter(|_| scene.event == HookEvent::BeforeToolCall) {
                answer.ask.get_or_insert_with(|| format!("the hook `{name}`: {}", why.trim_end_matches('.')));
            }
            if let Some(reason) = decision.deny {
                answer.deny = Some(Denial { hook: name, reason });
                return answer;
            }
            if let Some(arguments) = decision.arguments.filter(|_| scene.event == HookEvent::BeforeToolCall) {
                set_arguments(&mut about, &arguments);
                answer.arguments = Some(arguments);
                answer.changed_by.push(name.clone());
            }
            if let Some(result) = decision.result.filter(|_| scene.event == HookEvent::AfterToolCall) {
                about.insert("result".into(), result.clone().into());
                answer.result = Some(result);
                answer.changed_by.push(name.clone());
            }
            answer.add.extend(decision.add.map(|text| (name.clone(), text)));
            let tell =
                decision.tell.map(|text| Notice::new(NoticeKind::Info, format!("Hook `{name}`: {text}")));
            answer.notices.extend(tell);
        }
        answer
    }
}

fn set_arguments(about: &mut Map<String, Value>, arguments: &Value) {
    if let Some(Value::Object(call)) = about.get_mut("call") {
        call.insert("arguments".into(), arguments.clone());
    }
}

/// The decision with the arguments of our call, where it has those of another program. `input`: what the hook read, and whether it
/// was one of several for the call.
fn own_arguments(
    hook: &Hook,
    call: &Value,
    (input, several): (&Value, bool),
    mut said: Decision,
) -> Result<Decision, Failure> {
    if let Some(theirs) = said.arguments.take_if(|_| hook.claude()).filter(|new| *new != input["tool_input"])
    {
        said.arguments = Some(crate::claude::taken_back(call, &theirs, several).map_err(Failure::asks)?);
    }
    Ok(said)
}

/// The decision before the first of the runs for a call. Where there are more than [`RUNS`], not each part of the call is seen.
fn unseen(runs: usize) -> Result<Decision, Failure> {
    if runs <= RUNS {
        return Ok(Decision::default());
    }
    Err(Failure::asks(format!(
        "the call stands for {runs} calls in the form of this hook, which sees the first {RUNS} of them only; smaller calls are seen whole"
    )))
}

/// The decision of two runs for one call. A denial counts before all, then a failure. With a failure of one, the question of
/// the other stays.
fn joined(before: Result<Decision, Failure>, later: Result<Decision, Failure>) -> Result<Decision, Failure> {
    match (before, later) {
        (_, Ok(later)) if later.deny.is_some() => Ok(later),
        (Err(failure), Err(later)) if !failure.asks => Err(later),
        (Err(failure), Err(_)) => Err(failure),
        (Err(failure), Ok(other)) | (Ok(other), Err(failure)) => {
            Err(Failure { asks: failure.asks || other.ask.is_some(), ..failure })
        }
        (Ok(mut before), Ok(later)) => {
            before.extend(later);
            Ok(before)
        }
    }
}

/// True when the hooks of an event decide before something happens.
fn is_before(event: HookEvent) -> bool {
    matches!(
        event,
        HookEvent::UserPrompt | HookEvent::BeforeToolCall | HookEvent::ContextCompact | HookEvent::AgentStart
    )
}

impl Hook {
    /// The input about what it is for; `None`: it is not for this.
    fn concerns(&self, about: &Map<String, Value>, matches: &Matches<'_>) -> Option<Map<String, Value>> {
        match &self.matches {
            HookMatch::All => Some(about.clone()),
            HookMatch::Calls(rule) => {
                let arguments = about.get("call").and_then(|call| call.get("arguments"));
                matches(rule, arguments.unwrap_or(&Value::Null)).then(|| about.clone())
            }
            HookMatch::Paths(glob) => {
                let mut about = about.clone();
                let changes = about.get_mut("changes").and_then(Value::as_array_mut)?;
                changes.retain(|c| c["path"].as_str().is_some_and(|path| glob.is_match(Path::new(path))));
                (!changes.is_empty()).then_some(about)
            }
        }
    }
}

/// The files that a hook runs, as they were judged: they lie over the files while it runs, so that what is written to a file in
/// between is not run. A file that is moved into its place ends the mount; then the comparison after the run finds it.
#[derive(Default)]
struct Copies {
    files: Vec<(PathBuf, PathBuf)>,
    /// Holds the copies until the hook has ended.
    _folder: Option<tempfile::TempDir>,
}

impl Copies {
    fn of(held: &Held) -> Result<Self, String> {
        let folder = match tempfile::Builder::new().prefix("tiller-hook-").tempdir() {
            Ok(folder) => folder,
            Err(error) => {
                // The files are still compared after the run.
                tracing::warn!(%error, "no folder for copies of what a hook runs");
                return Ok(Self::default());
            }
        };
        // No program runs from there.
        let is_closed =
            |stat: rustix::fs::StatVfs| stat.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC);
        if rustix::fs::statvfs(folder.path()).is_ok_and(is_closed) {
            return Ok(Self::default());
        }
        let files = held.copies(folder.path())?;
        Ok(Self { files, _folder: Some(folder) })
    }
}

impl HookRunner {
    /// Runs one hook.
    ///
    /// # Errors
    /// When it failed and is blocking: the reason of the denial.
    async fn one(
        &self,
        hook: &Arc<Hook>,
        scene: &HookScene<'_>,
        about: &Map<String, Value>,
        cancel: &CancellationToken,
        notices: &mut Vec<Notice>,
    ) -> Result<Decision, String> {
        let time = self.config.clock.now();
        let (decided, seconds) = match self.check(hook).await {
            Err(file) => {
                let why = format!("{file} has changed since you trusted it, so the hook is not run");
                (Err(Failure::asks(why)), 0.0)
            }
            Ok((held, copies)) => {
                let input = input::input(scene, time, about);
                let (inputs, count) = match hook.claude() {
                    true => crate::claude::inputs(scene.event, &input, self.home().as_deref(), RUNS),
                    false => (vec![input], 1),
                };
                let form = OutputForm { claude: hook.claude(), before: is_before(scene.event) };
                let call = about.get("call").unwrap_or(&Value::Null);
                let (mut decided, mut took) = (unseen(count), 0.0);
                let several = count > 1;
                for input in inputs {
                    let launch = (self.launch(hook), copies.files.clone());
                    let bytes = input.to_string().into_bytes();
                    let ran = command::run(&self.host, launch, bytes, hook.timeout(), cancel).await;
                    took += ran.took.as_secs_f64();
                    let said = decision::decide(&ran, form);
                    let said = said.and_then(|said| own_arguments(hook, call, (&input, several), said));
                    decided = joined(decided, said);
                    if cancel.is_cancelled() || matches!(&decided, Ok(Decision { deny: Some(_), .. })) {
                        break;
                    }
                }
                (self.unswapped(hook, held, decided).await, took)
            }
        };
        let (outcome, why) = match &decided {
            Ok(Decision { deny: Some(reason), .. }) => (HookOutcome::Denied, reason.clone()),
            Ok(Decision { arguments: None, result: None, add: None, .. }) => {
                (HookOutcome::Passed, String::new())
            }
            Ok(_) => (HookOutcome::Changed, String::new()),
            Err(failure) => (HookOutcome::Failed, failure.why.clone()),
        };
        hook.ran(HookRun { time, seconds, outcome, why });
        match decided {
            Ok(decision) => Ok(decision),
            Err(failure) if hook.settings.blocking => Err(failure.why),
            Err(Failure { why, asks }) => {
                let asks = asks && scene.event == HookEvent::BeforeToolCall;
                if !cancel.is_cancelled() && hook.tell() {
                    let text = format!("Hook `{}` on {}: {why}.", hook.name(), scene.event.name());
                    let hint = match asks {
                        true => "The calls that it is for ask. /hooks shows its runs.",
                        false => "It is not blocking, so work goes on. /hooks shows its runs.",
                    };
                    notices.push(Notice::new(NoticeKind::Config, text).hint(hint));
                }
                Ok(Decision { ask: asks.then_some(why), ..Decision::default() })
            }
        }
    }

    /// Looks at the files that the hook runs.
    ///
    /// # Errors
    /// Names what is no longer as it was trusted.
    async fn check(&self, hook: &Hook) -> Result<(Held, Copies), String> {
        if let Some(file) = hook.swapped() {
            return Err(file);
        }
        let Some(check) = self.check_of(&hook.source) else { return Ok(Default::default()) };
        let (event, settings, confines) = (hook.event, hook.settings.clone(), self.host.confines());
        let check = move || {
            let held = check(event, &settings)?;
            let copies = if confines { Copies::of(&held)? } else { Copies::default() };
            Ok((held, copies))
        };
        let checked = tokio::task::spawn_blocking(check).await;
        checked.unwrap_or_else(|_| Err("one of its files".into()))
    }

    /// Returns the decision of a run, unless a file that it runs was replaced meanwhile: another one may have answered. A denial
    /// stands.
    async fn unswapped(
        &self,
        hook: &Hook,
        held: Held,
        decided: Result<Decision, Failure>,
    ) -> Result<Decision, Failure> {
        let look = tokio::task::spawn_blocking(move || held.changed().map(str::to_owned)).await;
        let Some(file) = look.unwrap_or_else(|_| Some("one of its files".into())) else { return decided };
        hook.set_swapped(Some(file.clone()));
        match decided {
            Ok(Decision { deny: Some(reason), .. }) => {
                Ok(Decision { deny: Some(reason), ..Decision::default() })
            }
            _ => Err(Failure::asks(format!(
                "{file} changed while the hook ran, so its answer does not count, and it is not run again until you trust it"
            ))),
        }
    }

    /// The home folder of the hooks.
    fn home(&self) -> Option<String> {
        self.config.env.now().iter().find(|(name, _)| name == "HOME").map(|(_, value)| value.clone())
    }

    fn launch(&self, hook: &Hook) -> Launch {
        let mut env = (*self.config.env.now()).clone();
        let project = tiller_protocol::names::written(&self.config.folder);
        env.push(("TILLER_EVENT".into(), hook.event.name().into()));
        env.push(("TILLER_PROJECT_DIR".into(), project.clone()));
        if hook.claude() {
            env.push(("CLAUDE_PROJECT_DIR".into(), project));
        }
        if self.check_of(&hook.source).is_some() {
            // Python would run what it compiled before, and that is not compared with what was trusted. No file can lie there.
            env.push(("PYTHONPYCACHEPREFIX".into(), "/dev/null".into()));
        }
        let args = vec!["-c".into(), hook.settings.command.clone()];
        let mut program = PathBuf::from("/bin/sh");
        if hook.claude() {
            // As there, but without the file that bash would run first.
            program = bash(&env).unwrap_or(program);
            env.retain(|(name, _)| name != "BASH_ENV");
        }
        if let Some(plugin) = &hook.folder {
            env.push(("TILLER_PLUGIN_DIR".into(), tiller_protocol::names::written(plugin)));
        }
        Launch { program, args, env, folder: self.config.folder.clone() }
    }
}

/// The bash of the system, or else the first in the folders of PATH: tools may write to one of those.
fn bash(env: &[(String, String)]) -> Option<PathBuf> {
    let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let of_path = path.split(':').filter(|folder| folder.starts_with('/'));
    let folders = ["/bin", "/usr/bin"].into_iter().chain(of_path);
    folders.map(|folder| Path::new(folder).join("bash")).find(|program| program.is_file())
}

#[cfg(test)]
#[path = "fire_tests.rs"]
mod tests;
