//! When a certificate ends: the one field of X.509 that rustls judges and does not tell (RFC 5280 section 4.1.2.5).
//!
//! Only for telling an operator in time: whether a certificate is good is for the clients to judge.

/// Tags of DER (X.690 section 8): those that are passed on the way.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Unix time, in seconds, after which a certificate in DER is not valid; `None` when it cannot be read.
pub(super) fn not_after(certificate: &[u8]) -> Option<i64> {
    let (certificate, _) = of(SEQUENCE, certificate)?;
    let (mut fields, _) = of(SEQUENCE, certificate)?;
    if fields.first() == Some(&VERSION) {
        fields = next(fields)?.2;
    }
    // Serial number, algorithm and issuer come before the validity.
    for _ in 0..3 {
        fields = next(fields)?.2;
    }
    let (validity, _) = of(SEQUENCE, fields)?;
    let (tag, time, _) = next(next(validity)?.2)?;
    match tag {
        UTC_TIME => {
            // Years 1950 to 2049 (RFC 5280 section 4.1.2.5.1).
            let (year, rest) = time.split_at_checked(2)?;
            let year = digits(year)?;
            seconds(if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = time.split_at_checked(4)?;
            seconds(digits(year)?, rest)
        }
        _ => None,
    }
}

/// The first element: tag, content, and what comes behind it.
fn next(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = match short {
        0..0x80 => (usize::from(short), rest),
        0x81..=0x84 => {
            let (long, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            (long.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        0x80 | 0x85.. => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}

/// The content of the first element, which has this tag, and what comes behind it.
fn of(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, content, behind) = next(bytes)?;
    (found == tag).then_some((content, behind))
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(*byte - b'0'))
    })
}

/// `MMDDHHMMSSZ` of a year. Days are counted from the first of March of the year 0, so that a leap day ends a year.
fn seconds(year: i64, rest: &[u8]) -> Option<i64> {
    let rest = rest.strip_suffix(b"Z").filter(|rest| rest.len() == 10)?;
    let mut fields = rest.chunks(2).map(digits);
    let mut field = || fields.next()?;
    let (month, day) = (field()?, field()?);
    let (hour, minute, second) = (field()?, field()?, field()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate that ends on this day.
    fn ending(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, month, day);
        let key = rcgen::KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_forms_of_time() {
        for ((year, month, day), unix) in [
            ((2000, 2, 29), 951_782_400),
            ((2026, 11, 30), 1_795_996_800),
            ((2049, 12, 31), 2_524_521_600),
            ((2050, 1, 1), 2_524_608_000),
            ((2100, 3, 1), 4_107_542_400),
        ] {
            assert_eq!(not_after(&ending(year, month, day)), Some(unix), "{year}-{month}-{day}");
        }
    }

    #[test]
    fn what_is_cut_or_changed_anywhere_is_no_end_and_no_panic() {
        let whole = ending(2030, 1, 1);
        for length in 0..200 {
            assert_eq!(not_after(&whole[..length]), None);
        }
        for index in 0..whole.len() {
            for value in [0, 0x80, 0x84, 0xff] {
                let mut changed = whole.clone();
                changed[index] = value;
                not_after(&changed);
            }
        }
    }
}
