//! Showing a page to whoever sits at this machine, if somebody does.

use std::process::{Command, Stdio};

/// Opens it where there is a display. That it cannot is no failure: the address has been printed.
pub fn open_browser(url: &str) {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|it| !it.is_empty()));
    if !has_display && !cfg!(target_os = "macos") {
        return;
    }
    let mut command = Command::new(opener);
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // Waited for, so that it does not stay behind as a process that nobody buries.
        std::thread::spawn(move || child.wait());
    }
}
