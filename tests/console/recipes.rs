//! The recipes with which receivers verify signatures, run as people would run them. Node, Python and a shell are on
//! every machine that runs these tests; Rust is compiled here. Go and PHP are read for the header alone.

use std::{path::Path, process::Stdio};

use http::HeaderMap;
use hub_core::{
    delivery::signing::{self, Method, Signing},
    secret::Secret,
    time::Timestamp,
};
use tokio::process::Command;

mod rust {
    include!("../../hub-server/src/console/recipes/rust.txt");
}

const SECRET: &str = "a-secret-of-some-length";
const BODY: &str = "{\"type\":\"message\",\"content\":\"订单 42\"}";

fn source(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub-server/src/console/recipes");
    std::fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap()
}

/// The headers with which the hub sends this body.
fn signed(body: &str) -> HeaderMap {
    signing::headers(&Signing {
        method: &Method::Hmac,
        secret: Some(&Secret::from(SECRET).into()),
        previous: None,
        id: "dlv_1",
        at: Timestamp::from_millis(1_790_000_000_000),
        attempt: 1,
        body: body.as_bytes(),
    })
    .unwrap()
}

/// Whether a program verifies this signature of the body: its last line is `true`, or `verified`.
async fn verifies(program: &str, args: &[&str], signature: &str, folder: &Path) -> bool {
    let ran = Command::new(program)
        .args(args)
        .current_dir(folder)
        .env("WEBHOOK_SECRET", SECRET)
        .env("SIGNATURE", signature)
        .env("BODY", "body.json")
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let out = String::from_utf8_lossy(&ran.stdout).trim().to_lowercase();
    assert!(["true", "verified", "false", "refused"].contains(&&*out), "{program}: {ran:?}");
    ["true", "verified"].contains(&&*out)
}

#[tokio::test]
async fn each_recipe_verifies_what_the_hub_signs_and_refuses_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("body.json", BODY);
    write("verify.mjs", &source("node"));
    write("verify.py", &source("python"));
    write("verify.sh", &source("shell"));
    write(
        "run.mjs",
        "import { readFileSync } from 'node:fs';\nimport { verify } from './verify.mjs';\n\
         const headers = process.env.SIGNATURE ? { 'x-signature': process.env.SIGNATURE } : {};\n\
         console.log(verify(headers, readFileSync('body.json')));\n",
    );
    write(
        "run.py",
        "import os\nfrom verify import verify\nfrom email.message import Message\nheaders = Message()\n\
         headers['x-signature'] = os.environ['SIGNATURE']\nprint(verify(headers, open('body.json', 'rb').read()))\n",
    );
    let genuine = signed(BODY);
    let other = signed("another body");
    let text = |headers: &HeaderMap| headers["x-signature"].to_str().unwrap().to_owned();
    let upper = text(&genuine).to_uppercase();
    for (signature, expected) in
        [(text(&genuine), true), (text(&other), false), (String::new(), false), (upper, false)]
    {
        for (program, file) in [("node", "run.mjs"), ("python3", "run.py"), ("sh", "verify.sh")] {
            let found = verifies(program, &[file], &signature, folder.path()).await;
            assert_eq!(found, expected, "{program} with {signature}");
        }
    }
    assert!(rust::verify(SECRET, &genuine, BODY.as_bytes()));
    assert!(!rust::verify(SECRET, &other, BODY.as_bytes()));
    assert!(!rust::verify("another-secret", &genuine, BODY.as_bytes()));
    assert!(!rust::verify(SECRET, &HeaderMap::new(), BODY.as_bytes()));
}

#[test]
fn every_recipe_reads_the_header_that_the_hub_sends() {
    assert!(signed(BODY).contains_key("x-signature"));
    for name in ["rust", "node", "python", "go", "php", "shell"] {
        let source = source(name);
        assert!(source.contains("X-Signature") && source.contains("WEBHOOK_SECRET"), "{name}");
        assert!(source.contains("sha256="), "{name}");
    }
}
