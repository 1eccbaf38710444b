//! How ECMAScript writes doubles, against the published checksums of the reference number file.
//!
//! The file (<https://github.com/cyberphone/json-canonicalization>, `testdata/README.md`) has a line
//! `bits,text` for each double of a fixed sequence: 168 edge cases, 2,000 neighbours of the smallest
//! normal double, then random bits from a chain of SHA-256. It is made here and hashed on the way.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use wf_idempotency::canonical_string;

/// The doubles of the sequence, in order.
struct Sequence {
    fixed: std::vec::IntoIter<u64>,
    block: [u8; 32],
    rest: std::vec::IntoIter<u64>,
}

impl Sequence {
    fn new() -> Self {
        let edge_cases = include_str!("../vectors/es6_static.txt")
            .lines()
            .map(|bits| u64::from_str_radix(bits, 16).unwrap());
        let neighbours = (0..2_000).map(|n| 0x0010_0000_0000_0000 + n);
        Self {
            fixed: edge_cases.chain(neighbours).collect::<Vec<_>>().into_iter(),
            block: [0; 32],
            rest: Vec::new().into_iter(),
        }
    }

    fn random(&mut self) -> u64 {
        loop {
            if let Some(bits) = self.rest.next() {
                let double = f64::from_bits(bits);
                if double.is_finite() && double != 0.0 {
                    return bits;
                }
            } else {
                self.block = Sha256::digest(self.block).into();
                let words = self.block.chunks_exact(8);
                let words: Vec<u64> =
                    words.map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
                self.rest = words.into_iter();
            }
        }
    }
}

impl Iterator for Sequence {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self.fixed.next() {
            Some(bits) => Some(bits),
            None => Some(self.random()),
        }
    }
}

/// Size and SHA-256 of the first `lines` lines, written by `text`.
fn checksum(lines: usize, text: impl Fn(f64) -> String) -> (usize, String) {
    let mut hasher = Sha256::new();
    let mut size = 0;
    let mut buffer = String::new();
    for (count, bits) in (1..=lines).zip(Sequence::new()) {
        buffer.push_str(&format!("{bits:x},{}\n", text(f64::from_bits(bits))));
        if buffer.len() > 64 * 1024 || count == lines {
            size += buffer.len();
            hasher.update(&buffer);
            buffer.clear();
        }
    }
    let digest: [u8; 32] = hasher.finalize().into();
    (size, digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn canonical(double: f64) -> String {
    canonical_string(&Value::from(double)).unwrap()
}

#[track_caller]
fn expect(lines: usize, size: usize, digest: &str) {
    assert_eq!(checksum(lines, canonical), (size, digest.to_owned()));
}

#[test]
fn the_first_1_000_lines() {
    expect(1_000, 37_967, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687");
}

#[test]
fn the_first_10_000_lines() {
    expect(10_000, 399_022, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892");
}

#[test]
fn the_first_100_000_lines() {
    expect(100_000, 4_031_728, "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7");
}

#[test]
fn the_first_1_000_000_lines() {
    expect(
        1_000_000,
        40_357_417,
        "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16",
    );
}

/// Negative control: a writer that differs only in how it writes -0 is caught by the checksum.
#[test]
fn the_checksum_catches_one_wrong_line() {
    let (_, digest) = checksum(1_000, |double| {
        if double == 0.0 && double.is_sign_negative() { "-0".to_owned() } else { canonical(double) }
    });
    assert_ne!(digest, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687");
}
