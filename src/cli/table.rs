//! Tables for people: columns as wide as their widest cell, the last one as it is.

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
