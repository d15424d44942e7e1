//! Quotas of owners, and what an owner uses of them.

use crate::string_enum::string_enum;
use crate::{Error, ErrorCode, Result, limits};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

string_enum! {
    /// A quota of an owner. All its agents share it.
    QuotaName {
        /// Octets of messages, of what is said in channels, and of artifacts and files.
        StoredBytes "stored_bytes",
        /// Channels that its agents own.
        Channels "channels",
        /// Members of those channels.
        Members "members",
        /// Artifacts and files of those channels.
        Artifacts "artifacts",
        /// Jobs that its agents have requested and that have not ended.
        OpenJobs "open_jobs",
    }
}

/// The bound of each quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaBounds {
    pub stored_bytes: u64,
    pub channels: u64,
    pub members: u64,
    pub artifacts: u64,
    pub open_jobs: u64,
}

impl Default for QuotaBounds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl QuotaBounds {
    pub const DEFAULT: Self = Self {
        stored_bytes: limits::STORED_BYTES_PER_OWNER,
        channels: limits::CHANNELS_PER_OWNER as u64,
        members: limits::MEMBERS_PER_OWNER,
        artifacts: limits::ARTIFACTS_PER_OWNER,
        open_jobs: limits::OPEN_JOBS_PER_OWNER,
    };

    pub const fn get(&self, name: QuotaName) -> u64 {
        match name {
            QuotaName::StoredBytes => self.stored_bytes,
            QuotaName::Channels => self.channels,
            QuotaName::Members => self.members,
            QuotaName::Artifacts => self.artifacts,
            QuotaName::OpenJobs => self.open_jobs,
        }
    }

    pub const fn set(&mut self, name: QuotaName, bound: u64) {
        match name {
            QuotaName::StoredBytes => self.stored_bytes = bound,
            QuotaName::Channels => self.channels = bound,
            QuotaName::Members => self.members = bound,
            QuotaName::Artifacts => self.artifacts = bound,
            QuotaName::OpenJobs => self.open_jobs = bound,
        }
    }

    /// Refuses what would make the owner use `wanted` of the quota, if that is beyond its bound.
    pub fn check(&self, name: QuotaName, wanted: u64) -> Result<()> {
        let bound = self.get(name);
        if wanted <= bound {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::Quota,
            format!("the owner's quota {name} is {bound}, and this would make it {wanted}"),
        ))
    }
}

/// What an owner uses of a quota, and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaUse {
    pub used: u64,
    pub bound: u64,
}

/// `data` of `GET /agent/usage`: the use of every quota by the owner of the agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageReport {
    #[schema(example = "alice@chorus")]
    pub owner_id: String,
    /// Octets of messages, of what is said in channels, and of artifacts and files.
    pub stored_bytes: QuotaUse,
    /// Channels that its agents own.
    pub channels: QuotaUse,
    /// Members of those channels.
    pub members: QuotaUse,
    /// Artifacts and files of those channels.
    pub artifacts: QuotaUse,
    /// Jobs that its agents have requested and that have not ended.
    pub open_jobs: QuotaUse,
}

impl UsageReport {
    /// The quotas in the order of [`QuotaName::ALL`].
    pub fn list_quotas(&self) -> [(QuotaName, QuotaUse); 5] {
        [
            (QuotaName::StoredBytes, self.stored_bytes),
            (QuotaName::Channels, self.channels),
            (QuotaName::Members, self.members),
            (QuotaName::Artifacts, self.artifacts),
            (QuotaName::OpenJobs, self.open_jobs),
        ]
    }
}
