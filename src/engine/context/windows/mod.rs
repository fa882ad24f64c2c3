//! Learns context windows from servers that reject a request as too long. Kept in the store, so that the next session
//! avoids the same error.

pub(crate) mod learned_windows;

use crate::session::model;
use tiller_protocol::ModelRef;
use tiller_provider::{ProviderError, stated_window};

use crate::context::windows::learned_windows::{KEY, LearnedWindow, PLAUSIBLE};
use crate::core::Core;

/// Learns from the server's rejection of a request of about `request` tokens.
pub(crate) fn learn_window(core: &mut Core, model: &ModelRef, error: &ProviderError, request: u64) {
    let known = model::model_info(core, model).window;
    let is_new = |tokens: u64| PLAUSIBLE.contains(&tokens) && known.is_none_or(|known| tokens < known);
    let Some((tokens, guessed)) = window_of(error, known, request).filter(|(tokens, _)| is_new(*tokens))
    else {
        return;
    };
    let stated = model::stated_info(core, model).window;
    core.services
        .models
        .windows
        .learn(model, LearnedWindow { tokens, guessed, stated, time: core.services.clock.now() });
    keep_windows(core);
}

/// Records that the server accepted a request and counted it as this many tokens.
pub(crate) fn window_took(core: &mut Core, model: &ModelRef, tokens: u64) {
    if core.services.models.windows.took(model, tokens) {
        keep_windows(core);
    }
}

fn keep_windows(core: &Core) {
    // If it cannot be stored, it is learned again.
    drop(core.services.store.set_meta(KEY, core.services.models.windows.as_json()));
}

/// The window that a rejection names, or the window that the size of the request suggests where none is `known`; true: it is
/// only suggested.
fn window_of(error: &ProviderError, known: Option<u64>, request: u64) -> Option<(u64, bool)> {
    match error {
        ProviderError::TooLong(said) => match stated_window(said) {
            Some(tokens) => Some((tokens, false)),
            None => known.is_none().then_some((request / 10 * 9, true)),
        },
        // A request with too many bytes may have few tokens.
        ProviderError::TooLarge(said) => stated_window(said).map(|tokens| (tokens, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::{ModelRef, Time};

    use super::*;
    use crate::context::windows::learned_windows::{AGE, LearnedWindows};

    #[test]
    fn the_window_is_read_from_the_words_of_vendors_and_local_servers() {
        for (said, window) in [
            ("prompt is too long: 208310 tokens > 200000 maximum", Some(200_000)),
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
                Some(8192),
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            ("the request exceeds the available context size (4,096 tokens), try increasing it", Some(4096)),
            ("you requested 5000 tokens (4500 in the messages, 500 in the completion)", None),
            ("request too large", None),
            ("maximum context length is 99999999999999999999 tokens", None),
            ("context window of 32 tokens", None),
        ] {
            assert_eq!(stated_window(said), window, "{said}");
        }
    }

    #[test]
    fn the_size_of_a_request_suggests_a_window_only_where_tokens_were_too_many() {
        type Make = fn(String) -> ProviderError;
        let (long, large): (Make, Make) = (ProviderError::TooLong, ProviderError::TooLarge);
        for (error, said, known, window) in [
            (long, "too long", None, Some((9_000, true))),
            (long, "too long", Some(20_000), None),
            (long, "maximum context length is 8192 tokens", Some(20_000), Some((8_192, false))),
            (large, "too large", None, None),
            (large, "maximum context length is 8192 tokens", None, Some((8_192, false))),
        ] {
            assert_eq!(window_of(&error(said.into()), known, 10_000), window, "{said} {known:?}");
        }
        assert_eq!(window_of(&ProviderError::Rejected("too long".into()), None, 10_000), None);
    }

    #[test]
    fn a_learned_window_narrows_until_it_is_corrected_refuted_or_old() {
        let (windows, model, time) = (LearnedWindows::default(), ModelRef("local/m".into()), Time(1_000));
        assert_eq!(windows.narrowed(&model, Some(9000), time), Some(9000));
        windows.learn(&model, LearnedWindow { tokens: 4096, guessed: false, stated: None, time });
        assert_eq!(windows.narrowed(&model, None, time), Some(4096));
        assert_eq!(windows.narrowed(&model, Some(2000), time), Some(2000));
        assert_eq!(windows.narrowed(&model, Some(9000), time), Some(9000), "the person states one now");
        let month = Time(time.0 + AGE);
        assert_eq!(windows.narrowed(&model, None, month), None);
        windows.learn(&model, LearnedWindow { tokens: 4096, guessed: false, stated: Some(9000), time });
        assert_eq!(windows.narrowed(&model, Some(9000), time), Some(4096));
        assert!(!windows.took(&model, 4096));
        assert!(windows.took(&model, 5000));
        assert_eq!(windows.narrowed(&model, Some(9000), time), Some(9000));
        // A guess holds for this session.
        windows.learn(&model, LearnedWindow { tokens: 2048, guessed: true, stated: None, time });
        assert_eq!(windows.narrowed(&model, None, time), Some(2048));
        assert_eq!(windows.as_json().as_deref(), Some("{}"));
    }
}
