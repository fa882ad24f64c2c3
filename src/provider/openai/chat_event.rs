//! OpenAI Chat Completions: the shape of a streamed event, in all variants that servers send.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::codec::lax::{self, Count, Str};

#[derive(Deserialize)]
pub(crate) struct ChatEvent<'a> {
    #[serde(borrow, default)]
    pub(crate) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    pub(crate) usage: Option<&'a RawValue>,
    /// Groq sends the counts here.
    #[serde(borrow, default)]
    pub(crate) x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
    /// `error`, from servers that send the words of an error without a field around them.
    #[serde(borrow, default)]
    pub(crate) object: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) detail: Option<&'a RawValue>,
    /// llama.cpp says here how far it has read the prompt.
    #[serde(borrow, default)]
    pub(crate) prompt_progress: Option<&'a RawValue>,
}

impl ChatEvent<'_> {
    /// It says that the reply failed. `name`: of the event.
    pub(crate) fn is_failure(&self, name: &str) -> bool {
        let stated = |raw: Option<&RawValue>| raw.is_some_and(|raw| raw.get() != "null");
        let bare = name == "error" || self.object.as_str() == "error" || stated(self.detail);
        stated(self.error) || bare && self.choices.is_none()
    }
}

/// How far the prompt has been read, in tokens.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct PromptProgress {
    pub(crate) total: Count,
    /// With those of the cache.
    pub(crate) processed: Count,
}

#[derive(Deserialize)]
pub(crate) struct Choice<'a> {
    /// `message`: the whole reply, from a server that does not stream.
    #[serde(borrow, default, alias = "message")]
    pub(crate) delta: Option<ChatDelta<'a>>,
    #[serde(borrow, default)]
    pub(crate) finish_reason: Str<'a>,
}

#[derive(Deserialize)]
pub(crate) struct ChatDelta<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Content<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning_content: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) refusal: Str<'a>,
    /// A list; from some servers one call, or null.
    #[serde(borrow, default)]
    pub(crate) tool_calls: Option<&'a RawValue>,
    /// The field of older servers, which have one call in a reply.
    #[serde(borrow, default)]
    pub(crate) function_call: Option<&'a RawValue>,
}

impl<'a> ChatDelta<'a> {
    /// The pieces of calls in it.
    pub(crate) fn calls(&self) -> Vec<CallDelta<'a>> {
        let calls: Vec<CallDelta<'a>> = match lax::read::<Vec<&'a RawValue>>(self.tool_calls) {
            Some(calls) => calls.into_iter().filter_map(|call| lax::read(Some(call))).collect(),
            None => lax::read(self.tool_calls).into_iter().collect(),
        };
        let older = lax::read::<Function<'a>>(self.function_call);
        let older = older.map(|function| CallDelta { function: Some(function), ..CallDelta::default() });
        calls.into_iter().chain(older).collect()
    }
}

#[derive(Default, Deserialize)]
pub(crate) struct CallDelta<'a> {
    #[serde(default)]
    pub(crate) index: Count,
    #[serde(borrow, default)]
    pub(crate) id: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) function: Option<Function<'a>>,
    /// Beside `function` instead of in it.
    #[serde(borrow, default)]
    pub(crate) name: Str<'a>,
    #[serde(borrow, default, alias = "parameters", alias = "input")]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) extra_content: Option<&'a RawValue>,
}

impl<'a> CallDelta<'a> {
    /// Its name and arguments, wherever they stand.
    pub(crate) fn function(&mut self) -> (Str<'a>, String) {
        let inner = self.function.take().unwrap_or_default();
        let name = if inner.name.is_empty() { std::mem::take(&mut self.name) } else { inner.name };
        (name, inner.arguments.or(self.arguments).map(argument_text).unwrap_or_default())
    }
}

#[derive(Default, Deserialize)]
pub(crate) struct Function<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Str<'a>,
    #[serde(borrow, default, alias = "parameters")]
    pub(crate) arguments: Option<&'a RawValue>,
}

/// Text, or a list of parts (Mistral): texts and thoughts.
#[derive(Default)]
pub(crate) struct Content<'a> {
    pub(crate) text: Str<'a>,
    pub(crate) thought: String,
}

#[derive(Deserialize)]
pub(crate) struct Part<'a> {
    #[serde(borrow, default)]
    pub(crate) text: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) thinking: Option<&'a RawValue>,
}

pub(crate) struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or parts")
    }
    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Content<'de>, E> {
        Ok(Content { text: Str(v.into()), thought: String::new() })
    }
    fn visit_str<E>(self, v: &str) -> Result<Content<'de>, E> {
        Ok(Content { text: Str(v.to_owned().into()), thought: String::new() })
    }
    fn visit_unit<E>(self) -> Result<Content<'de>, E> {
        Ok(Content::default())
    }
    fn visit_bool<E>(self, _: bool) -> Result<Content<'de>, E> {
        Ok(Content::default())
    }
    fn visit_u64<E>(self, v: u64) -> Result<Content<'de>, E> {
        Ok(Content { text: Str(v.to_string().into()), thought: String::new() })
    }
    fn visit_i64<E>(self, v: i64) -> Result<Content<'de>, E> {
        Ok(Content { text: Str(v.to_string().into()), thought: String::new() })
    }
    fn visit_f64<E>(self, v: f64) -> Result<Content<'de>, E> {
        Ok(Content { text: Str(v.to_string().into()), thought: String::new() })
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content<'de>, A::Error> {
        while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
        Ok(Content::default())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
        let (mut text, mut thought) = (String::new(), String::new());
        while let Some(part) = seq.next_element::<Part<'_>>()? {
            text.push_str(part.text.as_str());
            for inner in lax::read::<Vec<Part<'_>>>(part.thinking).unwrap_or_default() {
                thought.push_str(inner.text.as_str());
            }
        }
        Ok(Content { text: Str(text.into()), thought })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(ContentVisitor)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChatUsage {
    pub(crate) prompt_tokens: Count,
    pub(crate) completion_tokens: Count,
    pub(crate) prompt_tokens_details: Option<ChatDetails>,
    pub(crate) completion_tokens_details: Option<ChatDetails>,
    /// DeepSeek's name for it.
    pub(crate) prompt_cache_hit_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChatDetails {
    pub(crate) cached_tokens: Count,
    pub(crate) cache_write_tokens: Count,
    pub(crate) reasoning_tokens: Count,
}

#[derive(Deserialize)]
pub(crate) struct Groq<'a> {
    #[serde(borrow, default)]
    pub(crate) usage: Option<&'a RawValue>,
}

/// Arguments as text: most servers send a string, some the value itself. Null is no text, and an empty list stands for an empty
/// object, which some languages do not tell apart.
pub(crate) fn argument_text(raw: &RawValue) -> String {
    match raw.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw.get()).unwrap_or_default(),
        _ if raw.get() == "null" => String::new(),
        Some(b'[') if raw.get().len() < 100 && serde_json::from_str::<[(); 0]>(raw.get()).is_ok() => {
            "{}".into()
        }
        _ => raw.get().to_owned(),
    }
}
