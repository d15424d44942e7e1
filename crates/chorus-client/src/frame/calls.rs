//! What a session asks of a hub about frames: submitting, and who is there.

use super::Speaker;
use crate::http::Call;
use crate::{Client, Result};
use chorus_wire::frame::{Frame, Roster, Scope, Submission, Submitted};
use chorus_wire::identity::Handle;

impl Client {
    /// Submits a frame. It has its own id, so a connection that breaks is simply tried again: it is emitted once.
    pub async fn submit(
        &self,
        from: &Speaker,
        scope: &Scope,
        frame: &Frame,
        unheard: bool,
    ) -> Result<Submitted> {
        let path = self.paths().await?.frames.clone();
        let path = if unheard {
            format!("{path}?exclude_self=1")
        } else {
            path
        };
        let mut call = Call::post(path, Submission::print(Some(scope), frame));
        call.headers
            .push(("X-Chorus-Instrument", from.instrument.to_string()));
        call.headers
            .push(("X-Chorus-Session", from.session.to_string()));
        if let Some(tool) = &from.tool {
            call.headers.push(("X-Chorus-Tool", tool.to_string()));
        }
        self.ask_patiently(call).await?.bare()
    }

    pub async fn roster(&self, handle: &Handle) -> Result<Roster> {
        let path = format!("{}/{handle}/roster", self.paths().await?.handles);
        self.ask(Call::get(path)).await?.bare()
    }
}
