//! Holds what a receiver wrote down against what the store says of the messages for it.

use std::collections::BTreeMap;

use super::hook::Arrival;
use super::lies::Said;
use super::outbox::{Row, State};

/// What is wrong, one line each; and how many deliveries came again after their receiver had said 2xx, which they may.
pub(super) fn judge(rows: &[&Row], arrivals: &[Arrival]) -> (Vec<String>, usize) {
    let mut found = Vec::new();
    let by_id: BTreeMap<&str, &Row> = rows.iter().map(|row| (row.id.as_str(), *row)).collect();
    if by_id.len() != rows.len() {
        found.push("two messages have one id".to_owned());
    }
    let mut streams: BTreeMap<i64, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        streams.entry(row.stream).or_default().push(row);
    }
    let mut bodies: BTreeMap<&str, &[u8]> = BTreeMap::new();
    let mut settled: BTreeMap<&str, Said> = BTreeMap::new();
    let mut again = 0;
    for arrival in arrivals {
        let id = arrival.id.as_str();
        let Some(row) = by_id.get(id) else {
            found.push(format!("{id} came and is in no outbox"));
            continue;
        };
        if *bodies.entry(id).or_insert(&arrival.body) != arrival.body {
            found.push(format!("{id} came with two bodies"));
        }
        match settled.get(id) {
            Some(Said::Never) => {
                found.push(format!("{id} came again after it was refused for good"));
            }
            Some(_) => again += 1,
            None => {}
        }
        let before = streams.get(&row.stream).into_iter().flatten().filter(|o| o.seq < row.seq);
        for earlier in before.filter(|earlier| !settled.contains_key(earlier.id.as_str())) {
            found.push(format!("{id} came before {} was through", earlier.id));
        }
        if arrival.said != Said::Later {
            settled.entry(id).or_insert(arrival.said);
        }
    }
    for row in rows {
        let id = &row.id;
        match (row.state, settled.get(id.as_str())) {
            (State::Delivered, Some(Said::Taken)) | (State::Dead, Some(Said::Never)) => {}
            (State::Pending, _) => {
                found.push(format!("{id} waits on after {} attempts", row.attempts));
            }
            (state, said) => {
                found.push(format!("{id} is {state:?}, and its receiver said {said:?}"));
            }
        }
    }
    (found, again)
}

#[cfg(test)]
mod tests {
    use super::super::outbox::{Row, State};
    use super::{Arrival, Said, judge};

    fn row(id: &str, seq: i64, state: State) -> Row {
        let (id, recipient) = (id.to_owned(), "lead".to_owned());
        Row { id, stream: 1, recipient, seq, state, attempts: 0 }
    }

    fn came(id: &str, said: Said) -> Arrival {
        Arrival { id: id.to_owned(), body: b"{}".to_vec(), said }
    }

    #[test]
    fn what_is_as_designed_is_not_found() {
        let rows = [
            row("a", 1, State::Delivered),
            row("b", 2, State::Dead),
            row("c", 3, State::Delivered),
        ];
        let arrivals = [
            came("a", Said::Later),
            came("a", Said::Taken),
            came("a", Said::Taken),
            came("b", Said::Later),
            came("b", Said::Never),
            came("c", Said::Taken),
        ];
        assert_eq!(judge(&rows.iter().collect::<Vec<_>>(), &arrivals), (vec![], 1));
    }

    #[test]
    fn what_must_not_be_is_found() {
        let rows = [
            row("a", 1, State::Delivered),
            row("b", 2, State::Delivered),
            row("c", 3, State::Dead),
        ];
        let good = [came("a", Said::Taken), came("b", Said::Taken), came("c", Said::Never)];
        let rows: Vec<&Row> = rows.iter().collect();
        assert_eq!(judge(&rows, &good).0, Vec::<String>::new());
        let other = Arrival { body: b"[]".to_vec(), ..came("a", Said::Taken) };
        for (what, arrivals) in [
            ("lost", vec![good[0].clone(), good[2].clone()]),
            ("never taken", vec![good[0].clone(), came("b", Said::Later), good[2].clone()]),
            ("out of order", vec![good[1].clone(), good[0].clone(), good[2].clone()]),
            (
                "overtaken",
                vec![came("a", Said::Later), good[1].clone(), good[0].clone(), good[2].clone()],
            ),
            ("not given up", vec![good[0].clone(), good[1].clone(), came("c", Said::Taken)]),
            ("refused and sent again", [&good[..], &[came("c", Said::Never)]].concat()),
            ("unknown", [&good[..], &[came("d", Said::Taken)]].concat()),
            ("two bodies", [&good[..], &[other]].concat()),
        ] {
            assert!(!judge(&rows, &arrivals).0.is_empty(), "{what}");
        }
        let waiting = row("a", 1, State::Pending);
        assert!(!judge(&[&waiting], &[]).0.is_empty(), "waiting");
    }
}
