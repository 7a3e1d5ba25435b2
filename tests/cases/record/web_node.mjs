// Web applications that fail as Express and bare Node fail: `web_node.mjs express|node`. Prints its port.

import http from "node:http";

const said = (server) => server.listen(0, "127.0.0.1", () => console.log(server.address().port));

if (process.argv[2] === "express") {
  const express = (await import("express")).default;
  const app = express();
  app.use(express.json({ limit: "1kb" }));
  app.post("/items", (request, response) => response.json(request.body));
  app.get("/raise", () => {
    throw new Error("boom");
  });
  app.get("/status/:status", (request, response) => response.sendStatus(Number(request.params.status)));
  said(http.createServer(app));
} else {
  said(http.createServer({ maxHeaderSize: 2048 }, (request, response) => {
    response.writeHead(404).end();
  }));
}
