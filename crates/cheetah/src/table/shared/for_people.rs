//! Reports tell people of things that the engine does not know itself: connections, values in keys,
//! the time of day. The user of the engine gives a function for each. Without a function, reports
//! leave the thing out, or have bytes in its place.

use super::moment::Moment;
use super::parts::Core;
use crate::base::TreeId;
use crate::table::key_encoding::KeyValue;
use crate::txn::hex;
use std::sync::OnceLock;

/// Tells what the connection of that number does, in words.
pub(crate) type TellConnection = Box<dyn Fn(u64) -> String + Send + Sync>;
/// Tells a value of a key by what its part is [shown as](crate::table::KeyPartEncoding::shown_as);
/// nothing where it cannot.
pub(crate) type TellValue = Box<dyn Fn(u32, &[u8]) -> String + Send + Sync>;
/// Tells date and time of day.
pub(crate) type TellTime = Box<dyn Fn() -> String + Send + Sync>;
/// Hears of every deadlock.
pub(crate) type Hear = Box<dyn Fn(&str) + Send + Sync>;

/// See the module. Of each the first counts.
#[derive(Default)]
pub(crate) struct ForPeople {
    pub(crate) connection: OnceLock<TellConnection>,
    pub(crate) value: OnceLock<TellValue>,
    pub(crate) time: OnceLock<TellTime>,
    pub(crate) deadlock: OnceLock<Hear>,
}

impl ForPeople {
    /// A value in words; in hexadecimal digits where nobody tells it.
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
    /// Now.
    pub(crate) fn moment(&self) -> Moment {
        let time = self.for_people.time.get().map(|tell| tell()).unwrap_or_default();
        Moment { at_ns: self.clock.now_ns(), time }
    }

    /// The values of a key as it is stored in that index, as far as somebody can tell them; else in
    /// hexadecimal digits.
    pub(crate) fn show_key(&self, tree: TreeId, key: &[u8]) -> String {
        let Some((table, index_no)) = self.catalog.by_tree(tree) else { return hex(key) };
        let encoding = table.key_encodings().ok().and_then(|keys| keys.get(index_no));
        let Some(encoding) = encoding.filter(|encoding| !encoding.parts.is_empty()) else { return hex(key) };
        let values: Vec<_> = encoding.values(key).iter().map(|value| self.for_people.value(value)).collect();
        format!("({})", values.join(", "))
    }
}
