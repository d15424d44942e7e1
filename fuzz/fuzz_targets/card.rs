//! A card that is accepted is accepted again as it is printed, and its tags are texts.

#![no_main]

use chorus_wire::{card::Card, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(value) = json::value(text) else { return };
    if let Ok(card) = Card::check(value) {
        let printed = json::value(&card.to_json()).expect("what was printed");
        let again = Card::check(printed).expect("what was printed");
        assert_eq!(again.languages(), card.languages());
        assert_eq!(again, card);
    }
});
