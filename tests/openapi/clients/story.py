"""The story of clients/mod.rs, told by the client that openapi-python-client made: `story.py HUB SIMULATOR`."""

import sys
import time

import httpx
from hub_client import AuthenticatedClient, Client
from hub_client.api.auth import get_me, login, register
from hub_client.api.bots import confirm_bind, get_bot, get_trace, list_messages, list_traces, send_message, start_bind
from hub_client.api.channels import create_channel
from hub_client.api.user import create_api_key
from hub_client.models import (
    ConfirmBind,
    CreateApiKey,
    CreateChannel,
    ErrorResponse,
    LoginRequest,
    RegisterRequest,
    SendMessage,
    StartBind,
)

hub, simulator = sys.argv[1:]
PASSWORD = "correct horse battery"
NOBODY = "bot_01BX5ZZKBKACTAV9WEVGEMMVRZ"


def passed(step):
    print(step, flush=True)


def data(answer):
    if answer.parsed is None or isinstance(answer.parsed, ErrorResponse):
        raise SystemExit(f"{answer.status_code}: {answer.content}")
    return answer.parsed.data


def refused(answer, status, code):
    if answer.status_code != status or not isinstance(answer.parsed, ErrorResponse):
        raise SystemExit(f"expected {code}, got {answer.status_code}: {answer.content}")
    assert answer.parsed.error.code == code, answer.content
    passed(code)


def control(path, body):
    httpx.post(simulator + path, json=body).raise_for_status()


def until(look):
    for _ in range(200):
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise SystemExit("waited in vain")


stranger = Client(base_url=hub, headers={"Origin": hub})
ada = RegisterRequest(username="ada", password=PASSWORD)
data(register.sync_detailed(client=stranger, body=ada))
passed("registered")
fresh = Client(base_url=hub, headers={"Origin": hub})
data(login.sync_detailed(client=fresh, body=LoginRequest(username="ada", password=PASSWORD)))
passed("logged in")
key = data(create_api_key.sync_detailed(client=fresh, body=CreateApiKey(name="story"))).key
passed("key created")
client = AuthenticatedClient(base_url=hub, token=key)
assert data(get_me.sync_detailed(client=client)).username == "ada"
passed("me")
bind = data(start_bind.sync_detailed(client=client, body=StartBind(network="sim")))
passed("bind started")
control("/_sim/confirm", {"qr_text": bind.qr_text})
ask = ConfirmBind(bind_id=bind.bind_id, wait_ms=2000)


def confirmed():
    step = data(confirm_bind.sync_detailed(client=client, body=ask))
    return step.bot if step.status == "confirmed" else None


bot = until(confirmed)
passed("bind confirmed")
channel = data(create_channel.sync_detailed(bot.id, client=client, body=CreateChannel(name="story")))
assert channel.api_key.startswith("hubc_")
passed("channel created")
text = SendMessage(content="hello")
refused(send_message.sync_detailed(bot.id, client=client, body=text), 409, "WINDOW_CLOSED")
count = 250
control("/_sim/messages", {"messages": [{"wx_id": bot.wx_id, "text": f"order {n}"} for n in range(count)]})


def pages():
    seen, cursor = [], None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = data(list_messages.sync_detailed(bot.id, client=client, limit=100, **more))
        seen += [message.id for message in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return seen


seen = until(lambda: (seen := pages()) and len(seen) >= count and seen)
passed("messages received")
assert len(seen) == len(set(seen)) == count, len(seen)
passed("paged")
sent = data(send_message.sync_detailed(bot.id, client=client, body=text))
assert sent.message_id.startswith("msg_")
passed("sent")
trace = until(lambda: data(list_traces.sync_detailed(bot.id, client=client)).items)[0]
assert data(get_trace.sync_detailed(bot.id, trace.trace_id, client=client)).steps
passed("trace read")
bad = CreateChannel(name="")
refused(create_channel.sync_detailed(bot.id, client=client, body=bad), 400, "INVALID_PARAMS")
refused(get_me.sync_detailed(client=Client(base_url=hub)), 401, "UNAUTHORIZED")
wrong = AuthenticatedClient(base_url=hub, token="hubu_unknown")
refused(get_me.sync_detailed(client=wrong), 401, "INVALID_TOKEN")
refused(create_api_key.sync_detailed(client=client, body=CreateApiKey(name="another")), 403, "FORBIDDEN")
refused(get_bot.sync_detailed(NOBODY, client=client), 404, "NOT_FOUND")
refused(register.sync_detailed(client=stranger, body=ada), 409, "CONFLICT")
too_large = SendMessage(content="x" * (2 * 1024 * 1024))
refused(send_message.sync_detailed(bot.id, client=client, body=too_large), 413, "PAYLOAD_TOO_LARGE")
guess = LoginRequest(username="ada", password="wrong horse battery")
until(lambda: login.sync_detailed(client=stranger, body=guess).status_code == 429)
refused(login.sync_detailed(client=stranger, body=guess), 429, "RATE_LIMITED")
