//! What requests consume, by the published rules: from the requests as they were sent, and from the table as it was before
//! and after them.
//!
//! - A write takes a unit for each KB of the larger of the item before and after, in a transaction two. A read takes a unit
//!   for each 4 KB, in a transaction two, and half of one where it is not consistent; a query rounds the sum of its items.
//!   What is not there counts as the smallest item. (Developer Guide, "DynamoDB read and write operations".)
//! - Indexes follow a write by themselves, so never at the price of a transaction: a unit for an entry that comes or goes,
//!   two where its place changes. (Developer Guide, "Provisioned throughput considerations for global secondary indexes".)
//! - An item is as large as its names and values in UTF-8; a number takes half a byte for each digit, and one.
//!   (Developer Guide, "DynamoDB item sizes and formats".)

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde_json::{Map, Value};
use wf_backend_aws::table::SHAPE;

use crate::wire::Sent;

/// An item as the API writes it.
pub(crate) type Item = Map<String, Value>;
/// A table at one moment, by its keys.
pub(crate) type Image = BTreeMap<(String, String), Item>;

/// What was consumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Units {
    /// Halves of read units.
    pub(crate) read_halves: u64,
    /// Write units, indexes included.
    pub(crate) write: u64,
    /// Those of indexes among them.
    pub(crate) index: u64,
}

impl AddAssign for Units {
    fn add_assign(&mut self, other: Self) {
        self.read_halves += other.read_halves;
        self.write += other.write;
        self.index += other.index;
    }
}

/// The size of an item in bytes.
pub(crate) fn size(item: &Item) -> u64 {
    let of = |value: &Value| {
        let text = |kind: &str| value.get(kind).and_then(Value::as_str);
        match (text("S"), text("N")) {
            (Some(text), _) => text.len(),
            (None, Some(number)) => digits(number).div_ceil(2) + 1,
            (None, None) => unreachable!("we write texts and numbers: {value}"),
        }
    };
    let bytes: usize = item.iter().map(|(name, value)| name.len() + of(value)).sum();
    u64::try_from(bytes).expect("a size")
}

fn digits(number: &str) -> usize {
    number.trim_start_matches(['-', '0']).trim_end_matches('0').len()
}

/// What a request consumed.
pub(crate) fn consumed(sent: &Sent, before: &Image, after: &Image) -> Units {
    let body = &sent.body;
    let stored = |key: &Value| before.get(&place(key)).map_or(0, size);
    let read = |halves: u64| Units { read_halves: halves, ..Units::default() };
    match sent.operation.as_str() {
        "GetItem" => read(2 * pieces(stored(&body["Key"]), 4_096)),
        "BatchGetItem" => {
            let tables = body["RequestItems"].as_object().expect("tables");
            let keys = tables.values().flat_map(|table| list(&table["Keys"]));
            read(keys.map(|key| 2 * pieces(stored(key), 4_096)).sum())
        }
        "TransactGetItems" => {
            let gets = list(&body["TransactItems"]).map(|get| &get["Get"]["Key"]);
            read(gets.map(|key| 4 * pieces(stored(key), 4_096)).sum())
        }
        "Query" => {
            let halves = if body["ConsistentRead"] == true { 2 } else { 1 };
            read(halves * pieces(found(body, before), 4_096))
        }
        "TransactWriteItems" => {
            let mut units = Units::default();
            for action in list(&body["TransactItems"]) {
                let (_, what) = action.as_object().and_then(|a| a.iter().next()).expect("one");
                let key = place(what.get("Item").unwrap_or(&what["Key"]));
                units += written(2, before.get(&key), after.get(&key));
            }
            units
        }
        "UpdateItem" | "DeleteItem" => {
            let key = place(&body["Key"]);
            written(1, before.get(&key), after.get(&key))
        }
        other => unreachable!("no rule for {other}"),
    }
}

/// A write at `times` the price of a single one.
fn written(times: u64, before: Option<&Item>, after: Option<&Item>) -> Units {
    let larger = [before, after].into_iter().flatten().map(size).max().unwrap_or(0);
    let index = SHAPE.indexes.iter().map(|(_, pk, sk)| moved([*pk, *sk], before, after)).sum();
    Units { read_halves: 0, write: times * pieces(larger, 1_024) + index, index }
}

/// What an index of keys takes to follow a write.
fn moved(keys: [&str; 2], before: Option<&Item>, after: Option<&Item>) -> u64 {
    let [before, after] = [before, after].map(|item| item.and_then(|item| entry(keys, item)));
    let unit = |entry: &Item| pieces(size(entry), 1_024);
    match (before, after) {
        (before, after) if before == after => 0,
        (before, after) => [before, after].iter().flatten().map(unit).sum(),
    }
}

/// The entry of an item in an index of keys; none without them.
pub(crate) fn entry(keys: [&str; 2], item: &Item) -> Option<Item> {
    let names = keys.into_iter().chain([SHAPE.key.0, SHAPE.key.1]);
    names.map(|name| Some((name.to_owned(), item.get(name)?.clone()))).collect()
}

