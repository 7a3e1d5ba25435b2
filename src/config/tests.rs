//! What a good file comes to.

use super::*;

fn read(text: &str) -> Result<Config, Report> {
    Config::read(&Arc::new(Source::new("toolvane.yaml", text)), Path::new("/etc/toolvane"))
}

#[test]
fn the_shortest_file_is_complete() {
    let config = read("backends: [{name: demo, kind: mcp, url: \"http://127.0.0.1:9000/mcp\"}]").unwrap();
    assert_eq!(config.listen.len(), 1);
    println!("{config:#?}");
}
