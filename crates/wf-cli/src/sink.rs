//! Where messages go: to the first route of the configuration that fits, or into the log.
//!
//! `compose` makes the [`Router`]; `wf-notify-webhook` has the webhooks.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tracing::Instrument as _;
use tracing::field::Empty;
use wf_core::ports::{DeliveryError, Message, NotificationPort};
use wf_notify_webhook::{WebhookConfig, WebhookSink};

use crate::config::routes::{RouteConfig, SinkConfig};
use crate::exit::Failure;
use crate::failpoint;
use crate::otlp;

/// What fits every recipient and every kind.
const ANY: &str = "*";
/// `ce-source` of a server without a public URL; a reference, as CloudEvents 1.0 section 3.1 allows.
const SOURCE: &str = "/checkpoint";

/// Hands each message to the sink of its route.
#[derive(Debug, Default)]
pub(crate) struct Router {
    routes: Vec<Route>,
}

/// A webhook whose secret may be read again.
#[derive(Debug)]
pub(crate) struct Webhook {
    /// The file with its secret.
    pub(crate) secret_file: PathBuf,
    /// Sends what is signed with it.
    pub(crate) sink: Arc<WebhookSink>,
}

#[derive(Debug)]
struct Route {
    to: String,
    kinds: Vec<String>,
    sink: Sink,
}

#[derive(Debug, Clone)]
enum Sink {
    Log,
    Webhook(Arc<WebhookSink>),
}

impl Sink {
    /// In the metrics.
    const fn name(&self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Webhook(_) => "webhook",
        }
    }
}

impl Route {
    fn fits(&self, message: &Message) -> bool {
        let kind = |kind: &String| kind == ANY || *kind == message.kind;
        (self.to == ANY || self.to == message.recipient) && self.kinds.iter().any(kind)
    }
}

impl Router {
    /// Opens the sinks of all routes; `public_url` is who sends. Sends nothing yet.
    ///
    /// # Errors
    /// When a webhook cannot be used as it is configured.
    pub(crate) fn open(routes: &[RouteConfig], public_url: Option<&str>) -> Result<Self, Failure> {
        let route = |config: &RouteConfig| {
            let sink = match &config.sink {
                SinkConfig::Log => Sink::Log,
                SinkConfig::Webhook { url, secret_file, allow_private } => {
                    let webhook = WebhookConfig {
                        url: url.clone(),
                        secret_file: secret_file.clone(),
                        allow_private: *allow_private,
                        source: public_url.unwrap_or(SOURCE).to_owned(),
                    };
                    Sink::Webhook(Arc::new(WebhookSink::open(&webhook).map_err(|error| {
                        Failure::usage(format!(
                            "the webhook of the route to {} cannot be used",
                            config.to
                        ))
                        .because(error)
                        .help("docs/notifications.md says what a webhook needs")
                    })?))
                }
            };
            Ok(Route { to: config.to.clone(), kinds: config.kinds.clone(), sink })
        };
        Ok(Self { routes: routes.iter().map(route).collect::<Result<_, Failure>>()? })
    }

    /// Its webhooks, with the routes that they were opened for.
    pub(crate) fn webhooks(&self, routes: &[RouteConfig]) -> Vec<Webhook> {
        let webhook = |(route, config): (&Route, &RouteConfig)| {
            let Sink::Webhook(sink) = &route.sink else { return None };
            let secret_file = config.sink.secret_file()?.clone();
            Some(Webhook { secret_file, sink: Arc::clone(sink) })
        };
        self.routes.iter().zip(routes).filter_map(webhook).collect()
    }

    fn sink(&self, message: &Message) -> &Sink {
        let fits = self.routes.iter().find(|route| route.fits(message));
        fits.map_or(&Sink::Log, |route| &route.sink)
    }
}

#[async_trait]
impl NotificationPort for Router {
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        let sink = self.sink(message);
        let span = tracing::debug_span!("deliver", sink = sink.name(), outcome = Empty);
        failpoint::hit(failpoint::OUTBOX_SEND)?;
        let delivered = match sink {
            Sink::Log => {
                log(message);
                Ok(())
            }
            Sink::Webhook(webhook) => {
                let traceparent = otlp::traceparent(&span);
                let sending = webhook.deliver_traced(message, traceparent.as_deref());
                sending.instrument(span.clone()).await
            }
        };
        span.record("outcome", if delivered.is_ok() { "delivered" } else { "failed" });
        match &delivered {
            Ok(()) => {
                metrics::counter!("checkpoint_notifications_delivered_total", "sink" => sink.name())
                    .increment(1);
            }
            Err(_) => {
                metrics::counter!("checkpoint_notification_failures_total", "sink" => sink.name())
                    .increment(1);
            }
        }
        failpoint::hit(failpoint::OUTBOX_SEND_AFTER)?;
        delivered
    }
}

/// What of the data is logged: all but the link, which acts for whoever has it.
fn told(data: &serde_json::Value) -> serde_json::Value {
    let mut told = data.clone();
    if let Some(members) = told.as_object_mut() {
        members.remove("ack_url");
    }
    told
}

/// One structured line. Messages hold no sensitive value by construction.
fn log(message: &Message) {
    tracing::info!(
        target: "checkpoint::notification",
        id = %message.id,
        kind = %message.kind,
        time = %message.time,
        tenant = %message.tenant,
        workflow = %message.workflow_id,
        seq = message.seq,
        recipient = %message.recipient,
        data = %told(&message.data),
        "notification"
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(recipient: &str, kind: &str) -> Message {
        let id = "0197f3a0-1111-7222-8333-444455556666";
        serde_json::from_value(json!({
            "id": format!("{id}/1/{recipient}"), "type": kind, "time": "2026-03-01T08:00:00.000Z",
            "tenant": "main", "workflow_id": id, "seq": 1, "recipient": recipient, "data": {},
        }))
        .unwrap()
    }

    fn webhook(to: &str, kinds: &[&str], secret: &std::path::Path) -> RouteConfig {
        RouteConfig {
            to: to.to_owned(),
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            sink: SinkConfig::Webhook {
                url: "http://127.0.0.1:9/hook".to_owned(),
                secret_file: secret.to_owned(),
                allow_private: true,
            },
        }
    }

    #[test]
    fn the_first_route_that_fits_recipient_and_kind_counts_and_the_log_is_last() {
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
        let quiet = RouteConfig {
            to: ANY.to_owned(),
            kinds: vec!["workflow_started".to_owned()],
            sink: SinkConfig::Log,
        };
        let routes = [quiet, webhook("lead", &[ANY], secret.path())];
        let router = Router::open(&routes, None).unwrap();
        let to = |recipient, kind| router.sink(&message(recipient, kind)).name();
        assert_eq!(to("lead", "workflow_blocked"), "webhook");
        assert_eq!(to("lead", "workflow_started"), "log");
        assert_eq!(to("leads", "workflow_blocked"), "log");
        assert_eq!(Router::default().sink(&message("lead", "x")).name(), "log");
    }

    #[test]
    fn the_link_of_an_escalation_is_not_logged() {
        let data = json!({"label": "x", "ack_url": "https://wf.example.com/ack/at1.a.b"});
        assert_eq!(told(&data), json!({"label": "x"}));
    }

    #[test]
    fn a_webhook_without_its_secret_is_refused_at_the_start() {
        let refused = Router::open(&[webhook("lead", &[ANY], "/nowhere".as_ref())], None);
        let text = refused.unwrap_err().text();
        assert!(text.contains("route to lead") && text.contains("/nowhere"), "{text}");
    }
}
