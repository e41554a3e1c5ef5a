//! "Did you mean …?" for everything that people type: keys, rules, directives.

/// The candidate that `word` was probably meant to be, if one is near enough: a slip in every third
/// character at most. Case does not matter.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn only_what_is_near_is_suggested() {
        assert_eq!(closest("selct", ["ignore", "select", "severity"]), Some("select"));
        assert_eq!(closest("SD1O1", ["SD101", "SD102"]), Some("SD101"));
        assert_eq!(closest("unguarded-cda", ["unguarded-cuda"]), Some("unguarded-cuda"));
        assert_eq!(closest("line-length", ["ignore", "select"]), None);
        assert_eq!(closest("", ["ignore"]), None);
    }
}
