//! Requests with an `Idempotency-Key`: the first is carried out, and its repetitions get the same answer. It serves all
//! routes that do not recognise a repetition by themselves.

use crate::context::HubContext;
use crate::identity::{IdempotencyKey, Principal};
use crate::store::request_answers::{self, RequestClaim, StoredRequest};
use crate::store::request_scope::{RequestScope, Resumption};
use crate::{Result, random};
use chorus_wire::limits::{IDEMPOTENCY_RETENTION, REGISTRATION_ANSWER_RETENTION};
use chorus_wire::{Error, ErrorCode, secret::Secret};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// How long a repetition waits for the answer of a request that another hub may be carrying out. Then it is a retryable 503.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// A request takes some milliseconds, so that most repetitions are answered after one pause, and a whole wait is at most a
/// hundred reads of one row.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An answer as the server gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RememberedAnswer {
    pub status: u16,
    pub content_type: String,
    pub body: String,
}

impl RememberedAnswer {
    /// One text, for sealing: status and content type are the first two lines.
    fn encode(&self) -> Secret {
        let Self {
            status,
            content_type,
            body,
        } = self;
        Secret::new(format!("{status}\n{content_type}\n{body}"))
    }

    fn decode(text: &Secret) -> Option<Self> {
        let mut parts = text.expose().splitn(3, '\n');
        Some(Self {
            status: parts.next()?.parse().ok()?,
            content_type: parts.next()?.to_owned(),
            body: parts.next()?.to_owned(),
        })
    }
}

type RequestName = (String, String);
type RequestLocks = Mutex<HashMap<RequestName, Arc<tokio::sync::Mutex<()>>>>;

/// The requests with a key that this hub is carrying out: a repetition waits for the first one.
#[derive(Default)]
pub struct IdempotentRequests {
    running: Arc<RequestLocks>,
}

fn lock_map(
    running: &RequestLocks,
) -> MutexGuard<'_, HashMap<RequestName, Arc<tokio::sync::Mutex<()>>>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The turn of one request among those with the same key; dropping it ends the turn.
struct RequestTurn {
    running: Arc<RequestLocks>,
    name: RequestName,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for RequestTurn {
    fn drop(&mut self) {
        let mut running = lock_map(&self.running);
        drop(self.guard.take());
        // Waiting requests hold a reference too.
        if running
            .get(&self.name)
            .is_some_and(|lock| Arc::strong_count(lock) == 1)
        {
            running.remove(&self.name);
        }
    }
}

/// What to do with a request.
pub enum RequestStart {
    /// Carry it out with [`RequestExecution::run`], then [`RequestExecution::finish`] it.
    Execute(Box<RequestExecution>),
    /// It was carried out before.
    Repeat(RememberedAnswer),
}

/// A request that is being carried out.
pub struct RequestExecution {
    hub: HubContext,
    scope: RequestScope,
    _turn: RequestTurn,
}

impl IdempotentRequests {
    /// Looks the request up. `path` and `key` identify it, together with the caller. A client without a key of its own can
    /// only register.
    pub async fn begin(
        &self,
        principal: &Principal,
        hub: &HubContext,
        path: &str,
        key: IdempotencyKey,
    ) -> Result<RequestStart> {
        let (caller, retention) = match principal {
            Principal::Anonymous => ("stranger".to_owned(), REGISTRATION_ANSWER_RETENTION),
            Principal::Agent(_) | Principal::Operator(_) => {
                (principal.idempotency_caller()?, IDEMPOTENCY_RETENTION)
            }
        };
        // A path may be longer than what an index takes.
        let path = Sha256::digest(path.as_bytes());
        let path: String = path.iter().take(16).map(|b| format!("{b:02x}")).collect();
        let writer = principal.require_agent().ok().map(|agent| agent.id);
        let claim = RequestClaim {
            caller: format!("{caller} {path}"),
            key,
            execution: random::new_id().to_string(),
            writer,
            expires_at: hub.clock().now().saturating_add(retention),
            retention,
        };
        let turn = self.wait_for_turn(&claim).await;
        let resumption = match find_first(hub, &claim).await? {
            FirstRequest::Unknown => {
                if let Ok(agent) = principal.require_agent() {
                    let identity = hub.identity();
                    identity.charge_stored_bytes(agent.owner, 0).await?;
                }
                Resumption::First
            }
            FirstRequest::Answered(answer) => return Ok(RequestStart::Repeat(answer)),
            FirstRequest::Unanswered(resumption) => resumption,
        };
        Ok(RequestStart::Execute(Box::new(RequestExecution {
            hub: hub.clone(),
            scope: RequestScope::new(claim, resumption),
            _turn: turn,
        })))
    }

