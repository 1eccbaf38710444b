//! A look as tables: what is worth seeing first comes first. Pure, so that the screen and `--once` say the same.

use std::collections::BTreeMap;

use wf_core::models::Timestamp;
use wf_core::ports::{DamagedMessage, OutboxRow, OutboxState};

use super::amounts::{bytes, millis, number, rate, span};
use super::figures::Figures;
use super::look::{Look, ROWS, label};
use crate::exit::one_line;
use crate::output::Tone;

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pane {
    pub(super) title: &'static str,
    pub(super) headings: Vec<&'static str>,
    pub(super) rows: Vec<Row>,
    /// What is said below: that nothing is there, or more than is shown.
    pub(super) notes: Vec<String>,
}

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    pub(super) tone: Option<Tone>,
}

impl Row {
    fn plain(cells: impl IntoIterator<Item = String>) -> Self {
        // What others wrote must not act on the terminal.
        Self { cells: cells.into_iter().map(|cell| one_line(&cell)).collect(), tone: None }
    }

    fn toned(mut self, tone: Option<Tone>) -> Self {
        self.tone = tone;
        self
    }
}

/// Calls of a tool, as servers counted them.
const CALLS: &str = "checkpoint_tool_calls_total";

/// All panes, in the order of their keys. `before` is the look before, for what happens in a second.
pub(super) fn all(look: &Look, before: Option<&Look>) -> Vec<Pane> {
    let now = Sight::of(look);
    let then = before.map(Sight::of);
    vec![
        callers(look),
        blocked(look),
        locks(look),
        outbox(look),
        calls(&now, then.as_ref()),
        servers(look, before),
        writer(&now, then.as_ref()),
        background(&now),
    ]
}

/// The figures of all servers that answered, and when that was.
struct Sight {
    at: Timestamp,
    figures: Option<Figures>,
}

impl Sight {
    fn of(look: &Look) -> Self {
        let told: Vec<&Figures> =
            look.servers.iter().filter_map(|(_, told)| told.as_ref().ok()).collect();
        let figures = (!told.is_empty()).then(|| Figures::of(told.into_iter()));
        Self { at: look.at, figures }
    }

    fn sum(&self, name: &str) -> Option<f64> {
        self.figures.as_ref()?.sum(name)
    }
}

fn ago(now: Timestamp, then: Option<Timestamp>) -> String {
    then.map_or_else(|| "-".to_owned(), |then| span(now.since_ms(then)))
}

fn pane(title: &'static str, headings: &[&'static str], rows: Vec<Row>, nothing: &str) -> Pane {
    let notes = if rows.is_empty() { vec![nothing.to_owned()] } else { Vec::new() };
    Pane { title, headings: headings.to_vec(), rows, notes }
}

impl Pane {
    fn noting(mut self, when: bool, note: String) -> Self {
        if when {
            self.notes.push(note);
        }
        self
    }
}

fn callers(look: &Look) -> Pane {
    let stored = &look.stored;
    let row = |caller: &super::look::Caller| {
        Row::plain([
            caller.person.spoken().to_owned(),
            caller.open.to_string(),
            caller.blocked.to_string(),
            ago(look.at, Some(caller.last_activity)),
            caller.label.clone(),
            caller.tenant.to_string(),
        ])
        .toned((caller.blocked > 0).then_some(Tone::Warn))
    };
    let rows = stored.callers.iter().map(row).collect();
    let headings = ["WHO", "OPEN", "BLOCKED", "ACTIVE", "LAST WORK", "TENANT"];
    pane("Callers", &headings, rows, "Nobody has open work.").noting(
        stored.more[0],
        format!("There is more open work than is looked at: {ROWS} workflows of each state."),
    )
}

fn blocked(look: &Look) -> Pane {
    let rows = look.stored.blocked.iter().map(|workflow| {
        let first = workflow.blocks.iter().min_by_key(|block| block.at);
        Row::plain([
            label(workflow).to_owned(),
            ago(look.at, first.map(|block| block.at)),
            first.map_or_else(|| "-".to_owned(), |block| block.code.to_string()),
            first.map_or("-", |block| block.severity.as_str()).to_owned(),
            workflow.owner.spoken().to_owned(),
            workflow.id.to_string(),
        ])
        .toned(Some(Tone::Bad))
    });
    let headings = ["WORK", "FOR", "CODE", "SEVERITY", "OWNER", "WORKFLOW"];
    pane("Blocked", &headings, rows.collect(), "Nothing is blocked.")
}

fn locks(look: &Look) -> Pane {
    let rows = look.stored.locks.iter().map(|row| {
        let holder = row.holder.as_ref();
        Row::plain([
            row.asset_id.to_string(),
            holder.map_or_else(String::new, |holder| holder.owner.spoken().to_owned()),
            ago(look.at, holder.map(|holder| holder.acquired_at)),
            row.fence.to_string(),
            holder.map_or_else(String::new, |holder| holder.workflow_id.to_string()),
        ])
    });
    let headings = ["ASSET", "HELD BY", "FOR", "FENCE", "WORKFLOW"];
    pane("Locks", &headings, rows.collect(), "No asset is held.").noting(
        look.stored.more[1],
        "There are more assets than are looked at: `wf-cli locks list` shows all.".to_owned(),
    )
}

