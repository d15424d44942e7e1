//! What every handler can reach: the hub, how it is called from outside, the limiter and the finished contract.

use crate::{Settings, channel::places::Places, limit::Limiter, proxies::Proxies};
use bytes::Bytes;
use chorus_hub::Hub;
use serde_json::value::{RawValue, to_raw_value};
use std::{net::IpAddr, ops::Deref, sync::Arc, sync::OnceLock};

/// Cheap to clone; every clone is the same doors.
#[derive(Clone)]
pub struct Doors(Arc<Behind>);

pub struct Behind {
    pub hub: Hub,
    /// Without a slash at its end.
    pub public_url: String,
    /// The address that was asked for; which of its names a request may use follows from it.
    pub listen: IpAddr,
    pub server_name: String,
    pub rate_limit: u32,
    /// What the discovery document says of frames: large, always the same, and so printed once.
    pub frames: Box<RawValue>,
    /// Whose word about where a request comes from is taken.
    pub proxies: Proxies,
    /// None when the limit is off.
    pub limiter: Option<Limiter>,
    /// Callbacks that stream their events.
    pub callbacks: Places,
    /// The OpenAPI document; it is known once all routes are.
    pub contract: OnceLock<Bytes>,
}

impl Doors {
    pub fn new(hub: Hub, public_url: String, settings: &Settings) -> Self {
        let limiter = Limiter::per_minute(settings.rate_limit, &hub);
        Self(Arc::new(Behind {
            hub,
            public_url,
            listen: settings.listen.ip(),
            server_name: settings.server_name.clone(),
            rate_limit: settings.rate_limit,
            frames: to_raw_value(&chorus_wire::frame::capabilities()).unwrap_or_default(),
            proxies: Proxies::new(&settings.trusted_proxies),
            limiter,
            callbacks: Places::default(),
            contract: OnceLock::new(),
        }))
    }
}

impl Deref for Doors {
    type Target = Behind;

    fn deref(&self) -> &Behind {
        &self.0
    }
}
