//! Data that reports need and the engine does not have: descriptions of connections, readable key
//! values, the date and time. The caller provides a function for each. Without it, reports omit the
//! data or show bytes.

use super::moment::Moment;
use super::parts::Core;
use crate::base::TreeId;
use crate::table::key_encoding::KeyValue;
use crate::txn::hex;
use std::sync::OnceLock;

pub(crate) type TellConnection = Box<dyn Fn(u64) -> String + Send + Sync>;
/// Formats a value of a key according to its part's
/// [`shown_as`](crate::table::KeyPartEncoding::shown_as); returns an empty string if it cannot.
pub(crate) type TellValue = Box<dyn Fn(u32, &[u8]) -> String + Send + Sync>;
pub(crate) type TellTime = Box<dyn Fn() -> String + Send + Sync>;
/// Receives the report of every deadlock.
pub(crate) type Hear = Box<dyn Fn(&str) + Send + Sync>;

/// See the module documentation. Only the first function set for each is used.
#[derive(Default)]
pub(crate) struct ForPeople {
    pub(crate) connection: OnceLock<TellConnection>,
    pub(crate) value: OnceLock<TellValue>,
    pub(crate) time: OnceLock<TellTime>,
    pub(crate) deadlock: OnceLock<Hear>,
}

impl ForPeople {
    /// Hexadecimal digits if the value cannot be formatted.
    fn value(&self, value: &KeyValue) -> String {
        match value {
            KeyValue::Null => "NULL".to_owned(),
            KeyValue::Rest(bytes) => format!("0x{}", hex(bytes)),
            KeyValue::Value(shown_as, bytes) => {
                let told = self.value.get().map(|tell| tell(*shown_as, bytes)).unwrap_or_default();
                if told.is_empty() {
                    format!("0x{}", hex(bytes))
                } else {
                    told
                }
            }
        }
    }
}

impl Core {
    pub(crate) fn moment(&self) -> Moment {
        let time = self.for_people.time.get().map(|tell| tell()).unwrap_or_default();
        Moment { at_ns: self.clock.now_ns(), time }
    }

    /// The formatted values of a key stored in the index of `tree`, or hexadecimal digits.
    pub(crate) fn show_key(&self, tree: TreeId, key: &[u8]) -> String {
        let Some((table, index_no)) = self.catalog.by_tree(tree) else { return hex(key) };
        let encoding = table.key_encodings().ok().and_then(|keys| keys.get(index_no));
        let Some(encoding) = encoding.filter(|encoding| !encoding.parts.is_empty()) else { return hex(key) };
        let values: Vec<_> = encoding.values(key).iter().map(|value| self.for_people.value(value)).collect();
        format!("({})", values.join(", "))
    }
}
