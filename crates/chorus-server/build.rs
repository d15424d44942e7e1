//! Compresses the files of the console, which are embedded so: the program is smaller, and most clients get them as they are.

use flate2::{Compression, write::GzEncoder};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Below the folder of this crate.
const CONSOLE_FOLDER: &str = "../../console";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={CONSOLE_FOLDER}");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let mut files: Vec<PathBuf> = fs::read_dir(CONSOLE_FOLDER)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let compressed = out.join(format!("{name}.gz"));
        fs::write(&compressed, compress_file(file)?)?;
        writeln!(
            table,
            "    ({name:?}, include_bytes!({:?})),",
            compressed.display().to_string()
        )
        .map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    fs::write(out.join("console_files.rs"), table)
}

/// The same bytes each time: the header has neither a name nor a time.
fn compress_file(file: &Path) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(file)?)?;
    encoder.finish()
}
