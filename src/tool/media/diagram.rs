//! `render_diagram`: a picture of a diagram, by an installed renderer; of Mermaid also as text, without one.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};

use super::checked;
use super::program::{Renderers, Run, access, made};
use super::saved::{declared, ending, ready, save};
use crate::files::image_parts;
use crate::guard::blocking;
use crate::output::human;
use crate::shell::own_folder;
use crate::text::clean;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Characters of a source, and of one that is drawn as text.
const SOURCE: usize = 200_000;
const TEXT_SOURCE: usize = 20_000;
/// Longest time of drawing as text.
const TEXT_TIME: Duration = Duration::from_secs(20);
/// Columns of a diagram in text.
const COLUMNS: usize = 100;
const ENDINGS: &[&str] = &["svg", "png", "txt"];

/// The tool.
pub(super) struct RenderDiagram(pub(super) &'static Renderers);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Mermaid,
    #[serde(alias = "graphviz")]
    Dot,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    source: String,
    kind: Kind,
    #[serde(alias = "file_path")]
    path: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "render_diagram",
    set: ToolSet::Media,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Write,
    rule: RuleArgument::WritePath,
    aliases: &["diagram", "mermaid", "graphviz"],
    verb: ToolVerb::Draw,
    target: |args| schema::text(args, "path"),
};

impl Args {
    fn read(args: &Value) -> Result<Self, ToolError> {
        let args: Self = schema::read(args)?;
        checked(&args.source, "source", SOURCE)?;
        Ok(args)
    }

    /// The program that draws it; `None`: Tiller itself does, as text.
    ///
    /// # Errors
    /// What is to be installed, or what cannot be drawn.
    fn renderer<'a>(&self, renderers: &'a Renderers) -> Result<Option<&'a Path>, ToolError> {
        let missing = |what: &str| Err(ToolError::Tell(what.into()));
        match (self.kind, ending(&self.path).as_str()) {
            (Kind::Mermaid, "txt") => Ok(None),
            (Kind::Dot, "txt") => missing("Graphviz is drawn as .svg or .png; only Mermaid is drawn as .txt"),
            (Kind::Dot, _) => match &renderers.dot {
                Some(dot) => Ok(Some(dot)),
                None => missing(
                    "Graphviz is not installed here: the user can install it (apt install graphviz, brew install graphviz)",
                ),
            },
            (Kind::Mermaid, _) => match &renderers.mmdc {
                Some(mmdc) => Ok(Some(mmdc)),
                None => missing(
                    "the renderer of Mermaid is not installed here: the user can install it (npm install -g \
                     @mermaid-js/mermaid-cli). Without it a .txt path draws the diagram as text",
                ),
            },
        }
    }
}

#[async_trait]
impl Tool for RenderDiagram {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("diagram.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args = Args::read(args)?;
        let mut needs: Vec<Access> = declared(Some(&args.path), ENDINGS, cx)?.into_iter().collect();
        needs.extend(args.renderer(self.0)?.and_then(|program| access(program, cx)));
        Ok(needs)
    }

    async fn ready(&self, args: &Value, cx: &ToolCx, show: bool) -> Result<(), ToolError> {
        ready(Some(Args::read(args)?.path), cx, show).await
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args = Args::read(&args)?;
        let Some(program) = args.renderer(self.0)? else { return as_text(args, cx).await };
        let ending = ending(&args.path);
        let bytes = self.draw(program, &args, &ending, cx).await?;
        let fits = match ending.as_str() {
            "png" => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
            _ => std::str::from_utf8(&bytes).is_ok_and(|text| text.contains("<svg")),
        };
        if !fits {
            return Err(ToolError::Tell(format!("the renderer made no {ending} file; nothing was written")));
        }
        let size = human(bytes.len() as u64);
        let picture = (ending == "png").then(|| bytes.clone());
        let saved = save(Some(args.path), "svg", bytes, cx).await?;
        let name = saved.name.clone();
        let mut out = saved.report(format!("drew {name}, {size}"), size);
        if let Some(bytes) = picture {
            out.content = image_parts(&name, "image/png", &bytes);
        }
        Ok(out)
    }
}

impl RenderDiagram {
    async fn draw(
        &self,
        program: &Path,
        args: &Args,
        ending: &str,
        cx: &ToolCx,
    ) -> Result<Vec<u8>, ToolError> {
        let tell =
            |e: std::io::Error| ToolError::Tell(format!("a temporary folder could not be written: {e}"));
        let folder = own_folder::make("draw").map_err(tell)?;
        let (source, out) = match args.kind {
            Kind::Dot => ("in.dot", format!("out.{ending}")),
            Kind::Mermaid => ("in.mmd", format!("out.{ending}")),
        };
        std::fs::write(folder.path().join(source), &args.source).map_err(tell)?;
        let options = match args.kind {
            Kind::Dot => vec![format!("-T{ending}"), "-o".into(), out.clone(), source.into()],
            Kind::Mermaid => {
                let mut options = ["-q", "-i", source, "-o", &out].map(str::to_owned).to_vec();
                if let Some(chromium) = &self.0.chromium {
                    let file = folder.path().join(PUPPETEER);
                    std::fs::write(file, puppeteer(chromium, cx)).map_err(tell)?;
                    options.extend(["-p".to_owned(), PUPPETEER.to_owned()]);
                }
                options
            }
        };
        let run = Run { program, args: options, folder: folder.path(), time: self.0.time() };
        run.finish(cx).await?;
        made(&folder.path().join(out), program)
    }
}

/// The settings of the browser that Mermaid's command line starts.
const PUPPETEER: &str = "puppeteer.json";

fn puppeteer(chromium: &Path, cx: &ToolCx) -> String {
    let mut settings = serde_json::json!({ "executablePath": chromium });
    // The browser's own sandbox cannot be made within ours, which holds it as tightly.
    if cx.reading_confiner().is_some_and(|confiner| confiner.confines()) {
        settings["args"] = serde_json::json!(["--no-sandbox"]);
    }
    settings.to_string()
}

/// Draws Mermaid with the characters of frames.
async fn as_text(args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
    let source = args.source.clone();
    checked(&source, "source", TEXT_SOURCE)?;
    let draw = blocking("render_diagram", move || {
        mermaid_text::render_with_width(&source, Some(COLUMNS)).map_err(|e| {
            ToolError::Tell(format!(
                "the Mermaid source cannot be drawn: {}",
                clean(e.to_string().as_bytes())
            ))
        })
    });
    let text = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Err(ToolError::Interrupted(String::new())),
        text = draw => clean(text?.as_bytes()),
        () = tokio::time::sleep(TEXT_TIME) => {
            return Err(ToolError::TimedOut("the diagram is too large to be drawn as text".into()));
        }
    };
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = format!("{}\n", lines.join("\n").trim_matches('\n'));
    let said = crate::output::bound(text.clone(), cx);
    let saved = save(Some(args.path), "txt", text.into_bytes(), cx).await?;
    let said = format!("drew {}:\n{said}", saved.name);
    Ok(saved.report(said, String::new()))
}
