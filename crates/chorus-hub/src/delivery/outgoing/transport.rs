//! How a request leaves the hub: over HTTP, or into the network of a simulation (D-110).

use super::answer::PostError;
use super::http_client;
use super::name_resolver::GuardedResolver;
use crate::simulation::{NetworkFault, SimulatedNetwork, SimulatedPost};
use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Client, Response, Url};
use std::sync::Arc;
use std::time::Duration;

pub(super) enum OutgoingTransport {
    Http(Client),
    Simulated(Arc<dyn SimulatedNetwork>),
}

impl OutgoingTransport {
    pub fn new(
        simulated: Option<Arc<dyn SimulatedNetwork>>,
        resolver: GuardedResolver,
        connect_timeout: Duration,
    ) -> Self {
        match simulated {
            None => Self::Http(http_client::build_client(resolver, connect_timeout)),
            Some(network) => Self::Simulated(network),
        }
    }

    /// POSTs the body and returns the answer as soon as its head has come.
    pub async fn post(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, PostError> {
        match self {
            Self::Http(client) => client
                .post(url)
                .headers(headers)
                .body(body)
                .send()
                .await
                .map_err(|e| PostError::from_client_error(&e)),
            Self::Simulated(network) => post_simulated(&**network, url, &headers, body).await,
        }
    }
}

async fn post_simulated(
    network: &dyn SimulatedNetwork,
    url: Url,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Response, PostError> {
    let headers = headers
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let post = SimulatedPost {
        url: url.into(),
        headers,
        body,
    };
    let answer = network.post(post).await.map_err(|fault| match fault {
        NetworkFault::Unreachable => PostError::Unreachable("no connection could be made"),
        NetworkFault::Broken => PostError::Broken,
    })?;
    http::Response::builder()
        .status(answer.status)
        .body(answer.body)
        .map(Response::from)
        .map_err(|_| PostError::Broken)
}
