//! The messages of an ordering key in SQL.
//!
//! A message has the ordering key of one fact: `inbound_asn:A/U` of unit U of ASN A, `asn:S_2` of the second part of
//! shipment S. The key of a whole stands for its facts as well: `inbound_asn:A` and `asn:S`.

/// A query in SQL for `columns` of the messages of the key `wanted.ordering_key`. `rest` ends each part of the
/// query, for example with further conditions. Each part reads a range of the index on ordering keys.
pub(super) fn messages_of_key(columns: &str, rest: &str) -> String {
    let part = |condition: &str| {
        format!("(SELECT {columns} FROM delivery_messages WHERE {condition} {rest})")
    };
    [
        "ordering_key = wanted.ordering_key",
        "ordering_key > wanted.ordering_key || '/' AND ordering_key < wanted.ordering_key || '0'",
        "wanted.ordering_key LIKE 'asn:%' \
         AND ordering_key > wanted.ordering_key || '_' AND ordering_key < wanted.ordering_key || '`' \
         AND substr(ordering_key, length(wanted.ordering_key) + 2) ~ '^[0-9]+$'",
    ]
    .map(part)
    .join(" UNION ALL ")
}

/// A condition in SQL: the message `m` belongs to one of the keys of an array.
pub(super) fn has_key(keys: &str) -> String {
    format!(
        "EXISTS (SELECT FROM unnest({keys}) AS wanted (ordering_key) \
             WHERE m.ordering_key = wanted.ordering_key \
             OR starts_with(m.ordering_key, wanted.ordering_key || '/') \
             OR wanted.ordering_key LIKE 'asn:%' \
             AND starts_with(m.ordering_key, wanted.ordering_key || '_') \
             AND substr(m.ordering_key, length(wanted.ordering_key) + 2) ~ '^[0-9]+$')"
    )
}
