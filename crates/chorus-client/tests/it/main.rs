//! The client seen from outside: its files, its streams, its retries, its direct exchange.

mod direct;
mod files;
mod scripted;
mod send;
mod stream;
