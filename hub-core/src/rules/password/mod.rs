//! Password rules, and hashing with bounded concurrency.

mod argon;

use std::{
    collections::HashSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use tokio::sync::{Semaphore, oneshot};

use crate::{
    error::{Error, ErrorCode, Problems, Result},
    random::Random,
    secret::Secret,
};

/// Shortest and longest password, in characters.
const LENGTH: std::ops::RangeInclusive<usize> = 8..=256;
/// Maximum number of hashes that wait.
const WAITING: usize = 64;

/// Passwords that can be found within this many guesses, likeliest first, are rejected. That covers the ten thousand
/// most common ones with their usual changes, rows of keys, sequences, and the names of the product and the user.
const FIRST_GUESSES: u64 = 10_000;
/// Maximum length in characters for the estimate of guesses, whose time grows faster than the length.
const MAX_EXAMINED: usize = 20;
/// Minimum number of different characters in a longer password.
const DIFFERENT: usize = 4;
/// Common guesses in addition to the username.
const PRODUCT: [&str; 3] = ["hub", "messagehub", "message-hub"];
/// Common passwords that the estimate does not know: "I love you for ever" in Chinese, by sound.
const OTHERS: [&str; 4] = ["woaini1314", "woaini520", "woaini521", "5201314520"];

/// Reports what is wrong with a new password. `username` is the first guess.
pub(crate) fn check(problems: &mut Problems, password: &Secret, username: &str) {
    check_as(problems, "password", password, username);
}

/// As [`check`], for a field of another name.
pub(crate) fn check_as(problems: &mut Problems, field: &'static str, password: &Secret, username: &str) {
    let text = password.expose();
    let length = text.chars().take(LENGTH.end() + 1).count();
    if !LENGTH.contains(&length) {
        problems.add(field, "must be 8 to 256 characters");
        return;
    }
    if text.to_lowercase() == username.to_lowercase() {
        problems.add(field, "must not be the username");
    } else if is_guessed_first(text, username) {
        problems.add(field, "is too easy to guess");
    }
}

/// Minimum length of a username that is searched in a password: shorter ones are part of many words.
const MIN_USERNAME: usize = 3;
/// Minimum number of characters that a password contains in addition to the username.
const MIN_BESIDES_USERNAME: usize = 4;

fn is_guessed_first(password: &str, username: &str) -> bool {
    is_common(password, username) || is_the_name_and_little_else(password, username)
}

/// Whether a password is the username with too few or too common other characters. The estimate of guesses does not
/// reject these: for a sequence it starts above [`FIRST_GUESSES`], however likely the parts are.
fn is_the_name_and_little_else(password: &str, username: &str) -> bool {
    let (password, username) = (password.to_lowercase(), username.to_lowercase());
    if username.chars().count() < MIN_USERNAME || !password.contains(&username) {
        return false;
    }
    let rest = password.replace(&username, "");
    let rest = rest.trim_matches(|c: char| !c.is_alphanumeric());
    rest.chars().count() < MIN_BESIDES_USERNAME || is_common(rest, &username)
}

fn is_common(password: &str, username: &str) -> bool {
    if password.chars().nth(MAX_EXAMINED).is_some() {
        return password.chars().collect::<HashSet<char>>().len() < DIFFERENT;
    }
    let [product, spoken, written] = PRODUCT;
    OTHERS.contains(&password)
        || zxcvbn::zxcvbn(password, &[username, product, spoken, written]).guesses() <= FIRST_GUESSES
}

type Job = Box<dyn FnOnce() + Send>;

/// Computes argon2id hashes off the asynchronous threads, a few at a time. Each takes 19 MiB; when all threads and
/// the queue are busy, further calls get `RATE_LIMITED`. Cheap to clone.
///
/// It uses dedicated threads, so that only these few retain the memory that an allocator keeps per thread.
#[derive(Clone)]
pub struct PasswordHasher {
    /// One permit per hash that runs or waits.
    room: Arc<Semaphore>,
    /// One permit per hash that runs.
    slots: Arc<Semaphore>,
    /// Sender to the threads, which end with the last sender.
    jobs: SyncSender<Job>,
    /// Number of computed hashes.
    computed: Arc<AtomicU64>,
    random: Random,
}

/// Result of a comparison.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The password is wrong, or no hash is stored.
    Wrong,
    /// The password is right.
    Right,
    /// The password is right, but hashed with weaker parameters than the current ones; contains a new hash.
    Outdated(Secret),
}

