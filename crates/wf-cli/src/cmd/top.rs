//! `wf-cli top`: who works, what is blocked, who holds what, and how servers do, now and again every second.
//!
//! `look` reads the store and asks servers, [`figures`] reads what they answer, [`panes`] makes tables of it; `screen` draws
//! them and `terminal` listens to keys. Without a terminal, `--once` prints the same tables.

mod amounts;
mod figures;
mod look;
mod panes;
#[cfg(feature = "top")]
mod screen;
#[cfg(feature = "top")]
mod terminal;

use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;

use crate::compose;
use crate::config::ConfigArgs;
use crate::config::backend::BackendConfig;
use crate::exit::Failure;
use crate::output::{Output, Tone};
use look::{Looker, Server};

/// Most servers that are asked.
const SERVERS_MAX: usize = 32;
/// How often a file is looked at, unless asked otherwise.
const EVERY_FILE: Duration = Duration::from_secs(1);
/// How often a table is: each look is paid for.
const EVERY_TABLE: Duration = Duration::from_secs(10);

/// Show callers, blocked workflows, locks, messages and servers, refreshed
#[derive(Debug, Args)]
#[command(
    after_help = "The store is read as `workflow list`, `locks list` and `outbox list` read it, at most 200 rows of
each. Calls, the writer's queue and the reconciler come from /metrics of the servers: without
--metrics-url of the one of the configuration on this machine (server.admin_listen, else
server.listen); figures of several are summed. A look at a DynamoDB table takes some 5 read
units when little is open and up to 1,500 when much is.

Keys: q ends, arrows or tab choose a pane, 1 to 8 too, up and down scroll, ? shows all.

Examples:
  wf-cli top
  wf-cli top --once --json
  wf-cli top --metrics-url http://10.0.0.1:9090/metrics --metrics-url http://10.0.0.2:9090/metrics"
)]
pub(crate) struct TopArgs {
    /// Print one look and end
    #[arg(long)]
    once: bool,
    /// Seconds between two looks [default: 1, 10 for a DynamoDB table]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    interval: Option<u32>,
    /// Metrics of a server; may be repeated
    #[arg(long, value_name = "URL")]
    metrics_url: Vec<String>,
}

/// Runs the command.
pub(crate) async fn run(
    args: &TopArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let config = config.load()?;
    let once = args.once || output.is_json();
    if !once {
        interactive()?;
    }
    if args.metrics_url.len() > SERVERS_MAX {
        return Err(Failure::usage(format!("at most {SERVERS_MAX} servers are asked")));
    }
    let servers = if args.metrics_url.is_empty() {
        vec![Server::of(&config.server)]
    } else {
        args.metrics_url.iter().map(|url| Server::parse(url)).collect::<Result<_, _>>()?
    };
    let (name, every) = match &config.backend {
        BackendConfig::Local { path } => (path.display().to_string(), EVERY_FILE),
        BackendConfig::Aws(table) => (table.to_string(), EVERY_TABLE),
    };
    let every = args.interval.map_or(every, |seconds| Duration::from_secs(seconds.into()));
    let backend = compose::open_existing(&config).await?;
    let looker = Looker::new(backend.store(), name, servers);
    let done = if once { print(&looker, output).await } else { watch(looker, every).await };
    backend.close().await;
    done
}

#[cfg(feature = "top")]
use terminal::watch;

#[cfg(not(feature = "top"))]
#[expect(clippy::unused_async, reason = "its double in builds with a terminal view waits")]
async fn watch(_looker: Looker, _every: Duration) -> Result<(), Failure> {
    interactive()
}

/// Refuses what only a terminal can show.
fn interactive() -> Result<(), Failure> {
    if !cfg!(feature = "top") {
        return Err(Failure::usage("this build has no terminal view")
            .help("print one look with --once, or build with the feature `top`"));
    }
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage("top needs a terminal")
        .help("print one look with --once, or as JSON with --json"))
}

async fn print(looker: &Looker, output: Output) -> Result<(), Failure> {
    let look = looker.look().await?;
    if output.is_json() {
        return output.document(&look.document());
    }
    for (number, pane) in panes::all(&look, None).iter().enumerate() {
        if number > 0 {
            output.line("")?;
        }
        output.line(&output.paint(Tone::Strong, &pane.title.to_uppercase()))?;
        if !pane.rows.is_empty() {
            let rows: Vec<Vec<String>> = pane.rows.iter().map(|row| row.cells.clone()).collect();
            output.table(&pane.headings, &rows)?;
        }
        for note in &pane.notes {
            output.line(&crate::exit::one_line(note))?;
        }
    }
    Ok(())
}
