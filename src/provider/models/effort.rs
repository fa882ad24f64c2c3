//! The levels of thinking effort of a model, and the vendor's word for each.

use tiller_config::schema::ModelInfo;
use tiller_protocol::Effort;

/// The levels of the model, lowest first; empty: it does not think. An unknown model gets the usual ones: levels that
/// it refuses are left out afterwards.
pub fn offered(info: &ModelInfo) -> Vec<Effort> {
    if info.thinking == Some(false) {
        return Vec::new();
    }
    if info.effort.is_empty() {
        return vec![Effort::Off, Effort::Low, Effort::Medium, Effort::High];
    }
    let has = |word: &str| info.effort.iter().any(|e| e == word);
    let table = [
        (Effort::Off, has("none")),
        (Effort::Low, has("low")),
        (Effort::Medium, has("medium")),
        (Effort::High, has("high")),
        (Effort::Max, has("max") || has("xhigh")),
    ];
    table.into_iter().filter(|(_, has)| *has).map(|(e, _)| e).collect()
}

/// The level of the model that is nearest to `effort`; of two equally near, the lower one.
pub fn used(effort: Effort, info: &ModelInfo) -> Effort {
    if effort == Effort::Default {
        return effort;
    }
    let far = |e: &Effort| (*e as i32 - effort as i32).abs();
    offered(info).into_iter().min_by_key(far).unwrap_or_default()
}

/// The vendor's word for the level; `None`: the field is left out, and the model uses its default.
pub(crate) fn word(effort: Effort, info: &ModelInfo) -> Option<&'static str> {
    let has = |word: &str| info.effort.iter().any(|e| e == word);
    Some(match used(effort, info) {
        Effort::Default => return None,
        Effort::Off => "none",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max if has("max") => "max",
        Effort::Max => "xhigh",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(effort: &[&str]) -> ModelInfo {
        let effort = effort.iter().map(|e| (*e).to_owned()).collect();
        ModelInfo { effort, thinking: Some(true), ..ModelInfo::default() }
    }

    #[test]
    fn a_level_that_a_model_lacks_becomes_the_nearest() {
        let newest = info(&["low", "medium", "high", "xhigh", "max"]);
        let older = info(&["none", "low", "medium", "high", "xhigh"]);
        let pro = info(&["high"]);
        let unknown = ModelInfo::default();
        let without = ModelInfo { thinking: Some(false), ..ModelInfo::default() };
        let table = [
            (Effort::Off, &newest, Some("low")),
            (Effort::Max, &newest, Some("max")),
            (Effort::Off, &older, Some("none")),
            (Effort::Max, &older, Some("xhigh")),
            (Effort::Low, &pro, Some("high")),
            (Effort::Max, &unknown, Some("high")),
            (Effort::Medium, &unknown, Some("medium")),
            (Effort::Default, &older, None),
            (Effort::High, &without, None),
        ];
        for (effort, info, want) in table {
            assert_eq!(word(effort, info), want, "{effort:?} {:?}", info.effort);
        }
        assert_eq!(offered(&newest), [Effort::Low, Effort::Medium, Effort::High, Effort::Max]);
        assert!(offered(&without).is_empty());
    }
}
