//! Authentication under load: an issuer that rotates its keys and has bad days, callers that show good tokens and every
//! kind of bad ones, all at once.
//!
//! Nobody is let in who must not be; nobody with a good token is refused, or waits for the issuer, while the server has
//! keys; the issuer is asked no more often than documented, whoever calls. Beside the probers honest callers work, and the
//! audit finds whatever somebody did who was let in by mistake. The server lives [`FASTER`] times faster where it is about
//! keys, so that hours of them fit.
//!
//! Files: `issuer` (keys, and the address with moods), `shown` (what callers show), `prober` (a caller), `session` (server,
//! issuer and callers), `control` (what must be found).

mod control;
mod issuer;
mod prober;
mod session;
mod shown;

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;

use issuer::{Key, Mood};
use session::Session;
use shown::{Kind, Standing};

/// The bench.
pub(super) const AUTH: Bench = Bench {
    name: "auth",
    what: "keys that rotate, issuers on bad days, forged and expired tokens among good ones, 64 callers",
    run,
    control: control::run,
};

/// How many times faster than documented the server's times for keys are.
const FASTER: u32 = 50;
/// From a new key's first use until it is known, and from its end until it counts no more (`KeyTimes` of
/// wf-mcp-http): half a minute, and ten minutes. Between two fetches while the issuer is away: five seconds.
const PAUSE: Duration = Duration::from_millis(30_000 / FASTER as u64);
const REFRESH: Duration = Duration::from_millis(600_000 / FASTER as u64);
const RETRY: Duration = Duration::from_millis(5_000 / FASTER as u64);
/// What a fetch may take beside that, and a machine at work.
const SLACK: Duration = Duration::from_secs(10);
/// Longest that 99 of 100 good callers wait. Who waited for an issuer that hangs would wait for three seconds.
const WAIT_MAX: Duration = Duration::from_millis(2_500);
/// Rounds of a soak without `--count`.
const SOAK: u64 = 40;

fn run(setting: &Setting) -> Result<Report, Fault> {
    let rounds = match setting.size {
        Size::Short => 1,
        Size::Soak => setting.count.unwrap_or(SOAK),
    };
    let mut random = StdRng::seed_from_u64(setting.seed ^ 0xa0_7e);
    let mut report = Report::default();
    let mut session = Session::open(setting, "auth", Mood::Closes, &[])?;
    // It began while its issuer was away: everybody is told to come again.
    session.goes_on(Duration::from_millis(700));
    session.book.keys_are(Standing::Changing);
    session.issuer.feels(Mood::Well);
    if session.is_answered(Kind::Good, 200, SLACK)? {
        session.book.keys_are(Standing::Known);
    } else {
        session.wrong("the issuer is back, and nobody is let in");
    }
    session.works()?;
    for number in 0..rounds {
        round(&mut session, number, &mut random)?;
    }
    session.close(&mut report)?;
    Ok(report)
}

/// A key comes, the issuer has bad days, and the key goes.
fn round(session: &mut Session, number: u64, random: &mut StdRng) -> Result<(), Fault> {
    let mut long = |ms: u64| Duration::from_millis(random.random_range(ms..2 * ms));
    phase(session, "well", Mood::Well, long(700));
    let other = Key::new(format!("b-{number}"))?;
    let other = session.mint.other_is(Standing::Changing, Some(other));
    session.issuer.publishes(&[&session.mint.lasting, &other]);
    let begun = Instant::now();
    if session.is_answered(Kind::ByTheOther, 200, PAUSE + SLACK)? {
        session.took("a new key was known", begun.elapsed());
        session.mint.other_is(Standing::Known, None);
    } else {
        session.wrong("a new key is not known");
    }
    phase(session, "with a new key", Mood::Well, long(500));
    for _ in 0..3 {
        let mood = Mood::BAD.choose(random).copied().unwrap_or(Mood::Closes);
        // Long enough for a fetch, whoever asks for it.
        let long = PAUSE + Duration::from_millis(random.random_range(100..300));
        phase(session, "on a bad day", mood, long);
    }
    phase(session, "slow", Mood::Slow, Duration::from_millis(random.random_range(1_000..2_000)));
    // Last, since a fetch that gets no answer holds the next one up for three seconds.
    let mute = Mood::MUTE.choose(random).copied().unwrap_or(Mood::Hangs);
    phase(session, "mute", mute, Duration::from_millis(random.random_range(1_000..2_000)));
    session.issuer.feels(Mood::Well);
    session.mint.other_is(Standing::Changing, None);
    session.issuer.publishes(&[&session.mint.lasting]);
    let begun = Instant::now();
    if session.is_answered(Kind::ByTheOther, 401, REFRESH + SLACK)? {
        session.took("a key that was taken out counted no more", begun.elapsed());
        session.mint.other_is(Standing::Unknown, None);
    } else {
        session.wrong("a key that was taken out counts on");
    }
    phase(session, "well again", Mood::Well, Duration::from_millis(500));
    Ok(())
}

/// The issuer is like that for so long.
fn phase(session: &mut Session, name: &str, mood: Mood, long: Duration) {
    session.issuer.feels(mood);
    session.mint.fade();
    let (begun, fetches) = (Instant::now(), session.issuer.fetches());
    session.goes_on(long);
    let (took, asked) = (begun.elapsed(), session.issuer.fetches() - fetches);
    let gap = if matches!(mood, Mood::Well | Mood::Slow) { PAUSE } else { RETRY };
    let most = took.as_millis() / gap.as_millis() + 3;
    if u128::try_from(asked).unwrap_or(u128::MAX) > most {
        session.wrong(format!(
            "{name}: the issuer was asked {asked} times in {took:?}, {most} allowed"
        ));
    }
    session.judge_waits(name);
}
