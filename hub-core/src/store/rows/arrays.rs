//! The rows of a statement on PostgreSQL: an array for each column.

use std::borrow::Cow;

use sqlx::{Arguments, postgres::PgArguments};

use super::{Column, ENCODED, Row, Values};

/// PostgreSQL's values: an array per column.
#[derive(Debug, Default)]
pub(in crate::store) struct Arrays(PgArguments);

impl Arrays {
    /// Binds rows; returns their expression after `FROM`: `UNNEST($1::text[], …) … AS x (names…, place)`, where `place` is the
    /// number of a row, from 1.
    pub(in crate::store) fn push_rows<R: Row>(&mut self, rows: &[R]) -> String {
        let first = self.push_arrays(rows);
        unnest::<R>(first)
    }

    /// Binds rows that are found by their numbers, without a join; returns the columns of the row at `place`, first those
    /// that are short and then the others.
    pub(in crate::store) fn push_looked_up<R: Row>(&mut self, rows: &[R], place: &str) -> [String; 2] {
        let first = self.push_arrays(rows);
        [false, true].map(|is_long| {
            let columns = R::COLUMNS.iter().zip(first..);
            let columns = columns.filter(|(column, _)| column.is_long() == is_long);
            columns.map(|(column, array)| at(column, array, place)).collect::<Vec<_>>().join(",")
        })
    }

    /// Binds an array for each column; returns the place of the first.
    fn push_arrays<R: Row>(&mut self, rows: &[R]) -> usize {
        let first = Arguments::len(&self.0) + 1;
        let empty = R::COLUMNS.iter().map(|column| match column {
            Column::Text(_) | Column::Long(_) => Array::Texts(Vec::with_capacity(rows.len())),
            Column::Number(_) => Array::Numbers(Vec::with_capacity(rows.len())),
            Column::Bytes(_) => Array::Bytes(Vec::with_capacity(rows.len())),
        });
        let mut turning = Turning { arrays: empty.collect(), next: 0 };
        for row in rows {
            row.write(&mut turning);
        }
        for array in turning.arrays {
            match array {
                Array::Texts(texts) => self.0.add(texts),
                Array::Numbers(numbers) => self.0.add(numbers),
                Array::Bytes(bytes) => self.0.add(bytes),
            }
            .expect(ENCODED);
        }
        first
    }
}

impl From<Arrays> for PgArguments {
    fn from(values: Arrays) -> Self {
        values.0
    }
}

enum Array<'v> {
    Texts(Vec<Option<Cow<'v, str>>>),
    Numbers(Vec<Option<i64>>),
    Bytes(Vec<&'v [u8]>),
}

const IN_ORDER: &str = "a row writes its columns in their order";

/// Rows on their way into columns.
struct Turning<'v> {
    arrays: Vec<Array<'v>>,
    next: usize,
}

impl<'v> Turning<'v> {
    fn next(&mut self) -> &mut Array<'v> {
        let place = self.next;
        self.next = (place + 1) % self.arrays.len();
        &mut self.arrays[place]
    }
}

impl<'v> Values<'v> for Turning<'v> {
    fn text(&mut self, value: Option<Cow<'v, str>>) {
        match self.next() {
            Array::Texts(texts) => texts.push(value),
            Array::Numbers(_) | Array::Bytes(_) => unreachable!("{IN_ORDER}"),
        }
    }

    fn number(&mut self, value: Option<i64>) {
        match self.next() {
            Array::Numbers(numbers) => numbers.push(value),
            Array::Texts(_) | Array::Bytes(_) => unreachable!("{IN_ORDER}"),
        }
    }

    fn bytes(&mut self, value: &'v [u8]) {
        match self.next() {
            Array::Bytes(bytes) => bytes.push(value),
            Array::Texts(_) | Array::Numbers(_) => unreachable!("{IN_ORDER}"),
        }
    }
}

/// PostgreSQL's expression after `FROM` for rows whose arrays are bound from this place on. Long values are read from their
/// array where they are needed: an update copies each row that it joins with, and a function's rows are copied, too.
fn unnest<R: Row>(first: usize) -> String {
    let (mut arrays, mut names, mut long) = (Vec::new(), Vec::new(), Vec::new());
    for (column, array) in R::COLUMNS.iter().zip(first..) {
        if column.is_long() {
            long.push(at(column, array, "x.place"));
        } else {
            arrays.push(format!("${array}::{}[]", column.kind()));
            names.push(column.name());
        }
    }
    let (arrays, names) = (arrays.join(","), names.join(","));
    let rows = format!("UNNEST({arrays}) WITH ORDINALITY AS x ({names},place)");
    if long.is_empty() { rows } else { format!("(SELECT x.*,{} FROM {rows}) AS x", long.join(",")) }
}

/// PostgreSQL's expression for the value of a column at a place of its array.
fn at(column: &Column, array: usize, place: &str) -> String {
    format!("(${array}::{}[])[{place}] AS {}", column.kind(), column.name())
}

#[cfg(test)]
mod tests {
    use super::{super::tests::Pair, *};

    struct Body(i64, &'static str);

    impl Row for Body {
        const COLUMNS: &'static [Column] = &[Column::Number("id"), Column::Long("body")];

        fn write<'v>(&'v self, values: &mut impl Values<'v>) {
            values.push(self.0);
            values.push(self.1);
        }
    }

    #[test]
    fn each_column_is_an_array() {
        let mut values = Arrays::default();
        let rows = [Pair("a", Some(1)), Pair("b", None)];
        assert_eq!(
            values.push_rows(&rows),
            "UNNEST($1::text[],$2::bigint[]) WITH ORDINALITY AS x (name,n,place)"
        );
        assert_eq!(
            values.push_rows(&[Body(1, "text")]),
            "(SELECT x.*,($4::text[])[x.place] AS body FROM UNNEST($3::bigint[]) WITH ORDINALITY AS x (id,place)) AS x"
        );
        assert_eq!(
            values.push_looked_up(&[Body(1, "text")], "y.place"),
            ["($5::bigint[])[y.place] AS id", "($6::text[])[y.place] AS body"]
        );
        assert_eq!(Arguments::len(&values.0), 6);
    }
}
