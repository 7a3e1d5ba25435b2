//! Tables for people: columns as wide as their widest cell, the last one as it is.

use super::ask::Failed;

/// Lines of a table under these heads. Characters that could move a cursor are replaced.
pub(super) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let shown = |cell: &str| -> String {
        let cell: String = cell.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        if cell.is_empty() { "-".to_owned() } else { cell }
    };
    let all: Vec<[String; N]> = std::iter::once(heads.map(str::to_owned))
        .chain(rows.iter().map(|row| row.each_ref().map(|cell| shown(cell))))
        .collect();
    let widths: Vec<usize> = (0..N)
        .map(|column| all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    all.iter().map(line).collect()
}

/// What a command prints: data for standard output, words for standard error, and its exit code.
#[derive(Debug)]
pub struct Printed {
    /// For standard output.
    pub data: String,
    /// For standard error.
    pub words: String,
    /// The exit code.
    pub code: u8,
}

impl From<Failed> for Printed {
    fn from(failed: Failed) -> Printed {
        Printed { data: String::new(), words: failed.words + "\n", code: failed.code }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_an_empty_cell_is_a_dash() {
        let rows = [
            ["a".to_owned(), String::new(), "x".to_owned()],
            ["größer".to_owned(), "b".to_owned(), "\u{1b}[2J".to_owned()],
        ];
        let expected = "NAME    STATE  WHY\na       -      x\ngrößer  b      \u{fffd}[2J\n";
        assert_eq!(table(["NAME", "STATE", "WHY"], &rows), expected);
    }
}
