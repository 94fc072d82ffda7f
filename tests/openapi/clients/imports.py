"""Imports every module of the client that openapi-generator made, and reads an answer with it: `imports.py`."""

import importlib
import pkgutil

import openapi_client

modules = [module.name for module in pkgutil.walk_packages(openapi_client.__path__, "openapi_client.")]
for name in modules:
    importlib.import_module(name)
assert len(modules) > 200, modules

refusal = {"success": False, "error": {"code": "NOT_FOUND", "message": "There is none.", "request_id": "req_1"}}
read = openapi_client.ErrorResponse.from_dict(refusal)
assert read.error.code is openapi_client.ErrorCode.NOT_FOUND, read
assert openapi_client.BotsApi().list_messages.__doc__
