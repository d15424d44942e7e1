//! What is known of a certificate that the hub renews by itself, for `GET /ready` and the metrics.

use chorus_wire::time::UnixMicros;
use serde::Serialize;
use std::sync::{Arc, PoisonError, RwLock};
use utoipa::ToSchema;

/// When the certificate in use ends; an alert asks for it.
const EXPIRY_METRIC: &str = "chorus_certificate_expiry_timestamp_seconds";

/// The certificate of a hub that gets it from an authority.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CertificateReport {
    /// `ok`; `ordering` until the first one was issued; `failing` when the last attempt to get or renew it failed.
    #[schema(example = "ok")]
    pub state: &'static str,
    /// The end of the certificate that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "2027-02-16T08:00:00.000Z")]
    pub expires_at: Option<UnixMicros>,
    /// Why the last attempt failed, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// When the hub orders the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "2027-01-17T08:00:00.000Z")]
    pub next_attempt_at: Option<UnixMicros>,
}

/// The last report, as the renewal writes it and requests read it.
#[derive(Clone, Debug)]
pub struct CertificateStatus(Arc<RwLock<CertificateReport>>);

impl Default for CertificateStatus {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(CertificateReport {
            state: "ordering",
            expires_at: None,
            problem: None,
            next_attempt_at: None,
        })))
    }
}

impl CertificateStatus {
    pub fn read_report(&self) -> CertificateReport {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A certificate is in use and is renewed at `renewal_at`.
    pub fn set_valid(&self, expires_at: UnixMicros, renewal_at: UnixMicros) {
        metrics::gauge!(EXPIRY_METRIC).set((expires_at.0 / 1_000_000) as f64);
        self.replace(CertificateReport {
            state: "ok",
            expires_at: Some(expires_at),
            problem: None,
            next_attempt_at: Some(renewal_at),
        });
    }

    /// The last attempt failed; a certificate that is in use stays so.
    pub fn set_failing(&self, problem: String, next_attempt_at: UnixMicros) {
        let expires_at = self.read_report().expires_at;
        self.replace(CertificateReport {
            state: "failing",
            expires_at,
            problem: Some(problem),
            next_attempt_at: Some(next_attempt_at),
        });
    }

    fn replace(&self, report: CertificateReport) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = report;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_without_a_certificate_is_not_called_ok() {
        let status = CertificateStatus::default();
        assert_eq!(status.read_report().state, "ordering");
        status.set_failing("refused".into(), UnixMicros(2));
        assert_eq!(status.read_report().state, "failing");
        status.set_valid(UnixMicros(3), UnixMicros(2));
        assert_eq!(status.read_report().state, "ok");
    }
}
