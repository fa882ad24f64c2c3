//! `text_to_speech`: a text as an audio file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{Access, ToolInfo, ToolSpec, ToolVerb, Touch, Usage};

use super::endpoint::MEDIA_BYTES;
use super::saved::{declared, ending, ready, save};
use super::{MediaSettings, checked, configured, progress, words};
use crate::output::human;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Characters of a text.
const TEXT: usize = 20_000;
const ENDINGS: &[&str] = &["mp3", "wav", "opus", "ogg", "flac", "aac"];
/// Where neither the call nor the settings name one.
const VOICE: &str = "alloy";

/// The tool.
pub(super) struct TextToSpeech(pub(super) &'static MediaSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    text: String,
    #[serde(default)]
    voice: Option<String>,
    /// .mp3, .wav, .opus, .flac or .aac
    #[serde(default, alias = "file_path")]
    path: Option<String>,
}

fn read(args: &Value) -> Result<Args, ToolError> {
    let args: Args = schema::read(args)?;
    checked(&args.text, "text", TEXT)?;
    Ok(args)
}

const INFO: ToolInfo =
    super::info("text_to_speech", ToolVerb::Speak, Touch::Write, &["tts", "speak", "say"], |args| {
        match schema::text(args, "path") {
            path if path.is_empty() => words(&schema::text(args, "text"), 60),
            path => path,
        }
    });

#[async_trait]
impl Tool for TextToSpeech {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("speech.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args = read(args)?;
        let mut needs = vec![configured(self.0.speech.as_ref(), "speech")?.access("audio/speech")?];
        needs.extend(declared(args.path.as_deref(), ENDINGS, cx)?);
        Ok(needs)
    }

    async fn ready(&self, args: &Value, cx: &ToolCx, show: bool) -> Result<(), ToolError> {
        ready(read(args)?.path, cx, show).await
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args = read(&args)?;
        let endpoint = configured(self.0.speech.as_ref(), "speech")?;
        ready(args.path.clone(), cx, true).await?;
        let text = args.text.trim();
        let voice = args.voice.as_deref().or(endpoint.voice.as_deref()).unwrap_or(VOICE);
        let wanted = args.path.as_deref().map_or_else(|| "mp3".to_owned(), ending);
        let format = if wanted == "ogg" { "opus" } else { &wanted };
        let body = json!({"model": endpoint.model, "input": text, "voice": voice, "response_format": format});
        progress(cx, format!("{} speaks", endpoint.model));
        // Servers count no tokens here: their prices are for characters.
        let estimate = Usage { input: text.chars().count() as u64, ..Usage::default() };
        let limits = (MEDIA_BYTES, self.0.time());
        let answer = endpoint.ask(cx, ("speech", "audio/speech"), &body, estimate, limits).await?;
        let kind = sniff(&answer.body);
        let fits = kind == Some(wanted.as_str()) || kind == Some("ogg") && matches!(format, "opus");
        if !fits {
            let what = kind.map_or("no audio that is known".to_owned(), |kind| format!("{kind} audio"));
            return Err(ToolError::Tell(format!(
                "{}: asked for {wanted}, it sent {what}; nothing was written{}",
                endpoint.host(),
                if kind.is_some() { ". Name the file by that kind" } else { "" }
            )));
        }
        let size = human(answer.body.len() as u64);
        let saved = save(args.path, kind.unwrap_or("mp3"), answer.body, cx).await?;
        let said = format!("wrote {}: {wanted} audio, {size}, voice {voice}", saved.name);
        Ok(saved.report(said, format!("{wanted}, {size}")))
    }
}

/// The kind of audio by its first bytes, as a name ends; `None`: not known.
fn sniff(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'I', b'D', b'3', ..] => Some("mp3"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("wav"),
        [b'O', b'g', b'g', b'S', ..] => Some("ogg"),
        [b'f', b'L', b'a', b'C', ..] => Some("flac"),
        // The layer bits tell AAC (none) from MPEG audio.
        [0xff, second, ..] if second & 0xf6 == 0xf0 => Some("aac"),
        [0xff, second, ..] if second & 0xe0 == 0xe0 => Some("mp3"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_is_known_by_its_first_bytes() {
        for (bytes, want) in [
            (&b"ID3\x04\0"[..], Some("mp3")),
            (b"\xff\xfb\x90\x00", Some("mp3")),
            (b"\xff\xf3\x40\xc0", Some("mp3")),
            (b"\xff\xf1\x50\x80", Some("aac")),
            (b"\xff\xf9\x50\x80", Some("aac")),
            (b"RIFF\0\0\0\0WAVEfmt ", Some("wav")),
            (b"RIFF\0\0\0\0WEBP", None),
            (b"OggS\0", Some("ogg")),
            (b"fLaC\0", Some("flac")),
            (b"{\"error\": 1}", None),
            (b"", None),
        ] {
            assert_eq!(sniff(bytes), want, "{bytes:?}");
        }
    }
}
