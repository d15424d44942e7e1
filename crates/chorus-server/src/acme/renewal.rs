//! Keeps the hub's certificate valid: uses the kept one, orders the first, and renews each at two thirds of its lifetime.

use super::acme_files::AcmeFiles;
use super::acme_settings::{AcmeSettings, DomainName};
use super::attempt_limit::AttemptHistory;
use super::certificate_resolver::CertificateResolver;
use super::directory_client::DirectoryClient;
use super::issued_certificate::IssuedCertificate;
use super::order::CertificateOrder;
use super::order_failure::{FailureKind, OrderFailure};
use crate::http::certificate_status::CertificateStatus;
use chorus_hub::Clock;
use chorus_wire::time::UnixMicros;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest sleep before the clock is read again: a machine that was suspended must notice that time has passed.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// The task that keeps a certificate valid.
pub struct CertificateRenewal {
    order: CertificateOrder,
    history: AttemptHistory,
    status: CertificateStatus,
    clock: Clock,
    /// The end of the certificate in use.
    expires_at: Option<UnixMicros>,
}

impl CertificateRenewal {
    pub fn new(
        settings: AcmeSettings,
        data_dir: &Path,
        client: DirectoryClient,
        resolver: Arc<CertificateResolver>,
        status: CertificateStatus,
        clock: Clock,
    ) -> Self {
        let files = AcmeFiles::new(data_dir, &settings);
        let mut history = files.read_attempts().unwrap_or_else(|error| {
            tracing::warn!(%error, "earlier attempts to get a certificate are not known");
            AttemptHistory::default()
        });
        history.count_interrupted();
        Self {
            order: CertificateOrder {
                settings,
                files,
                client,
                resolver,
                was_checked: AtomicBool::new(false),
            },
            history,
            status,
            clock,
            expires_at: None,
        }
    }

    /// Runs as long as the server does.
    pub async fn run(mut self) {
        let mut next_attempt = self.use_kept_certificate();
        loop {
            self.sleep_until(next_attempt).await;
            tracing::info!(
                domains = %self.order.settings.describe_domains(),
                directory = %self.order.settings.directory.as_str(),
                "ordering a certificate; the authority's terms of service are agreed to"
            );
            next_attempt = match self.order_certificate().await {
                Ok(certificate) => self.install_issued(&certificate),
                Err(failure) => self.report_failure(&failure),
            };
        }
    }

    /// Orders nothing that could not be counted: an authority locks a name after a few failures, and a hub may restart in a loop.
    async fn order_certificate(&mut self) -> Result<IssuedCertificate, OrderFailure> {
        self.order.was_checked.store(false, Ordering::Relaxed);
        self.history.begin_attempt(self.clock.now());
        if let Err(error) = self.order.files.write_attempts(&self.history) {
            return Err(OrderFailure::local(format!(
                "attempts cannot be kept: {error}; make the data directory writable for the hub"
            )));
        }
        // A panic in the library must not end all renewals.
        let ordering = AssertUnwindSafe(self.order.obtain_certificate()).catch_unwind();
        ordering
            .await
            .unwrap_or_else(|_| Err(OrderFailure::local("the ACME client panicked")))
    }

    /// Serves the certificate of an earlier run, expired or not: a client is told then what is wrong. Returns when to order.
    fn use_kept_certificate(&mut self) -> UnixMicros {
        let now = self.clock.now();
        let first_attempt = self.history.first_attempt_at(now);
        let kept = self.order.files.read_certificate().unwrap_or_else(|error| {
            tracing::warn!(%error, "the kept certificate cannot be used; another is ordered");
            None
        });
        let domains = &self.order.settings.domains;
        let names = || domains.iter().map(DomainName::as_str);
        let is_for_others = kept.as_ref().is_some_and(|kept| !kept.is_for(names()));
        let Some(kept) = kept.filter(|kept| !is_for_others || kept.serves_one_of(names(), now))
        else {
            if first_attempt > now {
                tracing::warn!(
                    next_attempt = %first_attempt.to_rfc3339_millis(),
                    "there is no certificate, and recent orders failed: the hub waits, so that the authority does not refuse it"
                );
                let problem = "earlier orders failed; the log says why".to_owned();
                self.status.set_failing(problem, first_attempt);
            }
            return first_attempt;
        };
        // With other names it serves until one for the new names is there.
        let wanted_at = if is_for_others {
            now
        } else {
            kept.renewal_at()
        };
        let next_attempt = wanted_at.max(first_attempt);
        self.install_certificate(&kept, next_attempt);
        if kept.not_after <= now {
            self.status
                .set_failing("the certificate has expired".to_owned(), next_attempt);
        } else if first_attempt > wanted_at.max(now) {
            let problem = "earlier orders failed; the log says why".to_owned();
            self.status.set_failing(problem, next_attempt);
        }
        next_attempt
    }

