//! What the system says about a process: processor time and memory (proc(5)).

use std::time::Duration;

use crate::fault::Fault;

/// Processor time used so far by all threads of a process, user and system, in the clock ticks of the system.
///
/// # Errors
/// When the process is gone or the system does not say.
pub fn processor_time(pid: u32) -> Result<Duration, Fault> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).map_err(Fault::io(&path))?;
    let ticks = ticks(&text).ok_or_else(|| Fault::Run(format!("{path} is not understood")))?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_nanos(ticks.saturating_mul(1_000_000_000) / per_second))
}

/// Fields 14 and 15; the name before them may hold anything, but ends with the last parenthesis.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Memory of a process that is in RAM, in bytes: now, and at most so far.
///
/// # Errors
/// When the process is gone or the system does not say.
pub fn resident(pid: u32) -> Result<(u64, u64), Fault> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).map_err(Fault::io(&path))?;
    let bytes = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    };
    bytes("VmRSS:")
        .zip(bytes("VmHWM:"))
        .ok_or_else(|| Fault::Run(format!("{path} is not understood")))
}

#[cfg(test)]
mod tests {
    use super::{resident, ticks};

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) (b) S 1 2 3 4 5 6 7 8 9 10 41 1 13 14 20";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_is_in_memory() {
        let (now, most) = resident(std::process::id()).expect("proc is there");
        assert!(now > 0 && most >= now);
    }
}
