//! `plugins lint --fix`: fixes that need no decision.

use std::path::Path;

use hub_core::plugins::Manifest;

/// Default name of a plugin.
const DEFAULT_NAME: &str = "plugin";

/// The source with an added metadata block, or an added name in its block. `None` when it has both, or when its block
/// has other errors.
pub fn completed(file: &str, source: &str) -> Option<String> {
    let manifest = Manifest::inspect(source).ok()?;
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name =
        stem.filter(|stem| (1..=64).contains(&stem.chars().count())).unwrap_or(DEFAULT_NAME.to_owned());
    match manifest.dialect {
        None => {
            let block = format!(
                "// ==UserScript==\n// @name         {name}\n// @version      0.1.0\n// @match        *\n\
                 // @grant        none\n// ==/UserScript==\n\n"
            );
            let source = source.trim_start_matches('\u{feff}');
            // Which is one only at the start of the file.
            let interpreter =
                if source.starts_with("#!") { source.find('\n').map_or(0, |end| end + 1) } else { 0 };
            let (first, rest) = source.split_at(interpreter);
            Some(format!("{first}{block}{rest}"))
        }
        Some(dialect) if manifest.name.is_none() => {
            let edge = format!("=={}==", dialect.as_str());
            let begun = source.find(&edge)? + edge.len();
            let end = begun + source[begun..].find('\n')? + 1;
            Some(format!("{}// @name         {name}\n{}", &source[..end], &source[end..]))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lint_fix_adds_only_a_metadata_block_or_a_name() {
        let code = "function onRequest(ctx) { ctx.skip(); }\n";
        let mended_once = completed("a/tagger.js", code).unwrap();
        assert!(mended_once.ends_with(code));
        let manifest = Manifest::parse(&mended_once).unwrap();
        assert_eq!((manifest.name.as_deref(), manifest.version.as_deref()), (Some("tagger"), Some("0.1.0")));
        assert_eq!(completed("a/tagger.js", &mended_once), None);
        let program = completed("a.js", "#!/usr/bin/env node\nfunction onRequest() {}\n").unwrap();
        assert!(program.starts_with("#!/usr/bin/env node\n// ==UserScript==\n"), "{program}");
        let nameless =
            format!("// mine\n// ==WebhookPlugin==\r\n// @timeout 2\n// ==/WebhookPlugin==\n{code}");
        let named = completed("bridge.js", &nameless).unwrap();
        let manifest = Manifest::parse(&named).unwrap();
        assert_eq!((manifest.name.as_deref(), manifest.timeout.as_millis()), (Some("bridge"), 2000));
        assert_eq!(named.len(), nameless.len() + "// @name         bridge\n".len());
        assert_eq!(completed("x.js", "// ==UserScript==\n// @timeout soon\n// ==/UserScript==\n"), None);
    }
}
