//! Credit amounts: whole hundredths, parsed from their digits and printed with two decimals (R-64, failure 20).

use chorus_wire::credits::Credits;
use chorus_wire::market::transfer::{CreditIssue, CreditTransfer};
use chorus_wire::{ErrorCode, limits};
use proptest::prelude::*;

const REFUSED: [&str; 22] = [
    "0",
    "0.0",
    "0.00",
    "-1",
    "-0.10",
    "0.105",
    "0.100",
    "1.000",
    "1e2",
    "1E2",
    "1e-1",
    "0.1e1",
    "\"0.10\"",
    "\"1\"",
    "null",
    "true",
    "[1]",
    "{}",
    "1000000000.01",
    "99999999999999999999",
    "1e400",
    "0.001",
];

fn transfer(amount: &str) -> String {
    format!(r#"{{"transfer_id":"t-1","from_owner":"a","to_owner":"b","amount":{amount}}}"#)
}

#[test]
fn an_amount_that_is_not_whole_hundredths_above_zero_is_refused() {
    for amount in REFUSED {
        let results = [
            CreditTransfer::parse(transfer(amount).as_bytes()).map(drop),
            CreditIssue::parse(format!(r#"{{"amount":{amount}}}"#).as_bytes()).map(drop),
        ];
        for result in results {
            let error = result.expect_err(amount);
            assert_eq!(error.code, ErrorCode::Validation, "{amount}");
        }
    }
    // Not JSON numbers, so the body is not JSON.
    for amount in ["NaN", "Infinity", "+1", ".5", "1.", "01", "0x10", "1_000"] {
        assert!(
            CreditTransfer::parse(transfer(amount).as_bytes()).is_err(),
            "{amount}"
        );
    }
}

#[test]
fn a_valid_amount_is_parsed_to_the_hundredth() {
    for (amount, hundredths) in [
        ("0.01", 1),
        ("0.1", 10),
        ("0.10", 10),
        ("3", 300),
        ("1000000000", 100_000_000_000),
    ] {
        let parsed = CreditTransfer::parse(transfer(amount).as_bytes())
            .unwrap()
            .amount;
        assert_eq!(parsed, Credits::from_hundredths(hundredths), "{amount}");
    }
    assert_eq!(
        Credits::from_hundredths(limits::CREDITS_AMOUNT_MAX).to_string(),
        "1000000000.00"
    );
    assert!(Credits::parse_price("cost", "0.00").unwrap().is_zero());
    assert!(Credits::parse_price("cost", "-0.01").is_err());
}

#[test]
fn spellings_of_one_transfer_are_equal_and_two_transfers_are_not() {
    let canonical = |text: &str| {
        CreditTransfer::parse(text.as_bytes())
            .unwrap()
            .to_canonical_json()
    };
    let other_order =
        r#"{ "amount": 0.1, "to_owner": "b", "from_owner": "a", "transfer_id": "t-1" }"#;
    assert_eq!(canonical(&transfer("0.10")), canonical(other_order));
    assert_ne!(canonical(&transfer("0.10")), canonical(&transfer("0.11")));
}

proptest! {
    #[test]
    fn every_amount_parses_back_from_its_printed_form(hundredths in 1..=limits::CREDITS_AMOUNT_MAX) {
        let amount = Credits::from_hundredths(hundredths);
        prop_assert_eq!(Credits::parse("amount", &amount.to_string()).unwrap(), amount);
        let json = serde_json::to_string(&amount).unwrap();
        prop_assert_eq!(serde_json::from_str::<Credits>(&json).unwrap(), amount);
        prop_assert_eq!(CreditTransfer::parse(transfer(&json).as_bytes()).unwrap().amount, amount);
    }

    #[test]
    fn no_text_is_parsed_as_another_value(text in "[-+]?[0-9]{0,14}(\\.[0-9]{0,4})?([eE][0-9]{1,2})?") {
        if let Ok(amount) = Credits::parse("amount", &text) {
            let value: f64 = text.parse().unwrap();
            prop_assert!((amount.to_hundredths() as f64 - value * 100.0).abs() < 1e-3, "{text} became {amount}");
        }
    }
}
