//! The pump inspection as a policy written in Rust, run end to end in process: no server, one SQLite file, one crash.
//!
//! Reading order: `procedure` (the table), `judge` and `policy` (the [`DomainPolicyPort`]), `site` (the ports and the
//! engine), `calls` and `story` (who says what). What is printed is committed as `golden.txt`.
//!
//! [`DomainPolicyPort`]: wf_core::policy::DomainPolicyPort

mod calls;
mod decimal;
mod judge;
mod policy;
mod procedure;
mod site;
mod story;

use std::error::Error;
use std::io::{self, Write as _};

use crate::site::{Site, World};
use crate::story::Story;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("checkpoint.db");
    // Clock and ids belong to the world: they go on while the process is down.
    let world = World::default();

    writeln!(io::stdout(), "A pump inspection, in process, on one SQLite file")?;
    let process = process()?;
    let workflow = process.block_on(async {
        let site = Site::open(&file, &world).await?;
        Story::new(&site, io::stdout()).until_the_crash().await
    })?;
    // Everything that ran in the process is gone, in the middle of whatever it did; only the file is left.
    process.shutdown_background();

    self::process()?.block_on(async {
        let site = Site::open(&file, &world).await?;
        Story::new(&site, io::stdout()).after_the_crash(&workflow).await
    })
}

fn process() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
