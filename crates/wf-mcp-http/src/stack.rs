//! The order of the layers, and the only place that knows it. Outermost first:
//!
//! panic → 500 · request id and trace · weight (413, 415; hyper: 431) · time (408, 503) · load shedding (503) ·
//! Host and Origin (400, 403) · routes (404, 405) · for `/mcp`: who asks (401) · how often (429) ·
//! what they may ask (401, 403) · MCP
//!
//! Nothing of a body is read before its sender is known.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tower::ServiceBuilder;
use wf_core::engine::Engine;

use crate::auth::Authenticator;
use crate::clients::Clients;
use crate::config::HttpConfig;
use crate::entrance::Entrances;
use crate::front::Front;
use crate::layers::deadlines::SetDeadlines;
use crate::layers::hosts::Hosts;
use crate::layers::identity::Identity;
use crate::layers::limits::Limits;
use crate::layers::panics::Panics;
use crate::layers::rate::Rate;
use crate::layers::shedding::Shedding;
use crate::layers::trace::{RequestIds, Trace};
use crate::layers::{Inner, Ring};
use crate::pages::Pages;
use crate::routes::{Answers, Routes};

/// What the layers share.
#[derive(Debug)]
pub(crate) struct Parts {
    /// None where only a guest is served.
    pub(crate) engine: Option<Arc<Engine>>,
    pub(crate) config: Arc<HttpConfig>,
    pub(crate) ids: RequestIds,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) answers: Answers,
    /// The console, if there is one.
    pub(crate) pages: Option<Arc<dyn Pages>>,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) entrances: Entrances,
    pub(crate) clients: Clients,
    pub(crate) rate: Rate,
}

/// The service of one listener: MCP with health, or the operator's routes, or both.
pub(crate) fn build(parts: &Parts, hosts: Hosts, mcp: Option<Front>, admin: bool) -> impl Inner {
    let identity = Identity {
        authenticator: Arc::clone(&parts.authenticator),
        entrances: parts.entrances.clone(),
    };
    let rate = parts.rate.clone();
    // Where MCP is spoken there are no pages: what browsers may do there is another matter.
    let pages = parts.pages.clone().filter(|_| mcp.is_none() && admin);
    let pages = pages.map(|pages| (pages, parts.clients.clone()));
    let engine = parts.engine.clone().filter(|_| mcp.is_some());
    let mcp = mcp
        .map(|front| ServiceBuilder::new().layer(Ring(identity)).layer(Ring(rate)).service(front));
    let entrances = parts.entrances.clone();
    let routes = Routes { answers: parts.answers.clone(), entrances, engine, mcp, admin, pages };
    let config = &parts.config;
    ServiceBuilder::new()
        .layer(Ring(Panics { ids: parts.ids.clone() }))
        .layer(Ring(Trace {
            ids: parts.ids.clone(),
            clients: parts.clients.clone(),
            traces: config.traces.clone(),
        }))
        .layer(Ring(Limits { max_body_bytes: config.max_body_bytes }))
        .layer(Ring(SetDeadlines { body: config.body_timeout, answer: config.request_timeout }))
        .layer(Ring(Shedding { places: Arc::clone(&parts.places) }))
        .layer(Ring(hosts))
        .service(routes)
}
