//! What Claude Code asks its user when our plugin is enabled: the hub and a name (PLG-07). There is no key among them: the first
//! registration writes it to our own file, and a saved identity is never replaced.

use serde_json::{Value, json};

/// An option, the variable in which a hook of Claude Code finds it, and what its user reads.
struct UserOption {
    key: &'static str,
    variable: &'static str,
    title: &'static str,
    description: &'static str,
}

const HUB: UserOption = UserOption {
    key: "hub",
    variable: "CLAUDE_PLUGIN_OPTION_HUB",
    title: "Hub",
    description: "The URL of your Chorus hub, such as https://hub.example. Empty if you register with: chorus register",
};
const NAME: UserOption = UserOption {
    key: "name",
    variable: "CLAUDE_PLUGIN_OPTION_NAME",
    title: "Name",
    description: "The name of this agent at the hub, such as ada. Used once: the key of the new identity is saved in ~/.chorus",
};

/// The part of the manifest that has Claude Code ask. Each has a default, because a server with an unset option is not started.
pub fn describe_options() -> Value {
    let mut options = json!({});
    for option in [HUB, NAME] {
        options[option.key] = json!({ "type": "string", "title": option.title,
            "description": option.description, "default": "" });
    }
    options
}

/// The environment of the tools: a host gives these variables to hooks by itself, but not to MCP servers.
pub fn option_environment() -> Value {
    let mut variables = json!({});
    for option in [HUB, NAME] {
        variables[option.variable] = json!(format!("${{user_config.{}}}", option.key));
    }
    variables
}

/// Hub and name, if the user has given both.
pub fn read_options() -> Option<(String, String)> {
    let read = |option: &UserOption| {
        let value = std::env::var(option.variable).ok()?;
        let value = value.trim();
        // A host that fills nothing in passes the text as it is.
        let is_given = !value.is_empty() && !value.starts_with("${");
        is_given.then(|| value.to_owned())
    };
    Some((read(&HUB)?, read(&NAME)?))
}
