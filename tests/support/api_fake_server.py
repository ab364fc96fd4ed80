"""A server process over an engine that says one letter and then nothing more: `python api_fake_server.py GRACE_SECONDS`."""

from __future__ import annotations

import sys

from api_fakes import fake_runtime, hangs

from formcast.api.async_engine import AsyncLLM
from formcast.api.server.serve import bind, serve
from formcast.api.server.settings import ServerSettings


def main() -> None:
    settings = ServerSettings(served_model_names=("fake",), shutdown_grace_s=float(sys.argv[1]))
    with bind("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        serve(
            AsyncLLM(fake_runtime(hangs("a"))), settings, listener, on_ready=lambda: print(f"ready on {url}", file=sys.stderr, flush=True)
        )


if __name__ == "__main__":
    main()
