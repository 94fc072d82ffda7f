//! What a list over all bots of an owner reads first: the newest ids of each bot by an index in the order of the list, and
//! of these the newest. Both statements take the owner as $1, the bot as $2, the ends of the ids as $3 and $4 and the
//! number of ids as $5.

use super::given;

/// The newest ids of a bot `b` between $3 and $4, each once, from the rows of a table.
macro_rules! newest {
    ($id:literal, $rows:literal) => {
        concat!(
            "SELECT DISTINCT x.",
            $id,
            " AS id FROM ",
            $rows,
            " AND x.",
            $id,
            " > $3 AND x.",
            $id,
            " < $4
                ORDER BY x.",
            $id,
            " DESC LIMIT $5"
        )
    };
}
pub(super) use newest;

/// The statement over all bots, on SQLite and on PostgreSQL.
pub(super) fn statement(source: &str, has_owner: bool, has_bot: bool) -> [String; 2] {
    let bots = given(&[(has_owner, " AND b.owner_id = $1"), (has_bot, " AND b.id = $2")]);
    [
        format!(
            "SELECT DISTINCT value AS id
             FROM bots b, json_each((SELECT json_group_array(id) FROM ({source}))) WHERE true{bots}
             ORDER BY id DESC LIMIT $5"
        ),
        format!(
            "SELECT DISTINCT c.id FROM bots b CROSS JOIN LATERAL ({source}) AS c WHERE true{bots}
             ORDER BY c.id DESC LIMIT $5"
        ),
    ]
}
