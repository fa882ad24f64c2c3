//! `browser_type`: types into a field, chooses from a list.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{Access, ToolInfo, ToolSpec};

use super::dialog::{Answer, answer};
use super::{acted, info, lease, on_page, stoppable};
use crate::browser::BrowserSettings;
use crate::browser::page::{Ref, Typed};
use crate::browser::report::{Extent, report};
use crate::guard::no_masks;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub(super) struct Type(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    r#ref: String,
    text: String,
    /// Type after what is there
    #[serde(default)]
    append: bool,
    /// Press Enter afterwards
    #[serde(default)]
    submit: bool,
    /// The answer to a dialog that opens, as of browser_click.
    #[serde(default)]
    #[schemars(skip)]
    dialog: Option<Answer>,
    #[serde(default)]
    #[schemars(skip)]
    dialog_text: Option<String>,
}

#[async_trait]
impl Tool for Type {
    fn info(&self) -> ToolInfo {
        info("browser_type", &["type", "fill"], |args| {
            format!("type {:?} into {}", schema::text(args, "text"), schema::text(args, "ref"))
        })
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("type_text.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        Ref::parse(&args.r#ref).map_err(ToolError::Tell)?;
        no_masks(&args.text)?;
        answer(args.dialog, args.dialog_text.as_deref())?;
        on_page(cx)
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let mut lease = lease(cx, self.0, false).await?;
        stoppable(cx, async {
            let answer = answer(args.dialog, args.dialog_text.as_deref())?;
            let _answers = lease.page().map_err(ToolError::Tell)?.answer_dialogs(answer);
            let done = act(&args, &mut lease).await;
            acted(done, &mut lease)?;
            report(&mut lease, cx, self.0, "", Extent::Changes).await
        })
        .await?
    }
}

async fn act(args: &Args, lease: &mut crate::browser::lease::Lease) -> Result<(), String> {
    let page = lease.page()?;
    let element = page.element(Ref::parse(&args.r#ref)?)?;
    let typed = page.type_into(&element, &args.text, !args.append).await?;
    if args.submit {
        page.press("Enter").await?;
    }
    let method = if typed == Typed::Chosen { "selectOption" } else { "fill" };
    lease.recording.on(&element, &format!("{method}({})", json!(args.text)));
    if args.submit {
        lease.recording.press("Enter");
    }
    Ok(())
}
