//! The simulation of STATE 6: what a rule for taking a tool out of service costs while the backend is well, and what it saves
//! while it is not. Drives the production registry beside the rules of others, over three fixed seeds and a fresh one that
//! is printed. Exits with 1 if ours does worse than the figures it is known for.
//!
//! `cargo run --release --example simulate`

#![expect(clippy::print_stdout, reason = "a program whose output is its result")]

mod cases;
mod rules;

use std::process::ExitCode;

use cases::{Case, Tally, cases};
use rules::{FiveConsecutive, Hystrix, OneFailure, Rule, Toolvane};

const SEEDS: [u64; 3] = [1, 2, 3];

fn main() -> ExitCode {
    let fresh = fastrand::u64(..);
    println!("seeds {SEEDS:?} and, fresh, {fresh}\n");
    let cases = cases();
    let mut misses = Vec::new();
    for seed in SEEDS.into_iter().chain([fresh]) {
        println!("seed {seed}");
        println!(
            "  {:<44} {:>22} {:>22} {:>22} {:>22}",
            "", "1 failure, 30 s", "5 in a row, 30 s*n", "20 in 10 s, 50 %", "toolvane"
        );
        for case in &cases {
            let tallies = run_all(case, seed);
            let shown: Vec<String> = tallies.iter().map(|tally| format!("{:>22}", (case.show)(tally))).collect();
            println!("  {:<44} {}", case.name, shown.join(" "));
            if let Some(ours) = tallies.last() {
                misses
                    .extend((case.demand)(ours).into_iter().map(|miss| format!("seed {seed}, {}: {miss}", case.name)));
            }
        }
    }
    for miss in &misses {
        println!("MISSED: {miss}");
    }
    if misses.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_all(case: &Case, seed: u64) -> Vec<Tally> {
    let mut rules: [Box<dyn Rule>; 4] = [
        Box::<OneFailure>::default(),
        Box::<FiveConsecutive>::default(),
        Box::<Hystrix>::default(),
        Box::new(Toolvane::new(seed, case.probed)),
    ];
    rules.iter_mut().map(|rule| case.run(&mut **rule, seed)).collect()
}
