//! How often each caller may ask, as the doors see it: whose budget a request is taken from, and what the answer says of it.

use chorus_hub::identity::budget::{self, Quota};
use chorus_hub::{Hub, Principal};
use chorus_wire::Error;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::net::IpAddr;

pub use chorus_hub::identity::budget::Caller;

const WINDOW_SECONDS: u64 = 60;

pub struct Limiter {
    hub: Hub,
    quota: Quota,
}

/// What is left to a caller after this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    quota: u32,
    left: u32,
}

impl Limiter {
    /// `quota` requests a minute, all of them at once if need be; 0 is no limit.
    pub fn per_minute(quota: u32, hub: &Hub) -> Option<Self> {
        Quota::per_minute(quota).map(|quota| Self {
            hub: hub.clone(),
            quota,
        })
    }

    /// The caller of an authenticated request; `Anyone` has only an address.
    pub fn caller(&self, who: &Principal, peer: IpAddr) -> Caller {
        match who {
            Principal::Agent(agent) => Caller::Agent(agent.id),
            Principal::Operator(key) => Caller::Operator(*key),
            Principal::Anyone => self.stranger(peer),
        }
    }

    /// The caller of a request that only has an address.
    pub fn stranger(&self, peer: IpAddr) -> Caller {
        budget::stranger(&self.hub, peer)
    }

    /// The same place as one that tries keys: what it asks without a key is no guess.
    pub fn guesser(&self, peer: IpAddr) -> Caller {
        budget::guesser(&self.hub, peer)
    }

    /// Takes one request from the caller's budget, or says when there will be one.
    pub async fn spend(&self, caller: Caller) -> Result<Budget, Error> {
        let left = budget::spend(&self.hub, caller, self.quota).await?;
        Ok(Budget {
            left,
            ..self.spent()
        })
    }

    /// Whether there is anything in it; takes nothing.
    pub async fn has_some(&self, caller: Caller) -> Result<(), Error> {
        budget::has_some(&self.hub, caller, self.quota).await
    }

    pub fn spent(&self) -> Budget {
        Budget {
            quota: self.quota.get(),
            left: 0,
        }
    }
}

impl Budget {
    /// The two fields of the IETF draft `draft-ietf-httpapi-ratelimit-headers`.
    pub fn write(self, headers: &mut HeaderMap) {
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
        let hub = Hub::open(chorus_hub::Options::at(dir.path()))
            .await
            .unwrap();
        assert!(Limiter::per_minute(0, &hub).is_none());
        let limiter = Limiter::per_minute(3, &hub).unwrap();
        assert_eq!(
            limiter.spend(Caller::Agent(1)).await.unwrap(),
            Budget { quota: 3, left: 2 }
        );
    }

    #[test]
    fn the_headers_have_the_drafts_form() {
        let mut headers = HeaderMap::new();
        Budget {
            quota: 600,
            left: 598,
        }
        .write(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"default\";q=600;w=60");
        assert_eq!(headers["ratelimit"], "\"default\";r=598;t=1");
    }
}