fn outbox(look: &Look) -> Pane {
    let backlog = &look.stored.backlog;
    let rows = look.stored.messages.iter().map(|row| message(look.at, row)).collect();
    let headings = ["STATE", "TYPE", "TO", "AGE", "TRIES", "LAST ERROR", "ID"];
    let waiting = format!(
        "{} to be delivered, the oldest for {}; {} given up.",
        backlog.pending,
        ago(look.at, backlog.oldest_pending),
        backlog.dead
    );
    pane("Outbox", &headings, rows, "No message waits.")
        .noting(backlog.pending + backlog.dead > 0, waiting)
        .noting(look.stored.more[2], format!("{ROWS} of each are shown: `wf-cli outbox list`."))
}

fn message(now: Timestamp, row: &Result<OutboxRow, DamagedMessage>) -> Row {
    match row {
        Ok(row) => {
            let (state, tone) = match row.status.state {
                OutboxState::Dead => ("dead", Some(Tone::Bad)),
                OutboxState::Pending if row.status.attempts > 0 => ("pending", Some(Tone::Warn)),
                OutboxState::Pending => ("pending", None),
                OutboxState::Delivered => ("delivered", Some(Tone::Faint)),
            };
            Row::plain([
                state.to_owned(),
                row.message.kind.clone(),
                row.message.recipient.clone(),
                ago(now, Some(row.message.time)),
                row.status.attempts.to_string(),
                row.status.last_error.clone().unwrap_or_else(|| "-".to_owned()),
                row.message.id.clone(),
            ])
            .toned(tone)
        }
        Err(damaged) => {
            let dash = || "-".to_owned();
            let error = damaged.error.clone();
            Row::plain([
                "damaged".to_owned(),
                dash(),
                dash(),
                dash(),
                dash(),
                error,
                damaged.id.clone(),
            ])
            .toned(Some(Tone::Bad))
        }
    }
}

/// What stands in a pane that needs a server.
const NO_SERVER: &str = "No server answers: see the pane Servers.";

fn calls(now: &Sight, then: Option<&Sight>) -> Pane {
    let headings = ["TOOL", "CALLS", "A SECOND", "REFUSED", "REPLAYS", "MEAN"];
    let Some(figures) = &now.figures else {
        return pane("Calls", &headings, Vec::new(), NO_SERVER);
    };
    let by = |figures: &Figures, wanted: fn(&str, &str) -> bool| figures.by(CALLS, "tool", wanted);
    let calls = by(figures, |_, _| true);
    let before =
        then.and_then(|then| then.figures.as_ref()).map(|figures| by(figures, |_, _| true));
    let refused = by(figures, |label, value| label != "code" || !value.is_empty());
    let replays = by(figures, |label, value| label != "duplicate" || value == "true");
    let of = |name: &str| figures.by(name, "tool", |_, _| true);
    let (sums, counts) = (of("checkpoint_tool_seconds_sum"), of("checkpoint_tool_seconds_count"));
    let ms = then.map_or(0, |then| now.at.since_ms(then.at));
    let mut busiest: Vec<_> = calls.iter().collect();
    busiest.sort_by(|a, b| b.1.total_cmp(a.1).then(a.0.cmp(b.0)));
    let row = |(tool, count): (&String, &f64)| {
        let one = |of: &BTreeMap<String, f64>| of.get(tool).copied();
        let mean = one(&sums).zip(one(&counts)).map(|(sum, count)| sum / count.max(1.0));
        let then = before.as_ref().map(|before| one(before).unwrap_or(0.0));
        Row::plain([
            tool.clone(),
            number(Some(*count)),
            number(rate(Some(*count), then, ms)),
            number(one(&refused).or(Some(0.0))),
            number(one(&replays).or(Some(0.0))),
            millis(mean),
        ])
    };
    pane("Calls", &headings, busiest.into_iter().map(row).collect(), "No call so far.")
}

fn servers(look: &Look, before: Option<&Look>) -> Pane {
    let row = |(index, (name, answer)): (usize, &(String, Result<Figures, String>))| match answer {
        Err(_) => Row::plain([name.clone(), "no answer".to_owned()]).toned(Some(Tone::Bad)),
        Ok(figures) => {
            let (state, tone) = match figures.sum("checkpoint_store_ready") {
                Some(ready) if ready < 1.0 => ("no store", Some(Tone::Bad)),
                Some(_) => ("ready", Some(Tone::Good)),
                None => ("-", None),
            };
            let then = before.and_then(|look| look.servers.get(index));
            let then =
                then.and_then(|(_, told)| told.as_ref().ok()).and_then(|told| told.sum(CALLS));
            let ms = before.map_or(0, |before| look.at.since_ms(before.at));
            Row::plain([
                name.clone(),
                state.to_owned(),
                figures.label("checkpoint_build_info", "version").unwrap_or("-").to_owned(),
                number(rate(figures.sum(CALLS), then, ms)),
                number(figures.sum("checkpoint_requests_in_flight")),
                number(figures.sum("checkpoint_connections")),
                bytes(figures.sum("checkpoint_memory_bytes")),
            ])
            .toned(tone)
        }
    };
    let rows = look.servers.iter().enumerate().map(row).collect();
    let headings = ["SERVER", "STATE", "VERSION", "CALLS/S", "BUSY", "OPEN", "MEMORY"];
    let mut servers = pane("Servers", &headings, rows, "No server is asked.");
    servers.notes.extend(look.servers.iter().filter_map(|(_, answer)| answer.clone().err()));
    servers
}

