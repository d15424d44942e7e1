//! `chorus openapi` and `chorus schema`: the hub's contract, without a hub.

use crate::fail::Fail;
use chorus_server::schemas::{find_schema, list_names};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The object, such as envelope or agent-card; all names without it
    name: Option<String>,
}

pub fn print_openapi() -> Result<(), Fail> {
    let document = chorus_server::openapi_document("http://127.0.0.1:3000");
    println!("{}", String::from_utf8_lossy(&document));
    Ok(())
}

pub fn run(args: &Args) -> Result<(), Fail> {
    let schemas = chorus_server::published_schemas();
    match &args.name {
        None => list_names(&schemas)
            .iter()
            .for_each(|name| println!("{name}")),
        Some(name) => {
            let schema = find_schema(&schemas, name, "").ok_or_else(|| {
                Fail::usage_error(format!(
                    "there is no schema {name}; `chorus schema` lists them"
                ))
            })?;
            println!("{schema:#}");
        }
    }
    Ok(())
}
