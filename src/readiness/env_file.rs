//! Files with lines `KEY=VALUE`, as `docker run --env-file` and most other programs read them.

use std::collections::BTreeMap;

/// The keys and values of such a text. Lines that are neither empty, a comment nor `KEY=VALUE` mean nothing; of a key that
/// stands twice the last counts. A value may stand in quotes; `export ` before a key is allowed.
pub(super) fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (key, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let key = key.trim();
    if key.is_empty() || key.starts_with('#') || key.contains(char::is_whitespace) {
        return None;
    }
    Some((key.to_owned(), unquoted(value.trim()).to_owned()))
}

fn unquoted(value: &str) -> &str {
    let within = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.split_once(quote)).map(|(text, _)| text);
    if let Some(text) = within('"').or_else(|| within('\'')) {
        return text;
    }
    value.split_once(" #").map_or(value, |(text, _)| text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_read_as_people_write_them() {
        let text = "# keys\nA=1\nexport B = two words \nC=\"a # b\" # why\nD='x=y'\nE=\nno line\nA=2 # last\n=3\n#F=4\nG H=5\r\n";
        let expected = [("A", "2"), ("B", "two words"), ("C", "a # b"), ("D", "x=y"), ("E", "")];
        assert_eq!(parse(text), expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }
}
