"""A home with two lights behind the interface of Home Assistant's MCP server: stateless, one JSON answer for a request, a token
in each request, 202 for notifications, 405 for GET."""
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = sys.argv[1]
LIGHTS = {"Kitchen light": "on", "Hall light": "on"}
TARGET = {"type": "object", "properties": {"name": {"type": "string"}, "area": {"type": "string"}, "domain": {"type": "array"}}}
TOOLS = [
    {"name": "GetLiveContext", "description": "Reads the state of all devices.", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "HassTurnOn", "description": "Turns a device on.", "inputSchema": TARGET},
    {"name": "HassTurnOff", "description": "Turns a device off.", "inputSchema": TARGET},
]


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "prompts": {}},
                "serverInfo": {"name": "home-assistant", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "prompts/list":
        return {"prompts": [{"name": "Assist", "description": "How to speak to the home"}]}
    if method == "tools/call":
        name, arguments = params["name"], params.get("arguments") or {}
        if name == "GetLiveContext":
            return said("\n".join(f"- names: {light}\n  state: '{state}'" for light, state in LIGHTS.items()))
        if arguments.get("name") not in LIGHTS:
            return {"content": [{"type": "text", "text": "no such device"}], "isError": True}
        LIGHTS[arguments["name"]] = "on" if name == "HassTurnOn" else "off"
        return said(json.dumps({"success": [{"name": arguments["name"]}]}))
    return None


def said(text):
    return {"content": [{"type": "text", "text": text}]}


class Home(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send(405)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.send(401, b"401: Unauthorized", "text/plain")
        if self.path != "/api/mcp" or "application/json" not in self.headers.get("Accept", ""):
            return self.send(400)
        message = json.loads(body)
        if "id" not in message:
            return self.send(202)
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        result = answer(message["method"], message.get("params") or {})
        if result is None:
            reply["error"] = {"code": -32601, "message": "Method not found", "data": message["method"]}
        else:
            reply["result"] = result
        self.send(200, json.dumps(reply).encode())


server = ThreadingHTTPServer(("127.0.0.1", 0), Home)
print(server.server_port, flush=True)
server.serve_forever()
