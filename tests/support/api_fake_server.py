"""A server process over an engine that plays a script: `python api_fake_server.py SCRIPT JSON_SETTINGS [JSON_TRANSPORT]`."""

from __future__ import annotations

import json
import sys

from api_fakes import echoes, fake_runtime, floods, hangs

from formcast.api.async_engine import AsyncLLM
from formcast.api.server.serve import serve
from formcast.api.server.settings import ServerSettings
from formcast.api.server.transport import Transport, bind

SCRIPTS = {"hangs": hangs("a"), "echoes": echoes, "floods": floods}


def main() -> None:
    script, settings, *transport = sys.argv[1:]
    runtime = fake_runtime(SCRIPTS[script], max_live=64)
    over = Transport(**json.loads(*transport)) if transport else Transport()
    with bind("127.0.0.1", 0) as listener:
        url = f"http{'s' if over.tls_certificate else ''}://127.0.0.1:{listener.getsockname()[1]}"
        serve(
            AsyncLLM(runtime),
            ServerSettings(served_model_names=("fake",), **json.loads(settings)),
            listener,
            on_ready=lambda: print(f"ready on {url}", file=sys.stderr, flush=True),
            transport=over,
        )


if __name__ == "__main__":
    main()
