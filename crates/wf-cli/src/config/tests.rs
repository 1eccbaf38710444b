//! The layers against each other, and every kind of slip with the words it gets.
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::backend::BackendConfig;
use super::check;
use super::keys::Key;
use super::layers::{Layers, Sources};
use super::routes::{RouteConfig, SinkConfig};
use super::show;
use super::value::Kind;

const FILE: &str = "/etc/checkpoint/checkpoint.toml";

fn read(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Layers {
    Layers::read(&Sources {
        file: Some((Path::new(FILE), file)),
        environment: environment
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect(),
        flags: flags
            .iter()
            .map(|(path, value)| ((*path).to_owned(), (*value).to_owned(), "--set".to_owned()))
            .collect(),
    })
}

fn problems(file: &str) -> Vec<String> {
    read(file, &[], &[]).problems
}

#[test]
fn flags_win_over_the_environment_over_the_file_over_defaults() {
    let file = "[server]\nlocale = \"fr\"\ntimezone = \"Europe/Paris\"\nmax_in_flight = 7\n";
    let layers = read(
        file,
        &[("WF_SERVER_LOCALE", "it"), ("WF_SERVER_TIMEZONE", "Europe/Rome")],
        &[("server.locale", "de")],
    );
    assert_eq!(layers.problems, Vec::<String>::new());
    let config = check::typed(&layers);
    assert_eq!(config.server.locale.as_str(), "de");
    assert_eq!(config.server.timezone, "Europe/Rome");
    assert_eq!(config.server.max_in_flight, 7);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
}

#[test]
fn without_any_layer_the_defaults_are_those_of_the_design() {
    let config = check::typed(&Layers::read(&Sources::default()));
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.backend, BackendConfig::Local { path: PathBuf::from("checkpoint.db") });
    assert_eq!(config.folder, PathBuf::new());
    assert_eq!(config.procedures, None);
    assert_eq!(config.server.max_body_bytes, 1_048_576);
    assert_eq!(config.server.request_timeout.as_secs(), 30);
    assert_eq!(config.retention.as_secs(), 30 * 86_400);
}

#[test]
fn a_path_of_the_file_is_relative_to_the_file() {
    let layers = read("[backend.local]\npath = \"data/wf.db\"\n", &[], &[]);
    let config = check::typed(&layers);
    let path = PathBuf::from("/etc/checkpoint/data/wf.db");
    assert_eq!(config.backend, BackendConfig::Local { path });
    assert_eq!(config.folder, PathBuf::from("/etc/checkpoint"));
}

#[test]
fn unknown_keys_are_refused_with_the_probable_one() {
    assert_eq!(
        problems("[server]\nlistne = \"127.0.0.1:1\"\n"),
        [format!("{FILE}:2:1: unknown key server.listne; did you mean server.listen?")]
    );
    assert_eq!(
        problems("[sever]\nlisten = \"127.0.0.1:1\"\n"),
        [format!("{FILE}:1:2: unknown section [sever]; did you mean server?")]
    );
    assert_eq!(problems("xyzzy = 1\n"), [format!("{FILE}:1:1: unknown key xyzzy")]);
    assert_eq!(
        problems("[[notifications.route]]\nsnik = \"log\"\n"),
        [format!(
            "{FILE}:2:1: unknown key notifications.route.snik; did you mean notifications.route.sink?"
        )]
    );
}

#[test]
fn unknown_variables_of_our_sections_are_refused_and_others_are_not_ours() {
    let layers = read(
        "",
        &[
            ("WF_SERVER__LISTEN", "127.0.0.1:1"),
            ("WF_AUTH", "jwt"),
            ("WF_CLI", "/usr/bin/wf-cli"),
            ("WF_AUTHOR", "ann"),
            ("HOME", "/root"),
        ],
        &[],
    );
    assert_eq!(
        layers.problems,
        [
            "environment: unknown variable WF_SERVER__LISTEN; did you mean WF_SERVER_LISTEN?",
            "environment: unknown variable WF_AUTH; did you mean WF_AUTH_MODE?"
        ]
    );
}

#[test]
fn wrong_values_name_the_place_and_the_rule() {
    let file = "server.listen = \"localhost\"\n[idempotency]\nretention = 30\n[telemetry]\nformat = \"xml\"\n";
    assert_eq!(
        problems(file),
        [
            format!(
                "{FILE}:3:1: idempotency.retention must be a whole number and ms, s, m, h or d in quotes, such as \"30s\""
            ),
            format!(
                "{FILE}:1:8: server.listen must be an IP address and a port, such as \"127.0.0.1:8080\" or \"[::1]:8080\""
            ),
            format!("{FILE}:5:1: telemetry.format must be one of text, json"),
        ]
    );
    let env = read("", &[("WF_SERVER_MAX_IN_FLIGHT", "many")], &[]);
    assert_eq!(
        env.problems,
        [
            "environment WF_SERVER_MAX_IN_FLIGHT: server.max_in_flight must be a whole number from 1 to 1000000"
        ]
    );
}

#[test]
fn a_slip_in_the_log_level_does_not_silence_the_log() {
    let log = |value: &str| read("", &[], &[("telemetry.log", value)]).problems;
    for good in ["info", "WARN", "off", "info,wf_core=debug", "warn,checkpoint::notification=info"]
    {
        assert_eq!(log(good), Vec::<String>::new(), "{good}");
    }
    for bad in ["inof", "wf_core", "info,wf_core", "info,wf_core=loud"] {
        assert_eq!(
            log(bad),
            [
                "--set: telemetry.log must be error, warn, info, debug or trace, or directives such as \"info,wf_core=debug\""
            ],
            "{bad}"
        );
    }
}

