//! Which literals a regex cannot match without, so that it is only run on texts that hold one of them. The literals join
//! the table's needles; a text in which none occurs costs no regex at all.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::text::fold;

/// Literals shorter than this occur everywhere and say little. In bytes.
const LITERAL_MIN: usize = 3;
/// A set larger than this is not worth looking for.
const LITERALS_MAX: usize = 64;
/// Further sets are looked for only if they are small, since every literal makes the automaton larger.
const LITERALS_TOO_MAX: usize = 12;
/// How many further sets are looked for.
const SETS_MAX: usize = 2;

/// Lower-case literals of which at least one stands in every text, folded, that `pattern` matches; `None` if there is no
/// such set that is worth looking for.
pub(crate) fn required(pattern: &str) -> Option<Vec<String>> {
    let hir = ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok()?;
    best_of(&hir)
}

/// Further such sets, of which a matching text has to hold a literal each, the longest literals first.
pub(crate) fn required_too(pattern: &str) -> Vec<Vec<String>> {
    let hir = ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok();
    let mut sets = hir.as_ref().map(sets_of).unwrap_or_default();
    let best = hir.as_ref().and_then(best_of);
    sets.retain(|set| set.len() <= LITERALS_TOO_MAX && best.as_ref() != Some(set));
    sets.sort_by_key(|set| std::cmp::Reverse(shortest(set)));
    sets.truncate(SETS_MAX);
    sets
}

/// All sets of which each is required.
fn sets_of(hir: &Hir) -> Vec<Vec<String>> {
    match hir.kind() {
        HirKind::Capture(group) => sets_of(&group.sub),
        HirKind::Repetition(repeated) if repeated.min > 0 => sets_of(&repeated.sub),
        HirKind::Concat(parts) => {
            let mut sets = candidates(parts, sets_of);
            sets.retain(|set| shortest(set) >= LITERAL_MIN);
            sets
        }
        _ => best_of(hir).into_iter().collect(),
    }
}

fn best_of(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Capture(group) => best_of(&group.sub),
        HirKind::Repetition(repeated) if repeated.min > 0 => best_of(&repeated.sub),
        HirKind::Alternation(ways) => {
            let mut all = Vec::new();
            for way in ways {
                all.extend(best_of(way)?);
            }
            (all.len() <= LITERALS_MAX).then_some(all)
        }
        HirKind::Concat(parts) => best_of_concat(parts),
        HirKind::Literal(_) | HirKind::Class(_) => best_of_concat(std::slice::from_ref(hir)),
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// Of a row of parts: the longest run of plain characters, or the best set of one of the parts.
fn best_of_concat(parts: &[Hir]) -> Option<Vec<String>> {
    let candidates = candidates(parts, |part| best_of(part).into_iter().collect());
    let best = candidates.into_iter().max_by_key(|set| (shortest(set), std::cmp::Reverse(set.len())))?;
    (shortest(&best) >= LITERAL_MIN).then_some(best)
}

/// The runs of plain characters in a row of parts, and what its other parts require.
fn candidates(parts: &[Hir], of_part: impl Fn(&Hir) -> Vec<Vec<String>>) -> Vec<Vec<String>> {
    let mut candidates: Vec<Vec<String>> = Vec::new();
    let mut run = String::new();
    for part in parts {
        match exact(part) {
            Some(text) => run.push_str(&text),
            // An assertion stands between characters and takes none.
            None if matches!(part.kind(), HirKind::Look(_) | HirKind::Empty) => {}
            None => {
                candidates.push(vec![std::mem::take(&mut run)]);
                if !matches!(part.kind(), HirKind::Class(_) | HirKind::Literal(_)) {
                    candidates.extend(of_part(part));
                }
            }
        }
    }
    candidates.push(vec![run]);
    candidates
}

/// The length of the shortest literal.
fn shortest(set: &[String]) -> usize {
    set.iter().map(String::len).min().unwrap_or(0)
}

/// The one text that a part stands for, letter case aside.
fn exact(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            Some(fold(text))
        }
        HirKind::Class(class) => one_letter(class).map(String::from),
        HirKind::Capture(group) => exact(&group.sub),
        _ => None,
    }
}

/// The letter of a class that holds nothing but its two cases.
fn one_letter(class: &Class) -> Option<char> {
    let mut letters = match class {
        Class::Bytes(class) => {
            class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect::<Vec<_>>()
        }
        Class::Unicode(class) => class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect(),
    }
    .into_iter()
    .map(|(start, end)| if start == end { char::from_u32(start).filter(char::is_ascii) } else { None });
    let first = letters.next()??.to_ascii_lowercase();
    letters.all(|letter| letter.is_some_and(|letter| letter.eq_ignore_ascii_case(&first))).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::{required, required_too};

    #[test]
    fn the_literals_are_those_that_no_match_can_do_without() {
        for (pattern, expected) in [
            (r"(?i)\brate[ -]?limit\b", Some(vec!["limit"])),
            (r"(?i)\btoo many (?:requests|calls)\b", Some(vec!["too many "])),
            (r"timed out", Some(vec!["timed out"])),
            (r"(?i)(?:expired|revoked).{0,9}token", Some(vec!["expired", "revoked"])),
            (r"(?i)(?:expired|no).{0,9}token", Some(vec!["token"])),
            (r"(?i)(?:status|code)[ :=]{1,3}401\b", Some(vec!["status", "code"])),
            (r"\d+", None),
            (r"(?:abc)?", None),
            (r"(?:abc|\d)", None),
            (r"(?:abc)+", Some(vec!["abc"])),
            (r"ab", None),
            (r"ungültig|écho", Some(vec!["ungültig", "écho"])),
            (r"\xff\xfeabc", None),
            (r"(?i)n[o']t found", Some(vec!["t found"])),
        ] {
            let found = required(pattern);
            let expected = expected.map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(found, expected, "{pattern}");
        }
    }

    #[test]
    fn further_literals_stand_in_every_match_too() {
        for (pattern, expected) in [
            (r"(?i)\brate[ -]?limit\b", vec![vec!["rate"]]),
            (r"(?i)(?:expired|revoked).{0,9}tokens?", vec![vec!["token"]]),
            (r"(?:^| )(?:tokens?|keys?)(?: [^ .]+){0,4} (?:expireds?)(?:$| )", vec![vec!["token", "key"]]),
            (r"(?:abc.(?:defg|hijk))+", vec![vec!["abc"]]),
            (r"(?:abc.(?:defg|hijk))*", vec![]),
            (r"abc|def.ghi", vec![]),
            (r"timed out", vec![]),
        ] {
            assert_eq!(required_too(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn every_bundled_regex_has_some() {
        let source = std::sync::Arc::new(crate::yaml::Source::new("bundled", crate::rules::file::BUNDLED));
        let rules = crate::rules::file::read(&source).unwrap_or_else(|report| panic!("{report}"));
        let whens = rules.iter().flat_map(|rule| std::iter::once(&rule.when).chain(rule.when.not.as_deref()));
        let regexes = whens.flat_map(|when| when.regex.iter().chain(&when.phrases).flatten());
        let bare: Vec<&str> = regexes.map(|regex| regex.as_str()).filter(|regex| required(regex).is_none()).collect();
        assert!(bare.is_empty(), "{}", bare.join("\n"));
    }
}
