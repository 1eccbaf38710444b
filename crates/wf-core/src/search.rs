//! Words to look for, and words to look in: case-folded, digits without leading zeros, each asked word a prefix of one
//! that is there. `engine::find` looks for work with it, `state_machine::decide` for people.

/// Case-folded words; digits without leading zeros, so that "unit 07" finds UNIT-7.
#[must_use]
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut digits = false;
    for c in text.to_lowercase().chars() {
        if !c.is_alphanumeric() || (!word.is_empty() && c.is_ascii_digit() != digits) {
            push(&mut words, &mut word);
        }
        if c.is_alphanumeric() {
            digits = c.is_ascii_digit();
            word.push(c);
        }
    }
    push(&mut words, &mut word);
    words
}

fn push(words: &mut Vec<String>, word: &mut String) {
    let taken = std::mem::take(word);
    if taken.is_empty() {
        return;
    }
    let number = taken.bytes().all(|b| b.is_ascii_digit());
    let trimmed = if number { taken.trim_start_matches('0') } else { &taken };
    words.push(if trimmed.is_empty() { "0".to_owned() } else { trimmed.to_owned() });
}

/// Each word asked for is a prefix of a word that is there.
#[must_use]
pub(crate) fn matches(asked: &[String], there: &[String]) -> bool {
    asked.iter().all(|word| there.iter().any(|t| t.starts_with(word.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_at_digits_and_drop_leading_zeros() {
        assert_eq!(words("Unit-007 of Hall 0"), ["unit", "7", "of", "hall", "0"]);
        assert_eq!(words("AB12cd"), ["ab", "12", "cd"]);
        assert_eq!(words("  --  "), Vec::<String>::new());
    }

    #[test]
    fn every_word_must_be_a_prefix() {
        let there = words("Yearly inspection of unit 204");
        for hit in ["insp", "unit 204", "UNIT-0204", "204 yearly", "", "2"] {
            assert!(matches(&words(hit), &there), "{hit}");
        }
        for miss in ["nspection", "unit 205", "weekly"] {
            assert!(!matches(&words(miss), &there), "{miss}");
        }
    }
}