#[test]
fn a_file_that_is_no_toml_names_the_place() {
    let found = problems("[server\nlisten = 1\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with(&format!("{FILE}:1:8: not TOML: ")), "{found:?}");
}

#[test]
fn keys_of_features_that_are_left_out_are_refused_by_name_unless_they_ask_for_nothing() {
    let keys = |built| [Key::unset("telemetry.otlp_endpoint", Kind::Url).needs("otlp", built)];
    let asks = read("[telemetry]\notlp_endpoint = \"http://[::1]:1\"\n", &[], &[]);
    let found = check::left_out(&keys(false), &asks.settings);
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert!(
        found.contains("telemetry.otlp_endpoint") && found.contains("feature `otlp`"),
        "{found}"
    );
    assert_eq!(check::left_out(&keys(true), &asks.settings), Vec::<String>::new());
    let quiet = read("[backend]\nkind = \"local\"\n", &[], &[]);
    assert_eq!(check::left_out(&keys(false), &quiet.settings), Vec::<String>::new());
    assert_eq!(check::unsupported(&quiet), Vec::<String>::new());
}

#[test]
fn routes_say_where_messages_go() {
    let file = "[[notifications.route]]\nto = \"lead\"\nkinds = [\"workflow_blocked\"]\nsink = \"webhook\"\n\
                url = \"https://hooks.example.com/secret\"\nsecret_file = \"hook.secret\"\n\
                [[notifications.route]]\nsink = \"log\"\n";
    let config = super::accept(&read(file, &[], &[])).unwrap();
    let [webhook, log] = config.routes.as_slice() else { panic!("{:?}", config.routes) };
    assert_eq!((webhook.to.as_str(), webhook.kinds.len()), ("lead", 1));
    assert_eq!(
        webhook.sink,
        SinkConfig::Webhook {
            url: "https://hooks.example.com/secret".to_owned(),
            secret_file: PathBuf::from("/etc/checkpoint/hook.secret"),
            allow_private: false,
        }
    );
    let any = vec!["*".to_owned()];
    assert_eq!(*log, RouteConfig { to: "*".to_owned(), kinds: any, sink: SinkConfig::Log });
}

#[test]
fn a_route_that_lacks_something_or_has_too_much_is_refused() {
    let file = "[[notifications.route]]\nsink = \"webhook\"\n\
                [[notifications.route]]\nurl = \"https://hooks.example.com/\"\nkinds = []\n";
    let failure = super::accept(&read(file, &[], &[])).unwrap_err();
    let text = failure.text();
    for problem in [
        "notifications.route 1: a webhook needs url",
        "notifications.route 1: a webhook needs secret_file",
        "notifications.route 2: url is for sink",
        "notifications.route 2: without kinds it fits no message",
    ] {
        assert!(text.contains(problem), "{problem}: {text}");
    }
}

#[test]
fn other_machines_are_told_apart_from_this_one() {
    let exposed = |listen: &str| {
        let layers = read("", &[], &[("server.listen", listen)]);
        check::exposure(&layers).is_some()
    };
    assert!(!exposed("127.0.0.1:1"));
    assert!(!exposed("127.9.9.9:1"));
    assert!(!exposed("[::1]:1"));
    assert!(exposed("0.0.0.0:1"));
    assert!(exposed("[::]:1"));
    assert!(exposed("192.168.1.2:1"));
}

#[test]
fn only_tokens_of_an_authorization_server_let_other_machines_in() {
    let exposed = |mode: &str| {
        let flags = [("server.listen", "0.0.0.0:1"), ("auth.mode", mode)];
        check::exposure(&read("", &[], &flags))
    };
    assert!(exposed("none").unwrap().contains("there is no authentication"));
    assert!(exposed("dev").unwrap().contains("for this machine only"));
    assert_eq!(exposed("jwt"), None);
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let failure = super::accept(&read("", &[], &[("server.tls_cert", "c.pem")])).unwrap_err();
    assert!(failure.text().contains("must be set together"), "{}", failure.text());
    let both = [("server.tls_cert", "c.pem"), ("server.tls_key", "k.pem")];
    assert!(super::accept(&read("", &[], &both)).unwrap().server.tls.is_some());
}

#[test]
fn the_printed_configuration_masks_secrets_and_reads_back() {
    let file = "[server]\npublic_url = \"https://user:hunter2@wf.example.com\"\n\
                [auth]\njwks_url = \"https://me:opensesame@auth.example.com/jwks?key=opensesame\"\n\
                [[notifications.route]]\nto = \"lead\"\nurl = \"https://hooks.example.com/s3cr3t?sig=abc\"\n";
    let layers = read(file, &[], &[]);
    let text = show::as_toml(&layers);
    for secret in ["hunter2", "s3cr3t", "abc", "opensesame"] {
        assert!(!text.contains(secret), "{text}");
        assert!(!show::as_json(&layers).to_string().contains(secret));
    }
    assert!(text.contains(&format!("public_url = \"https://***@wf.example.com\"  # {FILE}:2:1")));
    let again = read(&text, &[], &[]);
    assert_eq!(again.problems, Vec::<String>::new());
    assert_eq!(again.routes.len(), 1);
    assert!(show::as_json(&layers)["server.listen"]["value"] == "127.0.0.1:8080");
}

#[test]
fn the_error_lists_every_problem_and_exits_with_2() {
    let layers = read("a = 1\nb = 2\n", &[], &[]);
    let failure = super::accept(&layers).unwrap_err();
    assert_eq!(failure.exit(), crate::exit::Exit::Usage);
    assert_eq!(failure.text().lines().count(), 4);
}