/// Bytes that a query reads.
fn found(body: &Value, table: &Image) -> u64 {
    assert!(body["ExclusiveStartKey"].is_null(), "a page behind the first has no rule here");
    let value = |name: &str| body["ExpressionAttributeValues"][name]["S"].as_str().expect("a text");
    let index = SHAPE.indexes.iter().find(|(name, ..)| body["IndexName"] == *name);
    let (pk, sk) = index.map_or(SHAPE.key, |(_, pk, sk)| (*pk, *sk));
    let text = |item: &Item, name: &str| item.get(name)?["S"].as_str().map(str::to_owned);
    let inside = |item: &&Item| {
        text(item, pk).is_some_and(|pk| pk == value(":pk"))
            && text(item, sk)
                .is_some_and(|sk| (value(":from")..=value(":to")).contains(&sk.as_str()))
    };
    let mut items: Vec<&Item> = table.values().filter(inside).collect();
    items.sort_by_key(|item| text(item, sk));
    if body["ScanIndexForward"] == false {
        items.reverse();
    }
    let limit = body["Limit"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let read = items.into_iter().take(limit);
    read.map(|item| index.map_or(size(item), |_| entry([pk, sk], item).as_ref().map_or(0, size)))
        .sum()
}

/// How many pieces of `each` bytes; never none.
fn pieces(bytes: u64, each: u64) -> u64 {
    bytes.div_ceil(each).max(1)
}

/// The key of an item.
pub(crate) fn place(item: &Value) -> (String, String) {
    let text = |name: &str| item[name]["S"].as_str().expect("a key").to_owned();
    (text(SHAPE.key.0), text(SHAPE.key.1))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Image, Item, Units, consumed, moved, place, size, written};
    use crate::wire::Sent;

    fn item(value: Value) -> Item {
        let Value::Object(item) = value else { unreachable!("no item: {value}") };
        item
    }

    fn of_bytes(bytes: usize) -> Item {
        // Keys and names take 8 of them.
        let body = "x".repeat(bytes - 8);
        item(json!({ "PK": {"S": "a"}, "SK": {"S": "b"}, "xy": {"S": body} }))
    }

    fn sent(operation: &str, body: Value) -> Sent {
        Sent { operation: operation.to_owned(), body, bytes: Vec::new() }
    }

    fn table(items: impl IntoIterator<Item = Item>) -> Image {
        items.into_iter().map(|item| (place(&Value::from(item.clone())), item)).collect()
    }

    #[test]
    fn an_item_is_as_large_as_its_names_and_values() {
        assert_eq!(size(&of_bytes(1_024)), 1_024);
        assert_eq!(
            size(&item(json!({ "ab": {"S": "é"}, "n": {"N": "1767225670000"} }))),
            4 + 1 + 6
        );
    }

    #[test]
    fn writes_round_up_to_a_kilobyte_and_count_twice_in_a_transaction() {
        let write = |times, bytes| written(times, None, Some(&of_bytes(bytes))).write;
        assert_eq!(
            [write(1, 1_024), write(1, 1_025), write(2, 1_024), write(2, 1_025)],
            [1, 2, 2, 4]
        );
        // The larger of before and after; what is not there takes one.
        assert_eq!(written(1, Some(&of_bytes(3_000)), Some(&of_bytes(100))).write, 3);
        assert_eq!(written(1, Some(&of_bytes(3_000)), None).write, 3);
        assert_eq!(written(2, None, None).write, 2);
    }

    #[test]
    fn an_index_takes_one_for_each_entry_that_comes_or_goes() {
        let at = |sk: &str| {
            item(json!({ "PK": {"S": "a"}, "SK": {"S": "b"}, "pk": {"S": "p"}, "sk": {"S": sk} }))
        };
        let keys = ["pk", "sk"];
        assert_eq!(moved(keys, None, Some(&at("1"))), 1);
        assert_eq!(moved(keys, Some(&at("1")), None), 1);
        assert_eq!(moved(keys, Some(&at("1")), Some(&at("2"))), 2);
        assert_eq!(moved(keys, Some(&at("1")), Some(&at("1"))), 0);
        assert_eq!(moved(keys, None, Some(&of_bytes(100))), 0);
    }

    #[test]
    fn reads_round_up_to_four_kilobytes() {
        let image = table([of_bytes(4_097)]);
        let key = json!({ "PK": {"S": "a"}, "SK": {"S": "b"} });
        let absent = json!({ "PK": {"S": "a"}, "SK": {"S": "c"} });
        let halves = |operation: &str, body: Value| {
            consumed(&sent(operation, body), &image, &image).read_halves
        };
        assert_eq!(halves("GetItem", json!({ "Key": key })), 4);
        let both = json!([{"Get": {"Key": key}}, {"Get": {"Key": absent}}]);
        assert_eq!(halves("TransactGetItems", json!({ "TransactItems": both })), 8 + 4);
        let batch = json!({ "RequestItems": { "t": { "Keys": [key, absent] } } });
        assert_eq!(halves("BatchGetItem", batch), 4 + 2);
    }

    #[test]
    fn a_query_rounds_the_sum_of_what_it_reads() {
        let row = |sk: &str| {
            let body = "x".repeat(1_500);
            item(
                json!({ "PK": {"S": "p"}, "SK": {"S": sk}, "b": {"S": body}, "state_pk": {"S": "i"}, "state_sk": {"S": sk} }),
            )
        };
        let image = table(["1", "2", "3"].map(row));
        let ask = |pk: &str, more: Value| {
            let mut body = json!({ "ConsistentRead": true, "ExpressionAttributeValues":
                { ":pk": {"S": pk}, ":from": {"S": "1"}, ":to": {"S": "9"} } });
            body.as_object_mut().expect("an object").extend(item(more));
            consumed(&sent("Query", body), &image, &image).read_halves
        };
        assert_eq!(ask("p", json!({})), 4, "4.5 KB");
        assert_eq!(ask("p", json!({ "Limit": 2 })), 2, "3 KB");
        assert_eq!(ask("q", json!({})), 2, "nothing");
        assert_eq!(
            ask("i", json!({ "IndexName": "by_state", "ConsistentRead": false })),
            1,
            "keys"
        );
    }

    #[test]
    fn sums_add_up() {
        let mut sum = Units { read_halves: 1, write: 2, index: 1 };
        sum += Units { read_halves: 2, write: 3, index: 0 };
        assert_eq!(sum, Units { read_halves: 3, write: 5, index: 1 });
    }
}
