//! The store against a model that is a plain map, through random writes, commits, deletes and restarts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use toolvane::health::{Backing, Document};

use super::support::{Place, block_on, document, key};

#[derive(Clone, Debug)]
enum Step {
    Write(u8),
    Commit(Vec<u8>),
    Delete(u8),
    Flush,
    Restart { close_first: bool },
}

fn any_step() -> impl Strategy<Value = Step> {
    let tool = || 0..8_u8;
    prop_oneof![
        5 => tool().prop_map(Step::Write),
        2 => prop::collection::vec(tool(), 0..4).prop_map(Step::Commit),
        1 => tool().prop_map(Step::Delete),
        1 => Just(Step::Flush),
        1 => any::<bool>().prop_map(|close_first| Step::Restart { close_first }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(feature = "verify") { 1_000 } else { 50 }))]

    #[test]
    fn the_store_holds_what_a_plain_map_would_hold(steps in prop::collection::vec(any_step(), 1..40)) {
        let place = Place::quick();
        let mut store = place.open().0;
        let mut model: BTreeMap<String, Document> = BTreeMap::new();
        for (version, step) in steps.into_iter().enumerate() {
            let change = |tool: u8| document(&tool.to_string(), version as u64);
            match step {
                Step::Write(tool) => {
                    store.write(change(tool));
                    model.insert(tool.to_string(), change(tool));
                }
                Step::Commit(tools) => {
                    block_on(store.commit(tools.iter().copied().map(change).collect())).unwrap();
                    model.extend(tools.iter().map(|tool| (tool.to_string(), change(*tool))));
                }
                Step::Delete(tool) => {
                    block_on(store.delete(&key(&tool.to_string()))).unwrap();
                    model.remove(&tool.to_string());
                }
                Step::Flush => block_on(store.flush()).unwrap(),
                Step::Restart { close_first } => {
                    if close_first {
                        block_on(store.close()).unwrap();
                    }
                    drop(store);
                    store = place.open().0;
                    let loaded = store.load_all().into_iter().map(|document| (document.key.tool_name.clone(), document));
                    prop_assert_eq!(&loaded.collect::<BTreeMap<_, _>>(), &model);
                }
            }
            for tool in (0..8_u8).map(|tool| tool.to_string()) {
                let found = store.read(&key(&tool));
                prop_assert_eq!(found.as_ref(), model.get(&tool));
            }
        }
    }
}
