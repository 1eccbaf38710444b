//! `wf-cli verify-evidence`: looks through a document of evidence, without any store, server or configuration.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use wf_core::evidence::{Damage, Evidence, Part, verify};
use wf_core::limits::EVIDENCE_FILE_BYTES_MAX;
use wf_core::models::Digest;

use crate::exit::{Exit, Failure, one_line};
use crate::output::{Output, Tone, counted};

/// Verify the evidence of a workflow, without the store
#[derive(Debug, Args)]
#[command(
    after_help = "Evidence is what the resource workflow://workflows/ID/evidence has, or `wf-cli workflow evidence ID`
prints. Checked are the digest of the document, the hash chain of the history, sensitive values
against their digests in it, signatures, the state against what the history leads to, and the
definition against the digest that the history names. Nothing but the digest holds when, and from
which store, it says that it was made; and whoever makes up a whole history can make up a document
of it. Compare the hash of the last event with a note of it from elsewhere, with --last-hash.
The exit code is 4 when something does not hold.

Examples:
  wf-cli verify-evidence evidence.json
  wf-cli workflow evidence 01909a7c-5f0e-7d1b-8a51-3b8f6d1c2e4f | wf-cli verify-evidence - --json"
)]
pub(crate) struct VerifyEvidenceArgs {
    /// The document; `-` for the standard input
    file: PathBuf,
    /// The hash that its last event must have
    #[arg(long, value_name = "HASH", value_parser = Digest::parse)]
    last_hash: Option<Digest>,
}

/// Damage that is printed; the rest is counted.
const SHOWN_MAX: usize = 100;

/// Runs the command.
pub(crate) fn run(args: &VerifyEvidenceArgs, output: Output) -> Result<(), Failure> {
    let text = read(&args.file).map_err(|error| {
        Failure::failed(format!("cannot read {}", args.file.display())).because(error)
    })?;
    let checked = verify(&text).and_then(|evidence| expected(evidence, args.last_hash.as_ref()));
    if output.is_json() {
        output.document(&document(&checked))?;
    } else {
        told(&checked, output)?;
    }
    checked.map(drop).map_err(|_| Failure::quiet(Exit::Damage))
}

/// One byte more than may be looked through, so that a larger file is seen to be one.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let most = u64::try_from(EVIDENCE_FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut text = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut text)?;
    } else {
        File::open(file)?.take(most).read_to_end(&mut text)?;
    }
    Ok(text)
}

fn expected(evidence: Evidence, last_hash: Option<&Digest>) -> Result<Evidence, Vec<Damage>> {
    match last_hash {
        Some(expected) if *expected != evidence.workflow.last_hash => Err(vec![Damage {
            part: Part::History,
            message: format!("the last event has the hash {}", evidence.workflow.last_hash),
        }]),
        Some(_) | None => Ok(evidence),
    }
}

fn document(checked: &Result<Evidence, Vec<Damage>>) -> Value {
    match checked {
        Ok(evidence) => json!({
            "ok": true,
            "workflow_id": evidence.workflow.id,
            "tenant": evidence.workflow.tenant,
            "state": evidence.workflow.phase.as_str(),
            "result": evidence.workflow.result,
            "events": evidence.events.len(),
            "last_hash": evidence.workflow.last_hash,
            "procedure": evidence.workflow.procedure,
            "store_id": evidence.store_id,
            "made_at": evidence.made_at,
        }),
        Err(damage) => {
            let shown = damage.iter().take(SHOWN_MAX);
            let shown: Vec<Value> = shown
                .map(|found| json!({"part": found.part.as_str(), "message": found.message}))
                .collect();
            json!({"ok": false, "damage": shown, "damage_total": damage.len()})
        }
    }
}

fn told(checked: &Result<Evidence, Vec<Damage>>, output: Output) -> Result<(), Failure> {
    match checked {
        Ok(evidence) => {
            let workflow = &evidence.workflow;
            output.line(&format!(
                "{}: workflow {} of tenant {}, {}, {}",
                output.paint(Tone::Good, "ok"),
                workflow.id,
                workflow.tenant,
                counted(evidence.events.len(), "event"),
                workflow.phase.as_str(),
            ))?;
            output.line(&format!("last hash  {}", workflow.last_hash))?;
            output.line(&format!(
                "procedure  {} version {}, digest {}",
                workflow.procedure.id, workflow.procedure.version, workflow.procedure.digest
            ))?;
            let store = one_line(&evidence.store_id);
            output.line(&format!("made       {} from store {store}", evidence.made_at))
        }
        Err(damage) => {
            for found in damage.iter().take(SHOWN_MAX) {
                let part = output.paint(Tone::Bad, found.part.as_str());
                output.line(&format!("{part} {}", one_line(&found.message)))?;
            }
            let verdict = output.paint(Tone::Bad, &counted(damage.len(), "finding"));
            output.line(&format!("{verdict}: this evidence does not hold"))
        }
    }
}
