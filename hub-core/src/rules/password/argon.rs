//! argon2id as stored hashes name it (PHC strings), in memory that goes back to the system at once.

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::phc::{Output, ParamsString, PasswordHash, Salt},
};

use crate::{
    error::{Error, Result},
    password::Verdict,
    secret::Secret,
};

/// Room of this many blocks of 1 KiB is asked for, however few are touched: glibc takes what is larger than 32 MiB
/// from the system and gives it back when it is freed. Of smaller pieces it keeps several for each thread, once
/// one was freed: sign-ins of one second then cost 150 MiB until the process ends.
const ROOM: usize = 33 * 1024;

/// 19 MiB, two passes, one lane.
fn today() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
}

/// The hash of a new password, as a PHC string.
pub(super) fn hash(password: &Secret, salt: &[u8]) -> Result<Secret> {
    let (argon2, salt) = (today(), Salt::new(salt).map_err(Error::internal)?);
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(argon2.params()).map_err(Error::internal)?,
        salt: Some(salt),
        hash: Some(compute(&argon2, password, &salt)?),
    };
    Ok(Secret::new(hash.to_string()))
}

/// Compares a password with a hash, with the parameters of the hash. A weaker one than today's is computed again with
/// this salt.
pub(super) fn verify(password: &Secret, stored: &Secret, salt: &[u8]) -> Result<Verdict> {
    let stored = PasswordHash::new(stored.expose()).map_err(Error::internal)?;
    let algorithm = Algorithm::try_from(stored.algorithm.as_str()).map_err(Error::internal)?;
    let version =
        stored.version.map_or(Ok(Version::default()), Version::try_from).map_err(Error::internal)?;
    let params = Params::try_from(&stored).map_err(Error::internal)?;
    let current = algorithm == Algorithm::Argon2id
        && version == Version::V0x13
        && params.m_cost() >= Params::DEFAULT_M_COST
        && params.t_cost() >= Params::DEFAULT_T_COST;
    let (Some(own_salt), Some(expected)) = (&stored.salt, &stored.hash) else { return Ok(Verdict::Wrong) };
    // Takes the same time whichever byte differs.
    if compute(&Argon2::new(algorithm, version, params), password, own_salt)? != *expected {
        return Ok(Verdict::Wrong);
    }
    if current { Ok(Verdict::Right) } else { hash(password, salt).map(Verdict::Outdated) }
}

fn compute(argon2: &Argon2<'_>, password: &Secret, salt: &[u8]) -> Result<Output> {
    let params = argon2.params();
    let mut output = [0; Output::MAX_LENGTH];
    let output = &mut output[..params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN)];
    let mut memory = Vec::with_capacity(params.block_count().max(ROOM));
    memory.resize(params.block_count(), Block::default());
    argon2
        .hash_password_into_with_memory(password.expose().as_bytes(), salt, output, memory)
        .map_err(Error::internal)?;
    Output::new(output).map_err(Error::internal)
}