impl PasswordHasher {
    /// Creates a hasher that computes at most `at_once` hashes at a time.
    pub fn new(at_once: usize, random: Random) -> Self {
        let at_once = at_once.max(1);
        // Never full: a job is sent with a slot.
        let (jobs, queue) = sync_channel(at_once);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..at_once {
            let queue = Arc::clone(&queue);
            thread::spawn(move || work(&queue));
        }
        Self {
            room: Arc::new(Semaphore::new(at_once + WAITING)),
            slots: Arc::new(Semaphore::new(at_once)),
            jobs,
            computed: Arc::default(),
            random,
        }
    }

    /// Hashes a new password. Returns a PHC string.
    ///
    /// # Errors
    /// `RATE_LIMITED` when too many wait.
    pub(crate) async fn hash(&self, password: Secret) -> Result<Secret> {
        let salt: [u8; 16] = self.random.bytes();
        self.run(move || argon::hash(&password, &salt)).await?
    }

    /// Compares a password with a stored hash. Without a hash it takes as long and returns [`Verdict::Wrong`].
    ///
    /// # Errors
    /// `RATE_LIMITED` when too many wait.
    pub(crate) async fn verify(&self, password: Secret, stored: Option<Secret>) -> Result<Verdict> {
        let salt: [u8; 16] = self.random.bytes();
        self.run(move || verify_now(&password, stored.as_ref(), &salt)).await?
    }

    /// Returns the number of passwords that were hashed or compared so far, as a measure of the load of sign-ins.
    pub fn computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    /// Runs a computation with a slot. The slot is held until the computation ends, also when the caller is gone
    /// before.
    async fn run<T: Send + 'static>(&self, compute: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| {
            Error::new(ErrorCode::RateLimited, "too many people sign in at the moment")
                .with_retry_after(Duration::from_secs(1))
        })?;
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(Error::internal)?;
        self.computed.fetch_add(1, Ordering::Relaxed);
        let (answer, result) = oneshot::channel();
        let job = move || {
            let _held = (room, slot);
            // The caller may be gone.
            let _ = answer.send(compute());
        };
        // Without threads there is no response.
        let _ = self.jobs.send(Box::new(job));
        result.await.map_err(Error::internal)
    }
}

/// Runs one job after another. A panic drops the job's response, and the next job runs.
fn work(queue: &Mutex<Receiver<Job>>) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(job) = next() {
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

impl fmt::Debug for PasswordHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordHasher")
            .field("free", &self.slots.available_permits())
            .finish_non_exhaustive()
    }
}

/// Without a stored hash it takes as long.
fn verify_now(password: &Secret, stored: Option<&Secret>, salt: &[u8]) -> Result<Verdict> {
    match stored {
        Some(stored) => argon::verify(password, stored, salt),
        None => argon::hash(password, salt).map(|_| Verdict::Wrong),
    }
}

