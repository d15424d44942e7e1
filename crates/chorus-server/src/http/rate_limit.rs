//! Rate limiting of requests: which caller is charged, and the `RateLimit` headers of the response.

use chorus_hub::identity::rate_limit::{self, RateQuota};
use chorus_hub::{Hub, Principal};
use chorus_wire::{Error, limits};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::net::IpAddr;

pub use chorus_hub::identity::rate_limit::CallerId;

const WINDOW_SECONDS: u64 = 60;

const REGISTRATIONS_REFUSED: &str =
    "Too many registrations without a key from this address; Retry-After says when to come back.";
const ADDRESS_REFUSED: &str = "The keys that this address uses have made too many requests together; Retry-After says when to come back.";

pub struct RateLimiter {
    hub: Hub,
    quota: RateQuota,
    /// Of all agents' keys that one address uses.
    address_quota: RateQuota,
    /// Of health checks and scrapes from one address.
    probe_quota: RateQuota,
    /// Of registrations without a key from one address; `None` is no limit.
    registration_quota: Option<RateQuota>,
}

/// The caller's remaining budget after this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingBudget {
    quota: u32,
    left: u32,
}

impl RateLimiter {
    /// A limit of `quota` requests a minute, which may come in one burst; `None` when `quota` is 0.
    pub fn per_minute(quota: u32, register_rate: u32, hub: &Hub) -> Option<Self> {
        let multiple = |factor: u32| RateQuota::per_minute(quota.saturating_mul(factor));
        Some(Self {
            hub: hub.clone(),
            quota: RateQuota::per_minute(quota)?,
            address_quota: multiple(limits::ADDRESS_BUDGET_FACTOR)?,
            probe_quota: multiple(limits::PROBE_BUDGET_FACTOR)?,
            registration_quota: RateQuota::per_minute(register_rate),
        })
    }

    /// The caller of an authenticated request; an anonymous one is known by its address.
    pub fn caller_of_principal(&self, principal: &Principal, peer: IpAddr) -> CallerId {
        match principal {
            Principal::Agent(agent) => CallerId::Agent(agent.id),
            Principal::Operator(operator) => CallerId::Operator(operator.fingerprint),
            Principal::Anonymous => self.caller_of_address(peer),
        }
    }

    /// The caller of a request without a valid key.
    pub fn caller_of_address(&self, peer: IpAddr) -> CallerId {
        rate_limit::anonymous_caller(self.hub.identity(), peer)
    }

    /// The same address as a guesser of keys, with a budget of its own: requests without a key are no guesses.
    pub fn caller_guessing_keys(&self, peer: IpAddr) -> CallerId {
        rate_limit::guessing_caller(self.hub.identity(), peer)
    }

    /// Takes one request from the caller's budget; the error has `Retry-After`.
    pub async fn spend_request(&self, caller: CallerId) -> Result<RemainingBudget, Error> {
        let left = rate_limit::spend_request(self.hub.identity(), caller, self.quota).await?;
        Ok(RemainingBudget {
            left,
            ..self.exhausted_budget()
        })
    }

    /// Charges what an address does beside its single callers: all agents' keys together, and registrations.
    pub async fn spend_address(
        &self,
        principal: &Principal,
        peer: IpAddr,
        is_registration: bool,
    ) -> Result<(), Error> {
        let identity = self.hub.identity();
        let (caller, quota, message) = match (principal, self.registration_quota) {
            (Principal::Agent(_), _) => {
                let caller = rate_limit::address_keys_caller(identity, peer);
                (caller, self.address_quota, ADDRESS_REFUSED)
            }
            (Principal::Anonymous, Some(quota)) if is_registration => {
                let caller = rate_limit::registration_caller(identity, peer);
                (caller, quota, REGISTRATIONS_REFUSED)
            }
            (Principal::Anonymous | Principal::Operator(_), _) => return Ok(()),
        };
        let spent = rate_limit::spend_request(identity, caller, quota).await;
        spent.map(drop).map_err(|error| Error {
            message: message.to_owned(),
            ..error
        })
    }

    /// Takes one probe of the address.
    pub async fn spend_probe(&self, peer: IpAddr) -> Result<(), Error> {
        let identity = self.hub.identity();
        let caller = rate_limit::probe_caller(identity, peer);
        rate_limit::spend_request(identity, caller, self.probe_quota)
            .await
            .map(drop)
    }

    /// Fails when the budget is empty; takes nothing.
    pub async fn check_remaining(&self, caller: CallerId) -> Result<(), Error> {
        rate_limit::check_remaining(self.hub.identity(), caller, self.quota).await
    }

    pub fn exhausted_budget(&self) -> RemainingBudget {
        RemainingBudget {
            quota: self.quota.requests_per_minute(),
            left: 0,
        }
    }
}

impl RemainingBudget {
    /// The two fields of the IETF draft `draft-ietf-httpapi-ratelimit-headers`.
    pub fn write_headers(self, headers: &mut HeaderMap) {
        let Self { quota, left } = self;
        let full_in = (u64::from(quota.saturating_sub(left)) * WINDOW_SECONDS)
            .div_ceil(u64::from(quota.max(1)));
        let fields = [
            (
                "ratelimit-policy",
                format!("\"default\";q={quota};w={WINDOW_SECONDS}"),
            ),
            ("ratelimit", format!("\"default\";r={left};t={full_in}")),
        ];
        for (name, value) in fields {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn zero_is_no_limit() {
        let dir = tempfile::tempdir().unwrap();
        let hub = Hub::open(chorus_hub::HubOptions::for_data_dir(dir.path()))
            .await
            .unwrap();
        assert!(RateLimiter::per_minute(0, 10, &hub).is_none());
        let limiter = RateLimiter::per_minute(3, 0, &hub).unwrap();
        assert_eq!(
            limiter.spend_request(CallerId::Operator(1)).await.unwrap(),
            RemainingBudget { quota: 3, left: 2 }
        );
    }

    #[test]
    fn the_headers_have_the_drafts_form() {
        let mut headers = HeaderMap::new();
        RemainingBudget {
            quota: 600,
            left: 598,
        }
        .write_headers(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"default\";q=600;w=60");
        assert_eq!(headers["ratelimit"], "\"default\";r=598;t=1");
    }
}
