"""openilink-sdk-python 0.1.1 against the simulator: its own login flow and its own monitor loop."""

import hashlib
import secrets
from pathlib import Path

from events import arguments, tell
from openilink import Client, LoginCallbacks, MonitorOptions, TypingStatus, extract_text

base_url, file, _, _ = arguments()
client = Client(base_url=base_url, cdn_base_url=base_url + "/c2c")

login = client.login_with_qr(
    LoginCallbacks(
        on_qrcode=lambda text: tell("qr", text=text),
        on_scanned=lambda: tell("scanned"),
    ),
    timeout=60,
)
assert login.connected, login.message
tell("logged_in", bot_id=login.bot_id, user_id=login.user_id, base_url=login.base_url)


def ask_for_an_upload(user_id):
    """This client stops here: it has no upload of its own."""
    plain = Path(file).read_bytes()
    answer = client.get_upload_url(
        {
            "filekey": secrets.token_hex(16),
            "media_type": 3,
            "to_user_id": user_id,
            "rawsize": len(plain),
            "rawfilemd5": hashlib.md5(plain).hexdigest(),
            "filesize": (len(plain) // 16 + 1) * 16,
            "no_need_thumb": True,
            "aeskey": secrets.token_hex(16),
        }
    )
    tell("upload_allowed", param=answer.upload_param)


def handle(message):
    text = extract_text(message)
    user_id = message.from_user_id
    tell(
        "received",
        message_id=str(message.message_id),
        user_id=user_id,
        text=text,
        context_token=message.context_token,
    )
    if text == "bye":
        return
    config = client.get_config(user_id, message.context_token)
    assert config.ret == 0 and config.typing_ticket, config
    client.send_typing(user_id, config.typing_ticket, TypingStatus.TYPING)
    tell("replied", client_id=client.push(user_id, "you said: " + text))
    client.send_typing(user_id, config.typing_ticket, TypingStatus.CANCEL)
    ask_for_an_upload(user_id)


def hear_of_the_end():
    tell("expired")
    client.stop()


client.monitor(handle, MonitorOptions(on_session_expired=hear_of_the_end))
tell("stopped")
