//! `browser_press`: presses a key.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, ToolInfo, ToolSpec};

use super::dialog::{Answer, answer};
use super::{acted, info, lease, on_page, stoppable};
use crate::browser::BrowserSettings;
use crate::browser::report::{Extent, report};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub(super) struct Press(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// As Enter, ArrowDown, a, Control+A
    key: String,
    #[serde(default)]
    times: Option<u32>,
    /// The answer to a dialog that opens, as of browser_click.
    #[serde(default)]
    #[schemars(skip)]
    dialog: Option<Answer>,
    #[serde(default)]
    #[schemars(skip)]
    dialog_text: Option<String>,
}

/// Greatest number of presses of one call.
const TIMES: u32 = 100;

#[async_trait]
impl Tool for Press {
    fn info(&self) -> ToolInfo {
        info("browser_press", &["press_key"], |args| format!("press {}", schema::text(args, "key")))
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("press.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        answer(args.dialog, args.dialog_text.as_deref())?;
        on_page(cx)
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let mut lease = lease(cx, self.0, false).await?;
        stoppable(cx, async {
            let page = lease.page().map_err(ToolError::Tell)?;
            let _answers = page.answer_dialogs(answer(args.dialog, args.dialog_text.as_deref())?);
            let mut done = Ok(());
            for _ in 0..args.times.unwrap_or(1).clamp(1, TIMES) {
                done = page.press(&args.key).await;
                if done.is_err() {
                    break;
                }
            }
            acted(done, &mut lease)?;
            lease.recording.press(&args.key);
            report(&mut lease, cx, self.0, "", Extent::Changes).await
        })
        .await?
    }
}
