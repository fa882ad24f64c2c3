//! The two formats of OpenAI: Chat Completions, which many servers speak, and Responses.

pub(crate) mod chat;
pub(crate) mod chat_event;
pub(crate) mod chat_reply;
pub(crate) mod responses;
pub(crate) mod responses_reply;
pub(crate) mod think_tags;
