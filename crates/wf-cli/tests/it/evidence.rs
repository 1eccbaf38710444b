//! Evidence at the command line: printed from a store, verified without one.

use serde_json::{Value, json};

use crate::binary::run;
use crate::pump;
use crate::server::Server;

#[test]
fn evidence_is_verified_without_the_store_and_damage_is_told() {
    let server = Server::start(&[]);
    let view = pump::start(&server, "PUMP-204", "k1");
    let view = pump::submit(&server, &view);
    let id = pump::id(&view);
    let printed = server.run(&["workflow", "evidence", &id]).exits(0).out;
    let history = server.run(&["workflow", "show", &id, "--json"]).exits(0).json();
    let last = history["last_hash"].as_str().unwrap().to_owned();
    let nobody = server.run(&["workflow", "evidence", "nobody"]).exits(1);
    assert!(nobody.err.contains("there is no workflow nobody"), "{}", nobody.err);
    server.stop();

    // Another folder: there is nothing but the file.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evidence.json");
    std::fs::write(&file, &printed).unwrap();
    let whole = run(folder.path(), &["verify-evidence", "evidence.json", "--json"]).exits(0).json();
    assert_eq!((&whole["ok"], &whole["events"]), (&json!(true), &json!(3)));
    assert_eq!((&whole["workflow_id"], &whole["last_hash"]), (&json!(id), &json!(last)));
    let told = run(folder.path(), &["verify-evidence", "evidence.json", "--last-hash", &last]);
    assert!(told.exits(0).out.starts_with("ok: workflow "));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no store was made");

    let other = "0".repeat(64);
    run(folder.path(), &["verify-evidence", "evidence.json", "--last-hash", &other]).exits(4);
    run(folder.path(), &["verify-evidence", "evidence.json", "--last-hash", "x"]).exits(2);
    run(folder.path(), &["verify-evidence", "absent.json"]).exits(1);

    let changed = printed.replace("\"PUMP-204\"", "\"PUMP-205\"");
    assert_ne!(changed, printed);
    std::fs::write(&file, changed).unwrap();
    let damage =
        run(folder.path(), &["verify-evidence", "evidence.json", "--json"]).exits(4).json();
    let parts: Vec<&Value> =
        damage["damage"].as_array().unwrap().iter().map(|found| &found["part"]).collect();
    assert!(parts.contains(&&json!("digest")) && parts.contains(&&json!("history")), "{damage}");
    let told = run(folder.path(), &["verify-evidence", "evidence.json"]).exits(4);
    assert!(told.out.contains("history event 1 was changed"), "{}", told.out);
    std::fs::write(&file, "no evidence").unwrap();
    run(folder.path(), &["verify-evidence", "evidence.json"]).exits(4);
}
