//! `image_generate`: an image by its description.

use std::io::Cursor;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ImageFormat, ImageReader};
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{Access, ToolInfo, ToolSpec, ToolVerb, Touch, Usage};

use super::endpoint::{Endpoint, MEDIA_BYTES, tokens, usage};
use super::saved::{declared, ending, ready, save};
use super::{MediaSettings, checked, configured, progress, words};
use crate::files::image_parts;
use crate::guard::blocking;
use crate::output::human;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Characters of a description.
const PROMPT: usize = 30_000;
const ENDINGS: &[&str] = &["png", "jpg", "jpeg", "webp"];
/// Pixels of a side, and bytes of memory for decoding.
const SIDE: u32 = 16_384;
const MEMORY: u64 = 256 << 20;

/// The tool.
pub(super) struct ImageGenerate(pub(super) &'static MediaSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    prompt: String,
    /// Such as 1024x1024
    #[serde(default)]
    size: Option<String>,
    /// .png, .jpg or .webp
    #[serde(default, alias = "file_path")]
    path: Option<String>,
}

impl Args {
    fn read(args: &Value) -> Result<Self, ToolError> {
        let args: Self = schema::read(args)?;
        checked(&args.prompt, "prompt", PROMPT)?;
        let sides = |size: &str| {
            let (w, h) = size.split_once('x')?;
            let side = |s: &str| s.parse::<u32>().ok().filter(|n| (16..=SIDE).contains(n));
            side(w).zip(side(h))
        };
        match args.size.as_deref() {
            Some(size) if size != "auto" && sides(size).is_none() => {
                Err(ToolError::Tell("size is WIDTHxHEIGHT in pixels, such as 1024x1024, or auto".into()))
            }
            _ => Ok(args),
        }
    }
}

const INFO: ToolInfo = super::info(
    "image_generate",
    ToolVerb::Draw,
    Touch::Write,
    &["generate_image", "draw", "dalle"],
    |args| match schema::text(args, "path") {
        path if path.is_empty() => words(&schema::text(args, "prompt"), 60),
        path => path,
    },
);

#[async_trait]
impl Tool for ImageGenerate {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("generate.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args = Args::read(args)?;
        let mut needs = vec![configured(self.0.image.as_ref(), "image")?.access("images/generations")?];
        needs.extend(declared(args.path.as_deref(), ENDINGS, cx)?);
        Ok(needs)
    }

    async fn ready(&self, args: &Value, cx: &ToolCx, show: bool) -> Result<(), ToolError> {
        ready(Args::read(args)?.path, cx, show).await
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args = Args::read(&args)?;
        let endpoint = configured(self.0.image.as_ref(), "image")?;
        ready(args.path.clone(), cx, true).await?;
        progress(cx, format!("{} draws", endpoint.model));
        let bytes = self.draw(endpoint, &args, cx).await?;
        let wanted = args.path.as_deref().map(ending);
        let Picture { bytes, kind, sides } =
            blocking("image", move || picture(bytes, wanted.as_deref())).await?;
        let size = human(bytes.len() as u64);
        let measure = format!("{}x{}, {size}", sides.0, sides.1);
        let shown = bytes.clone();
        let saved =
            save(args.path, kind.extensions_str().first().copied().unwrap_or("png"), bytes, cx).await?;
        let parts = image_parts(&saved.name, kind.to_mime_type(), &shown);
        let mut out = saved.report("", measure);
        out.content = parts;
        Ok(out)
    }
}

impl ImageGenerate {
    /// The bytes that the server made.
    async fn draw(&self, endpoint: &Endpoint, args: &Args, cx: &ToolCx) -> Result<Vec<u8>, ToolError> {
        let prompt = args.prompt.trim();
        let mut body =
            json!({"model": endpoint.model, "prompt": prompt, "n": 1, "response_format": "b64_json"});
        if let Some(size) = &args.size {
            body["size"] = json!(size);
        }
        let estimate = Usage { input: tokens(prompt), output: 4_000, ..Usage::default() };
        let ask = |body: Value| async move {
            let limits = (MEDIA_BYTES, self.0.time());
            endpoint.ask(cx, ("image", "images/generations"), &body, estimate, limits).await
        };
        let mut answer = match ask(body.clone()).await {
            // Models that only know this form refuse its name.
            Err(ToolError::Tell(why)) if why.contains("response_format") => {
                body.as_object_mut().map(|body| body.remove("response_format"));
                ask(body).await?
            }
            other => other?,
        };
        let wrong = |why: &str| ToolError::Tell(format!("{}: {why}", endpoint.host()));
        let reply: Value =
            serde_json::from_slice(&answer.body).map_err(|_| wrong("its answer is no JSON"))?;
        answer.bill.counted(usage(&reply));
        drop(answer);
        if let Some(data) = reply.pointer("/data/0/b64_json").and_then(Value::as_str) {
            return STANDARD.decode(data.trim()).map_err(|_| wrong("its image is damaged (base64)"));
        }
        let Some(url) = reply.pointer("/data/0/url").and_then(Value::as_str) else {
            return Err(wrong("its answer holds no image"));
        };
        let url = Url::parse(url).map_err(|_| wrong("the address of its image is none"))?;
        let own = endpoint.access("").ok().is_some_and(|access| same_server(&access, &url));
        crate::web::download(url, own, MEDIA_BYTES as u64, cx).await
    }
}

/// Whether `url` is of the server that the settings name.
fn same_server(access: &Access, url: &Url) -> bool {
    let Access::Net { url: own, .. } = access else { return false };
    Url::parse(own).is_ok_and(|own| own.origin() == url.origin())
}

/// An image that was checked.
struct Picture {
    bytes: Vec<u8>,
    kind: ImageFormat,
    sides: (u32, u32),
}

/// Checks that it is an image, and gives it the format that the ending wants.
fn picture(bytes: Vec<u8>, wanted: Option<&str>) -> Result<Picture, ToolError> {
    let tell = |why: &str| ToolError::Tell(format!("the server sent no image that can be used: {why}"));
    let kind = image::guess_format(&bytes)
        .ok()
        .filter(|k| matches!(k, ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP | ImageFormat::Gif))
        .ok_or_else(|| tell("it is neither PNG, JPEG, WebP nor GIF"))?;
    let mut limits = image::Limits::default();
    (limits.max_image_width, limits.max_image_height, limits.max_alloc) =
        (Some(SIDE), Some(SIDE), Some(MEMORY));
    let mut reader = ImageReader::with_format(Cursor::new(&bytes), kind);
    reader.limits(limits);
    let decoded = reader.decode().map_err(|e| tell(&e.to_string()))?;
    let sides = (decoded.width(), decoded.height());
    let target = match wanted {
        Some("png") => ImageFormat::Png,
        Some("jpg" | "jpeg") => ImageFormat::Jpeg,
        Some("webp") => ImageFormat::WebP,
        _ => kind,
    };
    if target == kind {
        return Ok(Picture { bytes, kind, sides });
    }
    let mut out = Cursor::new(Vec::new());
    let opaque = target == ImageFormat::Jpeg;
    let decoded =
        if opaque { decoded.into_rgb8().into() } else { image::DynamicImage::from(decoded.into_rgba8()) };
    decoded.write_to(&mut out, target).map_err(|e| tell(&e.to_string()))?;
    Ok(Picture { bytes: out.into_inner(), kind: target, sides })
}
