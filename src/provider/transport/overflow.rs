//! Refusals that say that a request exceeds the model's window.
//!
//! Servers word them in some fifty ways, so they are known by codes, by a size that is compared with a smaller one, and last by what is
//! too long: a prompt, not a field of the request.

/// Codes and types of such refusals, in lower case.
const CODES: &[&str] = &[
    "context_length_exceeded",
    "context_window_exceeded",
    "contextwindowexceeded",
    "context_size_exceeded",
    "exceed_context_size",
    "max_prompt_tokens_exceeded",
    "max_context_length",
    "outofcontext",
    "prompt_too_long",
    "input_too_long",
    "request_too_large",
    "tokens_limit_reached",
];
/// Codes of fields that are too long whatever the window is.
const FIELDS: &[&str] = &["string_above_max_length", "array_above_max_length", "string_too_long", "too_long"];

/// Words about limits that pass with time.
const PASSING: &[&str] = &["quota", "rate limit", "per hour", "per second", "retry in", "try again in"];

/// Names of a conversation or of its parts.
const CONVERSATION: &[&str] =
    &["prompt", "context", "input", "conversation", "messages", "token", "sequence", "request", "query"];
/// Words for too much of it.
const TOO_MUCH: &[&str] = &[
    "exceed",
    "too long",
    "too large",
    "too many tokens",
    "too big",
    "longer than",
    "larger than",
    "greater than",
    "more than",
    "over the limit",
    "overflow",
    "not enough",
    "reduce the length",
    "reduce your prompt",
    "must be <=",
    "must have less than",
    "only supports",
    "should be [",
    "maximum",
    "limit",
    "超",
    "surpass",
    "beyond",
];
/// The same where no number is given.
const CLEAR: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "prompt exceeds",
    "prompt length exceeds",
    "prompt 超长",
    "input is too long",
    "input too long",
    "input length exceeds",
    "context length",
    "context window",
    "context size",
    "context limit",
    "context the overflows",
    "context overflow",
    "maximum context",
    "max_seq_len",
    "model token limit",
    "max message tokens",
    "maximum prompt length",
    "too many tokens in the",
    "number of tokens allowed",
    "input token count",
    "range of input length",
    "reduce the length of the",
    "shorten your",
    "conversation is too long",
    "messages exceed",
    "request too large",
    "request body too large",
    "payload too large",
    "input tokens exceed",
    "长度",
];
/// The smallest window that is plausible, and the largest, in tokens.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 512..=100_000_000;

/// Returns true if a refusal says that the request exceeds the window. `code`: its code and type.
pub(crate) fn is_overflow(code: &str, text: &str) -> bool {
    let (code, text) = (code.to_lowercase(), text.to_lowercase());
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if CODES.iter().any(|known| code.contains(known) || text.contains(known)) {
        return true;
    }
    if code.split_whitespace().any(|word| FIELDS.contains(&word)) || is_of_a_field(&text) || has(PASSING) {
        return false;
    }
    let of_reply = has(&[
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "completion tokens",
        "output tokens",
    ]);
    if of_reply && !has(&["context", "prompt", "input", "messages", "sequence"]) {
        return false;
    }
    let compares = window(&text).is_some_and(|window| numbers(&text).any(|(number, ..)| number > window));
    has(CONVERSATION) && has(TOO_MUCH) && compares || has(CLEAR) && has(TOO_MUCH)
}

/// Returns true if the text is about one field of the request, or about something that is counted in other units.
fn is_of_a_field(text: &str) -> bool {
    let speaks_of_tokens = text.contains("token") || text.contains("context");
    let indexed =
        text.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | ':')).any(|word| {
            let digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
            word.starts_with(|c: char| c.is_ascii_alphabetic())
                && (word.split('[').skip(1).any(digit) || word.split('.').skip(1).any(digit))
        });
    let other = [
        "image",
        "bytes",
        "megabyte",
        " mb",
        "pages",
        "array too long",
        "string too long",
        "string with maximum",
    ];
    !speaks_of_tokens && (indexed || other.iter().any(|word| text.contains(word)))
}

/// Names of the window, which stand right before its number or a few small words before it.
const NAMES: &[&str] = &[
    "context length",
    "context size",
    "context window",
    "maximum context",
    "model context",
    "maximum prompt length",
    "maximum input length",
    "maximum sequence length",
    "maximum supported sequence length",
    "input length should be [1,",
    "model length",
    "maximum length",
    "max_seq_len",
    "max_num_tokens",
    "max size",
    "n_ctx",
    "n_ctx\"",
    "tokens allowed",
    "maximum",
    "limit",
    "supports",
    "cannot exceed",
    "must be <",
    "less than",
    ">",
];
/// Small words between a name and its number.
const SMALL: &[&str] = &[" is", " of", " only", " just", " up", " to", " at", " most"];
/// Text right after it.
const BEHIND: &[&str] = &[" maximum", " tokens maximum", " max "];
/// Text right after a number of something else, of a part of the request, or of all that was sent.
const OTHER_UNITS: &[&str] = &[" + ", " > ", " char", " byte", " message", " request", " kb", " mb"];

