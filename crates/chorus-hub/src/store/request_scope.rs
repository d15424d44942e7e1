//! The request with an `Idempotency-Key` that the current task carries out. Its first write also records that it was carried
//! out, in the same transaction: a crash after the commit cannot make a repetition do it again.

use super::erased_work::{AnyAnswer, ErasedWrite};
use super::request_answers::{self, RequestClaim};
use super::write_txn::WriteTxn;
use crate::Result;
use chorus_wire::{Error, ErrorCode, secret::Secret};
use futures_util::future::LocalBoxFuture;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

tokio::task_local! {
    static CURRENT: RequestScope;
}

/// Cheap to clone; every clone is the same request.
#[derive(Clone)]
pub(crate) struct RequestScope(Arc<ScopeInner>);

struct ScopeInner {
    claim: RequestClaim,
    resumption: Resumption,
    /// A write of this execution was committed.
    is_committed: AtomicBool,
    /// Another execution of the same request was faster.
    is_taken: AtomicBool,
}

/// Whether an earlier execution carried the request out and left no answer.
pub(crate) enum Resumption {
    First,
    /// It left what the answer is made of, as JSON.
    Kept(Secret),
    /// It left nothing to make an answer of.
    Lost,
}

impl RequestScope {
    pub fn new(claim: RequestClaim, resumption: Resumption) -> Self {
        Self(Arc::new(ScopeInner {
            claim,
            resumption,
            is_committed: AtomicBool::new(false),
            is_taken: AtomicBool::new(false),
        }))
    }

    pub fn claim(&self) -> &RequestClaim {
        &self.0.claim
    }

    pub fn is_committed(&self) -> bool {
        self.0.is_committed.load(Ordering::Acquire)
    }

    pub fn is_taken(&self) -> bool {
        self.0.is_taken.load(Ordering::Acquire)
    }

    pub fn is_resumed(&self) -> bool {
        match self.0.resumption {
            Resumption::First => false,
            Resumption::Kept(_) | Resumption::Lost => true,
        }
    }

    pub fn is_answer_lost(&self) -> bool {
        matches!(self.0.resumption, Resumption::Lost)
    }

    pub(super) fn set_committed(&self) {
        self.0.is_committed.store(true, Ordering::Release);
    }

    /// The request that the current task carries out.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Carries the request out: writes of `work` belong to it.
    pub async fn run<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    /// The same on a task that this request has started.
    pub async fn run_optional<F: Future>(scope: Option<Self>, work: F) -> F::Output {
        match scope {
            Some(scope) => scope.run(work).await,
            None => work.await,
        }
    }

    /// What the answer is made of, when an earlier execution carried the request out and left it.
    pub fn take_kept<T: DeserializeOwned>() -> Result<Option<T>> {
        let Some(scope) = Self::current() else {
            return Ok(None);
        };
        match &scope.0.resumption {
            Resumption::First | Resumption::Lost => Ok(None),
            Resumption::Kept(json) => serde_json::from_str(json.expose())
                .map(Some)
                .map_err(|_| Error::internal("what was kept of a request cannot be read")),
        }
    }

    /// Whether this execution may write. Runs in the transaction, so of two hubs one finds the other's claim.
    async fn check_claim(&self, txn: &WriteTxn<'_>) -> Result<ClaimState> {
        let claim = &self.0.claim;
        let found = request_answers::find_request(&txn.tx, claim, txn.expiry_clock()).await?;
        match found {
            None => Ok(ClaimState::New),
            Some(found) if found.execution == claim.execution => Ok(ClaimState::Own),
            Some(_) if self.is_resumed() => Err(answer_lost()),
            Some(_) => {
                self.0.is_taken.store(true, Ordering::Release);
                Err(Error::unavailable(
                    "the request is being carried out by another hub",
                ))
            }
        }
    }

    async fn insert_claim(&self, txn: &mut WriteTxn<'_>) -> Result<()> {
        let kept = txn.take_kept_result();
        let seal_key = &txn.hub_settings().seal_key;
        let sealed = match (kept, seal_key) {
            (Some(kept), Some(seal_key)) => Some(seal_key.seal_secret(&kept)?),
            (Some(_) | None, Some(_) | None) => None,
        };
        request_answers::insert_claim(&txn.tx, &self.0.claim, sealed.as_deref()).await?;
        Ok(())
    }
}

/// A write that belongs to a request: the first one to commit also records the request.
pub(super) struct ClaimedWrite {
    pub scope: RequestScope,
    pub work: Box<dyn ErasedWrite>,
}

impl ErasedWrite for ClaimedWrite {
    fn run<'a>(&'a self, txn: &'a mut WriteTxn<'_>) -> LocalBoxFuture<'a, Result<AnyAnswer>> {
        Box::pin(async move {
            let claim = self.scope.check_claim(txn).await?;
            txn.take_kept_result();
            let answer = self.work.run(txn).await?;
            match claim {
                ClaimState::New => self.scope.insert_claim(txn).await?,
                ClaimState::Own => {}
            }
            Ok(answer)
        })
    }
}

/// What a transaction finds of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimState {
    New,
    /// An earlier write of this execution recorded it.
    Own,
}

/// The request was carried out, and its answer cannot be given again.
pub(crate) fn answer_lost() -> Error {
    Error::new(
        ErrorCode::IdempotencyConflict,
        "the request with this Idempotency-Key was carried out, but the hub stopped before it had kept the answer; read what the request has changed instead of repeating it",
    )
}
