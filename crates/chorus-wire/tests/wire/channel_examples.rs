//! The examples of the channel document: deliveries, connection strings and callbacks, accepted as printed.

use crate::examples::{assert_prints_like, example, request};
use chorus_wire::channel::callback_event::CallbackPost;
use chorus_wire::channel::channels::{InvitedMember, NewChannelMember, SenderKind};
use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::channel::history_row::ChannelRow;
use chorus_wire::json;

// CHN-05…17, CHN-40: the full delivery, the minimal one, and the one that the document explains
#[test]
fn the_printed_deliveries_are_parsed_and_printed_alike() {
    for (name, has_tools) in [
        ("channel-protocol/2-delivery.json", true),
        ("channel-protocol/6-full.json", true),
        ("channel-protocol/6-minimal.json", false),
    ] {
        let text = example(name);
        let delivery = ChannelDelivery::parse(text.as_bytes())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(delivery.mcp.is_some(), has_tools, "{name}");
        assert_prints_like(&delivery, name);
        let ours = serde_json::to_string(&delivery).unwrap();
        assert_eq!(
            json::parse_value(&ours).unwrap(),
            json::parse_value(&text).unwrap(),
            "{name}"
        );
    }
}

// CHN-01
#[test]
fn the_printed_connection_string_invites_an_agent() {
    let url = example("channel-protocol/1-connection.txt");
    let body = serde_json::json!({"connection": url.trim(), "name": "timber"}).to_string();
    let InvitedMember::Connection { url: parsed, .. } =
        NewChannelMember::parse(body.as_bytes()).unwrap().invitee
    else {
        panic!("{body}")
    };
    assert_eq!(parsed.expose(), url.trim());
}

// CHN-23…28
#[test]
fn the_printed_callbacks_are_parsed() {
    let (method, path, callback) = request("channel-protocol/6-minimal-callback.http");
    let minimal =
        ChannelDelivery::parse(example("channel-protocol/6-minimal.json").as_bytes()).unwrap();
    assert_eq!(
        (method.as_str(), path.as_str()),
        ("POST", minimal.callback.expose())
    );
    let mut posts = vec![("6-minimal-callback.http", callback)];
    for name in [
        "channel-protocol/3-message.json",
        "channel-protocol/3-tool-call.json",
        "channel-protocol/3-tool-result.json",
        "channel-protocol/3-status.json",
        "channel-protocol/3-error.json",
        "channel-protocol/6-full-status.json",
        "channel-protocol/6-full-message.json",
    ] {
        posts.push((name, example(name)));
    }
    for (name, text) in posts {
        let callback =
            CallbackPost::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let row = ChannelRow::from_event(callback.event, "timber", SenderKind::Agent);
        let row = serde_json::to_value(&row).unwrap();
        let printed = json::parse_value(&text).unwrap();
        for (key, value) in printed.as_object().unwrap() {
            assert_eq!(&row[key], value, "{name}: {key}");
        }
    }
}
