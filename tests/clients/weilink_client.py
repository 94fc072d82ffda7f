"""weilink 0.6.2: its protocol modules, which know the network's CDN alone and read a file only from its `full_url`."""

import base64
import time
from pathlib import Path

from events import arguments, tell, tell_text
from weilink import _cdn as cdn
from weilink import _protocol as protocol
from weilink.models import UploadMediaType

base_url, file, image, folder = arguments()
# A file that has no `full_url` would be requested here.
cdn.CDN_BASE = "http://127.0.0.1:1/c2c"


def log_in():
    code = protocol.get_qr_code(base_url)
    tell("qr", text=code["qrcode_img_content"])
    scanned = False
    while True:
        status = protocol.poll_qr_status(code["qrcode"], base_url)
        if status["status"] == "confirmed":
            return status
        assert status["status"] in ("wait", "scaned"), status
        if status["status"] == "scaned" and not scanned:
            scanned = True
            tell("scanned")
        time.sleep(0.1)


login = log_in()
tell("logged_in", bot_id=login["ilink_bot_id"], user_id=login["ilink_user_id"], base_url=login["baseurl"])
token, hub = login["bot_token"], login["baseurl"]


def upload(path, media_type, user_id):
    def permit(**fields):
        return protocol.get_upload_url(**fields, token=token, base_url=hub)

    return cdn.upload_media(Path(path).read_bytes(), media_type, user_id, permit)


def reference(uploaded):
    key = base64.b64encode(uploaded.aes_key_hex.encode()).decode()
    return {"encrypt_query_param": uploaded.download_param, "aes_key": key, "encrypt_type": 1}


def answer(message, text):
    user_id, context = message["from_user_id"], message["context_token"]
    config = protocol.get_config(user_id, token, context, hub)
    protocol.send_typing(user_id, config["typing_ticket"], 1, token, hub)
    protocol.send_message(user_id, "you said: " + text, context, token, hub)
    tell("replied")
    protocol.send_typing(user_id, config["typing_ticket"], 2, token, hub)
    uploaded = upload(file, UploadMediaType.FILE, user_id)
    part = {"media": reference(uploaded), "file_name": Path(file).name, "len": str(uploaded.file_size)}
    protocol.send_media_message(user_id, [{"type": 4, "file_item": part}], context, token, hub)
    uploaded = upload(image, UploadMediaType.IMAGE, user_id)
    part = {"media": reference(uploaded), "mid_size": uploaded.cipher_size}
    protocol.send_media_message(user_id, [{"type": 2, "image_item": part}], context, token, hub)
    tell("sent_media")


def save(message):
    """Saves the files of a message, those that it quotes included."""
    for number, item in enumerate(message["item_list"]):
        for kind, name in (("image", "image_item"), ("file", "file_item")):
            quoted = item.get("ref_msg", {}).get("message_item", {})
            for event, part in (("downloaded", item.get(name)), ("quoted", quoted.get(name))):
                if part:
                    media = part["media"]
                    path = Path(folder) / f"{message['message_id']}-{number}-{event}"
                    plain = cdn.download_media("", media["aes_key"], full_url=media.get("full_url", ""))
                    path.write_bytes(plain)
                    tell(event, kind=kind, path=str(path))


def handle(message):
    save(message)
    text = tell_text(message)
    if text not in ("", "bye", "this one?"):
        answer(message, text)
    return text != "bye"


cursor, going = "", True
while going:
    updates = protocol.get_updates(cursor, token, hub)
    cursor = updates.get("get_updates_buf") or cursor
    for message in updates.get("msgs", []):
        going = handle(message) and going
tell("stopped")
