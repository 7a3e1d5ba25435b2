//! Random JSON texts and chunkings for the tests of this layer.

use proptest::prelude::*;

/// Keys that the readers look for, so that look-alikes stand everywhere.
const KEYS: [&str; 22] = [
    "id",
    "method",
    "params",
    "result",
    "error",
    "name",
    "_meta",
    "isError",
    "code",
    "message",
    "task",
    "taskId",
    "status",
    "tools",
    "description",
    "jsonrpc",
    "resultType",
    "toolvane/health",
    "nextCursor",
    "ttlMs",
    "",
    "ключ \"\\",
];
const SCALARS: [&str; 14] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1e5",
    "9007199254740993",
    "-12.50E-3",
    "1.10",
    "\"completed\"",
    "\"2.0\"",
    "\"\"",
    "\"tools/call\"",
    "123456789012345678901234567890",
];

/// Space between tokens.
pub(super) fn space() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \t]{1,3}", 1 => Just("\n".to_owned()), 1 => Just("\r\n ".to_owned())]
}

/// A string token, its characters spelled plainly or escaped.
pub(super) fn string_token(text: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (text, any::<u64>()).prop_map(|(text, spelling)| {
        let mut token = String::from("\"");
        for (index, letter) in text.chars().enumerate() {
            let escape = spelling >> (index % 60) & 7 == 0;
            if escape || letter < ' ' {
                let mut units = [0; 2];
                letter.encode_utf16(&mut units).iter().for_each(|unit| token += &format!("\\u{unit:04x}"));
            } else if matches!(letter, '"' | '\\') {
                token.extend(['\\', letter]);
            } else {
                token.push(letter);
            }
        }
        token + "\""
    })
}

fn key() -> impl Strategy<Value = String> {
    string_token(prop_oneof![8 => prop::sample::select(&KEYS[..]).prop_map(str::to_owned), 1 => any::<String>()])
}

/// An object of the given member values.
pub(super) fn object_of(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let member = (space(), key(), space(), value)
        .prop_map(|(before, key, after, value)| format!("{before}{key}{after}:{before}{value}{after}"));
    (prop::collection::vec(member, 0..7), space())
        .prop_map(|(members, space)| format!("{{{space}{}}}", members.join(",")))
}

/// Any JSON text. Keys may repeat, at any level.
pub(super) fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        3 => prop::sample::select(&SCALARS[..]).prop_map(str::to_owned),
        1 => string_token(any::<String>()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
    ];
    scalar.prop_recursive(5, 48, 5, |inner| {
        let array = (prop::collection::vec(inner.clone(), 0..5), space())
            .prop_map(|(elements, space)| format!("[{space}{}{space}]", elements.join(&format!("{space},"))));
        prop_oneof![2 => object_of(inner), 1 => array]
    })
}

/// Cuts a text into chunks, some of them empty, at places that `cuts` chooses.
pub(super) fn chunks<'a>(text: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut chunks: Vec<&[u8]> = Vec::new();
    for place in places.into_iter().chain([text.len()]) {
        chunks.push(&text[from..place]);
        from = place;
    }
    chunks
}

/// Cuts for [`chunks`]: few, many, or one after each byte.
pub(super) fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop_oneof![
        prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        prop::collection::vec(any::<prop::sample::Index>(), 20..60),
    ]
}
