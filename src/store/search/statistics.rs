//! The formulas of ranked search, each once: inverse document frequency, fading by age, standard deviation, overlap of sets.
//! Limits and weights stand where they are used.

/// Milliseconds of a day.
const DAY: f32 = 86_400_000.0;

/// Inverse document frequency: the weight of a word that `with` of `all` documents contain, greater when they are fewer. The form
/// of BM25 (Robertson and Zaragoza, 2009, "The Probabilistic Relevance Framework: BM25 and Beyond") with 1 added in the logarithm,
/// as Lucene does, so that it is never negative.
pub fn inverse_frequency(all: f32, with: f32) -> f32 {
    (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln()
}

/// Exponential decay: the factor for the age of what was written at `time`, both times in milliseconds since 1970. `share`, from 0
/// to 1, is the part that fades, and half of that is gone after `half_life` days. 1 for a time that is to come.
#[allow(clippy::cast_precision_loss, reason = "an age is rounded")]
pub fn fading(share: f32, half_life: f32, now: i64, time: i64) -> f32 {
    let days = now.saturating_sub(time).max(0) as f32 / DAY;
    1.0 - share + share * (-days / half_life).exp2()
}

/// The mean of numbers and their standard deviation: the square root of the mean of the squared distances from the mean (the
/// population's, divided by n). Both are 0 without numbers.
#[allow(clippy::cast_precision_loss, reason = "a mean is rounded")]
pub fn mean_and_deviation(all: &[f32]) -> (f32, f32) {
    if all.is_empty() {
        return (0.0, 0.0);
    }
    let count = all.len() as f32;
    let mean = all.iter().sum::<f32>() / count;
    let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
    (mean, variance.sqrt())
}

/// The Jaccard index of two sets: of what is in either of them the share that is in both, from 0 to 1; 0 for two empty
/// sets. `both` counts what is in both, and is at most `one` and `other`, the sizes of the sets.
#[allow(clippy::cast_precision_loss, reason = "a share is rounded")]
pub fn jaccard(both: usize, one: usize, other: usize) -> f64 {
    let all = one + other - both;
    if all == 0 { 0.0 } else { both as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The measurement of search quality was made with exactly these numbers.
    #[test]
    fn a_rare_word_weighs_more_and_a_word_of_all_documents_still_a_little() {
        assert_eq!(inverse_frequency(10.0, 2.0).to_bits(), (1.0f32 + 8.5 / 2.5).ln().to_bits());
        assert!(inverse_frequency(10.0, 2.0) > inverse_frequency(10.0, 3.0));
        assert!(inverse_frequency(10.0, 10.0) > 0.0);
        // An estimated count may be greater than all.
        assert_eq!(inverse_frequency(10.0, 20.0).to_bits(), 0.0f32.to_bits());
    }

    #[test]
    fn half_of_what_fades_is_gone_after_the_half_life() {
        let day = 86_400_000;
        let at = |days: i64| fading(0.2, 90.0, 1_000 * day, (1_000 - days) * day);
        for (days, factor) in [(-5, 1.0), (0, 1.0), (90, 0.9), (180, 0.85)] {
            assert!((at(days) - factor).abs() < 1e-6, "{days}: {}", at(days));
        }
        assert!((fading(0.2, 90.0, i64::MAX, i64::MIN) - 0.8).abs() < 1e-6);
    }

    #[test]
    fn the_deviation_is_that_of_all_numbers() {
        let (mean, deviation) = mean_and_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert!((mean - 5.0).abs() < 1e-6 && (deviation - 2.0).abs() < 1e-6, "{mean} {deviation}");
        assert_eq!(mean_and_deviation(&[]), (0.0, 0.0));
    }

    #[test]
    fn sets_are_compared_by_what_is_in_both() {
        for (both, one, other, share) in [(0, 0, 0, 0.0), (0, 2, 3, 0.0), (2, 2, 2, 1.0), (1, 2, 3, 0.25)] {
            assert!((jaccard(both, one, other) - share).abs() < 1e-9, "{both} of {one} and {other}");
        }
    }
}
