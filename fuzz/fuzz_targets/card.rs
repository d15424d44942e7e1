//! An accepted agent card is accepted again in its printed form, with the same languages.

#![no_main]

use chorus_wire::{agent_card::AgentCard, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(value) = json::parse_value(text) else {
        return;
    };
    if let Ok(card) = AgentCard::from_value(value) {
        let printed = json::parse_value(&card.to_json()).expect("printed JSON parses");
        let again = AgentCard::from_value(printed).expect("a printed card is accepted");
        assert_eq!(again.supported_languages(), card.supported_languages());
        assert_eq!(again, card);
    }
});
