//! Runs the example as a user does and compares what it prints with `golden.txt`.

use std::process::Command;

#[test]
fn the_story_is_the_golden_file() {
    let ran = Command::new(env!("CARGO_BIN_EXE_industrial_pump_inspection")).output().unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{printed}\n{complaints}");
    let golden = include_str!("../../golden.txt");
    let first = printed.lines().zip(golden.lines()).position(|(new, old)| new != old);
    assert_eq!(
        printed,
        golden,
        "first difference at line {:?}; when it is wanted: \
         cargo run -p industrial_pump_inspection > examples/industrial_pump_inspection/golden.txt",
        first.map(|line| line + 1)
    );
}
