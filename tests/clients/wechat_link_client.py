"""wechat-link 0.4.0 against the simulator. The package leaves the loops to its user."""

import time
from pathlib import Path

from events import arguments, tell
from wechat_link import Client

base_url, file, image, folder = arguments()


def log_in():
    stranger = Client(base_url=base_url)
    code = stranger.get_bot_qrcode()
    # Fetches the address first, as it may be a picture, and draws the text if it is not.
    assert stranger.render_qrcode_terminal(code.qrcode_img_content)
    tell("qr", text=code.qrcode_img_content)
    scanned = False
    while True:
        status = stranger.get_qrcode_status(code.qrcode)
        if status.status == "confirmed":
            stranger.close()
            return status
        assert status.status in ("wait", "scaned"), status.status
        if status.status == "scaned" and not scanned:
            scanned = True
            tell("scanned")
        time.sleep(0.1)


login = log_in()
tell("logged_in", bot_id=login.ilink_bot_id, user_id=login.ilink_user_id, base_url=login.baseurl)
client = Client(base_url=login.baseurl, cdn_base_url=login.baseurl + "/c2c", bot_token=login.bot_token)


def answer(message, text):
    to = {"to_user_id": message.from_user_id, "context_token": message.context_token}
    user_id = message.from_user_id
    config = client.get_config(ilink_user_id=user_id, context_token=message.context_token)
    assert config.ret == 0 and config.typing_ticket, config
    sign = {"ilink_user_id": user_id, "typing_ticket": config.typing_ticket}
    assert client.send_typing(**sign, status=1).ret == 0
    tell("replied", client_id=client.send_text(**to, text="you said: " + text))
    assert client.send_typing(**sign, status=2).ret == 0
    uploaded = client.upload_file(file_path=file, to_user_id=user_id)
    client.send_file(**to, file_name=Path(file).name, uploaded=uploaded)
    client.send_image(**to, uploaded=client.upload_image(file_path=image, to_user_id=user_id))
    tell("sent_media")


def handle(message):
    for number, item in enumerate(message.media_items()):
        path = Path(folder) / f"{message.message_id}-{number}"
        path.write_bytes(client.download_message_item(item))
        tell("downloaded", kind=item.kind, path=str(path))
    text = message.text()
    if not text:
        return True
    tell(
        "received",
        message_id=str(message.message_id),
        user_id=message.from_user_id,
        text=text,
        context_token=message.context_token,
    )
    if text != "bye":
        answer(message, text)
    return text != "bye"


cursor, going = "", True
while going:
    updates = client.get_updates(cursor=cursor)
    assert updates.ret == 0, updates
    cursor = updates.next_cursor or cursor
    for message in updates.messages:
        going = handle(message) and going
client.close()
tell("stopped")
