//! What callers did with their keys: one effect each, the first answer again and again, another payload refused.

use std::collections::BTreeMap;

use wf_core::models::{Actor, TenantId};
use wf_core::ports::LedgerKey;
use wf_idempotency::{Fingerprint, IdempotencyKey};

use super::Invariant;
use super::books::{Applied, Books};
use super::call::{Call, Fate};
use super::found::Found;

/// The beginning of a key that the server made for a call without one.
const MADE_UP: &str = "rk_";

/// Attempts by their key.
pub(super) type Keyed<'c, 'a> = BTreeMap<LedgerKey, Vec<&'c Call<'a>>>;

/// Groups attempts that may change something by their key. A key that no ledger takes is left out: whatever sends it is
/// refused before anything else.
pub(super) fn keyed<'c, 'a>(calls: &'c [Call<'a>]) -> Keyed<'c, 'a> {
    let mut keyed = Keyed::new();
    for call in calls.iter().filter(|call| call.payload.is_some()) {
        if let Some(key) = call.key.and_then(|key| ledger_key(call, key)) {
            keyed.entry(key).or_default().push(call);
        }
    }
    for attempts in keyed.values_mut() {
        attempts.sort_by_key(|call| call.attempt.sent_ns);
    }
    keyed
}

fn ledger_key(call: &Call<'_>, key: &str) -> Option<LedgerKey> {
    Some(LedgerKey {
        tenant: TenantId::parse(&call.attempt.tenant).ok()?,
        actor: Actor::parse(&call.attempt.actor).ok()?,
        key: IdempotencyKey::parse(key).ok()?,
    })
}

