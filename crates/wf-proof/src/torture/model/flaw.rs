//! What is broken on purpose between the bench and the server, so that the bench shows that it would find it.

use serde_json::{Map, Value};

use super::call::{Arg, Call};
use super::play::{End, Player};
use super::world::{Answer, Predicted};
use crate::fault::Fault;

/// One thing that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Idempotency keys get lost on the way: a server without a ledger.
    ForgetsKeys,
    /// A repeat is answered as if it were new.
    HidesDuplicates,
    /// What is refused leaves something behind.
    WritesWhenRefused,
    /// An asset that is held is given away: a lock without a condition.
    GivesAssetsAway,
    /// A crash loses what was acknowledged.
    LosesCommits,
}

impl Flaw {
    pub(super) const ALL: [Self; 5] = [
        Self::ForgetsKeys,
        Self::HidesDuplicates,
        Self::WritesWhenRefused,
        Self::GivesAssetsAway,
        Self::LosesCommits,
    ];
}

impl Player<'_> {
    /// What the flaw does before a call.
    pub(super) fn before(&mut self, call: &Call, predicted: &Predicted) -> Result<(), End> {
        let locked = predicted.answer == Answer::Refused("ASSET_LOCKED");
        if self.flaw == Some(Flaw::GivesAssetsAway)
            && locked
            && let Some(Arg::Json(Value::Object(assets))) = call.args.get("assets")
        {
            for asset in assets.values().filter_map(Value::as_str) {
                self.command_release(asset)?;
            }
        }
        Ok(())
    }

    /// What the flaw does after a call.
    pub(super) fn after(&mut self, call: &Call, predicted: &Predicted) -> Result<(), End> {
        let refused = matches!(predicted.answer, Answer::Refused(_));
        let id = call.workflow().and_then(|n| self.ids.get(n)).cloned();
        if let (Some(Flaw::WritesWhenRefused), true, Some(id)) = (self.flaw, refused, id) {
            let note = Call { tool: "report_problem".to_owned(), ..Call::status(0) };
            let arguments = [("workflow_id", id.as_str()), ("summary", "x"), ("severity", "note")];
            let arguments: Map<String, Value> = arguments
                .map(|(name, text)| (name.to_owned(), Value::from(text)))
                .into_iter()
                .collect();
            self.send(&note, &arguments)?;
        }
        Ok(())
    }

    /// A copy of the database as it is before a start.
    pub(super) fn keep_copy(&self) -> Result<(), Fault> {
        self.copy("", ".kept")
    }

    /// The copy in the place of the database.
    pub(super) fn put_back(&self) -> Result<(), Fault> {
        self.copy(".kept", "")
    }

    fn copy(&self, from: &str, to: &str) -> Result<(), Fault> {
        for file in ["checkpoint.db", "checkpoint.db-wal"] {
            let (from, to) = (format!("{file}{from}"), format!("{file}{to}"));
            let (from, to) = (self.folder.path().join(from), self.folder.path().join(to));
            let _ = std::fs::remove_file(&to);
            if from.exists() {
                std::fs::copy(&from, &to).map_err(Fault::io("a copy of the database"))?;
            }
        }
        Ok(())
    }
}
