//! Entries of the format before the current one: a killed hub leaves them to the next version. This is the place for the
//! next change of the format; the conversion that is here now goes then.
//!
//! Format 1 has texts where format 2 has packed steps: arrays in `steps` of a trace, and in its updates what is appended to
//! one, without brackets. All else is the same.

use super::entry::{self, Bytes, Entry, Field, Kind};
use crate::{
    id::TraceId,
    model::trace::{PackedSteps, StoredSteps},
};

/// The format that is converted.
pub(super) const FORMAT: u8 = entry::FORMAT - 1;

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

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::entry;
    use crate::{
        model::trace::StepName::{Filter, Received, Request},
        store::{Store, StoreConfig, Upkeep},
        time::Clock,
    };

    /// A delivery that succeeded, its trace and the update that ended it, in format 1. Two elements of the steps are
    /// strings, as version 0.1.0 compressed them.
    const FORMAT_1: &str = "\
        010201000000011e000000646c765f30314d38464e433254333933515336445a57364d48355841595001050000006d73\
        675f310105000000626f745f31010400000063685f31011d00000074725f30314d38464e433254333933515336445a57\
        364d48355841594e0107000000776562686f6f6b0103000000616e6e0201000000000000000207000000000000000243\
        0b561fa20100000301000000011d00000074725f30314d38464e433254333933515336445a57364d48355841594e0105\
        0000006d73675f310105000000626f745f31010400000063685f3100010700000070656e64696e670201000000000000\
        00010000000002000000000000000002430b561fa2010000020000000000000000012f0000005b22422b594244324d43\
        433738354e5467794d6a41324d6a51774d32344350674a63414741324d6a51774d3330225d0601000000010400000063\
        685f310201000000000000000701000000011e000000646c765f30314d38464e433254333933515336445a57364d4835\
        584159500207000000000000000104000000646f6e650201000000000000000002430b561fa201000002000000000000\
        00000002480b561fa20100000801000000010400000063685f3102480b561fa20100000901000000011d00000074725f\
        30314d38464e433254333933515336445a57364d48355841594e01020000006f6b020100000000000000010900000064\
        656c69766572656402010000000000000002480b561fa201000001640000007b226e616d65223a227265717565737422\
        2c226b696e64223a22776562686f6f6b222c226174223a313739353832323036323430347d2c22422b594244324d4343\
        3738354e5467794d6a41324d6a51774d32344350674a63414741324d6a51774d333022";

    const TRACE: &str = "tr_01M8FNC2T393QS6DZW6MH5XAYN";

    #[tokio::test]
    async fn a_trace_of_format_1_is_stored_with_all_its_steps() {
        let folder = tempfile::tempdir().unwrap();
        let config = StoreConfig::Sqlite(folder.path().join("hub.db"));
        let store = Store::open(&config, Clock::system()).await.unwrap();
        let mut upkeep = Upkeep::open(&config).await.unwrap();
        upkeep.run(&format!("INSERT INTO commit_log (id, entry) VALUES (1, x'{FORMAT_1}')")).await.unwrap();
        upkeep.expect_readable_log().await.unwrap();
        upkeep.flush(&config).await.unwrap();
        let trace = TRACE.parse().unwrap();
        let steps = store.read().await.unwrap().traces().steps_of(&[trace]).await.unwrap();
        let names: Vec<_> = steps[&trace].iter().map(|step| step.name).collect();
        assert_eq!(names, [Received, Filter, Request, Received, Filter]);
        upkeep.close().await.unwrap();
        store.close().await;
    }

    #[test]
    fn an_entry_of_format_1_that_is_cut_off_is_corrupt() {
        let whole = HEXLOWER.decode(FORMAT_1.as_bytes()).unwrap();
        assert!(entry::current(whole.clone()).is_ok());
        // Within the last row.
        for end in whole.len() - 80..whole.len() {
            let cut = entry::current(whole[..end].to_vec()).unwrap_err();
            assert_eq!(cut.message(), "an entry of the commit log is corrupt", "{end} bytes");
        }
    }
}