pub(super) fn check(books: &Books, calls: &[Call<'_>], keyed: &Keyed<'_, '_>, found: &mut Found) {
    for (key, attempts) in keyed {
        let commits = books.by_key.get(key).into_iter().flatten();
        let commit =
            commits.filter_map(|(place, n)| books.works.get(place)?.commits.get(*n)).next();
        of_key(key, attempts, commit, found);
    }
    unsent(books, calls, keyed, found);
}

/// All attempts of one key beside the commit of that key.
fn of_key(key: &LedgerKey, attempts: &[&Call<'_>], commit: Option<&Applied>, found: &mut Found) {
    let place = key.key.as_str();
    let done: Vec<&&Call<'_>> = attempts.iter().filter(|c| c.fate == Fate::Done).collect();
    if done.len() > 1 {
        let message = format!("{} attempts were answered as the first", done.len());
        found.add(Invariant::I2, place, message);
    }
    for repeated in attempts.iter().filter(|c| c.fate == Fate::Repeated) {
        let earlier = |c: &&&Call<'_>| {
            matches!(c.fate, Fate::Done | Fate::Open)
                && c.payload == repeated.payload
                && c.attempt.sent_ns < repeated.attempt.over_ns
        };
        if !attempts.iter().any(|c| earlier(&c)) {
            let message = "it is answered as a repeat of something that nobody did before";
            found.add(Invariant::I2, repeated.place(), message);
        }
    }
    one_answer(attempts, found);
    if let Some(commit) = commit {
        asked_for(key, attempts, commit, found);
    }
    for call in attempts {
        after_the_first(call, attempts, commit, found);
    }
}

/// All acknowledgements of a key are the same bytes.
fn one_answer(attempts: &[&Call<'_>], found: &mut Found) {
    let acknowledged = attempts.iter().filter(|c| matches!(c.fate, Fate::Done | Fate::Repeated));
    let mut first = None;
    for call in acknowledged {
        let Some(bytes) = call.answer.as_ref().and_then(|answer| answer.first.as_ref()) else {
            found.add(Invariant::I7, call.place(), "the answer is not in canonical form");
            continue;
        };
        if *first.get_or_insert(bytes) != bytes {
            found.add(
                Invariant::I7,
                call.place(),
                "it is answered with another result than the first",
            );
        }
    }
}

/// The commit of a key is of a payload that was sent with it, by an attempt that may have done it.
fn asked_for(key: &LedgerKey, attempts: &[&Call<'_>], commit: &Applied, found: &mut Found) {
    let same = |c: &&&Call<'_>| c.payload.is_some_and(|payload| commit.is_of(&payload));
    let mut sent = attempts.iter().filter(same).peekable();
    if sent.peek().is_none() {
        let message = "what is committed with it is another payload than was sent";
        found.add(Invariant::I2, key.key.as_str(), message);
    } else if sent.all(|c| c.fate == Fate::Nothing) {
        let message = "every attempt was refused or never arrived, and it is committed";
        found.add(Invariant::Refused, key.key.as_str(), message);
    }
}

/// What a key answers after its first acknowledgement: that answer again, or a conflict.
fn after_the_first(
    call: &Call<'_>,
    attempts: &[&Call<'_>],
    committed: Option<&Applied>,
    found: &mut Found,
) {
    let Some(answer) = &call.answer else { return };
    let conflict = answer.error.as_deref() == Some("IDEMPOTENCY_CONFLICT");
    // What is refused before the ledger is asked, and what comes when it cannot be.
    let elsewhere = call.fate == Fate::Open || answer.scope;
    let malformed = answer.error.as_deref() == Some("VALIDATION_ERROR");
    let before = attempts.iter().find(|c| {
        matches!(c.fate, Fate::Done | Fate::Repeated) && c.attempt.over_ns < call.attempt.sent_ns
    });
    if let Some(before) = before.filter(|_| !elsewhere) {
        let told = if before.payload == call.payload {
            let again = call.fate == Fate::Repeated;
            (!again).then_some("the same call after its acknowledgement is not answered with it")
        } else {
            (!conflict && !malformed)
                .then_some("another payload after the acknowledgement is no conflict")
        };
        if let Some(message) = told {
            found.add(Invariant::I7, call.place(), message);
        }
    }
    if conflict
        && committed.is_none_or(|commit| call.payload.is_some_and(|payload| commit.is_of(&payload)))
    {
        let message = "it is refused as a conflict, and no other payload is committed";
        found.add(Invariant::I7, call.place(), message);
    }
}

/// Every commit of a person is of a key that this person sent, or of a call without one. Operators at the command line
/// are in no history, unless it names them.
fn unsent(books: &Books, calls: &[Call<'_>], keyed: &Keyed<'_, '_>, found: &mut Found) {
    let mut keyless: BTreeMap<(&str, String, Fingerprint), usize> = BTreeMap::new();
    for call in calls.iter().filter(|c| c.key.is_none() && c.fate != Fate::Nothing) {
        if let Some(payload) = call.payload {
            let whose = (call.attempt.tenant.as_str(), call.attempt.actor.clone(), payload);
            *keyless.entry(whose).or_default() += usize::from(call.fate != Fate::Repeated);
        }
    }
    for ((tenant, id), commit) in books.commits() {
        let (actor, key) = (&commit.actor, &commit.cause.key);
        let operator = matches!(actor, Actor::Cli(_));
        if !actor.is_person()
            || operator && calls.iter().all(|c| c.attempt.actor != actor.to_string())
        {
            continue;
        }
        let whose = LedgerKey { tenant: tenant.clone(), actor: actor.clone(), key: key.clone() };
        if keyed.contains_key(&whose) {
            continue;
        }
        let by = actor.to_string();
        // Only a fingerprint under a salt has to be looked for.
        let payload = match &commit.salt {
            None => Some(commit.cause.fingerprint),
            Some(_) => keyless
                .iter()
                .find(|((whose, sender, payload), left)| {
                    *whose == tenant.as_str()
                        && *sender == by
                        && commit.is_of(payload)
                        && **left > 0
                })
                .map(|((_, _, payload), _)| *payload),
        };
        let left = payload.and_then(|payload| keyless.get_mut(&(tenant.as_str(), by, payload)));
        if let Some(left) = left.filter(|_| key.as_str().starts_with(MADE_UP)) {
            *left -= 1;
        } else {
            let message = format!("event {} is caused by {key}, which nobody sent", commit.first);
            found.add(Invariant::I2, id.as_str(), message);
        }
    }
}
