//! Everything that CI runs, in order, stopping at the first failure with the command that repeats it.
//!
//! The stages are in [`STAGES`]. They use one profile and one set of features, so that each crate is compiled once
//! for checking (clippy, documentation) and once for running (tests, binaries); nothing is ever cleaned.

mod stages;

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;

use crate::fault::Fault;

use stages::STAGES;
pub(crate) use stages::{binary, binary_of, build, library, same, target};

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Skip the stages that take minutes
    #[arg(long)]
    fast: bool,
    /// Run only this stage (repeatable); see --list
    #[arg(long = "only", value_name = "STAGE")]
    only: Vec<String>,
    /// Print the stages, run nothing
    #[arg(long)]
    list: bool,
}

/// One part of CI.
struct Stage {
    /// Short name for `--only`.
    name: &'static str,
    /// What it proves.
    what: &'static str,
    /// Left out by `--fast`.
    slow: bool,
    /// Runs it. `Ok(false)`: it ran and something is wrong.
    run: fn(&Path) -> Result<bool, Fault>,
}

/// Runs the stages that the options ask for. True if all passed.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    if options.list {
        for stage in STAGES {
            println!(
                "{:<10} {}{}",
                stage.name,
                stage.what,
                if stage.slow { " (slow)" } else { "" }
            );
        }
        return Ok(true);
    }
    let chosen = chosen(options)?;
    let begin = Instant::now();
    let mut passed = 0_usize;
    for stage in &chosen {
        println!("=== {} · {}", stage.name, stage.what);
        let started = Instant::now();
        let outcome = (stage.run)(root);
        if let Err(fault) = &outcome {
            println!("{}", fault.chain());
        }
        let green = matches!(outcome, Ok(true));
        println!(
            "--- {} {} in {}",
            stage.name,
            if green { "passed" } else { "FAILED" },
            seconds(started.elapsed())
        );
        if !green {
            println!("repeat it with: cargo xtask ci --only {}", stage.name);
            println!("ci stopped after {}: {passed} passed, 1 failed", seconds(begin.elapsed()));
            return Ok(false);
        }
        passed += 1;
    }
    println!("ci took {}", seconds(begin.elapsed()));
    println!("{passed} passed, 0 failed");
    Ok(true)
}

fn chosen(options: &Options) -> Result<Vec<&'static Stage>, Fault> {
    if let Some(unknown) =
        options.only.iter().find(|name| STAGES.iter().all(|stage| stage.name != **name))
    {
        return Err(Fault::parse(unknown, &"no stage of this name; see `cargo xtask ci --list`"));
    }
    let is_chosen = |stage: &&Stage| {
        if options.only.is_empty() {
            !(options.fast && stage.slow)
        } else {
            options.only.iter().any(|name| name == stage.name)
        }
    };
    Ok(STAGES.iter().filter(is_chosen).collect())
}

fn seconds(duration: Duration) -> String {
    let tenths = duration.as_millis() / 100;
    let (minutes, tenths) = (tenths / 600, tenths % 600);
    if minutes == 0 {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else {
        format!("{minutes} min {} s", tenths / 10)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Options, STAGES, chosen, seconds};

    fn names(fast: bool, only: &[&str]) -> Option<Vec<&'static str>> {
        let only = only.iter().map(|name| (*name).to_owned()).collect();
        let options = Options { fast, only, list: false };
        chosen(&options).ok().map(|stages| stages.iter().map(|stage| stage.name).collect())
    }

    #[test]
    fn all_stages_run_unless_told_otherwise() {
        assert_eq!(names(false, &[]).map(|all| all.len()), Some(STAGES.len()));
        assert!(
            names(true, &[])
                .is_some_and(|some| some.len() < STAGES.len() && some.contains(&"tidy"))
        );
        assert_eq!(names(true, &["deny"]), Some(vec!["deny"]));
        assert_eq!(names(false, &["prayer"]), None);
    }

    #[test]
    fn durations_are_short_to_read() {
        assert_eq!(seconds(Duration::from_millis(1_250)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(125)), "2 min 5 s");
    }
}
