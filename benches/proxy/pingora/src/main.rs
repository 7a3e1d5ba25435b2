//! The smallest proxy that pingora makes: two threads, its defaults, nothing looked at.

use std::sync::Arc;

use async_trait::async_trait;
use pingora_core::Result;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session};

struct Forward {
    backend: String,
}

#[async_trait]
impl ProxyHttp for Forward {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _: &mut Session, (): &mut ()) -> Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.backend.as_str(), false, String::new())))
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (listen, backend) = (arguments.next().expect("LISTEN"), arguments.next().expect("BACKEND"));
    let conf = ServerConf { threads: 2, upstream_keepalive_pool_size: 1024, ..ServerConf::default() };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = pingora_proxy::http_proxy_service(&Arc::clone(&server.configuration), Forward { backend });
    service.add_tcp(&listen);
    server.add_service(service);
    server.run_forever();
}
