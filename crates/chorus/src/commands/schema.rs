//! `chorus openapi` and `chorus schema`: the hub's contract, without a hub.

use crate::fail::Fail;
use chorus_server::schemas;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The object, such as envelope or agent-card; all names without it
    name: Option<String>,
}

pub fn print_openapi() -> Result<(), Fail> {
    println!("{:#}", chorus_server::openapi_document());
    Ok(())
}

pub fn run(args: &Args) -> Result<(), Fail> {
    let document = chorus_server::openapi_document();
    match &args.name {
        None => schemas::list_names(&document)
            .iter()
            .for_each(|name| println!("{name}")),
        Some(name) => {
            let schema = schemas::find_schema(&document, name, "").ok_or_else(|| {
                Fail::usage_error(format!(
                    "there is no schema {name}; `chorus schema` lists them"
                ))
            })?;
            println!("{schema:#}");
        }
    }
    Ok(())
}
