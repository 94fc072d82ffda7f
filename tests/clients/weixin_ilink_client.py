"""weixin-ilink 0.3.5: without an address of the CDN it reads a file only from its `full_url`."""

from pathlib import Path

from events import arguments, tell, tell_text
from weixin_ilink import api
from weixin_ilink.auth import login_with_qr
from weixin_ilink.client import ILinkClient
from weixin_ilink.types import TypingStatus

base_url, file, image, folder = arguments()


seen = set()


def on_status(status):
    if status == "scanned" and status not in seen:
        tell("scanned")
    seen.add(status)


login = login_with_qr(lambda text: tell("qr", text=text), on_status, base_url=base_url)
tell("logged_in", bot_id=login.account_id, user_id=login.user_id, base_url=login.base_url)
client = ILinkClient(login.base_url, login.bot_token)


def answer(message, text):
    user_id, context = message["from_user_id"], message["context_token"]
    client.send_typing(user_id, context)
    client.send_text(user_id, "you said: " + text, context)
    tell("replied")
    ticket = client.get_config(user_id, context)["typing_ticket"]
    api.send_typing(client.opts, user_id, ticket, int(TypingStatus.CANCEL))
    client.send_file(user_id, file, context)
    client.send_image(user_id, image, context)
    tell("sent_media")


def save(message):
    """Saves the files of a message, those that it quotes included."""
    for number, item in enumerate(message["item_list"]):
        quoted = item.get("ref_msg", {}).get("message_item", {})
        for event, one in (("downloaded", item), ("quoted", quoted)):
            plain = client.download_media_item(one)
            if plain is not None:
                path = Path(folder) / f"{message['message_id']}-{number}-{event}"
                path.write_bytes(plain)
                tell(event, kind="image" if "image_item" in one else "file", path=str(path))


def handle(message):
    save(message)
    text = tell_text(message)
    if text not in ("", "bye", "this one?"):
        answer(message, text)
    return text != "bye"


going = True
while going:
    for message in client.poll().get("msgs", []):
        going = handle(message) and going
tell("stopped")