fn facts(title: &'static str, facts: Vec<(&str, String, bool)>) -> Pane {
    let row = |(name, value, bad): (&str, String, bool)| {
        Row::plain([name.to_owned(), value]).toned(bad.then_some(Tone::Bad))
    };
    pane(title, &["WHAT", "HOW MUCH"], facts.into_iter().map(row).collect(), NO_SERVER)
}

fn writer(now: &Sight, then: Option<&Sight>) -> Pane {
    let Some(figures) = &now.figures else { return facts("Writer", Vec::new()) };
    if figures.sum("checkpoint_commit_queue_depth").is_none() {
        let title = "Writer";
        return pane(
            title,
            &["WHAT", "HOW MUCH"],
            Vec::new(),
            "No server has its store in a file.",
        );
    }
    let sum = |name| figures.sum(name);
    let count = "checkpoint_commit_seconds_count";
    let ms = then.map_or(0, |then| now.at.since_ms(then.at));
    let per_second =
        rate(sum(count).or(Some(0.0)), then.map(|then| then.sum(count).unwrap_or(0.0)), ms);
    let failed = sum("checkpoint_commit_failures");
    let free = figures.smallest("checkpoint_disk_free_bytes");
    let some = |of: Option<f64>, bad: fn(f64) -> bool| of.is_some_and(bad);
    facts(
        "Writer",
        vec![
            (
                "writes that wait, of 1024",
                number(sum("checkpoint_commit_queue_depth")),
                some(sum("checkpoint_commit_queue_depth"), |depth| depth > 512.0),
            ),
            ("commits a second", number(per_second), false),
            (
                "a commit takes, on average",
                millis(figures.mean("checkpoint_commit_seconds")),
                false,
            ),
            (
                "writes in a commit, on average",
                number(figures.mean("checkpoint_commit_batch_size")),
                false,
            ),
            ("commits that failed", number(failed), some(failed, |of| of > 0.0)),
            ("database", bytes(sum("checkpoint_database_bytes")), false),
            ("write-ahead log", bytes(sum("checkpoint_wal_bytes")), false),
            ("room on the disk", bytes(free), some(free, |of| of < 512.0 * 1024.0 * 1024.0)),
        ],
    )
}

fn background(now: &Sight) -> Pane {
    let Some(figures) = &now.figures else { return facts("Background", Vec::new()) };
    let sum = |name| figures.sum(name);
    let grown = |of: Option<f64>| of.is_some_and(|of| of > 0.0);
    let (kept, given_up) =
        (sum("checkpoint_deadlines_kept_total"), sum("checkpoint_notifications_given_up_total"));
    let failed = sum("checkpoint_notification_failures_total");
    let bugs = sum("checkpoint_background_panics_total");
    let late = figures.mean("checkpoint_deadline_lateness_seconds");
    let mut all = vec![
        ("deadlines fired", number(sum("checkpoint_deadlines_fired_total")), false),
        ("deadlines that were late, on average by", millis(late), false),
        ("deadlines kept to be tried again", number(kept), grown(kept)),
        ("messages delivered", number(sum("checkpoint_notifications_delivered_total")), false),
        ("deliveries that failed", number(failed), grown(failed)),
        ("messages given up", number(given_up), grown(given_up)),
        ("bugs met", number(bugs), grown(bugs)),
    ];
    if let Some(held) = sum("checkpoint_reconciler_shards_held") {
        let lag = figures.largest("checkpoint_reconciler_lag_seconds");
        let shown = lag.map_or_else(|| "-".to_owned(), |lag| format!("{lag:.1} s"));
        let refused = figures.by("checkpoint_reconciler_actions_total", "", |label, value| {
            label != "outcome" || ["denied", "no_machine", "refused"].contains(&value)
        });
        let refused = refused.values().copied().reduce(|a, b| a + b).or(Some(0.0));
        let steps = sum("checkpoint_reconciler_actions_total");
        all.extend([
            ("reconciler: shards held", number(Some(held)), held < 1.0),
            ("reconciler: behind by", shown, lag.is_some_and(|lag| lag > 300.0)),
            ("reconciler: steps", number(steps.or(Some(0.0))), false),
            ("reconciler: steps refused", number(refused), grown(refused)),
        ]);
    }
    facts("Background", all)
}
