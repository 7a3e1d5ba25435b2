//! The requests that are sent.

/// A POST with these headers besides the usual ones.
pub fn post(path: &str, case: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: tools.example\r\nuser-agent: bench/1.0 (load generator)\r\n\
         accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         mcp-protocol-version: 2025-06-18\r\n"
    );
    if !case.is_empty() {
        head.push_str(&format!("x-case: {case}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    [head.as_bytes(), body.as_bytes()].concat()
}

/// Who calls what.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub path: &'a str,
    /// What the backend is to answer.
    pub case: &'a str,
    pub tool: &'a str,
    pub user: &'a str,
    pub session: &'a str,
    /// Bytes of the body, about.
    pub size: usize,
}

impl Default for Call<'_> {
    fn default() -> Self {
        Call { path: "/mcp", case: "json1k", tool: "tool_1", user: "alice", session: "s-1", size: 500 }
    }
}

impl Call<'_> {
    /// A `tools/call` with ten headers.
    pub fn bytes(&self) -> Vec<u8> {
        self.with(&[])
    }

    /// One with the number of the request in its head.
    pub fn named(&self, number: usize) -> Vec<u8> {
        self.with(&[("x-request-id", &format!("4bf92f35-77b3-4da6-a3ce-{number:012}"))])
    }

    fn with(&self, more: &[(&str, &str)]) -> Vec<u8> {
        let filler: String = "find the third of the seven reports about rain "
            .chars()
            .cycle()
            .take(self.size.saturating_sub(140))
            .collect();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{}","arguments":{{"query":"{filler}","limit":10}},"_meta":{{"progressToken":1}}}}}}"#,
            self.tool
        );
        post(self.path, self.case, &[&self.headers(), more].concat(), &body)
    }

    /// A `tools/list`.
    pub fn list(&self) -> Vec<u8> {
        post(self.path, self.case, &self.headers(), r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#)
    }

    fn headers(&self) -> [(&str, &str); 3] {
        [
            ("x-user-id", self.user),
            ("mcp-session-id", self.session),
            ("authorization", "Bearer 0123456789abcdef0123456789abcdef"),
        ]
    }
}
