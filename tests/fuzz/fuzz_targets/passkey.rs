#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hub_fuzz::passkeys::passkey(data));
