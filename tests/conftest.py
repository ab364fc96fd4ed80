"""What holds for every test: how much hypothesis tries, and that nothing reaches for a network."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# Examples are fixed in the default run, so that a green run stays green; `make soak` draws new ones each time.
settings.register_profile("default", deadline=None, max_examples=50, derandomize=True, print_blob=True)
settings.register_profile("soak", deadline=None, max_examples=3000, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("FORMCAST_HYPOTHESIS_PROFILE", "default"))

# Model hubs are never asked: a test that needs a model names a local file or a built-in alias.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# A shell that runs the suite in its background has it ignore Ctrl-C, and the commands that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
