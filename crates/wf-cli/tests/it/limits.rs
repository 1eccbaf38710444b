//! What the process may not do: write its log, make a file larger. Calls go on, or are told to be sent again.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tempfile::TempDir;

use crate::pump;
use crate::server::{Server, until};

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let folder = TempDir::new().unwrap();
    // A device on which every write finds the disk full.
    std::os::unix::fs::symlink("/dev/full", folder.path().join("err.log")).unwrap();
    let server = Server::start_in(folder, &["--set", "telemetry.log=trace"]);
    let mut view = pump::start(&server, "PUMP-204", "k1");
    while view.get("step").is_some() {
        view = pump::submit(&server, &view);
    }
    assert_eq!(server.get("/readyz").unwrap().0, 200);
    server.stop();
}

/// `ulimit -f`; its signal would end the process.
#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk() {
    let server = Server::start(&[]);
    let view = pump::start(&server, "PUMP-204", "k1");
    let limit = |current| {
        let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
        let limit = Rlimit { current, maximum: getrlimit(Resource::Fsize).maximum };
        prlimit(id, Resource::Fsize, limit).unwrap();
    };
    limit(Some(4_096));
    let arguments = pump::answer(&view).unwrap();
    let refused = server.call("submit_step", &arguments);
    assert_eq!(refused["error"]["code"], "BACKEND_UNAVAILABLE", "{refused:#}");
    assert_eq!(refused["error"]["retry"], "same_call");
    limit(None);
    until("calls are done again", || server.call("submit_step", &arguments)["ok"] == true);
    server.stop();
}
