//! An HTTP response and checks of its format (TRN-38…40).

use super::STEP_TIMEOUT;
use crate::support::contract;
use crate::support::hub::within;
use chorus_wire::time::UnixMicros;
use reqwest::RequestBuilder;
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Answer {
    /// The answer to a request, checked against the OpenAPI document.
    pub async fn of(request: RequestBuilder) -> Self {
        let (client, request) = request.build_split();
        let request = request.expect("a request");
        let method = request.method().clone();
        let url = request.url().clone();
        let asking = async {
            let response = client.execute(request).await.expect("an answer");
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            Self {
                status,
                headers,
                text: response.text().await.expect("a whole answer"),
            }
        };
        let answer = within(STEP_TIMEOUT, asking)
            .await
            .expect("an answer in time");
        contract::check_answer(&method, &url, &answer);
        answer
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap_or_default())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("not JSON ({e}): {self:?}"))
    }

    /// `data` of a success with this status, in the form of TRN-38.
    #[track_caller]
    pub fn data(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        let mut body = self.json();
        assert_eq!(body["success"], true, "{self:?}");
        assert!(is_millis(&body["metadata"]["timestamp"]), "{self:?}");
        assert!(
            body.get("data").is_some() && body.get("error").is_none(),
            "{self:?}"
        );
        body["data"].take()
    }

    /// The sentence of an error with this status and code, in the form of TRN-39.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(
            (self.status, self.json()["error"]["code"].as_str()),
            (status, Some(code)),
            "{self:?}"
        );
        let body = self.json();
        assert_eq!(body["success"], false, "{self:?}");
        assert!(body.get("data").is_none(), "{self:?}");
        assert!(is_millis(&body["metadata"]["timestamp"]), "{self:?}");
        assert!(
            self.header("content-type").starts_with("application/json"),
            "{self:?}"
        );
        let message = body["error"]["message"]
            .as_str()
            .expect("a sentence")
            .to_owned();
        assert!(!message.is_empty(), "{self:?}");
        message
    }
}

/// `2026-03-20T10:00:00.000Z` (TRN-40).
fn is_millis(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    UnixMicros::parse(text).is_some_and(|at| at.to_rfc3339_millis() == text)
}
