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

/// A request for a page of a list: at most `limit` items after the position `after`.
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
    /// another list, or of the same list with other filters, is refused; an empty one is the first page.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on a limit outside 1..=200 or a cursor that is not ours.
    pub fn parse(list: &str, limit: Option<u32>, cursor: Option<&str>) -> Result<Self> {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Error::invalid("limit", "must be between 1 and 200"));
        }
        let after =
            cursor.filter(|cursor| !cursor.is_empty()).map(|cursor| decode(list, cursor)).transpose()?;
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

    /// Cuts a page out of what was read for it; see [`from_rows`](Self::from_rows).
    pub fn from_found(
        list: &str,
        request: &PageRequest,
        Found { rows, scanned }: Found<T>,
        key: impl Fn(&T) -> String,
    ) -> Self {
        let mut page = Self::from_rows(list, request, rows, key);
        page.next_cursor = page.next_cursor.or_else(|| scanned.map(|last| encode(list, &last)));
        page
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

/// A page of a list with the number of all its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedPage<T> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// Cursor of the next page; `None` on the last one.
    pub next_cursor: Option<String>,
    /// Number of items on all pages; [`MAX_SCANNED`] represents that many or more. Only on the first page, and only if
    /// the page read enough of the list to know it.
    pub total: Option<u64>,
}

impl<T> CountedPage<T> {
    /// The page of an empty list.
    pub const fn empty() -> Self {
        Self { items: Vec::new(), next_cursor: None, total: Some(0) }
    }
}

/// Rows that a page of a filtered list reads at most. A page that finds fewer items than its limit among them has a
/// cursor that continues after the last row it read.
pub const MAX_SCANNED: u32 = 1_000;

/// Rows that were read for a page.
#[derive(Debug)]
pub struct Found<T> {
    /// The rows: one more than the page has room for, if there are as many.
    pub rows: Vec<T>,
    /// The sort key of the last row that was looked at, if the search ended there because of [`MAX_SCANNED`].
    pub scanned: Option<String>,
}

/// The part of an index that one page reads, before the filters without an index.
#[derive(Debug)]
pub struct Scan<K: Kind> {
    limit: u32,
    max: u32,
    is_first_page: bool,
    is_filtered: bool,
    /// The ids that were read, greatest first.
    ids: Vec<Id<K>>,
}

impl<K: Kind> Scan<K> {
    /// A scan of at most `max` rows for a page. A later page without such filters reads only what it shows.
    pub fn new(request: &PageRequest, is_filtered: bool, max: u32) -> Self {
        let is_first_page = request.after.is_none();
        let max = if is_filtered || is_first_page { max } else { request.limit };
        Self {
            limit: request.limit,
            max: max.max(request.limit),
            is_first_page,
            is_filtered,
            ids: Vec::new(),
        }
    }

    /// Returns the number of ids to read: one more than the maximum, to detect whether the list ends there.
    pub fn wanted(&self) -> i64 {
        i64::from(self.max) + 1
    }

    /// The ids that were read, without the one that only shows that more follow.
    pub fn ids(&self) -> &[Id<K>] {
        &self.ids[..self.ids.len().min(self.max as usize)]
    }

    /// Stores the ids that were read.
    pub fn read(&mut self, ids: Vec<Id<K>>) {
        self.ids = ids;
    }

    /// The page, given those of the ids that match.
    pub fn page(&self, list: &str, mut matching: Vec<Id<K>>) -> CountedPage<Id<K>> {
        let ends = self.ids.len() <= self.max as usize;
        let (found, limit) = (matching.len(), self.limit as usize);
        matching.truncate(limit);
        let last = if found > limit { matching.last() } else { self.ids().last().filter(|_| !ends) };
        let is_known = self.is_first_page && (ends || !self.is_filtered);
        CountedPage {
            next_cursor: last.map(|id| encode(list, &id.to_string())),
            total: is_known.then_some(found as u64),
            items: matching,
        }
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
    use crate::id::MessageId;

    #[test]
    fn cursors_belong_to_their_list() {
        let cursor = encode("bots:usr_1", "bot_9");
        assert_eq!(decode("bots:usr_1", &cursor).unwrap(), "bot_9");
        for (list, text) in
            [("bots:usr_2", cursor.as_str()), ("bots:usr_1", "x"), ("bots:usr_1", ""), ("bots:usr_1", "////")]
        {
            assert!(decode(list, text).is_err(), "{list} {text}");
        }
        assert_eq!(PageRequest::parse("l", None, Some("")).unwrap().after(), None);
        assert!(PageRequest::parse("l", None, Some(" ")).is_err());
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
    fn a_scan_continues_after_the_last_row_it_read() {
        let ids = |from: u128, to: u128| (to..from).rev().map(MessageId::from_u128).collect::<Vec<_>>();
        let scan = |is_filtered, cursor: Option<&str>, read| {
            let request = PageRequest::parse("l", Some(2), cursor).unwrap();
            let mut scan = Scan::new(&request, is_filtered, 5);
            scan.read(read);
            scan
        };
        let position = |page: &CountedPage<MessageId>| {
            page.next_cursor.as_ref().map(|cursor| decode("l", cursor).unwrap().parse::<MessageId>().unwrap())
        };
        let full = scan(false, None, ids(10, 4));
        assert_eq!((full.wanted(), full.ids()), (6, &*ids(10, 5)));
        let page = full.page("l", full.ids().to_vec());
        assert_eq!((&page.items, position(&page), page.total), (&ids(10, 8), ids(9, 8).pop(), Some(5)));
        let cursor = page.next_cursor.as_deref();
        assert_eq!(scan(false, cursor, Vec::new()).wanted(), 3, "a later page reads what it shows");

        let filtered = scan(true, None, ids(10, 4));
        let page = filtered.page("l", ids(8, 7));
        assert_eq!((&page.items, position(&page), page.total), (&ids(8, 7), ids(6, 5).pop(), None));
        let page = filtered.page("l", Vec::new());
        assert_eq!((page.items.len(), position(&page)), (0, ids(6, 5).pop()));
        let page = scan(true, None, ids(9, 4)).page("l", ids(8, 7));
        assert_eq!((position(&page), page.total), (None, Some(1)));
        let page = scan(true, cursor, ids(9, 4)).page("l", ids(9, 4));
        assert_eq!((&page.items, position(&page), page.total), (&ids(9, 7), ids(8, 7).pop(), None));
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
