//! The state that every handler is given: the hub, its public name, the rate limiter and the OpenAPI document.

use super::allowed_origins::{CorsOrigin, OriginPolicy};
use super::answer_memory::LargeAnswers;
use super::body::ArrivingBodies;
use super::callback_slots::CallbackStreamSlots;
use super::certificate_status::CertificateStatus;
use super::rate_limit::RateLimiter;
use super::request_metrics;
use super::route_scopes::RouteScopes;
use super::trusted_network::TrustedNetwork;
use super::trusted_proxies::TrustedProxies;
use super::waiting_calls::WaitingCalls;
use bytes::Bytes;
use chorus_hub::Hub;
use chorus_hub::idempotent_request::IdempotentRequests;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::{net::SocketAddr, ops::Deref, sync::Arc, sync::OnceLock};

/// The settings that the handling of requests depends on.
#[derive(Clone, Debug)]
pub struct RequestSettings {
    /// Without a slash at its end.
    pub public_url: String,
    /// The address that the server listens on.
    pub listen: SocketAddr,
    /// Origins of web pages that are clients, beside the hub's own.
    pub cors_origins: Vec<CorsOrigin>,
    pub server_name: String,
    /// Requests per caller and minute; 0 is off.
    pub rate_limit: u32,
    /// Registrations without a key per address and minute; 0 is off.
    pub register_rate: u32,
    pub serves_tls: bool,
    pub trusted_proxies: Vec<TrustedNetwork>,
    /// Of a hub that renews its certificate by itself.
    pub certificate: Option<CertificateStatus>,
    /// The names in that certificate.
    pub certified_names: Vec<String>,
}

/// Cheap to clone; every clone is the same state.
#[derive(Clone)]
pub struct AppState(Arc<AppStateInner>);

pub struct AppStateInner {
    pub hub: Hub,
    /// Without a slash at its end.
    pub public_url: String,
    pub origin_policy: OriginPolicy,
    /// Clients reach the hub by https, its own or a proxy's.
    pub is_https: bool,
    pub large_answers: LargeAnswers,
    pub arriving_bodies: ArrivingBodies,
    pub server_name: String,
    pub rate_limit: u32,
    /// Of a hub that renews its certificate by itself.
    pub certificate: Option<CertificateStatus>,
    /// The frames part of the discovery document: large and constant, so it is serialised once.
    pub frame_capabilities: Box<RawValue>,
    /// The proxies whose forwarding headers are trusted (D-92).
    pub trusted_proxies: TrustedProxies,
    /// None when the limit is off.
    pub rate_limiter: Option<RateLimiter>,
    pub callback_streams: CallbackStreamSlots,
    pub waiting_calls: WaitingCalls,
    /// Requests with an `Idempotency-Key` that are being carried out.
    pub idempotent_requests: IdempotentRequests,
    /// The OpenAPI document; it is complete once all routes are mounted.
    pub openapi_document: OnceLock<Bytes>,
    /// What each route asks of an agent's key.
    pub route_scopes: OnceLock<RouteScopes>,
    /// The schemas of all public objects, by name.
    pub published_schemas: OnceLock<serde_json::Value>,
    /// The same as `/schemas` serves them, from the first request on.
    pub schema_files: OnceLock<BTreeMap<String, Bytes>>,
}

impl AppState {
    pub fn new(hub: Hub, settings: RequestSettings) -> Self {
        request_metrics::install_recorder();
        let rate_limiter =
            RateLimiter::per_minute(settings.rate_limit, settings.register_rate, &hub);
        let memory = hub.options().memory;
        let large_answers = LargeAnswers::with_memory(memory.large_answers);
        let arriving_bodies = ArrivingBodies::with_memory(memory.arriving_bodies);
        Self(Arc::new(AppStateInner {
            hub,
            origin_policy: OriginPolicy::new(
                settings.listen,
                &settings.public_url,
                settings.cors_origins,
            )
            .with_certified_names(&settings.certified_names),
            is_https: settings.serves_tls || settings.public_url.starts_with("https://"),
            public_url: settings.public_url,
            server_name: settings.server_name,
            rate_limit: settings.rate_limit,
            certificate: settings.certificate,
            frame_capabilities: to_raw_value(&chorus_wire::frame::describe_capabilities())
                .unwrap_or_default(),
            trusted_proxies: TrustedProxies::new(&settings.trusted_proxies),
            rate_limiter,
            callback_streams: CallbackStreamSlots::default(),
            waiting_calls: WaitingCalls::default(),
            idempotent_requests: IdempotentRequests::default(),
            large_answers,
            arriving_bodies,
            openapi_document: OnceLock::new(),
            route_scopes: OnceLock::new(),
            published_schemas: OnceLock::new(),
            schema_files: OnceLock::new(),
        }))
    }
}

impl Deref for AppState {
    type Target = AppStateInner;

    fn deref(&self) -> &AppStateInner {
        &self.0
    }
}
