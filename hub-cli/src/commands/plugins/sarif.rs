//! Findings as SARIF 2.1.0, for code hosts. Ten of its fields are needed, so the types of `serde-sarif` are not.

use serde_json::{Value, json};

use super::lint::Finding;

/// The document of one run.
pub fn document(findings: &[Finding]) -> Value {
    let rule = |id: &str, text: &str| json!({ "id": id, "shortDescription": { "text": text } });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "hub-cli plugins lint",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [
                    rule("metadata", "The metadata block of a plugin"),
                    rule("syntax", "The JavaScript of a plugin"),
                    rule("absent", "Functions of other environments"),
                    rule("connect", "fetch without @connect"),
                    rule("hooks", "The hooks of a plugin"),
                    rule("top-level", "The top level of a plugin"),
                ],
            } },
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let mut region = json!({ "startLine": finding.line });
    if let Some(column) = finding.column {
        region["startColumn"] = json!(column);
    }
    json!({
        "ruleId": finding.rule,
        "level": finding.severity,
        "message": { "text": finding.message },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": finding.file },
            "region": region,
        } }],
    })
}
