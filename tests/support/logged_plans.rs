//! Plans that PostgreSQL writes into its log, with the rows that each part of a statement read.

/// Settings of a server that logs its plans, with what was done.
pub const LOGS_PLANS: [&str; 4] = [
    "session_preload_libraries=auto_explain",
    "auto_explain.log_min_duration=0",
    "auto_explain.log_analyze=on",
    "auto_explain.log_timing=off",
];

/// The plans of a log: each as its lines, which begin with the statement.
pub fn plans(log: &str) -> impl Iterator<Item = Vec<&str>> {
    let mut lines = log.lines().peekable();
    std::iter::from_fn(move || {
        lines.find(|line| line.contains("LOG:  duration: ") && line.ends_with("plan:"))?;
        Some(std::iter::from_fn(|| lines.next_if(|line| line.starts_with('\t'))).collect())
    })
}

/// The number after `what` in a line.
pub fn number(line: &str, what: &str) -> Option<usize> {
    let rest = line.split(what).nth(1)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
