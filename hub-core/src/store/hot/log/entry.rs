//! An entry of the commit log: rows, by the statements that will store them. The values of a row are those that its
//! [`Row`] hands over, so that a row is described once for the log and for its table.

use std::borrow::Cow;

use rusqlite::{
    ToSql,
    types::{Null, ToSqlOutput},
};

use super::previous;
use crate::{
    error::{Advice, Error, ErrorCode, Result},
    id::{ChannelId, IdText},
    store::{
        deliveries::Finished,
        fan_out::{ContactRow, CursorRow, DeliveryRow, LogRow},
        inbox::MessageRow,
        rows::{Column, Row, Values, row},
        traces::{NewTrace, TraceUpdate},
    },
};

/// The first byte of an entry. When the columns of a [`Kind`] change, it grows by one, and [`previous`] converts the
/// entries of the format that was current until then.
pub(super) const FORMAT: u8 = 2;

/// The last number of a channel's log.
pub(super) struct LastSeq {
    pub(super) channel: ChannelId,
    pub(super) last: i64,
}

row!(LastSeq, |row| {
    Text channel = row.channel,
    Number last = row.last,
});

/// An outcome, and the channel for whose successes it counts.
pub(super) struct Outcome<'a>(pub(super) &'a Finished);

row!(Outcome<'_>, |row| {
    Text channel = row.0.channel,
    Number at = row.0.stamp.read.wall,
});

/// Rows of one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Log,
    Delivery,
    Trace,
    Contact,
    Cursor,
    LastSeq,
    /// As many as of the next two kinds, which belong to them.
    Finished,
    Outcome,
    TraceUpdate,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Message,
        Self::Log,
        Self::Delivery,
        Self::Trace,
        Self::Contact,
        Self::Cursor,
        Self::LastSeq,
        Self::Finished,
        Self::Outcome,
        Self::TraceUpdate,
    ];

    pub(super) const fn columns(self) -> &'static [Column] {
        match self {
            Self::Message => MessageRow::COLUMNS,
            Self::Log => LogRow::COLUMNS,
            Self::Delivery => DeliveryRow::COLUMNS,
            Self::Trace => NewTrace::COLUMNS,
            Self::Contact => ContactRow::COLUMNS,
            Self::Cursor => CursorRow::COLUMNS,
            Self::LastSeq => LastSeq::COLUMNS,
            Self::Finished => Finished::COLUMNS,
            Self::Outcome => Outcome::COLUMNS,
            Self::TraceUpdate => TraceUpdate::COLUMNS,
        }
    }

    /// Returns the position of a column's value in a row.
    pub(super) fn place(self, column: &str) -> usize {
        self.columns().iter().position(|one| one.name() == column).expect("a column of this kind")
    }
}

/// An entry in the making.
#[derive(Debug)]
pub(super) struct Entry(pub(super) Vec<u8>);

impl Entry {
    pub(super) fn new() -> Self {
        Self(vec![FORMAT])
    }

    pub(super) fn push<R: Row>(&mut self, kind: Kind, rows: &[R]) {
        if rows.is_empty() {
            return;
        }
        self.begin(kind, rows.len());
        for row in rows {
            row.write(self);
        }
    }

    /// Begins so many rows of a kind; their values follow.
    pub(super) fn begin(&mut self, kind: Kind, rows: usize) {
        self.0.push(kind as u8);
        self.len(rows);
    }

    fn len(&mut self, len: usize) {
        let len = u32::try_from(len).expect("an entry is far smaller than 4 GiB");
        self.0.extend(len.to_le_bytes());
    }

    pub(super) fn value(&mut self, value: Field<'_>) {
        match value {
            Field::Null => self.0.push(0),
            Field::Text(text) => {
                self.0.push(1);
                self.len(text.len());
                self.0.extend(text.as_bytes());
            }
            Field::Number(number) => {
                self.0.push(2);
                self.0.extend(number.to_le_bytes());
            }
            Field::Bytes(bytes) => {
                self.0.push(3);
                self.len(bytes.len());
                self.0.extend(bytes);
            }
        }
    }
}

