//! Entries of the format before the current one: a killed hub leaves them to the next version. This is the place for the
//! next change of the format; the conversion that is here now goes then.
//!
//! Format 1 has texts where format 2 has packed steps: arrays in `steps` of a trace, and in its updates what is appended to
//! one, without brackets. All else is the same.

use super::{Bytes, Entry, Field, Kind};
use crate::{
    id::TraceId,
    model::trace::{PackedSteps, StoredSteps},
};

/// The format that is converted.
pub(super) const FORMAT: u8 = super::FORMAT - 1;

/// Converts an entry, which follows the byte of its format; `None` when it is corrupt.
pub(super) fn convert(entry: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut converted) = (Bytes(entry), Entry::new());
    while !bytes.0.is_empty() {
        let (kind, rows) = (bytes.kind()?, bytes.len()?);
        converted.begin(kind, rows);
        for _ in 0..rows {
            match kind {
                Kind::Trace => convert_trace(&mut bytes, &mut converted)?,
                Kind::TraceUpdate => convert_update(&mut bytes, &mut converted)?,
                _ => copy(&mut bytes, &mut converted, kind.columns().len())?,
            }
        }
    }
    Some(converted.0)
}

fn copy(bytes: &mut Bytes<'_>, converted: &mut Entry, fields: usize) -> Option<()> {
    for _ in 0..fields {
        converted.value(bytes.field()?);
    }
    Some(())
}

/// The array stays in its column, from which it is read before packed steps.
fn convert_trace(bytes: &mut Bytes<'_>, converted: &mut Entry) -> Option<()> {
    copy(bytes, converted, Kind::Trace.columns().len() - 1)?;
    converted.value(Field::Bytes(&[]));
    Some(())
}

fn convert_update(bytes: &mut Bytes<'_>, converted: &mut Entry) -> Option<()> {
    let trace = bytes.field()?;
    converted.value(trace);
    copy(bytes, converted, Kind::TraceUpdate.columns().len() - 2)?;
    let id: TraceId = trace.as_str().parse().ok()?;
    let array = format!("[{}]", bytes.field()?.as_str());
    let steps = StoredSteps::read(id, &array, &[]).ok()?;
    converted.value(Field::Bytes(PackedSteps::new(id, &steps.0).as_bytes()));
    Some(())
}
