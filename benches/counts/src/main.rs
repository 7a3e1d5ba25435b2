//! Counts the instructions that the parts of a call take and compares them with the baseline in `baseline.json`.
//!
//! The counts are callgrind's, of this program's own code only: what the C library does depends on the machine. They do not
//! depend on what else the machine does. They do depend on the compiler and on what the processor offers (vector
//! instructions are chosen at run time), so a baseline says what it was taken with, and elsewhere only allocations are
//! compared.

mod growth;
#[path = "../../shared/plot.rs"]
mod plot;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// A part may take this much more than its baseline.
const TOLERANCE: f64 = 1.03;

/// How often each part is done in one count.
const TIMES: usize = 200;

const USAGE: &str = "counts check | counts baseline | counts growth DIRECTORY";

/// The counts, and what they were taken with.
#[derive(Debug, Deserialize, Serialize)]
struct Baseline {
    with: With,
    /// What each part takes, once.
    counts: BTreeMap<String, Count>,
}

/// What one part takes.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Count {
    instructions: u64,
    allocations: u64,
}

/// What the counts depend on.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct With {
    rustc: String,
    valgrind: String,
    /// Of the processor's abilities those that decide which code runs.
    cpu: Vec<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["run", name] => work::run(name, TIMES).map(|()| true),
        ["check"] => check(),
        ["baseline"] => write(),
        ["growth", directory] => grow(Path::new(directory)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline.json")
}

fn write() -> Result<bool> {
    let baseline = Baseline { with: With::here()?, counts: counts()? };
    std::fs::write(path(), serde_json::to_string_pretty(&baseline)? + "\n")?;
    println!("{} counts written to {}", baseline.counts.len(), path().display());
    Ok(true)
}

fn check() -> Result<bool> {
    let text = std::fs::read_to_string(path()).context("there is no baseline: `make counts-baseline` takes one")?;
    let baseline: Baseline = serde_json::from_str(&text).context("the baseline cannot be read")?;
    let here = With::here()?;
    let comparable = here == baseline.with;
    if !comparable {
        println!("instructions are NOT compared: the baseline was taken with {:?}, this is {here:?}.", baseline.with);
        println!("`make counts-baseline` takes a new one, on a commit whose counts are known to be good.");
    }
    let mut good = true;
    let mut counted = BTreeMap::new();
    for name in work::NAMES {
        let Some(before) = baseline.counts.get(*name) else {
            println!("{name:40} has no baseline: `make counts-baseline`");
            good = false;
            continue;
        };
        let allocations = work::allocations(name)?;
        if allocations > before.allocations {
            println!("{name:40} ALLOCATES {allocations} TIMES, baseline {}", before.allocations);
            good = false;
        }
        if comparable {
            let count = instructions(name)?;
            good &= compare(name, count, before.instructions);
            counted.insert(*name, count);
        }
    }
    for (name, most) in bounds(&counted) {
        let count = counted.get(name).copied().unwrap_or(0);
        if count > most {
            println!("{name:40} {count:>9} instructions, and {most} AT MOST, WHATEVER ITS BASELINE");
            good = false;
        }
    }
    Ok(good)
}

/// What parts may take at most: a number of instructions, or for what is hostile a multiple of what is usual.
fn bounds(counted: &BTreeMap<&'static str, u64>) -> impl Iterator<Item = (&'static str, u64)> {
    let usual = counted.get(work::USUAL).copied();
    let hostile = usual.map(|usual| work::HOSTILE.iter().map(move |name| (*name, usual * work::HOSTILE_MAX)));
    work::MOST.iter().copied().chain(hostile.into_iter().flatten())
}

/// Whether a part takes no more than it may.
fn compare(name: &str, count: u64, before: u64) -> bool {
    let ratio = count as f64 / before as f64;
    let verdict = if ratio > TOLERANCE { "MORE THAN 3 % OVER ITS BASELINE" } else { "" };
    println!("{name:40} {count:>9} instructions, baseline {before:>9}, ratio {ratio:.3} {verdict}");
    ratio <= TOLERANCE
}

fn counts() -> Result<BTreeMap<String, Count>> {
    let count = |name: &str| -> Result<Count> {
        Ok(Count { instructions: instructions(name)?, allocations: work::allocations(name)? })
    };
    work::NAMES.iter().map(|name| Ok(((*name).to_owned(), count(name)?))).collect()
}

/// Writes the page and the picture of growth.
fn grow(directory: &Path) -> Result<bool> {
    let curves = growth::count(&instructions)?;
    let here = With::here()?;
    std::fs::write(directory.join("growth.md"), growth::markdown(&curves, &here.rustc))?;
    std::fs::write(directory.join("growth.svg"), growth::svg(&curves))?;
    println!("written to {}", directory.display());
    Ok(curves.iter().all(growth::Counted::holds))
}

/// Runs one part under callgrind.
fn instructions(name: &str) -> Result<u64> {
    let program = std::env::current_exe()?;
    let out = std::env::temp_dir().join(format!("counts-{}.callgrind", std::process::id()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*counted_section*", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(&program)
        .args(["run", name])
        .output()
        .context("valgrind cannot be started: install it")?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&std::fs::read(&out)?).into_owned();
    std::fs::remove_file(&out)?;
    let total = own_cost(&text, &program.display().to_string());
    if total == 0 {
        bail!("{name}: callgrind counted nothing");
    }
    Ok(total / TIMES as u64)
}

/// The self cost of all functions of one object file.
fn own_cost(text: &str, object: &str) -> u64 {
    let (mut total, mut own, mut of_callee) = (0, false, false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            own = name == object;
        } else if line.starts_with("calls=") {
            // The next line is what the callee took in all.
            of_callee = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            if !std::mem::take(&mut of_callee) && own {
                total += line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
            }
        }
    }
    total
}

impl With {
    fn here() -> Result<With> {
        let said = |program: &str| -> Result<String> {
            let output = Command::new(program)
                .arg("--version")
                .output()
                .with_context(|| format!("{program} cannot be started: install it"))?;
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo")?;
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        let cpu = ["ssse3", "avx2"].into_iter().filter(|flag| flags.split_whitespace().any(|has| has == *flag));
        Ok(With { rustc: said("rustc")?, valgrind: said("valgrind")?, cpu: cpu.map(str::to_owned).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::own_cost;

    #[test]
    fn only_what_the_object_itself_takes_is_counted() {
        let text =
            "ob=/own\nfl=a\nfn=f\n1 10\ncfn=g\ncalls=1 0\n2 500\n3 5\nob=/libc\nfn=memcpy\n4 400\nob=/own\nfn=h\n5 7\n";
        assert_eq!(own_cost(text, "/own"), 22);
    }
}
