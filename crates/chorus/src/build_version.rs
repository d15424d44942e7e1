//! What `chorus --version` says: the version, the commit and the target of the program (REL-07).

use std::sync::LazyLock;

/// The commit that a release was built from. `packaging/build` sets it; a build from a working copy has none.
const COMMIT: Option<&str> = option_env!("CHORUS_COMMIT");

/// The version, then in parentheses the commit, where it is known, and the target.
pub fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = COMMIT.map(|commit| format!("{commit}, "));
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "{version} ({}{})",
            commit.unwrap_or_default(),
            target_name()
        )
    });
    &TEXT
}

/// The name that packages have for the target.
fn target_name() -> String {
    let arch = std::env::consts::ARCH;
    match std::env::consts::OS {
        "macos" => format!("{arch}-apple-darwin"),
        "linux" if cfg!(target_env = "musl") => format!("{arch}-unknown-linux-musl"),
        "linux" => format!("{arch}-unknown-linux-gnu"),
        os => format!("{arch}-{os}"),
    }
}
