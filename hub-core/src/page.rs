//! Lists in pages: newest first, with an opaque cursor that is stable under inserts.

use data_encoding::BASE64URL_NOPAD;

use crate::{
    error::{Error, Result},
    id::{Id, Kind},
};

/// Default and largest number of items on a page.
pub const DEFAULT_LIMIT: u32 = 50;
/// See [`DEFAULT_LIMIT`].
pub const MAX_LIMIT: u32 = 200;

/// Which page of a list: at most `limit` items after the position `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    limit: u32,
    after: Option<String>,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self { limit: DEFAULT_LIMIT, after: None }
    }
}

impl PageRequest {
    /// Reads `limit` and `cursor` as a caller gave them. `list` names the list and its filters: a cursor of
    /// another list, or of the same list with other filters, is refused.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on a limit outside 1..=200 or a cursor that is not ours.
    pub fn parse(list: &str, limit: Option<u32>, cursor: Option<&str>) -> Result<Self> {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Error::invalid("limit", "must be between 1 and 200"));
        }
        let after = cursor.map(|cursor| decode(list, cursor)).transpose()?;
        Ok(Self { limit, after })
    }

    /// Items wanted.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The id below which the items of a list are that has the newest first: the position, or `highest` on the first
    /// page. A statement always compares with it, so that the comparison bounds what the database reads.
    pub fn before<K: Kind>(&self, highest: Id<K>) -> String {
        self.after.clone().unwrap_or_else(|| highest.to_string())
    }

    /// The same page with at most so many items.
    #[must_use]
    pub fn at_most(&self, limit: u32) -> Self {
        Self { limit: self.limit.min(limit), after: self.after.clone() }
    }

    /// The position to go on from: the sort key of the last item of the page before.
    pub fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, newest first unless the list says otherwise.
    pub items: Vec<T>,
    /// Cursor of the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Cuts a page out of `limit + 1` fetched rows; `key` gives the sort key of an item.
    pub fn from_rows(
        list: &str,
        request: &PageRequest,
        mut rows: Vec<T>,
        key: impl Fn(&T) -> String,
    ) -> Self {
        let limit = request.limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next_cursor = if more { rows.last().map(|last| encode(list, &key(last))) } else { None };
        Self { items: rows, next_cursor }
    }

    /// Cuts a page out of all there is, for lists that are short by nature; `key` tells the items apart.
    pub fn of_all(list: &str, request: &PageRequest, all: Vec<T>, key: impl Fn(&T) -> String) -> Self {
        let mut rest = all.into_iter();
        if let Some(after) = request.after() {
            rest.by_ref().find(|item| key(item) == after);
        }
        Self::from_rows(list, request, rest.take(request.limit as usize + 1).collect(), key)
    }

    /// The same page with each item turned into something else.
    pub fn map<U>(self, turn: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(turn).collect(), next_cursor: self.next_cursor }
    }
}

/// The opaque text for a position in a list.
pub fn encode(list: &str, position: &str) -> String {
    BASE64URL_NOPAD.encode(
        format!("{:08x}{position}", crc32fast::hash(format!("{list}\n{position}").as_bytes())).as_bytes(),
    )
}

/// The position behind an opaque text.
///
/// # Errors
/// `INVALID_PARAMS` when the text was not made by [`encode`] for the same list.
pub fn decode(list: &str, cursor: &str) -> Result<String> {
    let bytes = BASE64URL_NOPAD.decode(cursor.as_bytes()).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let position = text.as_deref().and_then(|text| text.get(8..));
    match position {
        Some(position) if encode(list, position) == cursor => Ok(position.to_owned()),
        _ => Err(Error::invalid("cursor", "is not a cursor of this list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_belong_to_their_list() {
        let cursor = encode("bots:usr_1", "bot_9");
        assert_eq!(decode("bots:usr_1", &cursor).unwrap(), "bot_9");
        for (list, text) in
            [("bots:usr_2", cursor.as_str()), ("bots:usr_1", "x"), ("bots:usr_1", ""), ("bots:usr_1", "////")]
        {
            assert!(decode(list, text).is_err(), "{list} {text}");
        }
        assert!(PageRequest::parse("l", Some(0), None).is_err());
        assert!(PageRequest::parse("l", Some(201), None).is_err());
    }

    #[test]
    fn a_page_has_a_cursor_only_when_more_follows() {
        let request = PageRequest::parse("l", Some(2), None).unwrap();
        let page = Page::from_rows("l", &request, vec![5, 4, 3], ToString::to_string);
        assert_eq!(page.items, [5, 4]);
        assert_eq!(decode("l", &page.next_cursor.unwrap()).unwrap(), "4");
        assert_eq!(Page::from_rows("l", &request, vec![5, 4], ToString::to_string).next_cursor, None);
    }

    #[test]
    fn pages_of_a_short_list_have_each_item_once() {
        let all = || vec!["a", "b", "c", "d", "e"];
        let (mut cursor, mut seen) = (None::<String>, Vec::new());
        loop {
            let request = PageRequest::parse("l", Some(2), cursor.as_deref()).unwrap();
            let page = Page::of_all("l", &request, all(), ToString::to_string);
            seen.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all());
    }
}
