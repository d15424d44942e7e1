//! A scope that is accepted prints to the one form that reads back as itself.

#![no_main]

use chorus_wire::frame::Scope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(scope) = Scope::parse(text) {
        let printed = scope.to_string();
        assert_eq!(Scope::parse(&printed).expect("what was printed"), scope);
        assert_eq!(
            printed.parse::<Scope>().expect("what was printed").to_string(),
            printed
        );
        assert!(printed.contains(scope.names().as_str()));
    }
});
