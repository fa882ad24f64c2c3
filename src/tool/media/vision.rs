//! `vision_analyze`: a question about an image, to a model that sees.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, ToolInfo, ToolSpec, ToolVerb, Touch, Usage};

use super::endpoint::{chat, tokens};
use super::{MediaSettings, checked, configured, words};
use crate::files::image_info;
use crate::files::path::beneath;
use crate::files::path::{declare, resolve};
use crate::foreign::framed;
use crate::guard::blocking;
use crate::output::bound;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Characters of a question.
const QUESTION: usize = 20_000;
/// Tokens of an image, estimated.
const IMAGE_TOKENS: u64 = 1_600;

/// The tool.
pub(super) struct VisionAnalyze(pub(super) &'static MediaSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default, alias = "file_path")]
    path: Option<String>,
    #[serde(default)]
    attachment: Option<usize>,
    question: String,
}

impl Args {
    fn read(args: &Value) -> Result<Self, ToolError> {
        let args: Self = schema::read(args)?;
        checked(&args.question, "question", QUESTION)?;
        match (&args.path, args.attachment) {
            (Some(_), Some(_)) => Err(ToolError::Tell("pass path or attachment, not both".into())),
            (None, None | Some(0)) => Err(ToolError::Tell(
                "pass the path of an image, or attachment: 1 for the first one of the user".into(),
            )),
            _ => Ok(args),
        }
    }
}

const INFO: ToolInfo = super::info(
    "vision_analyze",
    ToolVerb::LookAt,
    Touch::Network,
    &["analyze_image", "describe_image"],
    |args| match args.get("attachment").and_then(Value::as_u64) {
        Some(number) => format!("image {number}"),
        None => schema::text(args, "path"),
    },
);

#[async_trait]
impl Tool for VisionAnalyze {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("vision.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args = Args::read(args)?;
        let mut needs = vec![configured(self.0.vision.as_ref(), "vision")?.access("chat/completions")?];
        if let Some(path) = &args.path {
            let place = resolve(path, cx)?;
            declare(cx, &[&place]);
            needs.push(place.reads());
        }
        Ok(needs)
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args = Args::read(&args)?;
        let endpoint = configured(self.0.vision.as_ref(), "vision")?;
        let (name, bytes) = match (args.path, args.attachment) {
            (Some(path), _) => read(path, cx).await?,
            (None, number) => {
                let number = number.unwrap_or(1);
                let data = cx.ports.attached_image(number).await.map_err(ToolError::Tell)?;
                let bytes = STANDARD.decode(data.as_bytes());
                (
                    format!("image {number}"),
                    bytes.map_err(|_| ToolError::Tell("the image is damaged".into()))?,
                )
            }
        };
        let Some((media_type, width, height)) = image_info(&bytes) else {
            return Err(ToolError::Tell(format!(
                "{name} is not a complete PNG, JPEG, GIF or WebP image of at most 3.7 MB and 8000 pixels a side"
            )));
        };
        let question = args.question.trim();
        let content = json!([
            {"type": "text", "text": question},
            {"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{}", STANDARD.encode(&bytes))}},
        ]);
        let estimate = Usage { input: tokens(question) + IMAGE_TOKENS, output: 300, ..Usage::default() };
        let said = chat(endpoint, cx, "vision", content, estimate, self.0.time()).await?;
        let measure = format!("{width}x{height}, {}", words(&endpoint.model, 40));
        let said = framed(format_args!("{} about {name}", endpoint.model), &bound(said, cx), "");
        Ok(ToolOutput::text(said).show(Display::Measure { text: measure }))
    }
}

/// The file at `path`, whole.
pub(crate) async fn read(path: String, cx: &ToolCx) -> Result<(String, Vec<u8>), ToolError> {
    let cx = cx.clone();
    blocking("read", move || {
        let place = resolve(&path, &cx)?;
        let mut opened = beneath::open_file(&place, &cx)?;
        let bytes = beneath::read_whole(&mut opened, &place.name, &cx.cancel)?;
        Ok((place.name, bytes))
    })
    .await
}
