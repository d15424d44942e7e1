//! One order for a certificate: account, order, challenges, request, chain (RFC 8555, section 7.4).

use super::acme_files::{AcmeFiles, KeptAccount};
use super::acme_settings::AcmeSettings;
use super::certificate_resolver::{CertificateResolver, ChallengeGuard};
use super::directory_client::DirectoryClient;
use super::issued_certificate::IssuedCertificate;
use super::order_failure::OrderFailure;
use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How an order is polled while the authority checks the names: from a quarter of a second on, for two minutes at most.
const POLLING: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .timeout(Duration::from_secs(120));

/// What an order needs.
pub struct CertificateOrder {
    pub settings: AcmeSettings,
    pub files: AcmeFiles,
    pub client: DirectoryClient,
    pub resolver: Arc<CertificateResolver>,
    /// Whether the authority was told to check a name in the last attempt.
    pub was_checked: AtomicBool,
}

impl CertificateOrder {
    /// Gets a certificate and keeps it. One that could not be written is used nevertheless: to order it again would count.
    pub async fn obtain_certificate(&self) -> Result<IssuedCertificate, OrderFailure> {
        let account = self.open_account().await?;
        let identifiers: Vec<Identifier> = self
            .settings
            .domains
            .iter()
            .map(|domain| Identifier::Dns(domain.as_str().to_owned()))
            .collect();
        let mut order = account
            .new_order(&NewOrder::new(&identifiers))
            .await
            .map_err(|e| self.describe_error(&e))?;
        let challenges = self.answer_challenges(&mut order).await?;
        self.wait_checked(&mut order).await?;
        drop(challenges);
        let key_pem = order
            .finalize()
            .await
            .map_err(|e| self.describe_error(&e))?;
        let chain_pem = order
            .poll_certificate(&POLLING)
            .await
            .map_err(|e| self.describe_error(&e))?;
        let pem = format!("{}\n{}", key_pem.trim_end(), chain_pem);
        let certificate = IssuedCertificate::parse(&pem).map_err(|cause| {
            OrderFailure::refused(format!("the authority's answer cannot be used: {cause}"))
        })?;
        if let Err(error) = self.files.write_certificate(&pem) {
            tracing::error!(%error, "the new certificate is in use, but could not be kept: the next start orders another");
        }
        Ok(certificate)
    }

    /// Uses the kept account, or makes one. It is kept before anything is ordered with it.
    async fn open_account(&self) -> Result<Account, OrderFailure> {
        let builder = || Account::builder_with_http(Box::new(self.client.clone()));
        let email = self
            .settings
            .email
            .as_ref()
            .map(|email| email.as_str().to_owned());
        let contacts: Vec<String> = email
            .iter()
            .map(|email| format!("mailto:{email}"))
            .collect();
        let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
        let kept = self.files.read_account().unwrap_or_else(|error| {
            tracing::warn!(%error, "the account at the authority is made again");
            None
        });
        let Some(kept) = kept else {
            let request = NewAccount {
                contact: &contacts,
                terms_of_service_agreed: true,
                only_return_existing: false,
            };
            let directory = self.settings.directory.as_str().to_owned();
            let created = builder().create(&request, directory, None).await;
            let (account, credentials) = created.map_err(|e| self.describe_error(&e))?;
            self.keep_account(&KeptAccount { email, credentials })?;
            return Ok(account);
        };
        let has_new_email = kept.email != email;
        let account = builder()
            .from_credentials(kept.credentials)
            .await
            .map_err(|e| self.describe_error(&e))?;
        if has_new_email {
            account
                .update_contacts(&contacts)
                .await
                .map_err(|e| self.describe_error(&e))?;
            // The credentials were given away above; the file still has them.
            if let Ok(Some(kept)) = self.files.read_account() {
                let credentials = kept.credentials;
                self.keep_account(&KeptAccount { email, credentials })?;
            }
        }
        Ok(account)
    }

    fn keep_account(&self, account: &KeptAccount) -> Result<(), OrderFailure> {
        self.files.write_account(account).map_err(|error| {
            OrderFailure::local(format!(
                "the account cannot be kept: {error}; make the data directory writable for the hub"
            ))
        })
    }

    /// Prepares the answer for each name before the authority is told to look.
    async fn answer_challenges(
        &self,
        order: &mut Order,
    ) -> Result<Vec<ChallengeGuard>, OrderFailure> {
        let mut guards = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|e| self.describe_error(&e))?;
            // A name that was checked a short while ago need not be checked again.
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let domain = authorization.identifier().to_string();
            let Some(mut challenge) = authorization.challenge(ChallengeType::TlsAlpn01) else {
                return Err(OrderFailure::refused(format!(
                    "the authority does not offer TLS-ALPN-01 for {domain}, the only check that this hub can answer; choose another with --tls-acme-directory"
                )));
            };
            let digest = challenge.key_authorization().digest();
            let guard = self
                .resolver
                .answer_challenge(&domain, digest.as_ref())
                .map_err(OrderFailure::local)?;
            guards.push(guard);
            self.was_checked.store(true, Ordering::Relaxed);
            challenge
                .set_ready()
                .await
                .map_err(|e| self.describe_error(&e))?;
        }
        Ok(guards)
    }

    /// Waits until the authority has checked every name. The reason of a failed check is in its authorization.
    async fn wait_checked(&self, order: &mut Order) -> Result<(), OrderFailure> {
        let outcome = order.poll_ready(&POLLING).await;
        if let Ok(OrderStatus::Ready) = outcome {
            return Ok(());
        }
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            let Ok(state) = authorization.refresh().await else {
                break;
            };
            let problem = state
                .challenges
                .iter()
                .find_map(|challenge| challenge.error.as_ref());
            if let Some(problem) = problem {
                let domain = state.identifier().to_string();
                return Err(OrderFailure::from_problem(problem, &domain));
            }
        }
        Err(match outcome {
            Err(error) => self.describe_error(&error),
            Ok(_) => OrderFailure::refused(format!(
                "the authority refused the order for {} and gave no reason",
                self.settings.describe_domains()
            )),
        })
    }

    fn describe_error(&self, error: &Error) -> OrderFailure {
        let domains = self.settings.describe_domains();
        OrderFailure::from_error(error, &domains, self.settings.directory.as_str())
    }
}
