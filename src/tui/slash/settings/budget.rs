//! `/budget`.

use tiller_protocol::CommandBody;
use tiller_protocol::command::SessionCommand;

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/budget`
pub(crate) struct Budget;

impl SlashCommand for Budget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn help(&self) -> &'static str {
        "Set this session's budget in dollars"
    }

    fn usage(&self) -> &'static str {
        "/budget USD"
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        let usd: f64 = args
            .trim_start_matches('$')
            .parse()
            .map_err(|_| "Write an amount in dollars, for example /budget 2.50".to_owned())?;
        if !usd.is_finite() || usd < 0.0 {
            return Err("A budget is an amount in dollars, 0 or more.".into());
        }
        Ok(vec![Effect::send(CommandBody::Session(SessionCommand::SetBudget { usd }))])
    }
}
