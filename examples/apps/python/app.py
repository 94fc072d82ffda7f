"""An app of a Message Hub. Needs nothing but Python 3.9:

    HUB_URL=http://localhost:9800 python3 app.py

/hello is answered at once, /picture with an image, /tell through the bot API; what people write to @handle comes back.
"""

import base64
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HUB = os.environ.get("HUB_URL", "http://localhost:9800").rstrip("/")
LISTEN = os.environ.get("LISTEN", "127.0.0.1:3000")
STATE = os.environ.get("STATE", "app-state.json")
MAX_BODY = 1 << 20
MAX_SKEW = 300  # seconds
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Installations:
    """What the hub gave us per installation: a token to call it, and the secret it signs with. Survives restarts."""

    def __init__(self):
        self.lock = threading.Lock()
        self.known = {}
        if os.path.exists(STATE):
            with open(STATE, encoding="utf-8") as file:
                self.known = json.load(file)

    def keep(self, installation_id, token, secret):
        with self.lock:
            self.known[installation_id] = {"token": token, "secret": secret}
            new = STATE + ".new"
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump(self.known, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, STATE)

    def get(self, installation_id):
        with self.lock:
            found = self.known.get(installation_id)
        # Installed by hand, token and secret are in the environment.
        return found or {"token": os.environ.get("APP_TOKEN", ""), "secret": os.environ.get("WEBHOOK_SECRET", "")}


class Flows:
    """Installations that were begun: state -> verifier and the way back. The oldest of a hundred is forgotten."""

    def __init__(self):
        self.lock = threading.Lock()
        self.begun = {}

    def begin(self, return_url, redirect_uri):
        state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        with self.lock:
            if len(self.begun) >= 100:
                del self.begun[next(iter(self.begun))]
            self.begun[state] = (verifier, return_url, redirect_uri)
        return state, verifier

    def take(self, state):
        with self.lock:
            return self.begun.pop(state, None)


installations, flows = Installations(), Flows()


def call_hub(path, body, headers=None):
    """POSTs to the hub; the JSON of its answer."""
    request = urllib.request.Request(HUB + path, data=body, headers=headers or {})
    with urllib.request.urlopen(request, timeout=8) as answer:
        return json.load(answer)


def is_signed(headers, body):
    """Whether the hub sent this, and lately: HMAC-SHA256 of "timestamp:body"."""
    at, given = headers.get("X-Timestamp", ""), headers.get("X-Signature", "")
    secret = installations.get(headers.get("X-Installation-Id", ""))["secret"]
    if not secret or not at.isascii() or not at.isdigit() or abs(time.time() - int(at)) > MAX_SKEW:
        return False
    expected = "sha256=" + hmac.new(secret.encode(), at.encode() + b":" + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(given.encode(), expected.encode())


def answer_to(envelope):
    """The reply to the sender. An event may arrive twice: the same event gets the same reply."""
    event = envelope["event"]
    data = event["data"]
    if event["type"] == "message.text":
        return {"reply": "You said: " + data["content"]}
    if event["type"] != "command":
        return {}
    if data["command"] == "picture":
        return {"reply": "Here it is", "reply_type": "image", "reply_base64": PNG, "reply_name": "picture.png"}
    if data["command"] == "tell":
        # Sent before the event is answered: if this process dies in between, the hub tells the event again, and the
        # key makes that a repetition.
        message = {"to": data["sender"]["id"], "content": data["text"] or "(nothing)", "trace_id": envelope["trace_id"]}
        token = installations.get(envelope["installation_id"])["token"]
        headers = {
            "Authorization": "Bearer " + token,
            "Content-Type": "application/json",
            "Idempotency-Key": event["id"],
        }
        call_hub("/bot/v1/messages/send", json.dumps(message).encode(), headers)
        return {"reply_async": True}
    return {"reply": "Hello! I know /hello, /picture and /tell."}


class App(BaseHTTPRequestHandler):
    timeout = 30  # seconds, for a request that does not come

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY:
            return self.answer(413, {"error": "too long"})
        body = self.rfile.read(length)
        if self.path != "/events":
            return self.answer(404, {"error": "not here"})
        try:
            envelope = json.loads(body)
        except ValueError:
            return self.answer(400, {"error": "not JSON"})
        if not isinstance(envelope, dict):
            return self.answer(400, {"error": "not an object"})
        if envelope.get("type") == "url_verification":
            return self.answer(200, {"challenge": envelope.get("challenge")})
        if not is_signed(self.headers, body):
            print("refused", flush=True)
            return self.answer(401, {"error": "bad signature"})
        try:
            reply = answer_to(envelope)
        except (urllib.error.URLError, OSError):
            return self.answer(503, {"error": "the hub does not take the message; tell it again"})
        print("answered", envelope["event"]["type"], envelope["event"]["id"], flush=True)
        self.answer(200, reply)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/setup":
            return self.set_up(query)
        if url.path == "/callback":
            return self.call_back(query)
        self.answer(404, {"error": "not here"})

    def set_up(self, query):
        """The hub sends the browser of the bot's owner here; we send it to the hub's question."""
        if query.get("hub") != HUB:
            return self.answer(400, {"error": "another hub"})
        redirect_uri = f"http://{LISTEN}/callback"
        state, verifier = flows.begin(query.get("return_url", ""), redirect_uri)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
        question = {
            "response_type": "code",
            "client_id": query.get("app_id", ""),
            "redirect_uri": redirect_uri,
            "bot_id": query.get("bot_id", ""),
            "state": f"{query.get('app_id', '')}.{state}",
            "code_challenge": challenge.decode(),
            "code_challenge_method": "S256",
        }
        self.go(f"{HUB}/api/auth/oauth/authorize?{urllib.parse.urlencode(question)}")

    def call_back(self, query):
        """The browser brings a code; we exchange it for a token."""
        app_id, _, state = query.get("state", "").partition(".")
        begun = flows.take(state)
        if begun is None or "code" not in query:
            return self.answer(400, {"error": query.get("error", "not begun here")})
        verifier, return_url, redirect_uri = begun
        form = {
            "grant_type": "authorization_code",
            "client_id": app_id,
            "code": query["code"],
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        try:
            granted = call_hub("/api/auth/oauth/token", urllib.parse.urlencode(form).encode())
        except (urllib.error.URLError, OSError):
            return self.answer(502, {"error": "the hub gave no token"})
        installations.keep(granted["installation_id"], granted["access_token"], granted["webhook_secret"])
        print("installed", granted["installation_id"], flush=True)
        if return_url.startswith(HUB + "/"):
            return self.go(return_url)
        self.answer(200, {"installed": granted["installation_id"]})

    def go(self, location):
        self.send_response(302)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    host, _, port = LISTEN.rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), App)
    LISTEN = f"{host}:{server.server_port}"
    print(f"ready http://{LISTEN}", flush=True)
    server.serve_forever()