    fn install_issued(&mut self, certificate: &IssuedCertificate) -> UnixMicros {
        self.history.count_success();
        self.keep_history();
        let next_attempt = certificate.renewal_after_issue(self.clock.now());
        self.install_certificate(certificate, next_attempt);
        next_attempt
    }

    fn install_certificate(&mut self, certificate: &IssuedCertificate, renewal_at: UnixMicros) {
        self.order
            .resolver
            .install_certificate(certificate.certified_key.clone());
        self.expires_at = Some(certificate.not_after);
        self.status.set_valid(certificate.not_after, renewal_at);
        tracing::info!(
            domains = %self.order.settings.describe_domains(),
            expires_at = %certificate.not_after.to_rfc3339_millis(),
            renewal_at = %renewal_at.to_rfc3339_millis(),
            "a certificate is in use"
        );
    }

    fn report_failure(&mut self, failure: &OrderFailure) -> UnixMicros {
        let now = self.clock.now();
        let retry_after = self.order.client.take_retry_after();
        let was_checked = self.order.was_checked.load(Ordering::Relaxed);
        let next_attempt = self
            .history
            .count_failure(failure.kind, was_checked, retry_after, now);
        self.history.forget_old(now);
        self.keep_history();
        if failure.is_account_gone {
            self.order.files.remove_account();
        }
        let next_attempt_text = next_attempt.to_rfc3339_millis();
        let wait_seconds = (next_attempt.0 - now.0) / 1_000_000;
        match self.expires_at {
            None => tracing::error!(
                next_attempt = %next_attempt_text, wait_seconds,
                "no certificate yet, so no client can connect: {}", failure.message
            ),
            Some(expires_at) if expires_at <= now => tracing::error!(
                next_attempt = %next_attempt_text, wait_seconds,
                "the certificate has expired, so clients refuse it, and was not renewed: {}", failure.message
            ),
            Some(expires_at) => tracing::warn!(
                expires_at = %expires_at.to_rfc3339_millis(),
                next_attempt = %next_attempt_text, wait_seconds,
                "the certificate was not renewed, and stays in use until it expires: {}", failure.message
            ),
        }
        // `/ready` needs no key, and a message about a file has its path.
        let problem = match failure.kind {
            FailureKind::Local => "something on the hub's machine; the log says what".to_owned(),
            FailureKind::Unreachable | FailureKind::Refused | FailureKind::RateLimited => {
                failure.message.clone()
            }
        };
        self.status.set_failing(problem, next_attempt);
        next_attempt
    }

    fn keep_history(&self) {
        if let Err(error) = self.order.files.write_attempts(&self.history) {
            tracing::warn!(%error, "attempts to get a certificate cannot be kept");
        }
    }

    async fn sleep_until(&self, at: UnixMicros) {
        let wait = WaitUntil::begin(&self.clock, at);
        while let Some(left) = wait.time_left(&self.clock) {
            tokio::time::sleep(left.min(MAX_SLEEP)).await;
        }
    }
}

/// A wait until a time of the clock. It also ends when that much time has passed: a clock that was set back after a failed order
/// would otherwise delay the next one by as much.
struct WaitUntil {
    at: UnixMicros,
    monotonic_end: Duration,
}

impl WaitUntil {
    fn begin(clock: &Clock, at: UnixMicros) -> Self {
        let left = u64::try_from(at.0.saturating_sub(clock.now().0)).unwrap_or(0);
        Self {
            at,
            monotonic_end: clock.monotonic_now() + Duration::from_micros(left),
        }
    }

    /// `None` when the wait is over.
    fn time_left(&self, clock: &Clock) -> Option<Duration> {
        let left = u64::try_from(self.at.0.saturating_sub(clock.now().0)).unwrap_or(0);
        let monotonic_left = self.monotonic_end.saturating_sub(clock.monotonic_now());
        let left = Duration::from_micros(left).min(monotonic_left);
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MICROS: i64 = 86_400_000_000;

    #[test]
    fn a_clock_that_is_set_back_does_not_delay_the_next_order() {
        let clock = Clock::manual_at(UnixMicros(10 * DAY_MICROS));
        let minute = Duration::from_secs(60);
        let wait = WaitUntil::begin(&clock, UnixMicros(10 * DAY_MICROS + 60_000_000));
        assert_eq!(wait.time_left(&clock), Some(minute));
        clock.leap(-DAY_MICROS);
        assert_eq!(wait.time_left(&clock), Some(minute));
        clock.advance(minute);
        assert_eq!(wait.time_left(&clock), None);
        // A machine that was suspended: only the clock goes on.
        let wait = WaitUntil::begin(&clock, UnixMicros(clock.now().0 + DAY_MICROS));
        clock.leap(2 * DAY_MICROS);
        assert_eq!(wait.time_left(&clock), None);
    }
}
