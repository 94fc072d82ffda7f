//! Native functions of the web's globals: URLs, encodings, base64, hashes, randomness. `web.js` has the classes.
//!
//! Strings arrive well-formed, and bytes as base64, since the memory of the engine cannot be read safely. What is returned
//! is allocated by the engine, within the memory of the run.

#![expect(clippy::needless_pass_by_value, reason = "the engine passes arguments by value")]

use std::cell::RefCell;

use encoding_rs::{CoderResult, Decoder, DecoderResult, Encoding};
use hmac::{Hmac, KeyInit as _, Mac as _};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng as _, SeedableRng as _},
};
use rquickjs::{Ctx, Function, Object, TypedArray, prelude::Opt};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use url::{Url, form_urlencoded, quirks};

type Bytes<'js> = TypedArray<'js, u8>;

/// Most random bytes of one call.
const MAX_RANDOM: usize = 65536;

/// Names of the hashes.
const HASHES: [&str; 4] = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];

/// Runs an expression with the hash of a name as `$hash`.
macro_rules! with_hash {
    ($name:expr, $hash:ident => $result:expr) => {
        match $name {
            "SHA-1" => {
                type $hash = Sha1;
                $result
            }
            "SHA-256" => {
                type $hash = Sha256;
                $result
            }
            "SHA-384" => {
                type $hash = Sha384;
                $result
            }
            _ => {
                type $hash = Sha512;
                $result
            }
        }
    };
}

/// The functions, for `install`; the randomness of the run comes from `seed`.
pub(super) fn natives<'js>(ctx: &Ctx<'js>, seed: [u8; 32]) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set("parseUrl", Function::new(ctx.clone(), parse_url)?)?;
    native.set("setUrl", Function::new(ctx.clone(), set_url)?)?;
    native.set("readQuery", Function::new(ctx.clone(), read_query)?)?;
    native.set("writeQuery", Function::new(ctx.clone(), write_query)?)?;
    native.set("encode", Function::new(ctx.clone(), encode)?)?;
    native.set("decoder", Function::new(ctx.clone(), decoder)?)?;
    native.set("fromBase64", Function::new(ctx.clone(), from_base64)?)?;
    native.set("toBase64", Function::new(ctx.clone(), to_base64)?)?;
    native.set("hashes", HASHES.to_vec())?;
    native.set("digest", Function::new(ctx.clone(), digest)?)?;
    native.set("sign", Function::new(ctx.clone(), sign)?)?;
    native.set("verify", Function::new(ctx.clone(), verify)?)?;
    let random = RefCell::new(ChaCha20Rng::from_seed(seed));
    let fill = move |ctx: Ctx<'js>, count: usize| {
        let mut bytes = vec![0; count.min(MAX_RANDOM)];
        random.borrow_mut().fill_bytes(&mut bytes);
        Bytes::new_copy(ctx, bytes)
    };
    native.set("random", Function::new(ctx.clone(), fill)?)?;
    Ok(native)
}

/// A URL as `web.js` keeps it: its text, then the parts in the order of its `PARTS`.
fn parts(url: &Url) -> Vec<String> {
    vec![
        quirks::href(url).to_owned(),
        quirks::origin(url),
        quirks::protocol(url).to_owned(),
        quirks::username(url).to_owned(),
        quirks::password(url).to_owned(),
        quirks::host(url).to_owned(),
        quirks::hostname(url).to_owned(),
        quirks::port(url).to_owned(),
        quirks::pathname(url).to_owned(),
        quirks::search(url).to_owned(),
        quirks::hash(url).to_owned(),
    ]
}

fn parse_url(text: String, base: Opt<Option<String>>) -> Option<Vec<String>> {
    let base = match base.0.flatten() {
        Some(base) => Some(Url::parse(&base).ok()?),
        None => None,
    };
    Url::options().base_url(base.as_ref()).parse(&text).ok().map(|url| parts(&url))
}

/// Sets one part; a value that is not possible changes nothing, as the standard has it.
fn set_url(href: String, part: String, value: String) -> Option<Vec<String>> {
    let mut url = Url::parse(&href).ok()?;
    match part.as_str() {
        "protocol" => drop(quirks::set_protocol(&mut url, &value)),
        "username" => drop(quirks::set_username(&mut url, &value)),
        "password" => drop(quirks::set_password(&mut url, &value)),
        "host" => drop(quirks::set_host(&mut url, &value)),
        "hostname" => drop(quirks::set_hostname(&mut url, &value)),
        "port" => drop(quirks::set_port(&mut url, &value)),
        "pathname" => quirks::set_pathname(&mut url, &value),
        "search" => quirks::set_search(&mut url, &value),
        _ => quirks::set_hash(&mut url, &value),
    }
    Some(parts(&url))
}

