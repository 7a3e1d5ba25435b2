//! The border of the module: texts in, values or reports out.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: Arc<str>,
    wait: Duration,
    size: usize,
    names: Vec<Arc<str>>,
    extra: bool,
    limits: Vec<(Arc<str>, i64)>,
}

fn sample(at: At<'_>) -> Option<Sample> {
    at.map(|f| {
        let name = f.need("name", "what it is called", |at| at.line(8));
        let wait = f.duration("wait", "how long", Duration::from_secs(5), Duration::ZERO..=Duration::from_secs(3600));
        let size = f.size("size", "how large", 1 << 16, 1..=1 << 20);
        let names = f.opt("names", "others", |at| at.one_or_list(|at| at.text()));
        let extra = f.section("more", "more of it", |f| f.flag("extra", "on or off", false));
        let limits = f.opt("limits", "by name", |at| at.entries(|_, at| at.int(0..=9)));
        Some(Sample {
            name: name?,
            wait,
            size,
            names: names.unwrap_or_default(),
            extra,
            limits: limits.unwrap_or_default(),
        })
    })?
}

fn source(text: &str) -> Arc<Source> {
    Arc::new(Source::new("t.yaml", text))
}

fn good(text: &str) -> Sample {
    read(&source(text), sample).unwrap_or_else(|report| panic!("{report}"))
}

/// Each problem on a line: place, message, label in brackets, help in parentheses.
fn told(text: &str) -> Vec<String> {
    let report = read(&source(text), sample).expect_err(text);
    let line = |problem: &Problem| {
        let label = problem.label_text().map(|label| format!(" [{label}]")).unwrap_or_default();
        let help = problem.help_text().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{}: {}{label}{help}", problem.position().trim_start_matches("t.yaml:"), problem.message())
    };
    report.problems().iter().map(line).collect()
}

#[test]
fn values_come_as_they_were_written() {
    let read =
        good("name: a\nwait: 1m\nsize: 2KiB\nnames: [x, '1']\nmore: {extra: true}\nlimits: {a: 1, x-b: no, c: 0x9}\n");
    assert_eq!((&*read.name, read.wait, read.size, read.extra), ("a", Duration::from_secs(60), 2048, true));
    assert_eq!(read.names.iter().map(|name| &**name).collect::<Vec<_>>(), ["x", "1"]);
    assert_eq!(read.limits, [(Arc::from("a"), 1), (Arc::from("c"), 9)]);
}

#[test]
fn what_is_left_out_has_its_default_and_x_keys_mean_nothing() {
    let read = good("x-anything: [1, {a: b}]\nname: a\nmore: {x-note: here}\n");
    assert_eq!((read.wait, read.size, read.extra), (Duration::from_secs(5), 1 << 16, false));
    assert_eq!(good("names: one\nname: a\n").names, [Arc::from("one")]);
}

#[test]
fn anchors_and_merge_keys_work_and_own_keys_go_first() {
    let read = good("x-base: &base {wait: 9s, size: 5}\n<<: *base\nname: &n a\nsize: 7\nnames: [*n]\n");
    assert_eq!((read.wait, read.size), (Duration::from_secs(9), 7));
    assert_eq!(read.names, [Arc::from("a")]);
    let read = good("name: a\n<<: [{wait: 1s}, {wait: 2s, size: 3}]\n");
    assert_eq!((read.wait, read.size), (Duration::from_secs(1), 3));
}

#[test]
fn byte_order_mark_and_line_ends_of_windows_are_fine() {
    let read = good("\u{feff}name: a\r\nwait: 9s\r\n");
    assert_eq!((&*read.name, read.wait), ("a", Duration::from_secs(9)));
}