impl<'v> Values<'v> for Entry {
    fn text(&mut self, value: Option<Cow<'v, str>>) {
        self.value(value.as_deref().map_or(Field::Null, Field::Text));
    }

    fn id(&mut self, value: Option<IdText>) {
        self.value(value.as_ref().map_or(Field::Null, |id| Field::Text(id.as_str())));
    }

    fn number(&mut self, value: Option<i64>) {
        self.value(value.map_or(Field::Null, Field::Number));
    }

    fn bytes(&mut self, value: &'v [u8]) {
        self.value(Field::Bytes(value));
    }
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'e> {
    Null,
    Text(&'e str),
    Number(i64),
    Bytes(&'e [u8]),
}

impl<'e> Field<'e> {
    /// A text, or an empty one.
    pub(super) const fn as_str(self) -> &'e str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    pub(super) const fn as_bytes(self) -> &'e [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// A number, or 0.
    pub(super) const fn as_number(self) -> i64 {
        match self {
            Self::Number(number) => number,
            _ => 0,
        }
    }
}

impl ToSql for Field<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Null => Ok(Null.into()),
            Self::Text(text) => text.to_sql(),
            Self::Number(number) => Ok((*number).into()),
            Self::Bytes(bytes) => bytes.to_sql(),
        }
    }
}

/// An entry out of the file, in the current format.
///
/// # Errors
/// `UNAVAILABLE` when it has neither this format nor the one before, or is corrupt.
pub(super) fn current(entry: Vec<u8>) -> Result<Vec<u8>> {
    match entry.split_first() {
        Some((&FORMAT, _)) => Ok(entry),
        Some((&previous::FORMAT, rest)) => previous::convert(rest).ok_or_else(corrupt),
        Some((other, _)) => {
            let message = format!(
                "an entry of the commit log has format {other}, and this program reads {} and {FORMAT}",
                previous::FORMAT
            );
            Err(Error::new(ErrorCode::Unavailable, message)
                .with_hint(
                    "start and stop the version of the hub that wrote it; if no other version was used, the file is \
                     corrupt, and a backup has to be restored",
                )
                .with_advice([Advice::RestoreBackup]))
        }
        None => Err(corrupt()),
    }
}

fn corrupt() -> Error {
    Error::new(ErrorCode::Unavailable, "an entry of the commit log is corrupt")
        .with_hint("copy the data directory, then restore a backup")
        .with_advice([Advice::RestoreBackup])
}

/// The rows of entries by their kinds, each kind in the order of the entries.
#[derive(Debug, Default)]
pub(super) struct Rows<'e>([Vec<Field<'e>>; Kind::ALL.len()]);

impl<'e> Rows<'e> {
    /// Adds the rows of an entry.
    ///
    /// # Errors
    /// `UNAVAILABLE` when it is corrupt or has not the current format.
    pub(super) fn read(&mut self, entry: &'e [u8]) -> Result<()> {
        self.read_kinds(entry, |_| true)
    }

    /// As [`read`](Self::read), of outcomes alone.
    pub(super) fn read_outcomes(&mut self, entry: &'e [u8]) -> Result<()> {
        self.read_kinds(entry, |kind| matches!(kind, Kind::Finished | Kind::Outcome | Kind::TraceUpdate))
    }

    fn read_kinds(&mut self, entry: &'e [u8], is_wanted: impl Fn(Kind) -> bool) -> Result<()> {
        let Some((&FORMAT, rest)) = entry.split_first() else { return Err(corrupt()) };
        let mut bytes = Bytes(rest);
        while !bytes.0.is_empty() {
            let kind = bytes.kind().ok_or_else(corrupt)?;
            let values = kind.columns().len() * bytes.len().ok_or_else(corrupt)?;
            for _ in 0..values {
                if is_wanted(kind) {
                    self.0[kind as usize].push(bytes.field().ok_or_else(corrupt)?);
                } else {
                    bytes.skip().ok_or_else(corrupt)?;
                }
            }
        }
        Ok(())
    }

