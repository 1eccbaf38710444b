//! Makes a failing case smaller. Not left to proptest, which takes away one operation at a time: every operation of this
//! model means something wherever it stands, so that whole stretches can go at once.

use std::time::Instant;

use super::call::{Expects, KeyPick, Op, Request, Style, TokenPick};

/// A case that fails, and what is wrong with it.
pub(super) type Failing = (Vec<Op>, String);

/// The smallest case that still fails, as far as it is found until `end`. `fails` tells of a case how far it was played
/// and what was wrong then.
pub(super) fn smaller<E>(
    mut case: Failing,
    end: Instant,
    mut fails: impl FnMut(&[Op]) -> Result<Option<Failing>, E>,
) -> Result<Failing, E> {
    let mut try_it = |ops: Vec<Op>, case: &mut Failing| -> Result<bool, E> {
        if Instant::now() > end {
            return Ok(false);
        }
        let smaller = fails(&ops)?;
        let failed = smaller.is_some();
        *case = smaller.unwrap_or_else(|| std::mem::take(case));
        Ok(failed)
    };
    let mut length = case.0.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < case.0.len() {
            let mut ops = case.0.clone();
            ops.drain(at..ops.len().min(at + length));
            if !try_it(ops, &mut case)? {
                at += length;
            }
        }
        length /= 2;
    }
    for place in 0..case.0.len() {
        for simpler in case.0.get(place).map(simpler).unwrap_or_default() {
            let mut ops = case.0.clone();
            if let Some(op) = ops.get_mut(place).filter(|op| **op != simpler) {
                *op = simpler;
                try_it(ops, &mut case)?;
            }
        }
    }
    Ok(case)
}

/// The same operation with less in it: each once, from what counts least.
fn simpler(op: &Op) -> Vec<Op> {
    let plain = Style::default();
    match op {
        Op::Call(request) => requests(request).into_iter().map(Op::Call).collect(),
        Op::Crash(request, _) => vec![Op::Call(request.clone())],
        Op::Again { back, .. } => vec![Op::Again { back: *back, style: plain, via: 0 }],
        Op::Mutated { back, change, .. } => {
            vec![Op::Mutated { back: *back, change: *change, via: 0 }]
        }
        Op::Confirm { .. } => vec![Op::Confirm { style: plain, via: 0 }],
        Op::Kill { .. } => vec![Op::Kill { via: 0 }],
        Op::Stop { .. } => vec![Op::Kill { via: 0 }],
        Op::Flood { .. } | Op::Look { .. } | Op::Second | Op::Clock { .. } | Op::Release { .. } => {
            Vec::new()
        }
    }
}

/// Each has all of what the ones before it took away, so that one that does not fail stops only itself.
fn requests(request: &Request) -> Vec<Request> {
    let plain = Request { style: Style::default(), via: 0, ..request.clone() };
    let unmarked = Request { token: TokenPick::None, expects: Expects::Nothing, ..plain.clone() };
    let keyless = Request { key: KeyPick::None, ..unmarked.clone() };
    let mut silent = keyless.clone();
    silent.args.remove("note");
    vec![plain, unmarked, keyless, silent]
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_does_not_matter_goes_and_what_does_stays() {
        let long: Vec<Op> = (0..50).map(|n| Op::Clock { minutes: n }).collect();
        let fails = |ops: &[Op]| {
            let has = |minutes| ops.contains(&Op::Clock { minutes });
            Ok::<_, Infallible>((has(7) && has(31)).then(|| (ops.to_vec(), "both".to_owned())))
        };
        let end = Instant::now() + Duration::from_secs(60);
        let (ops, wrong) = smaller((long, String::new()), end, fails).expect("never an error");
        assert_eq!(ops, [Op::Clock { minutes: 7 }, Op::Clock { minutes: 31 }]);
        assert_eq!(wrong, "both");
    }
}
