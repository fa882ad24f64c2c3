//! Setting up a model in plain text: by number, with the key typed unseen. What was written before there is a
//! model is kept and sent afterwards.

use std::any::Any;

use tiller_config::Secret;
use tiller_protocol::command::SessionCommand;
use tiller_protocol::{CommandBody, ModelRef};

use super::Plain;
use crate::app::effect::{Connect, Connected, SettingEdit, Token};
use crate::app::msg::Msg;
use crate::dialog::first_run::{PROVIDERS, with_scheme};

/// A word of so many letters looks like a key.
const LIKE_A_KEY: usize = 16;

/// The step of the set-up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlainStep {
    Menu,
    Provider,
    /// The next line is the key of this provider; it is not shown.
    Key(&'static str),
    Url,
    Busy,
    Model(Vec<ModelRef>),
}

/// The choice that a number of the first list stands for.
#[derive(Clone, Debug)]
enum PlainChoice {
    Ready(ModelRef),
    Variable(String),
    Key,
    Url,
    Demo,
}

/// The set-up, while it is open, and what waits for it.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) step: Option<PlainStep>,
    /// It is to be offered once.
    pub(crate) offer: bool,
    /// Words that go out when there is a model.
    pub(super) held: Option<String>,
    /// The next model that is in use is kept for later sessions; named, or whichever it is.
    keep: Option<Option<ModelRef>>,
}

impl Plain {
    /// Offers the set-up when there is no real model and the demo model was not chosen.
    pub(crate) fn offer_setup(&mut self) {
        let model = &self.model.agent.session.model;
        if self.model.engine.ready && std::mem::take(&mut self.setup.offer) && !model.is_real() {
            self.open_setup();
        }
    }

    /// Reads the list out.
    pub(crate) fn open_setup(&mut self) {
        self.setup.step = Some(PlainStep::Menu);
        let lines: Vec<String> =
            self.menu().into_iter().enumerate().map(|(n, (_, text))| format!("{}: {text}", n + 1)).collect();
        self.say(&format!("Set up a model. Type a number; /later skips the setup.\n{}", lines.join("\n")));
        if !self.model.environment.found_agents.is_empty() {
            let all = self.model.environment.found_agents.join(", ");
            self.say(&format!(
                "Agent programs on this machine: {all}. To use one: /later, then /spawn @NAME TASK."
            ));
        }
    }

    fn menu(&self) -> Vec<(PlainChoice, String)> {
        let keys = self.model.environment.found_keys.iter().map(|k| {
            let choice =
                k.model.clone().map_or_else(|| PlainChoice::Variable(k.variable.clone()), PlainChoice::Ready);
            (choice, format!("use the key in {} ({})", k.variable, k.provider))
        });
        let fixed = [
            (PlainChoice::Key, "type or paste a key of a model provider".to_owned()),
            (PlainChoice::Url, "use a server by its base URL (a local one needs no key)".into()),
            (
                PlainChoice::Demo,
                "use the built-in demo model: no key, no network, not a language model".into(),
            ),
        ];
        keys.chain(fixed).collect()
    }

    /// Takes a line while the set-up is open; `false`: the line is not for the set-up.
    pub(crate) fn setup_line(&mut self, line: &str) -> bool {
        let Some(step) = self.setup.step.clone() else {
            // Nothing can be sent without a model: the words wait.
            let message = !line.starts_with(['/', '!']) && self.question.id.is_none();
            if !message
                || !self.model.engine.ready
                || !self.model.agent.session.model.0.is_empty()
                || self.input.script
            {
                return false;
            }
            self.hold(line);
            self.open_setup();
            return true;
        };
        let text = line.trim();
        if text == "/later" {
            self.hide(false);
            self.setup.step = None;
            self.say("Setup skipped. /setup opens it again.");
            return true;
        }
        match step {
            PlainStep::Key(provider) => {
                self.hide(false);
                if text.is_empty() {
                    self.open_setup();
                } else {
                    let key = Secret::from(text.to_owned());
                    self.connect(Connect::Key { provider: provider.into(), key }, "Testing the key");
                }
                return true;
            }
            _ if line.starts_with(['/', '!']) => return false,
            PlainStep::Menu | PlainStep::Provider | PlainStep::Model(_) => {
                return self.setup_number(&step, text);
            }
            PlainStep::Url if !text.is_empty() => {
                self.connect(Connect::Server { url: with_scheme(text) }, "Asking the server for its models");
            }
            PlainStep::Url => self.say("Type the server's URL; /later skips the setup."),
            PlainStep::Busy => self.hold(line),
        }
        true
    }

    fn setup_number(&mut self, step: &PlainStep, text: &str) -> bool {
        let Some(n) = text.parse::<usize>().ok().and_then(|n| n.checked_sub(1)) else {
            self.hold(text);
            return true;
        };
        match step {
            PlainStep::Provider => match PROVIDERS.get(n) {
                Some(provider) => {
                    // Before the question is printed: a key that is typed at once must not be shown either.
                    self.hide(true);
                    self.say(&format!(
                        "Type or paste the key of {provider} and press Enter. It is not shown. An empty line goes back."
                    ));
                    self.setup.step = Some(PlainStep::Key(provider));
                }
                None => self.say(&format!("A number from 1 to {} is needed.", PROVIDERS.len())),
            },
            PlainStep::Model(models) => match models.get(n) {
                Some(model) => self.choose_model(model.clone()),
                None => self.say(&format!("A number from 1 to {} is needed.", models.len())),
            },
            _ => {
                let menu = self.menu();
                match menu.get(n).map(|(choice, _)| choice.clone()) {
                    Some(choice) => self.setup_choice(choice),
                    None => self.say(&format!("A number from 1 to {} is needed.", menu.len())),
                }
            }
        }
        true
    }

