//! Phrases of `reasonWords`: a few words in their order, as in `token|key .. expired|revoked`, looked for among the words of
//! a failure's reason (see [`super::words`]).
//!
//! Words are separated by spaces; `a|b` are alternatives, `*` stands for the rest of a word, a plain word also stands for
//! its plural, `word?` may be left out, and `..` stands for up to four words of any kind within the same clause.

use super::pattern::Pattern;

/// Up to how many words `..` stands for.
const GAP: &str = "(?: [^ .]+){0,4} ";
/// The most words of a phrase.
const WORDS_MAX: usize = 8;
/// Shorter words have no plural here.
const PLURAL_MIN: usize = 3;

/// The phrase as a regex over words.
///
/// # Errors
/// What is wrong with it, for people.
pub(crate) fn regex(phrase: &str) -> Result<Pattern, String> {
    let phrase = phrase.to_lowercase();
    let elements: Vec<&str> = phrase.split_whitespace().collect();
    if elements.is_empty() || elements.len() > WORDS_MAX {
        return Err(format!("a phrase has 1 to {WORDS_MAX} words"));
    }
    let mut pattern = String::from("(?:^| )");
    let mut before = "";
    for (at, element) in elements.iter().enumerate() {
        let is_end = at == 0 || at + 1 == elements.len();
        if *element == ".." {
            if is_end || before == GAP {
                return Err("`..` stands between two words".to_owned());
            }
            before = GAP;
            continue;
        }
        match element.strip_suffix('?') {
            Some(_) if is_end || before == GAP => return Err("`word?` stands between two words".to_owned()),
            Some(optional) => pattern.push_str(&format!("(?: {})?", word(optional)?)),
            None => {
                pattern.push_str(before);
                pattern.push_str(&word(element)?);
                before = " ";
            }
        }
    }
    pattern.push_str("(?:$| )");
    Pattern::new(&pattern).map_err(|e| e.to_string())
}

fn word(alternatives: &str) -> Result<String, String> {
    let each: Result<Vec<String>, String> = alternatives.split('|').map(one_word).collect();
    Ok(format!("(?:{})", each?.join("|")))
}

fn one_word(word: &str) -> Result<String, String> {
    let letters = word.trim_matches('*');
    if letters.is_empty() || !letters.chars().all(char::is_alphanumeric) {
        return Err(format!("`{word}` is no word; words have letters and digits, with `*` at the start or the end"));
    }
    let open = |open: bool| if open { "[^ .]*" } else { "" };
    let plural = letters == word
        && letters.len() >= PLURAL_MIN
        && !letters.ends_with(['s', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    let tail = if plural { "s?" } else { open(word.ends_with('*')) };
    Ok(format!("{}{letters}{tail}", open(word.starts_with('*'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_finds_its_words_in_their_order_within_one_clause() {
        for (phrase, found, missed) in [
            ("rate limit*", "a rate limiting b .", "rate . limit ."),
            (
                "token|key .. expired",
                "the tokens have all but expired .",
                "the token one two three four five expired .",
            ),
            ("token|key .. expired", "key expired .", "token . expired ."),
            ("too many requests", "too many requests", "too many request handlers"),
            ("not a? file", "not a file", "not the file"),
            ("*exceeded", "quota limitexceeded", "exceeded2"),
            ("503", "503", "5030"),
        ] {
            let regex = regex(phrase).unwrap();
            assert!(regex.is_match(found.as_bytes()), "{phrase} in {found}");
            assert!(!regex.is_match(missed.as_bytes()), "{phrase} in {missed}");
        }
    }

    #[test]
    fn what_is_no_phrase_is_refused_with_a_reason() {
        for (phrase, said) in [
            ("", "1 to 8"),
            (".. expired", "between two words"),
            ("token ..", "between two words"),
            ("token .. .. expired", "between two words"),
            ("a? b", "between two words"),
            ("what's up", "no word"),
            ("*", "no word"),
            ("a|", "no word"),
        ] {
            assert!(regex(phrase).unwrap_err().contains(said), "{phrase}");
        }
    }
}