    async fn wait_for_turn(&self, claim: &RequestClaim) -> RequestTurn {
        let name = (claim.caller.clone(), claim.key.key.clone());
        let lock = lock_map(&self.running)
            .entry(name.clone())
            .or_default()
            .clone();
        // Made before the wait: a request that is given up while it waits leaves nothing behind.
        let mut turn = RequestTurn {
            running: self.running.clone(),
            name,
            guard: None,
        };
        turn.guard = Some(lock.lock_owned().await);
        turn
    }
}

/// What is known of the first request with a key.
enum FirstRequest {
    Unknown,
    Answered(RememberedAnswer),
    /// It was carried out, and no hub will answer it any more.
    Unanswered(Resumption),
}

async fn find_first(hub: &HubContext, claim: &RequestClaim) -> Result<FirstRequest> {
    let Some(mut found) = find_stored(hub, claim).await? else {
        return Ok(FirstRequest::Unknown);
    };
    if found.fingerprint != claim.key.fingerprint {
        return Err(ErrorCode::IdempotencyConflict.into());
    }
    if found.answer.is_none()
        && let Some(answered) = wait_for_answer(hub, claim).await?
    {
        found = answered;
    }
    let unseal = |sealed: &[u8]| hub.seal_key().unseal(sealed);
    if let Some(sealed) = &found.answer {
        let answer = unseal(sealed).as_ref().and_then(RememberedAnswer::decode);
        return Ok(answer.map_or(
            FirstRequest::Unanswered(Resumption::Lost),
            FirstRequest::Answered,
        ));
    }
    let kept = found.kept.as_deref().and_then(unseal);
    Ok(FirstRequest::Unanswered(
        kept.map_or(Resumption::Lost, Resumption::Kept),
    ))
}

async fn find_stored(hub: &HubContext, claim: &RequestClaim) -> Result<Option<StoredRequest>> {
    let claim = claim.clone();
    let clock = hub.expiry_clock();
    hub.store()
        .read(async move |tx| Ok(request_answers::find_request(tx, &claim, clock).await?))
        .await
}

/// The request once it is answered. A hub that is alone carries out nothing while its repetition has the turn.
async fn wait_for_answer(hub: &HubContext, claim: &RequestClaim) -> Result<Option<StoredRequest>> {
    if !hub.store().has_peers() {
        return Ok(None);
    }
    let polling = async {
        loop {
            tokio::time::sleep(ANSWER_POLL_INTERVAL).await;
            match find_stored(hub, claim).await? {
                Some(found) if found.answer.is_none() => {}
                found => return Ok(found),
            }
        }
    };
    tokio::time::timeout(ANSWER_WAIT, polling)
        .await
        .unwrap_or(Ok(None))
}

impl RequestExecution {
    /// An earlier execution carried the request out, and left nothing to make its answer of.
    pub fn is_answer_lost(&self) -> bool {
        self.scope.is_answer_lost()
    }

    /// Carries the request out.
    pub async fn run<F: Future>(&self, work: F) -> F::Output {
        self.scope.clone().run(work).await
    }

    /// Stores the answer of a request that succeeded; `None` for one that did not. Returns the answer to give instead, when
    /// another hub carried the same request out first.
    pub async fn finish(
        &self,
        status: u16,
        answer: Option<&RememberedAnswer>,
    ) -> Result<Option<RememberedAnswer>> {
        if self.scope.is_taken() {
            let answer = self.find_other_answer().await?;
            return answer
                .map(Some)
                .ok_or_else(|| Error::unavailable("another hub has not answered yet"));
        }
        // It may have been refused for what another hub did with the same request meanwhile, such as a name that is taken.
        let is_refused = answer.is_none() && status < 500;
        if is_refused && !self.scope.is_committed() && self.hub.store().has_peers() {
            return self.find_other_answer().await;
        }
        match answer {
            Some(answer) => self.record(answer).await?,
            // What was refused may be tried again with the same key. A failure may have had an effect, so its claim stays.
            None if status < 500 && self.scope.is_committed() => self.forget().await?,
            None => {}
        }
        Ok(None)
    }

    /// The answer of another hub that carried the same request out.
    async fn find_other_answer(&self) -> Result<Option<RememberedAnswer>> {
        match find_first(&self.hub, self.scope.claim()).await? {
            FirstRequest::Answered(answer) => Ok(Some(answer)),
            FirstRequest::Unknown | FirstRequest::Unanswered(_) => Ok(None),
        }
    }

    async fn record(&self, answer: &RememberedAnswer) -> Result<()> {
        let claim = self.scope.claim().clone();
        let is_resumed = self.scope.is_resumed();
        let sealed = self.hub.seal_key().seal_secret(&answer.encode())?;
        self.hub
            .store()
            .write(async move |txn| {
                let clock = txn.expiry_clock();
                let found = request_answers::find_request(&txn.tx, &claim, clock).await?;
                let is_of_other = found.is_some_and(|found| found.execution != claim.execution);
                if is_of_other && !is_resumed {
                    return Ok(());
                }
                Ok(request_answers::record_answer(&txn.tx, &claim, &sealed).await?)
            })
            .await
    }

    async fn forget(&self) -> Result<()> {
        let claim = self.scope.claim().clone();
        self.hub
            .store()
            .write(async move |txn| {
                Ok(request_answers::forget_request(&txn.tx, &claim.caller, &claim.key.key).await?)
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_same_after_it_was_stored() {
        let answer = RememberedAnswer {
            status: 201,
            content_type: "application/json".into(),
            body: "{\"a\":\n1}".into(),
        };
        assert_eq!(RememberedAnswer::decode(&answer.encode()), Some(answer));
    }

    #[tokio::test]
    async fn requests_with_one_key_take_turns_and_leave_nothing_behind() {
        let requests = IdempotentRequests::default();
        let claim = |key: &str| RequestClaim {
            caller: "agent 1".into(),
            key: IdempotencyKey {
                key: key.into(),
                fingerprint: [0; 32],
            },
            execution: "x".into(),
            writer: None,
            expires_at: chorus_wire::time::UnixMicros(0),
            retention: Duration::ZERO,
        };
        let first = requests.wait_for_turn(&claim("a")).await;
        let _other = requests.wait_for_turn(&claim("b")).await;
        let claim_again = claim("a");
        let mut waiting = Box::pin(requests.wait_for_turn(&claim_again));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let mut given_up = Box::pin(requests.wait_for_turn(&claim_again));
        assert!(futures_util::poll!(&mut given_up).is_pending());
        drop(first);
        drop(waiting.await);
        drop(given_up);
        assert_eq!(lock_map(&requests.running).len(), 1);
    }
}
