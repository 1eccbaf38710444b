//! Rules: which call is disturbed, how and when. Their words are in README.md. Pure; read and asked by `book`.

use crate::log::Class;

/// A call that can be disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Open,
    Pread,
    Pwrite,
    Ftruncate,
    Fsync,
    Unlink,
    Rename,
}

/// How a call is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// It fails with this error number and has no effect.
    Fail(i32),
    /// It reads or writes half of the bytes.
    Short,
    /// It takes so many milliseconds longer.
    Delay(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Nth(u64),
    From(u64),
    Every(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    call: Option<Call>,
    class: Option<Class>,
    action: Action,
    when: When,
    seen: u64,
}

/// Rules in their order, and how often each was met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules(Vec<Rule>);

impl Rules {
    /// None.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Of the text of a rule file. The error is the first line that is no rule.
    pub(crate) fn parse(text: &str) -> Result<Self, &str> {
        text.lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
            .map(|line| rule(line).ok_or(line))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// What happens to this call. Every rule that is about it counts it; the first that is due is done.
    pub(crate) fn judge(&mut self, call: Call, class: Class) -> Option<Action> {
        let mut due = None;
        for rule in &mut self.0 {
            if rule.call.is_none_or(|c| c == call) && rule.class.is_none_or(|c| c == class) {
                rule.seen += 1;
                if rule.when.is_due(rule.seen) {
                    due = due.or(Some(rule.action));
                }
            }
        }
        due
    }
}

impl When {
    fn is_due(self, seen: u64) -> bool {
        match self {
            Self::Nth(n) => seen == n,
            Self::From(n) => seen >= n,
            Self::Every(n) => seen.is_multiple_of(n),
        }
    }
}

fn rule(line: &str) -> Option<Rule> {
    let mut words = line.split_whitespace();
    let call = match words.next()? {
        "*" => None,
        "open" => Some(Call::Open),
        "pread" => Some(Call::Pread),
        "pwrite" => Some(Call::Pwrite),
        "ftruncate" => Some(Call::Ftruncate),
        "fsync" => Some(Call::Fsync),
        "unlink" => Some(Call::Unlink),
        "rename" => Some(Call::Rename),
        _ => return None,
    };
    let class = match words.next()? {
        "*" => None,
        "db" => Some(Class::Database),
        "wal" => Some(Class::Wal),
        "journal" => Some(Class::Journal),
        "shm" => Some(Class::Shm),
        "folder" => Some(Class::Folder),
        "other" => Some(Class::Other),
        _ => return None,
    };
    let action = action(words.next()?)?;
    let when = match words.next().unwrap_or("always") {
        "always" => When::From(1),
        "once" => When::Nth(1),
        word => {
            let (name, number) = word.split_once('=')?;
            let number = number.parse().ok().filter(|number| *number > 0)?;
            match name {
                "nth" => When::Nth(number),
                "from" => When::From(number),
                "every" => When::Every(number),
                _ => return None,
            }
        }
    };
    words.next().is_none().then_some(Rule { call, class, action, when, seen: 0 })
}

fn action(word: &str) -> Option<Action> {
    Some(Action::Fail(match word {
        "EIO" => libc::EIO,
        "ENOSPC" => libc::ENOSPC,
        "EDQUOT" => libc::EDQUOT,
        "EROFS" => libc::EROFS,
        "EINTR" => libc::EINTR,
        "EAGAIN" => libc::EAGAIN,
        "EACCES" => libc::EACCES,
        "EMFILE" => libc::EMFILE,
        "ENOENT" => libc::ENOENT,
        "short" => return Some(Action::Short),
        word => return word.strip_prefix("delay=")?.parse().ok().map(Action::Delay),
    }))
}

#[cfg(test)]
mod tests {
    use super::{Action, Call, Rules};
    use crate::log::Class;

    fn times(text: &str, calls: &[(Call, Class)]) -> Vec<Option<Action>> {
        let mut rules = Rules::parse(text).expect("rules");
        calls.iter().map(|(call, class)| rules.judge(*call, *class)).collect()
    }

    #[test]
    fn a_rule_is_due_when_it_says() {
        let syncs = [(Call::Fsync, Class::Wal); 4];
        let eio = Some(Action::Fail(libc::EIO));
        assert_eq!(times("fsync wal EIO nth=3", &syncs), [None, None, eio, None]);
        assert_eq!(times("fsync wal EIO once", &syncs), [eio, None, None, None]);
        assert_eq!(times("fsync wal EIO", &syncs), [eio; 4]);
        assert_eq!(times("fsync wal EIO always", &syncs), [eio; 4]);
        assert_eq!(times("fsync wal EIO from=3", &syncs), [None, None, eio, eio]);
        assert_eq!(times("fsync wal EIO every=2", &syncs), [None, eio, None, eio]);
    }

    #[test]
    fn a_rule_counts_only_what_it_is_about() {
        let calls = [
            (Call::Fsync, Class::Database),
            (Call::Pwrite, Class::Wal),
            (Call::Fsync, Class::Wal),
            (Call::Pwrite, Class::Database),
        ];
        let full = Some(Action::Fail(libc::ENOSPC));
        assert_eq!(times("fsync wal ENOSPC once", &calls), [None, None, full, None]);
        assert_eq!(times("* wal ENOSPC once", &calls), [None, full, None, None]);
        assert_eq!(times("pwrite * ENOSPC nth=2", &calls), [None, None, None, full]);
        assert_eq!(times("# none\n\n", &calls), [None; 4]);
    }

    #[test]
    fn the_first_rule_that_is_due_is_done_and_all_count() {
        let calls = [(Call::Pwrite, Class::Wal); 2];
        let text = "pwrite wal short once\npwrite * delay=5 always";
        assert_eq!(times(text, &calls), [Some(Action::Short), Some(Action::Delay(5))]);
    }

    #[test]
    fn what_is_no_rule_is_named() {
        for bad in [
            "fsync",
            "fsync wal",
            "fsync wal EBAD",
            "sync wal EIO",
            "fsync log EIO",
            "fsync wal EIO nth=0",
            "fsync wal EIO nth=x",
            "fsync wal EIO once more",
            "fsync wal delay=",
        ] {
            assert_eq!(Rules::parse(&format!("fsync wal EIO\n{bad}")), Err(bad));
        }
    }
}
