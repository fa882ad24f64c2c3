//! The tools for images, speech and several models, by the settings.

use tiller_config::schema::{Browser, Media, MediaServer};
use tiller_tool::Registry;
use tiller_tool::media::{Endpoint, MediaKey, MediaSettings, Mixture, Prices, Renderers, local_tools, tools};

/// Adds the tools of renderers, and those that have a server. `env` reads the environment.
pub(crate) fn add(
    registry: &mut Registry,
    config: &Media,
    browser: &Browser,
    env: &dyn Fn(&str) -> Option<String>,
) {
    let mut renderers = Renderers::find(&env("PATH").unwrap_or_default());
    if let Some(program) = &browser.program {
        renderers.chromium = Some(program.into());
    }
    local_tools(renderers).into_iter().for_each(|tool| registry.push(tool));
    for (tool, usable) in tools(settings(config, env)) {
        if usable {
            registry.push(tool);
        } else {
            registry.note_absent(tool.info());
        }
    }
}

fn settings(config: &Media, env: &dyn Fn(&str) -> Option<String>) -> MediaSettings {
    let alone = |server: &Option<MediaServer>| {
        Some(endpoint(server.as_ref()?, None, env)).filter(|e| !e.url.is_empty())
    };
    let mixture = config.mixture.as_ref().map(|mixture| Mixture {
        models: mixture.models.iter().map(|m| endpoint(m, Some(&mixture.synthesis), env)).collect(),
        synthesis: endpoint(&mixture.synthesis, None, env),
    });
    MediaSettings {
        vision: alone(&config.vision),
        image: alone(&config.image),
        speech: alone(&config.speech),
        mixture: mixture.filter(|m| !m.models.is_empty() && !m.synthesis.url.is_empty()),
        time: None,
    }
}

/// A server with its key. `usual`: where it is, and its key, when it says no address of its own.
fn endpoint(
    server: &MediaServer,
    usual: Option<&MediaServer>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Endpoint {
    let place = if server.url.is_some() { server } else { usual.unwrap_or(server) };
    let variable = server.key_env.clone().or_else(|| place.key_env.clone());
    Endpoint {
        url: place.url.clone().unwrap_or_default(),
        model: server.model.clone(),
        key: variable
            .as_deref()
            .and_then(env)
            .filter(|key| !key.trim().is_empty())
            .map(|key| MediaKey::new(&key)),
        variable,
        prices: Prices { input: server.input, output: server.output, each: server.each },
        voice: server.voice.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: serde_json::Value) -> Media {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_tools_with_a_server_are_offered() {
        let names = |value| {
            let mut registry = Registry::default();
            add(&mut registry, &config(value), &Browser::default(), &|_| None);
            // Rules and agent definitions may name all of them.
            assert_eq!(registry.catalog().of_set(tiller_protocol::ToolSet::Media).count(), 6);
            let names: Vec<_> = registry.iter().map(|t| t.name()).collect();
            assert_eq!(names[..2], ["render_diagram", "make_document"]);
            names[2..].to_vec()
        };
        let server = json!({"url": "http://a/v1", "model": "m"});
        assert!(names(json!({})).is_empty());
        assert_eq!(names(json!({"vision": server})), ["vision_analyze"]);
        assert_eq!(names(json!({"image": server, "speech": server})), ["image_generate", "text_to_speech"]);
        assert!(names(json!({"vision": {"model": "m"}})).is_empty(), "without an address there is no server");
        let mixture = |models| json!({"mixture": {"models": models, "synthesis": server}});
        assert_eq!(names(mixture(json!([{"model": "a"}]))), ["mixture_of_agents"]);
        assert!(names(mixture(json!([]))).is_empty());
    }

    #[test]
    fn a_model_of_a_mixture_has_the_server_of_the_synthesis() {
        let config = config(json!({"mixture": {
            "synthesis": {"url": "http://a/v1", "model": "s", "key_env": "KEY_A"},
            "models": [{"model": "one"}, {"model": "two", "url": "http://b/v1"}],
        }}));
        let mixture = settings(&config, &|name| Some(format!("value of {name}"))).mixture.unwrap();
        let (one, two) = (&mixture.models[0], &mixture.models[1]);
        assert_eq!((one.url.as_str(), one.variable.as_deref()), ("http://a/v1", Some("KEY_A")));
        assert_eq!(one.key, Some(MediaKey::new("value of KEY_A")));
        assert_eq!(
            (two.url.as_str(), two.key.as_ref()),
            ("http://b/v1", None),
            "a key stays with its server"
        );
    }
}
