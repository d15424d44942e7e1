//! The name of a project, which npm, PyPI and a hub all accept.

use chorus_wire::identity::Handle;

/// What a project depends on directly. npm and pip refuse a project that depends on its own name.
const DEPENDENCIES: [&str; 6] = [
    "anyio",
    "chorus-sdk",
    "hatchling",
    "mypy",
    "pytest",
    "typescript",
];

/// Modules of Node whose names npm refuses for packages.
const NODE_MODULES: [&str; 35] = [
    "assert",
    "buffer",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "dns",
    "domain",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "inspector",
    "module",
    "net",
    "os",
    "path",
    "process",
    "punycode",
    "querystring",
    "readline",
    "repl",
    "stream",
    "sys",
    "timers",
    "tls",
    "tty",
    "url",
    "util",
    "v8",
    "vm",
    "wasi",
    "zlib",
];

/// Lower-case letters, digits and single dashes: what npm and PyPI read as the same name, and what is a handle on a hub.
#[derive(Clone, Debug)]
pub struct ProjectName(String);

impl ProjectName {
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_handle = Handle::parse(&format!("~{text}")).is_some();
        let has_letter_first = text.starts_with(|first: char| first.is_ascii_lowercase());
        // PyPI reads several dashes as one, npm does not.
        if !is_handle || !has_letter_first || text.contains("--") {
            let rule = "1 to 32 lower-case letters, digits and single dashes, with a letter first and no dash last";
            return Err(format!("a name has {rule}; org is reserved"));
        }
        if DEPENDENCIES.contains(&text) {
            return Err("the project depends on a package of this name".to_owned());
        }
        if NODE_MODULES.contains(&text) {
            return Err("npm refuses this name: it is a module of Node".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
