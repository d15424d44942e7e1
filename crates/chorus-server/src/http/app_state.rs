//! What every handler can reach: the hub, how it is called from outside, the limiter and the finished contract.

use crate::{
    ServerSettings, channel::callback_slots::CallbackStreamSlots, rate_limit::RateLimiter,
    trusted_proxies::TrustedProxies,
};
use bytes::Bytes;
use chorus_hub::Hub;
use serde_json::value::{RawValue, to_raw_value};
use std::{net::IpAddr, ops::Deref, sync::Arc, sync::OnceLock};

/// Cheap to clone; every clone is the same doors.
#[derive(Clone)]
pub struct AppState(Arc<AppStateInner>);

pub struct AppStateInner {
    pub hub: Hub,
    /// Without a slash at its end.
    pub public_url: String,
    /// The address that was asked for; which of its names a request may use follows from it.
    pub listen_ip: IpAddr,
    pub server_name: String,
    pub rate_limit: u32,
    /// What the discovery document says of frames: large, always the same, and so printed once.
    pub frame_capabilities: Box<RawValue>,
    /// Whose word about where a request comes from is taken.
    pub trusted_proxies: TrustedProxies,
    /// None when the limit is off.
    pub rate_limiter: Option<RateLimiter>,
    /// Callbacks that stream their events.
    pub callback_streams: CallbackStreamSlots,
    /// The OpenAPI document; it is known once all routes are.
    pub openapi_document: OnceLock<Bytes>,
}

impl AppState {
    pub fn new(hub: Hub, public_url: String, settings: &ServerSettings) -> Self {
        let rate_limiter = RateLimiter::per_minute(settings.rate_limit, &hub);
        Self(Arc::new(AppStateInner {
            hub,
            public_url,
            listen_ip: settings.listen.ip(),
            server_name: settings.server_name.clone(),
            rate_limit: settings.rate_limit,
            frame_capabilities: to_raw_value(&chorus_wire::frame::describe_capabilities())
                .unwrap_or_default(),
            trusted_proxies: TrustedProxies::new(&settings.trusted_proxies),
            rate_limiter,
            callback_streams: CallbackStreamSlots::default(),
            openapi_document: OnceLock::new(),
        }))
    }
}

impl Deref for AppState {
    type Target = AppStateInner;

    fn deref(&self) -> &AppStateInner {
        &self.0
    }
}
