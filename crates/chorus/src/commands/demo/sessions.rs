//! The scene of frames: three sessions of yours set a book together, and ask you what they cannot decide.

use super::Pace;
use super::cast::Cast;
use crate::fail::{Exit, Fail};
use chorus_client::Client;
use chorus_client::frame::{Frames, Heard, Speaker, new_id};
use chorus_hub::Clock;
use chorus_wire::frame::payload::{
    AgentAdvisory, AgentBindingMoment, AgentBroadcast, AgentLockRelease, AgentLockRequest,
    AgentQuery, AgentResponse, Choice, EventClass, Question,
};
use chorus_wire::frame::{Filter, Ident, Payload};
use chorus_wire::{identity::Handle, time::Micros};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

/// A frame can be seen for five minutes: whoever has not decided by then is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(240);
/// Answers that wait for the one who asked.
const HEARD: usize = 64;
const CHAPTER: &str = "atlas/chapter-3.md";

fn now() -> Micros {
    Clock::system().now()
}

/// One session of the person: a program with its own open stream.
struct Session {
    client: Client,
    speaker: Speaker,
    answers: mpsc::Receiver<AgentResponse>,
    /// Ends with the session.
    _ear: JoinSet<()>,
}

impl Session {
    async fn open(
        client: &Client,
        handle: &Handle,
        instrument: &str,
        session: &str,
    ) -> Result<Self, Fail> {
        let ident = |text| {
            Ident::parse(text)
                .ok_or_else(|| Fail::new(Exit::Usage, "USAGE", "a session without a name"))
        };
        let speaker = Speaker::new(handle.clone(), ident(instrument)?, ident(session)?);
        let mut stream = client.frames(&speaker, &Filter::default(), None, now).await;
        stream.opened().await?;
        let (tell, answers) = mpsc::channel(HEARD);
        let mut ear = JoinSet::new();
        ear.spawn(hear(stream, tell));
        Ok(Self {
            client: client.clone(),
            speaker,
            answers,
            _ear: ear,
        })
    }

    /// Says it to all sessions of the person; the frame's id.
    async fn say(&self, payload: impl Into<Payload>) -> Result<Uuid, Fail> {
        let scope = self.speaker.own();
        let frame = self
            .speaker
            .draft(&scope, payload.into(), now())
            .check()
            .map_err(|e| Fail::usage(e.message))?;
        self.client
            .submit(&self.speaker, &scope, &frame, false)
            .await?;
        Ok(frame.frame_id)
    }

    async fn advise(&self, text: &str) -> Result<(), Fail> {
        let advisory = AgentAdvisory {
            advisory_text: text.into(),
            file_refs: Some(vec![CHAPTER.into()]),
            worktree: None,
            branch: Some("atlas".into()),
        };
        self.say(advisory).await.map(drop)
    }

    /// What was answered to this question, however long it takes.
    async fn answer_to(&mut self, asked: Uuid) -> Result<String, Fail> {
        while let Some(said) = self.answers.recv().await {
            if said.query_id == asked || said.responded_to_frame_id == Some(asked) {
                return Ok(said.response_text);
            }
        }
        Err(Fail::new(
            Exit::Transport,
            "TRANSPORT",
            "a session of the demo hears nothing more",
        ))
    }
}

/// Takes everything, since a stream that nobody reads is cut off; answers are kept for whoever asked.
async fn hear(mut stream: Frames, tell: mpsc::Sender<AgentResponse>) {
    loop {
        match stream.next().await {
            Ok(Heard::Frame(frame, _)) => {
                if let Payload::AgentResponse(said) = &frame.payload {
                    // Full of answers to questions that nobody asked any more.
                    let _ = tell.try_send(said.clone());
                }
            }
            Ok(Heard::Opened(_) | Heard::Gap) => {}
            Err(error) => {
                return tracing::warn!("a session of the demo hears nothing more: {error}");
            }
        }
    }
}

