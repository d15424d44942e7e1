//! The doors: HTTP, streams, the contract and the pages. No rules and no SQL.

pub mod settings;

pub use settings::Settings;