/// The window that the text of a refusal names, in tokens.
pub fn window(text: &str) -> Option<u64> {
    let text = text.to_lowercase();
    // A limit that passes with time is no window.
    if ["(tpm)", "per min", "per day", "per hour", "rate limit"].iter().any(|words| text.contains(words)) {
        return None;
    }
    let named = |(number, before, behind): (u64, &str, &str)| {
        let other = OTHER_UNITS.iter().any(|words| behind.starts_with(words));
        // Behind a limit, a number in brackets may be a code.
        let in_brackets = before.ends_with("limit (") && !numbers(&text).any(|(sent, ..)| sent > number);
        let named = is_named(before) || BEHIND.iter().any(|words| behind.starts_with(words));
        (named && !other && !in_brackets && PLAUSIBLE.contains(&number)).then_some(number)
    };
    numbers(&text).find_map(named)
}

/// Returns true if a text ends with a name of the window.
fn is_named(mut before: &str) -> bool {
    loop {
        before = before.trim_end_matches([' ', ':', '(', '=']);
        if NAMES.iter().any(|name| before.ends_with(name)) {
            return true;
        }
        let Some(rest) = SMALL.iter().find_map(|small| before.strip_suffix(small)) else { return false };
        before = rest;
    }
}

/// All whole numbers of a text, each with what stands before and behind it.
fn numbers(text: &str) -> impl Iterator<Item = (u64, &str, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(|c: char| c.is_ascii_digit())?;
        let is_more = |c: char| !c.is_ascii_digit() && c != ',' && c != '_';
        let end = text[start..].find(is_more).map_or(text.len(), |length| start + length);
        from = end;
        let digits: String = text[start..end].chars().filter(char::is_ascii_digit).collect();
        // What is no number of tokens is passed over.
        Some((digits.parse().unwrap_or(0), &text[..start], &text[end..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refusals as servers word them, with the window that they name.
    const OVERFLOWS: &[(&str, &str, Option<u64>)] = &[
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
        (
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
            Some(200_000),
        ),
        ("context_length_exceeded", "Your input exceeds the context window of this model.", None),
        (
            "",
            "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
            None,
        ),
        (
            "",
            "The prompt (total length 9000) is too long to fit into the model (context length 8192).",
            Some(8_192),
        ),
        (
            "",
            "Requested generation length 100 is not possible! The provided prompt is 8300 tokens long, so generating 100 tokens requires a sequence length of 8400, but the maximum supported sequence length is just 8192!",
            Some(8_192),
        ),
        (
            "",
            "The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)",
            Some(8_192),
        ),
        ("", "Prompt exceeds max_seq_len of 4096 tokens", Some(4_096)),
        ("", "Input length 140000 exceeds the maximum length 131072", Some(131_072)),
        ("", "输入长度超过限制", None),
        ("", "token count exceeds model's context window: 9000 > 8192", Some(8192)),
        ("", "invalid params, context window exceeds limit (2013)", None),
        (
            "",
            "AiError: The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8000).",
            Some(8_000),
        ),
        (
            "",
            "the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model",
            Some(8_192),
        ),
        ("", "prompt is longer than the maximum context of 32768 tokens", Some(32_768)),
        ("", "Sequence length 9000 exceeds model context 8192", Some(8_192)),
        (
            "invalid_request_error",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
            Some(128_000),
        ),
        (
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            Some(1_048_576),
        ),
        (
            "INVALID_ARGUMENT",
            "Unable to submit request because the input token count is 1100000 but the model only supports up to 1048576.",
            Some(1_048_576),
        ),
        (
            "invalid-argument",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            Some(131_072),
        ),
        (
            "invalid_request_error",
            "Invalid request: Your request exceeded model token limit: 8192",
            Some(8192),
        ),
        ("1261", "Prompt exceeds max length", None),
        ("1261", "Prompt 超长", None),
        ("InvalidParameter", "Range of input length should be [1, 30720]", Some(30_720)),
        (
            "model_max_prompt_tokens_exceeded",
            "prompt token count of 150000 exceeds the limit of 128000",
            Some(128_000),
        ),
        (
            "validation",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 512 `max_new_tokens`",
            Some(4096),
        ),
        (
            "validation",
            "Input validation error: `inputs` must have less than 1024 tokens. Given: 4000",
            Some(1024),
        ),
        (
            "BadRequestError",
            "The decoder prompt (length 33000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller.",
            Some(32_768),
        ),
        (
            "BadRequestError",
            "'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum context length is 8192 tokens and your request has 7000 input tokens (2048 > 8192 - 7000).",
            Some(8192),
        ),
        ("ContextWindowExceededError", "litellm.ContextWindowExceededError: the request was refused", None),
        (
            "",
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5008. Try using a shorter prompt",
            Some(4081),
        ),
        ("", "Input length 50000 exceeds maximum 32768 tokens", Some(32_768)),
        ("", "Prompt length 5000 is greater than max_seq_len 4096", Some(4096)),
        (
            "exceed_context_size_error",
            "the request exceeds the available context size, try increasing it (n_ctx 4096)",
            Some(4096),
        ),
        (
            "server_error",
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            None,
        ),
        (
            "",
            "Trying to keep the first 8000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough",
            Some(4096),
        ),
        ("", "prompt too long; exceeded max context length by 500 tokens", None),
        (
            "invalid_request_prompt",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Some(32_768),
        ),
        ("context_length_exceeded", "Please reduce the length of the messages or completion.", None),
        ("ValidationException", "Input is too long for requested model.", None),
        ("context_length_exceeded", "Current length is 131074 while limit is 131072", Some(131_072)),
        ("2013", "invalid params, context window exceeds limit", None),
        (
            "400",
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (38000 of text input, 2000 in the output).",
            Some(32_768),
        ),
        ("", "The prompt is too long: 40000, model maximum context length: 32767", Some(32_767)),
        (
            "",
            "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
            Some(32_768),
        ),
        (
            "",
            "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 33000 tokens.",
            Some(32_768),
        ),
        ("OutofContextError", "Total tokens of image and text exceed max message tokens", None),
        (
            "tokens_limit_reached",
            "Request body too large for gpt-4o model. Max size: 8000 tokens.",
            Some(8000),
        ),
        ("", "The conversation is too long: shorten your messages", None),
        ("400", "{\"error\":\"context window overflow\"}", None),
        ("", "This model's maximum context length is 32,768 tokens, but you requested 40,001", Some(32_768)),
        (
            "",
            "input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
            Some(272_000),
        ),
        ("", "the input length exceeds the context length", None),
        ("", "messages exceed the limit of 32768 characters of the context: got 40000", None),
    ];
    /// Refusals of something else.
    const OTHERS: &[(&str, &str)] = &[
        (
            "string_above_max_length",
            "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 2048 instead.",
        ),
        (
            "array_above_max_length",
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150 instead.",
        ),
        ("invalid_request_error", "tools.0.custom.name: String should have at most 128 characters"),
        ("invalid_request_error", "messages.3.content.0.text: input is too long"),
        (
            "invalid_request_error",
            "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-x",
        ),
        (
            "invalid_value",
            "max_tokens is too large: 40000. This model supports at most 16384 completion tokens.",
        ),
        (
            "invalid_request_error",
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
        ),
        ("invalid_request_error", "messages: roles must alternate"),
        ("invalid_request_error", "A maximum of 100 PDF pages may be provided"),
        (
            "unsupported_parameter",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ),
        ("invalid_request_error", "thinking.budget_tokens: Input should be greater than or equal to 1024"),
        ("", "the model does not support tools"),
        (
            "429 RESOURCE_EXHAUSTED",
            "Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000, model: x. Please retry in 31.837291827s.",
        ),
        ("429 RESOURCE_EXHAUSTED", "Quota exceeded for metric: requests, limit: 1000, model: gemini-3-pro"),
        (
            "rate_limit_error",
            "This request would exceed the rate limit of 40000 input tokens; try again in 50000 ms",
        ),
    ];

    #[test]
    fn an_overflow_is_known_however_a_server_words_it() {
        let unknown = OVERFLOWS.iter().filter(|(code, text, _)| !is_overflow(code, text));
        let misread = OVERFLOWS.iter().filter(|(_, text, size)| window(text) != *size);
        for passing in [
            "Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 7000",
            "Rate limit of 40000 tokens per min reached",
        ] {
            assert_eq!(window(passing), None, "{passing}");
        }
        let wrong: Vec<_> = unknown.chain(misread).map(|(_, text, _)| (text, window(text))).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        let wrong: Vec<_> = OTHERS.iter().filter(|(code, text)| is_overflow(code, text)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