#[test]
fn odd_files_are_refused_with_a_place() {
    let deep_flow = format!("name: {}{}", "[".repeat(5000), "]".repeat(5000));
    let deep_block: String = (0..5000).map(|depth| format!("{}a:\n", " ".repeat(depth % 300))).collect();
    let bomb = (1..12).fold("x-0: &a0 [a, a, a, a, a, a, a, a, a, a]\n".to_owned(), |text, level| {
        let below = format!("*a{}", level - 1);
        text + &format!("x-{level}: &a{level} [{}]\n", vec![below; 10].join(", "))
    });
    for (text, start) in [
        ("", "1:1: the file is empty"),
        ("# nothing but this\n", "1:1: the file is empty"),
        ("---\n...\n", "1:1: the file is empty"),
        ("~\n", "1:1: the file is empty"),
        ("name: a\n---\nname: b\n", "2:1: a second document starts here"),
        ("- 1\n", "1:1: the file must be a map, not a list"),
        ("text\n", "1:1: the file must be a map, not `text`"),
        ("name:\n\twait: 1s\n", "2:2: not valid YAML: tabs disallowed"),
        ("names: [a\nname: b\n", "2:5: not valid YAML"),
        ("name: 'a\n", "1:7: not valid YAML"),
        ("name: *none\n", "1:7: not valid YAML"),
        ("name: &a [*a]\n", "1:11: this alias stands inside the value it refers to"),
        ("name: !env HOME\n", "1:12: the tag `!env` is not supported"),
        ("? [a, b]\n: c\n", "1:3: a key must be a text, not a list or a map"),
        ("<<: 1\nname: a\n", "1:5: `<<` takes a map or a list of maps"),
        ("name: a\0b\n", "1:"),
        (&bomb, "5:"),
        (&deep_flow, "1:262: nested too deep, at most 64 levels are read"),
        (&deep_block, "66:66: nested too deep"),
    ] {
        let problems = told(text);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(start), "{problems:?}");
    }
    assert!(told(&"#".repeat(MAX_FILE + 1))[0].contains("at most 4194304 are read"));
}

#[test]
fn every_problem_of_a_file_is_told_in_order() {
    let text = "nmae: a\nsize: 2GiB\nwait: soon\nnames: {}\nmore:\n  extra: on\n  extra: true\nlimits: {a: 10, b: x}\n";
    assert_eq!(
        told(text),
        [
            "1:1: unknown key `nmae` [did you mean `name`?] (allowed here: name, wait, size, names, more, limits)",
            "2:7: `size` must be between 1B and 1MiB, not `2GiB`",
            "3:7: `wait` must be a duration such as `30s`, `5m` or `PT24H`, not `soon`",
            "4:8: `names` must be a text, not a map",
            "6:10: `extra` must be true or false, not `on` (write `true`)",
            "7:3: the key `extra` stands here twice [first on line 6] (remove one of the two)",
            "8:13: `a` must be between 0 and 9, not 10",
            "8:20: `b` must be a whole number between 0 and 9, not `x`",
        ]
    );
}

#[test]
fn columns_count_characters_and_values_in_messages_are_one_bounded_line() {
    assert!(told("{name: ä, size: ö}\n")[0].starts_with("1:17: "));
    let long = told(&format!("name: a\nwait: \"\\e[31m{}\"\n", "y".repeat(500)));
    assert!(long[0].len() < 200 && long[0].contains("\\u{1b}[31myyy") && !long[0].contains('\u{1b}'), "{long:?}");
}

#[test]
fn no_report_shows_the_value_of_a_secret_looking_key_or_a_password_in_a_url() {
    for text in [
        "name: a\napi_key: hunter2\n",
        "name: a\nmore: {Client-Secret: hunter2}\n",
        "name: a\npassword:\n  - hunter2\n  - hunter2\nwait: soon\n",
        "name: a\nauth_token: |\n  hunter2\n\n  hunter2\n",
        "name: a\nnames: http://me:hunter2@host/ \nwait: [\n",
        "name: a\nauthorization: 'Bearer hunter2\n",
        "name: {password: hunter2}\n",
    ] {
        let report = read(&source(text), sample).unwrap_err();
        assert!(!report.to_string().contains("hunter2"), "{report}");
        assert!(!report.render(Style::Coloured).contains("hunter2"), "{report}");
    }
    assert!(told("name: a\nwait: http://me:hunter2@h/\n")[0].ends_with("not what stands there (not shown)"));
}