    /// The rows of a kind.
    pub(super) fn of(&self, kind: Kind) -> impl ExactSizeIterator<Item = &[Field<'e>]> {
        self.0[kind as usize].chunks_exact(kind.columns().len())
    }
}

/// Unread rest of an entry.
pub(super) struct Bytes<'e>(pub(super) &'e [u8]);

impl<'e> Bytes<'e> {
    fn take(&mut self, len: usize) -> Option<&'e [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn kind(&mut self) -> Option<Kind> {
        Kind::ALL.get(usize::from(self.byte()?)).copied()
    }

    pub(super) fn len(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    /// Skips a field; its text may be any bytes.
    fn skip(&mut self) -> Option<()> {
        let len = match self.byte()? {
            0 => 0,
            1 | 3 => self.len()?,
            2 => size_of::<i64>(),
            _ => return None,
        };
        self.take(len).map(drop)
    }

    pub(super) fn field(&mut self) -> Option<Field<'e>> {
        match self.byte()? {
            0 => Some(Field::Null),
            1 => {
                let len = self.len()?;
                std::str::from_utf8(self.take(len)?).ok().map(Field::Text)
            }
            2 => Some(Field::Number(i64::from_le_bytes(self.array()?))),
            3 => {
                let len = self.len()?;
                self.take(len).map(Field::Bytes)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    /// The next process reads the entries of a killed one by the positions of the columns. A change here needs
    /// another format number; a version that does not know the format reports this before it migrates.
    #[test]
    fn the_columns_of_a_format_stay() {
        let columns = Kind::ALL.map(|kind| {
            let names: Vec<&str> = kind.columns().iter().map(|column| column.name()).collect();
            format!("{kind:?}: {}", names.join(" "))
        });
        assert_eq!(FORMAT, 2);
        assert_eq!(
            columns,
            [
                "Message: id bot_id peer from_user_id to_user_id user_name session_id group_id kind content items quoted \
                 network_id dedupe_key private status sent_at created_at",
                "Log: channel seq message content",
                "Delivery: id message bot channel trace sink lane seq claim at",
                "Trace: id message_id bot_id channel_id replay_of status open_sinks summary attempts started_at \
                 duration_ms steps packed_steps",
                "Contact: bot person name count at token opened",
                "Cursor: bot new_cursor inbound at",
                "LastSeq: channel last",
                "Finished: delivery fence state attempts due_at first_attempt_at claim last_error finished_at",
                "Outcome: channel at",
                "TraceUpdate: trace status ended summary attempts ended_at steps",
            ]
        );
    }

    #[test]
    fn a_damaged_entry_is_refused() {
        let rows = [7, 8].map(|last| LastSeq { channel: ChannelId::first_at(Timestamp::MIN), last });
        let mut entry = Entry::new();
        entry.push(Kind::LastSeq, &rows);
        let whole = entry.0;
        let mut read = Rows::default();
        read.read(&whole).unwrap();
        assert_eq!(read.of(Kind::LastSeq).map(|row| row[1].as_number()).collect::<Vec<_>>(), [7, 8]);
        let mut outcomes = Rows::default();
        outcomes.read_outcomes(&whole).unwrap();
        assert_eq!(outcomes.of(Kind::LastSeq).len(), 0);
        for end in 2..whole.len() {
            assert!(Rows::default().read(&whole[..end]).is_err(), "{end} bytes");
            assert!(Rows::default().read_outcomes(&whole[..end]).is_err(), "{end} bytes");
        }
        for (place, byte) in [(0, FORMAT + 1), (1, 99), (6, 9)] {
            let mut damaged = whole.clone();
            damaged[place] = byte;
            let error = Rows::default().read(&damaged).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Unavailable, "byte {place}");
        }
    }
}
