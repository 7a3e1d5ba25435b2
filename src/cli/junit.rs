//! The JUnit form of test results, which build servers read.

use std::fmt::Write;

use crate::rules::suite::Checked;
use crate::yaml::Report;

/// One document with a suite for each rule or file of cases, in the order in which they first appear.
pub(super) fn document(name: &str, checked: &[Checked]) -> String {
    let failed = |all: &[&Checked]| all.iter().filter(|one| one.failure.is_some()).count();
    let all: Vec<&Checked> = checked.iter().collect();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ =
        writeln!(out, "<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\">", escaped(name), all.len(), failed(&all));
    let mut suites: Vec<(&str, Vec<&Checked>)> = Vec::new();
    for one in &all {
        match suites.iter_mut().find(|(suite, _)| *suite == &*one.suite) {
            Some((_, tests)) => tests.push(one),
            None => suites.push((&one.suite, vec![one])),
        }
    }
    for (suite, tests) in suites {
        let (count, bad) = (tests.len(), failed(&tests));
        let _ = writeln!(out, "  <testsuite name=\"{}\" tests=\"{count}\" failures=\"{bad}\">", escaped(suite));
        for test in tests {
            case(&mut out, suite, test);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// One document that says that nothing was tested, since files are wrong: an error for each problem.
pub(super) fn broken(name: &str, report: &Report) -> String {
    let (name, count) = (escaped(name), report.len());
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"{name}\" tests=\"{count}\" failures=\"0\" errors=\"{count}\">");
    let _ = writeln!(out, "  <testsuite name=\"files\" tests=\"{count}\" failures=\"0\" errors=\"{count}\">");
    for problem in report.problems() {
        let (line, column) = problem.source().line_column(problem.place());
        let (file, why) = (escaped(problem.source().name()), escaped(problem.message()));
        let _ = writeln!(
            out,
            "    <testcase classname=\"files\" name=\"{file}:{line}:{column}\" file=\"{file}\" line=\"{line}\">\
             <error message=\"{why}\"/></testcase>"
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn case(out: &mut String, suite: &str, test: &Checked) {
    let (line, _) = test.origin.source.line_column(test.origin.place);
    let file = escaped(test.origin.source.name());
    let (class, name) = (escaped(suite), escaped(&test.name));
    let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{name}\" file=\"{file}\" line=\"{line}\"");
    match &test.failure {
        None => out.push_str("/>\n"),
        Some(why) => {
            let _ = writeln!(out, "><failure message=\"{}\"/></testcase>", escaped(why));
        }
    }
}

/// A text as it may stand in an attribute; what XML cannot hold becomes `?`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_in_a_name_ends_its_attribute() {
        assert_eq!(escaped("a\"b<c>&d\n\u{1}"), "a&quot;b&lt;c&gt;&amp;d&#10;?");
    }
}
