//! Names of shadow tables: they contain the ID of the owning transaction and of the table to
//! replace (U1 of [`super::shadow`]).

use crate::base::{TableId, TxnId};

/// The caller's names never begin with it.
const PREFIX: &str = "#load/";

pub(super) fn name_of(txn: TxnId, target: TableId) -> String {
    format!("{PREFIX}{}/{}", txn.0, target.0)
}

/// Returns the transaction, and the table to replace (U1).
pub(super) fn parse(name: &str) -> Option<(TxnId, TableId)> {
    let (txn, target) = name.strip_prefix(PREFIX)?.split_once('/')?;
    Some((TxnId(txn.parse().ok()?), TableId(target.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_shadow_table_says_whose_it_is() {
        assert_eq!(parse(&name_of(TxnId(7), TableId(9))), Some((TxnId(7), TableId(9))));
        for other in ["#load/", "#load/7", "#load/a/9", "load/7/9", "#load/7/9/1", "db/t"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