/// Names and values in turn.
fn read_query(query: String) -> Vec<String> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs.flat_map(|(name, value)| [name.into_owned(), value.into_owned()]).collect()
}

fn write_query(flat: Vec<String>) -> String {
    let (pairs, _) = flat.as_chunks::<2>();
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs.iter().map(|[a, b]| (a, b))).finish()
}

fn encode(ctx: Ctx<'_>, text: String) -> rquickjs::Result<Bytes<'_>> {
    Bytes::new_copy(ctx, text)
}

/// `encoding`, its name, and `decode`, a function of bytes and of whether more follow; it returns `undefined` for bytes
/// that are not valid. Nothing for a label of no encoding.
fn decoder(
    ctx: Ctx<'_>,
    label: String,
    fatal: bool,
    ignore_bom: bool,
) -> rquickjs::Result<Option<Object<'_>>> {
    let encoding = Encoding::for_label_no_replacement(label.as_bytes());
    let Some(encoding) = encoding else { return Ok(None) };
    let fresh = move || {
        if ignore_bom {
            encoding.new_decoder_without_bom_handling()
        } else {
            encoding.new_decoder_with_bom_removal()
        }
    };
    let state = RefCell::new(fresh());
    let decode = move |bytes: String, stream: bool| {
        let mut decoder = state.borrow_mut();
        let text = decoded(&mut decoder, &unpacked(&bytes), fatal, !stream);
        if !stream || text.is_none() {
            *decoder = fresh();
        }
        text
    };
    let made = Object::new(ctx.clone())?;
    made.set("encoding", encoding.name().to_ascii_lowercase())?;
    made.set("decode", Function::new(ctx, decode)?)?;
    Ok(Some(made))
}

fn decoded(decoder: &mut Decoder, mut bytes: &[u8], fatal: bool, last: bool) -> Option<String> {
    let mut text = String::new();
    loop {
        text.reserve(decoder.max_utf8_buffer_length(bytes.len())?);
        if fatal {
            let (result, read) = decoder.decode_to_string_without_replacement(bytes, &mut text, last);
            match result {
                DecoderResult::InputEmpty => return Some(text),
                DecoderResult::Malformed(..) => return None,
                DecoderResult::OutputFull => bytes = &bytes[read..],
            }
        } else {
            let (result, read, _) = decoder.decode_to_string(bytes, &mut text, last);
            match result {
                CoderResult::InputEmpty => return Some(text),
                CoderResult::OutputFull => bytes = &bytes[read..],
            }
        }
    }
}

/// One character for each byte.
fn from_base64(text: String) -> Option<String> {
    let bytes = data_url::forgiving_base64::decode_to_vec(text.as_bytes()).ok()?;
    Some(bytes.into_iter().map(char::from).collect())
}

fn to_base64(text: String) -> Option<String> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    Some(data_encoding::BASE64.encode(&bytes?))
}

fn digest(ctx: Ctx<'_>, hash: String, data: String) -> rquickjs::Result<Bytes<'_>> {
    let data = unpacked(&data);
    Bytes::new_copy(ctx, with_hash!(hash.as_str(), Hash => Hash::digest(data).to_vec()))
}

fn sign(ctx: Ctx<'_>, hash: String, key: String, data: String) -> rquickjs::Result<Bytes<'_>> {
    let (key, data) = (unpacked(&key), unpacked(&data));
    let mac = with_hash!(hash.as_str(), Hash => {
        let mac = Hmac::<Hash>::new_from_slice(&key).ok();
        mac.map(|mac| mac.chain_update(data).finalize().into_bytes().to_vec())
    });
    Bytes::new_copy(ctx, mac.unwrap_or_default())
}

fn verify(hash: String, key: String, signature: String, data: String) -> bool {
    let (key, signature, data) = (unpacked(&key), unpacked(&signature), unpacked(&data));
    with_hash!(hash.as_str(), Hash => {
        let mac = Hmac::<Hash>::new_from_slice(&key).ok();
        mac.is_some_and(|mac| mac.chain_update(data).verify_slice(&signature).is_ok())
    })
}

/// The engine made the base64.
fn unpacked(base64: &str) -> Vec<u8> {
    data_encoding::BASE64.decode(base64.as_bytes()).unwrap_or_default()
}
