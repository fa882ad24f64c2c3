//! `browser_click`: clicks or drags an element.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, ToolInfo, ToolSpec};

use super::dialog::{Answer, answer};
use super::{acted, info, lease, on_page, stoppable};
use crate::browser::BrowserSettings;
use crate::browser::page::{Aim, Button, Drop, Ref};
use crate::browser::report::{Extent, report};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub(super) struct Click(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    r#ref: Option<String>,
    /// Pixels from the ref's corner, or of the view
    #[serde(default)]
    x: Option<f64>,
    #[serde(default)]
    y: Option<f64>,
    // The description names the rest: used seldom, and every byte of the schema is sent with every session.
    /// none: only moves the mouse there.
    #[serde(default)]
    #[schemars(skip)]
    button: Button,
    #[serde(default)]
    #[schemars(skip)]
    double: bool,
    /// Drags it to this ref instead of clicking.
    #[serde(default)]
    #[schemars(skip)]
    drag_to: Option<String>,
    /// Drags it by these pixels, to the right and down.
    #[serde(default)]
    #[schemars(skip)]
    drag_by: Option<[f64; 2]>,
    /// The answer to a dialog that opens; without one an alert is closed, a page is left, and any other is dismissed.
    #[serde(default)]
    #[schemars(skip)]
    dialog: Option<Answer>,
    /// Typed into a prompt, which is accepted.
    #[serde(default)]
    #[schemars(skip)]
    dialog_text: Option<String>,
}

impl Args {
    fn inside(&self) -> Result<Option<(f64, f64)>, ToolError> {
        match (self.x, self.y) {
            (Some(x), Some(y)) if x.is_finite() && y.is_finite() => Ok(Some((x, y))),
            (None, None) => Ok(None),
            _ => Err(ToolError::Tell("x and y go together".into())),
        }
    }

    fn check(&self) -> Result<(), ToolError> {
        for name in self.r#ref.iter().chain(&self.drag_to) {
            Ref::parse(name).map_err(ToolError::Tell)?;
        }
        if self.r#ref.is_none() && self.inside()?.is_none() {
            return Err(ToolError::Tell("pass a ref of the snapshot, or x and y".into()));
        }
        if self.drag_by.is_some_and(|by| self.drag_to.is_some() || by.iter().any(|n| !n.is_finite())) {
            return Err(ToolError::Tell("pass drag_to or drag_by, not both".into()));
        }
        answer(self.dialog, self.dialog_text.as_deref())?;
        self.inside().map(|_| ())
    }
}

#[async_trait]
impl Tool for Click {
    fn info(&self) -> ToolInfo {
        info("browser_click", &["click"], |args| {
            match (schema::text(args, "ref"), schema::text(args, "drag_to")) {
                (from, to) if !to.is_empty() => format!("drag {from} to {to}"),
                (from, _) if !args["drag_by"].is_null() => format!("drag {from}"),
                (element, _) if element.is_empty() => format!("click at {}, {}", args["x"], args["y"]),
                (element, _) => format!("click {element}"),
            }
        })
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("click.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?.check()?;
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
    let inside = args.inside().ok().flatten();
    let page = lease.page()?;
    let element = args.r#ref.as_deref().map(|name| page.element(Ref::parse(name)?)).transpose()?;
    let aim = |inside| match (&element, inside) {
        (Some(element), inside) => Ok(Aim::Element(element.clone(), inside)),
        (None, Some((x, y))) => Ok(Aim::At(x, y)),
        (None, None) => Err("pass a ref of the snapshot, or x and y".to_owned()),
    };
    if let Some(to) = &args.drag_to {
        let to = page.element(Ref::parse(to)?)?;
        page.drag(aim(inside)?, Drop::On(to.clone())).await?;
        if let Some(from) = element {
            lease.recording.drag(&from, &to);
        }
        return Ok(());
    }
    if let Some([x, y]) = args.drag_by {
        return page.drag(aim(inside)?, Drop::By(x, y)).await;
    }
    page.click(aim(inside)?, args.button, if args.double { 2 } else { 1 }).await?;
    if args.button == Button::None {
        return Ok(());
    }
    match (element, inside) {
        (Some(element), _) => {
            lease.recording.on(&element, if args.double { "dblclick()" } else { "click()" });
        }
        (None, Some((x, y))) => lease.recording.click_at(x, y),
        (None, None) => {}
    }
    Ok(())
}