pub async fn play(cast: Arc<Cast>, pace: Pace) -> Result<(), Fail> {
    let you = &cast.you;
    let layout = Session::open(&you.client, &you.handle, "cc-editor", "layout").await?;
    let mut proof = Session::open(&you.client, &you.handle, "cc-proof", "proof").await?;
    let mut press = Session::open(&you.client, &you.handle, "cc-press", "press").await?;
    for round in 0.. {
        layout
            .advise("I am setting chapter 3, the words for light.")
            .await?;
        pace.rest(4).await;
        let lease_id = new_id();
        let intent = Some("setting the type; ten minutes".to_owned());
        let lock = AgentLockRequest {
            resource: CHAPTER.into(),
            lease_id,
            ttl_ms: 600_000,
            intent,
        };
        press.say(lock).await?;
        pace.rest(4).await;
        question(&layout, &mut proof, pace).await?;
        let asked = press.say(moment(round)).await?;
        if !pace.goes_on() {
            return Ok(());
        }
        let decided = tokio::time::timeout(ASK_AGAIN, press.answer_to(asked)).await;
        if let Ok(text) = decided {
            press
                .advise(&format!(
                    "Thank you. “{}” it is; the page is being set.",
                    short(&text?)
                ))
                .await?;
        }
        press
            .say(AgentLockRelease {
                lease_id,
                resource: Some(CHAPTER.into()),
            })
            .await?;
        let broadcast_text = "Chapter 3 is set and on its way to the press.".into();
        press
            .say(AgentBroadcast {
                broadcast_text,
                event_class: EventClass::Merged,
                refs: None,
            })
            .await?;
        pace.rest(20).await;
    }
    Ok(())
}

/// One session asks, another knows.
async fn question(knows: &Session, asks: &mut Session, pace: Pace) -> Result<(), Fail> {
    let query = AgentQuery {
        query_text: "Does anybody still use the old page numbers?".into(),
        query_id: new_id(),
        response_scope: asks.speaker.own(),
        timeout_ms: 60_000,
    };
    let query_id = query.query_id;
    let responded_to_frame_id = Some(asks.say(query).await?);
    pace.rest(3).await;
    let answer = AgentResponse {
        query_id,
        response_text: "No. The index was the last one, and it is renumbered.".into(),
        responder_session_id: knows.speaker.session.to_string(),
        responded_to_frame_id,
        answer_attempt_idx: None,
    };
    knows.say(answer).await?;
    asks.answer_to(query_id).await.map(drop)
}

/// What only the person can say; another one each time.
fn moment(round: usize) -> AgentBindingMoment {
    let choice = |label: &str, reasoning: &str| Choice {
        label: label.into(),
        reasoning: reasoning.into(),
    };
    let (stem, options) = match round % 3 {
        0 => (
            "Which word opens the atlas?",
            vec![
                choice("木漏れ日", "It is light, and a picture says it at once."),
                choice(
                    "Feierabend",
                    "Everybody knows the feeling, few have the word.",
                ),
                choice("缘分", "The book itself came about by it."),
            ],
        ),
        1 => (
            "In which order do the words come?",
            vec![
                choice(
                    "by feeling",
                    "Readers look for what they feel, not for an alphabet.",
                ),
                choice("by language", "It is what a library expects."),
            ],
        ),
        _ => (
            "How many copies do we print first?",
            vec![
                choice("five hundred", "Enough for friends and one bookshop each."),
                choice(
                    "two thousand",
                    "Cheaper each, and a cellar full if we are wrong.",
                ),
            ],
        ),
    };
    AgentBindingMoment {
        synopsis: "The atlas is nearly set, and one thing is yours to say.".into(),
        findings: vec![
            "Chapters 1 to 3 are proofread.".into(),
            "The press is free until this evening.".into(),
        ],
        recommendations: vec!["Decide today, and the proof is on your table tomorrow.".into()],
        offer: "Whatever you choose, I set the page at once.".into(),
        question: Question {
            stem: stem.into(),
            options,
            recommended_idx: 0,
            hatches: None,
        },
    }
}

/// What somebody answered, short enough to say again.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