#[test]
fn durations_and_sizes_are_read_as_people_write_them() {
    for (text, millis) in [
        ("250ms", Some(250)),
        ("30s", Some(30_000)),
        ("5m", Some(300_000)),
        ("24h", Some(86_400_000)),
        ("2d", Some(172_800_000)),
        ("1h 30m", Some(5_400_000)),
        ("1h30m", Some(5_400_000)),
        ("0s", Some(0)),
        ("PT24H", Some(86_400_000)),
        ("P1DT12H", Some(129_600_000)),
        ("PT1M30S", Some(90_000)),
        ("PT0.5S", Some(500)),
        ("pt1h", Some(3_600_000)),
        ("", None),
        ("30", None),
        ("30 s", None),
        ("s", None),
        ("1.5s", None),
        ("-1s", None),
        ("5M", None),
        ("1y", None),
        ("1s ", None),
        ("99999999999999999999s", None),
        ("18446744073709551615h", None),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("P1M", None),
        ("PT1S1H", None),
        ("PT1", None),
    ] {
        assert_eq!(parse_duration(text), millis.map(Duration::from_millis), "{text}");
    }
    for (text, bytes) in [
        ("0", Some(0)),
        ("1500", Some(1500)),
        ("64KiB", Some(65_536)),
        ("1 MiB", Some(1 << 20)),
        ("1MB", Some(1_000_000)),
        ("10B", Some(10)),
        ("KiB", None),
        ("1.5MiB", None),
        ("1mb", None),
        ("1K", None),
        ("18446744073709551615GiB", None),
    ] {
        assert_eq!(parse_size(text), bytes, "{text}");
    }
}

#[test]
fn the_schema_is_drawn_by_the_reader() {
    let drawn = schema("sample", "https://toolvane.dev/s.json", sample);
    assert_eq!(drawn["required"], json!(["name"]));
    assert_eq!(drawn["additionalProperties"], json!(false));
    assert_eq!(
        drawn["properties"]["name"],
        json!({"type": "string", "minLength": 1, "maxLength": 8, "description": "what it is called"})
    );
    assert_eq!(drawn["properties"]["wait"]["default"], json!("5s"));
    assert_eq!(drawn["properties"]["size"]["default"], json!("64KiB"));
    assert_eq!(drawn["properties"]["more"]["properties"]["extra"]["default"], json!(false));
    assert_eq!(drawn["properties"]["limits"]["additionalProperties"]["maximum"], json!(9));
}

/// Pieces that YAML gives a meaning to, so that random texts reach past the first error.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        Just("name: a\n".to_owned()),
        Just("wait: ".to_owned()),
        Just("password: ".to_owned()),
        Just("names:\n  - ".to_owned()),
        Just("{size: ".to_owned()),
        Just("<<: ".to_owned()),
        Just("&a ".to_owned()),
        Just("*a".to_owned()),
        Just("---\n".to_owned()),
        Just("|\n  ".to_owned()),
        Just("\t".to_owned()),
        Just("\r\n".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("'".to_owned()),
        Just("é€😀\u{202e}".to_owned()),
        "\\PC{0,6}",
        any::<String>().prop_map(|text| text.chars().take(4).collect()),
    ];
    prop::collection::vec(scrap, 0..24).prop_map(|scraps| scraps.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_text_breaks_the_reader_or_its_report(text in scraps()) {
        let source = source(&text);
        prop_assert_eq!(source.shown().len(), text.len());
        if let Err(report) = read(&source, sample) {
            prop_assert!(!report.is_empty());
            prop_assert!(!report.render(Style::Coloured).is_empty());
        }
    }

    #[test]
    fn a_duration_is_read_as_it_is_shown(millis in 0..u64::from(u32::MAX)) {
        let duration = Duration::from_millis(millis);
        prop_assert_eq!(parse_duration(&duration_text(duration)), Some(duration));
    }

    #[test]
    fn a_size_is_read_as_it_is_shown(bytes in 0..usize::MAX) {
        prop_assert_eq!(parse_size(&size_text(bytes)), Some(bytes));
    }
}
