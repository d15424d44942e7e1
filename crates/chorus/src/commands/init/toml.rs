//! Our entry in Codex's configuration, with everything around it as it was.

use super::plan::wrong;
use super::program::{SERVER, Us, our_server};
use crate::fail::Fail;
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Table, value};

const SERVERS: &str = "mcp_servers";

pub struct Config<'a> {
    path: &'a Path,
    document: DocumentMut,
}

impl<'a> Config<'a> {
    pub fn parse(path: &'a Path, text: Option<&str>) -> Result<Self, Fail> {
        let broken = |e: toml_edit::TomlError| {
            let first = e.message().to_owned();
            wrong(
                path,
                format!("is not valid TOML ({first}); mend it first, nothing was changed"),
            )
        };
        let document = text.unwrap_or_default().parse().map_err(broken)?;
        Ok(Self { path, document })
    }

    pub fn text(&self) -> String {
        self.document.to_string()
    }

    fn entry(&self) -> Option<&Item> {
        self.document.get(SERVERS)?.get(SERVER)
    }

    pub fn has_server(&self) -> bool {
        self.entry().is_some_and(is_ours)
    }

    pub fn add_server(&mut self, us: &Us) -> Result<(), Fail> {
        let (ours, there) = (self.has_server(), self.entry().is_some());
        let servers = self.document.entry(SERVERS).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let odd = || {
            wrong(
                self.path,
                format!("\"{SERVERS}\" is not a table; nothing was changed"),
            )
        };
        let servers = servers.as_table_like_mut().ok_or_else(odd)?;
        if there && !ours {
            let why = format!(
                "already has a server \"{SERVER}\" that is not ours; rename it first, nothing was changed"
            );
            return Err(wrong(self.path, why));
        }
        if let Some(entry) = servers.get_mut(SERVER) {
            if entry["command"].as_str() != Some(&us.program) {
                entry["command"] = value(&us.program);
            }
            if us.credentials.is_some() {
                entry["args"] = value(Array::from_iter(us.args()));
            }
            return Ok(());
        }
        let mut entry = Table::new();
        entry.insert("command", value(&us.program));
        entry.insert("args", value(Array::from_iter(us.args())));
        servers.insert(SERVER, Item::Table(entry));
        Ok(())
    }

    pub fn remove_server(&mut self) {
        if !self.has_server() {
            return;
        }
        let Some(servers) = self
            .document
            .get_mut(SERVERS)
            .and_then(Item::as_table_like_mut)
        else {
            return;
        };
        servers.remove(SERVER);
        if servers.is_empty() {
            self.document.remove(SERVERS);
        }
    }
}

fn is_ours(entry: &Item) -> bool {
    let command = entry
        .get("command")
        .and_then(Item::as_str)
        .unwrap_or_default();
    let args = entry.get("args").and_then(Item::as_array);
    let args: Vec<&str> = args
        .map(|args| args.iter().filter_map(|arg| arg.as_str()).collect())
        .unwrap_or_default();
    our_server(&serde_json::json!({ "command": command, "args": args }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVED_IN: &str = "# mine\nmodel = \"big\"   # the big one\n\n[mcp_servers.other]\ncommand = \"other\"\n\n[z]\nb = 1\na = 2\n";

    fn us(program: &str) -> Us {
        Us {
            program: program.into(),
            credentials: None,
            for_others: false,
        }
    }

    fn edited(text: &str, edit: impl Fn(&mut Config<'_>)) -> String {
        let mut config = Config::parse(Path::new("config.toml"), Some(text)).unwrap();
        edit(&mut config);
        config.text()
    }

    #[test]
    fn an_entry_comes_and_goes_and_the_rest_stays() {
        for before in [LIVED_IN, "", "model = \"x\"\n"] {
            let with = edited(before, |config| config.add_server(&us("chorus")).unwrap());
            assert!(
                with.contains("[mcp_servers.chorus]\ncommand = \"chorus\"\nargs = [\"mcp\"]"),
                "{with}"
            );
            assert_eq!(
                edited(&with, |config| config.add_server(&us("chorus")).unwrap()),
                with
            );
            assert_eq!(edited(&with, |config| config.remove_server()), before);
            let moved = edited(&with, |config| {
                config.add_server(&us("/opt/chorus")).unwrap()
            });
            assert_eq!(
                moved,
                with.replace("command = \"chorus\"", "command = \"/opt/chorus\"")
            );
        }
    }

    #[test]
    fn what_is_not_ours_or_not_understood_is_not_touched() {
        let theirs = "[mcp_servers.chorus]\nurl = \"https://choir.example/mcp\"\n";
        let mut config = Config::parse(Path::new("config.toml"), Some(theirs)).unwrap();
        assert!(config.add_server(&us("chorus")).is_err());
        config.remove_server();
        assert_eq!(config.text(), theirs);
        assert!(Config::parse(Path::new("config.toml"), Some("a = = b")).is_err());
        let mut odd = Config::parse(Path::new("config.toml"), Some("mcp_servers = 3\n")).unwrap();
        assert!(odd.add_server(&us("chorus")).is_err());
    }
}
