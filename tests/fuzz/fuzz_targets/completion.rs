#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hub_fuzz::completions::completion(data));
