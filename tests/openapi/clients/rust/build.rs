//! Makes the client of the committed document.

use std::{env, error::Error, fs, path::Path};

use openapiv3::OpenAPI;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../openapi/hub.plain.json");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={DOCUMENT}");
    let document: OpenAPI = serde_json::from_str(&fs::read_to_string(DOCUMENT)?)?;
    let client = progenitor::Generator::default().generate_tokens(&document)?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("client.rs"), client.to_string())?;
    Ok(())
}
