"""Web applications that fail as their frameworks fail: `web_python.py flask|starlette|http.server`. Prints its port."""

import asyncio
import http.server
import socket
import sys


def flask_app():
    from flask import Flask, abort, request

    app = Flask("recorded")

    @app.post("/items")
    def items():
        return {"name": request.get_json()["name"]}

    @app.get("/status/<int:status>")
    def status(status):
        abort(status)

    @app.get("/raise")
    def broken():
        raise RuntimeError("boom")

    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, app)
    print(server.port, flush=True)
    server.serve_forever()


def starlette_app():
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def items(request):
        return JSONResponse(await request.json())

    async def status(request):
        raise HTTPException(request.path_params["status"])

    async def as_json(request, error):
        return JSONResponse({"detail": error.detail}, status_code=error.status_code)

    async def broken(request):
        raise RuntimeError("boom")

    app = Starlette(
        routes=[
            Route("/items", items, methods=["POST"]),
            Route("/status/{status:int}", status),
            Route("/raise", broken),
        ],
        exception_handlers={HTTPException: as_json} if "json" in sys.argv else {},
    )
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    print(sock.getsockname()[1], flush=True)
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[sock]))


def plain_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    print(server.server_port, flush=True)
    server.serve_forever()


{"flask": flask_app, "starlette": starlette_app, "http.server": plain_server}[sys.argv[1]]()
