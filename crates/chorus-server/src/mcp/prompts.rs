//! MCP prompts that a user picks in a host: a message across cultures, a handover.

use super::tool_call::ToolCall;
use chorus_hub::lifecycle;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

const MESSAGE_PROMPT: &str = "cross_cultural_message";
const HANDOVER_PROMPT: &str = "handover";

pub fn list_prompts() -> Vec<Prompt> {
    let argument = |name: &str, description: &str, required: bool| {
        PromptArgument::new(name)
            .with_description(description)
            .with_required(required)
    };
    vec![
        Prompt::new(
            MESSAGE_PROMPT,
            Some("Write to an agent whose user lives in another culture"),
            Some(vec![
                argument("receiver_id", "Whom it is for, such as yuki@chorus", true),
                argument("text", "What you want to say, in your own words", true),
            ]),
        )
        .with_title("Message across cultures"),
        Prompt::new(
            HANDOVER_PROMPT,
            Some("Hand the work of this session over to another one"),
            Some(vec![argument(
                "scope",
                "For whom, such as ~me/cc-*; all your sessions without it",
                false,
            )]),
        )
        .with_title("Write a handover"),
    ]
}

pub async fn get_prompt(
    call: &ToolCall,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let culture = match message_receiver(request) {
        Some(receiver) => {
            let record =
                lifecycle::get_agent_record(&call.principal, &call.state.hub, receiver).await;
            record
                .ok()
                .and_then(|record| record.agent_card?.user_culture().map(str::to_owned))
        }
        None => None,
    };
    render_prompt(request, culture.as_deref())
}

fn argument<'a>(request: &'a GetPromptRequestParams, name: &str) -> Option<&'a str> {
    let value = request.arguments.as_ref()?.get(name)?;
    value.as_str().filter(|text| !text.is_empty())
}

/// The receiver of the message, if the prompt is that for a message: its culture is part of the prompt.
pub fn message_receiver(request: &GetPromptRequestParams) -> Option<&str> {
    argument(request, "receiver_id").filter(|_| request.name == MESSAGE_PROMPT)
}

/// The prompt with its arguments, and the culture of the receiver's user if it is known.
pub fn render_prompt(
    request: &GetPromptRequestParams,
    culture: Option<&str>,
) -> Result<GetPromptResult, ErrorData> {
    let required = |name: &str| {
        argument(request, name).ok_or_else(|| {
            ErrorData::invalid_params(format!("the argument {name} is required"), None)
        })
    };
    let text = match request.name.as_str() {
        MESSAGE_PROMPT => {
            render_message_prompt(required("receiver_id")?, required("text")?, culture)
        }
        HANDOVER_PROMPT => render_handover_prompt(argument(request, "scope")),
        other => {
            return Err(ErrorData::invalid_params(
                format!("there is no prompt {other}"),
                None,
            ));
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(
        Role::User,
        text,
    )]))
}

fn render_message_prompt(receiver: &str, text: &str, culture: Option<&str>) -> String {
    let culture = match culture {
        Some(culture) => format!("Its user's culture is {culture}."),
        None => "Its culture is not known: look with chorus_discover, or at what it sent before."
            .to_owned(),
    };
    format!(
        "Send this to {receiver} with chorus_send: \"{text}\"\n\n{culture} Put my words into `text` exactly as I wrote them; do not \
         translate them, the other side does that for its user. Set sender_culture to mine. Add cultural_context, in my language, only \
         if the wording would be misread there and you know why: one or two sentences on what I mean by it. Leave it out if you \
         would have to guess. When it is sent, tell me in my language what went out, to whom, and how it was delivered."
    )
}

fn render_handover_prompt(scope: Option<&str>) -> String {
    let scope = scope
        .map(|scope| format!(" with scope {scope}"))
        .unwrap_or_default();
    format!(
        "Hand the work of this session over with agent_handover{scope}. Write handover_body so that a reader who knows nothing of this \
         session can go on at once: what I asked for and why; what is done and how it was checked; what is left, in order; \
         decisions that were made and the reasons; what is in the way. At most 8000 bytes, no secrets. Name files, branches and links \
         in pointer_refs instead of copying them. Then tell me what you handed over and whether a session is listening."
    )
}
