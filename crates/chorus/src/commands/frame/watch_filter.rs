//! The filter of `chorus watch`: that of a stream, with names as people write them.

use crate::agent_names::HandleName;
use crate::fail::Fail;
use chorus_client::HubClient;
use chorus_wire::frame::FrameFilter;

const SENDER: &str = "sender:";

/// A valid filter, in which a sender may be `bob`, `~bob` or `bob@chorus`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchFilter {
    clauses: Vec<WatchClause>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum WatchClause {
    Sender(HandleName),
    Other(String),
}

impl WatchFilter {
    pub fn parse(text: &str) -> Result<Self, String> {
        let clauses = text.split(',').filter(|_| !text.is_empty()).map(|clause| {
            match clause.strip_prefix(SENDER) {
                Some(name) => HandleName::parse(name).map(WatchClause::Sender),
                None => {
                    FrameFilter::parse(clause).map_err(|e| e.message)?;
                    Ok(WatchClause::Other(clause.to_owned()))
                }
            }
        });
        let clauses: Result<Vec<WatchClause>, String> = clauses.collect();
        Ok(Self { clauses: clauses? })
    }

    /// The filter as the hub takes it.
    pub async fn resolve(&self, client: &HubClient) -> Result<FrameFilter, Fail> {
        let mut clauses = Vec::new();
        for clause in &self.clauses {
            clauses.push(match clause {
                WatchClause::Sender(name) => format!("{SENDER}{}", name.resolve(client).await?),
                WatchClause::Other(text) => text.clone(),
            });
        }
        FrameFilter::parse(&clauses.join(",")).map_err(|e| Fail::usage_error(e.message))
    }
}
