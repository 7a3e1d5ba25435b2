//! The border of the module: texts in, values or reports out.

use std::time::Duration;

use super::*;

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: Arc<str>,
    wait: Duration,
    size: usize,
    names: Vec<Arc<str>>,
    extra: bool,
}

fn sample(at: At<'_>) -> Option<Sample> {
    at.map(|f| {
        let name = f.need("name", "what it is called", |at| at.line(8));
        let wait = f.duration("wait", "how long", Duration::from_secs(5), Duration::ZERO..=Duration::from_secs(3600));
        let size = f.size("size", "how large", 1 << 16, 1..=1 << 20);
        let names = f.opt("names", "others", |at| at.one_or_list(|at| at.text()));
        let extra = f.section("more", "more of it", |f| f.flag("extra", "on or off", false));
        Some(Sample { name: name?, wait, size, names: names.unwrap_or_default(), extra })
    })?
}

fn try_read(text: &str) -> Result<Sample, Report> {
    read(&Arc::new(Source::new("t.yaml", text)), sample)
}

fn complaints(text: &str) -> String {
    match try_read(text) {
        Ok(value) => format!("fine: {value:?}"),
        Err(report) => report.to_string(),
    }
}

#[test]
fn look() {
    for text in [
        "name: a\nwait: 5\nsize: 3MiB\nnaems: [x]\nmore: {extra: yes}\nname: b\nauth_token: hunter2\n",
        "",
        "a: [1\nb: 2",
        "a:\n\tb: 1\n",
        "name: x\n---\nname: y\n",
        "name: &a [*a]\n",
        "- 1\n",
        "names: []\nwait: !foo 3\n",
    ] {
        println!("{}\n======", complaints(text));
    }
}
