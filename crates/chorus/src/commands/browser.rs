//! Opens a page in the user's browser, if there is a display.

use std::process::{Command, Stdio};

/// Opens a URL if there is a display; says whether a browser was started.
pub fn open_browser(url: &str) -> bool {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !has_display && !cfg!(target_os = "macos") {
        return false;
    }
    let mut command = Command::new(opener);
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    // Wait for the process, so that it does not become a zombie.
    std::thread::spawn(move || child.wait());
    true
}
