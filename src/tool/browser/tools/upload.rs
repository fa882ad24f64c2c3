//! `browser_upload`: gives files to a page.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{Access, ToolInfo, ToolSpec, lock, names};

use super::{acted, info, lease, on_page, stoppable};
use crate::browser::BrowserSettings;
use crate::browser::page::{Ref, host_of};
use crate::browser::report::{Extent, report};
use crate::files::path::{Place, Zone, resolve};
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

/// The access that giving a file to a page needs: the agent's own outputs leave this machine as well.
fn reads(place: &Place) -> Access {
    match place.zone {
        Zone::Spill => Access::Read { path: names::written(&place.named), inside: false },
        Zone::Inside | Zone::Outside => place.reads(),
    }
}

/// The mark of a host among the paths that a call was judged for. It is relative, and those of files are not.
fn mark(host: &str) -> PathBuf {
    PathBuf::from(format!("page of {host}"))
}

/// The host of the page at an address. No question could name where the files of a page without one go.
fn hosted(address: &str) -> Result<String, ToolError> {
    host_of(address).ok_or_else(|| {
        ToolError::Tell(
            "this page has no host, so it gets no file; open the form with browser_navigate".into(),
        )
    })
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
        let host = hosted(&cx.state.browser.url(&cx.agent).unwrap_or_default())?;
        let places = args.paths.iter().map(|path| resolve(path, cx)).collect::<Result<Vec<_>, _>>()?;
        let declared = places.iter().map(|place| place.named.clone()).chain([mark(&host)]).collect();
        cx.workspace.declared.declare(&cx.call_id, declared);
        needs.extend(places.iter().map(reads));
        Ok(needs)
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let element = checked(&args, self.0)?;
        let mut lease = lease(cx, self.0, false).await?;
        stoppable(cx, async {
            let element = lease.page().and_then(|page| page.element(element)).map_err(ToolError::Tell)?;
            let host = hosted(&lease.page().map_err(ToolError::Tell)?.url())?;
            // The user was asked about the host that it had then.
            if cx.workspace.declared.holds(&cx.call_id, &mark(&host)) == Some(false) {
                return Err(ToolError::Tell(
                    "the page is no longer of the host that was approved for this call. Look at it with browser_snapshot"
                        .into(),
                ));
            }
            let (given, paths, work) = (Arc::clone(&lease.given), args.paths.clone(), cx.clone());
            let copies = blocking("upload", move || lock(&given).copy(&paths, &work)).await?;
            let page = lease.page().map_err(ToolError::Tell)?;
            let done = page.give_files(&element, &copies.paths, &host).await;
            let gave = done.is_ok();
            if gave {
                lock(&lease.given).keep(copies);
            }
            acted(done, &mut lease)?;
            let mut said = String::new();
            if gave {
                lease.recording.on(&element, &format!("setInputFiles({})", json!(args.paths)));
                said = format!("Gave the page {}.", args.paths.join(", "));
            }
            report(&mut lease, cx, self.0, &said, Extent::Changes).await
        })
        .await?
    }
}