#[cfg(test)]
mod tests {
    use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, Version};

    use super::*;

    fn problem(password: &str) -> Option<String> {
        let mut problems = Problems::default();
        check(&mut problems, &password.into(), "alice-in-chains");
        problems.finish().err().map(|error| error.details()[0].reason.to_string())
    }

    #[test]
    fn passwords_are_long_enough_and_not_the_first_guess() {
        for good in [
            "tr0mb0ng",
            "alice-in-chains plays tr0mb0ng",
            "八个字的密码也可以",
            "correct horse battery staple",
            "a\0bcdefgh",
            &"abcd".repeat(64),
        ] {
            assert_eq!(problem(good), None, "{good:?}");
        }
        for (bad, why) in [
            ("", "must be 8 to 256 characters"),
            ("tr0mb0n", "must be 8 to 256 characters"),
            (&"abcd".repeat(65), "must be 8 to 256 characters"),
            ("Alice-In-Chains", "must not be the username"),
            ("Password1", "is too easy to guess"),
            ("88888888", "is too easy to guess"),
            ("p@ssw0rd", "is too easy to guess"),
            ("1q2w3e4r", "is too easy to guess"),
            ("woaini1314", "is too easy to guess"),
            ("abcdefgh", "is too easy to guess"),
            ("MessageHub", "is too easy to guess"),
            ("alice-in-chains-alice-in-chains", "is too easy to guess"),
            ("Alice-In-Chains123", "is too easy to guess"),
            ("12345Alice-In-Chains", "is too easy to guess"),
            ("password-alice-in-chains", "is too easy to guess"),
            ("sniahc-ni-ecila", "is too easy to guess"),
            (&"ab".repeat(128), "is too easy to guess"),
        ] {
            assert_eq!(problem(bad).as_deref(), Some(why), "{bad:?}");
        }
    }

    #[test]
    fn a_password_is_more_than_its_username() {
        let is_refused = |password: &str, username: &str| {
            let mut problems = Problems::default();
            check(&mut problems, &password.into(), username);
            problems.finish().is_err()
        };
        for (password, username) in
            [("weak1-weak1", "weak1"), ("WEAK1weak1", "weak1"), ("ada12345", "ada"), ("bob-bob-bob!", "bob")]
        {
            assert!(is_refused(password, username), "{password}");
        }
        for (password, username) in
            [("adamant trombones", "ada"), ("bobsled tournament", "bob"), ("al-tr0mb0ng", "al")]
        {
            assert!(!is_refused(password, username), "{password}");
        }
    }

    #[tokio::test]
    async fn hashes_are_argon2id_and_compare_every_byte() {
        let hasher = PasswordHasher::new(1, Random::seeded(1));
        let long = format!("{}a", "x".repeat(72));
        let hash = hasher.hash(long.as_str().into()).await.unwrap();
        assert!(hash.expose().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.expose());
        let verdict = |password: &str| hasher.verify(password.into(), Some(hash.clone()));
        assert!(matches!(verdict(&long).await.unwrap(), Verdict::Right));
        assert!(matches!(verdict(&format!("{}b", "x".repeat(72))).await.unwrap(), Verdict::Wrong));
        let none = hasher.verify(long.as_str().into(), None).await.unwrap();
        assert!(matches!(none, Verdict::Wrong));
    }

    #[tokio::test]
    async fn weaker_hashes_are_replaced() {
        let weak =
            Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8 * 1024, 1, 1, None).unwrap());
        let weak = weak.hash_password_with_salt(b"tr0mbone", &[1; 16]).unwrap().to_string();
        let hasher = PasswordHasher::new(1, Random::seeded(2));
        let Verdict::Outdated(fresh) = hasher.verify("tr0mbone".into(), Some(weak.into())).await.unwrap()
        else {
            panic!("a hash of 8 MiB is outdated");
        };
        assert!(matches!(hasher.verify("tr0mbone".into(), Some(fresh)).await.unwrap(), Verdict::Right));
    }

    #[tokio::test]
    async fn a_full_queue_of_hashes_responds_with_a_retry_time() {
        let hasher = PasswordHasher::new(1, Random::seeded(3));
        let _running = Arc::clone(&hasher.slots).acquire_owned().await.unwrap();
        let waiting: Vec<_> = (0..=WAITING).map(|_| Box::pin(hasher.run(|| ()))).collect();
        let mut waiting = futures_util::future::join_all(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let error = hasher.run(|| ()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::RateLimited);
        assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
        drop(waiting);
        assert_eq!(hasher.room.available_permits(), 1 + WAITING, "who goes away makes room");
    }
}
