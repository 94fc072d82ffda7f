"""Receives webhooks and checks who sent them. Needs nothing but Python:

    WEBHOOK_SECRET=... python3 webhook_receiver.py
"""

import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["WEBHOOK_SECRET"]


def digest(key: bytes, signed: bytes) -> bytes:
    return hmac.new(key, signed, hashlib.sha256).digest()


def verify(headers, body: bytes) -> bool:
    """X-Signature over the body, or the Standard Webhooks headers over id, time and body."""
    if (given := headers.get("X-Signature")) is not None:
        expected = "sha256=" + digest(SECRET.encode(), body).hex()
        return hmac.compare_digest(given.encode(), expected.encode())
    message_id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not at.isdigit() or abs(time.time() - int(at)) > 300:
        return False
    key = base64.b64decode(SECRET[6:]) if SECRET.startswith("whsec_") else SECRET.encode()
    expected = b"v1," + base64.b64encode(digest(key, f"{message_id}.{at}.".encode() + body))
    given = headers.get("webhook-signature", "").encode().split(b" ")
    return any(hmac.compare_digest(one, expected) for one in given)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        verified = verify(self.headers, body)
        print("verified" if verified else "refused", body.decode(errors="replace"), flush=True)
        answer = json.dumps({"reply": "thank you"} if verified else {"error": "bad signature"}).encode()
        self.send_response(200 if verified else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    host, _, port = os.environ.get("LISTEN", "127.0.0.1:3000").rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), Receiver)
    print(f"ready http://{host}:{server.server_port}/", flush=True)
    server.serve_forever()
