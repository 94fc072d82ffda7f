//! Pure functions: filters, passwords, QR codes, redaction and signatures.

pub mod filter;
pub mod password;
pub mod qr;
pub mod redact;
pub mod signing;