    fn setup_choice(&mut self, choice: PlainChoice) {
        match choice {
            PlainChoice::Ready(model) => self.choose_model(model),
            PlainChoice::Demo => self.choose_model(ModelRef("demo/demo".into())),
            PlainChoice::Variable(variable) => {
                self.connect(Connect::Variable { variable }, "Testing the key");
            }
            PlainChoice::Key => {
                self.setup.step = Some(PlainStep::Provider);
                let lines: Vec<String> =
                    PROVIDERS.iter().enumerate().map(|(n, p)| format!("{}: {p}", n + 1)).collect();
                self.say(&format!("Which provider is the key for?\n{}", lines.join("\n")));
            }
            PlainChoice::Url => {
                self.setup.step = Some(PlainStep::Url);
                self.say("Type the server's base URL, for example http://localhost:11434/v1");
            }
        }
    }

    fn connect(&mut self, what: Connect, doing: &str) {
        let (Some(connect), Some(tx)) = (self.hooks.connect.clone(), self.hooks.tx.clone()) else {
            self.say("Failed: providers are set up in config.toml.");
            return;
        };
        self.setup.step = Some(PlainStep::Busy);
        self.say(&format!("{doing}..."));
        let job = move || {
            let result: Result<Connected, String> = connect(what);
            // The receiver is gone when the program has ended.
            let _ = tx.send(Msg::Job(Token(0), Box::new(result)));
        };
        // It ends by itself, with an answer or with the connection's time limits.
        if let Err(e) = std::thread::Builder::new().name("tiller-job".into()).spawn(job) {
            self.say(&format!("Failed: cannot start a thread: {e}."));
        }
    }

    /// Takes the result of the connection.
    pub(crate) fn connected(&mut self, result: Box<dyn Any + Send>) {
        let Ok(result) = result.downcast::<Result<Connected, String>>() else { return };
        match *result {
            Err(why) => {
                self.say(&format!("Not done: {why}"));
                self.open_setup();
            }
            Ok(done) => {
                if !done.models.is_empty() {
                    self.say(&done.said);
                }
                match done.models.as_slice() {
                    // A key: the engine has said so itself.
                    [] => {
                        self.setup.step = None;
                        self.keep_model(None);
                    }
                    [only] => self.choose_model(only.clone()),
                    models => {
                        let lines: Vec<String> =
                            models.iter().enumerate().map(|(n, m)| format!("{}: {m}", n + 1)).collect();
                        self.say(&format!("Which model? Type a number.\n{}", lines.join("\n")));
                        self.setup.step = Some(PlainStep::Model(models.to_vec()));
                    }
                }
            }
        }
    }

    fn choose_model(&mut self, model: ModelRef) {
        self.setup.step = None;
        self.send(CommandBody::Session(SessionCommand::SetModel { model: model.clone() }));
        self.keep_model(Some(model));
    }

    fn keep_model(&mut self, which: Option<ModelRef>) {
        self.setup.keep = Some(which);
        self.model_chosen();
    }

    /// Notes that the session's model changed, perhaps to the one chosen here.
    pub(crate) fn model_chosen(&mut self) {
        let now = self.model.agent.session.model.clone();
        let wanted = match &self.setup.keep {
            Some(Some(which)) => *which == now,
            Some(None) => now.is_real(),
            None => false,
        };
        if wanted {
            self.setup.keep = None;
            let kept =
                self.hooks.save.as_ref().map(|save| save("model", &SettingEdit::Value(now.0.clone().into())));
            if let Some(Err(why)) = kept {
                self.say(&format!("Not saved for later sessions: {why}"));
            }
        }
        if !now.0.is_empty()
            && let Some(text) = self.setup.held.take()
        {
            self.line(&text);
        }
    }

    fn hold(&mut self, text: &str) {
        // One long word at this place is most likely a key; it must not become a message.
        if self.setup.step.is_some() && text.len() >= LIKE_A_KEY && !text.contains(char::is_whitespace) {
            return self.say(
                "Not accepted: this looks like a key. Choose its provider first; then the input \
                    is hidden.",
            );
        }
        match &mut self.setup.held {
            Some(there) => {
                there.push('\n');
                there.push_str(text);
            }
            None => self.setup.held = Some(text.to_owned()),
        }
        self.say("Saved. Your message is sent as soon as a model is set up.");
    }

    /// Shows what is typed no more, or again. Nothing happens where there is no terminal.
    pub(crate) fn hide(&mut self, hide: bool) {
        if self.input.hidden == hide {
            return;
        }
        let stdin = std::io::stdin();
        let Ok(mut modes) = rustix::termios::tcgetattr(&stdin) else { return };
        modes.local_modes.set(rustix::termios::LocalModes::ECHO, !hide);
        if rustix::termios::tcsetattr(&stdin, rustix::termios::OptionalActions::Now, &modes).is_ok() {
            self.input.hidden = hide;
            if !hide {
                // The Enter was not shown either.
                self.say("");
            }
        }
    }
}
