//! `make_document`: a document from a Markdown file, by pandoc.

use std::path::Path;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch, names};

use super::program::{Renderers, Run, access, made};
use super::saved::{declared, ending, ready, save};
use crate::files::path::beneath;
use crate::files::path::{declare, resolve, to_write};
use crate::guard::blocking;
use crate::output::human;
use crate::shell::own_folder;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

const ENDINGS: &[&str] = &["pdf", "docx", "pptx", "html"];
/// Bytes of a source.
const SOURCE: usize = 8 << 20;

/// The tool.
pub(super) struct MakeDocument(pub(super) &'static Renderers);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Markdown file
    source: String,
    #[serde(alias = "file_path")]
    path: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "make_document",
    set: ToolSet::Media,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Write,
    rule: RuleArgument::WritePath,
    aliases: &["pandoc", "document", "make_pdf"],
    verb: ToolVerb::Write,
    target: |args| schema::text(args, "path"),
};

/// The programs for a document of this kind: pandoc, and what makes PDF files.
///
/// # Errors
/// What is to be installed.
fn programs<'a>(ending: &str, renderers: &'a Renderers) -> Result<(&'a Path, Option<&'a Path>), ToolError> {
    let Some(pandoc) = &renderers.pandoc else {
        return Err(ToolError::Tell(
            "pandoc is not installed here: the user can install it (apt install pandoc, brew install pandoc), and typst \
             for PDF"
                .into(),
        ));
    };
    match (ending, &renderers.pdf) {
        ("pdf", None) => Err(ToolError::Tell(
            "pandoc needs a second program for PDF, and none is installed here: the user can install typst, weasyprint or \
             a LaTeX. Without one a .docx or .html path can be made"
                .into(),
        )),
        ("pdf", Some(pdf)) => Ok((pandoc, Some(pdf))),
        _ => Ok((pandoc, None)),
    }
}

#[async_trait]
impl Tool for MakeDocument {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("document.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        let source = resolve(&args.source, cx)?;
        let writes = declared(Some(&args.path), ENDINGS, cx)?;
        let target = to_write(&args.path, cx)?;
        declare(cx, &[&source, &target]);
        let (pandoc, _) = programs(&ending(&args.path), self.0)?;
        Ok([source.reads()].into_iter().chain(writes).chain(access(pandoc, cx)).collect())
    }

    async fn ready(&self, args: &Value, cx: &ToolCx, show: bool) -> Result<(), ToolError> {
        ready(Some(schema::read::<Args>(args)?.path), cx, show).await
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let ending = ending(&args.path);
        let (pandoc, pdf) = programs(&ending, self.0)?;
        let (text, beside) = source(args.source.clone(), cx).await?;
        let tell =
            |e: std::io::Error| ToolError::Tell(format!("a temporary folder could not be written: {e}"));
        let folder = own_folder::make("document").map_err(tell)?;
        std::fs::write(folder.path().join("in.md"), text).map_err(tell)?;
        let out = format!("out.{ending}");
        let options = options(&beside, &out, pdf);
        Run { program: pandoc, args: options, folder: folder.path(), time: self.0.time() }.finish(cx).await?;
        let bytes = made(&folder.path().join(&out), pandoc)?;
        let fits = match ending.as_str() {
            "pdf" => bytes.starts_with(b"%PDF-"),
            "html" => std::str::from_utf8(&bytes).is_ok_and(|text| text.contains("<html")),
            _ => bytes.starts_with(b"PK\x03\x04"),
        };
        if !fits {
            return Err(ToolError::Tell(format!("pandoc made no {ending} file; nothing was written")));
        }
        let size = human(bytes.len() as u64);
        let saved = save(Some(args.path), "html", bytes, cx).await?;
        let said = format!("wrote {}: {ending}, {size}", saved.name);
        Ok(saved.report(said, size))
    }
}

/// The content of the source, and the folder that it names its images from.
pub(crate) async fn source(path: String, cx: &ToolCx) -> Result<(Vec<u8>, String), ToolError> {
    let cx = cx.clone();
    blocking("read", move || {
        let place = resolve(&path, &cx)?;
        let mut opened = beneath::open_file(&place, &cx)?;
        let bytes = beneath::read_whole(&mut opened, &place.name, &cx.cancel)?;
        if bytes.len() > SOURCE {
            return Err(ToolError::Tell(format!("{} is larger than {}", place.name, human(SOURCE as u64))));
        }
        let beside = place.path.parent().map(names::written).unwrap_or_default();
        Ok((bytes, beside))
    })
    .await
}

/// The arguments of pandoc.
fn options(beside: &str, out: &str, pdf: Option<&Path>) -> Vec<String> {
    let mut args = vec![
        // Raw LaTeX could read files, and write them.
        "--from=markdown-raw_tex-raw_attribute".to_owned(),
        "--standalone".into(),
        format!("--resource-path={beside}"),
        // Without a title pandoc complains, and takes the name of the file.
        "--metadata=pagetitle:Document".into(),
    ];
    if out.ends_with(".html") {
        // The name that old versions know, too.
        args.push("--self-contained".into());
    }
    if let Some(pdf) = pdf {
        args.push(format!("--pdf-engine={}", names::written(pdf)));
    }
    args.extend(["-o".into(), out.into(), "in.md".into()]);
    args
}
