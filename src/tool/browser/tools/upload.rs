//! `browser_upload`: gives files to a page.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{Access, ToolInfo, ToolSpec, lock, names};

use super::{acted, info, lease, on_page, stoppable};
use crate::browser::BrowserSettings;
use crate::browser::page::Ref;
use crate::browser::report::{Extent, report};
use crate::files::path::{Place, Zone, declare, resolve};
use crate::guard::blocking;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Files of one call.
const FILES: usize = 10;

/// The tool.
pub(super) struct Upload(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    r#ref: String,
    paths: Vec<String>,
}

/// The element that a call names, if its arguments are right.
fn checked(args: &Args, settings: &BrowserSettings) -> Result<Ref, ToolError> {
    if settings.remote.is_some() {
        return Err(ToolError::Tell(
            "the browser runs elsewhere (browser.url) and cannot read files of this machine".into(),
        ));
    }
    if args.paths.is_empty() || args.paths.len() > FILES {
        return Err(ToolError::Tell(format!("pass 1 to {FILES} paths")));
    }
    Ref::parse(&args.r#ref).map_err(ToolError::Tell)
}

/// What giving a file to a page needs of the file: the agent's own outputs leave this machine as well.
fn reads(place: &Place) -> Access {
    match place.zone {
        Zone::Spill => Access::Read { path: names::written(&place.named), inside: false },
        Zone::Inside | Zone::Outside => place.reads(),
    }
}

#[async_trait]
impl Tool for Upload {
    fn info(&self) -> ToolInfo {
        info("browser_upload", &["upload", "browser_file_upload"], |args| {
            let paths: Vec<&str> =
                args["paths"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            format!("upload {}", paths.join(", "))
        })
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("upload.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        checked(&args, self.0)?;
        let mut needs = on_page(cx)?;
        let places = args.paths.iter().map(|path| resolve(path, cx)).collect::<Result<Vec<_>, _>>()?;
        declare(cx, &places.iter().collect::<Vec<_>>());
        needs.extend(places.iter().map(reads));
        Ok(needs)
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let element = checked(&args, self.0)?;
        let mut lease = lease(cx, self.0, false).await?;
        stoppable(cx, async {
            let element = lease.page().and_then(|page| page.element(element)).map_err(ToolError::Tell)?;
            let (given, paths, work) = (Arc::clone(&lease.given), args.paths.clone(), cx.clone());
            let copies = blocking("upload", move || lock(&given).copy(&paths, &work)).await?;
            let page = lease.page().map_err(ToolError::Tell)?;
            let done = page.give_files(&element, &copies).await;
            acted(done, &mut lease)?;
            lease.recording.on(&element, &format!("setInputFiles({})", json!(args.paths)));
            let done = format!("Gave the page {}.", args.paths.join(", "));
            report(&mut lease, cx, self.0, &done, Extent::Changes).await
        })
        .await?
    }
}
